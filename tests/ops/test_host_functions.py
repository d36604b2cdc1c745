"""Python functions, printing and checks in graphs; figures over many steps."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError


def test_python_functions_are_called_with_arrays(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    doubled = tf.py_func(lambda v: v * 2, [x], tf.float32)
    several = tf.py_func(lambda v: (v.sum(), [b"a", "b"]), [x], [tf.float32, tf.string])
    seen: list[Any] = []
    effect = tf.py_func(seen.append, [x], [])
    wrong = tf.py_func(lambda v: v.astype(np.float64), [x], tf.float32)
    foreign = tf.py_func(lambda v: v.astype(v.dtype.newbyteorder()), [x], tf.float32)
    with tf.Session() as session:
        found, (total, words), _ = session.run([doubled, several, effect], {x: [1, 2]})
        assert found.tolist() == [2, 4]
        assert total == 3
        assert words.tolist() == [b"a", b"b"]
        assert seen[0].tolist() == [1, 2]
        assert session.run(foreign * 2, {x: [1, 2]}).tolist() == [2, 4]
        with pytest.raises(InvalidArgumentError, match="element type float64, expected float32"):
            session.run(wrong, {x: [1]})


def test_printing_hands_its_input_on(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    x = tf.Variable([1.0, 2.0, 3.0, 4.0])
    shown = tf.Print(x, [x, tf.constant("text")], "values: ", first_n=2, summarize=2)
    (gradient,) = tf.gradients(shown * 2, [x])
    text = tf.print("x is", x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            assert session.run(shown).tolist() == [1, 2, 3, 4]
        assert session.run(gradient).tolist() == [2, 2, 2, 2]
        session.run(text)
    assert capsys.readouterr().err == "values: [1.0 2.0 ...][text]\n" * 2 + "x is [1. 2. 3. 4.]\n"


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda x: tf.assert_equal(x, 2), 2, 3),
        (lambda x: tf.assert_none_equal(x, 2), 3, 2),
        (lambda x: tf.assert_less(x, 2), 1, 2),
        (lambda x: tf.assert_less_equal(x, 2), 2, 3),
        (lambda x: tf.assert_greater(x, 2), 3, 2),
        (lambda x: tf.assert_greater_equal(x, 2), 2, 1),
        (lambda x: tf.assert_positive(x), 1, 0),
        (lambda x: tf.assert_negative(x), -1, 0),
        (lambda x: tf.assert_non_negative(x), 0, -1),
        (lambda x: tf.assert_non_positive(x), 0, 1),
        (lambda x: tf.assert_near(x, 1.0), 1 + 1e-7, 1.1),
    ],
)
def test_checks_fail_the_step_or_at_once(check: Any, good: float, bad: float, graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([check(x)]):
        y = tf.identity(x)
    with tf.Session() as session:
        session.run(y, {x: [good]})
        with pytest.raises(InvalidArgumentError, match="assert_"):
            session.run(y, {x: [good, bad]})
    check(np.float32([good]))
    with pytest.raises(InvalidArgumentError, match="assert_"):
        check(np.float32([bad]))


def test_ranks_and_types_are_checked_where_they_are_known(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    tf.assert_rank(x, 2)
    tf.assert_rank_at_least(x, 1)
    tf.assert_rank_in(x, [1, 2])
    tf.assert_type(x, tf.float32)
    with pytest.raises(ShapeError, match="assert_rank: 'Placeholder:0' has shape"):
        tf.assert_rank(x, 3)
    with pytest.raises(ElementTypeError, match="expected integers"):
        tf.assert_integer(x)
    with pytest.raises(ShapeError, match="expected a scalar"):
        tf.assert_scalar(x)
    unknown = tf.placeholder(tf.float32)
    with tf.Session() as session:
        session.run(tf.assert_rank(unknown, 1), {unknown: [1.0]})
        with pytest.raises(InvalidArgumentError):
            session.run(tf.assert_rank(unknown, 1), {unknown: 1.0})


LABELS = np.array([1, 0, 1, 1, 0, 1])
PREDICTED = np.array([1, 1, 0, 1, 0, 1])
WEIGHTS = np.array([1, 2, 1, 0.5, 1, 1])


def weighed(condition: np.ndarray) -> float:
    return float((condition * WEIGHTS).sum())


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("accuracy", weighed(LABELS == PREDICTED) / WEIGHTS.sum()),
        ("precision", weighed(LABELS & PREDICTED) / weighed(PREDICTED)),
        ("recall", weighed(LABELS & PREDICTED) / weighed(LABELS)),
        ("true_positives", weighed(LABELS & PREDICTED)),
        ("false_positives", weighed((1 - LABELS) & PREDICTED)),
        ("true_negatives", weighed((1 - LABELS) & (1 - PREDICTED))),
        ("false_negatives", weighed(LABELS & (1 - PREDICTED))),
        ("mean_absolute_error", weighed(LABELS != PREDICTED) / WEIGHTS.sum()),
        ("mean_squared_error", weighed(LABELS != PREDICTED) / WEIGHTS.sum()),
        ("root_mean_squared_error", np.sqrt(weighed(LABELS != PREDICTED) / WEIGHTS.sum())),
    ],
)
def test_figures_add_up_over_batches(metric: str, expected: float, graph: Graph) -> None:
    labels, predicted = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    weights = tf.placeholder(tf.float32, [None])
    value, update = getattr(tf.metrics, metric)(labels, predicted, weights, metrics_collections=["figures"])
    assert tf.get_collection("figures") == [value]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(value) == 0
        for part in (slice(0, 4), slice(4, 6)):
            last = session.run(update, {labels: LABELS[part], predicted: PREDICTED[part], weights: WEIGHTS[part]})
        np.testing.assert_allclose(session.run(value), expected, rtol=1e-6)
        np.testing.assert_allclose(last, expected, rtol=1e-6)


def test_the_cosine_distance_is_what_is_collected(graph: Graph) -> None:
    found = tf.metrics.mean_cosine_distance(
        [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], 1, None, ["figures"], ["updates"]
    )
    assert (tf.get_collection("figures"), tf.get_collection("updates")) == ([found[0]], [found[1]])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(found[1]) == session.run(found[0]) == 0.5


def test_means_areas_and_confusions(graph: Graph) -> None:
    scores = np.float32([0.1, 0.4, 0.35, 0.8])
    truth = np.array([0, 0, 1, 1])
    figures = {
        "mean": tf.metrics.mean([1.0, 2.0, 6.0]),
        "auc": tf.metrics.auc(truth, scores),
        "pr": tf.metrics.auc(truth, scores, curve="PR"),
        "iou": tf.metrics.mean_iou([0, 0, 1, 1], [0, 1, 1, 1], 3),
        "per class": tf.metrics.mean_per_class_accuracy([0, 0, 1, 1], [0, 1, 1, 1], 2),
        "below": tf.metrics.percentage_below([1.0, 2.0, 3.0, 4.0], 3.0),
        "tensor": tf.metrics.mean_tensor([1.0, 3.0]),
        "relative": tf.metrics.mean_relative_error([2.0, 4.0], [1.0, 4.0], [2.0, 4.0]),
        "precision": tf.metrics.precision_at_thresholds(truth, scores, [0.3, 0.5]),
        "recall": tf.metrics.recall_at_thresholds(truth, scores, [0.3, 0.5]),
    }
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        found = session.run({name: update for name, (_, update) in figures.items()})
    assert found["mean"] == 3
    np.testing.assert_allclose(found["auc"], 0.75, atol=0.01)
    assert 0.7 < found["pr"] < 0.9
    np.testing.assert_allclose(found["iou"], (0.5 + 2 / 3) / 2, rtol=1e-6)
    assert found["per class"] == 0.75
    assert found["below"] == 0.5
    assert found["tensor"].tolist() == [1, 3]
    assert found["relative"] == 0.25
    np.testing.assert_allclose(found["precision"], [2 / 3, 1], rtol=1e-5)
    np.testing.assert_allclose(found["recall"], [1, 0.5], rtol=1e-5)
