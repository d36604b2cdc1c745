"""Convolutions of images and their gradients, in both orders of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, onnx_program, signed, text_contest

from xlalite.passes.core.debug_options import DebugOptions


def workloads() -> list[Workload]:
    """All of them."""
    sizes = " [{batch} {size}x{size} {inputs}] by {side}x{side}, {step} apart, to {outputs}"
    layers = (
        ("NHWC", 8, 56, 64, 3, 1, 64),
        ("NHWC", 8, 28, 128, 3, 1, 128),
        ("NHWC", 8, 7, 512, 3, 1, 512),
        ("NHWC", 8, 57, 61, 3, 2, 127),
        ("NHWC", 8, 56, 256, 1, 1, 64),
        ("NHWC", 8, 56, 256, 1, 2, 512),
        ("NHWC", 8, 224, 3, 7, 2, 64),
        ("NHWC", 1, 63, 32, 5, 1, 48),
        ("NCHW", 8, 56, 64, 3, 1, 64),
        ("NCHW", 8, 224, 3, 7, 2, 64),
        ("NCHW", 1, 14, 256, 3, 1, 256),
    )
    names = ("batch", "size", "inputs", "side", "step", "outputs")
    rows = [
        workload(f"convolution {layout}" + sizes, partial(_forward, layout), **dict(zip(names, layer, strict=True)))
        for layout, *layer in layers
    ]
    rows += [
        workload(
            "convolution NHWC, Winograd's, in tiles of {tile}" + sizes,
            partial(_forward, "NHWC"),
            **dict(zip(("tile", *names), layer, strict=True)),
        )
        for layer in ((4, 8, 28, 128, 3, 1, 128), (2, 8, 14, 256, 3, 1, 256))
    ]
    for gradient in ("input", "kernel"):
        rows += [
            workload(
                f"convolution NHWC, gradient of the {gradient}" + sizes,
                partial(_gradient, gradient),
                **dict(zip(names, layer, strict=True)),
            )
            for layer in ((8, 56, 64, 3, 1, 64), (8, 57, 61, 3, 2, 127), (8, 112, 3, 7, 2, 64))
        ]
    return rows


@dataclass(frozen=True)
class _Layer:
    """Square images and kernels, padded so that the first and the last pixel lie below a kernel's middle."""

    batch: int
    size: int
    inputs: int
    side: int
    step: int
    outputs: int

    @property
    def padding(self) -> int:
        return self.side // 2

    @property
    def result_size(self) -> int:
        return (self.size + 2 * self.padding - self.side) // self.step + 1

    def images(self, layout: str) -> tuple[int, ...]:
        return _ordered(layout, self.batch, self.size, self.inputs)

    def results(self, layout: str) -> tuple[int, ...]:
        return _ordered(layout, self.batch, self.result_size, self.outputs)

    def kernel(self, layout: str) -> tuple[int, ...]:
        space = (self.side, self.side)
        return (*space, self.inputs, self.outputs) if layout == "NHWC" else (self.outputs, self.inputs, *space)

    def text(self, layout: str) -> str:
        labels = f"dim_labels={'b01f_01io->b01f' if layout == 'NHWC' else 'bf01_oi01->bf01'}"
        pad = f"{self.padding}_{self.padding}"
        window = f"size={self.side}x{self.side} stride={self.step}x{self.step} pad={pad}x{pad}"
        return (
            f"  x = f32[{dims(self.images(layout))}] parameter(0)\n"
            f"  k = f32[{dims(self.kernel(layout))}] parameter(1)\n"
            f"  ROOT r = f32[{dims(self.results(layout))}] convolution(x, k), window={{{window}}}, {labels}\n"
        )

    def in_jax(self, jax: Any, layout: str, x: Any, k: Any) -> Any:
        order = (layout, "HWIO" if layout == "NHWC" else "OIHW", layout)
        pads = [(self.padding, self.padding)] * 2
        return jax.lax.conv_general_dilated(x, k, (self.step, self.step), pads, dimension_numbers=order)


def _ordered(layout: str, batch: int, size: int, features: int) -> tuple[int, ...]:
    return (batch, size, size, features) if layout == "NHWC" else (batch, features, size, size)


def _forward(
    layout: str,
    batch: int = 2,
    size: int = 6,
    inputs: int = 5,
    side: int = 3,
    step: int = 2,
    outputs: int = 9,
    tile: int = 0,
) -> Contest:
    layer = _Layer(batch, size, inputs, side, step, outputs)
    x, k = _scaled(layer, layout)
    in_onnx = onnx_program(
        f"float[{dims(x.shape)}] x, float[{dims(k.shape)}] k",
        f"float[{dims(layer.results(layout))}] y",
        f"y = Conv<pads=[{dims((layer.padding,) * 4)}], strides=[{step},{step}]>(x, k)",
    )
    return text_contest(
        layer.text(layout),
        [x, k],
        debug=DebugOptions(cpu_winograd=tile),
        numpy=lambda _: partial(_in_numpy, layer, layout),
        jax=lambda jax: partial(layer.in_jax, jax, layout),
        torch=lambda torch: partial(_in_torch, layer, torch, layout),
        onnxruntime=in_onnx if layout == "NCHW" else None,
        tolerance=1e-3,
    )


def _scaled(layer: _Layer, layout: str) -> list[np.ndarray]:
    x, k = signed(layer.images(layout), layer.kernel(layout))
    return [x, k * np.float32((layer.inputs * layer.side**2) ** -0.5)]


