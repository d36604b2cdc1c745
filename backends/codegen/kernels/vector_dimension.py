"""Along which dimension the vectors of a loop lie: the minor one, or in front of lines of a few elements the next.

Lanes of the next dimension compute all elements of a line side by side: a line alone leaves most lanes empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, recognise_monoid
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.types.shape import Shape
from xlalite.passes.fusion.domain import Domain, reduced_domain
from xlalite.passes.fusion.fusible import is_expensive, only_moves
from xlalite.passes.fusion.kernel_shape import result_dims, results_of
from xlalite.passes.fusion.read_steps import FEW, MOST_COLUMNS, read_steps

MANY = 8
"""Elements of a dimension that vectors may lie along although others follow it."""

_WHOLE_LINE_BYTES = 16
"""A pair of so many bytes fills the smallest vectors; like lines of four elements, it may as well be computed alone."""

_EXPENSIVE = 8
"""Simple instructions that take about as much code as an expensive one."""

_MOST_OF_SMALL = 40
"""Of all elements of a line: each has code of its own. tanh of [1000,4] bf16 would compile in 28 ms instead of 7."""

_MOST_OF_LARGE = 320
_LARGE = 1 << 14
"""The same where there are so many elements: softmax of [100000,3] f32 takes 109 instead of 838 us, the gradient of a
conversion of colours, [4,128,128,3] in bf16, 0.47 ms instead of 3.1 (and 17 ms more to compile).
"""

_ELEMENTS_OF_INSTRUCTION, _MOST = 200, 1280
"""Elements that are worth an instruction where lines are longer, and the most of these; a rest has its own, too.

