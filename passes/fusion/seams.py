"""The seams of a loop: positions at which concatenations, paddings and updates turn to another operand.

A loop that is split at its seams never asks of an element on which side of one it lies. Along all dimensions but the
minor one a side is that of whole vectors, and to ask costs little: there only those seams count at which another array
would have to be read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.fusible import SPELT_OUT_AT_MOST, only_adds_ones

_VECTOR = 16
"""Elements of a vector, about."""

_MOST_VECTORS = 2
"""Times as many vectors as without seams that a split loop may take."""

_FEW_ELEMENTS = 8
"""So many are better computed one by one than stored apart and loaded together, for which the processor has to wait."""

_MOST_BOXES = 16
"""Parts of a split loop: each has code of its own."""

_MOST_PHASES = 4
"""Positions that a loop takes together: each has code of its own."""

_TURNING = frozenset({"concatenate", "pad", "dynamic-update-slice"})
"""What has seams."""

_SPACED = frozenset({"pad", "reduce-window"})
"""What may put space between elements."""


@dataclass(frozen=True, slots=True)
class Line:
    """The positions start + i * stride along a dimension; of a loop's own, if `dimension` names one."""

    start: int = 0
    stride: int = 1
    dimension: int | None = None

    def through(self, start: int, stride: int = 1) -> Line:
        """Positions behind another step: start + stride * position."""
        return Line(start + stride * self.start, stride * self.stride, self.dimension)

    def first_from(self, position: int) -> int:
        """The i from which on the line is on the other side of the seam in front of a position."""
        distance = position - self.start
        return -(-distance // self.stride) if self.stride > 0 else distance // self.stride + 1


Lines: TypeAlias = tuple[Line, ...]
Seams: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension of a loop, in rising order, the positions in front of which it is split."""


def loop_seams(results: Sequence[HloInstruction], dims: Sequence[int], last: int | None = None) -> Seams:
    """The seams at which a loop that computes results of some sizes is split: all, the minor dimension's, or none.

    Args:
        results: What the loop gives.
        dims: Sizes of each.
        last: The dimension along which vectors lie, behind which nothing is split; None for the minor one.
    """
    if any(result.shape.is_tuple for result in results):
        return ()
    stop = len(dims) if last is None else last + 1
    if not _stand_beside(results, _TURNING):
        return ((),) * stop
    seams, _ = find_seams(results, dims, last=last)
    dims, seams = dims[:stop], seams[:stop]
    minor = (*((),) * (len(dims) - 1), *seams[-1:])
    return next((each for each in (seams, minor) if is_worth_splitting(dims, each)), ())


def find_seams(
    results: Sequence[HloInstruction],
    dims: Sequence[int],
    members: Collection[HloInstruction] | None = None,
    last: int | None = None,
) -> tuple[Seams, Collection[HloInstruction]]:
    """The seams of a loop that computes results of some sizes, and what is read where seams, if any, are not known.

    Args:
        results: What the loop gives.
        dims: Their sizes.
        members: What it computes, if not all that the results need.
        last: The dimension along which vectors lie; None for the minor one.
    """
    found: list[set[int]] = [set() for _ in dims]
    vectors = len(dims) - 1 if last is None else last
    identity = tuple(Line(dimension=dimension) for dimension in range(len(dims)))
    waiting: list[tuple[HloInstruction, Lines]] = [(result, identity) for result in results]
    seen = set(waiting)
    elsewhere: dict[HloInstruction, None] = {}
    while waiting:
        instruction, lines = waiting.pop()
        for dimension, seam in _own_seams(instruction):
            line = lines[dimension]
            if line.dimension is not None and (line.dimension == vectors or _changes_array(instruction)):
                found[line.dimension].add(line.first_from(seam))
        followed = list(operand_lines(instruction, lines))
        known = {operand for operand, _ in followed}
        elsewhere.update(dict.fromkeys(operand for operand in instruction.operands if operand not in known))
        for following in followed:
            if following not in seen and (members is None or following[0] in members):
                seen.add(following)
                waiting.append(following)
    seams = tuple(tuple(sorted(at for at in each if 0 < at < size)) for each, size in zip(found, dims, strict=True))
    behind = reachable(elsewhere, lambda one: one.operands if members is None or one in members else ())
    return seams, set(behind)


def loop_phases(results: Sequence[HloInstruction], dims: Sequence[int]) -> tuple[int, ...]:
    """For each dimension of a loop, after how many positions elements that lie apart are met at the same distance.

    A loop that takes so many positions together knows of each whether it meets an element or the space between two.
    Windows are followed: theirs are neighbours of the positions. Ones if the loop had too much code.
    """
    phases = [1] * len(dims)
    if not _stand_beside(results, _SPACED):
        return tuple(phases)
    identity = tuple(Line(dimension=dimension) for dimension in range(len(dims)))
    waiting: list[tuple[HloInstruction, Lines]] = [(result, identity) for result in results if result.shape.is_array]
    seen = set(waiting)
    while waiting:
        instruction, lines = waiting.pop()
        followed = list(operand_lines(instruction, lines))
        steps: list[int] = []
        if instruction.opcode == "pad":
            steps = [interior + 1 for _, _, interior in instruction.attrs.padding]
        elif instruction.opcode == "reduce-window" and instruction.shape.is_array:
            window = instruction.attrs.window.dimensions
            lines = tuple(line.through(-dim.pad_low, dim.stride) for line, dim in zip(lines, window, strict=True))
            steps = [dim.lhs_dilate for dim in window]
            if max(steps, default=1) == 1 and math.prod(dim.size for dim in window) <= SPELT_OUT_AT_MOST:
                followed.append((instruction.operand(0), lines))
        for line, step in zip(lines, steps, strict=False):
            if line.dimension is not None and line.dimension < len(dims) - 1:
                phases[line.dimension] = math.lcm(phases[line.dimension], step // math.gcd(step, line.stride))
        waiting += (each for each in followed if each not in seen)
        seen.update(followed)
    return tuple(phases) if math.prod(phases) <= _MOST_PHASES else (1,) * len(dims)


def is_worth_splitting(dims: Sequence[int], seams: Seams) -> bool:
    """Whether a loop that is split has neither much more code nor many more vectors."""
    if not dims or math.prod(len(each) + 1 for each in seams) > _MOST_BOXES:
        return False
    if math.prod(dims) <= _FEW_ELEMENTS:
        return True
    ends = (0, *seams[-1], dims[-1])
    vectors = sum(-(-(end - begin) // _VECTOR) for begin, end in itertools.pairwise(ends))
    return vectors <= _MOST_VECTORS * -(-dims[-1] // _VECTOR)


def pieces_of(concatenate: HloInstruction) -> list[tuple[HloInstruction, int]]:
    """The operands that have elements, and where each begins."""
    pieces, begin = [], 0
    for operand in concatenate.operands:
        size = operand.shape.dims[concatenate.attrs.dimension]
        if size:
            pieces.append((operand, begin))
        begin += size
    return pieces


def common_source(concatenate: HloInstruction) -> tuple[HloInstruction, tuple[Lines, ...]] | None:
    """The one array that all pieces of a concatenation are parts of, and where; None if there is none.

    The parts differ along the concatenated dimension only, as those of a rotation do.
    """
    sources, places = zip(*(_source(piece) for piece, _ in pieces_of(concatenate)), strict=True)
    along = concatenate.attrs.dimension
    if len({*sources}) > 1 or len({(*lines[:along], *lines[along + 1 :]) for lines in places}) > 1:
        return None
    return sources[0], places


def _source(instruction: HloInstruction) -> tuple[HloInstruction, Lines]:
    """What slices and reversals take elements from, and where they lie in it."""
    lines: Lines = (Line(),) * instruction.shape.rank
    while instruction.opcode in ("slice", "reverse"):
        ((instruction, lines),) = operand_lines(instruction, lines)
    return instruction, lines


def _stand_beside(results: Sequence[HloInstruction], opcodes: Collection[str]) -> bool:
    """Whether instructions of some opcodes may be among what the results need."""
    computation = results[0].parent if results else None
    return computation is None or any(one.opcode in opcodes for one in computation.instructions)


def _changes_array(instruction: HloInstruction) -> bool:
    if instruction.opcode == "concatenate":
        return common_source(instruction) is None
    return instruction.opcode == "dynamic-update-slice"


def _own_seams(instruction: HloInstruction) -> Iterator[tuple[int, int]]:
    """Dimensions and positions of an instruction at which it turns to another operand."""
    if instruction.opcode == "concatenate" and instruction.shape.element_count:
        yield from ((instruction.attrs.dimension, begin) for _, begin in pieces_of(instruction))
    elif instruction.opcode == "pad":
        sizes = instruction.operand(0).shape.dims
        for dimension, (size, (low, _, interior)) in enumerate(zip(sizes, instruction.attrs.padding, strict=True)):
            yield dimension, low
            yield dimension, low + (size - 1) * (interior + 1) + 1
    elif instruction.opcode == "dynamic-update-slice":
        for dimension, size in enumerate(instruction.operand(1).shape.dims):
            start = update_start(instruction, dimension)
            if start is not None:
                yield dimension, start
                yield dimension, start + size


def update_start(update: HloInstruction, dimension: int) -> int | None:
    """Where along a dimension a dynamic-update-slice begins, if it is known."""
    last = update.shape.dims[dimension] - update.operand(1).shape.dims[dimension]
    start = update.operand(2 + dimension)
    if last == 0:
        return 0
    return min(max(int(start.attrs.literal.value), 0), last) if start.opcode == "constant" else None


def operand_lines(instruction: HloInstruction, lines: Lines) -> Iterator[tuple[HloInstruction, Lines]]:
    """The operands that are read along lines, and which."""
    match instruction.opcode:
        case "slice":
            ranges = zip(lines, instruction.attrs.slice, strict=True)
            yield instruction.operand(0), tuple(line.through(start, stride) for line, (start, _, stride) in ranges)
        case "reverse":
            lasts = {dimension: instruction.shape.dims[dimension] - 1 for dimension in instruction.attrs.dimensions}
            yield (
                instruction.operand(0),
                tuple(line.through(lasts[d], -1) if d in lasts else line for d, line in enumerate(lines)),
            )
        case "broadcast":
            yield instruction.operand(0), tuple(lines[dimension] for dimension in instruction.attrs.dimensions)
        case "transpose":
            order = instruction.attrs.dimensions
            yield instruction.operand(0), tuple(lines[order.index(d)] for d in range(len(order)))
        case "pad" if not any(interior for _, _, interior in instruction.attrs.padding):
            amounts = zip(lines, instruction.attrs.padding, strict=True)
            yield instruction.operand(0), tuple(line.through(-low) for line, (low, _, _) in amounts)
        case "concatenate":
            along = instruction.attrs.dimension
            for piece, begin in pieces_of(instruction):
                yield piece, (*lines[:along], lines[along].through(-begin), *lines[along + 1 :])
        case "dynamic-update-slice":
            yield instruction.operand(0), lines
            starts = [start for d in range(len(lines)) if (start := update_start(instruction, d)) is not None]
            if len(starts) == len(lines):
                places = zip(lines, starts, strict=True)
                yield instruction.operand(1), tuple(line.through(-start) for line, start in places)
        case _ if only_adds_ones(instruction):
            kept = iter([line for line, size in zip(lines, instruction.shape.dims, strict=True) if size != 1])
            yield (
                instruction.operand(0),
                tuple(Line() if size == 1 else next(kept) for size in instruction.operand(0).shape.dims),
            )
        case _ if instruction.op.is_elementwise or instruction.opcode == "copy":
            yield from ((operand, lines) for operand in instruction.operands if operand.shape.rank == len(lines))
