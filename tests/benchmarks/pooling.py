"""Pooling of images and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, onnx_program, signed, text_contest


def workloads() -> list[Workload]:
    """All of them."""
    kinds = [
        (kind, layout, size, 2, gradient, 64)
        for kind in ("max", "average")
        for layout in ("NHWC", "NCHW")
        for size in (2, 3)
        for gradient in (False, True)
    ]
    kinds += [(kind, layout, 5, 1, False, 3) for kind in ("max", "average") for layout in ("NHWC", "NCHW")]
    place = " [{batch} {height}x{width} {channels}]"
    return [
        workload(
            f"{kind} pool {layout} {size}x{size} by {stride}{', gradient' * gradient}" + place,
            partial(_pool, kind, layout, size, stride, gradient),
            batch=8,
            height=113,
            width=112,
            channels=channels,
        )
        for kind, layout, size, stride, gradient, channels in kinds
    ]


@dataclass(frozen=True)
class _Pool:
    """Windows over two neighbouring dimensions of four.

    Attributes:
        size: Length of a window's sides.
        stride: Distance of windows.
        first: The first of the two dimensions.
        shape: Of the images.
    """

    size: int
    stride: int
    first: int
    shape: tuple[int, ...]

    def each(self, pooled: Any, others: Any) -> list[Any]:
        """A value for each dimension."""
        return [pooled if self.first <= i < self.first + 2 else others for i in range(4)]

    @property
    def result(self) -> tuple[int, ...]:
        pooled = self.each(True, False)
        return tuple((n - self.size) // self.stride + 1 if p else n for n, p in zip(self.shape, pooled, strict=True))

    def sides(self, size: int) -> str:
        return "x".join(map(str, self.each(size, 1)))

    def padding(self) -> list[tuple[int, int, int]]:
        """Around and between the results, so that each pixel sees the windows that hold it."""
        sides = zip(self.shape, self.result, self.each(True, False), strict=True)
        between = self.stride - 1
        return [(self.size - 1, n - (o - 1) * self.stride - 1, between) if p else (0, 0, 0) for n, o, p in sides]

    def views(self, x: np.ndarray) -> list[np.ndarray]:
        """For each place in a window, the elements there."""
        ends = [(self.result[self.first + k] - 1) * self.stride + 1 for k in (0, 1)]
        return [
            x[(slice(None),) * self.first + (slice(i, i + ends[0], self.stride), slice(j, j + ends[1], self.stride))]
            for i in range(self.size)
            for j in range(self.size)
        ]


def _pool(
    kind: str,
    layout: str,
    size: int,
    stride: int,
    gradient: bool,
    batch: int = 2,
    height: int = 7,
    width: int = 6,
    channels: int = 3,
) -> Contest:
    shape = (batch, height, width, channels) if layout == "NHWC" else (batch, channels, height, width)
    pool = _Pool(size, stride, layout.index("H"), shape)
    images, cotangents = signed(pool.shape, pool.result)
    forward = partial(_in_jax, pool, kind)
    if not gradient:
        name = "MaxPool" if kind == "max" else "AveragePool"
        in_onnx = onnx_program(
            f"float[{dims(pool.shape)}] x",
            f"float[{dims(pool.result)}] y",
            f"y = {name}<kernel_shape=[{size},{size}], strides=[{stride},{stride}]>(x)",
        )
        return text_contest(
            _forward_text(pool, kind),
            [images],
            numpy=lambda _: partial(_forward, pool, kind),
            jax=forward,
            onnxruntime=in_onnx if layout == "NCHW" else None,
            torch=lambda torch: lambda x: _in_torch(pool, kind, torch, x),
        )
    if kind == "max":
        return text_contest(
            _max_gradient_text(pool),
            [images, cotangents],
            numpy=lambda _: partial(_max_gradient, pool),
            jax=lambda jax: lambda x, g: jax.vjp(forward(jax), x)[1](g)[0],
            torch=lambda torch: lambda x, g: _gradient_in_torch(pool, kind, torch, x, g),
        )
    return text_contest(
        _average_gradient_text(pool),
        [cotangents],
        numpy=lambda _: partial(_average_gradient, pool),
        jax=lambda jax: lambda g: jax.vjp(forward(jax), jax.numpy.zeros(pool.shape))[1](g)[0],
        torch=lambda torch: partial(_gradient_in_torch, pool, kind, torch, torch.zeros(pool.shape)),
    )


def _forward_text(pool: _Pool, kind: str) -> str:
    function, start = ("max", "-inf") if kind == "max" else ("add", "0")
    window = f"window={{size={pool.sides(pool.size)} stride={pool.sides(pool.stride)}}}, to_apply={function}_f32"
    result = f"f32[{dims(pool.result)}]"
    lines = [
        f"x = f32[{dims(pool.shape)}] parameter(0)",
        f"z = f32[] constant({start})",
        f"share = f32[] constant({1 if kind == 'max' else 1 / pool.size**2})",
        f"shares = {result} broadcast(share), dimensions={{}}",
        f"w = {result} reduce-window(x, z), {window}",
        f"ROOT r = {result} multiply(w, shares)",
    ]
    return _lines(lines)


def _max_gradient_text(pool: _Pool) -> str:
    window = f"window={{size={pool.sides(pool.size)} stride={pool.sides(pool.stride)}}}, select=ge_f32, scatter=add_f32"
    lines = [
        f"x = f32[{dims(pool.shape)}] parameter(0)",
        f"g = f32[{dims(pool.result)}] parameter(1)",
        "z = f32[] constant(0)",
        f"ROOT r = f32[{dims(pool.shape)}] select-and-scatter(x, g, z), {window}",
    ]
    return _lines(lines)


def _average_gradient_text(pool: _Pool) -> str:
    padding = pool.padding()
    padded = [low + n + high + between * (n - 1) for n, (low, high, between) in zip(pool.result, padding, strict=True)]
    spelled = "x".join("_".join(map(str, each)) for each in padding)
    shape = f"f32[{dims(pool.shape)}]"
    lines = [
        f"g = f32[{dims(pool.result)}] parameter(0)",
        "z = f32[] constant(0)",
        f"share = f32[] constant({1 / pool.size**2})",
        f"shares = {shape} broadcast(share), dimensions={{}}",
        f"p = f32[{dims(padded)}] pad(g, z), padding={spelled}",
        f"w = {shape} reduce-window(p, z), window={{size={pool.sides(pool.size)}}}, to_apply=add_f32",
        f"ROOT r = {shape} multiply(w, shares)",
    ]
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


def _in_jax(pool: _Pool, kind: str, jax: Any) -> Callable[[Any], Any]:
    function, start = (jax.lax.max, -np.inf) if kind == "max" else (jax.lax.add, 0.0)
    size, stride = tuple(pool.each(pool.size, 1)), tuple(pool.each(pool.stride, 1))
    share = np.float32(1 if kind == "max" else 1 / pool.size**2)
    return lambda x: jax.lax.reduce_window(x, np.float32(start), function, size, stride, "VALID") * share


def _in_torch(pool: _Pool, kind: str, torch: Any, x: Any) -> Any:
    function = getattr(torch.nn.functional, "max_pool2d" if kind == "max" else "avg_pool2d")
    if pool.first == 2:
        return function(x, pool.size, pool.stride)
    return function(x.permute(0, 3, 1, 2), pool.size, pool.stride).permute(0, 2, 3, 1)


def _gradient_in_torch(pool: _Pool, kind: str, torch: Any, x: Any, g: Any) -> Any:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(_in_torch(pool, kind, torch, x), x, g)[0]


def _forward(pool: _Pool, kind: str, x: np.ndarray) -> np.ndarray:
    views = pool.views(x)
    result = views[0].copy()
    for view in views[1:]:
        (np.maximum if kind == "max" else np.add)(result, view, out=result)
    return result if kind == "max" else result * np.float32(1 / pool.size**2)


def _max_gradient(pool: _Pool, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    result, largest = np.zeros_like(x), _forward(pool, "max", x)
    free = np.ones(largest.shape, bool)
    for view, target in zip(pool.views(x), pool.views(result), strict=True):
        chosen = (view == largest) & free
        target += np.where(chosen, g, np.float32(0))
        free &= ~chosen
    return result


def _average_gradient(pool: _Pool, g: np.ndarray) -> np.ndarray:
    result, part = np.zeros(pool.shape, np.float32), g * np.float32(1 / pool.size**2)
    for target in pool.views(result):
        target += part
    return result
