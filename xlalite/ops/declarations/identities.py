"""Operations that hand values on: placeholders, identities, gradient barriers, and those that only order others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import DType, bool_
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.ops.helpers.declare import ELEMENTWISE, MOVEMENT, declare_outputs
from xlalite.ops.helpers.gradient_rules import of_one_output
from xlalite.ops.helpers.shape_rules import no_outputs, require_type


def _pass_on(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return inputs


def _pass_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return inputs


def _like_inputs(op: Operation) -> Sequence[OutputType]:
    return [(tensor.dtype, tensor.shape) for tensor in op.inputs]


def _same_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    return grads


# Placeholder: a value that must be fed.


def _placeholder_infer(op: Operation) -> Sequence[OutputType]:
    dtype: DType = op.get_attr("dtype")
    return [(dtype, op.get_attr("shape"))]


def _placeholder_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    output = op.outputs[0]
    raise InvalidArgumentError(
        None,
        op,
        f"placeholder {op.name!r} needs a value: feed one of element type {output.dtype.name} and shape {output.shape}",
    )


register(
    OpSpec(
        "Placeholder",
        _placeholder_infer,
        attrs=("dtype", "shape"),
        host_kernel=_placeholder_on_host,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host="its value is fed",
    )
)


def _default_infer(op: Operation) -> Sequence[OutputType]:
    value, shape = op.inputs[0], op.get_attr("shape")
    shape.assert_is_compatible_with(value.shape)
    return [(value.dtype, shape)]


register(
    OpSpec(
        "PlaceholderWithDefault",
        _default_infer,
        inputs=("input",),
        attrs=("shape",),
        lower=_pass_on,
        host_kernel=_pass_on_host,
        gradient=_same_gradient,
        group=MOVEMENT,
        passes_on=True,
        is_default=True,
    )
)


# Identity and IdentityN.


declare_outputs(
    "Identity",
    ("input",),
    _like_inputs,
    _pass_on,
    _same_gradient,
    ELEMENTWISE,
    host_kernel=_pass_on_host,
    passes_on=True,
    gradient_passes_on=True,
)
declare_outputs(
    "IdentityN",
    ("input*",),
    _like_inputs,
    _pass_on,
    _same_gradient,
    ELEMENTWISE,
    host_kernel=_pass_on_host,
    passes_on=True,
)


def _barrier_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """What is behind it is not merged with, or moved before, what is in front of it."""
    held = ctx.builder.op("opt-barrier", (ctx.builder.tuple(inputs),))
    return [held[i] for i in range(len(inputs))]


declare_outputs(
    "XlaOptimizationBarrier",
    ("input*",),
    _like_inputs,
    _barrier_lower,
    _same_gradient,
    None,
    host_kernel=_pass_on_host,
)
declare_outputs(
    "StopGradient", ("input",), _like_inputs, _pass_on, None, ELEMENTWISE, host_kernel=_pass_on_host, passes_on=True
)


def _prevented(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    raise LookupError(f"gradients through {op.name!r} are forbidden: {op.get_attr('message') or 'PreventGradient'}")


declare_outputs(
    "PreventGradient",
    ("input",),
    _like_inputs,
    _pass_on,
    of_one_output(_prevented),
    MOVEMENT,
    attrs=("message",),
    host_kernel=_pass_on_host,
    passes_on=True,
)


# NoOp, ControlTrigger: only their control dependencies matter.


def _nothing(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return ()


for _name in ("NoOp", "ControlTrigger"):
    register(
        OpSpec(_name, no_outputs, lower=_pass_on, host_kernel=_nothing, gradient=None, group=MOVEMENT, is_stateful=True)
    )


# Assert(condition, data...): fails the step when the condition is false.


def _assert_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {bool_}, "condition")
    return []


def _assert_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    condition, *data = inputs
    if not np.asarray(condition).all():
        shown = " ".join(f"[{value}]" for value in data)
        raise InvalidArgumentError(None, op, f"assertion failed: {shown}")
    return ()


register(
    OpSpec(
        "Assert",
        _assert_infer,
        inputs=("condition", "data*"),
        host_kernel=_assert_on_host,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host="it stops the step from the host when its condition is false",
    )
)
