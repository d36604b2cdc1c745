"""Rows chosen and changed by index: gather, scatter, segments, histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import counts_below, function_contest, indices, onnx_program, signed, text_contest

import xlalite as xl
from xlalite.hlo.types.dtype import DType


def workloads() -> list[Workload]:
    """All of them."""
    widths = [{"rows": 100_000, "width": width, "count": 32_768} for width in (64, 61)]
    images = {"images": 8, "whole": 128, "size": 112}
    return [
        *(
            workload("crops {size} of " + dtype + " [{images},{whole},{whole},3]", _crops(dtype), **images)
            for dtype in ("f32", "u8")
        ),
        *(workload("gather {count} rows of {width} in {rows}", _gather, **size) for size in widths),
        *(workload("scatter-add {count} rows of {width} in {rows}", _scatter_add, **size) for size in widths),
        workload(
            "embedding gradient, {count} of {rows}x{width}", _embedding_gradient, rows=50_257, width=64, count=8192
        ),
        workload("take_along_axis [{rows},{columns}], {count} a row", _take_along, rows=4096, columns=1000, count=63),
        workload("histogram of {count} in {bins}", _histogram, count=1_000_000, bins=256),
        workload(
            "one-row scatter in a loop, {count} rows of {width} in {rows}", _one_row, rows=10_000, width=64, count=1000
        ),
        workload(
            "sums of {segments} sorted segments [{rows},{width}]", _segment_sum, rows=100_000, width=64, segments=1000
        ),
        workload(
            "sums of {segments} sorted segments [{rows},{width}]", _segment_sum, rows=100_000, width=1, segments=777
        ),
        workload(
            "messages along {edges} edges of {nodes} nodes of {width}", _messages, nodes=10_000, edges=160_000, width=32
        ),
        workload(
            "embedding bags, {batch} of {bag} in {rows}x{width}", _bags, rows=100_000, width=16, batch=2048, bag=26
        ),
    ]


def _crops(dtype: str) -> Callable[..., Contest]:
    """A part of each image, at a place of its own."""

    def crops(images: int = 2, whole: int = 9, size: int = 5) -> Contest:
        pixels = np.random.default_rng(0).integers(0, 256, (images, whole, whole, 3)).astype(DType(dtype).numpy)
        places = np.random.default_rng(1).integers(0, whole - size + 1, (images, 2), np.int32)
        body = (
            f"  x = {dtype}[{images},{whole},{whole},3] parameter(0)\n  i = s32[{images},2] parameter(1)\n"
            f"  ROOT r = {dtype}[{images},{size},{size},3] gather(x, i), offset_dims={{1,2,3}}, "
            "collapsed_slice_dims={}, start_index_map={1,2}, operand_batching_dims={0}, "
            f"start_indices_batching_dims={{0}}, index_vector_dim=1, slice_sizes={{1,{size},{size},3}}\n"
        )

        def part(jax: Any) -> Callable[..., Any]:
            return jax.vmap(lambda image, at: jax.lax.dynamic_slice(image, (at[0], at[1], 0), (size, size, 3)))

        def plain(_: Any) -> Callable[..., Any]:
            return lambda x, i: np.stack([x[n, a : a + size, b : b + size] for n, (a, b) in enumerate(i.tolist())])

        return text_contest(body, [pixels, places], numpy=plain, jax=part, tolerance=0)

    return crops


def _gather(rows: int = 9, width: int = 5, count: int = 7) -> Contest:
    body = (
        f"  x = f32[{rows},{width}] parameter(0)\n  i = s32[{count}] parameter(1)\n"
        f"  ROOT r = f32[{count},{width}] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
        f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}\n"
    )
    moved = 4 * count * width
    return text_contest(
        body,
        [*signed((rows, width)), indices(rows, count)],
        plain=lambda np_: lambda x, i: x[i],
        torch=lambda torch: lambda x, i: torch.index_select(x, 0, i),
        onnxruntime=onnx_program(
            f"float[{rows},{width}] x, int32[{count}] i", f"float[{count},{width}] y", "y = Gather<axis=0>(x, i)"
        ),
        traffic=(moved + 4 * count, moved),
        tolerance=0,
    )


_SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add_f32"
)


def _scatter_add(rows: int = 9, width: int = 5, count: int = 7) -> Contest:
    shape = f"f32[{rows},{width}]"
    body = (
        f"  x = {shape} parameter(0)\n  i = s32[{count}] parameter(1)\n  u = f32[{count},{width}] parameter(2)\n"
        f"  ROOT r = {shape} scatter(x, i, u), {_SCATTER}\n"
    )
    x, u = signed((rows, width), (count, width))
    return text_contest(
        body,
        [x, indices(rows, count), u],
        numpy=lambda _: _added,
        jax=lambda _: lambda x, i, u: x.at[i].add(u),
        torch=lambda torch: lambda x, i, u: torch.index_add(x, 0, i, u),
    )


def _added(x: np.ndarray, i: np.ndarray, u: np.ndarray) -> np.ndarray:
    result = x.copy()
    np.add.at(result, i, u)
    return result


def _embedding_gradient(rows: int = 9, width: int = 5, count: int = 7) -> Contest:
    shape = f"f32[{rows},{width}]"
    body = (
        f"  i = s32[{count}] parameter(0)\n  u = f32[{count},{width}] parameter(1)\n  z = f32[] constant(0)\n"
        f"  x = {shape} broadcast(z), dimensions={{}}\n  ROOT r = {shape} scatter(x, i, u), {_SCATTER}\n"
    )
    return text_contest(
        body,
        [indices(rows, count), *signed((count, width))],
        numpy=lambda _: lambda i, u: _added(np.zeros((rows, width), np.float32), i, u),
        jax=lambda jax: lambda i, u: jax.numpy.zeros((rows, width)).at[i].add(u),
        torch=lambda torch: lambda i, u: torch.zeros((rows, width)).index_add_(0, i, u),
    )


def _take_along(rows: int = 5, columns: int = 7, count: int = 3) -> Contest:
    picked = f"{rows},{count}"
    body = f"""
  x = f32[{rows},{columns}] parameter(0)
  i = s32[{picked}] parameter(1)
  row = s32[{picked},1] iota(), iota_dimension=0
  column = s32[{picked},1] reshape(i)
  both = s32[{picked},2] concatenate(row, column), dimensions={{2}}
  ROOT r = f32[{picked}] gather(x, both), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, \
