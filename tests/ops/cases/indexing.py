"""Index vectors, masks, scatters and stitching."""

from typing import Any

import numpy as np
from ops.cases.case import gradient, value

from xlalite.ops.declarations.strided_slice import MASKS
from xlalite.ops.functions import array as a, selection as s
from xlalite.ops.functions.sparse import sparse_to_dense
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import node, operation

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)
PAIRS = np.int32([[0, 2], [1, 0], [1, 2]])


def scattered(shape: tuple[int, ...], indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = np.zeros(shape, updates.dtype)
    np.add.at(result, tuple(indices.T), updates)
    return result


def backwards(x: Any, part: Any) -> Any:
    """`x` with its rows [2:0:-2] replaced."""
    index = [constant([value]) for value in (2, 0, -2)]
    return node("TensorStridedSliceUpdate", [x, *index, part], dict.fromkeys(MASKS, 0))


def changed(ufunc: np.ufunc | None, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result = x.copy()
    if ufunc is None:
        result[tuple(indices.T)] = updates
    else:
        ufunc.at(result, tuple(indices.T), updates)
    return result


def batch(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    return np.stack([row[at] for row, at in zip(x, i, strict=True)])


ROWS = np.int32([[2], [0], [2]])
UPDATES = np.arange(3 * 4, dtype=F).reshape(3, 4) - 5

VALUES = [
    value(
        "TensorStridedSliceUpdate",
        backwards,
        np.arange(5),
        np.array([-1]),
        expected=lambda x, u: np.array([0, 1, -1, 3, 4]),
    ),
    value("EnsureShape", lambda x: a.ensure_shape(x, [None, 3, 4]), X, expected=lambda x: x),
    value(
        "ConcatOffset",
        lambda: operation("ConcatOffset", [*map(constant, (-1, [2, 3], [2, 1], [2, 5]))]).outputs[2],
        expected=lambda: np.int32([0, 4]),
    ),
    value(
        "GatherNd of nothing",
        s.gather_nd,
        np.zeros((0, 3), F),
        np.zeros((0, 2), np.int32),
        expected=lambda x, at: np.zeros(0, F),
    ),
    value(
        "SparseToDense",
        lambda at, x: sparse_to_dense(at, [4], x, -1.0),
        np.int64([3, 1]),
        np.float32([5, 7]),
        expected=lambda at, x: np.float32([-1, 7, -1, 5]),
    ),
    value(
        "SparseToDense of one number",
        lambda at, x: sparse_to_dense(at, [2, 2], x, 0.0),
        np.int32([[0, 1], [1, 0]]),
        np.float32(5),
        expected=lambda at, x: np.float32([[0, 5], [5, 0]]),
    ),
    value("GatherNd", s.gather_nd, X, PAIRS, expected=lambda x, i: x[tuple(i.T)]),
    value("GatherNd of elements", s.gather_nd, X, np.int64([[[1, 2, 3]]]), expected=lambda x, i: F([[23]])),
    value("GatherNd of everything", s.gather_nd, X, np.zeros((2, 0), np.int32), expected=lambda x, i: np.stack([x, x])),
    value(
        "GatherNd with batches",
        lambda x, i: s.gather_nd(x, i, batch_dims=1),
        X,
        np.int32([[[2], [0]], [[1], [1]]]),
        expected=lambda x, i: batch(x, i[..., 0]),
    ),
    value("GatherNd batch_gather", s.batch_gather, X, np.int32([[2, 0], [1, 1]]), expected=batch),
    value(
        "GatherNd gather along a later axis with batches",
        lambda x, i: a.gather(x, i, axis=2, batch_dims=1),
        X,
        np.int32([[3, 0], [1, 1]]),
        expected=lambda x, i: np.stack([row[:, at] for row, at in zip(x, i, strict=True)]),
    ),
    value("GatherNd nothing of nothing", s.gather_nd, X[:0], PAIRS[:0], expected=lambda x, i: x[:0, 0]),
    value("GatherV2 nothing of nothing", a.gather, X[:0], np.int32([[], []]), expected=lambda x, i: x[i]),
    value("GatherNd clamps", s.gather_nd, X, np.int32([[5, -1]]), expected=lambda x, i: x[1, 0][None]),
    value(
        "ScatterNd",
        lambda i, u: s.scatter_nd(i, u, [4, 4]),
        ROWS,
        UPDATES,
        expected=lambda i, u: scattered((4, 4), i, u),
    ),
    value(
        "ScatterNd skips what is out of range",
        lambda i, u: s.scatter_nd(i, u, [2]),
        np.int32([[7], [1]]),
        F([1, 2]),
        expected=lambda i, u: F([0, 2]),
    ),
    *(
        value(
            name, lambda x, i, u, name=name: node(name, [x, i, u]), X[0], ROWS, UPDATES,
            expected=lambda x, i, u, ufunc=ufunc: changed(ufunc, x, i, u),
        )
        for name, ufunc in (
            ("TensorScatterAdd", np.add), ("TensorScatterSub", np.subtract), ("TensorScatterMax", np.maximum),
            ("TensorScatterMin", np.minimum),
        )
    ),
    value(
        "TensorScatterUpdate",
        s.tensor_scatter_nd_update,
        X[0],
        np.int32([[2], [0], [1]]),
        UPDATES,
        expected=lambda x, i, u: changed(None, x, i, u),
    ),
    value(
        "DynamicStitch",
        lambda x, y: s.dynamic_stitch([[3, 0], [[1], [3]]], [x, y]),
        F([[1, 2], [3, 4]]),
        F([[[5, 6]], [[7, 8]]]),
        expected=lambda x, y: F([[3, 4], [5, 6], [0, 0], [7, 8]]),
    ),
    value(
        "ParallelDynamicStitch",
        lambda x: node("ParallelDynamicStitch", [constant([1, 0]), x], {"N": 1}),
        F([1, 2]),
        expected=lambda x: x[::-1],
    ),
    value(
        "Range sequence_mask",
        lambda n: s.sequence_mask(n, 4, np.float32),
        np.int32([[1, 3], [0, 9]]),
        expected=lambda n: (np.arange(4) < n[..., None]).astype(F),
    ),
    value(
        "FloorMod unravel_index",
        lambda i: s.unravel_index(i, [3, 4, 5]),
        np.int32([0, 17, 59]),
        expected=lambda i: np.array(np.unravel_index(i, (3, 4, 5)), np.int32),
    ),
]  # fmt: skip

WEIGHTS = np.arange(1.0, 13.0).reshape(3, 4)
Y = np.linspace(-1, 2, 12).reshape(3, 4)
Z = np.array([[0.3, -0.6, 2.5, 0.1], [1.4, -2.0, 0.7, 0.2], [-0.4, 0.9, -1.1, 1.6]])

GRADIENTS = [
    gradient("EnsureShape", lambda x: a.ensure_shape(x, [None]) ** 2, np.float64([1, -3])),
    gradient(
        "SparseToDense",
        lambda x, rest: sparse_to_dense(np.int32([[0, 1], [1, 0]]), [2, 2], x, rest) ** 2,
        np.float64([5, -2]),
        np.float64(3),
    ),
    gradient(
        "SparseToDense of one number",
        lambda x, rest: sparse_to_dense(np.int32([2, 0]), [3], x, rest) ** 2,
        np.float64(5),
        np.float64(3),
    ),
    gradient("GatherNd", lambda x: s.gather_nd(x, [[0, 1], [2, 3], [0, 1]]) * [1.0, 2.0, 3.0], Y),
    gradient("GatherNd of rows", lambda x: s.gather_nd(x, [[2], [0], [2]]) * WEIGHTS, Y),
    gradient(
        "GatherNd with batches", lambda x: s.batch_gather(x, np.int32([[1], [1], [3]])) * [[1.0], [2.0], [3.0]], Y
    ),
    gradient("ScatterNd", lambda u: s.scatter_nd([[2], [0], [2]], u, [3, 4]) * WEIGHTS, Y),
    gradient("TensorScatterUpdate", lambda x, u: s.tensor_scatter_nd_update(x, [[2], [0]], u) * WEIGHTS, Y, Z[:2]),
    gradient("TensorScatterAdd", lambda x, u: s.tensor_scatter_nd_add(x, [[2], [2]], u) * WEIGHTS, Y, Z[:2]),
    gradient("TensorScatterSub", lambda x, u: s.tensor_scatter_nd_sub(x, [[2], [0]], u) * WEIGHTS, Y, Z[:2]),
    gradient("TensorScatterMax", lambda x, u: s.tensor_scatter_nd_max(x, [[2], [0], [2]], u) * WEIGHTS, Y, Z),
    gradient("TensorScatterMin", lambda x, u: s.tensor_scatter_nd_min(x, [[2], [0], [2]], u) * WEIGHTS, Y, Z),
    gradient("DynamicStitch", lambda x, y: s.dynamic_stitch([[3, 0], [1, 2]], [x[:2], y[:2]]) * 2, Y, Z),
    gradient("ParallelDynamicStitch", lambda x: node("ParallelDynamicStitch", [constant([2, 0, 1]), x], {"N": 1}), Y),
    gradient("GatherNd twice", lambda x: gradients(s.gather_nd(x, [[0], [0]]) ** 3, x)[0] * WEIGHTS, Y + 3),
    gradient("TensorStridedSliceUpdate", lambda x, u: backwards(x, u) * WEIGHTS, Y, Z[:1]),
]
