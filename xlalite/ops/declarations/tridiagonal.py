"""`TridiagonalSolve(diagonals, rhs)`: systems whose matrices have three diagonals, by elimination row by row.

`diagonals` is `[..., 3, m]`: the diagonal above the main one (its last number is not looked at), the main one, and that
below (its first number is not looked at). `rhs` is `[..., m, k]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.framework.graph.dtypes import complex64, complex128, float32, float64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type

_TYPES = frozenset({float32, float64, complex64, complex128})
Body = Callable[[Builder, Handle, list[Handle]], list[Handle]]


def _infer(op: Operation) -> Sequence[OutputType]:
    diagonals, rhs = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(diagonals, _TYPES)
    own = diagonals.shape.with_rank_at_least(2).dims
    shape = rhs.shape.with_rank_at_least(2)
    if own is not None and shape.dims is not None:
        if own[-2] not in (None, 3):
            raise ShapeError(f"diagonals have shape {diagonals.shape}; expected [..., 3, m]")
        shape = shape.merge_with([*own[:-2], own[-1], shape.dims[-1]])
    return [(dtype, TensorShape(shape))]


def _repeat(b: Builder, count: int, state: Sequence[Handle], body: Body) -> list[Handle]:
    """Runs `body(builder, number, state)` for the numbers below `count`."""
    start = b.tuple([b.constant(0, HloDType.S32), *state])

    def condition(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        return inner.compare(parameters[0][0], count, "LT")

    def step(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        whole = parameters[0]
        values = [whole[1 + i] for i in range(len(state))]
        return inner.tuple([whole[0] + 1, *body(inner, whole[0], values)])

    called = (
        b.subcomputation("rows_are_left", (start.shape,), condition),
        b.subcomputation("next_row", (start.shape,), step),
    )
    result = b.op("while", (start,), None, called)
    return [result[1 + i] for i in range(len(state))]


def _row(b: Builder, x: Handle, number: Handle) -> Handle:
    zero = b.constant(0, HloDType.S32)
    cut = b.dynamic_slice(x, [number, *[zero] * (len(x.dims) - 1)], (1, *x.dims[1:]))
    return b.reshape(cut, x.dims[1:])


def _with_row(b: Builder, x: Handle, number: Handle, row: Handle) -> Handle:
    zero = b.constant(0, HloDType.S32)
    update = b.reshape(row, (1, *row.dims))
    return b.op("dynamic-update-slice", (x, update, number, *[zero] * len(row.dims)))


def _times(b: Builder, factor: Handle, row: Handle) -> Handle:
    """A number for each system times its right-hand sides."""
    return b.broadcast(factor, row.dims, range(len(factor.dims))) * row


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (diagonals, rhs) = ctx.builder, inputs
    *batch, three, m = diagonals.dims
    if three != 3 or rhs.dims[:-1] != (*batch, m):
        raise ShapeError(f"diagonals {diagonals.shape.text()} do not fit right-hand sides {rhs.shape.text()}")
    if not rhs.shape.element_count:
        return [rhs]
    count = len(batch)
    rows = b.transpose(diagonals, (count, count + 1, *range(count)))
    above, main, below = (
        b.reshape(b.slice(rows, [i, *[0] * (count + 1)], [i + 1, *rows.dims[1:]]), rows.dims[1:]) for i in range(3)
    )
    sides = b.transpose(rhs, (count, *range(count), count + 1))
    eliminated = _eliminated(b, above, main, below, sides, pivots=op.get_attr("partial_pivoting"))
    solution = _substituted(b, *eliminated)
    return [b.transpose(solution, (*range(1, count + 1), 0, count + 1))]


def _eliminated(
    b: Builder, above: Handle, main: Handle, below: Handle, sides: Handle, *, pivots: bool
) -> tuple[Handle, Handle, Handle, Handle]:
    """The main diagonal and the two above of the triangular matrix, and its right-hand sides."""
    m = main.dims[0]
    zero = b.full(0, main.dtype, main.dims)
    none = b.full(0, main.dtype, main.dims[1:])
    first = b.constant(0, HloDType.S32)
    start = [zero, zero, zero, sides, _row(b, main, first), _row(b, above, first), _row(b, sides, first)]
    given = [above, main, below, sides]

    def body(inner: Builder, i: Handle, state: list[Handle]) -> list[Handle]:
        d0, d1, d2, done, a, u, r, above, main, below, sides = state
        lower, middle, upper, side = (_row(inner, x, i + 1) for x in (below, main, above, sides))
        nothing = inner.full(0, a.dtype, a.dims)
        exchanged = inner.compare(inner.op("abs", (lower,)), inner.op("abs", (a,)), "GT")
        if not pivots:
            exchanged = inner.full(False, HloDType.PRED, a.dims)
        wide = inner.broadcast(exchanged, r.dims, range(len(a.dims)))
        p0, p1, p2 = (inner.select(exchanged, x, y) for x, y in ((lower, a), (middle, u), (upper, nothing)))
        q0, q1, q2 = (inner.select(exchanged, y, x) for x, y in ((lower, a), (middle, u), (upper, nothing)))
        pivot_side, other_side = inner.select(wide, side, r), inner.select(wide, r, side)
        factor = q0 / p0
        stored = [_with_row(inner, x, i, row) for x, row in ((d0, p0), (d1, p1), (d2, p2), (done, pivot_side))]
        following = [q1 - factor * p1, q2 - factor * p2, other_side - _times(inner, factor, pivot_side)]
        return [*stored, *following, above, main, below, sides]

    d0, d1, d2, done, a, _, r, *_ = _repeat(b, m - 1, [*start, *given], body)
    last = b.constant(m - 1, HloDType.S32)
    return _with_row(b, d0, last, a), _with_row(b, d1, last, none), d2, _with_row(b, done, last, r)


def _substituted(b: Builder, d0: Handle, d1: Handle, d2: Handle, sides: Handle) -> Handle:
    """The solution, from the last row up."""
    m = d0.dims[0]
    none = b.full(0, sides.dtype, sides.dims[1:])

    def body(inner: Builder, i: Handle, state: list[Handle]) -> list[Handle]:
        solution, next_row, after_next, d0, d1, d2, sides = state
        at = -(i - (m - 1))
        first, second, third, side = (_row(inner, x, at) for x in (d0, d1, d2, sides))
        known = _times(inner, second, next_row) + _times(inner, third, after_next)
        row = (side - known) / inner.broadcast(first, side.dims, range(len(first.dims)))
        return [_with_row(inner, solution, at, row), row, next_row, d0, d1, d2, sides]

    return _repeat(b, m, [sides, none, none, d0, d1, d2, sides], body)[0]


def _part(diagonals: Tensor, number: int, rank: int) -> Tensor:
    axis = constant(rank - 2)
    return node("GatherV2", [diagonals, constant(number), axis])


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The system with exchanged diagonals for what arrived; products of it and the solution for the diagonals."""
    diagonals, solution = op.inputs[0], op.outputs[0]
    rank = diagonals.shape.rank
    if rank is None:
        raise ShapeError("the gradient of TridiagonalSolve needs a known rank")
    above, main, below = (conjugate(_part(diagonals, number, rank)) for number in range(3))
    last, one, axis = constant([rank - 2]), constant([1]), constant([rank - 2])
    turned = [
        node("Roll", [below, constant([-1]), last]),
        main,
        node("Roll", [above, one, axis]),
    ]
    attrs = {"partial_pivoting": op.get_attr("partial_pivoting")}
    of_rhs = node("TridiagonalSolve", [node("Pack", turned, {"axis": rank - 2}), grad], attrs)

    def along(shift: int) -> Tensor:
        """The products of rows that lie so far from each other, with zeros where there is none."""
        moved = node("Roll", [conjugate(solution), constant([-shift]), constant([rank - 2])])
        products = node("Sum", [of_rhs * moved, constant([rank - 1])], {"keep_dims": False})
        negated: Tensor = -products
        if not shift:
            return negated
        count = node("GatherV2", [shape_tensor(main), constant(rank - 2), constant(0)])
        place = node("Range", [constant(0), count, constant(1)])
        missing = node("Equal", [place, count - 1 if shift > 0 else constant(0)])
        return node("SelectV2", [missing, node("ZerosLike", [products]), negated])

    return [node("Pack", [along(1), along(0), along(-1)], {"axis": rank - 2}), of_rhs]


declare("TridiagonalSolve", ("diagonals", "rhs"), _infer, _lower, _gradient, None, attrs=("partial_pivoting",))