Softmax of [50000,10] f32 takes 76 instead of 226 us, and 21 ms more to compile; that of [1700,10] 5.6 instead of 8.1
would take 35 ms more.
"""

_VECTOR = 16
"""Lines that leave no rest in the widest vectors."""

_VECTOR_BYTES = 64
"""Of a row that leaves no lane of the widest vectors empty."""

_ALONG_LINES = frozenset(["parameter", "constant", "broadcast", "copy", "tuple"])

_IN_LINES = _ALONG_LINES | {"bitcast", "iota", "reshape", "reverse", "slice", "transpose"}


def vector_dimension(body: HloComputation, dims: tuple[int, ...]) -> int:
    """The dimension of a loop over results of some sizes that vectors lie along."""
    last = len(dims) - 1
    domains = (reduced_domain(instruction) for instruction in body.instructions if instruction.opcode == "reduce")
    rows = (len(domain.row_dims) - 1 for domain in domains if domain.dims == dims and has_few_columns(body, domain))
    found = next(rows, None)
    if found is not None:
        return found
    found = next((dimension for dimension in range(last, -1, -1) if dims[dimension] >= MANY), last)
    count = math.prod(dims[found + 1 :])
    if found == last or not 0 < count <= FEW:
        return last
    return found if count == 1 or (_takes_few(body, dims, found, count) and not _has_whole_lines(body, count)) else last


def whole_lines(body: HloComputation, dims: tuple[int, ...], lanes: int) -> int | None:
    """Behind which dimension of a loop lie lines that vectors of so many lanes take whole; None if they do not.

    Asked where vectors would lie along the last dimension: its few elements leave them all but empty. What a vector
    reads lies in two at most.
    """
    last = len(dims) - 1
    found = next((dimension for dimension in range(last, -1, -1) if dims[dimension] >= MANY), last)
    count = math.prod(dims[found + 1 :])
    if found == last or not 0 < count <= MOST_COLUMNS:
        return None
    if not all(one.op.is_elementwise or one.opcode in _IN_LINES for one in body.instructions):
        return None
    span, lines = 0, max(1, lanes // count)
    for dimension, size in enumerate((lines, *dims[found + 1 :]), found):
        steps = read_steps(results_of(body), dims, dimension)
        if steps is None:
            return None
        span += max(steps, default=0) * (size - 1)
    return found if span < 2 * max(lanes, count) else None


def has_few_columns(body: HloComputation, domain: Domain) -> bool:
    """Whether vectors of a loop, whose results have one size, may lie along the rows of what it reduces."""
    last, count = len(domain.row_dims) - 1, domain.column_count
    if last < 0 or domain.row_dims[last] < MANY or not domain.has_minor_columns:
        return False
    return _takes_few(body, result_dims(results_of(body)[0]), last, count) and not _sums_whole_vectors(body, domain)


def _takes_few(body: HloComputation, dims: Sequence[int], dimension: int, count: int) -> bool:
    """Whether vectors along a dimension read elements a few apart at most, and `count` of them take little code.

    A line of a few is often computed of a small matrix with as many rows.
    """
    steps = read_steps(results_of(body), dims, dimension)
    furthest = max(steps or (), default=0)
    if steps is None or furthest > max(count * count if count <= FEW else count, FEW):
        return False
    lines = math.prod(dims[: dimension + 1])
    length = _length(body, lines, count)
    if furthest <= FEW:
        return length <= (_MOST_OF_LARGE if lines * count >= _LARGE else _MOST_OF_SMALL)
    length += 2 * furthest * (furthest - 1).bit_length()  # to sort the columns out of what is loaded
    copies = 1 if dims[dimension] % _VECTOR == 0 else 2
    return copies * length <= min(lines * count // _ELEMENTS_OF_INSTRUCTION, _MOST)


def _sums_whole_vectors(body: HloComputation, domain: Domain) -> bool:
    """Whether rows fill vectors, and little is done with them.

    The rows of [50000,16] f32 are summed in 18 us so and in 21 by vectors along them; their maxima take 43 and 26.
    """
    reduces = [instruction for instruction in body.instructions if instruction.opcode == "reduce"]
    count, size = domain.column_count, max(reduce.operand(0).shape.dtype.size_bytes for reduce in reduces)
    is_filled = count == MOST_COLUMNS or (count.bit_count() == 1 and count * size >= _VECTOR_BYTES)
    return (
        is_filled and all(map(_is_sum, reduces)) and not any(i.op.has(Trait.TRANSCENDENTAL) for i in body.instructions)
    )


def _is_sum(reduce: HloInstruction) -> bool:
    """Whether it combines by one instruction, as what orders numbers and those that are none does not."""
    monoid = recognise_monoid(reduce.called_computations[0])
    if monoid is None:
        return False
    return not monoid.dtype.is_floating or monoid.kind not in (MonoidKind.MAXIMUM, MonoidKind.MINIMUM)


def _length(body: HloComputation, lines: int, count: int) -> int:
    """About how many simple instructions there are; what each element of a line needs counts `count` times."""
    return sum(
        length * (count if any(one.element_count > lines for one in _shapes(instruction)) else 1)
        for instruction in body.instructions
        if (length := _length_of(instruction))
    )


def _shapes(instruction: HloInstruction) -> Iterator[Shape]:
    """The arrays that an instruction takes and gives."""
    for one in (instruction, *instruction.operands):
        yield from (shape for _, shape in one.shape.leaves() if shape.is_array)


def _length_of(instruction: HloInstruction) -> int:
    """A narrow float takes another instruction to be rounded."""
    if instruction.opcode in ("parameter", "tuple", "get-tuple-element") or only_moves(instruction):
        return 0
    if instruction.opcode in ("reduce", "dot"):
        return sum(len(function.instructions) for function in instruction.called_computations)
    is_narrow = instruction.shape.dtype.is_floating and instruction.shape.dtype.bits < 32
    return (_EXPENSIVE if is_expensive(instruction) else 1) * (2 if is_narrow else 1)


def _has_whole_lines(body: HloComputation, count: int) -> bool:
    """Whether lines fill vectors, and each line of the results is computed of lines of its operands."""
    sizes = [count * leaf.dtype.size_bytes for result in results_of(body) for _, leaf in result.shape.leaves()]
    is_filled = count == 4 or (count == 2 and min(sizes) >= _WHOLE_LINE_BYTES)
    return is_filled and all(map(_is_along_lines, body.instructions))


def _is_along_lines(instruction: HloInstruction) -> bool:
    return instruction.op.is_elementwise or instruction.opcode in _ALONG_LINES
