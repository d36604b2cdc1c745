"""Largest elements, sorting, sequences turned round, reflection."""

import numpy as np
from ops.cases.case import gradient, value

from xlalite.ops.functions import array as a, ordering as o
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import node, operation

F = np.float32
X = F([[3, -1, 4, 1, -5], [9, 2, -6, 5, 3.5]])
LENGTHS = np.int32([3, 0])


def turned(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return np.stack([np.r_[row[:n][::-1], row[n:]] for row, n in zip(x, lengths, strict=True)])


VALUES = [
    value("TopKV2", lambda x: o.top_k(x, 2).values, X, expected=lambda x: -np.sort(-x)[:, :2]),
    value("TopKV2 indices", lambda x: o.top_k(x, 3).indices, X, expected=lambda x: np.argsort(-x)[:, :3]),
    value(
        "TopK", lambda x: operation("TopK", [x], {"k": 1, "sorted": True}).outputs[0], X,
        expected=lambda x: x.max(1, keepdims=True),
    ),
    value("_SortRows", o.sort, X, expected=np.sort),
    value("_SortRows of a column", lambda x: o.sort(x, 0, "DESCENDING"), X, expected=lambda x: -np.sort(-x, 0)),
    value("_SortRows of integers", o.sort, np.int32([2**31 - 1, -(2**31), 0]), expected=np.sort),
    value("_SortRows argsort", lambda x: o.argsort(x, 0), X, expected=lambda x: np.argsort(x, 0)),
    value(
        "InTopKV2",
        lambda x, t: o.in_top_k(x, t, 2),
        X,
        np.int32([2, 3]),
        expected=lambda x, t: np.array([True, True]),
    ),
    value(
        "InTopK",
        lambda x, t: node("InTopK", [x, t], {"k": 1}),
        np.concatenate([X, F([[np.nan, 1, 2, 3, 4]] * 2)]),
        np.int64([1, 0, 0, 9]),
        expected=lambda x, t: np.array([False, True, False, False]),
    ),
    value(
        "LowerBound",
        lambda x, v: o.searchsorted(x, v),
        np.sort(X),
        F([[-9, 3, 9], [2, 2.5, 10]]),
        expected=lambda x, v: np.stack([np.searchsorted(*each) for each in zip(x, v, strict=True)]),
    ),
    value(
        "UpperBound",
        lambda x, v: o.searchsorted(x, v, "right", np.int64),
        np.sort(X)[0],
        F([-9, 3, 9]),
        expected=lambda x, v: np.searchsorted(x, v, "right"),
    ),
    value(
        "Bucketize",
        lambda x: o.bucketize(x, [0.0, 3.0, 5.0]),
        X,
        expected=lambda x: np.digitize(x, [0, 3, 5]),
    ),
    value("NthElement", lambda x: o.nth_element(x, 1), X, expected=lambda x: np.sort(x)[:, 1]),
    value(
        "NthElement reversed", lambda x: o.nth_element(x, 1, reverse=True), X, expected=lambda x: np.sort(x)[:, -2]
    ),
    value("ReverseSequence", lambda x, n: a.reverse_sequence(x, n, 1), X, LENGTHS, expected=turned),
    value(
        "ReverseSequence along the first dimension",
        lambda x, n: a.reverse_sequence(x, n, seq_axis=0, batch_axis=2),
        np.arange(24, dtype=F).reshape(3, 4, 2),
        np.int64([2, 3]),
        expected=lambda x, n: np.stack([np.r_[x[:2, :, 0][::-1], x[2:, :, 0]], x[::-1, :, 1]], -1),
    ),
    value("Roll", lambda x: a.roll(x, [2, -1], [1, 0]), X, expected=lambda x: np.roll(x, (2, -1), (1, 0))),
    value("Roll at run time", lambda x, n: a.roll(x, n, 1), X, np.int32(-8), expected=lambda x, n: np.roll(x, n, 1)),
    value(
        "MirrorPad",
        lambda x: a.pad(x, [[1, 0], [3, 2]], "REFLECT"),
        X,
        expected=lambda x: np.pad(x, [[1, 0], [3, 2]], "reflect"),
    ),
    value(
        "MirrorPad with the ends",
        lambda x: a.pad(x, [[2, 1], [0, 5]], "symmetric"),
        X,
        expected=lambda x: np.pad(x, [[2, 1], [0, 5]], "symmetric"),
    ),
    value(
        "MirrorPadGrad",
        lambda x: node("MirrorPadGrad", [x, a.constant([[1, 1]])], {"mode": "REFLECT"}),
        F([1, 2, 3, 4, 5]),
        expected=lambda x: F([2, 3 + 1 + 5, 4]),
    ),
    value(
        "BroadcastTo meshgrid",
        lambda x, y: a.meshgrid(x, y)[1],
        F([1, 2, 3]),
        F([4, 5]),
        expected=lambda x, y: np.meshgrid(x, y)[1],
    ),
    value(
        "BroadcastTo meshgrid of matrix indices",
        lambda x, y: a.meshgrid(x, y, [7.0], indexing="ij")[0],
        F([1, 2, 3]),
        F([4, 5]),
        expected=lambda x, y: np.meshgrid(x, y, [7.0], indexing="ij")[0],
    ),
]  # fmt: skip

Y = np.array([[0.3, -1.0, 0.4, 1.0, -0.5], [0.9, 2.0, -0.6, 0.5, 3.5]])
WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0]])

GRADIENTS = [
    gradient("TopKV2", lambda x: o.top_k(x, 2).values * WEIGHTS, Y),
    gradient(
        "TopKV2 of rank 3",
        lambda x: o.top_k(a.reshape(x, [2, 1, 5]), 2).values * WEIGHTS[:, None],
        Y,
    ),
    gradient("TopK", lambda x: operation("TopK", [x], {"k": 2, "sorted": True}).outputs[0] * WEIGHTS, Y),
    gradient("_SortRows", lambda x: o.sort(x, 0) * Y, Y),
    gradient("NthElement", lambda x: o.nth_element(x, 2) * [1.0, 2.0], Y),
    gradient("ReverseSequence", lambda x: a.reverse_sequence(x, LENGTHS, 1) * Y, Y),
    gradient("Roll", lambda x: a.roll(x, 2, 1) * Y, Y),
    gradient("MirrorPad", lambda x: a.pad(x, [[1, 1], [2, 3]], "REFLECT") * np.arange(40.0).reshape(4, 10), Y),
    gradient(
        "MirrorPadGrad",
        lambda x: gradients(a.pad(x, [[0, 1], [2, 0]], "SYMMETRIC") ** 2, x)[0] * Y,
        Y,
    ),
]
