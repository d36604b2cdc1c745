"""Batch normalisation, its derivatives, statistics in parts, and local response normalisation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value
from ops.cases.convolutions import array, first, last, small

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import normalization as n
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation

F = np.float32
X, GRAD = array(3, 4, 2, 5), array(3, 4, 2, 5, seed=2.0)
SCALE, OFFSET, MEAN, VARIANCE = array(5) + 2, array(5, seed=2.0), array(5, seed=3.0), array(5, seed=4.0) ** 2
COUNT = 3 * 4 * 2
EPSILON = 0.01


def normalised(x: np.ndarray, scale: Any, offset: Any, mean: Any = None, variance: Any = None) -> np.ndarray:
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes) if mean is None else mean
    variance = x.var(axes) if variance is None else variance
    return (x - mean) / np.sqrt(variance + EPSILON) * scale + offset


def norm(version: str, output: int, is_training: bool, data_format: str = "NHWC", share: float = 1.0) -> Any:
    attrs = {
        "epsilon": EPSILON,
        "data_format": data_format,
        "is_training": is_training,
        "exponential_avg_factor": share,
    }
    return lambda *t: operation(f"FusedBatchNorm{version}", t, attrs).outputs[output]


def norm_grad(version: str, output: int, is_training: bool, data_format: str = "NHWC") -> Callable[..., Tensor]:
    attrs = {"epsilon": EPSILON, "data_format": data_format, "is_training": is_training}

    def build(*t: Tensor) -> Tensor:
        extra = [constant(np.zeros(0, F))] if version == "V3" else []
        return operation(f"FusedBatchNormGrad{version}", [*t, *extra], attrs).outputs[output]

    return build


def derivative(output: int, is_training: bool) -> Callable[..., np.ndarray]:
    """The derivative as a matrix of differences of `normalised` in f64."""

    def expected(grad: Any, x: Any, scale: Any, mean: Any, variance: Any) -> np.ndarray:
        inputs = [each.astype(np.float64) for each in (x, scale, 0 * scale)]
        fixed = () if is_training else (mean.astype(np.float64), variance.astype(np.float64))
        slope = np.zeros_like(inputs[output])
        for index in np.ndindex(slope.shape):
            moved = [[each.copy() for each in inputs] for _ in range(2)]
            moved[0][output][index] += 1e-5
            moved[1][output][index] -= 1e-5
            high, low = (normalised(*each, *fixed) for each in moved)
            slope[index] = ((high - low) * grad).sum() / 2e-5
        return slope.astype(F)

    return expected


def response(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    squares = [(wide[..., max(0, k - 2) : k + 3] ** 2).sum(-1) for k in range(x.shape[-1])]
    return wide * (1.5 + 0.3 * np.stack(squares, -1)) ** -0.75


def response_grad(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    slope = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[index] = 1e-5
        slope[index] = ((response(x + step) - response(x - step)) * g).sum() / 2e-5
    return slope


LRN = {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": 0.75}
FIVE = (X, SCALE, OFFSET, MEAN, VARIANCE)
GRADED = (GRAD, X, SCALE, X.mean((0, 1, 2)), X.var((0, 1, 2)))
CONSTANT = (GRAD, X, SCALE, MEAN, VARIANCE)
AXES = (0, 1, 2)
WEIGHTS = np.array([[1.0], [2.0], [0.5]], F)

VALUES: list[ValueCase] = [
    *(
        value(
            f"FusedBatchNorm{version} in {'training' if training else 'inference'}",
            norm(version, 0, training),
            *FIVE,
            expected=lambda x, s, o, *rest, training=training: normalised(x, s, o, *(() if training else rest)),
            tolerance=5e-6,
        )
        for version in ("", "V2", "V3")
        for training in (True, False)
    ),
    value(
        "FusedBatchNormV3 channels first",
        norm("V3", 0, True, "NCHW"),
        first(X),
        *FIVE[1:],
        expected=lambda x, s, o, *_: first(normalised(last(x), s, o)),
        tolerance=5e-6,
    ),
    value(
        "FusedBatchNormV3 of volumes",
        norm("V3", 0, True, "NDHWC"),
        X[None],
        *FIVE[1:],
        expected=lambda x, s, o, *_: normalised(x, s, o),
        tolerance=5e-6,
    ),
    value(
        "FusedBatchNormV3 of half precision",
        norm("V3", 0, True),
        X.astype(np.float16),
        *FIVE[1:],
        expected=lambda x, s, o, *_: normalised(x.astype(F), s, o).astype(np.float16),
        tolerance=2e-3,
    ),
    value("FusedBatchNormV3 mean", norm("V3", 1, True), *FIVE, expected=lambda x, *_: x.mean(AXES)),
    value("FusedBatchNormV3 variance", norm("V3", 2, True), *FIVE, expected=lambda x, *_: x.var(AXES, ddof=1)),
    value("FusedBatchNormV3 variance of the batch", norm("V3", 4, True), *FIVE, expected=lambda x, *_: x.var(AXES)),
    value("FusedBatchNormV3 reserve", norm("V3", 5, True), *FIVE, expected=lambda *_: F([])),
    value("FusedBatchNormV3 kept mean", norm("V3", 1, False), *FIVE, expected=lambda *five: five[3]),
    value(
        "FusedBatchNormV3 running variance",
        norm("V3", 2, True, share=0.25),
        *FIVE,
        expected=lambda x, s, o, m, v: 0.75 * v + 0.25 * x.var(AXES, ddof=1),
    ),
    value(
        "fused_batch_norm",
        lambda x, s, o: n.fused_batch_norm(x, s, o, epsilon=EPSILON)[0],
        *FIVE[:3],
        expected=normalised,
        tolerance=5e-6,
    ),
    *(
        value(
            f"FusedBatchNormGrad{version} output {output} in {'training' if training else 'inference'}",
            norm_grad(version, output, training),
            *(GRADED if training else CONSTANT),
            expected=derivative(output, training),
            tolerance=2e-5,
        )
        for version, output, training in (
            ("", 0, True),
            ("V2", 1, True),
            ("V3", 0, True),
            ("V3", 2, True),
            ("V3", 0, False),
            ("V3", 1, False),
            ("V3", 2, False),
        )
    ),
    value(
        "FusedBatchNormGradV3 channels first",
        norm_grad("V3", 0, False, "NCHW"),
        first(GRAD),
        first(X),
        *CONSTANT[2:],
        expected=lambda g, x, *rest: first(derivative(0, False)(last(g), last(x), *rest)),
        tolerance=2e-5,
    ),
    value(
        "batch_norm_with_global_normalization",
        lambda x, s, o, m, v: n.batch_norm_with_global_normalization(x, m, v, o, s, EPSILON, True),
        *FIVE,
        expected=normalised,
        tolerance=5e-6,
    ),
    value("LRN", lambda x: n.local_response_normalization(x, 2, 1.5, 0.3, 0.75), 3 * X, expected=response),
    value(
        "LRNGrad",
        lambda g, x, y: node("LRNGrad", [g, x, y], LRN),
        GRAD,
        3 * X,
        response(3 * X).astype(F),
        expected=response_grad,
        tolerance=1e-5,
    ),
    value(
        "normalize_moments",
        lambda x: n.normalize_moments(*n.sufficient_statistics(x, [0, 2], shift=0.5))[1],
        X,
        expected=lambda x: x.var((0, 2)),
    ),
    value("sufficient_statistics", lambda x: n.sufficient_statistics(x, [0, 2])[0], X, expected=lambda x: F(6)),
    value(
        "weighted_moments",
        lambda x, w: n.weighted_moments(x, [0], w)[1],
        X[:, 0, 0],
        WEIGHTS,
        expected=lambda x, w: np.average((x - np.average(x, 0, w[:, 0])) ** 2, 0, w[:, 0]),
    ),
]

SMALL = (small(2, 2, 1, 2), small(2) + 2, small(2))
RESERVED = (small(2) / 2, small(2) ** 2)


def with_statistics(build: Callable[..., Tensor], *statistics: np.ndarray) -> Callable[..., Tensor]:
    return lambda *t: build(*t, *map(constant, statistics))


def grad_of_data(version: str, training: bool) -> GradientCase:
    """Statistics of the batch are functions of the data, so the first derivative is taken of the whole."""
    extra = [np.zeros(0)] if version == "V3" else []

    def build(grad: Tensor, x: Tensor, scale: Tensor) -> Tensor:
        attrs = {"epsilon": EPSILON, "data_format": "NHWC", "is_training": training}
        statistics = [constant(each) for each in RESERVED]
        if training:
            averages = {"exponential_avg_factor": 1.0}
            forward = operation("FusedBatchNormV3", [x, scale, scale, *statistics], {**attrs, **averages})
            statistics = list(forward.outputs[3:5])
        inputs = [grad, x, scale, *statistics, *map(constant, extra)]
        found = operation(f"FusedBatchNormGrad{version}", inputs, attrs).outputs
        return found[0] * np.array([1.0, 2.0]) + found[1] * np.array([3.0, 4.0]) + found[2]

    return gradient(f"FusedBatchNormGrad{version} {training}", build, small(2, 2, 1, 2), SMALL[0] + 0.1, SMALL[1])


GRADIENTS: list[GradientCase] = [
    *(
        gradient(f"FusedBatchNorm{version} {training}", with_statistics(norm(version, 0, training), *RESERVED), *SMALL)
        for version in ("", "V2", "V3")
        for training in (True, False)
    ),
    *(grad_of_data(version, training) for version in ("", "V2", "V3") for training in (True, False)),
    gradient("LRN", lambda x: n.local_response_normalization(x, 1, 1.5, 0.3, 0.75), small(1, 2, 2, 4)),
]
