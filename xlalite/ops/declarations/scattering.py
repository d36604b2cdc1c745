"""Elements and slices at index vectors: gathered, scattered into zeros, into tensors and into variables.

The last dimension of the indices addresses the first dimensions of the operand. Indices out of range follow XLA: they
clamp when reading and are skipped when writing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import COMPILABLE_TYPES, INTEGER_TYPES, NUMERIC_TYPES, DType, string
from xlalite.framework.graph.op_spec import Gradient, OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.indexing import gather_slices, scatter_slices
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, shape_tensor
from xlalite.ops.helpers.indexed_slices import gathered_rows
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_type

# GatherNd(params, indices): params[indices[i]] for each index vector.


def _check_indices(indices: Tensor) -> None:
    require_type(indices, INTEGER_TYPES, "indices")
    require_rank(indices, lambda rank: rank >= 1, "index vectors in the last dimension", "indices")


def sliced_shape(whole: TensorShape, indices: Tensor) -> TensorShape:
    """What the index vectors take out of `whole`: one slice for each.

    Raises:
        ShapeError: index vectors are longer than `whole` has dimensions.
    """
    if whole.dims is None or not indices.shape.dims or indices.shape.dims[-1] is None:
        return unknown_shape()
    depth = indices.shape.dims[-1]
    if depth > len(whole.dims):
        raise ShapeError(f"index vectors of {depth} numbers cannot address {whole}")
    return TensorShape([*indices.shape.dims[:-1], *whole.dims[depth:]])


def _gather_nd_infer(op: Operation) -> Sequence[OutputType]:
    params, indices = op.inputs
    _check_indices(indices)
    return [(params.dtype, sliced_shape(params.shape, indices))]


def _gather_nd_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    params, indices = inputs
    if 0 in params.dims[: indices.dims[-1]] and indices.shape.element_count:
        raise ShapeError(f"Gather dimension {params.dims.index(0)} is of size zero in {params.shape.text()}")
    result = (*indices.dims[:-1], *params.dims[indices.dims[-1] :])
    if 0 in result:
        return [ctx.builder.full(0, params.dtype, result)]
    return [gather_slices(ctx.builder, params, indices)]


def _gather_nd_gradient(op: Operation, grad: Tensor) -> Sequence[Gradient | None]:
    params, indices = op.inputs
    sizes = shape_tensor(params)
    if indices.shape.dims and indices.shape.dims[-1] == 1:
        rows = node("Squeeze", [indices], {"squeeze_dims": (-1,)})
        return [gathered_rows(grad, rows, params.shape, sizes), None]
    return [node("ScatterNd", [indices, grad, sizes]), None]


declare("GatherNd", ("params", "indices"), _gather_nd_infer, _gather_nd_lower, _gather_nd_gradient, MOVEMENT)


# Scattering into something.


def _check_updates(whole: TensorShape, indices: Tensor, updates: Tensor) -> None:
    _check_indices(indices)
    expected = sliced_shape(whole, indices)
    if not updates.shape.is_compatible_with(expected):
        raise ShapeError(f"updates have shape {updates.shape}; indices {indices.shape} of {whole} want {expected}")


# ScatterNd(indices, updates, shape): sums of the updates in a tensor of zeros.


def _scatter_nd_infer(op: Operation) -> Sequence[OutputType]:
    indices, updates, shape = op.inputs
    require_type(updates, NUMERIC_TYPES, "updates")
    require_type(shape, INTEGER_TYPES, "shape")
    whole = constant_value_as_shape(shape)
    _check_updates(whole, indices, updates)
    return [(updates.dtype, whole)]


def _scatter_nd_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (indices, updates) = ctx.builder, inputs
    zeros = b.full(0, updates.dtype, tuple(int(size) for size in ctx.constant(op, "shape")))
    return [scatter_slices(b, zeros, indices, updates, "add")]


def _scatter_nd_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [None, node("GatherNd", [grad, op.inputs[0]]), None]


declare(
    "ScatterNd",
    ("indices", "updates", "shape"),
    _scatter_nd_infer,
    _scatter_nd_lower,
    _scatter_nd_gradient,
    MOVEMENT,
    constant_inputs=("shape",),
)


# SparseToDense(sparse_indices, output_shape, sparse_values, default_value): a list of index vectors, or of numbers.


def _sparse_to_dense_infer(op: Operation) -> Sequence[OutputType]:
    indices, sizes, values, default = op.inputs
    require_type(indices, INTEGER_TYPES, "sparse_indices")
    require_type(sizes, INTEGER_TYPES, "output_shape")
    require_rank(sizes, lambda rank: rank == 1, "output_shape must be rank 1", "output_shape")
    require_same_type([values, default])
    return [(values.dtype, constant_value_as_shape(sizes))]


def _sparse_to_dense_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (indices, values, default) = ctx.builder, inputs
    sizes = tuple(int(size) for size in ctx.constant(op, "output_shape"))
    count = 1 if not indices.dims else indices.dims[0]
    depth = 1 if len(indices.dims) < 2 else indices.dims[1]
    if len(indices.dims) > 2 or depth != len(sizes):
        raise ShapeError(f"sparse_indices {indices.dims} do not hold vectors of {len(sizes)} numbers")
    if default.dims:
        raise ShapeError(f"default_value should be a scalar, found {default.dims}")
    if values.dims not in ((), (count,)):
        found = ",".join(map(str, values.dims))
        raise ShapeError(f"sparse_values has incorrect shape [{found}], should be [] or [{count}]")
    rows = b.reshape(indices, (count, depth))
    given = values if values.dims else b.broadcast(values, (count,))
    return [scatter_slices(b, b.broadcast(default, sizes), rows, given, "assign")]


def _sparse_to_dense_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    indices, _, values, _ = op.inputs
    rows = node("Reshape", [indices, constant([-1, 1])]) if indices.shape.rank == 1 else indices
    arrived = node("GatherNd", [grad, rows])
    total, taken = (
        node("Sum", [node("Reshape", [each, constant([-1])]), constant(0)], {"keep_dims": False})
        for each in (grad, arrived)
    )
    return [None, None, taken if values.shape.rank == 0 else arrived, total - taken]


declare(
    "SparseToDense",
    ("sparse_indices", "output_shape", "sparse_values", "default_value"),
    _sparse_to_dense_infer,
    _sparse_to_dense_lower,
    _sparse_to_dense_gradient,
    MOVEMENT,
    constant_inputs=("output_shape",),
)


# TensorScatter*(tensor, indices, updates).


def _tensor_scatter_infer(op: Operation) -> Sequence[OutputType]:
    tensor, indices, updates = op.inputs
    require_same_type([tensor, updates])
    _check_updates(tensor.shape, indices, updates)
    return [(tensor.dtype, tensor.shape)]


def _declare_tensor_scatter(name: str, opcode: str, gradient: OneOutputGradient, allowed: Collection[DType]) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], allowed)
        return _tensor_scatter_infer(op)

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        tensor, indices, updates = inputs
        return [scatter_slices(ctx.builder, tensor, indices, updates, opcode)]

    declare(name, ("tensor", "indices", "updates"), infer, lower, gradient, MOVEMENT)


def _update_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    _, indices, updates = op.inputs
    kept = node("TensorScatterUpdate", [grad, indices, node("ZerosLike", [updates])])
    arrived = node("GatherNd", [grad, indices])
    stays = _what_stays(op)
    if stays is None:
        return [kept, None, arrived]
    return [kept, None, node("SelectV2", [stays, arrived, node("ZerosLike", [arrived])])]


def _what_stays(op: Operation) -> Tensor | None:
    """Which updates no later one replaces, with the rank of the updates; None where all stay, or sizes are unknown."""
    tensor, indices, _ = op.inputs
    if not (tensor.shape.is_fully_defined() and indices.shape.is_fully_defined()):
        return None
    *batch, depth = indices.shape.known_dims()
    count = math.prod(batch)
    known = constant_value(indices)
    if count <= 1 or (known is not None and len(np.unique(known.reshape(count, depth), axis=0)) == count):
        return None
    first, end, step = (constant(np.int32(each)) for each in (1, count + 1, 1))
    numbers = node("Reshape", [node("Range", [first, end, step]), constant(np.asarray(batch, np.int32))])
    places = constant(np.asarray(tensor.shape.known_dims()[:depth], np.int32))
    written = node("TensorScatterUpdate", [node("Fill", [places, constant(np.int32(0))]), indices, numbers])
    stays = node("Equal", [node("GatherNd", [written, indices]), numbers])
    rest = len(tensor.shape.known_dims()) - depth
    return node("Reshape", [stays, constant(np.asarray([*batch, *[1] * rest], np.int32))])


def _add_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad, None, node("GatherNd", [grad, op.inputs[1]])]


def _sub_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad, None, -node("GatherNd", [grad, op.inputs[1]])]


def _extreme_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The gradient goes to what became the extreme, in equal parts."""
    tensor, indices, updates = op.inputs
    result = op.outputs[0]

    def chosen(x: Tensor, y: Tensor) -> Tensor:
        return node("Cast", [node("Equal", [x, y])], {"dtype": grad.dtype})

    own = chosen(tensor, result)
    given = chosen(updates, node("GatherNd", [result, indices]))
    share = grad / node("TensorScatterAdd", [own, indices, given])
    return [share * own, None, node("GatherNd", [share, indices]) * given]


