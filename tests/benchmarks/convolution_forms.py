"""Convolutions of all forms and their gradients: of one to three dimensions, dilated, with holes, in groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, signed, text_contest

Shape = tuple[int, ...]


def workloads() -> list[Workload]:
    """All of them."""
    names = ("batch", "size", "inputs", "side", "step", "outputs", "groups", "apart", "holes")
    forms: tuple[tuple[str, int, bool, tuple[int, ...], tuple[str, ...]], ...] = (
        ("depthwise", 2, True, (8, 112, 64, 3, 1, 64, 64, 1, 1), _ALL),
        ("depthwise", 2, True, (8, 57, 61, 3, 1, 61, 61, 1, 1), _ALL),
        ("depthwise", 2, True, (8, 112, 96, 3, 2, 96, 96, 1, 1), _ALL),
        ("depthwise", 2, True, (8, 28, 240, 5, 1, 240, 240, 1, 1), _ALL),
        ("depthwise", 2, True, (2, 56, 32, 3, 1, 64, 32, 1, 1), _ALL),
        ("depthwise", 2, False, (8, 112, 64, 3, 1, 64, 64, 1, 1), _ALL),
        ("depthwise", 2, False, (1, 57, 96, 7, 1, 96, 96, 1, 1), _ALL),
        ("grouped", 2, True, (2, 28, 256, 3, 1, 256, 32, 1, 1), _ALL),
        ("grouped", 2, False, (2, 28, 256, 3, 1, 256, 32, 1, 1), ("",)),
        ("dilated", 2, True, (4, 56, 64, 3, 1, 64, 1, 2, 1), _ALL),
        ("dilated", 2, True, (1, 63, 61, 3, 1, 67, 1, 4, 1), ("",)),
        ("transposed", 2, True, (4, 28, 64, 4, 1, 64, 1, 1, 2), _ALL),
        ("first layer", 2, True, (8, 224, 3, 11, 4, 96, 1, 1, 1), _ALL),
        ("first layer", 2, True, (1, 84, 4, 8, 4, 32, 1, 1, 1), _ALL),
        ("first layer", 2, True, (8, 224, 3, 16, 16, 192, 1, 1, 1), _ALL),
        ("one-dimensional", 1, True, (8, 1024, 64, 2, 1, 128, 1, 8, 1), _ALL),
        ("one-dimensional", 1, True, (1, 16000, 1, 400, 160, 201, 1, 1, 1), _ALL),
        ("one-dimensional", 1, False, (8, 1000, 80, 9, 1, 128, 1, 1, 1), _ALL),
        ("three-dimensional", 3, True, (2, 21, 32, 3, 1, 32, 1, 1, 1), _ALL),
        ("three-dimensional", 3, False, (2, 21, 32, 3, 1, 32, 1, 1, 1), ("",)),
    )
    place = " [{batch} {size} {inputs}] by {side}, {step} apart, to {outputs}"
    rest = " in {groups}, window {apart} apart, input {holes}"
    return [
        workload(
            f"{kind} convolution, channels {'last' if is_last else 'first'}{gradient}{place}{rest}",
            partial(_contest, rank, is_last, gradient),
            **dict(zip(names, sizes, strict=True)),
        )
        for kind, rank, is_last, sizes, gradients in forms
        for gradient in gradients
    ]


_ALL = ("", ", gradient of the input", ", gradient of the kernel")


@dataclass(frozen=True)
class _Form:
    """A convolution of images with equal sides, padded as much before as behind, or more.

    Attributes:
        rank: Number of sides.
        is_last: Whether channels are the last dimension.
    """

    rank: int
    is_last: bool
    batch: int
    size: int
    inputs: int
    side: int
    step: int
    outputs: int
    groups: int
    apart: int
    holes: int

    @property
    def pads(self) -> tuple[int, int]:
        total = (self.side - 1) * self.apart
        return total // 2, total - total // 2

    @property
    def result_size(self) -> int:
        return (self.size - 1) * self.holes // self.step + 1

    def images(self, size: int, features: int) -> Shape:
        space = (size,) * self.rank
        return (self.batch, *space, features) if self.is_last else (self.batch, features, *space)

    @property
    def kernel(self) -> Shape:
        space, inputs = (self.side,) * self.rank, self.inputs // self.groups
        return (*space, inputs, self.outputs) if self.is_last else (self.outputs, inputs, *space)

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Of the input, of the kernel, of the result."""
        return self.images(self.size, self.inputs), self.kernel, self.images(self.result_size, self.outputs)

    def window(self, size: int, low: int, high: int, **fields: int) -> str:
        sides = {"size": size, "pad": f"{low}_{high}", **fields}
        return "window={" + " ".join(f"{k}={'x'.join([str(v)] * self.rank)}" for k, v in sides.items()) + "}"

    def labels(self, lhs: str, rhs: str, out: str) -> str:
        """dim_labels of both orders: two letters with all sides between, before or behind them."""
        digits = "".join(map(str, range(self.rank)))
        if self.is_last:
            return f"dim_labels={lhs[0]}{digits}{lhs[1]}_{rhs}->{out}".replace("S", digits)
        return f"dim_labels={lhs}{digits}_{rhs}->{out}".replace("S", digits)


