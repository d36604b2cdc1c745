"""Lists of tensors of one shape, which hold state in loops. A list is its elements, stacked: `[length, ...]`.

A list that was reserved before anybody knows the shape of its elements is blank, `[length, 0]`, and takes its shape
from the first element that is put in; a compiled loop that carries a blank list starts with one that fits its body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES, int32
from xlalite.framework.graph.op_spec import Gradient, OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare, declare_outputs
from xlalite.ops.helpers.gradient_rules import all_gradients, of_one_output, shape_tensor
from xlalite.ops.helpers.indexed_slices import gathered_rows
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import require_same_type, require_scalar, require_type

GROWS = "_grows"
"""Annotation of a reserved list that may become longer."""


def is_blank(dims: Sequence[int]) -> bool:
    """Whether a list of these sizes waits for the shape of its elements."""
    return len(dims) == 2 and dims[1] == 0


def carried_shape(start: Tensor, argument: TensorShape, result: TensorShape) -> TensorShape:
    """The shape of a loop variable after the loop: that of the body's result for a list that started blank."""
    if start.op.type != "TensorListReserve" or start.shape.rank is not None or result.dims is None:
        return argument
    length = None if start.op.attrs.get(GROWS) else constant_value(start.op.inputs[1])
    return TensorShape([None if length is None else int(length), *result.dims[1:]])


# TensorListReserve(element_shape, num_elements): zeros, or a blank list.


def _element_sizes(value: Array | None) -> tuple[int, ...] | None:
    """The sizes that an `element_shape` names; None if it leaves one open."""
    sizes = None if value is None or value.ndim == 0 else tuple(int(size) for size in value)
    return None if sizes is None or -1 in sizes else sizes


def _reserve_infer(op: Operation) -> Sequence[OutputType]:
    element_shape, count = op.inputs
    require_scalar(count, "num_elements")
    sizes = _element_sizes(constant_value(element_shape))
    length = constant_value(count)
    dtype = op.get_attr("element_dtype")
    shape = None if sizes is None else [None if length is None else int(length), *sizes]
    return [(dtype, TensorShape(shape))]


def _reserve_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = _element_sizes(ctx.constant(op, "element_shape"))
    dims = (int(ctx.constant(op, "num_elements")), *((0,) if sizes is None else sizes))
    return [ctx.builder.full(0, op.get_attr("element_dtype").hlo, dims)]


declare(
    "TensorListReserve",
    ("element_shape", "num_elements"),
    _reserve_infer,
    _reserve_lower,
    None,
    MOVEMENT,
    attrs=("element_dtype",),
    constant_inputs=("element_shape", "num_elements"),
)


# TensorListSetItem(list, index, item): the list with another element. One that may grow does so on the host.


def _set_infer(op: Operation) -> Sequence[OutputType]:
    given, index, item = op.inputs
    require_same_type([given, item])
    require_type(index, INTEGER_TYPES, "index")
    require_scalar(index, "index")
    length = None if not given.shape.dims else given.shape.dims[0]
    if given.shape.rank is None and given.op.type == "TensorListReserve":
        known = constant_value(given.op.inputs[1])
        length = None if known is None else int(known)
    grows = op.get_attr("resize_if_index_out_of_bounds")
    shape = TensorShape([None if grows else length]).concatenate(item.shape)
    if given.shape.rank is not None and given.shape.dims is not None and not grows:
        shape = shape.merge_with(given.shape)
    return [(given.dtype, shape)]


def _set_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (given, index, item) = ctx.builder, inputs
    if is_blank(given.dims) and item.dims != given.dims[1:]:
        given = b.full(0, given.dtype, (given.dims[0], *item.dims))
    if given.dims[1:] != item.dims:
        raise ShapeError(f"an element of shape {item.dims} does not fit a list of {given.dims[1:]}")
    zero = b.constant(0, index.dtype)
    row = b.reshape(item, (1, *item.dims))
    return [b.op("dynamic-update-slice", (given, row, index, *[zero] * len(item.dims)))]


