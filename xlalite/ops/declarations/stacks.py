"""Stacks, in which the gradients of TensorFlow 1's loops find what the iterations kept. They live for one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.handles import handle_of, object_of, one_handle
from xlalite.ops.helpers.shape_rules import no_outputs


def _made(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [handle_of([])]


def _pushed_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[1].dtype, op.inputs[1].shape)]


def _pushed(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    object_of(op, inputs[0], list, "stack").append(np.asarray(inputs[1]))
    return inputs[1:]


def _popped_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("elem_type"), unknown_shape())]


def _popped(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    held: list[Array] = object_of(op, inputs[0], list, "stack")
    if not held:
        raise InvalidArgumentError(None, op, "the stack is empty")
    return [held.pop()]


def _closed(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    object_of(op, inputs[0], list, "stack").clear()
    return ()


_WHY_HOST = "it keeps values of earlier iterations"

declare_on_host("StackV2", ("max_size",), one_handle, _made, _WHY_HOST, attrs=("elem_type",), is_stateful=True)
declare_on_host("StackPushV2", ("handle", "elem"), _pushed_infer, _pushed, _WHY_HOST, is_stateful=True)
declare_on_host("StackPopV2", ("handle",), _popped_infer, _popped, _WHY_HOST, attrs=("elem_type",), is_stateful=True)
declare_on_host("StackCloseV2", ("handle",), no_outputs, _closed, _WHY_HOST, is_stateful=True)
