"""Operations that change sizes or order of dimensions and keep the elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape, register_partial_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import reshape_like
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import normalize_axis, require_rank, require_type


def _reshape_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [reshape_like(grad, op.inputs[0]), *[None] * (len(op.inputs) - 1)]


# Reshape(tensor, shape): one size may be -1.


def _reshape_infer(op: Operation) -> Sequence[OutputType]:
    tensor, shape = op.inputs
    require_type(shape, INTEGER_TYPES, "shape")
    require_rank(shape, lambda rank: rank == 1, "a vector", "shape")
    value = constant_value(shape)
    if value is not None and (value == -1).sum() > 1:
        raise ShapeError(f"only one size may be -1, found {value.tolist()}")
    wanted = constant_value_as_shape(shape)
    return [(tensor.dtype, _complete(tensor.shape, wanted, exact=value is not None))]


def _complete(source: TensorShape, wanted: TensorShape, exact: bool) -> TensorShape:
    """`wanted` with its only unknown size computed from the number of elements."""
    count = source.num_elements()
    if count is None or wanted.dims is None:
        return wanted
    known = math.prod(size for size in wanted.dims if size is not None)
    unknown = wanted.dims.count(None)
    if unknown == 0 and known != count:
        raise ShapeError(f"cannot reshape {source} with {count} elements to {wanted} with {known}")
    if unknown != 1 or (not exact and known == 0):
        return wanted
    if known == 0 or count % known:
        raise ShapeError(f"cannot reshape {source} with {count} elements to {wanted}: {known} does not divide {count}")
    return TensorShape([count // known if size is None else size for size in wanted.dims])


def _reshape_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    x = inputs[0]
    sizes = [None if size == -1 else int(size) for size in ctx.constant(op, "shape")]
    return [ctx.builder.reshape(x, _complete(TensorShape(x.dims), TensorShape(sizes), exact=True).known_dims())]


declare(
    "Reshape",
    ("tensor", "shape"),
    _reshape_infer,
    _reshape_lower,
    _reshape_gradient,
    MOVEMENT,
    constant_inputs=("shape",),
)


# ExpandDims(input, dim).


def _expand_infer(op: Operation) -> Sequence[OutputType]:
    x, dim = op.inputs
    require_type(dim, INTEGER_TYPES, "dim")
    value = constant_value(dim)
    if x.shape.dims is None:
        return [(x.dtype, unknown_shape())]
    if value is None:
        return [(x.dtype, unknown_shape(len(x.shape.dims) + 1))]
    return [(x.dtype, TensorShape(_expanded(list(x.shape.dims), int(value.reshape(())))))]


def _expanded(sizes: list[int | None], dim: int) -> list[int | None]:
    position = normalize_axis(dim, len(sizes) + 1, "dim")
    return [*sizes[:position], 1, *sizes[position:]]


def _expand_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = _expanded(list(inputs[0].dims), int(ctx.constant(op, "dim").reshape(())))
    return [ctx.builder.reshape(inputs[0], [size for size in sizes if size is not None])]


declare(
    "ExpandDims", ("input", "dim"), _expand_infer, _expand_lower, _reshape_gradient, MOVEMENT, constant_inputs=("dim",)
)


# Squeeze(input): drops the listed dimensions of size 1, or all such dimensions.


def _squeeze_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    dims, listed = x.shape.dims, op.get_attr("squeeze_dims")
    if dims is None:
        return [(x.dtype, unknown_shape())]
    if not listed and None in dims:
        return [(x.dtype, unknown_shape())]
    return [(x.dtype, TensorShape(_squeezed(dims, listed)))]


def _squeezed(dims: Sequence[int | None], listed: Sequence[int]) -> list[int | None]:
    dropped = {normalize_axis(axis, len(dims)) for axis in listed} or {i for i, size in enumerate(dims) if size == 1}
    for axis in dropped:
        if dims[axis] not in (None, 1):
            raise ShapeError(f"cannot squeeze dimension {axis} of {TensorShape(dims)}: its size is {dims[axis]}, not 1")
    return [size for i, size in enumerate(dims) if i not in dropped]


def _squeeze_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = _squeezed(inputs[0].dims, op.get_attr("squeeze_dims"))
    return [ctx.builder.reshape(inputs[0], [size for size in sizes if size is not None])]


declare("Squeeze", ("input",), _squeeze_infer, _squeeze_lower, _reshape_gradient, MOVEMENT, attrs=("squeeze_dims",))


# Transpose(x, perm): result dimension i is dimension perm[i] of x.


def _transpose_infer(op: Operation) -> Sequence[OutputType]:
    x, perm = op.inputs
    require_type(perm, INTEGER_TYPES, "perm")
    value = constant_value(perm)
    rank = x.shape.rank if x.shape.rank is not None else (perm.shape.dims or (None,))[0]
    if value is None or rank is None:
        return [(x.dtype, unknown_shape(rank))]
    order = _checked_permutation(value.tolist(), rank)
    dims = x.shape.with_rank(rank).as_list()
    return [(x.dtype, TensorShape([dims[i] for i in order]))]


def _checked_permutation(perm: Sequence[int], rank: int) -> list[int]:
    order = [normalize_axis(int(i), rank, "perm entry") for i in perm]
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"perm {list(perm)} is not a permutation of the {rank} dimensions")
    return order


def _transpose_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [
        ctx.builder.transpose(inputs[0], _checked_permutation(ctx.constant(op, "perm").tolist(), inputs[0].shape.rank))
    ]


def _transpose_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    perm = op.inputs[1]
    value = constant_value(perm)
    if value is not None:
        inverse = constant(np.argsort(value % max(1, len(value))).astype(np.int32))
    else:
        inverse = node("InvertPermutation", [perm])
    return [node("Transpose", [grad, inverse]), None]


declare(
    "Transpose",
    ("x", "perm"),
    _transpose_infer,
    _transpose_lower,
    _transpose_gradient,
    MOVEMENT,
    constant_inputs=("perm",),
)


# InvertPermutation(x): y[x[i]] = i.


def _invert_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], INTEGER_TYPES)
    return [(op.inputs[0].dtype, op.inputs[0].shape.with_rank(1))]


def _invert_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    perm = ctx.constant(op, "x")
    inverse = np.argsort(_checked_permutation(perm.tolist(), len(perm))).astype(perm.dtype)
    return [ctx.builder.constant(inverse, op.outputs[0].dtype.hlo)]


declare("InvertPermutation", ("x",), _invert_infer, _invert_lower, None, MOVEMENT, constant_inputs=("x",))


def _same_vector(tensor: Tensor) -> TensorShape:
    source = tensor.op.inputs[0]
    if source.shape.rank == 1:
        return constant_value_as_shape(source)
    return unknown_shape(tensor.shape.with_rank(1).as_list()[0])


for _name in ("Reshape", "Identity"):
    register_partial_shape(_name, _same_vector)
