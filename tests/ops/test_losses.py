"""Losses as `xlalite.losses` has them, beside their formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import losses

LABELS = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5]], np.float32)
FOUND = np.array([[0.3, 0.9, 0.4], [0.2, 0.6, 0.8]], np.float32)
WEIGHTS = np.array([[2.0], [0.0]], np.float32)


def pairwise(labels: np.ndarray, found: np.ndarray) -> np.ndarray:
    difference = found - labels
    pairs = difference[:, :, None] - difference[:, None, :]
    return (pairs**2).sum((1, 2)) / 6


CASES: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray]]] = {
    "absolute_difference": (losses.absolute_difference, lambda z, p: np.abs(p - z)),
    "hinge_loss": (losses.hinge_loss, lambda z, p: np.maximum(0, 1 - (2 * z - 1) * p)),
    "huber_loss": (
        lambda z, p, w=1.0: losses.huber_loss(z, p, w, delta=0.3),
        lambda z, p: np.where(np.abs(p - z) <= 0.3, (p - z) ** 2 / 2, 0.3 * np.abs(p - z) - 0.045),
    ),
    "log_loss": (losses.log_loss, lambda z, p: -z * np.log(p + 1e-7) - (1 - z) * np.log(1 - p + 1e-7)),
    "cosine_distance": (
        lambda z, p, w=1.0: losses.cosine_distance(z, p, axis=1, weights=w),
        lambda z, p: 1 - (z * p).sum(1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_follow_their_formulas(name: str, run: Any, graph: Graph) -> None:
    build, formula = CASES[name]
    expected = formula(LABELS, FOUND)
    np.testing.assert_allclose(run(build(LABELS, FOUND)), expected.mean(), rtol=1e-5)
    # Of the second example nothing counts.
    np.testing.assert_allclose(run(build(LABELS, FOUND, WEIGHTS)), 2 * expected[0].mean(), rtol=1e-5)
    assert len(losses.get_losses()) == 2


def test_pairs_of_differences(run: Any) -> None:
    found = run(losses.mean_pairwise_squared_error(LABELS, FOUND))
    np.testing.assert_allclose(found, pairwise(LABELS, FOUND).sum(), rtol=1e-5)
    weighted = run(losses.mean_pairwise_squared_error(LABELS, FOUND, WEIGHTS))
    np.testing.assert_allclose(weighted, 2 * pairwise(LABELS, FOUND)[0], rtol=1e-5)


def test_shapes_of_labels_and_predictions_must_agree(graph: Graph) -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        losses.huber_loss(LABELS[:, :2], FOUND)
    with pytest.raises(GraphError, match="an axis is needed"):
        losses.cosine_distance(LABELS, FOUND)
