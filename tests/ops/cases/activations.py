"""Derivatives of activations, and functions made of activations and cross entropies."""

import numpy as np
import scipy.special
from ops.cases.case import GradientCase, ValueCase, gradient, gradient_of, value, value_of

from xlalite.ops.functions import nn
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import node

F = np.float32
G = np.array([[-2.5, -1.0, 2.0], [0.5, 1.5, 3.0]], F)
X = np.array([[-2.0, -0.25, 0.5], [7.0, 6.5, 3.0]], F)
EDGES = np.array([-np.inf, -1.0, -0.0, 0.0, 6.0, np.inf], F)
ONES = np.ones_like(EDGES)
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
Z = np.array([[0.0, 1.0, 0.25], [0.5, 1.0, 0.0]], F)
COUNTS = np.array([[0.0, 1.0, 2.0], [5.0, 0.5, 40.0]], F)


def losses(x: np.ndarray, z: np.ndarray, weight: float) -> np.ndarray:
    ones, zeros = np.log(scipy.special.expit(x)), np.log(scipy.special.expit(-x))
    return -(weight * z * ones + (1 - z) * zeros)


def stirling(c: np.ndarray, z: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        full = z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z)
    return np.exp(c) - c * z + np.where(z <= 1, 0, full)


VALUES: list[ValueCase] = [
    value_of("Relu6Grad", G, X, expected=lambda g, x: np.where((x > 0) & (x < 6), g, 0)),
    value(
        "Relu6Grad at the corners",
        lambda g, x: node("Relu6Grad", [g, x]),
        ONES,
        EDGES,
        expected=lambda g, x: F([0, 0, 0, 0, 0, 0]),
    ),
    value_of("LeakyReluGrad", G, X, attrs={"alpha": 0.2}, expected=lambda g, x: np.where(x > 0, g, F(0.2) * g)),
    value_of("EluGrad", G, X / 8, expected=lambda g, y: np.where(y < 0, g * (y + 1), g)),
    value_of("SeluGrad", G, X / 8, expected=lambda g, y: np.where(y < 0, g * (y + SCALE * ALPHA), g * SCALE)),
    value_of("SoftplusGrad", G, X, expected=lambda g, x: g * scipy.special.expit(x)),
    value(
        "SoftplusGrad far out",
        lambda g, x: node("SoftplusGrad", [g, x]),
        ONES,
        EDGES,
        expected=lambda g, x: scipy.special.expit(x),
    ),
    value_of("SoftsignGrad", G, X, expected=lambda g, x: g / (1 + np.abs(x)) ** 2),
    value_of("BiasAddV1", X, X[0], expected=np.add),
    value("crelu", nn.crelu, X, expected=lambda x: np.maximum(np.concatenate([x, -x], -1), 0)),
    value("swish", nn.swish, X, expected=lambda x: x * scipy.special.expit(x)),
    value("log_sigmoid", nn.log_sigmoid, 20 * X, expected=lambda x: -np.logaddexp(0, -x)),
    value("relu_layer", nn.relu_layer, X, G.T.copy(), G[0, :2], expected=lambda x, w, b: np.maximum(x @ w + b, 0)),
    value("zero_fraction", nn.zero_fraction, Z, expected=lambda x: F(2 / 6)),
    value("zero_fraction of integers", nn.zero_fraction, np.int32([0, 3]), expected=lambda x: F(0.5)),
    value(
        "weighted_cross_entropy_with_logits",
        lambda x, z: nn.weighted_cross_entropy_with_logits(z, x, 2.5),
        X,
        Z,
        expected=lambda x, z: losses(x, z, 2.5),
    ),
    value(
        "log_poisson_loss", lambda c, z: nn.log_poisson_loss(z, c), G, COUNTS, expected=lambda c, z: np.exp(c) - c * z
    ),
    value(
        "log_poisson_loss in full",
        lambda c, z: nn.log_poisson_loss(z, c, compute_full_loss=True),
        G,
        COUNTS,
        expected=stirling,
    ),
]

G64, X64, BELOW = G.astype(np.float64), X.astype(np.float64) * 0.9, X.astype(np.float64) / 8
GRADIENTS: list[GradientCase] = [
    *(gradient_of(name, G64, BELOW) for name in ("EluGrad", "SeluGrad")),
    *(gradient_of(name, G64, X64) for name in ("Relu6Grad", "SoftplusGrad", "SoftsignGrad")),
    gradient_of("BiasAddV1", X64, G64[0]),
    gradient_of("LeakyReluGrad", G64, X64, attrs={"alpha": 0.2}),
    *(
        gradient(f"second derivative of {build.__name__}", lambda x, build=build: gradients(build(x), x)[0] * G64, X64)
        for build in (nn.elu, nn.selu, nn.softplus, nn.softsign, nn.swish)
    ),
    gradient(
        "weighted_cross_entropy_with_logits",
        lambda x: nn.weighted_cross_entropy_with_logits(constant(Z.astype(np.float64)), x, 2.5),
        X64,
    ),
]