index_vector_dim=2, slice_sizes={{1,1}}
"""
    moved = 4 * rows * count
    return text_contest(
        body,
        [*signed((rows, columns)), indices(columns, rows, count)],
        plain=lambda np_: lambda x, i: np_.take_along_axis(x, i, 1),
        traffic=(2 * moved, moved),
        tolerance=0,
    )


def _histogram(count: int = 100, bins: int = 7) -> Contest:
    body = f"""
  i = s32[{count}] parameter(0)
  z = s32[] constant(0)
  one = s32[] constant(1)
  zeros = s32[{bins}] broadcast(z), dimensions={{}}
  ones = s32[{count}] broadcast(one), dimensions={{}}
  ROOT r = s32[{bins}] scatter(zeros, i, ones), update_window_dims={{}}, inserted_window_dims={{0}}, \
scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add_s32
"""
    return text_contest(
        body,
        [indices(bins, count)],
        numpy=lambda _: lambda i: np.bincount(i, minlength=bins),
        jax=lambda jax: lambda i: jax.numpy.bincount(i, length=bins),
        torch=lambda torch: lambda i: torch.bincount(i, minlength=bins),
        tolerance=0,
    )


def _one_row(rows: int = 9, width: int = 5, count: int = 7) -> Contest:
    table, update, state = f"f32[{rows},{width}]", f"f32[1,{width}]", f"(s32[], f32[{rows},{width}], s32[{count}])"
    computations = f"""
{counts_below(state, count)}step {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = {table} get-tuple-element(s), index=1
  i = s32[{count}] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  row = s32[1] dynamic-slice(i, n), dynamic_slice_sizes={{1}}
  scaled = f32[] convert(n)
  u = {update} broadcast(scaled), dimensions={{}}
  y = {table} scatter(x, row, u), {_SCATTER}
  ROOT t = {state} tuple(next, y, i)
}}
"""
    body = f"""
  x = {table} parameter(0)
  i = s32[{count}] parameter(1)
  z = s32[] constant(0)
  t = {state} tuple(z, x, i)
  w = {state} while(t), condition=below, body=step
  ROOT r = {table} get-tuple-element(w), index=1
