"""Brings convolutions into the form in which they are products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.analysis.matrix_products import has_plain_window, holds_product
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class ConvolutionCanonicalizer(OpExpander):
    """convolution -> convolution(pad(lhs), reverse(rhs)), so that every element that a window sees is in memory.

    With holes between the elements of the input, as in the gradient of a convolution with strides, results fall into
    phases: those as far behind an element as one another see the same part of the kernel. Each phase is a convolution
    of its own, without holes.

    Declines for convolutions too small for a product of matrices, in all or in each group.
    """

    name: ClassVar[str] = "convolution-canonicalizer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the convolution holds a product and is not in the form yet."""
        return holds_product(instruction) and not has_plain_window(instruction)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the convolution in the form, and what is before and behind it."""
        attrs: ConvolutionAttrs = instruction.attrs
        labels, window = attrs.dim_labels, attrs.window.dimensions
        lhs, rhs = operands
        turned = [dim for dim, one in zip(labels.kernel_spatial, window, strict=True) if one.reversal and one.size > 1]
        if turned:
            rhs = builder.reverse(rhs, turned)
        if all(one.lhs_dilate == 1 for one in window):
            return _convolution(builder, attrs, instruction.shape, _padded(builder, attrs, lhs, window), rhs, window)
        return _by_phases(builder, attrs, instruction.shape, lhs, rhs)


def _padded(builder: Builder, attrs: ConvolutionAttrs, lhs: Handle, window: Sequence[WindowDimension]) -> Handle:
    """The input with the padding of a window."""
    padding = [(0, 0, 0)] * lhs.shape.rank
    for dim, one in zip(attrs.dim_labels.input_spatial, window, strict=True):
        padding[dim] = max(0, one.pad_low), max(0, one.pad_high), 0
    return builder.pad(lhs, builder.constant(0, lhs.shape.dtype), padding) if any(map(any, padding)) else lhs


def _convolution(
    builder: Builder,
    attrs: ConvolutionAttrs,
    shape: Shape,
    lhs: Handle,
    rhs: Handle,
    window: Sequence[WindowDimension],
    padded: Sequence[WindowDimension] | None = None,
) -> Handle:
    """The convolution by a window, of an input with the padding of a wider one, or of its own."""
    plain = (
        replace(
            one,
            pad_low=one.pad_low - max(0, wide.pad_low),
            pad_high=one.pad_high - max(0, wide.pad_high),
            lhs_dilate=1,
            reversal=False,
        )
        for one, wide in zip(window, padded or window, strict=True)
    )
    return builder.op("convolution", (lhs, rhs), replace(attrs, window=Window(tuple(plain))), shape=shape)


def _by_phases(builder: Builder, attrs: ConvolutionAttrs, shape: Shape, lhs: Handle, rhs: Handle) -> Handle:
    """A convolution for each phase; their results alternate along the dimensions with holes."""
    labels, window = attrs.dim_labels, attrs.window.dimensions
    counts = [shape.dims[dim] for dim in labels.output_spatial]
    sizes = [lhs.dims[dim] for dim in labels.input_spatial]
    phases = [
        [_phase(*each, number) for number in range(each[0].lhs_dilate)]
        for each in zip(window, sizes, counts, strict=True)
    ]
    wide = [_wide([phase.window for phase in of_dimension]) for of_dimension in phases]
    padded = _padded(builder, attrs, lhs, wide)
    part = list(shape.dims)
    for dim, one, count in zip(labels.output_spatial, window, counts, strict=True):
        part[dim] = -(-count // one.lhs_dilate)
    found = []
    for chosen in product(*phases):
        starts, ends, steps = [0] * rhs.shape.rank, [*rhs.dims], [1] * rhs.shape.rank
        for dim, phase, one in zip(labels.kernel_spatial, chosen, window, strict=True):
            starts[dim], steps[dim] = min(phase.start, one.size), one.lhs_dilate
        windows = [phase.window for phase in chosen]
        if 0 in (one.size for one in windows):
            found.append(builder.broadcast(builder.constant(0, shape.dtype), part, ()))
            continue
        kernel = builder.slice(rhs, starts, ends, steps)
        found.append(_convolution(builder, attrs, shape.with_dims(part), padded, kernel, windows, wide))
    # Along each dimension with holes the phases alternate: neighbours in a dimension of their own, minor ones first.
    for dim, one in reversed([*zip(labels.output_spatial, window, strict=True)]):
        if one.lhs_dilate > 1:
            found = [
                _alternating(builder, found[i : i + one.lhs_dilate], dim) for i in range(0, len(found), one.lhs_dilate)
            ]
    return builder.slice(found[0], (0,) * shape.rank, shape.dims)


def _alternating(builder: Builder, parts: Sequence[Handle], dim: int) -> Handle:
    """The slices of arrays along a dimension, in turns."""
    dims = parts[0].dims
    apart = [builder.reshape(part, (*dims[: dim + 1], 1, *dims[dim + 1 :])) for part in parts]
    return builder.reshape(builder.concatenate(apart, dim + 1), (*dims[:dim], dims[dim] * len(parts), *dims[dim + 1 :]))


@dataclass(frozen=True, slots=True)
class _Phase:
    """The results at d * t + number, of which each sees kernel elements start + d * j, for elements d apart.

    Attributes:
        start: The first element of the kernel that meets elements of the input rather than holes.
        window: How these elements of the kernel move over the input.
    """

    start: int
    window: WindowDimension


def _phase(one: WindowDimension, size: int, count: int, number: int) -> _Phase:
    d = one.lhs_dilate
    start = (one.pad_low - number) % d
    seen = max(0, -(-(one.size - start) // d))
    low = (one.pad_low - number - start) // d
    high = -(-count // d) - 1 + seen - size - low
    if d == 1:
        return _Phase(0, replace(one, reversal=False))
    return _Phase(start, WindowDimension(seen, pad_low=low, pad_high=high))


def _wide(windows: Sequence[WindowDimension]) -> WindowDimension:
    """A window with padding for all."""
    return WindowDimension(1, pad_low=max(w.pad_low for w in windows), pad_high=max(w.pad_high for w in windows))
