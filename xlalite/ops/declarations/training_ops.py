"""The update steps of optimisers: each changes variables in place, given a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlalite.framework.graph.dtypes import FLOATING_TYPES
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import handle_data_of
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations.variable_ops import check_update
from xlalite.ops.helpers.shape_rules import require_scalar


@dataclass(frozen=True, slots=True)
class _Update:
    """What an update rule sees.

    Attributes:
        b: Builds HLO.
        variables: Current values of the variable and its slots.
        scalars: Hyper-parameters.
        grad: The gradient.
        use_nesterov: Whether to look ahead.
    """

    b: Builder
    variables: tuple[Handle, ...]
    scalars: tuple[Handle, ...]
    grad: Handle
    use_nesterov: bool


UpdateRule = Callable[[_Update], Sequence[Handle]]


def _declare(
    name: str, handles: tuple[str, ...], inputs: tuple[str, ...], rule: UpdateRule, attrs: tuple[str, ...]
) -> None:
    """Declares an update with `handles` first and, among `inputs`, one called `grad`; the others are scalars."""
    count = len(handles)
    grad_position = count + inputs.index("grad")

    def infer(op: Operation) -> Sequence[OutputType]:
        data = handle_data_of(op.inputs[0])
        if data.dtype not in FLOATING_TYPES:
            raise ElementTypeError(
                f"variable {data.name!r} has element type {data.dtype.name}; expected floating point"
            )
        for slot in op.inputs[1:count]:
            if not handle_data_of(slot).shape.is_compatible_with(data.shape):
                raise ShapeError(
                    f"slot {handle_data_of(slot).name!r} does not have the shape {data.shape} of {data.name!r}"
                )
        check_update(op.inputs[0], op.inputs[grad_position], "the gradient")
        for position in range(count, len(op.inputs)):
            if position != grad_position:
                require_scalar(op.inputs[position], op.spec.inputs[position])
        return []

    def lower(ctx: LoweringContext, op: Operation, arrays: tuple[Handle, ...]) -> Sequence[Handle]:
        variables = tuple(ctx.read_variable(op, handle) for handle in op.inputs[:count])
        grad = arrays[grad_position - count]
        if grad.dims != variables[0].dims:
            raise ShapeError(f"a gradient of shape {grad.dims} cannot update a variable of shape {variables[0].dims}")
        scalars = tuple(array for i, array in enumerate(arrays) if i != grad_position - count)
        use_nesterov = bool(attrs) and bool(op.get_attr("use_nesterov"))
        updated = rule(_Update(ctx.builder, variables, scalars, grad, use_nesterov))
        for handle, value in zip(op.inputs[:count], updated, strict=True):
            ctx.assign_variable(handle, value)
        return []

    register(
        OpSpec(
            name,
            infer,
            inputs=(*handles, *inputs),
            attrs=attrs,
            lower=lower,
            gradient=None,
            group=None,
            is_stateful=True,
            variable_access=VariableAccess.MODIFY,
        )
    )


def _gradient_descent(step: _Update) -> Sequence[Handle]:
    """Var -= alpha * delta."""
    return [step.variables[0] - step.grad * step.scalars[0]]


def _momentum(step: _Update) -> Sequence[Handle]:
    """Accum = momentum * accum + grad; var -= lr * accum, or lr * (grad + momentum * accum) with look-ahead."""
    variable, accumulator = step.variables
    rate, momentum = step.scalars
    accumulator = accumulator * momentum + step.grad
    change = step.grad + accumulator * momentum if step.use_nesterov else accumulator
    return [variable - change * rate, accumulator]


def _adam(step: _Update) -> Sequence[Handle]:
    """M and v are running means of grad and grad^2; var -= lr_t * m / (sqrt(v) + epsilon). Kingma and Ba, section 2."""
    variable, m, v = step.variables
    beta1_power, beta2_power, rate, beta1, beta2, epsilon = step.scalars
    b, grad = step.b, step.grad
    rate_now = rate * b.op("sqrt", (1 - beta2_power,)) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    direction = m * beta1 + grad * (1 - beta1) if step.use_nesterov else m
    return [variable - direction * rate_now / (b.op("sqrt", (v,)) + epsilon), m, v]


_declare("ResourceApplyGradientDescent", ("var",), ("alpha", "grad"), _gradient_descent, ())
_declare("ResourceApplyMomentum", ("var", "accum"), ("lr", "grad", "momentum"), _momentum, ("use_nesterov",))
_declare(
    "ResourceApplyAdam",
    ("var", "m", "v"),
    ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
    _adam,
    ("use_nesterov",),
)