"""

    def plain(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        result = x.copy()
        for n, row in enumerate(i):
            result[row] += n
        return result

    def in_jax(jax: Any) -> Any:
        return lambda x, i: jax.lax.fori_loop(
            0, count, lambda n, t: t.at[i[n]].add(jax.numpy.full(width, n, np.float32)), x
        )

    arguments = [*signed((rows, width)), indices(rows, count)]
    return text_contest(body, arguments, computations=computations, numpy=lambda _: plain, jax=in_jax)


def _segment_sum(rows: int = 20, width: int = 3, segments: int = 4) -> Contest:
    places = np.minimum(np.arange(rows, dtype=np.int64) * segments // rows, segments - 1).astype(np.int32)
    starts = np.searchsorted(places, np.arange(segments))
    return function_contest(
        lambda x, i: xl.unsorted_segment_sum(x, i, segments),
        [*signed((rows, width)), places],
        numpy=lambda _: lambda x, i: np.add.reduceat(x, starts, axis=0),
        jax=lambda jax: lambda x, i: jax.ops.segment_sum(x, i, segments, indices_are_sorted=True),
        torch=lambda torch: lambda x, i: torch.zeros((segments, width)).index_add_(0, i, x),
    )


def _messages(nodes: int = 9, edges: int = 20, width: int = 3) -> Contest:
    """A layer of a graph network: each node adds up what the sources of its edges send, weighted."""

    def own(x: Any, source: Any, target: Any, weights: Any) -> Any:
        sent = xl.gather(x, source) * xl.expand_dims(weights, 1)
        return xl.nn.relu(xl.unsorted_segment_sum(sent, target, nodes))

    def plain(x: np.ndarray, source: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.maximum(_added(np.zeros_like(x), target, x[source] * weights[:, None]), 0)

    def in_jax(jax: Any) -> Any:
        return lambda x, source, target, weights: jax.nn.relu(
            jax.ops.segment_sum(x[source] * weights[:, None], target, nodes)
        )

    def in_torch(torch: Any) -> Any:
        return lambda x, source, target, weights: torch.relu(
            torch.zeros((nodes, width)).index_add_(0, target, x[source] * weights[:, None])
        )

    x, weights = signed((nodes, width), (edges,))
    arguments = [x, indices(nodes, edges), indices(nodes, edges, seed=2), weights]
    return function_contest(own, arguments, numpy=lambda _: plain, jax=in_jax, torch=in_torch)


def _bags(rows: int = 9, width: int = 5, batch: int = 7, bag: int = 3) -> Contest:
    """Sums of the rows that each bag names, as recommendation models read sparse features."""
    moved = 4 * batch * bag * width
    return function_contest(
        lambda x, i: xl.reduce_sum(xl.gather(x, i), 1),
        [*signed((rows, width)), indices(rows, batch, bag)],
        plain=lambda np_: lambda x, i: x[i].sum(1),
        torch=lambda torch: lambda x, i: torch.nn.functional.embedding_bag(i, x, mode="sum"),
        traffic=(moved + 4 * batch * bag, 4 * batch * width),
    )
