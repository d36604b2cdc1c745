"""Splits windows into steps: a window of 7 by 7 elements is one of 7 by 1, and one of 1 by 7 of its results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import Monoid, MonoidKind, recognise_monoid
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.rewriting.expander import OpExpander

_IDEMPOTENT = frozenset({MonoidKind.MAXIMUM, MonoidKind.MINIMUM, MonoidKind.AND, MonoidKind.OR})
_ROUNDED = frozenset({MonoidKind.ADD, MonoidKind.MULTIPLY})
_MEMORY = 4
"""Elements that are combined while one is stored and loaded again."""
_LEAST_GAIN = 0.2
_MOST_PIECES = 64

_Steps = tuple[Window, Window]


@dataclass(frozen=True, slots=True)
class WindowSplitter(OpExpander):
    """reduce-window over a window -> over a part of it, then over the results; only for known associative operations.

    - A window of several dimensions is one over one of them, and one over the others, in either order.
    - A window of many elements in a row is one of some of them, and one of the results that lie so far apart; with
      maxima and the like they may overlap.

    Declines for several arrays at once, for unknown computations, for sums and products of types that are summed in
    more precision than they have, and for windows that take all that comes before, which have a kernel of their own.

    Attributes:
        least_work: Elements that need not be combined any more, at least: a kernel has to be compiled.
    """

    name: ClassVar[str] = "window-splitter"
    opcodes: ClassVar[frozenset[str]] = frozenset({"reduce-window"})

    least_work: int = 1 << 18

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether two steps are better than one."""
        return self._steps(instruction) is not None

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the two steps."""
        array, start = operands
        function = instruction.called_computations[0]
        monoid, steps = recognise_monoid(function), self._steps(instruction)
        assert monoid is not None, "may_expand asked"
        assert steps is not None, "may_expand asked"
        for window, first in zip(steps, (builder.constant(Literal(monoid.identity)), start), strict=True):
            attrs = replace(instruction.attrs, window=window)
            array = builder.op("reduce-window", (array, first), attrs, (function,))
        return array

    def _steps(self, instruction: HloInstruction) -> _Steps | None:
        """The two steps that are least work, if that is little enough."""
        window: Window = instruction.attrs.window
        if not instruction.shape.is_array or 0 in window.sizes or accumulated_dimension(instruction) is not None:
            return None
        monoid = recognise_monoid(instruction.called_computations[0])
        if monoid is None or (monoid.kind in _ROUNDED and monoid.dtype.is_floating and monoid.dtype.bits < 32):
            return None
        dims = instruction.operand(0).shape.dims
        whole = _work(dims, window)
        best, steps = min(
            (
                (_work(dims, first) + _work(first.output_sizes(dims), second), (first, second))
                for first, second in _candidates(window, monoid)
            ),
            key=lambda found: found[0],
            default=(whole, None),
        )
        return steps if best < min((1 - _LEAST_GAIN) * whole, whole - self.least_work) else None


def _work(dims: tuple[int, ...], window: Window) -> int:
    return math.prod(window.output_sizes(dims)) * (math.prod(window.sizes) + _MEMORY)


def _candidates(window: Window, monoid: Monoid) -> Iterator[_Steps]:
    dimensions = window.dimensions
    for number, dim in enumerate(dimensions):
        if dim.size == 1:
            continue
        one = _with(Window((WindowDimension(1),) * window.rank), number, dim)
        rest = _with(window, number, WindowDimension(1))
        if math.prod(rest.sizes) > 1:
            yield one, rest
            yield rest, one
        for pieces in range(2, min(dim.size - 1, _MOST_PIECES) + 1):
            piece = _piece(dim.size, pieces, may_overlap=monoid.kind in _IDEMPOTENT)
            if piece:
                apart = (dim.size - piece) // (pieces - 1) * dim.rhs_dilate
                yield (
                    _with(Window((WindowDimension(1),) * window.rank), number, replace(dim, size=piece, stride=1)),
                    _with(window, number, WindowDimension(pieces, dim.stride, rhs_dilate=apart)),
                )


def _piece(size: int, pieces: int, *, may_overlap: bool) -> int:
    """The least length of pieces at equal distances that cover a window; 0 if there is none."""
    if not may_overlap:
        return size // pieces if size % pieces == 0 else 0
    least = -(-size // pieces)
    return next(piece for piece in range(least, size + 1) if (size - piece) % (pieces - 1) == 0)


def _with(window: Window, number: int, dim: WindowDimension) -> Window:
    return Window((*window.dimensions[:number], dim, *window.dimensions[number + 1 :]))
