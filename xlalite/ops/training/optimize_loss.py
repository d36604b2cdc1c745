"""`tf.contrib.layers.optimize_loss`: a training step of a loss, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import shape
from xlalite.ops.functions.clipping import clip_by_global_norm, global_norm
from xlalite.ops.functions.control_flow import with_dependencies
from xlalite.ops.functions.math import scalar_mul
from xlalite.ops.functions.random_ops import truncated_normal
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.training import adaptive_optimizers, optimizers, summary
from xlalite.ops.training.global_step import get_global_step
from xlalite.ops.training.initializers import Constant
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.variable import trainable_variables
from xlalite.ops.training.variable_scope import get_variable, variable_scope

Pairs = Sequence[tuple[Any, Any]]

OPTIMIZER_CLS_NAMES: Final[dict[str, Callable[..., Optimizer]]] = {
    "Adagrad": adaptive_optimizers.AdagradOptimizer,
    "Adam": optimizers.AdamOptimizer,
    "Ftrl": adaptive_optimizers.FtrlOptimizer,
    "Momentum": lambda learning_rate: optimizers.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": adaptive_optimizers.RMSPropOptimizer,
    "SGD": optimizers.GradientDescentOptimizer,
}
"""The optimizers that have names; momentum is 0.9."""

OPTIMIZER_SUMMARIES: Final = ("learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm")
"""What can be summarized."""


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """The loss, whose evaluation takes a training step.

    Args:
        loss: A scalar.
        global_step: What counts the steps; the graph's own if it is None.
        learning_rate: A number or a scalar tensor; None if the optimizer knows.
        optimizer: A name of `OPTIMIZER_CLS_NAMES`, a class or function of the learning rate, or an `Optimizer`.
        gradient_noise_scale: The deviation of the truncated normal noise that is added to gradients.
        gradient_multipliers: Factors of gradients, by variable or its name.
        clip_gradients: The largest global norm of the gradients, or a function of pairs of gradient and variable.
        learning_rate_decay_fn: Gives the learning rate from the first one and the step.
        update_ops: What runs before the loss; the collection UPDATE_OPS if it is None.
        variables: What is trained; all that is trainable by default.
        name: The scope.
        summaries: Which of `OPTIMIZER_SUMMARIES` are made.
        colocate_gradients_with_ops: Has no effect.
        increment_global_step: Whether the step is counted.

    Raises:
        ValueError: an argument is none of these, or there is no gradient.
    """
    given, graph = convert_to_tensor(loss), get_default_graph()
    step = get_global_step() if global_step is None else global_step
    unknown = set(summaries or ()) - set(OPTIMIZER_SUMMARIES)
    if unknown:
        raise ValueError(
            f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {sorted(unknown)}."
        )
    shown = ("learning_rate", "loss", "global_gradient_norm") if summaries is None else tuple(summaries)
    with variable_scope(name, "OptimizeLoss"):
        before = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        if before:
            given = with_dependencies(before, given)
        rate = _learning_rate(learning_rate, learning_rate_decay_fn, step)
        if rate is not None and "learning_rate" in shown:
            summary.scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate)
        pairs: Pairs = made.compute_gradients(given, trainable_variables() if variables is None else variables)
        if gradient_noise_scale is not None:
            pairs = [(_noisy(gradient, gradient_noise_scale), variable) for gradient, variable in pairs]
        if gradient_multipliers is not None:
            pairs = _multiplied(pairs, gradient_multipliers)
        if "global_gradient_norm" in shown:
            summary.scalar("global_norm/gradient_norm", global_norm([gradient for gradient, _ in pairs]))
        if clip_gradients is not None:
            pairs = _clipped(pairs, clip_gradients)
            if "global_gradient_norm" in shown:
                summary.scalar("global_norm/clipped_gradient_norm", global_norm([gradient for gradient, _ in pairs]))
        if "loss" in shown:
            summary.scalar("loss", given)
        _summarize(pairs, shown)
        train = made.apply_gradients(pairs, step if increment_global_step else None, name="train")
        return with_dependencies([train], given)


def _summarize(pairs: Pairs, shown: Sequence[str]) -> None:
    for gradient, variable in pairs:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if values is not None and "gradients" in shown:
            summary.histogram(f"gradients/{variable.op.name}", values)
        if values is not None and "gradient_norm" in shown:
            summary.scalar(f"gradient_norm/{variable.op.name}", global_norm([values]))


def _learning_rate(given: Any, decayed: Callable[[Any, Any], Any] | None, step: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, int | float):
        if given < 0:
            raise ValueError(f"Invalid learning_rate {given}.")
        given = get_variable("learning_rate", [], float32, Constant(given), trainable=False)
    if decayed is None:
        return given
    if step is None:
        raise ValueError("global_step is required for learning_rate_decay_fn.")
    return decayed(given, step)


def _optimizer(given: Any, rate: Any) -> Optimizer:
    if isinstance(given, Optimizer):
        return given
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided {given}."
            )
        given = OPTIMIZER_CLS_NAMES[given]
    if not callable(given):
        raise ValueError(f"Unrecognized optimizer: should be string, subclass of Optimizer or callable, got {given}.")
    if isinstance(given, type) and rate is None:
        raise ValueError(f"{given.__name__} needs a learning rate, and learning_rate is None.")
    made = given() if rate is None else given(rate)
    if not isinstance(made, Optimizer):
        raise ValueError(f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}.")
    return made


def _noisy(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(_noisy(gradient.values, scale), gradient.indices, gradient.dense_shape)
    return gradient + truncated_normal(shape(gradient), dtype=gradient.dtype) * scale


def _multiplied(pairs: Pairs, factors: Mapping[Any, Any]) -> Pairs:
    found = []
    for gradient, variable in pairs:
        key = variable if variable in factors else variable.op.name
        if gradient is not None and key in factors:
            gradient = scalar_mul(factors[key], gradient)
        found.append((gradient, variable))
    return found


def _clipped(pairs: Pairs, clip: Any) -> Pairs:
    if callable(clip):
        return list(clip(pairs))
    if not isinstance(clip, int | float):
        raise ValueError(f"Unknown type {type(clip)} for clip_gradients")
    gradients, variables = zip(*pairs, strict=True)
    return list(zip(clip_by_global_norm(gradients, clip)[0], variables, strict=True))
