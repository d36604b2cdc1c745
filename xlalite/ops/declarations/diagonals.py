"""Bands and diagonals of matrices: taken out, put in, and made into matrices.

Diagonals are numbered from 0, the main one, upwards to the right. Several of them, from `low` to `high`, lie in the
rows of a matrix, the highest first; those that are shorter than the longest begin at its left end or stop at its right
end, as `align` says for those above and below the main one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import zeros_like
from xlalite.hlo.building.indexing import gather_slices
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_scalar, require_type

_S32 = HloDType.S32
ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


@dataclass(frozen=True, slots=True)
class Band:
    """Which diagonals of matrices, and how they lie in rows.

    Attributes:
        rows: Rows of a matrix.
        columns: Columns of a matrix.
        low: The lowest diagonal.
        high: The highest one.
        align: One of `ALIGNMENTS`: where diagonals above the main one lie, then those below.
    """

    rows: int
    columns: int
    low: int
    high: int
    align: str

    @property
    def count(self) -> int:
        """How many diagonals there are."""
        return self.high - self.low + 1

    @property
    def longest(self) -> int:
        """The length of the longest of them."""
        return min(self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the rows that hold them: one diagonal is a vector."""
        return (self.longest,) if self.count == 1 else (self.count, self.longest)

    def length(self, b: Builder, diagonal: Handle) -> Handle:
        """How long each diagonal is."""
        zero = b.full(0, _S32, diagonal.dims)
        below = b.op("minimum", (diagonal, zero)) + self.rows
        above = b.op("minimum", (-diagonal, zero)) + self.columns
        return b.op("minimum", (below, above))

    def offset(self, b: Builder, diagonal: Handle) -> Handle:
        """Where each diagonal begins in its row."""
        to_right = self.longest + b.full(0, _S32, diagonal.dims) - self.length(b, diagonal)
        above, below = (word == "RIGHT" for word in self.align.split("_"))
        is_above = b.compare(diagonal, 0, "GE")
        zero = zeros_like(b, to_right)
        return b.select(is_above, to_right if above else zero, to_right if below else zero)


def band_of(k: Array, rows: int, columns: int, align: str = "LEFT_LEFT") -> Band:
    """The band that an input `k` names: a number, or the lowest and the highest.

    Raises:
        ShapeError: a diagonal is outside of the matrix, or the lowest lies above the highest.
    """
    limits = np.ravel(k).tolist()
    low, high = limits[0], limits[-1]
    empty = not rows or not columns
    if len(limits) > 2 or low > high or (not empty and not (-rows < low and high < columns)):
        raise ShapeError(f"diagonals {limits} are not in a matrix of {rows} rows and {columns} columns")
    return Band(rows, columns, low, high, align)


def _known_band(k: Tensor, rows: int | None, columns: int | None) -> Band | None:
    value = constant_value(k)
    return None if value is None or rows is None or columns is None else band_of(value, rows, columns)


def _take_band(b: Builder, matrix: Handle, band: Band, padding: Handle) -> Handle:
    """The diagonals of `[..., rows, columns]` as `[..., count, longest]`, padded."""
    sizes = (band.count, band.longest)
    diagonal = -(b.iota(_S32, sizes, 0) - band.high)
    place = b.iota(_S32, sizes, 1) - band.offset(b, diagonal)
    zero = zeros_like(b, place)
    row = place - b.op("minimum", (diagonal, zero))
    column = place + b.op("maximum", (diagonal, zero))
    inside = b.compare(place, 0, "GE") & b.compare(place, band.length(b, diagonal), "LT")
    taken = _elements(b, matrix, row, column)
    return _where(b, inside, taken, padding)


def _put_band(b: Builder, diagonals: Handle, band: Band, around: Handle) -> Handle:
    """`around`, a matrix or a scalar, with the diagonals `[..., count, longest]` in place."""
    sizes = (band.rows, band.columns)
    row, column = b.iota(_S32, sizes, 0), b.iota(_S32, sizes, 1)
    diagonal = column - row
    inside = b.compare(diagonal, band.low, "GE") & b.compare(diagonal, band.high, "LE")
    place = b.op("minimum", (row, column)) + band.offset(b, diagonal)
    taken = _elements(b, diagonals, -(diagonal - band.high), place)
    return _where(b, inside, taken, around)