def _contest(
    rank: int,
    is_last: bool,
    gradient: str,
    batch: int = 2,
    size: int = 5,
    inputs: int = 4,
    side: int = 3,
    step: int = 2,
    outputs: int = 8,
    groups: int = 2,
    apart: int = 2,
    holes: int = 1,
) -> Contest:
    form = _Form(rank, is_last, batch, size, inputs, side, step, outputs, groups, apart, holes)
    x_shape, k_shape, y_shape = form.shapes
    x, k, g = signed(x_shape, k_shape, y_shape)
    k *= np.float32((math.prod(k_shape) // outputs) ** -0.5)
    make, arguments = {
        "": (_forward_text, [x, k]),
        _ALL[1]: (_input_text, [g, k]),
        _ALL[2]: (_kernel_text, [g, x]),
    }[gradient]
    return text_contest(
        make(form),
        arguments,
        numpy=lambda _: partial(_in_numpy, form, gradient),
        jax=lambda jax: _in_jax(jax, form, gradient),
        torch=lambda torch: partial(_in_torch, torch, form, gradient),
        tolerance=1e-3,
        flops=2 * math.prod(y_shape) * (math.prod(k_shape) // outputs) // holes**rank,
    )


def _forward_text(form: _Form) -> str:
    x, k, y = form.shapes
    window = form.window(form.side, *form.pads, stride=form.step, lhs_dilate=form.holes, rhs_dilate=form.apart)
    labels = form.labels("bf", "Sio", "bSf") if form.is_last else form.labels("bf", "oiS", "bfS")
    return (
        f"  x = f32[{dims(x)}] parameter(0)\n  k = f32[{dims(k)}] parameter(1)\n"
        f"  ROOT r = f32[{dims(y)}] convolution(x, k), {window}, {labels}, feature_group_count={form.groups}\n"
    )


def _input_text(form: _Form) -> str:
    """A convolution of the result's gradient with the kernel turned round, its features having traded places."""
    x, k, y = form.shapes
    spread = (form.result_size - 1) * form.step + 1
    low = (form.side - 1) * form.apart - form.pads[0]
    high = (form.size - 1) * form.holes + 1 + (form.side - 1) * form.apart - spread - low
    fields = {"stride": form.holes, "lhs_dilate": form.step, "rhs_dilate": form.apart, "rhs_reversal": 1}
    window, groups, space = form.window(form.side, low, high, **fields), form.groups, (form.side,) * form.rank
    ins, outs = form.inputs // groups, form.outputs // groups
    if form.is_last:
        labels, r = form.labels("bf", "Sio", "bSf"), form.rank
        apart, order, turned = (*space, ins, groups, outs), (*range(r), r + 2, r + 1, r), (*space, outs, form.inputs)
    else:
        labels = form.labels("bf", "oiS", "bfS")
        apart, turned = (groups, outs, ins, *space), (form.inputs, outs, *space)
        order = (0, 2, 1, *range(3, 3 + form.rank))
    moved = tuple(apart[d] for d in order)
    return (
        f"  g = f32[{dims(y)}] parameter(0)\n  k = f32[{dims(k)}] parameter(1)\n"
        f"  a = f32[{dims(apart)}] reshape(k)\n  t = f32[{dims(moved)}] transpose(a), dimensions={{{dims(order)}}}\n"
        f"  b = f32[{dims(turned)}] reshape(t)\n"
        f"  ROOT r = f32[{dims(x)}] convolution(g, b), {window}, {labels}, feature_group_count={groups}\n"
    )


def _kernel_text(form: _Form) -> str:
    """A convolution of the input with the result's gradient, batches and features having traded places."""
    x, k, y = form.shapes
    low = form.pads[0]
    spread = (form.result_size - 1) * form.step + 1
    high = (form.side - 1) * form.apart + spread - ((form.size - 1) * form.holes + 1) - low
    fields = {"stride": form.apart, "lhs_dilate": form.holes, "rhs_dilate": form.step}
    window = form.window(form.result_size, low, high, **fields)
    labels = form.labels("fb", "iSo", "Sbf") if form.is_last else form.labels("fb", "ioS", "fbS")
    return (
        f"  g = f32[{dims(y)}] parameter(0)\n  x = f32[{dims(x)}] parameter(1)\n"
        f"  ROOT r = f32[{dims(k)}] convolution(x, g), {window}, {labels}, batch_group_count={form.groups}\n"
    )


def _in_jax(jax: Any, form: _Form, gradient: str) -> Callable[[Any, Any], Any]:
    letters = "HWD"[: form.rank]
    order = (f"N{letters}C", f"{letters}IO", f"N{letters}C") if form.is_last else (f"NC{letters}", f"OI{letters}") * 2
    x, k = (jax.ShapeDtypeStruct(shape, np.float32) for shape in form.shapes[:2])

    def forward(x: Any, k: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            k,
            (form.step,) * form.rank,
            [form.pads] * form.rank,
            (form.holes,) * form.rank,
            (form.apart,) * form.rank,
            dimension_numbers=order[:3],
            feature_group_count=form.groups,
        )

    if gradient == _ALL[1]:
        return lambda g, k: jax.linear_transpose(lambda a: forward(a, k), x)(g)[0]
    if gradient == _ALL[2]:
        return lambda g, x: jax.linear_transpose(lambda a: forward(x, a), k)(g)[0]
    return forward


def _in_torch(torch: Any, form: _Form, gradient: str, first: Any, second: Any) -> Any:
    """What torch pads by itself is as much before as behind; a convolution with holes is the transposed one."""
    r, low, high, is_holey = form.rank, *form.pads, form.holes > 1
    before, back = (0, r + 1, *range(1, r + 1)), (0, *range(2, r + 2), 1)
    kernel_before, kernel_back = (r + 1, r, *range(r)), (*range(2, r + 2), 1, 0)
    padding = form.side - 1 - low if is_holey else low if low == high else 0
    behind = form.result_size + 2 * padding - form.side - (form.size - 1) * form.holes if is_holey else 0
    sizes = form.holes if is_holey else form.step, padding, form.apart
    options = (*([each] * r for each in sizes), is_holey, [behind] * r, form.groups)
    filled = form.size if is_holey or low == high else form.size + low + high

    def inside(array: Any, order: Shape) -> Any:
        return array.permute(order) if form.is_last else array

    def images(x: Any) -> Any:
        return inside(x, before) if filled == form.size else torch.nn.functional.pad(inside(x, before), [low, high] * r)

    def turned(kernel: Any) -> Any:
        return kernel.flip(*range(2, r + 2)).transpose(0, 1) if is_holey else kernel

    if not gradient:
        found = torch.convolution(images(first), turned(inside(second, kernel_before)), None, *options)
        return inside(found, back)
    g, nothing, backward = inside(first, before), first.new_empty(1), torch.ops.aten.convolution_backward
    if gradient == _ALL[1]:
        x = nothing.expand(form.batch, form.inputs, *[filled] * r)
        found, _, _ = backward(g, x, turned(inside(second, kernel_before)), None, *options, (True, False, False))
        return inside(found[(..., *[slice(low, low + form.size)] * r)] if filled > form.size else found, back)
    space = (form.side,) * r
    kernel = turned(nothing.expand(form.outputs, form.inputs // form.groups, *space))
    _, found, _ = backward(g, images(second), kernel, None, *options, (False, True, False))
    return inside(turned(found), kernel_back)


def _in_numpy(form: _Form, gradient: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """One product of matrices for each element of the window, channels last and by groups."""
    back = (form.rank + 1, form.rank, *range(form.rank))
    if not form.is_last:
        to_last = (0, *range(2, form.rank + 2), 1)
        first = first.transpose(to_last)
        second = second.transpose(to_last if gradient == _ALL[2] else (*range(2, form.rank + 2), 1, 0))
    groups, ins, outs = form.groups, form.inputs // form.groups, form.outputs // form.groups
    low, high = form.pads
    filled = np.zeros((form.batch, *[low + high + (form.size - 1) * form.holes + 1] * form.rank, groups, ins), "f4")
    inside = (slice(None), *[slice(low, low + (form.size - 1) * form.holes + 1, form.holes)] * form.rank)
    x = second if gradient == _ALL[2] else first
    if gradient != _ALL[1]:
        filled[inside] = x.reshape(*x.shape[:-1], groups, ins)
    y_shape = (form.batch, *[form.result_size] * form.rank, groups, outs)
    y = np.zeros(y_shape, "f4") if not gradient else first.reshape(y_shape)
    k = np.zeros((*[form.side] * form.rank, ins, groups, outs), "f4")
    if gradient != _ALL[2]:
        k = second.reshape(k.shape)
    for at, place in _places(form):
        if not gradient:
            y += np.einsum("...gi,igo->...go", filled[place], k[at])
        elif gradient == _ALL[1]:
            filled[place] += np.einsum("...go,igo->...gi", y, k[at])
        else:
            k[at] = np.einsum("ngi,ngo->igo", filled[place].reshape(-1, groups, ins), y.reshape(-1, groups, outs))
    if gradient == _ALL[2]:
        found = k.reshape(*k.shape[: form.rank], ins, form.outputs)
        return found if form.is_last else found.transpose(back)
    found = (
        y.reshape(*y_shape[:-2], -1)
        if not gradient
        else filled[inside].reshape(*y_shape[:1], *[form.size] * form.rank, -1)
    )
    return found if form.is_last else np.moveaxis(found, -1, 1)


def _places(form: _Form) -> Iterator[tuple[Shape, tuple[slice, ...]]]:
    """Each element of the window, and what of the padded input it sees."""
    span = (form.result_size - 1) * form.step + 1
    for at in product(range(form.side), repeat=form.rank):
        yield at, (slice(None), *(slice(i * form.apart, i * form.apart + span, form.step) for i in at))
