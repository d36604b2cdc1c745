"""Convolutions with holes between the elements of the input, as convolutions without: the phases of their results.

Results that lie as far behind an element as one another see the same part of the kernel. Such a phase is a convolution
of its own, for which kernels of products read every so many elements where they can; or all phases together are one
whose output features are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.analysis.convolution_phases import (
    MOST_PHASES,
    READ,
    may_be_products,
    phase_count,
    phase_of,
    phases_of,
    read_range,
)

_VECTOR = 16
"""Elements of a vector, about."""

_SUMMED = 32
"""Input features whose sums are vectors, where output features are too few for them."""

_GAIN = 0.75
"""Part of the vectors that phases together must be content with: their sums are added and moved afterwards."""


def padded(builder: Builder, attrs: ConvolutionAttrs, lhs: Handle, window: Sequence[WindowDimension]) -> Handle:
    """The input with the padding of a window."""
    padding = [(0, 0, 0)] * lhs.shape.rank
    for dim, one in zip(attrs.dim_labels.input_spatial, window, strict=True):
        padding[dim] = max(0, one.pad_low), max(0, one.pad_high), 0
    return builder.pad(lhs, builder.constant(0, lhs.shape.dtype), padding) if any(map(any, padding)) else lhs


def plain_convolution(
    builder: Builder,
    attrs: ConvolutionAttrs,
    shape: Shape,
    lhs: Handle,
    rhs: Handle,
    window: Sequence[WindowDimension],
    around: Sequence[WindowDimension] | None = None,
) -> Handle:
    """The convolution by a window, of an input with the padding of a wider one, or of its own."""
    plain = (
        replace(
            one,
            pad_low=one.pad_low - max(0, wide.pad_low),
            pad_high=one.pad_high - max(0, wide.pad_high),
            lhs_dilate=1,
        )
        for one, wide in zip(window, around or window, strict=True)
    )
    return builder.op("convolution", (lhs, rhs), replace(attrs, window=Window(tuple(plain))), shape=shape)


def without_holes(builder: Builder, attrs: ConvolutionAttrs, shape: Shape, lhs: Handle, rhs: Handle) -> Handle:
    """The convolution, whose kernel is read backwards only where it can be."""
    in_one_kernel = may_be_products(attrs, lhs.shape, shape)
    if are_better_together(attrs, rhs.shape, in_one_kernel=in_one_kernel):
        return _together(builder, attrs, shape, lhs, rhs)
    if in_one_kernel:
        return _with_holes(builder, attrs, shape, lhs, rhs)
    return phases_apart(builder, attrs, shape, lhs, rhs)


def features_behind(convolution: HloInstruction) -> HloInstruction | None:
    """The convolution with features last, of a moved input, if a kernel computes products of all its phases then.

    It moves the result on the way, where phases that overlap are convolutions of their own otherwise: the gradient of
    an input [16,32,64,64] by 3x3 to 64 takes 5.5 ms of one core so, and 6.6 apart; of [8,64,56,56] by 2x2 3.6, and 2.9
    apart. Features that leave lanes of vectors empty stay where they are.
    """
    attrs: ConvolutionAttrs = convolution.attrs
    labels, (lhs, rhs) = attrs.dim_labels, (operand.shape for operand in convolution.operands)
    if labels.output.endswith("f") or convolution.shape.dims[labels.output_feature] % _VECTOR:
        return None
    if not any(one.size > one.lhs_dilate > 1 for one in attrs.window.dimensions):
        return None
    names = f"b{''.join(map(str, range(len(labels.output_spatial))))}f"
    image, result = (
        shape.with_dims([shape.dims[order.index(name)] for name in names])
        for shape, order in ((lhs, labels.input), (convolution.shape, labels.output))
    )
    attrs = replace(attrs, dim_labels=ConvolutionDims(names, labels.kernel, names))
    if not may_be_products(attrs, image, result) or are_better_together(attrs, rhs, in_one_kernel=True):
        return None
    operands = (create("parameter", (), ParameterAttrs(n), shape=one, name="x") for n, one in enumerate((image, rhs)))
    return create("convolution", tuple(operands), attrs, shape=result)


def are_better_together(attrs: ConvolutionAttrs, rhs: Shape, *, in_one_kernel: bool) -> bool:
    """Whether phases are better output features of one convolution than products of their own.

    Those of one kernel read the same part of the input, and their results need not be moved. With few output features
    they sum along the input's: the gradient of an input [8,112,112,3] by 7x7 takes 4.5 ms of one core so, together 5.1,
    but that of [8,28,28,6] by 5x5, of 16 features, 160 us, together 97. What is packed for each phase anew is packed
    once together, which pays where phases see an element each: that of [8,56,56,64] by 2x2, of 128 features of bf16,
    takes 449 us, apart 496.
    """
    dilated = [one for one in attrs.window.dimensions if one.lhs_dilate > 1]
    if any(one.stride * one.rhs_dilate > 1 for one in dilated):
        return False
    phases = math.prod(one.lhs_dilate for one in dilated)
    features = rhs.dims[attrs.dim_labels.kernel_output_feature] // max(
        attrs.feature_group_count, attrs.batch_group_count
    )
    steps = [_steps(one) for one in dilated]
    apart = math.prod(one.size for one in dilated) * -(-features // _VECTOR)
    vectors = sum(
        math.prod(step.count for step in chosen) * -(-math.prod(step.phases for step in chosen) * features // _VECTOR)
        for chosen in product(*steps)
    )
    is_whole = math.prod(map(len, steps)) == 1
    if phases > MOST_PHASES:
        return True
    sums_features = not is_whole and rhs.dims[attrs.dim_labels.kernel_input_feature] >= _SUMMED
    is_packed_once = rhs.dtype not in READ and all(one.size == one.lhs_dilate for one in dilated)
    if in_one_kernel and not is_packed_once and (features > _VECTOR or (sums_features and rhs.dtype.is_floating)):
        return False
    return is_whole or vectors <= _GAIN * apart


@dataclass(frozen=True, slots=True)
class _Steps:
    """Elements start + d * i + j of a kernel, for i below a count and j below a number of phases, the last phases.

    Attributes:
        start: The first one.
        count: Steps of d, the distance of elements of the input.
        phases: How many phases see an element in each step; they do so in reverse order.
    """

    start: int
    count: int
    phases: int


def _steps(one: WindowDimension) -> list[_Steps]:
    """All elements of the kernel: those of steps that all phases take, and those of the last one."""
    d = one.lhs_dilate
    if d == 1:
        return [_Steps(0, one.size, 1)]
    whole, rest = divmod(one.size, d)
    return [step for step in (_Steps(0, whole, d), _Steps(whole * d, 1, rest)) if step.count * step.phases]


def _with_holes(builder: Builder, attrs: ConvolutionAttrs, shape: Shape, lhs: Handle, rhs: Handle) -> Handle:
    """The convolution of an input with all the padding that windows see."""
    phases = phases_of(attrs, lhs.shape, shape)
    wide = _wide([*product(*([phase.window for phase in of_dimension] for of_dimension in phases))])
    filled = padded(builder, attrs, lhs, wide)
    window = (
        replace(
            one,
            pad_low=one.pad_low - max(0, around.pad_low) * one.lhs_dilate,
            pad_high=one.pad_high - max(0, around.pad_high) * one.lhs_dilate,
        )
        for one, around in zip(attrs.window.dimensions, wide, strict=True)
    )
    return builder.op("convolution", (filled, rhs), replace(attrs, window=Window(tuple(window))), shape=shape)


def _together(builder: Builder, attrs: ConvolutionAttrs, shape: Shape, lhs: Handle, rhs: Handle) -> Handle:
    """A convolution for each choice of steps, with the output features of all phases that take them.

    Result t is result u of phase p where t = d * u + p - shift, with a shift such that the first step is a whole one.
    """
    labels, window = attrs.dim_labels, attrs.window.dimensions
    output = labels.kernel_output_feature
    if rhs.dims[output] == 1:
        # Phases go where the output feature is: nothing but elements of the kernel is moved if that is in front.
        rhs = builder.reshape(rhs, (1, *rhs.dims[:output], *rhs.dims[output + 1 :]))
        labels = replace(labels, kernel="o" + labels.kernel.replace("o", ""))
        attrs = replace(attrs, dim_labels=labels)
    space, feature = labels.output_spatial, labels.output_feature
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    features = shape.dims[feature] // groups
    shifts = [(one.lhs_dilate - 1 - one.pad_low) % one.lhs_dilate for one in window]
    part = list(shape.dims)
    for dim, one, shift in zip(space, window, shifts, strict=True):
        part[dim] = -(-(shape.dims[dim] + shift) // one.lhs_dilate)
    sizes = [lhs.dims[dim] for dim in labels.input_spatial]
    choices = list(product(*map(_steps, window)))
    is_narrow = shape.dtype.is_floating and shape.dtype.bits < DType.F32.bits
    kept = DType.F32 if is_narrow and len(choices) > 1 else shape.dtype
    windows = [
        [_window(*each) for each in zip(chosen, window, sizes, [part[dim] for dim in space], shifts, strict=True)]
        for chosen in choices
    ]
    around = _wide(windows)
    filled = padded(builder, attrs, lhs, around)
    total: Handle | None = None
    for chosen, moved in zip(choices, windows, strict=True):
        phases = [step.phases for step in chosen]
        dims = list(part)
        dims[feature] = groups * math.prod(phases) * features
        kernel = _kernel_of_phases(builder, attrs, rhs, chosen)
        found = plain_convolution(builder, attrs, shape.with_dims(dims).with_dtype(kept), filled, kernel, moved, around)
        found = builder.reshape(found, (*part[:feature], groups, *phases, features, *part[feature + 1 :]))
        amounts = [(0, 0, 0)] * found.shape.rank
        for number, (one, step) in enumerate(zip(window, chosen, strict=True)):
            amounts[feature + 1 + number] = one.lhs_dilate - step.phases, 0, 0
        if any(map(any, amounts)):
            found = builder.pad(found, builder.constant(0, kept), amounts)
        total = found if total is None else total + found
    if total is None:
        return builder.broadcast(builder.constant(0, shape.dtype), shape.dims, ())
    order: list[int] = []
    for dim in range(len(part)):
        place = dim if dim <= feature else dim + 1 + len(window)
        order += [feature, feature + 1 + len(window)] if dim == feature else [place]
        order += [feature + 1 + number for number, spatial in enumerate(space) if spatial == dim]
    spread = builder.transpose(total, order)
    starts, ends = [0] * len(part), list(shape.dims)
    for dim, one, shift in zip(space, window, shifts, strict=True):
        part[dim] *= one.lhs_dilate
        starts[dim], ends[dim] = shift, shift + shape.dims[dim]
    result = builder.slice(builder.reshape(spread, part), starts, ends)
    return result if kept is shape.dtype else builder.convert(result, shape.dtype)


def _window(step: _Steps, one: WindowDimension, size: int, count: int, shift: int) -> WindowDimension:
    """How the steps move over the input for the results u below a count."""
    d = one.lhs_dilate
    if d == 1:
        return replace(one, reversal=False)
    low = -((d - 1 - shift - one.pad_low) // d) - step.start // d
    return WindowDimension(step.count, pad_low=low, pad_high=count - 1 + step.count - size - low)


def _kernel_of_phases(builder: Builder, attrs: ConvolutionAttrs, rhs: Handle, chosen: Sequence[_Steps]) -> Handle:
    """The kernel of some steps; its output features are those of each phase, one after another, in each group.

    Phases see the elements of a step in reverse order: in a kernel that is read backwards, in that of memory.
    """
    labels, window = attrs.dim_labels, attrs.window.dimensions
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    starts, ends, dims = [0] * rhs.shape.rank, [*rhs.dims], [*rhs.dims]
    for dim, step, one in zip(labels.kernel_spatial, chosen, window, strict=True):
        starts[dim], ends[dim] = read_range(one, step.start, step.start + step.count * step.phases)
        dims[dim] = step.count
    apart: list[int] = []
    kept: list[int] = []
    turned: list[int] = []
    phases = [0] * len(window)
    for dim, size in enumerate(dims):
        if dim == labels.kernel_output_feature:
            outputs = len(kept)
            kept += [len(apart), len(apart) + 1]
            apart += [groups, size // groups]
        else:
            kept.append(len(apart))
            apart.append(size)
        if dim in labels.kernel_spatial:
            number = labels.kernel_spatial.index(dim)
            phases[number] = len(apart)
            apart.append(chosen[number].phases)
            turned.append(len(apart) - (2 if window[number].reversal else 1))
    kernel = builder.reshape(builder.slice(rhs, starts, ends), apart)
    several = [place for place in turned if apart[place] > 1]
    kernel = builder.reverse(kernel, several) if several else kernel
    kernel = builder.transpose(kernel, [*kept[: outputs + 1], *phases, *kept[outputs + 1 :]])
    dims[labels.kernel_output_feature] *= math.prod(step.phases for step in chosen)
    return builder.reshape(kernel, dims)


def phases_apart(
    builder: Builder,
    attrs: ConvolutionAttrs,
    shape: Shape,
    lhs: Handle,
    rhs: Handle,
    around: Sequence[WindowDimension] | None = None,
) -> Handle:
    """A convolution for each phase; their results alternate along the dimensions with holes.

    Before, the input gets the padding of a window, or what all phases need.
    """
    labels, window = attrs.dim_labels, attrs.window.dimensions
    counts = [shape.dims[dim] for dim in labels.output_spatial]
    sizes = [lhs.dims[dim] for dim in labels.input_spatial]
    phases = [
        [phase_of(one, size, -(-count // phase_count(one)), number) for number in range(phase_count(one))]
        for one, size, count in zip(window, sizes, counts, strict=True)
    ]
    wide = around or _wide([*product(*([phase.window for phase in of_dimension] for of_dimension in phases))])
    filled = padded(builder, attrs, lhs, wide)
    part = list(shape.dims)
    for dim, one, count in zip(labels.output_spatial, window, counts, strict=True):
        part[dim] = -(-count // phase_count(one))
    found = []
    for chosen in product(*phases):
        windows = [phase.window for phase in chosen]
        if 0 in (one.size for one in windows):
            found.append(builder.broadcast(builder.constant(0, shape.dtype), part, ()))
            continue
        starts, ends, steps = [0] * rhs.shape.rank, [*rhs.dims], [1] * rhs.shape.rank
        for dim, phase, one in zip(labels.kernel_spatial, chosen, window, strict=True):
            starts[dim], ends[dim], steps[dim] = phase.read(one)
        kernel = builder.slice(rhs, starts, ends, steps)
        found.append(plain_convolution(builder, attrs, shape.with_dims(part), filled, kernel, windows, wide))
    if _are_spread(attrs, shape):
        for number, firsts in enumerate(product(*(range(phase_count(one)) for one in window))):
            for dim, one, first in zip(labels.output_spatial, window, firsts, strict=True):
                part[dim] = len(range(first, shape.dims[dim], phase_count(one)))
            found[number] = builder.slice(found[number], (0,) * shape.rank, part)
        for dim, one in reversed([*zip(labels.output_spatial, window, strict=True)]):
            if phase_count(one) > 1:
                found = [_spread(builder, *pair, dim) for pair in zip(found[::2], found[1::2], strict=True)]
        return found[0]
    # Along each dimension with holes the phases alternate: neighbours in a dimension of their own, minor ones first.
    for dim, one in reversed([*zip(labels.output_spatial, window, strict=True)]):
        count = phase_count(one)
        if count > 1:
            found = [_alternating(builder, found[i : i + count], dim) for i in range(0, len(found), count)]
    return builder.slice(found[0], (0,) * shape.rank, shape.dims)


def _are_spread(attrs: ConvolutionAttrs, shape: Shape) -> bool:
    """Whether phases alternate along one or two dimensions, two each, that are not the minor one."""
    labels, counts = attrs.dim_labels, [phase_count(one) for one in attrs.window.dimensions]
    is_one = any(shape.dims[dim] < count for dim, count in zip(labels.output_spatial, counts, strict=True))
    return labels.output_feature == shape.rank - 1 and max(counts) == 2 and math.prod(counts) <= 4 and not is_one


def _spread(builder: Builder, even: Handle, odd: Handle, dim: int) -> Handle:
    """The slices of two arrays along a dimension, in turns; kernels know which they meet."""
    size = even.dims[dim] + odd.dims[dim]
    dims = (*even.dims[:dim], size, *even.dims[dim + 1 :])
    apart: list[Handle] = []
    for first, part in enumerate((even, odd)):
        amounts = [(0, 0, 0)] * part.shape.rank
        amounts[dim] = first, size - first - 2 * part.dims[dim] + 1, 1
        apart.append(builder.pad(part, builder.constant(0, part.shape.dtype), amounts))
    bits = builder.op("and", builder.match(builder.iota(DType.S32, dims, dim), 1))
    return builder.select(builder.compare(bits, 0, "EQ"), *apart)


def _alternating(builder: Builder, parts: Sequence[Handle], dim: int) -> Handle:
    """The slices of arrays along a dimension, in turns."""
    dims = parts[0].dims
    apart = [builder.reshape(part, (*dims[: dim + 1], 1, *dims[dim + 1 :])) for part in parts]
    return builder.reshape(builder.concatenate(apart, dim + 1), (*dims[:dim], dims[dim] * len(parts), *dims[dim + 1 :]))


def _wide(windows: Sequence[Sequence[WindowDimension]]) -> list[WindowDimension]:
    """A window with padding for all."""
    return [
        WindowDimension(1, pad_low=max(w.pad_low for w in of_dimension), pad_high=max(w.pad_high for w in of_dimension))
        for of_dimension in zip(*windows, strict=True)
    ]
