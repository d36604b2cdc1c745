"""The tile in registers of matrices (AMX): four of sums, to which products of two by two of the operands are added.

Rows of a register are 64 bytes. Those of the left operand are 16 words of a row of it, or fewer where a run does not
divide into so many; those of the right one are a word of each of 16 columns, so that as many rows are as many words.
All terms that do not fill a register are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.tile import Tile, TileBuilder
from xlalite.backends.codegen.kernels.dot.words import BLOCK, MATRIX, Words
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I1, I8, I16, I64, VOID, FunctionBuilder, Value, array, constant
from xlalite.hlo.records import dataclass

_STEPS = 20
"""Words, in rows of registers, for which 32 columns stay in the nearest cache while all rows are read: 40 KiB."""

WORD_BYTES = 4
_SHAPES_BYTES, _ROW_SIZES, _HEIGHTS = 64, 16, 48
"""Where the shapes of registers stand in what describes them: the bytes of each one's rows, and how many rows."""
_LEFT, _RIGHT = 4, 6
"""The first register of the operands, behind those of sums."""
_PRODUCTS = {(True, True): "tdpbssd", (True, False): "tdpbsud", (False, True): "tdpbusd", (False, False): "tdpbuud"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTile(Tile):
    """A tile of rows of words, 32 after others, and of up to 32 columns in a panel; or of up to 32 rows and any panels.

    It takes what an `OuterTile` does, the distance of panels in place of the terms after which sums begin anew, and is
    told how many rows and columns there are; of one panel it is known whether there are more than 16 columns.

    The rows that meet many panels stay in the nearest cache, some words at a time. Panels pass through, loaded so that
    they take no place there: 1024 in each dimension take 1.5 ms of one core so, and 1.8 otherwise.

    Attributes:
        walks_columns: Whether it goes through panels, with the same rows.
        is_packed: Whether rows of a are in lines of words; else where the program has them, in terms.
        has_runs: Whether columns of a lie in several runs, which are two arguments more; of whole rows of registers.
        words: Words of a row of a register of a.
    """

    name: ClassVar[str] = "dot_matrices"
    arguments: ClassVar[int] = 7

    walks_columns: bool
    is_packed: bool
    has_runs: bool
    words: int = MATRIX

    @property
    def argument_count(self) -> int:
        """With those about runs."""
        return self.arguments + 2 * self.has_runs

    def emit(self, builder: TileBuilder) -> None:
        """Stores the sums of all terms, or adds them to others."""
        _Call(builder, self).emit()


class Rows:
    """Emits where rows of a left operand lie, by the rows of registers that they are made of.

    Attributes:
        line_bytes: The distance of rows.
    """

    def __init__(self, builder: TileBuilder, tile: MatrixTile, place: Value, row: Value, runs: Sequence[Value]) -> None:
        """Takes a row's distance, and the length of runs and what lies between them, in words or terms."""
        assert builder.numbers.words is not None, "a product in words"
        self._fb = fb = builder.fb
        self._place = place
        self._bytes = tile.words * WORD_BYTES
        size = WORD_BYTES if tile.is_packed else builder.numbers.words.part.size_bytes
        self.line_bytes = fb.mul(row, size)
        self._runs = tuple(fb.mul(one, size) for one in runs)

    def line(self, row: Value) -> Value:
        """Where a row begins."""
        return self._fb.gep(I8, self._place, self._fb.mul(row, self.line_bytes))

    def offset(self, step: Value) -> tuple[Value, ...]:
        """How far behind that the row of a register begins; of runs, also what is left of its own, in bytes."""
        fb, behind = self._fb, self._fb.mul(step, self._bytes)
        if not self._runs:
            return (behind,)
        run, jump = self._runs
        return fb.add(behind, fb.mul(fb.udiv(behind, run), jump)), fb.sub(run, fb.urem(behind, run))

    def next(self, offset: Value, left: Value | None = None) -> tuple[Value, ...]:
        """The same of the step behind."""
        fb, behind = self._fb, self._fb.add(offset, self._bytes)
        if left is None:
            return (behind,)
        run, jump = self._runs
        rest = fb.sub(left, self._bytes)
        is_end = fb.icmp("eq", rest, 0)
        return fb.add(behind, fb.select(is_end, jump, constant(I64, 0))), fb.select(is_end, run, rest)


class _Call:
    """Emits what a tile does."""

    def __init__(self, builder: TileBuilder, tile: MatrixTile) -> None:
        self._builder = builder
        self._fb = fb = builder.fb
        a, self._b, self._c, words, self._adds, a_row, _, self._b_depth, self._c_row, self._panel, *sizes = (
            fb.parameters
        )
        self._width, self._height, *runs = sizes
        self._rows = Rows(builder, tile, a, a_row, runs)
        self._walks_columns = tile.walks_columns
        self._words = tile.words
        self._steps = fb.udiv(fb.add(words, tile.words - 1), tile.words)
        self._columns = range(tile.columns // MATRIX)
        self._shapes = fb.alloca(array(I8, _SHAPES_BYTES), align=_SHAPES_BYTES)

    def emit(self) -> None:
        """Whole blocks, then what is left; for each of these some words at a time. Those of rows are equally high."""
        fb = self._fb
        size = self._width if self._walks_columns else self._height
        block = constant(I64, BLOCK) if self._walks_columns else _even(fb, size, BLOCK)
        whole = fb.sub(size, fb.urem(size, block))
        step = _even(fb, self._steps, _STEPS)
        with fb.loop(0, 2) as number:
            begin = fb.mul(whole, number)
            end = fb.select(fb.icmp("eq", number, 0), whole, size)
            with fb.if_(fb.icmp("ne", begin, end)):
                extent = fb.smin(fb.sub(end, begin), block)
                rows, columns = (self._height, extent) if self._walks_columns else (extent, self._width)
                self._shape_registers(_parts(fb, rows), _parts(fb, columns))
                with fb.carried_loop(0, self._steps, step, [self._b, self._adds], nonempty=True) as parts:
                    panel, adds = parts.values
                    steps = fb.smin(fb.sub(self._steps, parts.index), step)
                    with fb.loop(begin, end, block, nonempty=True) as first:
                        self._compute(first, rows, columns, panel, (parts.index, steps), adds)
                    behind = fb.mul(self._b_depth, fb.mul(step, self._words))
                    parts.yield_(fb.gep(self._builder.kept, panel, behind, inbounds=False), constant(I1, 1))
        fb.intrinsic("x86.tilerelease", VOID, (), ())

    def _shape_registers(self, heights: Sequence[Value], widths: Sequence[Value]) -> None:
        """Says how many rows of how many bytes each register has, which makes all of them 0."""
        fb, words, columns = self._fb, constant(I64, self._words), self._columns
        fb.memset(self._shapes, 0, _SHAPES_BYTES, align=_SHAPES_BYTES)
        fb.store(constant(I8, 1), self._shapes, 1)
        rows = range(len(heights))
        shapes = {_sums(row, column): (heights[row], widths[column]) for row in rows for column in columns}
        shapes |= {_LEFT + row: (height, words) for row, height in enumerate(heights)}
        shapes |= {_RIGHT + column: (words, widths[column]) for column in columns}
        for register, (height, width) in shapes.items():
            size = fb.trunc(fb.mul(width, WORD_BYTES), I16)
            fb.store(size, fb.gep(I8, self._shapes, _ROW_SIZES + 2 * register), 2)
            fb.store(fb.trunc(height, I8), fb.gep(I8, self._shapes, _HEIGHTS + register), 1)
        fb.intrinsic("x86.ldtilecfg", VOID, (self._shapes,), ())

    def _compute(
        self, first: Value, rows: Value, columns: Value, panel: Value, steps: tuple[Value, Value], adds: Value
    ) -> None:
        """The sums of so many rows and columns, from one of them on, over some rows of registers of words."""
        fb, math, kept, walks = self._fb, Scalars(self._fb), self._builder.kept, self._walks_columns
        # The second register has the last row, or column, again, if there is no other.
        down, across = fb.smin(fb.sub(rows, 1), constant(I64, MATRIX)), constant(I64, MATRIX)
        row: Scalar = 0 if walks else first
        c = self._c
        if walks:
            across = fb.smin(fb.sub(columns, 1), across)
            panel = fb.gep(kept, panel, fb.mul(fb.udiv(first, BLOCK), self._panel))
            c = fb.gep(kept, c, first)
        places, offsets = [math.value(row), math.value(math.add(row, down))], [constant(I64, 0), across]
        lines = [self._rows.line(place) for place in places]
        sums = {
            _sums(row, column): fb.gep(kept, c, fb.add(fb.mul(place, self._c_row), offsets[column]))
            for row, place in enumerate(places)
            for column in self._columns
        }
        load_rhs = "tileloaddt164" if self._walks_columns else "tileloadd64"
        for register in sums:
            fb.intrinsic("x86.tilezero", VOID, (constant(I8, register),), ())
        with fb.if_(adds):
            for register, place in sums.items():
                self._move("tileloadd64", register, place, self._c_row)
        begin, count = steps
        with fb.carried_loop(0, count, 1, [panel, *self._rows.offset(begin)], nonempty=True) as loop:
            panel, *now = loop.values
            for column in self._columns:
                self._move(load_rhs, _RIGHT + column, fb.gep(kept, panel, offsets[column]), self._b_depth)
            for row, line in enumerate(lines):
                place = fb.gep(I8, line, now[0])
                fb.intrinsic("x86.tileloadd64", VOID, (constant(I8, _LEFT + row), place, self._rows.line_bytes), ())
                for column in self._columns:
                    self._multiply(_sums(row, column), _LEFT + row, _RIGHT + column)
            loop.yield_(fb.gep(kept, panel, fb.mul(self._b_depth, self._words)), *self._rows.next(*now))
        for register, place in sums.items():
            self._move("tilestored64", register, place, self._c_row)

    def _move(self, operation: str, register: int, place: Value, words: Value) -> None:
        fb = self._fb
        fb.intrinsic(f"x86.{operation}", VOID, (constant(I8, register), place, fb.mul(words, WORD_BYTES)), ())

    def _multiply(self, total: int, lhs: int, rhs: int) -> None:
        numbers = self._builder.numbers
        is_bytes = numbers.words is Words.MATRICES_OF_BYTES
        product = _PRODUCTS[numbers.lhs.is_signed, numbers.rhs.is_signed] if is_bytes else "tdpbf16ps"
        registers = tuple(constant(I8, register) for register in (total, lhs, rhs))
        self._fb.intrinsic(f"x86.{product}", VOID, registers, ())


def _sums(row: int, column: int) -> int:
    """The register of the sums of a register of rows and one of columns."""
    return 2 * row + column


def _parts(fb: FunctionBuilder, size: Value) -> list[Value]:
    """The rows, or columns, of two registers; at least one of each."""
    return [fb.smin(size, MATRIX), fb.smax(fb.sub(size, MATRIX), 1)]


def _even(fb: FunctionBuilder, count: Value, most: int) -> Value:
    """The size of parts of a count, as large as each other but for the last one, and at most so large."""
    parts = fb.udiv(fb.add(count, most - 1), most)
    return fb.udiv(fb.sub(fb.add(count, parts), 1), parts)
