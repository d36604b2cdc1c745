"""Fetches the operands of the next product of a batch while one is computed, some lines before each of its tiles."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.finish import Area
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.product import Piece
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.view import Matrix
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I8, FunctionBuilder, Value
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

_LINE_BYTES = 64
"""What is fetched at a time."""

_MOST_LINES = 16
"""Lines of an operand that are worth fetching before a tile: so many are under way at a time."""

_LEAST_BYTES, _MOST_BYTES = 8 << 10, 128 << 10
"""Bytes of the operands of a product: fewer the machine fetches by itself, more do not stay in the second cache beside
those of the one before.
"""

_FAR_BYTES = 1 << 20
"""Bytes of all operands from which on they come from beyond that cache: 96 of [129,64] by [64,129] take 1.60 ms of one
core so, and 1.80 where each tile waits for what it reads first.
"""


@dataclass(frozen=True, slots=True)
class NextProduct:
    """What is fetched of each operand.

    Attributes:
        lhs_lines: Lines of the left one before each tile.
        rhs_lines: Lines of the right one.
    """

    lhs_lines: int
    rhs_lines: int

    def fetch(self, fb: FunctionBuilder, math: Scalars, plan: DotPlan, after: Piece, area: Area) -> None:
        """Fetches what belongs to a tile; `after` is the next product's piece."""
        down = -(-plan.view.m // plan.rows)
        row, column = math.divide(area.row, plan.rows), math.divide(area.column, plan.tile_columns)
        tile = math.add(math.multiply(column, down), row)
        for lines, operand in ((self.lhs_lines, after.lhs), (self.rhs_lines, after.rhs)):
            self._fetch_lines(fb, math.multiply(tile, lines * _LINE_BYTES), lines, operand)

    def _fetch_lines(self, fb: FunctionBuilder, place: Scalar, lines: int, operand: Value) -> None:
        begin = fb.gep(I8, operand, place, inbounds=False)
        for line in range(lines):
            fb.prefetch(fb.gep(I8, begin, line * _LINE_BYTES, inbounds=False))


def next_product(plan: DotPlan) -> NextProduct | None:
    """What is fetched of a product of a batch; None if it is none, or if fetching would gain nothing."""
    view = plan.view
    is_one_piece = plan.form is Form.COLUMNS and plan.units == view.batch_count and plan.extent == plan.units
    is_plain = plan.depth_units == 1 and view.seen is None and plan.staging is None
    if view.batch_count == 1 or not (is_one_piece and is_plain):
        return None
    operands = ((view.lhs, plan.numbers.lhs), (view.rhs, plan.numbers.rhs))
    sizes = [_bytes_apart(matrix, dtype) for matrix, dtype in operands]
    if not _LEAST_BYTES <= sum(sizes) <= _MOST_BYTES or view.batch_count * sum(sizes) < _FAR_BYTES:
        return None
    tiles = -(-view.m // plan.rows) * -(-view.n // plan.columns)
    lhs, rhs = (-(-size // (_LINE_BYTES * tiles)) for size in sizes)
    return NextProduct(lhs, rhs) if max(lhs, rhs) <= _MOST_LINES else None


def _bytes_apart(matrix: Matrix, dtype: DType) -> int:
    """Bytes of an operand whose elements follow one another, each product having its own; else 0."""
    elements = matrix.outer.span + matrix.depth.span - 1
    is_block = elements == matrix.outer.count * matrix.depth.count and not matrix.computing
    is_own = any(matrix.batch) and matrix.batch[-1] != 0
    return elements * representation(dtype).memory.size_bytes if is_block and is_own else 0