_declare_tensor_scatter("TensorScatterUpdate", "assign", _update_gradient, {*COMPILABLE_TYPES, string})
_declare_tensor_scatter("TensorScatterAdd", "add", _add_gradient, NUMERIC_TYPES)
_declare_tensor_scatter("TensorScatterSub", "subtract", _sub_gradient, NUMERIC_TYPES)
_declare_tensor_scatter("TensorScatterMax", "maximum", _extreme_gradient, REAL_TYPES)
_declare_tensor_scatter("TensorScatterMin", "minimum", _extreme_gradient, REAL_TYPES)


# ResourceScatter*(resource, indices, updates): rows of a variable; ResourceScatterNd*(ref, indices, updates).


def _rows_infer(op: Operation) -> Sequence[OutputType]:
    handle, indices, updates = op.inputs
    data = handle_data_of(handle)
    require_type(indices, INTEGER_TYPES, "indices")
    require_type(updates, {data.dtype}, "updates")
    if updates.shape.rank != 0 and data.shape.dims is not None:
        expected = indices.shape.concatenate(TensorShape(data.shape.dims[1:]))
        if not updates.shape.is_compatible_with(expected):
            raise ShapeError(f"updates have shape {updates.shape}; rows of variable {data.name!r} want {expected}")
    return []