def _set_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    given, index, item = (np.asarray(value) for value in inputs)
    if is_blank(given.shape) and item.shape != given.shape[1:]:
        given = np.zeros((given.shape[0], *item.shape), given.dtype)
    if given.shape[1:] != item.shape:
        raise ShapeError(f"an element of shape {item.shape} does not fit a list of {given.shape[1:]}")
    place, length = int(index), given.shape[0]
    if op.get_attr("resize_if_index_out_of_bounds") and place >= length:
        given = np.concatenate([given, np.zeros((place + 1 - length, *item.shape), given.dtype)])
    if not 0 <= place < given.shape[0]:
        raise ShapeError(f"index {place} is not in a list of {length} elements")
    result = given.copy()
    result[place] = item
    return [result]


def _set_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """What was replaced had no influence."""
    _, index, item = op.inputs
    attrs = {"resize_if_index_out_of_bounds": False}
    return [
        node("TensorListSetItem", [grad, index, node("ZerosLike", [item])], attrs),
        None,
        node("GatherV2", [grad, index, constant(0)]),
    ]


def _why_not_compilable(op: Operation) -> str | None:
    return "the list may grow" if op.get_attr("resize_if_index_out_of_bounds") else None


register(
    OpSpec(
        "TensorListSetItem",
        _set_infer,
        inputs=("input_handle", "index", "item"),
        attrs=("resize_if_index_out_of_bounds",),
        lower=_set_lower,
        host_kernel=_set_on_host,
        gradient=of_one_output(_set_gradient),
        group=MOVEMENT,
        why_not_compilable=_why_not_compilable,
    )
)


# TensorListGetItem(list, index, element_shape), TensorListGather(list, indices, element_shape).


def _get_infer(op: Operation) -> Sequence[OutputType]:
    given, index = op.inputs[:2]
    require_type(index, INTEGER_TYPES, "index")
    row = unknown_shape() if given.shape.dims is None else TensorShape(given.shape.dims[1:])
    return [(given.dtype, index.shape.concatenate(row))]


def _get_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [gather_rows(ctx.builder, inputs[0], inputs[1], 0)]


def _get_gradient(op: Operation, grad: Tensor) -> Sequence[Gradient | None]:
    given, index = op.inputs[:2]
    return [gathered_rows(grad, index, given.shape, shape_tensor(given)), None, None]


for _name, _index in (("TensorListGetItem", "index"), ("TensorListGather", "indices")):
    declare(
        _name,
        ("input_handle", _index, "element_shape"),
        _get_infer,
        _get_lower,
        _get_gradient,
        MOVEMENT,
        attrs=("element_dtype",),
    )


# TensorListFromTensor(tensor, element_shape), TensorListStack(list, element_shape): a list is its elements, stacked.


def _same_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, op.inputs[0].shape.with_rank_at_least(1))]


for _name, _own, _attrs in (
    ("TensorListFromTensor", "tensor", ()),
    ("TensorListStack", "input_handle", ("element_dtype", "num_elements")),
):
    declare(
        _name,
        (_own, "element_shape"),
        _same_infer,
        lambda ctx, op, inputs: inputs[:1],
        lambda op, grad: [grad, None],
        MOVEMENT,
        attrs=_attrs,
    )


# EmptyTensorList(element_shape, max_num_elements), TensorListPushBack(list, tensor), TensorListPopBack(list, shape).


def _empty_infer(op: Operation) -> Sequence[OutputType]:
    sizes = _element_sizes(constant_value(op.inputs[0]))
    return [(op.get_attr("element_dtype"), TensorShape(None if sizes is None else [0, *sizes]))]


def _empty_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = _element_sizes(ctx.constant(op, "element_shape"))
    return [ctx.builder.full(0, op.get_attr("element_dtype").hlo, (0, *((0,) if sizes is None else sizes)))]


