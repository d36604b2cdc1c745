"""Operations on variables. A variable is known by its handle; its value belongs to a session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import bool_, resource
from xlalite.framework.graph.errors import ElementTypeError, OutOfRangeError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import HostContext, HostValue, require_variable
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.gradient_rules import of_one_output

# VarHandleOp: the handle.


def _handle_data(op: Operation) -> HandleData:
    """The variable is called like the operation."""
    return HandleData(op.get_attr("dtype"), op.get_attr("shape"), op.name)


def _handle_infer(op: Operation) -> Sequence[OutputType]:
    return [(resource, TensorShape(()))]


def _handle_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [handle_data_of(op.outputs[0])]


register(
    OpSpec(
        "VarHandleOp",
        _handle_infer,
        attrs=("dtype", "shape"),
        host_kernel=_handle_on_host,
        handle=_handle_data,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host="it names a variable; compiled code takes the variable itself as an argument",
    )
)


# ReadVariableOp(resource).


def _read_infer(op: Operation) -> Sequence[OutputType]:
    data = handle_data_of(op.inputs[0])
    return [(data.dtype, data.shape)]


def _read_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.read_variable(op, op.inputs[0])]


def _read_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [require_variable(context, op, handle_data_of(op.inputs[0]))]


def _read_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [grad]


register(
    OpSpec(
        "ReadVariableOp",
        _read_infer,
        inputs=("resource",),
        lower=_read_lower,
        host_kernel=_read_on_host,
        gradient=of_one_output(_read_gradient),
        group=None,
        variable_access=VariableAccess.READ,
        gradient_passes_on=True,
    )
)


# VarIsInitializedOp(resource).


def _initialized_infer(op: Operation) -> Sequence[OutputType]:
    return [(bool_, TensorShape(()))]


def _initialized_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.constant(np.bool_(ctx.variable_or_none(op.inputs[0]) is not None))]


def _initialized_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [np.asarray(context.read_variable(handle_data_of(op.inputs[0]).name) is not None)]


register(
    OpSpec(
        "VarIsInitializedOp",
        _initialized_infer,
        inputs=("resource",),
        lower=_initialized_lower,
        host_kernel=_initialized_on_host,
        gradient=None,
        group=None,
        variable_access=VariableAccess.READ,
    )
)


# AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp(resource, value).


def check_update(handle: Tensor, value: Tensor, what: str = "value") -> None:
    """Raises unless `value` may be stored in, or added to, the variable behind `handle`."""
    data = handle_data_of(handle)
    if value.dtype is not data.dtype:
        raise ElementTypeError(
            f"{what} has element type {value.dtype.name}; variable {data.name!r} has {data.dtype.name}"
        )
    if not value.shape.is_compatible_with(data.shape):
        raise ShapeError(f"{what} has shape {value.shape}; variable {data.name!r} has shape {data.shape}")


def _assign_infer(op: Operation) -> Sequence[OutputType]:
    check_update(op.inputs[0], op.inputs[1])
    return []


def _assign_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    ctx.assign_variable(op.inputs[0], inputs[0])
    return []


def _assign_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    data, value = handle_data_of(op.inputs[0]), np.asarray(inputs[1])
    if not data.shape.is_compatible_with(value.shape):
        raise ShapeError(f"assigning to variable {data.name!r}: found shape {value.shape}, expected {data.shape}")
    # A copy: the value may be the caller's array or another operation's result.
    context.assign_variable(data.name, value.copy())
    return []


register(
    OpSpec(
        "AssignVariableOp",
        _assign_infer,
        inputs=("resource", "value"),
        lower=_assign_lower,
        host_kernel=_assign_on_host,
        gradient=None,
        group=None,
        is_stateful=True,
        variable_access=VariableAccess.WRITE,
    )
)


def _declare_modify(name: str, combine: Callable[[Handle, Handle], Handle]) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        current, value = ctx.read_variable(op, op.inputs[0]), inputs[0]
        if value.dims not in (current.dims, ()):
            raise ShapeError(f"value of shape {value.dims} cannot update a variable of shape {current.dims}")
        whole = value if value.dims == current.dims else ctx.builder.broadcast(value, current.dims)
        ctx.assign_variable(op.inputs[0], combine(current, whole))
        return []

    register(
        OpSpec(
            name,
            _assign_infer,
            inputs=("resource", "value"),
            lower=lower,
            gradient=None,
            group=None,
            is_stateful=True,
            variable_access=VariableAccess.MODIFY,
        )
    )


_declare_modify("AssignAddVariableOp", lambda current, value: current + value)
_declare_modify("AssignSubVariableOp", lambda current, value: current - value)


# ResourceCountUpTo(resource): the number that a variable holds, which is one more then; at the limit, the end.


def _count_infer(op: Operation) -> Sequence[OutputType]:
    data = handle_data_of(op.inputs[0])
    return [(data.dtype, data.shape)]


def _count(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    data, limit = handle_data_of(op.inputs[0]), op.get_attr("limit")
    with context.state(op, threading.Lock):
        value = require_variable(context, op, data)
        if value >= limit:
            raise OutOfRangeError(None, op, f"Reached limit of {limit}")
        context.assign_variable(data.name, np.asarray(value + 1, value.dtype))
    return [value]


register(
    OpSpec(
        "ResourceCountUpTo",
        _count_infer,
        inputs=("resource",),
        attrs=("limit",),
        host_kernel=_count,
        gradient=None,
        group=None,
        is_stateful=True,
        variable_access=VariableAccess.MODIFY,
        why_host="it may be the end of the input",
    )
)
