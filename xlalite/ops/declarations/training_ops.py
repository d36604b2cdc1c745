"""The update steps of optimisers: each changes variables in place, given a gradient."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES, DType, int32, int64
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.declarations.variable_ops import check_update
from xlalite.ops.helpers.declare import FLOAT_OR_COMPLEX
from xlalite.ops.helpers.row_updates import update_rows
from xlalite.ops.helpers.shape_rules import require_rank, require_scalar, require_type


@dataclass(frozen=True, slots=True)
class Update:
    """What an update rule sees.

    Attributes:
        b: Builds HLO.
        variables: Current values of the variable and its slots.
        scalars: Hyper-parameters.
        grad: The gradient.
        switch: The operation's only attribute, such as whether to look ahead.
    """

    b: Builder
    variables: tuple[Handle, ...]
    scalars: tuple[Handle, ...]
    grad: Handle
    switch: bool

    def apply(self, opcode: str, *operands: Handle) -> Handle:
        """A function of elements."""
        return self.b.op(opcode, operands)


UpdateRule = Callable[[Update], Sequence[Handle]]


def declare_update(
    name: str,
    handles: tuple[str, ...],
    inputs: tuple[str, ...],
    rule: UpdateRule,
    attrs: tuple[str, ...] = (),
    integers: tuple[str, ...] = (),
    types: Collection[DType] = FLOATING_TYPES,
) -> None:
    """Declares `ResourceApply<name>` with `handles` first and, among `inputs`, one called `grad`.

    The others are scalars, of the variable's element type but for `integers`, which are int64. For
    `ResourceSparseApply<name>`, the gradient's rows belong to those rows of the variable that `indices` behind it name.
    """
    split = inputs.index("grad") + 1
    _declare_one(f"ResourceApply{name}", handles, inputs, rule, attrs, integers, types)
    by_rows = (*inputs[:split], "indices", *inputs[split:])
    _declare_one(f"ResourceSparseApply{name}", handles, by_rows, rule, attrs, integers, types)


def _declare_one(
    name: str,
    handles: tuple[str, ...],
    inputs: tuple[str, ...],
    rule: UpdateRule,
    attrs: tuple[str, ...],
    integers: tuple[str, ...],
    types: Collection[DType],
) -> None:
    count = len(handles)

    def infer(op: Operation) -> Sequence[OutputType]:
        data = handle_data_of(op.inputs[0])
        if data.dtype not in types:
            expected = "floating point" if types is FLOATING_TYPES else "floating point or complex"
            raise ElementTypeError(f"variable {data.name!r} has element type {data.dtype.name}; expected {expected}")
        for slot in op.inputs[1:count]:
            if not handle_data_of(slot).shape.is_compatible_with(data.shape):
                raise ShapeError(
                    f"slot {handle_data_of(slot).name!r} does not have the shape {data.shape} of {data.name!r}"
                )
        named = dict(zip(inputs, op.inputs[count:], strict=True))
        _check_gradient(op.inputs[0], named.pop("grad"), named.pop("indices", None))
        for what, tensor in named.items():
            require_scalar(tensor, what)
            require_type(tensor, {int64 if what in integers else data.dtype}, what)
        return []

    def lower(ctx: LoweringContext, op: Operation, arrays: tuple[Handle, ...]) -> Sequence[Handle]:
        b = ctx.builder
        variables = tuple(ctx.read_variable(op, handle) for handle in op.inputs[:count])
        named = dict(zip(inputs, arrays, strict=True))
        grad, indices = named.pop("grad"), named.pop("indices", None)
        scalars = tuple(b.convert(array, grad.dtype) for array in named.values())
        switch = bool(attrs) and bool(op.get_attr(attrs[0]))
        own = variables[0].dims if indices is None else (*indices.dims, *variables[0].dims[1:])
        if grad.dims != own:
            raise ShapeError(f"a gradient of shape {grad.dims} cannot update a variable of shape {variables[0].dims}")
        if indices is None:
            updated = rule(Update(b, variables, scalars, grad, switch))
        else:
            updated = update_rows(
                b, variables, grad, indices, lambda rows, sums: rule(Update(b, rows, scalars, sums, switch))
            )
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


def _check_gradient(handle: Tensor, grad: Tensor, indices: Tensor | None) -> None:
    if indices is None:
        check_update(handle, grad, "the gradient")
        return
    data = handle_data_of(handle)
    require_type(grad, {data.dtype}, "the gradient")
    require_type(indices, {int32, int64}, "indices")
    require_rank(indices, lambda rank: rank == 1, "a vector", "indices")
    if data.shape.dims is not None and indices.shape.dims is not None:
        grad.shape.assert_is_compatible_with(TensorShape([*indices.shape.dims, *data.shape.dims[1:]]))


def _gradient_descent(step: Update) -> Sequence[Handle]:
    """Var -= alpha * delta."""
    return [step.variables[0] - step.grad * step.scalars[0]]


def _momentum(step: Update) -> Sequence[Handle]:
    """Accum = momentum * accum + grad; var -= lr * accum, or lr * (grad + momentum * accum) with look-ahead."""
    variable, accumulator = step.variables
    rate, momentum = step.scalars
    accumulator = accumulator * momentum + step.grad
    change = step.grad + accumulator * momentum if step.switch else accumulator
    return [variable - change * rate, accumulator]


def _keras_momentum(step: Update) -> Sequence[Handle]:
    """Accum = momentum * accum - lr * grad; var += accum, or momentum * accum - lr * grad with look-ahead."""
    variable, accumulator = step.variables
    rate, momentum = step.scalars
    down = step.grad * rate
    accumulator = accumulator * momentum - down
    return [variable + (accumulator * momentum - down if step.switch else accumulator), accumulator]


def _adam(step: Update) -> Sequence[Handle]:
    """M and v are running means of grad and grad^2; var -= lr_t * m / (sqrt(v) + epsilon). Kingma and Ba, section 2."""
    variable, m, v = step.variables
    beta1_power, beta2_power, rate, beta1, beta2, epsilon = step.scalars
    grad = step.grad
    rate_now = rate * step.apply("sqrt", 1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    direction = m * beta1 + grad * (1 - beta1) if step.switch else m
    return [variable - direction * rate_now / (step.apply("sqrt", v) + epsilon), m, v]


def _adam_with_amsgrad(step: Update) -> Sequence[Handle]:
    """As Adam, but v never shrinks: vhat is its maximum so far. Reddi et al. 2018."""
    *given, largest = step.variables
    _, m, v = _adam(Update(step.b, tuple(given), step.scalars, step.grad, False))
    beta1_power, beta2_power, rate, _, _, epsilon = step.scalars
    rate_now = rate * step.apply("sqrt", 1 - beta2_power) / (1 - beta1_power)
    largest = step.apply("maximum", largest, v)
    return [given[0] - m * rate_now / (step.apply("sqrt", largest) + epsilon), m, v, largest]


def _ada_max(step: Update) -> Sequence[Handle]:
    """V = max(beta2 * v, |grad|); var -= lr / (1 - beta1^t) * m / (v + epsilon). Kingma and Ba, section 7.1."""
    variable, m, v = step.variables
    beta1_power, rate, beta1, beta2, epsilon = step.scalars
    m = m + (step.grad - m) * (1 - beta1)
    v = step.apply("maximum", v * beta2, step.apply("abs", step.grad))
    return [variable - m * (rate / (1 - beta1_power)) / (v + epsilon), m, v]


def _sign_agreement(step: Update, m: Handle, decay: Handle) -> Handle:
    return step.apply("sign", step.grad) * step.apply("sign", m) * decay


def _add_sign(step: Update) -> Sequence[Handle]:
    """Var -= lr * (alpha + decay * sign(grad) * sign(m)) * grad. Bello et al. 2017."""
    variable, m = step.variables
    rate, alpha, decay, beta = step.scalars
    m = m * beta + step.grad * (1 - beta)
    return [variable - (_sign_agreement(step, m, decay) + alpha) * step.grad * rate, m]


def _power_sign(step: Update) -> Sequence[Handle]:
    """Var -= lr * exp(logbase * decay * sign(grad) * sign(m)) * grad. Bello et al. 2017."""
    variable, m = step.variables
    rate, log_base, decay, beta = step.scalars
    m = m * beta + step.grad * (1 - beta)
    scale = step.apply("exponential", _sign_agreement(step, m, decay) * log_base)
    return [variable - scale * step.grad * rate, m]


_NESTEROV = ("use_nesterov",)
_ADAM = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad")
declare_update("GradientDescent", ("var",), ("alpha", "grad"), _gradient_descent, types=FLOAT_OR_COMPLEX)
declare_update("Momentum", ("var", "accum"), ("lr", "grad", "momentum"), _momentum, _NESTEROV, types=FLOAT_OR_COMPLEX)
declare_update(
    "KerasMomentum", ("var", "accum"), ("lr", "grad", "momentum"), _keras_momentum, _NESTEROV, types=FLOAT_OR_COMPLEX
)
declare_update("Adam", ("var", "m", "v"), _ADAM, _adam, _NESTEROV, types=FLOAT_OR_COMPLEX)
declare_update("AdamWithAmsgrad", ("var", "m", "v", "vhat"), _ADAM, _adam_with_amsgrad)
declare_update("AdaMax", ("var", "m", "v"), ("beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"), _ada_max)
declare_update("AddSign", ("var", "m"), ("lr", "alpha", "sign_decay", "beta", "grad"), _add_sign)
declare_update("PowerSign", ("var", "m"), ("lr", "logbase", "sign_decay", "beta", "grad"), _power_sign)