def _slices_infer(op: Operation) -> Sequence[OutputType]:
    handle, indices, updates = op.inputs
    data = handle_data_of(handle)
    require_type(updates, {data.dtype}, "updates")
    _check_updates(data.shape, indices, updates)
    return []


def _declare_resource(name: str, opcode: str, of_rows: bool) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (indices, updates) = ctx.builder, inputs
        current = ctx.read_variable(op, op.inputs[0])
        if of_rows:
            updates = b.broadcast(updates, (*indices.dims, *current.dims[1:])) if not updates.dims else updates
            indices = b.reshape(indices, (*indices.dims, 1))
        ctx.assign_variable(op.inputs[0], scatter_slices(b, current, indices, updates, opcode))
        return []

    register(
        OpSpec(
            name,
            _rows_infer if of_rows else _slices_infer,
            inputs=("resource" if of_rows else "ref", "indices", "updates"),
            lower=lower,
            gradient=None,
            group=None,
            is_stateful=True,
            variable_access=VariableAccess.MODIFY,
        )
    )


for _suffix, _opcode in (
    ("Update", "assign"),
    ("Add", "add"),
    ("Sub", "subtract"),
    ("Mul", "multiply"),
    ("Div", "divide"),
    ("Min", "minimum"),
    ("Max", "maximum"),
):
    _declare_resource(f"ResourceScatter{_suffix}", _opcode, True)
