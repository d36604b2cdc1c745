"""Elements of operations that make or rearrange arrays: the index changes, the value does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.llvm import F32, F64, Value, constant, constant_bits, integer
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.passes.simplify.constant_folding import is_uniform


def _iota(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """The position, counted in the fewest bits that hold it, out of which conversions are quickest."""
    dimension = instruction.attrs.iota_dimension
    fb, position, size = emitter.fb, index[dimension], instruction.shape.dims[dimension]
    number = emitter.math.vector(position)
    if isinstance(position, Affine) and position.step == 0:
        number = emitter.math.scalar(position.base)
    counted = next(dtype for dtype in (DType.S16, DType.S32, DType.S64) if size <= 1 << (dtype.bits - 1))
    return convert_element(fb, fb.trunc(number, integer(counted.bits)), counted, instruction.shape.dtype)


def _broadcast(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand = instruction.operand(0)
    dimensions = instruction.attrs.dimensions
    return emitter.element(operand, tuple(index[dimension] for dimension in dimensions))


def _transpose(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    source: list[Position] = [ZERO] * len(index)
    for position, dimension in zip(index, instruction.attrs.dimensions, strict=True):
        source[dimension] = position
    return emitter.element(instruction.operand(0), tuple(source))


def _reshape(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand = instruction.operand(0)
    source = reshaped_index(emitter.math, index, instruction.shape.dims, operand.shape.dims)
    return emitter.element(operand, source)


def reshaped_index(math: IndexMath, index: Index, dims: tuple[int, ...], source_dims: tuple[int, ...]) -> Index:
    """The index in the operand of a reshape for an index in its result.

    Dimensions are matched in groups of equal element count, so that only dimensions that truly merge or split need
    divisions: where the sizes of the one side are products of factors of those of the other, each by itself.
    """
    source: list[Position] = []
    start, source_start = 0, 0
    while source_start < len(source_dims) or start < len(dims):
        end, source_end = _matching_group(dims, start, source_dims, source_start)
        group, sizes, source_sizes = index[start:end], dims[start:end], source_dims[source_start:source_end]
        factors = _common_factors(sizes, source_sizes)
        if factors is None:
            source.extend(_delinearize(math, math.linear(group, row_major_strides(sizes)), source_sizes))
        else:
            source.extend(_joined(math, _digits(math, group, sizes, factors), factors, source_sizes))
        start, source_start = end, source_end
    return tuple(source)


def _common_factors(a: Sequence[int], b: Sequence[int]) -> list[int] | None:
    """Sizes of which neighbours make up all sizes of both, the last first; None if some has a part of one."""
    rests = [[size for size in reversed(sizes) if size != 1] for sizes in (a, b)]
    factors: list[int] = []
    while all(rests):
        large, small = sorted(rests, key=lambda rest: rest[0], reverse=True)
        factors.append(small.pop(0))
        if not factors[-1] or large[0] % factors[-1]:
            return None
        large[0] //= factors[-1]
        if large[0] == 1:
            large.pop(0)
    return None if any(rests) else factors


def _digits(math: IndexMath, index: Sequence[Position], dims: Sequence[int], factors: Sequence[int]) -> list[Position]:
    """The positions along factors of dimensions."""
    digits: list[Position] = []
    rest = iter(factors)
    for position, size in zip(reversed(index), reversed(dims), strict=True):
        stride = 1
        while stride < size:
            factor = next(rest)
            digit = math.divide(position, stride)
            stride *= factor
            digits.append(digit if stride == size else math.modulo(digit, factor))
    return digits


def _joined(math: IndexMath, digits: Sequence[Position], factors: Sequence[int], dims: Sequence[int]) -> list[Position]:
    """The positions along dimensions that consist of factors."""
    positions: list[Position] = []
    rest = zip(digits, factors, strict=True)
    for size in reversed(dims):
        position: Position = ZERO
        stride = 1
        while stride < size:
            digit, factor = next(rest)
            position, stride = math.add(position, math.scale(digit, stride)), stride * factor
        positions.append(position)
    return positions[::-1]


def _matching_group(a: tuple[int, ...], i: int, b: tuple[int, ...], j: int) -> tuple[int, int]:
    """The shortest runs of dimensions from i and j on with the same product."""
    left = right = 1
    first = True
    while first or left != right:
        first = False
        if left <= right and i < len(a):
            left, i = left * a[i], i + 1
        elif j < len(b):
            right, j = right * b[j], j + 1
        else:
            left, i = left * a[i], i + 1
        if left == 0 or right == 0:
            return len(a), len(b)
    if i == len(a) or j == len(b):
        return len(a), len(b)
    return i, j


def _delinearize(math: IndexMath, offset: Position, dims: tuple[int, ...]) -> list[Position]:
    positions: list[Position] = []
    outermost = True
    for size, stride in zip(dims, row_major_strides(dims), strict=True):
        if size == 1:
            positions.append(ZERO)
            continue
        quotient = math.divide(offset, stride)
        positions.append(quotient if outermost else math.modulo(quotient, size))
        outermost = False
    return positions


def _reverse(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    source = list(index)
    for dimension in instruction.attrs.dimensions:
        last = instruction.shape.dims[dimension] - 1
        source[dimension] = emitter.math.add_constant(emitter.math.scale(index[dimension], -1), last)
    return emitter.element(instruction.operand(0), tuple(source))


def _constant(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    """Scalars, and arrays with one value everywhere, are immediate; others are tables beside the code."""
    literal = instruction.attrs.literal
    if literal.shape.rank and not is_uniform(literal.value):
        table = emitter.fb.module.constant_bytes(literal.value.tobytes())
        view = ArrayView.row_major(table, literal.shape.dtype, literal.shape.dims)
        return view.read(emitter.math, index, emitter.mask)
    return immediate(literal.value.reshape(-1)[:1].reshape(()), instruction.shape.dtype)


def immediate(array: np.ndarray, dtype: DType) -> Element:
    """A scalar's register form, exact to the bit."""
    held = representation(dtype)
    if dtype is DType.PRED or dtype.is_integral:
        return constant(held.register, int(array))
    if dtype.is_complex:
        number = complex(array)
        return _float_immediate(number.real, held.register.bits), _float_immediate(number.imag, held.register.bits)
    return _float_immediate(array, held.register.bits)


def _float_immediate(number: object, bits: int) -> Value:
    if bits == 32:
        return constant_bits(F32, int(np.asarray(number).astype(np.float32).view(np.uint32)))
    return constant_bits(F64, int(np.asarray(number).astype(np.float64).view(np.uint64)))


ELEMENT_RULES: dict[str, ElementRule] = {
    "iota": _iota,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "bitcast": _reshape,
    "reverse": _reverse,
    "constant": _constant,
}
