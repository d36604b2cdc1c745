"""Products of matrices and of batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.dtypes import NUMERIC_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.gradient_rules import sum_to
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type

# MatMul(a, b): [m, k] x [k, n] -> [m, n], either one transposed first when asked.


def _matmul_infer(op: Operation) -> Sequence[OutputType]:
    a, b = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(a, NUMERIC_TYPES)
    m, k = _oriented(a.shape.with_rank(2), op.get_attr("transpose_a"))
    other_k, n = _oriented(b.shape.with_rank(2), op.get_attr("transpose_b"))
    if k is not None and other_k is not None and k != other_k:
        raise ShapeError(
            f"contracting sizes differ: a {a.shape}{_transposed(op, 'transpose_a')} has {k} columns, "
            f"b {b.shape}{_transposed(op, 'transpose_b')} has {other_k} rows"
        )
    return [(dtype, TensorShape([m, n]))]


def _oriented(shape: TensorShape, transposed: bool) -> tuple[int | None, int | None]:
    rows, columns = shape.as_list()
    return (columns, rows) if transposed else (rows, columns)


def _transposed(op: Operation, attr: str) -> str:
    return " (transposed)" if op.get_attr(attr) else ""


def _matmul_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    attrs = OPS["dot"].attrs(
        lhs_contracting_dims=(0 if op.get_attr("transpose_a") else 1,),
        rhs_contracting_dims=(1 if op.get_attr("transpose_b") else 0,),
    )
    return [ctx.builder.op("dot", inputs, attrs)]


def _matmul_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    a, b = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    return _products_with_gradient(op, grad, a, b)


def _products_with_gradient(op: Operation, grad: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
    """The gradients of both factors, where x and y were multiplied: each is a product with the other factor."""
    first, second = op.spec.attrs

    def product(left: Tensor, right: Tensor, turn_left: bool, turn_right: bool) -> Tensor:
        return node(op.type, [left, right], {first: turn_left, second: turn_right})

    turned_x, turned_y = op.get_attr(first), op.get_attr(second)
    grad_x = product(y, grad, turned_y, True) if turned_x else product(grad, y, False, not turned_y)
    grad_y = product(grad, x, True, turned_x) if turned_y else product(x, grad, not turned_x, False)
    return [grad_x, grad_y]


declare(
    "MatMul", ("a", "b"), _matmul_infer, _matmul_lower, _matmul_gradient, None, attrs=("transpose_a", "transpose_b")
)


# BatchMatMulV2(x, y): [..., m, k] x [..., k, n] -> [..., m, n]; leading dimensions are broadcast. `adj` conjugates too.


def _batch_matmul_infer(op: Operation) -> Sequence[OutputType]:
    x, y = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(x, NUMERIC_TYPES)
    x_shape, y_shape = x.shape.with_rank_at_least(2), y.shape.with_rank_at_least(2)
    if x_shape.dims is None or y_shape.dims is None:
        return [(dtype, unknown_shape())]
    m, k = _oriented(TensorShape(x_shape.dims[-2:]), op.get_attr("adj_x"))
    other_k, n = _oriented(TensorShape(y_shape.dims[-2:]), op.get_attr("adj_y"))
    if k is not None and other_k is not None and k != other_k:
        raise ShapeError(f"contracting sizes differ: x {x.shape} gives {k}, y {y.shape} gives {other_k}")
    batch = broadcast_shapes(TensorShape(x_shape.dims[:-2]), TensorShape(y_shape.dims[:-2]))
    return [(dtype, batch.concatenate([m, n]))]


def _batch_matmul_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    x, y = inputs
    batch = broadcast_dims(x.dims[:-2], y.dims[:-2])
    x, y = broadcast_to(b, x, (*batch, *x.dims[-2:])), broadcast_to(b, y, (*batch, *y.dims[-2:]))
    adj_x, adj_y = op.get_attr("adj_x"), op.get_attr("adj_y")
    rank = len(batch)
    attrs = OPS["dot"].attrs(
        lhs_batch_dims=tuple(range(rank)),
        lhs_contracting_dims=(rank if adj_x else rank + 1,),
        rhs_batch_dims=tuple(range(rank)),
        rhs_contracting_dims=(rank + 1 if adj_y else rank,),
    )
    return [b.op("dot", (_conjugated(x, adj_x), _conjugated(y, adj_y)), attrs)]


def _conjugated(x: Handle, adjoint: bool) -> Handle:
    if not adjoint or not x.dtype.is_complex:
        return x
    return x.builder.op("complex", (x.builder.op("real", (x,)), -x.builder.op("imag", (x,))))


def _batch_matmul_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    grad_x, grad_y = _products_with_gradient(op, grad, x, y)
    return [sum_to(grad_x, x, grad_x), sum_to(grad_y, y, grad_y)]


declare(
    "BatchMatMulV2",
    ("x", "y"),
    _batch_matmul_infer,
    _batch_matmul_lower,
    _batch_matmul_gradient,
    None,
    attrs=("adj_x", "adj_y"),
)