def _gradient(
    of: str, batch: int = 2, size: int = 6, inputs: int = 5, side: int = 3, step: int = 2, outputs: int = 9
) -> Contest:
    layer = _Layer(batch, size, inputs, side, step, outputs)
    (g,) = signed(layer.results("NHWC"), seed=1)
    x, k = _scaled(layer, "NHWC")
    other, text = (k, _input_text(layer)) if of == "input" else (x, _kernel_text(layer))

    def in_jax(jax: Any) -> Callable[[Any, Any], Any]:
        if of == "input":
            return lambda g, k: jax.vjp(lambda a: layer.in_jax(jax, "NHWC", a, k), x)[1](g)[0]
        return lambda g, x: jax.vjp(lambda a: layer.in_jax(jax, "NHWC", x, a), k)[1](g)[0]

    def in_torch(torch: Any) -> Callable[[Any, Any], Any]:
        size, kernel_size = (batch, inputs, layer.size, layer.size), (outputs, inputs, side, side)
        options = {"stride": step, "padding": layer.padding}

        def own(g: Any, other: Any) -> Any:
            turned = g.permute(0, 3, 1, 2)
            if of == "input":
                found = torch.nn.grad.conv2d_input(size, other.permute(3, 2, 0, 1), turned, **options)
                return found.permute(0, 2, 3, 1)
            found = torch.nn.grad.conv2d_weight(other.permute(0, 3, 1, 2), kernel_size, turned, **options)
            return found.permute(2, 3, 1, 0)

        return own

    return text_contest(
        text,
        [g, other],
        numpy=lambda _: partial(_input_in_numpy if of == "input" else _kernel_in_numpy, layer),
        jax=in_jax,
        torch=in_torch,
        tolerance=1e-3,
        flops=2 * g.size * side * side * inputs,
    )


def _input_text(layer: _Layer) -> str:
    low = layer.side - 1 - layer.padding
    spread = (layer.result_size - 1) * layer.step + 1
    pad = f"{low}_{layer.size + layer.side - 1 - spread - low}"
    window = f"size={layer.side}x{layer.side} pad={pad}x{pad} lhs_dilate={layer.step}x{layer.step} rhs_reversal=1x1"
    return (
        f"  g = f32[{dims(layer.results('NHWC'))}] parameter(0)\n"
        f"  k = f32[{dims(layer.kernel('NHWC'))}] parameter(1)\n"
        f"  ROOT r = f32[{dims(layer.images('NHWC'))}] convolution(g, k), window={{{window}}}, "
        "dim_labels=b01f_01oi->b01f\n"
    )


def _kernel_text(layer: _Layer) -> str:
    spread = (layer.result_size - 1) * layer.step + 1
    pad = f"{layer.padding}_{layer.side + spread - 1 - layer.size - layer.padding}"
    size = f"{layer.result_size}x{layer.result_size}"
    window = f"size={size} pad={pad}x{pad} rhs_dilate={layer.step}x{layer.step}"
    return (
        f"  g = f32[{dims(layer.results('NHWC'))}] parameter(0)\n"
        f"  x = f32[{dims(layer.images('NHWC'))}] parameter(1)\n"
        f"  ROOT r = f32[{dims(layer.kernel('NHWC'))}] convolution(x, g), window={{{window}}}, "
        "dim_labels=f01b_i01o->01bf\n"
    )


def _views(layer: _Layer, x: np.ndarray) -> Any:
    """For each place in the kernel, the pixels there."""
    padded = np.pad(x, [(0, 0), *[(layer.padding, layer.padding)] * 2, (0, 0)])
    end = (layer.result_size - 1) * layer.step + 1
    for i in range(layer.side):
        for j in range(layer.side):
            yield i, j, padded[:, i : i + end : layer.step, j : j + end : layer.step]


def _in_numpy(layer: _Layer, layout: str, x: np.ndarray, k: np.ndarray) -> np.ndarray:
    if layout == "NCHW":
        return _in_numpy(layer, "NHWC", x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0)).transpose(0, 3, 1, 2)
    return sum(view @ k[i, j] for i, j, view in _views(layer, x))  # type: ignore[no-any-return]


def _input_in_numpy(layer: _Layer, g: np.ndarray, k: np.ndarray) -> np.ndarray:
    edge, end = layer.padding, (layer.result_size - 1) * layer.step + 1
    padded = np.zeros((layer.batch, layer.size + 2 * edge, layer.size + 2 * edge, layer.inputs), np.float32)
    for i in range(layer.side):
        for j in range(layer.side):
            padded[:, i : i + end : layer.step, j : j + end : layer.step] += g @ k[i, j].T
    return padded[:, edge : edge + layer.size, edge : edge + layer.size]


def _kernel_in_numpy(layer: _Layer, g: np.ndarray, x: np.ndarray) -> np.ndarray:
    result = np.empty(layer.kernel("NHWC"), np.float32)
    for i, j, view in _views(layer, x):
        result[i, j] = np.tensordot(view, g, ([0, 1, 2], [0, 1, 2]))
    return result


def _in_torch(layer: _Layer, torch: Any, layout: str, x: Any, k: Any) -> Any:
    if layout == "NHWC":
        found = _in_torch(layer, torch, "NCHW", x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1))
        return found.permute(0, 2, 3, 1)
    return torch.nn.functional.conv2d(x, k, stride=layer.step, padding=layer.padding)