for _suffix, _opcode in (("Update", "assign"), ("Add", "add"), ("Sub", "subtract")):
    _declare_resource(f"ResourceScatterNd{_suffix}", _opcode, False)


# DynamicStitch(indices..., data...): row indices[i][j] of the result is data[i][j]; of several the last one stays.


def _stitch_infer(op: Operation) -> Sequence[OutputType]:
    count = op.get_attr("N")
    indices, data = op.inputs[:count], op.inputs[count:]
    dtype = require_same_type(data)
    row = unknown_shape()
    for each, values in zip(indices, data, strict=True):
        require_type(each, INTEGER_TYPES, "indices")
        if each.shape.rank is not None and values.shape.dims is not None:
            values.shape[: each.shape.rank].assert_is_compatible_with(each.shape)
            row = row.merge_with(TensorShape(values.shape.dims[each.shape.rank :]))
    return [(dtype, TensorShape([None]).concatenate(row))]


def _stitch_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, count = ctx.builder, op.get_attr("N")
    positions = [np.asarray(ctx.constant_at(op, i)) for i in range(count)]
    row = inputs[0].dims[positions[0].ndim :]
    flat = np.concatenate([each.ravel() for each in positions]) if positions else np.zeros(0, np.int32)
    if (flat < 0).any():
        raise ShapeError(f"indices must not be negative, found {int(flat.min())}")
    rows = b.concatenate([b.reshape(x, (p.size, *row)) for x, p in zip(inputs, positions, strict=True)], 0)
    size = int(flat.max()) + 1 if flat.size else 0
    source = np.full(size, -1, np.int32)
    source[flat] = np.arange(flat.size)
    if not size:
        return [b.full(0, rows.dtype, (0, *row))]
    taken = gather_slices(b, rows, b.constant(np.maximum(source, 0)[:, None]))
    if (source >= 0).all():
        return [taken]
    is_given = b.broadcast(b.constant(source >= 0), taken.dims, [0])
    return [b.select(is_given, taken, b.full(0, rows.dtype, taken.dims))]


def _stitch_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Each row goes to where it came from; a row that a later one replaced has TensorFlow's gradient, not zero."""
    count = op.get_attr("N")
    return [*[None] * count, *(node("GatherV2", [grad, each, constant(0)]) for each in op.inputs[:count])]


def _stitch_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    count = op.get_attr("N")
    positions, data = ([np.asarray(value) for value in part] for part in (inputs[:count], inputs[count:]))
    flat = np.concatenate([each.ravel() for each in positions])
    if flat.size and flat.min() < 0:
        raise ShapeError(f"indices must not be negative, found {int(flat.min())}")
    row = data[0].shape[positions[0].ndim :]
    result = np.zeros((int(flat.max()) + 1 if flat.size else 0, *row), data[0].dtype)
    for each, values in zip(positions, data, strict=True):
        result[each] = values
    return [result]


def _index_positions(op: Operation) -> Sequence[int]:
    return range(op.get_attr("N"))


def _why_not_compilable(op: Operation) -> str | None:
    known = all(constant_value(tensor) is not None for tensor in op.inputs[: op.get_attr("N")])
    return None if known else "its indices say how many rows it has, and are known only when it runs"


for _name in ("DynamicStitch", "ParallelDynamicStitch"):
    register(
        OpSpec(
            _name,
            _stitch_infer,
            inputs=("input*",),
            attrs=("N",),
            lower=_stitch_lower,
            gradient=lambda op, grads: [None] * len(op.inputs) if grads[0] is None else _stitch_gradient(op, grads[0]),
            group=MOVEMENT,
            host_kernel=_stitch_on_host,
            further_constant_inputs=_index_positions,
            why_not_compilable=_why_not_compilable,
        )
    )
