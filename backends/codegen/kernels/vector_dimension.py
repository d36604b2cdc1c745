"""Along which dimension the vectors of a loop lie: the minor one, or in front of lines of a few elements the next.

Lanes of the next dimension compute all elements of a line side by side: a line alone leaves most lanes empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.shape import Shape
from xlalite.passes.fusion.fusible import is_expensive, only_moves
from xlalite.passes.fusion.kernel_shape import results_of
from xlalite.passes.fusion.read_steps import FEW, read_steps

MANY = 8
"""Elements of a dimension that vectors may lie along although others follow it."""

_WHOLE_LINE_BYTES = 16
"""A pair of so many bytes fills the smallest vectors; like lines of four elements, it may as well be computed alone."""

_EXPENSIVE = 8
"""Simple instructions that take about as much code as an expensive one."""

_MOST_INSTRUCTIONS = 40
"""Of all elements of a line: each has code of its own. tanh of [1000,4] bf16 would compile in 28 ms instead of 7."""

_MOST_OF_LARGE = 320
_LARGE = 1 << 14
"""The same where there are so many elements: softmax of [100000,3] f32 takes 109 instead of 838 us, the gradient of a
conversion of colours, [4,128,128,3] in bf16, 0.47 ms instead of 3.1 (and 17 ms more to compile).
"""

_ALONG_LINES = frozenset(["parameter", "constant", "broadcast", "copy", "tuple"])


def vector_dimension(body: HloComputation, dims: tuple[int, ...]) -> int:
    """The dimension of a loop over results of some sizes that vectors lie along."""
    last = len(dims) - 1
    found = next((dimension for dimension in range(last, -1, -1) if dims[dimension] >= MANY), last)
    count = math.prod(dims[found + 1 :])
    if found == last or not 0 < count <= FEW:
        return last
    return found if count == 1 or (takes_few(body, dims, found, count) and not _has_whole_lines(body, count)) else last


def takes_few(body: HloComputation, dims: Sequence[int], dimension: int, count: int) -> bool:
    """Whether vectors along a dimension read elements a few apart at most, and `count` of them take little code."""
    steps = read_steps(results_of(body), dims, dimension)
    lines = math.prod(dims[: dimension + 1])
    most = _MOST_OF_LARGE if lines * count >= _LARGE else _MOST_INSTRUCTIONS
    return steps is not None and max(steps, default=0) <= FEW and _length(body, lines, count) <= most


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
