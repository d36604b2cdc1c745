"""What goes through elements in order: sorting, the largest, running totals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, onnx_program, signed, text_contest


def workloads() -> list[Workload]:
    """All of them."""
    place = " [{rows},{columns}]"
    return [
        workload("sort {rows}", partial(_sort, 1, 0), rows=1_000_000),
        *(
            workload(f"sort rows{place}", partial(_sort, 2, 1), rows=rows, columns=columns)
            for rows, columns in ((1024, 1024), (1000, 777), (100_000, 16), (1, 4097))
        ),
        workload(f"sort columns{place}", partial(_sort, 2, 0), rows=1024, columns=1024),
        workload("argsort {count}", _argsort, count=1_000_000),
        workload("sort {count} keys with values", _key_value, count=1_000_000),
        workload("top {most} of rows" + place, _top, rows=64, columns=32_000, most=50),
        workload("top {most} of rows" + place, _top, rows=1000, columns=1000, most=5),
        *(
            workload(f"{name} {what}{place}", partial(_running, name, 2, axis), rows=1000, columns=777)
            for name in _RUNNING
            for what, axis in (("rows", 1), ("columns", 0))
        ),
        *(workload(name + " {rows}", partial(_running, name, 1, 0), rows=4_000_000) for name in _RUNNING),
    ]


def _shape(rank: int, rows: int, columns: int) -> tuple[int, ...]:
    return (rows, columns)[:rank]


def _sort(rank: int, axis: int, rows: int = 9, columns: int = 7) -> Contest:
    shape = _shape(rank, rows, columns)
    body = (
        f"  x = f32[{dims(shape)}] parameter(0)\n"
        f"  ROOT r = f32[{dims(shape)}] sort(x), dimensions={{{axis}}}, to_apply=lt_f32\n"
    )
    sort = lambda np_: lambda x: np_.sort(x, axis=axis)  # noqa: E731
    in_torch = lambda torch: lambda x: torch.sort(x, axis).values  # noqa: E731
    return text_contest(body, signed(shape), plain=sort, torch=in_torch, tolerance=0, flops=0)


def _argsort(count: int = 20) -> Contest:
    body = f"""
  x = f32[{count}] parameter(0)
  i = s32[{count}] iota(), iota_dimension=0
  s = (f32[{count}], s32[{count}]) sort(x, i), dimensions={{0}}, is_stable=true, to_apply=lt_f32_1
  ROOT r = s32[{count}] get-tuple-element(s), index=1
"""
    return text_contest(
        body,
        signed((count,)),
        numpy=lambda _: lambda x: np.argsort(x, kind="stable"),
        jax=lambda jax: jax.numpy.argsort,
        torch=lambda torch: lambda x: torch.argsort(x, stable=True),
        tolerance=0,
        flops=0,
    )


def _key_value(count: int = 20) -> Contest:
    both = f"f32[{count}], s32[{count}]"
    body = f"""
  x = f32[{count}] parameter(0)
  i = s32[{count}] parameter(1)
  ROOT s = ({both}) sort(x, i), dimensions={{0}}, is_stable=true, to_apply=lt_f32_1
"""

    def plain(x: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(x, kind="stable")
        return x[order], i[order]

    arguments = [*signed((count,)), np.arange(count, dtype=np.int32)]
    in_jax = lambda jax: lambda x, i: jax.lax.sort((x, i), num_keys=1)  # noqa: E731
    return text_contest(body, arguments, numpy=lambda _: plain, jax=in_jax, tolerance=0, flops=0)


def _top(rows: int = 5, columns: int = 11, most: int = 3) -> Contest:
    body = (
        f"  x = f32[{rows},{columns}] parameter(0)\n"
        f"  ROOT r = (f32[{rows},{most}], s32[{rows},{most}]) topk(x), k={most}, largest=true\n"
    )

    def plain(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        largest = np.sort(np.argpartition(-x, most, axis=1)[:, :most], axis=1)
        order = np.argsort(-np.take_along_axis(x, largest, 1), axis=1, kind="stable")
        places = np.take_along_axis(largest, order, 1)
        return np.take_along_axis(x, places, 1), places

    return text_contest(
        body,
        signed((rows, columns)),
        numpy=lambda _: plain,
        jax=lambda jax: lambda x: tuple(jax.lax.top_k(x, most)),
        torch=lambda torch: lambda x: tuple(torch.topk(x, most)),
        onnxruntime=onnx_program(
            f"float[{rows},{columns}] x",
            f"float[{rows},{most}] v, int64[{rows},{most}] i",
            f"k = Constant<value_ints=[{most}]>() v, i = TopK(x, k)",
        ),
        tolerance=0,
        flops=0,
    )


_RUNNING = {
    "cumsum": ("add", "0", np.add, "cumsum"),
    "cumprod": ("mul", "1", np.multiply, "cumprod"),
    "cummax": ("max", "-inf", np.maximum, "cummax"),
}
"""The function of scalars, what it starts from, NumPy's function and the name in jax.lax and torch."""


def _running(name: str, rank: int, axis: int, rows: int = 9, columns: int = 7) -> Contest:
    function, start, ufunc, jax_name = _RUNNING[name]
    shape = _shape(rank, rows, columns)
    sizes = "x".join(str(n) if i == axis else "1" for i, n in enumerate(shape))
    pads = "x".join(f"{n - 1}_0" if i == axis else "0_0" for i, n in enumerate(shape))
    window = f"size={sizes} pad={pads}"
    body = (
        f"  x = f32[{dims(shape)}] parameter(0)\n  z = f32[] constant({start})\n"
        f"  ROOT r = f32[{dims(shape)}] reduce-window(x, z), window={{{window}}}, to_apply={function}_f32\n"
    )
    (numbers,) = signed(shape)
    # Sums of positive numbers and products of numbers near one keep their digits.
    arguments = [np.exp(numbers / np.float32(100)) if name == "cumprod" else np.abs(numbers)]
    return text_contest(
        body,
        arguments,
        numpy=lambda _: _accumulate(ufunc, axis),
        jax=lambda jax: lambda x: getattr(jax.lax, jax_name)(x, axis),
        torch=lambda torch: _running_in_torch(torch, jax_name, axis),
        flops=int(np.prod(shape)),
        tolerance=1e-2,
    )


def _running_in_torch(torch: Any, name: str, axis: int) -> Callable[[Any], Any]:
    if name == "cummax":
        return lambda x: torch.cummax(x, axis).values
    return lambda x: getattr(torch, name)(x, axis)


def _accumulate(ufunc: Any, axis: int) -> Callable[[Any], Any]:
    return lambda x: ufunc.accumulate(x, axis=axis)
