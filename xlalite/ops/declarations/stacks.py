"""Stacks, in which the gradients of TensorFlow 1's loops find what the iterations kept. They live for one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import resource
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import HostKernel, InferFunction, OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue


def _made_infer(op: Operation) -> Sequence[OutputType]:
    return [(resource, TensorShape(()))]


def _made(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    handle = np.empty((), object)
    handle[()] = []
    return [handle]


def _pushed_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[1].dtype, op.inputs[1].shape)]


def _pushed(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    _held(inputs[0]).append(np.asarray(inputs[1]))
    return inputs[1:]


def _popped_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("elem_type"), unknown_shape())]


def _popped(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    held = _held(inputs[0])
    if not held:
        raise InvalidArgumentError(None, op, "the stack is empty")
    return [held.pop()]


def _held(handle: HostValue) -> list[Array]:
    held: list[Array] = np.asarray(handle).item()
    return held


def _declare(
    name: str, inputs: tuple[str, ...], attrs: tuple[str, ...], infer: InferFunction, kernel: HostKernel
) -> None:
    register(
        OpSpec(
            name,
            infer,
            inputs=inputs,
            attrs=attrs,
            host_kernel=kernel,
            gradient=None,
            group=None,
            is_stateful=True,
            why_host="it keeps values of earlier iterations",
        )
    )


_declare("StackV2", ("max_size",), ("elem_type",), _made_infer, _made)
_declare("StackPushV2", ("handle", "elem"), (), _pushed_infer, _pushed)
_declare("StackPopV2", ("handle",), ("elem_type",), _popped_infer, _popped)