def _elements(b: Builder, matrix: Handle, row: Handle, column: Handle) -> Handle:
    """Elements at the same rows and columns of each matrix `[..., m, n]`."""
    *batch, rows, columns = matrix.dims
    if not rows or not columns:
        return b.full(0, matrix.dtype, (*batch, *row.dims))
    count = len(batch)
    turned = b.transpose(matrix, (count, count + 1, *range(count)))
    vectors = b.concatenate([b.reshape(x, (*x.dims, 1)) for x in (row, column)], len(row.dims))
    taken = gather_slices(b, turned, vectors)
    return b.transpose(taken, (*range(2, 2 + count), 0, 1))


def _where(b: Builder, inside: Handle, values: Handle, others: Handle) -> Handle:
    batch = len(values.dims) - 2
    condition = b.broadcast(inside, values.dims, (batch, batch + 1))
    return b.select(condition, values, others)


# MatrixBandPart(input, num_lower, num_upper): zero outside a band; a negative number keeps the whole triangle.


def _band_part_infer(op: Operation) -> Sequence[OutputType]:
    x, lower, upper = op.inputs
    for tensor, what in ((lower, "num_lower"), (upper, "num_upper")):
        require_type(tensor, INTEGER_TYPES, what)
        require_scalar(tensor, what)
    return [(x.dtype, x.shape.with_rank_at_least(2))]


def _band_part_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, lower, upper) = ctx.builder, inputs
    sizes = x.dims[-2:]
    index_type = lower.dtype
    below = b.iota(index_type, sizes, 0) - b.iota(index_type, sizes, 1)
    keeps_lower = b.compare(lower, 0, "LT")
    keeps_upper = b.compare(upper, 0, "LT")
    inside = (b.compare(below, lower, "LE") | b.broadcast(keeps_lower, sizes)) & (
        b.compare(-below, upper, "LE") | b.broadcast(keeps_upper, sizes)
    )
    return [_where(b, inside, x, zeros_like(b, x))]


def _band_part_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("MatrixBandPart", [grad, *op.inputs[1:]]), None, None]


declare(
    "MatrixBandPart",
    ("input", "num_lower", "num_upper"),
    _band_part_infer,
    _band_part_lower,
    _band_part_gradient,
    MOVEMENT,
)


# MatrixDiag(diagonal), MatrixDiagPart(input), MatrixSetDiag(input, diagonal): the main diagonal.


def _diag_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    dims = x.shape.with_rank_at_least(1).dims
    return [(x.dtype, TensorShape(None if dims is None else [*dims, dims[-1]]))]


def _rows_of_one(b: Builder, diagonal: Handle) -> Handle:
    return b.reshape(diagonal, (*diagonal.dims[:-1], 1, diagonal.dims[-1]))


def _main(rows: int, columns: int) -> Band:
    return Band(rows, columns, 0, 0, "LEFT_LEFT")


def _diag_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    zero = b.constant(0, x.dtype)
    return [_put_band(b, _rows_of_one(b, x), _main(x.dims[-1], x.dims[-1]), zero)]


def _diag_part_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    dims = x.shape.with_rank_at_least(2).dims
    if dims is None:
        return [(x.dtype, unknown_shape())]
    *batch, rows, columns = dims
    longest = None if rows is None or columns is None else min(rows, columns)
    return [(x.dtype, TensorShape([*batch, longest]))]


def _diag_part_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    band = _main(*x.dims[-2:])
    taken = _take_band(b, x, band, b.constant(0, x.dtype))
    return [b.reshape(taken, (*x.dims[:-2], band.longest))]


def _set_diag_infer(op: Operation) -> Sequence[OutputType]:
    x, diagonal = op.inputs[0], op.inputs[1]
    require_same_type([x, diagonal])
    return [(x.dtype, x.shape.with_rank_at_least(2))]