declare(
    "EmptyTensorList",
    ("element_shape", "max_num_elements"),
    _empty_infer,
    _empty_lower,
    None,
    MOVEMENT,
    attrs=("element_dtype",),
    constant_inputs=("element_shape",),
)


def _push_infer(op: Operation) -> Sequence[OutputType]:
    given, item = op.inputs
    require_same_type([given, item])
    dims = given.shape.dims
    length = 0 if given.op.type == "EmptyTensorList" else dims[0] if dims else None
    row = item.shape if dims is None else item.shape.merge_with(dims[1:])
    return [(given.dtype, TensorShape([None if length is None else length + 1]).concatenate(row))]


def _push_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (given, item) = ctx.builder, inputs
    row = b.reshape(item, (1, *item.dims))
    if not given.dims[0]:
        return [row]
    if given.dims[1:] != item.dims:
        raise ShapeError(f"an element of shape {item.dims} does not fit a list of {given.dims[1:]}")
    return [b.concatenate([given, row], 0)]


def _push_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {"element_dtype": grad.dtype}
    return operation("TensorListPopBack", [grad, constant(-1)], attrs).outputs


declare("TensorListPushBack", ("input_handle", "tensor"), _push_infer, _push_lower, _push_gradient, MOVEMENT)


def _pop_infer(op: Operation) -> Sequence[OutputType]:
    given = op.inputs[0]
    dims = given.shape.with_rank_at_least(1).dims
    if dims is None:
        return [(given.dtype, unknown_shape()), (given.dtype, unknown_shape())]
    if dims[0] == 0:
        raise ShapeError(f"list {given.name!r} is empty: there is nothing to take out")
    rest = None if dims[0] is None else dims[0] - 1
    return [(given.dtype, TensorShape([rest, *dims[1:]])), (given.dtype, TensorShape(dims[1:]))]


def _pop_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, given = ctx.builder, inputs[0]
    if not given.dims[0]:
        raise ShapeError("the list is empty: there is nothing to take out")
    zeros = [0] * len(given.dims)
    last = given.dims[0] - 1
    rest = b.slice(given, zeros, [last, *given.dims[1:]])
    item = b.slice(given, [last, *zeros[1:]], given.dims)
    return [rest, b.reshape(item, given.dims[1:])]


def _pop_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    rest, item = all_gradients(op, grads)
    return [node("TensorListPushBack", [rest, item]), None]


declare_outputs(
    "TensorListPopBack",
    ("input_handle", "element_shape"),
    _pop_infer,
    _pop_lower,
    _pop_gradient,
    MOVEMENT,
    attrs=("element_dtype",),
)


# TensorListLength(list), TensorListElementShape(list): what the sizes say.


def _length_infer(op: Operation) -> Sequence[OutputType]:
    return [(int32, TensorShape(()))]


def _length_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.constant(np.int32(ctx.dims(op.inputs[0])[0]))]


def _element_shape_infer(op: Operation) -> Sequence[OutputType]:
    rank = op.inputs[0].shape.rank
    return [(op.get_attr("shape_type"), TensorShape([None if rank is None else rank - 1]))]


def _element_shape_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    dtype = op.get_attr("shape_type")
    return [ctx.builder.constant(np.array(ctx.dims(op.inputs[0])[1:], dtype.numpy_dtype), dtype.hlo)]


register(
    OpSpec(
        "TensorListLength",
        _length_infer,
        inputs=("input_handle",),
        lower=_length_lower,
        gradient=None,
        group=None,
        is_metadata=True,
    )
)
register(
    OpSpec(
        "TensorListElementShape",
        _element_shape_infer,
        inputs=("input_handle",),
        attrs=("shape_type",),
        lower=_element_shape_lower,
        gradient=None,
        group=None,
        is_metadata=True,
    )
)
