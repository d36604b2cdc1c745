"""Padded forms: what operations on arrays of run-time sizes do to arrays of the largest sizes.

Of those only the first elements count, and whatever reads across elements gets the others out of its way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import recognise_monoid
from xlalite.hlo.ops.dot import free_dimensions
from xlalite.hlo.ops.evaluation.run_time_sizes import bounded, concerns_run_time_sizes
from xlalite.hlo.ops.gathering import GatherAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.normalization.padded_arrays import Padded, PaddedForm, Padder, flags, known
from xlalite.passes.normalization.padded_control import CONTROL_FORMS


def has_padded_form(one: HloInstruction) -> bool:
    """Whether there is a form for an instruction, and for all that it runs as parts of the program."""
    if one.opcode in ("parameter", "constant", "tuple", "get-tuple-element"):
        return True
    if one.is_controlled:
        return False
    if not concerns_run_time_sizes(one):
        return one.is_pure
    if one.opcode in CONTROL_FORMS:
        return all(has_padded_form(inner) for callee in one.called_computations for inner in callee.instructions)
    if any(not operand.shape.is_array for operand in one.operands):
        return False
    if one.op.is_elementwise:
        return _has_their_flags(one)
    if one.opcode == "custom-call":
        return one.attrs.custom_call_target in _TARGETS
    return one.opcode in _FORMS and (one.opcode not in _ONLY_IF or _ONLY_IF[one.opcode](one))


def padded_form(one: HloInstruction) -> PaddedForm:
    """The form of an instruction that has one."""
    if one.op.is_elementwise:
        return _elementwise
    return _TARGETS[one.attrs.custom_call_target] if one.opcode == "custom-call" else _FORMS[one.opcode]


def _has_their_flags(one: HloInstruction) -> bool:
    """Whether an operation has run-time sizes exactly where operands of its rank have them."""
    columns = zip(
        *(flags(operand.shape) for operand in one.operands if operand.shape.rank == one.shape.rank), strict=True
    )
    return one.shape.is_array and flags(one.shape) == tuple(map(any, columns))


def _elementwise(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    alike = [operand.sizes for operand in operands if len(operand.sizes) == one.shape.rank]
    return padder.like(one, operands, [padder.least(sizes) for sizes in zip(*alike, strict=True)])


def _set_size(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """What comes back is zero."""
    (array, size), dimension = operands, one.attrs.dimension
    padder.require_range(size.whole, one.shape.dims[dimension])
    if not flags(one.shape)[dimension]:
        padder.conditions.append(padder.builder.compare(size.whole, one.shape.dims[dimension], "EQ"))
    sizes = list(array.sizes)
    sizes[dimension] = size.whole if flags(one.shape)[dimension] else None
    return Padded(padder.zeros(array, (dimension,)), tuple(sizes))


def _get_size(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    return Padded(padder.size(operands[0], one.attrs.dimension))


def _broadcast(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    sizes: list[Handle | None] = [None] * one.shape.rank
    for size, dimension in zip(operands[0].sizes, one.attrs.dimensions, strict=True):
        sizes[dimension] = size
    return padder.like(one, operands, sizes)


def _transpose(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    return padder.like(one, operands, [operands[0].sizes[dimension] for dimension in one.attrs.dimensions])


def _same_sizes(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    return padder.like(one, operands, operands[0].sizes)


def _slice(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """Parts of known places lie inside of what counts."""
    (array,) = operands
    sizes: list[Handle | None] = []
    for size, part, bound in zip(array.sizes, one.attrs.slice, array.whole.dims, strict=True):
        is_whole = part == (0, bound, 1)
        if size is not None and not is_whole:
            padder.conditions.append(padder.builder.compare(size, part[1], "GE"))
        sizes.append(size if is_whole else None)
    return padder.like(one, operands, sizes)


def _dynamic_slice(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    array, *starts = operands
    taken, whole = one.attrs.dynamic_slice_sizes, array.whole
    parts = [None if part == bound else part for part, bound in zip(taken, whole.dims, strict=True)]
    inside = _inside(padder, array, starts, parts)
    sizes = [size if part is None else None for size, part in zip(array.sizes, parts, strict=True)]
    return Padded(padder.builder.dynamic_slice(whole, inside, taken), tuple(sizes))


def _inside(padder: Padder, array: Padded, starts: Sequence[Padded], extents: Sequence[int | None]) -> list[Handle]:
    """Starts of windows that stay inside of what counts; None takes all of that."""
    clamped = []
    for dim, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        if array.sizes[dim] is None or extent is None:
            clamped.append(start.whole)
            continue
        room = padder.size(array, dim) - extent
        padder.conditions.append(padder.builder.compare(room, 0, "GE"))
        zero, most = padder.builder.zeros(start.whole.shape), padder.builder.convert(room, start.whole.dtype)
        clamped.append(padder.builder.op("clamp", (zero, start.whole, most)))
    return clamped


def _has_wide_starts(one: HloInstruction) -> bool:
    """Whether starts are numbers that hold any place."""
    return all(start.shape.is_scalar and start.shape.dtype.bits >= 32 for start in one.operands[1:])


def _reverse(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """Turned round as a whole, then moved back to the beginning."""
    (array,), builder = operands, padder.builder
    turned = padder.like(one, operands, array.sizes).whole
    moving = [size is not None and dim in one.attrs.dimensions for dim, size in enumerate(array.sizes)]
    room = [(0, size if moves else 0, 0) for size, moves in zip(turned.dims, moving, strict=True)]
    starts = [
        padder.number(bound) - padder.size(array, dim) if moves else padder.number(0)
        for dim, (bound, moves) in enumerate(zip(turned.dims, moving, strict=True))
    ]
    wide = builder.pad(turned, builder.zeros(Shape.array(turned.dtype)), room)
    return Padded(builder.dynamic_slice(wide, starts, turned.dims), array.sizes)


def _pad(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    array, value = operands
    filled = padder.filled(array, range(one.shape.rank), value.whole)
    sizes: list[Handle | None] = []
    for size, (low, high, interior) in zip(array.sizes, one.attrs.padding, strict=True):
        if size is None:
            sizes.append(None)
            continue
        between = padder.builder.op("maximum", (size - 1, padder.number(0))) * interior
        padded = size + between + (low + high)
        sizes.append(padded)
        if low + high < 0:
            padder.conditions.append(padder.builder.compare(padded, 0, "GE"))
    return Padded(padder.builder.pad(filled, value.whole, one.attrs.padding), tuple(sizes))


def _concatenate(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """Each is written where the one before it ends, over what does not count of that."""
    builder, along = padder.builder, one.attrs.dimension
    sizes = [padder.least(column) for column in zip(*(operand.sizes for operand in operands), strict=True)]
    if all(operand.sizes[along] is None for operand in operands):
        return padder.like(one, operands, sizes)
    result, end = builder.zeros(bounded(one.shape)), padder.number(0)
    for operand in operands:
        starts = [end if dim == along else padder.number(0) for dim in range(one.shape.rank)]
        result = builder.op("dynamic-update-slice", (result, operand.whole, *starts))
        end = end + padder.size(operand, along)
    sizes[along] = end
    return Padded(result, tuple(sizes))


def _reduce(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    arrays, starts = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    monoid = recognise_monoid(one.called_computations[0])
    identities = [start.whole for start in starts]
    if monoid is not None:
        identities = [padder.builder.constant(monoid.identity, monoid.dtype)]
    filled = [
        Padded(padder.filled(array, one.attrs.dimensions, identity))
        for array, identity in zip(arrays, identities, strict=True)
    ]
    kept = tuple(size for dim, size in enumerate(arrays[0].sizes) if dim not in one.attrs.dimensions)
    result = padder.like(one, (*filled, *starts), kept)
    if one.shape.is_array:
        return result
    builder, whole = padder.builder, result.whole
    return Padded(None, parts=tuple(Padded(builder.element(whole, i), kept) for i in range(len(arrays))))


def _is_known_sum(one: HloInstruction) -> bool:
    kept = [flag for dim, flag in enumerate(flags(one.operand(0).shape)) if dim not in one.attrs.dimensions]
    if one.shape.is_tuple:
        return _begins_with_nothing(one) and all(list(flags(each)) == kept for each in one.shape.elements)
    monoid = recognise_monoid(one.called_computations[0])
    return monoid is not None and monoid.dtype is one.operand(0).shape.dtype and list(flags(one.shape)) == kept


def _begins_with_nothing(one: HloInstruction) -> bool:
    """Whether a reduction begins with values that may be met again: combined with themselves they are the same."""
    starts = one.operands[len(one.operands) // 2 :]
    if any(start.opcode != "constant" for start in starts):
        return False
    values = [start.attrs.literal.to_value() for start in starts]
    found = evaluate(one.called_computations[0], *values, *values)
    assert isinstance(found, tuple), "so does a reduction of several arrays"
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(found, values, strict=True))


def _reduce_window(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """What does not count is what padding is."""
    array, start = operands
    window = one.attrs.window.dimensions
    sizes: list[Handle | None] = []
    for size, dim in zip(array.sizes, window, strict=True):
        if size is None:
            sizes.append(None)
            continue
        room = _larger(padder, size * dim.lhs_dilate - (dim.lhs_dilate - 1), 0) + (dim.pad_low + dim.pad_high)
        places = _larger(padder, room - dim.dilated_size, -dim.stride) / dim.stride + 1
        fits = padder.builder.compare(room, max(dim.dilated_size, 1), "GE")
        sizes.append(padder.builder.select(fits, places, 0))
    filled = Padded(padder.filled(array, range(len(sizes)), start.whole))
    return padder.like(one, (filled, start), sizes)


def _larger(padder: Padder, size: Handle, least: int) -> Handle:
    return padder.builder.op("maximum", (size, padder.number(least)))


def _is_one_array(one: HloInstruction) -> bool:
    return one.shape.is_array and one.is_pure


def _sort(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """Elements that count come first, whatever the others are."""
    builder, along = padder.builder, one.attrs.dimension
    sizes = tuple(padder.least(column) for column in zip(*(operand.sizes for operand in operands), strict=True))
    arrays = [operand.whole for operand in operands]
    counted = sizes[along]
    compare = padder.called(one.called_computations[0])
    if counted is not None:
        dims = arrays[0].dims
        arrays.insert(0, builder.compare(builder.iota(DType.S32, dims, along), counted, "LT"))
        compare = builder.subcomputation(f"{one.name}.counted_first", _compared(arrays), _counted_first(compare))
    shape = Shape.tuple([array.shape for array in arrays]) if len(arrays) > 1 else arrays[0].shape
    result = builder.op("sort", arrays, one.attrs, (compare,), shape=shape)
    found = [builder.element(result, number) for number in range(len(arrays))] if len(arrays) > 1 else [result]
    parts = tuple(Padded(array, sizes) for array in found[-len(operands) :])
    return Padded(None, parts=parts) if one.shape.is_tuple else parts[0]


def _compared(arrays: Sequence[Handle]) -> list[Shape]:
    return [Shape.array(array.dtype) for array in arrays for _ in range(2)]


def _counted_first(compare: HloComputation) -> Callable[[Builder, tuple[Handle, ...]], Handle]:
    def build(builder: Builder, parameters: tuple[Handle, ...]) -> Handle:
        first, second, *elements = parameters
        before = builder.op("call", elements, called=(compare,))
        return (first & ~second) | (builder.compare(first, second, "EQ") & before)

    return build


def _update(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """The update stays inside of what counts."""
    array, update, *starts = operands
    inside = _inside(padder, array, starts, update.whole.dims)
    return Padded(padder.builder.op("dynamic-update-slice", (array.whole, update.whole, *inside)), array.sizes)


def _updates_with_known_sizes(one: HloInstruction) -> bool:
    """Whether the update has known sizes, and its starts are numbers that hold any place."""
    starts = one.operands[2:]
    return not one.operand(1).shape.is_dynamic and all(start.shape.dtype.bits >= 32 for start in starts)


def _gather(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    array, indices = operands
    attrs: GatherAttrs = one.attrs
    offsets = iter([size for dim, size in enumerate(array.sizes) if dim not in attrs.dropped_dims])
    batch = iter([size for dim, size in enumerate(indices.sizes) if dim != attrs.index_vector_dim])
    sizes = [next(offsets) if dim in attrs.offset_dims else next(batch) for dim in range(one.shape.rank)]
    return padder.like(one, operands, sizes)


def _gathers_all(one: HloInstruction) -> bool:
    """Whether dimensions of run-time sizes are taken whole, and index vectors are."""
    array, indices = (operand.shape for operand in one.operands)
    attrs: GatherAttrs = one.attrs
    taken = zip(array.dims, attrs.slice_sizes, flags(array), strict=True)
    whole = all(size == part and dim not in attrs.dropped_dims for dim, (size, part, flag) in enumerate(taken) if flag)
    return whole and not (*flags(indices), False)[attrs.index_vector_dim]


def _dot(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    attrs = one.attrs
    sides = ((attrs.lhs_batch_dims, attrs.lhs_contracting_dims), (attrs.rhs_batch_dims, attrs.rhs_contracting_dims))
    fitted = [list(operand.sizes) for operand in operands]
    for pairs in zip(*(batch + summed for batch, summed in sides), strict=True):
        least = padder.least([sizes[dim] for sizes, dim in zip(fitted, pairs, strict=True)])
        for sizes, dim in zip(fitted, pairs, strict=True):
            sizes[dim] = least
    given, kept = [], [fitted[0][dim] for dim in attrs.lhs_batch_dims]
    for operand, sizes, (batch, summed) in zip(operands, fitted, sides, strict=True):
        given.append(Padded(padder.zeros(Padded(operand.array, tuple(sizes)), summed)))
        kept += [sizes[dim] for dim in free_dimensions(len(sizes), batch, summed)]
    return padder.like(one, given, kept)


def _reshape(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    """One dimension takes what remains; elements move together where an inner dimension is not full."""
    (array,), shape = operands, one.shape
    dynamic = [dim for dim, flag in enumerate(shape.dynamic) if flag]
    inferred = one.attrs.inferred_dimension if one.attrs.inferred_dimension >= 0 else (dynamic or [0])[0]
    count = _count(padder, array)
    others = math.prod(size for dim, size in enumerate(shape.dims) if dim != inferred)
    sizes: list[Handle | None] = [None] * shape.rank
    sizes[inferred] = count / others
    known = math.prod(size for dim, size in enumerate(array.whole.dims) if array.sizes[dim] is None)
    if known % others:
        padder.conditions.append(padder.builder.compare(count % others, 0, "EQ"))
    return _moved_together(padder, array, shape, sizes)


def _has_one_size(one: HloInstruction) -> bool:
    """Whether one dimension takes what remains, and the number of elements can be counted."""
    is_possible = 0 < one.shape.element_count < 2**31
    inferred = one.attrs.inferred_dimension
    dynamic = flags(one.shape)
    return is_possible and sum(dynamic) == 1 and (inferred < 0 or dynamic[inferred])


def _dynamic_reshape(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    array, *sizes = operands
    for size, bound in zip(sizes, one.shape.dims, strict=True):
        padder.require_range(size.whole, bound)
    padder.conditions.append(
        padder.builder.compare(math.prod((s.whole for s in sizes), start=padder.number(1)), _count(padder, array), "EQ")
    )
    dynamic = flags(one.shape)
    for size, bound, flag in zip(sizes, one.shape.dims, dynamic, strict=True):
        if not flag:
            padder.conditions.append(padder.builder.compare(size.whole, bound, "EQ"))
    kept = [size.whole if flag else None for size, flag in zip(sizes, dynamic, strict=True)]
    return _moved_together(padder, array, one.shape, kept)


def _count(padder: Padder, array: Padded) -> Handle:
    sizes = (padder.size(array, dim) for dim in range(len(array.sizes)))
    return math.prod(sizes, start=padder.number(1))


def _moved_together(padder: Padder, array: Padded, shape: Shape, sizes: Sequence[Handle | None]) -> Padded:
    """Element j of those that count, in row-major order, becomes element j of those of another shape that count."""
    builder, dims = padder.builder, shape.dims
    number = builder.zeros(Shape.array(DType.S32, dims))
    result = Padded(number, tuple(sizes))
    for dim in range(len(dims)):
        number = number * builder.broadcast(padder.size(result, dim), dims) + builder.iota(DType.S32, dims, dim)
    place, stride = builder.zeros(number.shape), 1
    for dim in reversed(range(len(array.sizes))):
        size = builder.broadcast(padder.size(array, dim), dims)
        place = place + number % size * stride
        number = number / size
        stride *= array.whole.dims[dim]
    flat = builder.reshape(array.whole, (stride,))
    attrs = GatherAttrs((), (0,), (0,), (), (), len(dims), (1,))
    return Padded(builder.op("gather", (flat, place), attrs, shape=Shape.array(shape.dtype, dims)), tuple(sizes))


def _slice_to_dynamic(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    array, *sizes = operands
    dynamic = flags(one.shape)
    zero = padder.number(0)
    bounds = map(padder.number, one.shape.dims)
    inside = [padder.builder.op("clamp", (zero, size.whole, most)) for size, most in zip(sizes, bounds, strict=True)]
    return Padded(array.whole, tuple(size if flag else None for size, flag in zip(inside, dynamic, strict=True)))


def _pad_to_static(padder: Padder, one: HloInstruction, operands: list[Padded]) -> Padded:
    (array,) = operands
    sizes = (padder.size(array, dim) for dim in range(len(array.sizes)))
    zeros = padder.zeros(array, range(len(array.sizes)))
    return Padded(None, parts=(known(zeros), *map(known, sizes)))


_ONLY_IF: dict[str, Callable[[HloInstruction], bool]] = {
    "dynamic-slice": _has_wide_starts,
    "reduce": _is_known_sum,
    "reduce-window": _is_one_array,
    "sort": lambda one: one.is_pure,
    "dynamic-update-slice": _updates_with_known_sizes,
    "gather": _gathers_all,
    "reshape": _has_one_size,
    "dynamic-reshape": lambda one: 0 < one.shape.element_count < 2**31,
}
_FORMS: dict[str, PaddedForm] = {
    **CONTROL_FORMS,
    "set-dimension-size": _set_size,
    "get-dimension-size": _get_size,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "reverse": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "sort": _sort,
    "dynamic-update-slice": _update,
    "gather": _gather,
    "dot": _dot,
    "reshape": _reshape,
    "dynamic-reshape": _dynamic_reshape,
}
_TARGETS: dict[str, PaddedForm] = {"SliceToDynamic": _slice_to_dynamic, "PadToStatic": _pad_to_static}
