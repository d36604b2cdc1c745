"""The tile in registers of matrices (AMX): four of sums, to which products of two by two of the operands are added.

Rows of a register are 64 bytes. Those of the left operand are 16 words of a row of it; those of the right one are a
word of each of 16 columns, so that as many rows are as many words. All terms that do not fill a register are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.dot.words import MATRIX, Words
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.llvm import I1, I8, I16, I64, VOID, Value, array, constant
from xlalite.hlo.records import dataclass

BLOCK = 2 * MATRIX
"""Rows, and columns, of which sums are in registers at a time."""

_STEPS = 16
"""Words, in rows of registers, for which 32 columns stay in the nearest cache while all rows are read: 32 KiB."""

_WORD_BYTES = 4
_SHAPES_BYTES, _ROW_SIZES, _HEIGHTS = 64, 16, 48
"""Where the shapes of registers stand in what describes them: the bytes of each one's rows, and how many rows."""
_LEFT, _RIGHT = 4, 6
"""The first register of the operands, behind those of sums."""
_PRODUCTS = {(True, True): "tdpbssd", (True, False): "tdpbsud", (False, True): "tdpbusd", (False, False): "tdpbuud"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTile(Tile):
    """A tile of rows in lines of words, 32 after others, and of up to 32 columns in a panel.

    It takes what an `OuterTile` does, and is told how many rows and columns there are; whether there are more than 16
    columns is known.
    """

    name: ClassVar[str] = "dot_matrices"
    arguments: ClassVar[int] = 7

    def emit(self, builder: TileBuilder) -> None:
        """Stores the sums of all terms, or adds them to others."""
        fb = builder.fb
        fb.as_written()
        a, b, c, words, adds, a_row, _, b_depth, c_row, _, width, height = fb.parameters
        steps = fb.udiv(fb.add(words, MATRIX - 1), MATRIX)
        with fb.carried_loop(0, steps, _STEPS, [a, b, adds], nonempty=True) as loop:
            a, b, adds = loop.values
            now = fb.smin(fb.sub(steps, loop.index), _STEPS)
            part = _Part(builder, (a, b, c), (a_row, b_depth, c_row), now, adds, width, self.columns // MATRIX)
            part.emit(height)
            behind = MATRIX * _STEPS
            after = fb.gep(builder.kept, b, fb.mul(b_depth, behind), inbounds=False)
            loop.yield_(fb.gep(builder.kept, a, behind, inbounds=False), after, constant(I1, 1))
        fb.intrinsic("x86.tilerelease", VOID, (), ())


class _Part:
    """Emits the sums of a part of the words.

    Args:
        builder: Where to.
        places: Where both operands, and the sums, begin.
        lines: The distance of rows of a, of words of b, and of rows of c.
        steps: How many rows of registers the words are.
        adds: Whether sums are added to those in c.
        width: How many columns there are.
        across: How many registers they take.
    """

    def __init__(
        self,
        builder: TileBuilder,
        places: tuple[Value, Value, Value],
        lines: tuple[Value, Value, Value],
        steps: Value,
        adds: Value,
        width: Value,
        across: int,
    ) -> None:
        self._builder = builder
        self._fb = fb = builder.fb
        self._math = Scalars(fb)
        self._a, self._b, self._c = places
        self._a_row, self._b_depth, self._c_row = lines
        self._steps, self._adds = steps, adds
        self._columns = range(across)
        whole = [constant(I64, MATRIX)] * (across - 1)
        self._widths = [*whole, fb.sub(width, MATRIX * len(whole))]
        self._shapes = fb.alloca(array(I8, _SHAPES_BYTES), align=_SHAPES_BYTES)

    def emit(self, height: Value) -> None:
        """Of 32 rows after others, then of what is left."""
        fb = self._fb
        whole = fb.sub(height, fb.urem(height, BLOCK))
        with fb.loop(0, 2) as number:
            begin = fb.mul(whole, number)
            end = fb.select(fb.icmp("eq", number, 0), whole, height)
            with fb.if_(fb.icmp("ne", begin, end)):
                left = fb.sub(height, begin)
                lower = fb.smax(fb.smin(fb.sub(left, MATRIX), MATRIX), 1)
                self._shape_registers((fb.smin(left, MATRIX), lower))
                with fb.loop(begin, end, BLOCK, nonempty=True) as row:
                    # The lower register has the last row, again, if there is no other.
                    self._compute((row, fb.smin(fb.add(row, MATRIX), fb.sub(height, 1))))

    def _shape_registers(self, heights: Sequence[Value]) -> None:
        """Says how many rows of how many bytes each register has, which makes all of them 0."""
        fb, whole, columns = self._fb, constant(I64, MATRIX), self._columns
        fb.memset(self._shapes, 0, _SHAPES_BYTES, align=_SHAPES_BYTES)
        fb.store(constant(I8, 1), self._shapes, 1)
        rows = range(len(heights))
        shapes = {_sums(row, column): (heights[row], self._widths[column]) for row in rows for column in columns}
        shapes |= {_LEFT + row: (height, whole) for row, height in enumerate(heights)}
        shapes |= {_RIGHT + column: (whole, self._widths[column]) for column in columns}
        for register, (height, words) in shapes.items():
            size = fb.trunc(fb.mul(words, _WORD_BYTES), I16)
            fb.store(size, fb.gep(I8, self._shapes, _ROW_SIZES + 2 * register), 2)
            fb.store(fb.trunc(height, I8), fb.gep(I8, self._shapes, _HEIGHTS + register), 1)
        fb.intrinsic("x86.ldtilecfg", VOID, (self._shapes,), ())

    def _compute(self, rows: Sequence[Value]) -> None:
        """The sums of registers of rows, each from one on."""
        fb, math, kept = self._fb, self._math, self._builder.kept
        lines = [math.address(kept, self._a, fb.mul(row, self._a_row)) for row in rows]
        sums = {
            _sums(row, column): math.address(kept, self._c, fb.add(fb.mul(place, self._c_row), MATRIX * column))
            for row, place in enumerate(rows)
            for column in self._columns
        }
        for register in sums:
            fb.intrinsic("x86.tilezero", VOID, (constant(I8, register),), ())
        with fb.if_(self._adds):
            for register, place in sums.items():
                self._move("tileloadd64", register, place, self._c_row)
        with fb.carried_loop(0, self._steps, 1, [*lines, self._b], nonempty=True) as loop:
            *now, panel = loop.values
            for column in self._columns:
                self._move("tileloadd64", _RIGHT + column, fb.gep(kept, panel, MATRIX * column), self._b_depth)
            for row, line in enumerate(now):
                self._move("tileloadd64", _LEFT + row, line, self._a_row)
                for column in self._columns:
                    self._multiply(_sums(row, column), _LEFT + row, _RIGHT + column)
            after = [fb.gep(kept, line, MATRIX) for line in now]
            loop.yield_(*after, fb.gep(kept, panel, fb.mul(self._b_depth, MATRIX)))
        for register, place in sums.items():
            self._move("tilestored64", register, place, self._c_row)

    def _move(self, operation: str, register: int, place: Value, words: Value) -> None:
        fb = self._fb
        fb.intrinsic(f"x86.{operation}", VOID, (constant(I8, register), place, fb.mul(words, _WORD_BYTES)), ())

    def _multiply(self, total: int, lhs: int, rhs: int) -> None:
        numbers = self._builder.numbers
        is_bytes = numbers.words is Words.MATRICES_OF_BYTES
        product = _PRODUCTS[numbers.lhs.is_signed, numbers.rhs.is_signed] if is_bytes else "tdpbf16ps"
        registers = tuple(constant(I8, register) for register in (total, lhs, rhs))
        self._fb.intrinsic(f"x86.{product}", VOID, registers, ())


def _sums(row: int, column: int) -> int:
    """The register of the sums of a register of rows and one of columns."""
    return 2 * row + column
