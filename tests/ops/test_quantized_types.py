"""Quantised element types: integers that stand for numbers of a range, and are no integers to count with."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.dtypes import QUANTIZED_TYPES, result_type
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.hlo.errors import ShapeError

X = np.float32([[-1.5, 0.25], [2.0, 0.5]])


def test_they_are_types_of_their_own() -> None:
    assert {each.name for each in QUANTIZED_TYPES} == {"qint8", "quint8", "qint16", "quint16", "qint32"}
    assert tf.qint8.is_quantized
    assert not tf.qint8.is_integer
    assert not tf.int8.is_quantized
    assert tf.qint8 != tf.int8
    assert tf.as_dtype(np.int8) is tf.int8
    assert tf.as_dtype("quint16") is tf.quint16
    assert (tf.quint16.min, tf.quint16.max, tf.qint32.size) == (0, 65535, 4)
    with pytest.raises(TypeError, match="no common element type for qint8 and int8"):
        result_type(tf.qint8, tf.int8)


def test_they_are_moved_fed_and_fetched(run: Any) -> None:
    fed = tf.placeholder(tf.qint8, [2, 2])
    turned = tf.transpose(tf.concat([fed, tf.constant([[5, 6]], tf.qint8)], 0))
    numbers = tf.cast(turned, tf.int32)
    assert turned.dtype is tf.qint8
    feeds = {fed: np.int8([[1, 2], [3, -4]])}
    for found in (run([turned, numbers], feeds), run.compiled([turned, numbers], feeds)):
        for each in found:
            np.testing.assert_array_equal(each, [[1, 3, 5], [2, -4, 6]])
        assert [each.dtype for each in found] == [np.int8, np.int32]
    with pytest.raises(ElementTypeError, match="qint8"):
        tf.add(fed, fed)


def test_graphs_keep_them(graph: Any) -> None:
    integers, low, high = tf.quantize(X, -2.0, 2.0, tf.quint8, name="there")
    tf.dequantize(integers, low, high, name="back")
    tf.dequantize(tf.constant([0, 255], tf.quint8, name="kept"), -1.0, 1.0, name="ends")
    message = graph.as_graph_def()
    nodes = {node.name: node.attr for node in message.node}
    assert [nodes["there"]["T"].type, nodes["back"]["T"].type, nodes["kept"]["value"].tensor.dtype] == [12, 12, 12]
    with tf.Graph().as_default() as other:
        tf.import_graph_def(message, name="")
        with tf.Session(graph=other) as session:
            found, ends = session.run(["back:0", "ends:0"])
    np.testing.assert_allclose(found, X, atol=2 / 255)
    np.testing.assert_array_equal(ends, [-1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "MAX"}, "mode must be one of MIN_COMBINED, MIN_FIRST, SCALED, found 'MAX'"),
        ({"round_mode": "HALF_TO_EVEN"}, "HALF_TO_EVEN needs mode SCALED, found MIN_COMBINED"),
        ({"T": tf.int8}, "T must be a quantised type, found int8"),
    ],
)
def test_what_means_nothing_is_refused(graph: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tf.quantize(X, -1.0, 1.0, **{"T": tf.qint8, **options})


def test_ranges_fit_their_dimension(graph: Any) -> None:
    with pytest.raises(ShapeError, match="3"):
        tf.quantize(X, np.zeros(3), np.ones(3), tf.qint8, axis=1)
    with pytest.raises(ShapeError, match="min_range"):
        tf.quantize(X, np.zeros(2), np.ones(2), tf.qint8)
    with pytest.raises(InvalidArgumentError, match="dtype must be float32 or bfloat16, found float64"):
        tf.dequantize(tf.constant([1], tf.qint8), 0.0, 1.0, dtype=tf.float64)
    with pytest.raises(ElementTypeError, match="int8"):
        tf.dequantize(np.int8([1]), 0.0, 1.0)
