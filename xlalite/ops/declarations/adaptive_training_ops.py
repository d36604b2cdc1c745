"""Update steps that scale each element by its own history, and those that pull elements towards zero."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.ops.declarations.training_ops import Update, declare_update
from xlalite.ops.helpers.declare import FLOAT_OR_COMPLEX

# Adagrad and Adadelta.


def _adagrad(step: Update) -> Sequence[Handle]:
    """Accum += grad^2; var -= lr * grad / sqrt(accum). Duchi et al. 2011."""
    variable, accumulator = step.variables
    if step.switch:
        accumulator = accumulator + step.grad * step.grad
    return [variable - step.grad * step.scalars[0] * step.apply("rsqrt", accumulator), accumulator]


def _adagrad_v2(step: Update) -> Sequence[Handle]:
    """Accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."""
    variable, accumulator = step.variables
    rate, epsilon = step.scalars
    if step.switch:
        accumulator = accumulator + step.grad * step.grad
    return [variable - step.grad * rate / (step.apply("sqrt", accumulator) + epsilon), accumulator]


def _adagrad_da(step: Update) -> Sequence[Handle]:
    """The minimiser of the sum of all gradients so far, with both penalties. Duchi et al. 2011, section 5."""
    _, total, squares = step.variables
    rate, l1, l2, count = step.scalars
    total = total + step.grad
    squares = squares + step.grad * step.grad
    divisor = l2 * count * rate + step.apply("sqrt", squares)
    return [-(_shrunk(step, total, l1 * count) * rate) / divisor, total, squares]


def _adadelta(step: Update) -> Sequence[Handle]:
    """Steps as large as the running mean of the steps before. Zeiler 2012."""
    variable, squares, changes = step.variables
    rate, rho, epsilon = step.scalars
    squares = squares * rho + step.grad * step.grad * (1 - rho)
    change = step.apply("sqrt", changes + epsilon) * step.apply("rsqrt", squares + epsilon) * step.grad
    return [variable - change * rate, squares, changes * rho + change * change * (1 - rho)]


# RMSProp.


def _rms_prop(step: Update) -> Sequence[Handle]:
    """Ms is the running mean of grad^2; mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom."""
    variable, mean_square, accumulator = step.variables
    rate, rho, momentum, epsilon = step.scalars
    mean_square = mean_square + (step.grad * step.grad - mean_square) * (1 - rho)
    scaled = step.grad * rate * step.apply("rsqrt", mean_square + epsilon)
    accumulator = accumulator * momentum + scaled
    return [variable - accumulator, mean_square, accumulator]


def _centered_rms_prop(step: Update) -> Sequence[Handle]:
    """As RMSProp, with the variance of the gradient in place of its mean square. Graves 2013."""
    variable, mean, mean_square, accumulator = step.variables
    rate, rho, momentum, epsilon = step.scalars
    mean_square = mean_square + (step.grad * step.grad - mean_square) * (1 - rho)
    mean = mean + (step.grad - mean) * (1 - rho)
    scaled = step.grad * rate * step.apply("rsqrt", mean_square - mean * mean + epsilon)
    accumulator = accumulator * momentum + scaled
    return [variable - accumulator, mean, mean_square, accumulator]


# Proximal steps and FTRL.


def _shrunk(step: Update, x: Handle, threshold: Handle) -> Handle:
    """`x` nearer to zero by the threshold, and zero within it; NaN stays."""
    left = step.apply("abs", x) - threshold
    return step.b.select(step.b.compare(left, 0, "LE"), step.b.zeros(x.shape), step.apply("sign", x) * left)


def _proximal(step: Update, rate: Handle, l1: Handle, l2: Handle) -> Handle:
    """A step of gradient descent, then the nearest point under both penalties. Duchi and Singer 2009."""
    return _shrunk(step, step.variables[0] - step.grad * rate, l1 * rate) / (l2 * rate + 1)


def _proximal_gradient_descent(step: Update) -> Sequence[Handle]:
    return [_proximal(step, *step.scalars)]


def _proximal_adagrad(step: Update) -> Sequence[Handle]:
    rate, l1, l2 = step.scalars
    accumulator = step.variables[1] + step.grad * step.grad
    return [_proximal(step, step.apply("rsqrt", accumulator) * rate, l1, l2), accumulator]


def _ftrl(step: Update) -> Sequence[Handle]:
    rate, l1, l2, power = step.scalars
    return _follow_the_leader(step, step.grad, (rate, l1, l2, power))


def _ftrl_v2(step: Update) -> Sequence[Handle]:
    rate, l1, l2, shrinkage, power = step.scalars
    return _follow_the_leader(step, step.grad + step.variables[0] * shrinkage * 2, (rate, l1, l2, power))


def _follow_the_leader(step: Update, linear_grad: Handle, scalars: tuple[Handle, ...]) -> Sequence[Handle]:
    """The minimiser of a quadratic bound on all losses so far, with both penalties. McMahan et al. 2013."""
    variable, accumulator, linear = step.variables
    rate, l1, l2, power = scalars
    accumulated = accumulator + step.grad * step.grad
    before, after = (step.apply("power", x, step.b.broadcast(-power, x.dims)) for x in (accumulator, accumulated))
    if step.switch:
        linear = linear + linear_grad * rate - (after - before) * variable
        threshold, divisor = l1 * rate, after + l2 * rate * 2
    else:
        linear = linear + linear_grad - (after - before) / rate * variable
        threshold, divisor = l1, after / rate + l2 * 2
    return [-_shrunk(step, linear, threshold) / divisor, accumulated, linear]


_SLOTS = ("update_slots",)
_RMS = ("lr", "rho", "momentum", "epsilon", "grad")
_PENALTIES = ("lr", "l1", "l2")
_LINEAR = ("multiply_linear_by_lr",)
declare_update("Adagrad", ("var", "accum"), ("lr", "grad"), _adagrad, _SLOTS, types=FLOAT_OR_COMPLEX)
declare_update("AdagradV2", ("var", "accum"), ("lr", "epsilon", "grad"), _adagrad_v2, _SLOTS, types=FLOAT_OR_COMPLEX)
declare_update(
    "AdagradDA",
    ("var", "gradient_accumulator", "gradient_squared_accumulator"),
    ("grad", *_PENALTIES, "global_step"),
    _adagrad_da,
    integers=("global_step",),
)
declare_update(
    "Adadelta", ("var", "accum", "accum_update"), ("lr", "rho", "epsilon", "grad"), _adadelta, types=FLOAT_OR_COMPLEX
)
declare_update("RMSProp", ("var", "ms", "mom"), _RMS, _rms_prop, types=FLOAT_OR_COMPLEX)
declare_update("CenteredRMSProp", ("var", "mg", "ms", "mom"), _RMS, _centered_rms_prop, types=FLOAT_OR_COMPLEX)
declare_update("ProximalGradientDescent", ("var",), ("alpha", "l1", "l2", "grad"), _proximal_gradient_descent)
declare_update("ProximalAdagrad", ("var", "accum"), (*_PENALTIES, "grad"), _proximal_adagrad)
declare_update("Ftrl", ("var", "accum", "linear"), ("grad", *_PENALTIES, "lr_power"), _ftrl, _LINEAR)
declare_update(
    "FtrlV2", ("var", "accum", "linear"), ("grad", *_PENALTIES, "l2_shrinkage", "lr_power"), _ftrl_v2, _LINEAR
)
