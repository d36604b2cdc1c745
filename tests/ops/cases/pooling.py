"""Pooling, beside a loop over the positions of the window."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value
from ops.cases.convolutions import array, first, last, same, small

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import pooling as p
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
DIMS, KSIZE, STRIDES = (2, 5, 6, 3), (1, 3, 2, 1), (1, 2, 3, 1)
SAME = {"ksize": KSIZE, "strides": STRIDES, "padding": "SAME"}
VALID = {"ksize": [3, 2], "strides": [1, 2], "padding": "VALID"}
EXPLICIT = {"ksize": [3, 2], "strides": 2, "padding": [[0, 0], [1, 0], [0, 1], [0, 0]]}
PADS = {"SAME": [same(n, k, s) for n, k, s in zip(DIMS, KSIZE, STRIDES, strict=True)]}


def windows(dims: Any, ksize: Any, strides: Any, pads: Any) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each position with the elements of the array below it."""
    counts = [(n + sum(pad) - k) // s + 1 for n, k, s, pad in zip(dims, ksize, strides, pads, strict=True)]
    for place in np.ndindex(*counts):
        starts = [i * s - low for i, s, (low, _) in zip(place, strides, pads, strict=True)]
        yield place, tuple(slice(max(0, b), b + k) for b, k in zip(starts, ksize, strict=True))


def pooled(function: Callable[[np.ndarray], Any], ksize: Any, strides: Any, pads: Any) -> Callable[..., np.ndarray]:
    def expected(x: np.ndarray) -> np.ndarray:
        found = {place: function(x[below]) for place, below in windows(x.shape, ksize, strides, pads)}
        return np.array(list(found.values())).reshape(np.add([*found][-1], 1))

    return expected


def to_mean(dims: Any, ksize: Any, strides: Any, pads: Any) -> Callable[..., np.ndarray]:
    def expected(g: np.ndarray) -> np.ndarray:
        result = np.zeros(dims, g.dtype)
        for place, below in windows(dims, ksize, strides, pads):
            result[below] += g[place] / result[below].size
        return result

    return expected


def chosen(x: np.ndarray, below: tuple[slice, ...]) -> tuple[int, ...]:
    """The first of the largest elements."""
    inside = np.unravel_index(x[below].argmax(), x[below].shape)
    return tuple(int(s.start + i) for s, i in zip(below, inside, strict=True))


def to_largest(ksize: Any, strides: Any, pads: Any) -> Callable[..., np.ndarray]:
    def expected(x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        result = np.zeros_like(x)
        for place, below in windows(x.shape, ksize, strides, pads):
            result[chosen(x, below)] += g[place]
        return result

    return expected


def at_largest(ksize: Any, strides: Any, pads: Any) -> Callable[..., np.ndarray]:
    def expected(x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        result = np.zeros_like(y)
        for place, below in windows(x.shape, ksize, strides, pads):
            result[place] = g[chosen(x, below)]
        return result

    return expected


X = np.round(array(*DIMS), 1)
BELOW = (KSIZE, STRIDES, PADS["SAME"])
Y = pooled(np.max, *BELOW)(X)
G = array(*Y.shape, seed=2.0)
X3 = array(1, 4, 3, 5, 2)
BELOW3 = ((1, 2, 2, 3, 1), (1, 2, 1, 2, 1), [(0, 0), same(4, 2, 2), same(3, 2, 1), same(5, 3, 2), (0, 0)])
ATTRS3: dict[str, Any] = {"ksize": BELOW3[0], "strides": BELOW3[1], "padding": "SAME"}
Y3 = pooled(np.max, *BELOW3)(X3)
G3 = array(*Y3.shape, seed=2.0)
FLAT = np.arange(X[0].size).reshape(X[0].shape)
ATTRS = {**SAME, "data_format": "NHWC"}
MAX_ATTRS = {**ATTRS, "explicit_paddings": ()}
ARG_ATTRS = {**SAME, "Targmax": np.int64, "include_batch_in_index": False}


def largest(op_type: str, attrs: Any, *sizes: Any) -> Callable[..., Tensor]:
    return lambda *t: node(op_type, [*t, *(constant(np.int32(each)) for each in sizes)], attrs)


def argmax(x: np.ndarray) -> np.ndarray:
    result = np.zeros(Y.shape, np.int64)
    for place, below in windows(x.shape, *BELOW):
        result[place] = FLAT[chosen(x, below)[1:]]
    return result


V2 = {"padding": "SAME", "data_format": "NHWC"}
VALUES: list[ValueCase] = [
    value("AvgPool", lambda x: p.avg_pool(x, **SAME), X, expected=pooled(np.mean, *BELOW)),
    value(
        "AvgPool valid",
        lambda x: p.avg_pool(x, **VALID),
        X,
        expected=pooled(np.mean, (1, 3, 2, 1), (1, 1, 2, 1), [(0, 0)] * 4),
    ),
    value(
        "AvgPool channels first",
        lambda x: p.avg_pool2d(x, [3, 2], [2, 3], "SAME", "NCHW"),
        first(X),
        expected=lambda x: first(pooled(np.mean, *BELOW)(last(x))),
    ),
    value(
        "AvgPool of half precision",
        lambda x: p.avg_pool(x, **SAME),
        X.astype(np.float16),
        expected=lambda x: pooled(np.mean, *BELOW)(x.astype(F)),
        tolerance=1e-3,
    ),
    value("AvgPool of nothing", lambda x: p.avg_pool(x, **SAME), X[:0], expected=lambda x: Y[:0]),
    value("AvgPoolGrad", lambda g: node("AvgPoolGrad", [constant(DIMS), g], ATTRS), G, expected=to_mean(DIMS, *BELOW)),
    value("AvgPool3D", lambda x: p.avg_pool3d(x, **ATTRS3), X3, expected=pooled(np.mean, *BELOW3)),
    value(
        "AvgPool3DGrad",
        lambda g: node("AvgPool3DGrad", [constant(X3.shape), g], {**ATTRS3, "data_format": "NDHWC"}),
        G3,
        expected=to_mean(X3.shape, *BELOW3),
    ),
    value("MaxPool", lambda x: p.max_pool(x, **SAME), X, expected=pooled(np.max, *BELOW)),
    value("MaxPool of integers", lambda x: p.max_pool(x, **SAME), np.int32(X * 9), expected=pooled(np.max, *BELOW)),
    value(
        "MaxPool channels first",
        lambda x: p.max_pool2d(x, [3, 2], [2, 3], "SAME", "NCHW"),
        first(X),
        expected=lambda x: first(pooled(np.max, *BELOW)(last(x))),
    ),
    value(
        "MaxPool explicit",
        lambda x: p.max_pool(x, **EXPLICIT),
        X,
        expected=pooled(np.max, (1, 3, 2, 1), (1, 2, 2, 1), [(0, 0), (1, 0), (0, 1), (0, 0)]),
    ),
    value(
        "MaxPool of channels",
        lambda x: p.max_pool(x, [1, 1, 1, 3], [1, 1, 1, 3], "VALID"),
        X,
        expected=lambda x: x.max(-1, keepdims=True),
    ),
    value("MaxPoolGrad", largest("MaxPoolGrad", MAX_ATTRS), X, Y, G, expected=to_largest(*BELOW)),
    value("MaxPoolGradGrad", largest("MaxPoolGradGrad", MAX_ATTRS), X, Y, 2 * X, expected=at_largest(*BELOW)),
    value("MaxPoolV2", largest("MaxPoolV2", V2, KSIZE, STRIDES), X, expected=pooled(np.max, *BELOW)),
    value("MaxPoolGradV2", largest("MaxPoolGradV2", V2, KSIZE, STRIDES), X, Y, G, expected=to_largest(*BELOW)),
    value(
        "MaxPoolGradGradV2", largest("MaxPoolGradGradV2", V2, KSIZE, STRIDES), X, Y, 2 * X, expected=at_largest(*BELOW)
    ),
    value("MaxPool3D", lambda x: p.max_pool3d(x, **ATTRS3), X3, expected=pooled(np.max, *BELOW3)),
    value(
        "MaxPool3DGrad",
        largest("MaxPool3DGrad", {**ATTRS3, "data_format": "NDHWC"}),
        X3,
        Y3,
        G3,
        expected=to_largest(*BELOW3),
    ),
    value(
        "MaxPool3DGradGrad",
        largest("MaxPool3DGradGrad", {**ATTRS3, "data_format": "NDHWC"}),
        X3,
        Y3,
        2 * X3,
        expected=at_largest(*BELOW3),
    ),
    value("MaxPoolWithArgmax", lambda x: p.max_pool_with_argmax(x, **SAME)[1], X, expected=argmax),
    value(
        "MaxPoolWithArgmax in the whole batch",
        lambda x: p.max_pool_with_argmax(x, **SAME, include_batch_in_index=True, output_dtype=np.int32)[1],
        X,
        expected=lambda x: (argmax(x) + np.arange(2)[:, None, None, None] * X[0].size).astype(np.int32),
    ),
    value(
        "MaxPoolWithArgmax where all is lowest",
        lambda x: p.max_pool_with_argmax(x, **SAME)[1],
        np.full_like(X, -np.inf),
        expected=argmax,
    ),
    value(
        "MaxPoolGradWithArgmax",
        largest("MaxPoolGradWithArgmax", ARG_ATTRS),
        X,
        G,
        argmax(X),
        expected=lambda x, g, places: to_largest(*BELOW)(x, Y, g),
    ),
    value(
        "MaxPoolGradGradWithArgmax",
        largest("MaxPoolGradGradWithArgmax", ARG_ATTRS),
        X,
        2 * X,
        argmax(X),
        expected=lambda x, g, places: at_largest(*BELOW)(x, Y, g),
    ),
    value(
        "max_pool1d",
        lambda x: p.max_pool1d(x, 2, [2], "SAME"),
        X[0],
        expected=pooled(np.max, (1, 2, 1), (1, 2, 1), [(0, 0), same(6, 2, 2), (0, 0)]),
    ),
    value(
        "avg_pool1d",
        lambda x: p.pool(x, [2], "AVG", "VALID", data_format="NCW"),
        first(X[0]),
        expected=lambda x: (x[..., 1:] + x[..., :-1]) / F(2),
    ),
]


POOLED = small(1, 2, 2, 1)
GRADIENTS: list[GradientCase] = [
    gradient("AvgPool", lambda x: p.avg_pool(x, [3, 2], 2, "SAME"), small(1, 4, 3, 2)),
    gradient(
        "AvgPoolGrad",
        lambda g: node("AvgPoolGrad", [constant([1, 4, 3, 1]), g], {**ATTRS, "strides": [1, 2, 2, 1]}),
        POOLED,
    ),
    gradient("AvgPool3D", lambda x: p.avg_pool3d(x, 2, 1, "SAME"), small(1, 2, 3, 2, 1)),
    gradient(
        "AvgPool3DGrad",
        lambda g: node(
            "AvgPool3DGrad",
            [constant([1, 3, 3, 3, 1]), g],
            {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID", "data_format": "NDHWC"},
        ),
        small(1, 1, 1, 1, 1),
    ),
    gradient("MaxPool", lambda x: p.max_pool(x, [3, 2], 2, "SAME"), small(1, 4, 3, 2)),
    gradient("MaxPool3D", lambda x: p.max_pool3d(x, 2, 1, "SAME"), small(1, 2, 3, 2, 1)),
    gradient("MaxPoolV2", largest("MaxPoolV2", V2, KSIZE, STRIDES), small(1, 4, 3, 2)),
    *(
        gradient(
            f"{op_type}",
            lambda g, x=x, y=y, op_type=op_type, attrs=attrs, sizes=sizes: node(
                op_type, [constant(x), constant(y), g, *(constant(np.int32(each)) for each in sizes)], attrs
            ),
            g,
        )
        for x, y, attrs, family, sizes in (
            (np.float64(X), np.float64(Y), MAX_ATTRS, "MaxPool{}", ()),
            (np.float64(X), np.float64(Y), V2, "MaxPool{}V2", (KSIZE, STRIDES)),
            (np.float64(X3), np.float64(Y3), {**ATTRS3, "data_format": "NDHWC"}, "MaxPool3D{}", ()),
        )
        for op_type, g in ((family.format("Grad"), y + 1), (family.format("GradGrad"), x + 1))
    ),
    gradient("MaxPoolWithArgmax", lambda x: p.max_pool_with_argmax(x, 2, 1, "SAME")[0], small(2, 3, 2, 2)),
    *(
        gradient(
            op_type,
            lambda g, op_type=op_type: node(op_type, [constant(np.float64(X)), g, constant(argmax(X))], ARG_ATTRS),
            g,
        )
        for op_type, g in (("MaxPoolGradWithArgmax", np.float64(G)), ("MaxPoolGradGradWithArgmax", np.float64(X)))
    ),
]
