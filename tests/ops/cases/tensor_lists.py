"""Lists of tensors as operations, and loops over elements."""

import numpy as np
from ops.cases.case import gradient, value

import xlalite as tf
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation

F = np.float32
X = np.arange(12, dtype=F).reshape(3, 4) / 7
FIXED = {"resize_if_index_out_of_bounds": False}
OPEN = -1


def reserved(shape: object, count: int) -> object:
    return node("TensorListReserve", [constant(shape), constant(count)], {"element_dtype": tf.float32})


def pushed(*items: object) -> object:
    found = node("EmptyTensorList", [constant(OPEN), constant(-1)], {"element_dtype": tf.as_dtype(items[0].dtype)})
    for item in items:
        found = node("TensorListPushBack", [found, item])
    return found


VALUES = [
    value(
        "TensorListReserve",
        lambda x: node("TensorListSetItem", [reserved([4], 2), constant(1), x[0]], FIXED),
        X,
        expected=lambda x: np.stack([x[0] * 0, x[0]]),
    ),
    value(
        "TensorListSetItem into a blank list",
        lambda x, i: node("TensorListSetItem", [reserved(OPEN, 3), i, x[1]], FIXED),
        X,
        np.int32(2),
        expected=lambda x, i: np.stack([x[0] * 0, x[0] * 0, x[1]]),
    ),
    value(
        "TensorListGetItem",
        lambda x, i: node("TensorListGetItem", [x, i, constant(OPEN)], {"element_dtype": tf.float32}),
        X,
        np.int32(1),
        expected=lambda x, i: x[i],
    ),
    value(
        "TensorListGather",
        lambda x: node("TensorListGather", [x, constant([2, 0]), constant(OPEN)], {"element_dtype": tf.float32}),
        X,
        expected=lambda x: x[[2, 0]],
    ),
    value("TensorListFromTensor", lambda x: TensorArray(tf.float32, 3).unstack(x).flow, X, expected=lambda x: x),
    value("TensorListStack", lambda x: TensorArray(flow=x).stack(), X, expected=lambda x: x),
    value("TensorListLength", lambda x: node("TensorListLength", [x]), X, expected=lambda x: 3),
    value(
        "TensorListElementShape",
        lambda x: node("TensorListElementShape", [x], {"shape_type": tf.int64}),
        X,
        expected=lambda x: [4],
    ),
    value("EmptyTensorList", lambda x: pushed(x[0], x[2]), X, expected=lambda x: x[[0, 2]]),
    value("TensorListPushBack", lambda x: pushed(x[1]), X, expected=lambda x: x[1:2]),
    value(
        "TensorListPopBack",
        lambda x: operation("TensorListPopBack", [x, constant(OPEN)], {"element_dtype": tf.float32}).outputs[0],
        X,
        expected=lambda x: x[:2],
    ),
    value(
        "ScatterNd TensorArray.scatter",
        lambda x: TensorArray(tf.float32, 4).scatter([3, 0], x[:2]).stack(),
        X,
        expected=lambda x: np.stack([x[1], x[0] * 0, x[0] * 0, x[0]]),
    ),
    value("Reshape TensorArray.concat", lambda x: TensorArray(flow=x).concat(), X, expected=lambda x: x.ravel()),
    value(
        "Reshape TensorArray.split",
        lambda x: TensorArray(tf.float32, 2).split(x, [1, 1, 1]).read(2),
        X,
        expected=lambda x: x[2:],
    ),
    value("While map_fn", lambda x: tf.map_fn(lambda row: row * 2 + 1, x), X, expected=lambda x: x * 2 + 1),
    value(
        "While map_fn of several",
        lambda x, y: tf.map_fn(lambda pair: tf.reduce_sum(pair[0]) - pair[1], (x, y), dtype=tf.float32),
        X,
        X[:, 0],
        expected=lambda x, y: x.sum(1) - y,
    ),
    value(
        "While scan",
        lambda x: tf.scan(lambda total, row: total + row, x),
        X,
        expected=lambda x: np.cumsum(x, 0),
    ),
    value(
        "While scan from the end with a start",
        lambda x: tf.scan(lambda total, row: total * 2 + row, x, tf.ones([4]), reverse=True),
        X,
        expected=lambda x: np.stack([x[0] + 2 * (x[1] + 2 * (x[2] + 2)), x[1] + 2 * (x[2] + 2), x[2] + 2]),
    ),
    value(
        "While foldl", lambda x: tf.foldl(lambda a, b: a / 2 + b, x), X, expected=lambda x: (x[0] / 2 + x[1]) / 2 + x[2]
    ),
    value(
        "While foldr", lambda x: tf.foldr(lambda a, b: a / 2 + b, x), X, expected=lambda x: (x[2] / 2 + x[1]) / 2 + x[0]
    ),
]

Y = np.cos(np.arange(12.0)).reshape(3, 4)
LIST = {"element_dtype": tf.float64}

GRADIENTS = [
    gradient(
        "TensorListSetItem", lambda x, y: node("TensorListSetItem", [x, constant(1), y], FIXED) * Y, Y * 2, Y[0]
    ),
    gradient("TensorListGetItem", lambda x: node("TensorListGetItem", [x, constant(1), constant(OPEN)], LIST), Y),
    gradient(
        "TensorListGather", lambda x: node("TensorListGather", [x, constant([1, 1]), constant(OPEN)], LIST) * Y[:2], Y
    ),
    gradient("TensorListFromTensor", lambda x: TensorArray(tf.float64, 3).unstack(x).flow * Y, Y),
    gradient("TensorListStack", lambda x: TensorArray(flow=x).stack() * Y, Y),
    gradient("TensorListPushBack", lambda x, y: pushed(x, y, x) * Y, Y[0], Y[1]),
    gradient(
        "TensorListPopBack", lambda x: operation("TensorListPopBack", [x, constant(OPEN)], LIST).outputs[1] * Y[0], Y
    ),
    gradient("While map_fn", lambda x: tf.map_fn(lambda row: row * row, x) * Y, Y),
    gradient("While scan", lambda x: tf.scan(lambda total, row: total * 0.5 + tf.sin(row), x) * Y, Y),
    gradient("While foldr", lambda x: tf.foldr(lambda a, b: a * b + b, x), Y),
    gradient(
        "While of an array that is read and written",
        lambda x: tf.while_loop(
            lambda i, _: i < 3,
            lambda i, ta: (i + 1, ta.write(i, ta.read(tf.maximum(i - 1, 0)) * ta.read(i))),
            [0, TensorArray(flow=x)],
        )[1].stack() * Y,
        Y,
    ),
]  # fmt: skip
