"""Learning rates that follow the number of the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import math as m
from xlalite.ops.functions.array import gather
from xlalite.ops.functions.random_ops import random_normal
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to, promote


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`; the exponent is rounded down with `staircase`."""
    with get_default_graph().name_scope(name or "ExponentialDecay"):
        rate, periods = _rate_and_periods(learning_rate, global_step, decay_steps, staircase)
        return m.multiply(rate, m.pow(_like(decay_rate, rate), periods))


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`; the quotient is rounded down with `staircase`."""
    with get_default_graph().name_scope(name or "NaturalExpDecay"):
        rate, periods = _rate_and_periods(learning_rate, global_step, decay_steps, staircase)
        return m.multiply(rate, m.exp(-_like(decay_rate, rate) * periods))


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`; the quotient is rounded down with `staircase`."""
    with get_default_graph().name_scope(name or "InverseTimeDecay"):
        rate, periods = _rate_and_periods(learning_rate, global_step, decay_steps, staircase)
        return m.divide(rate, 1 + _like(decay_rate, rate) * periods)


def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Tensor:
    """The first value up to the first boundary, which belongs to it, the second up to the second, and so on.

    Raises:
        ShapeError: there is not one value more than there are boundaries.
    """
    if len(values) != len(boundaries) + 1:
        raise ShapeError(
            f"piecewise_constant: {len(values)} values for {len(boundaries)} boundaries, expected one more"
        )
    with get_default_graph().name_scope(name or "PiecewiseConstant"):
        place = convert_to_tensor(x)
        passed = [m.cast(m.greater(place, _like(boundary, place)), "int32") for boundary in boundaries]
        listed = convert_to_tensor(list(values))
        return gather(listed, m.add_n(passed)) if passed else listed[0]


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From `learning_rate` to `end_learning_rate` within `decay_steps`, as a power of what is left.

    With `cycle`, `decay_steps` is multiplied by the smallest whole number that the step does not exceed.
    """
    with get_default_graph().name_scope(name or "PolynomialDecay"):
        rate, step = _rate_and_step(learning_rate, global_step)
        end, length = _like(end_learning_rate, rate), _like(decay_steps, rate)
        if cycle:
            length = length * m.maximum(m.ceil(step / length), 1.0)
        else:
            step = m.minimum(step, length)
        return m.add((rate - end) * m.pow(1 - step / length, _like(power, rate)), end)


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine wave from `learning_rate` to its `alpha`-th part. Loshchilov and Hutter 2016."""
    with get_default_graph().name_scope(name or "CosineDecay"):
        rate, done = _rate_and_fraction(learning_rate, global_step, decay_steps)
        return m.multiply(rate, (1 - alpha) * _half_wave(done) + alpha)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half cosine waves, each `t_mul` times as long as the one before and starting at its `m_mul`-th part."""
    with get_default_graph().name_scope(name or "SGDRDecay"):
        rate, step = _rate_and_step(learning_rate, global_step)
        done = step / _like(first_decay_steps, rate)
        if t_mul == 1:
            restart = m.floor(done)
            done = done - restart
        else:
            # The first i periods are (1 - t^i) / (1 - t) times as long as the first.
            restart = m.floor(m.log(1 - done * (1 - t_mul)) / math.log(t_mul))
            before = m.pow(_like(t_mul, rate), restart)
            done = (done - (1 - before) / (1 - t_mul)) / before
        wave = m.pow(_like(m_mul, rate), restart) * _half_wave(done)
        return m.multiply(rate, (1 - alpha) * wave + alpha)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """`(alpha + linear) * cosine + beta` times the learning rate. Bello et al. 2017."""
    with get_default_graph().name_scope(name or "LinearCosineDecay"):
        rate, done = _rate_and_fraction(learning_rate, global_step, decay_steps)
        return m.multiply(rate, (alpha + 1 - done) * _half_wave(done * (2 * num_periods)) + beta)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """As `linear_cosine_decay`, with normal noise on the linear part, whose variance falls with the steps."""
    with get_default_graph().name_scope(name or "NoisyLinearCosineDecay"):
        rate, done = _rate_and_fraction(learning_rate, global_step, decay_steps)
        step = m.minimum(_rate_and_step(rate, global_step)[1], _like(decay_steps, rate))
        deviation = m.sqrt(initial_variance / m.pow(1 + step, _like(variance_decay, rate)))
        noisy = 1 - done + random_normal([], dtype=rate.dtype) * deviation
        return m.multiply(rate, (alpha + noisy) * _half_wave(done * (2 * num_periods)) + beta)


piecewise_constant_decay = piecewise_constant


def _half_wave(fraction: Tensor) -> Tensor:
    return m.multiply(m.cos(fraction * math.pi) + 1, 0.5)


def _like(value: Any, like: Tensor) -> Tensor:
    return cast_to(promote(value)[0], like.dtype)


def _rate_and_step(learning_rate: Any, global_step: Any) -> tuple[Tensor, Tensor]:
    if global_step is None:
        raise GraphError("a learning rate that decays needs the global step")
    rate = convert_to_tensor(learning_rate)
    return rate, _like(global_step, rate)


def _rate_and_periods(learning_rate: Any, global_step: Any, length: Any, whole: bool) -> tuple[Tensor, Tensor]:
    rate, step = _rate_and_step(learning_rate, global_step)
    periods = m.divide(step, _like(length, rate))
    return rate, m.floor(periods) if whole else periods


def _rate_and_fraction(learning_rate: Any, global_step: Any, length: Any) -> tuple[Tensor, Tensor]:
    """The rate, and how much of the time is over, at most 1."""
    rate, step = _rate_and_step(learning_rate, global_step)
    steps = _like(length, rate)
    return rate, m.divide(m.minimum(step, steps), steps)