def _set_diag_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, diagonal) = ctx.builder, inputs
    band = _main(*x.dims[-2:])
    if diagonal.dims != (*x.dims[:-2], band.longest):
        raise ShapeError(f"a diagonal of shape {diagonal.dims} does not fit matrices of shape {x.dims}")
    return [_put_band(b, _rows_of_one(b, diagonal), band, x)]


def _diag_part_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("MatrixSetDiag", [node("ZerosLike", [op.inputs[0]]), grad])]


def _set_diag_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    kept = node("MatrixSetDiag", [grad, node("ZerosLike", [op.inputs[1]])])
    return [kept, node("MatrixDiagPart", [grad])]


declare(
    "MatrixDiag",
    ("diagonal",),
    _diag_infer,
    _diag_lower,
    lambda op, grad: [node("MatrixDiagPart", [grad])],
    MOVEMENT,
)
declare("MatrixDiagPart", ("input",), _diag_part_infer, _diag_part_lower, _diag_part_gradient, MOVEMENT)
declare("MatrixSetDiag", ("input", "diagonal"), _set_diag_infer, _set_diag_lower, _set_diag_gradient, MOVEMENT)


# The same of any band: V2, whose shorter diagonals lie on the left, and V3, which says where they lie.


def _align(op: Operation) -> str:
    align = op.get_attr("align") if op.spec.attrs else "LEFT_LEFT"
    if align not in ALIGNMENTS:
        raise ShapeError(f"align {align!r} is not one of {', '.join(ALIGNMENTS)}")
    return str(align)


def _attrs(op: Operation) -> dict[str, str]:
    return {"align": _align(op)} if op.spec.attrs else {}


def _band_diag_infer(op: Operation) -> Sequence[OutputType]:
    x, k, rows, columns, padding = op.inputs
    require_same_type([x, padding])
    _align(op)
    values = [constant_value(tensor) for tensor in (k, rows, columns)]
    known = [value for value in values if value is not None]
    if len(known) < 3 or x.shape.dims is None or x.shape.dims[-1] is None:
        return [(x.dtype, unknown_shape())]
    band = _sizes_of(x.shape.dims[-1], known, "LEFT_LEFT")
    batch = x.shape.dims[: -1 if band.count == 1 else -2]
    return [(x.dtype, TensorShape([*batch, band.rows, band.columns]))]


def _sizes_of(longest: int, known: Sequence[Array], align: str) -> Band:
    """The band `k` of a matrix whose sizes may be left open (-1), so that the longest diagonal just fits.

    Where one size is open, diagonals may lie outside of the matrix, as in TensorFlow: nothing of them is looked at.
    """
    k, rows, columns = known
    low, high = int(np.ravel(k)[0]), int(np.ravel(k)[-1])
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    height, width = int(rows), int(columns)
    if height == -1 and width == -1:
        height = width = max(least_rows, least_columns)
    elif height == -1 and width >= least_columns:
        return Band(least_rows, width, low, high, align)
    elif width == -1 and height >= least_rows:
        return Band(height, least_columns, low, high, align)
    return band_of(k, height, width, align)


def _band_diag_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    known = [np.asarray(ctx.constant(op, name)) for name in ("k", "num_rows", "num_cols")]
    band = _sizes_of(x.dims[-1], known, _align(op))
    diagonals = _rows_of_one(b, x) if band.count == 1 else x
    if diagonals.dims[-2:] != (band.count, band.longest):
        raise ShapeError(f"diagonals of shape {x.dims} do not fill {band.count} of length {band.longest}")
    return [_put_band(b, diagonals, band, b.constant(ctx.constant(op, "padding_value"), x.dtype))]


def _band_diag_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    zero = constant(0, grad.dtype)
    part = node(op.type.replace("Diag", "DiagPart"), [grad, op.inputs[1], zero], _attrs(op))
    return [part, None, None, None, None]


def _band_part_of_infer(op: Operation) -> Sequence[OutputType]:
    x, k, padding = op.inputs
    require_same_type([x, padding])
    _align(op)
    dims = x.shape.with_rank_at_least(2).dims
    band = None if dims is None else _known_band(k, *dims[-2:])
    if dims is None or band is None:
        return [(x.dtype, unknown_shape())]
    return [(x.dtype, TensorShape([*dims[:-2], *band.sizes]))]


def _band_part_of_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    rows, columns = x.dims[-2:]
    band = band_of(ctx.constant(op, "k"), rows, columns, _align(op))
    taken = _take_band(b, x, band, b.constant(ctx.constant(op, "padding_value"), x.dtype))
    return [b.reshape(taken, (*x.dims[:-2], *band.sizes))]


def _band_part_of_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, k, _ = op.inputs
    set_type = op.type.replace("DiagPart", "SetDiag")
    return [node(set_type, [node("ZerosLike", [x]), grad, k], _attrs(op)), None, None]


def _set_band_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, diagonal) = ctx.builder, inputs
    rows, columns = x.dims[-2:]
    band = band_of(ctx.constant(op, "k"), rows, columns, _align(op))
    if diagonal.dims != (*x.dims[:-2], *band.sizes):
        raise ShapeError(f"diagonals of shape {diagonal.dims} do not fit matrices of shape {x.dims}")
    return [_put_band(b, b.reshape(diagonal, (*x.dims[:-2], band.count, band.longest)), band, x)]


def _set_band_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    _, diagonal, k = op.inputs
    kept = node(op.type, [grad, node("ZerosLike", [diagonal]), k], _attrs(op))
    part_type = op.type.replace("SetDiag", "DiagPart")
    return [kept, node(part_type, [grad, k, constant(0, grad.dtype)], _attrs(op)), None]


for _version, _own_attrs in (("V2", ()), ("V3", ("align",))):
    declare(
        f"MatrixDiag{_version}",
        ("diagonal", "k", "num_rows", "num_cols", "padding_value"),
        _band_diag_infer,
        _band_diag_lower,
        _band_diag_gradient,
        MOVEMENT,
        attrs=_own_attrs,
        constant_inputs=("k", "num_rows", "num_cols", "padding_value"),
    )
    declare(
        f"MatrixDiagPart{_version}",
        ("input", "k", "padding_value"),
        _band_part_of_infer,
        _band_part_of_lower,
        _band_part_of_gradient,
        MOVEMENT,
        attrs=_own_attrs,
        constant_inputs=("k", "padding_value"),
    )
    declare(
        f"MatrixSetDiag{_version}",
        ("input", "diagonal", "k"),
        _set_diag_infer,
        _set_band_lower,
        _set_band_gradient,
        MOVEMENT,
        attrs=_own_attrs,
        constant_inputs=("k",),
    )


# Diag(diagonal): a tensor of twice the rank, x[i, j, i, j] being diagonal[i, j]; DiagPart(input) takes it out again.


def _whole_diag_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    return [(x.dtype, x.shape.concatenate(x.shape))]


def _whole_diag_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    size = x.shape.element_count
    matrix = _put_band(b, b.reshape(x, (1, size)), _main(size, size), b.constant(0, x.dtype))
    return [b.reshape(matrix, (*x.dims, *x.dims))]


def _whole_part_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    if x.shape.dims is None:
        return [(x.dtype, unknown_shape())]
    half = len(x.shape.dims) // 2
    first, second = TensorShape(x.shape.dims[:half]), TensorShape(x.shape.dims[half:])
    return [(x.dtype, first.merge_with(second))]


def _whole_part_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    half = len(x.dims) // 2
    sizes = x.dims[:half]
    if x.dims[half:] != sizes:
        raise ShapeError(f"a tensor of shape {x.dims} has no diagonal: its halves differ")
    count = int(np.prod(sizes, dtype=np.int64))
    taken = _take_band(b, b.reshape(x, (count, count)), _main(count, count), b.constant(0, x.dtype))
    return [b.reshape(taken, sizes)]


declare("Diag", ("diagonal",), _whole_diag_infer, _whole_diag_lower, lambda op, g: [node("DiagPart", [g])], MOVEMENT)
declare("DiagPart", ("input",), _whole_part_infer, _whole_part_lower, lambda op, g: [node("Diag", [g])], MOVEMENT)
