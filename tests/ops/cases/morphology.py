"""Dilation and resampling, beside loops over places."""

from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value
from ops.cases.convolutions import array, same, small
from ops.cases.images import slopes

from xlalite.ops.functions import convolutions as c, morphology as m
from xlalite.ops.helpers.node import node, operation

F = np.float32
X, WINDOW = array(2, 5, 6, 2), array(3, 2, 2, seed=4.0)
ATTRS: dict[str, Any] = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"}
PADS = [same(5, 3, 2), same(6, 2, 1, 2)]


def dilated(x: np.ndarray, window: np.ndarray) -> np.ndarray:
    padded = np.pad(x, [(0, 0), *PADS, (0, 0)], constant_values=-np.inf)
    high, wide = (padded.shape[1] - 3) // 2 + 1, padded.shape[2] - 2
    result = np.zeros((len(x), high, wide, x.shape[3]))
    for i, j in np.ndindex(high, wide):
        below = padded[:, 2 * i : 2 * i + 3, j : j + 3 : 2]
        result[:, i, j] = (below + window).max((1, 2))
    return result


GRAD = array(2, 3, 6, 2, seed=2.0)


def sampled(data: np.ndarray, warp: np.ndarray) -> np.ndarray:
    """Each element counts by how near it is."""
    high, wide = data.shape[1:3]
    across = np.maximum(0, 1 - np.abs(warp[..., :1] - np.arange(wide)))
    down = np.maximum(0, 1 - np.abs(warp[..., 1:] - np.arange(high)))
    flat = [each.reshape(len(data), -1, each.shape[-1]) for each in (down, across)]
    return np.einsum("bhwc,bph,bpw->bpc", data, *flat).reshape(*warp.shape[:-1], data.shape[3])


WARP = (array(2, 4, 3, 2, seed=3.0) * 3 + 2).astype(F)
PULL = array(2, 4, 3, 2, seed=7.0)

VALUES: list[ValueCase] = [
    value("Dilation2D", lambda x, w: m.dilation2d(x, w, **ATTRS), X, WINDOW, expected=dilated),
    value(
        "Dilation2D of integers",
        lambda x, w: m.dilation2d(x, w, **ATTRS),
        np.int32(X * 9),
        np.int32(WINDOW * 9),
        expected=lambda x, w: dilated(x.astype(F), w),
    ),
    value(
        "erosion2d",
        lambda x, w: m.erosion2d(x, w, **ATTRS),
        X,
        WINDOW,
        expected=lambda x, w: -dilated(-x, w[::-1, ::-1]),
    ),
    value(
        "Dilation2DBackpropInput",
        lambda *t: node("Dilation2DBackpropInput", t, ATTRS),
        X,
        WINDOW,
        GRAD,
        expected=lambda x, w, g: slopes(lambda each: dilated(each, w), x.astype(float), g),
    ),
    value(
        "Dilation2DBackpropFilter",
        lambda *t: node("Dilation2DBackpropFilter", t, ATTRS),
        X,
        WINDOW,
        GRAD,
        expected=lambda x, w, g: slopes(lambda each: dilated(x, each), w.astype(float), g),
    ),
    value("Resampler", m.resampler, X, WARP, expected=sampled),
    *(
        value(
            f"ResamplerGrad output {output}",
            lambda *t, output=output: operation("ResamplerGrad", t).outputs[output],
            X,
            WARP,
            PULL,
            expected=lambda x, warp, g, output=output: slopes(
                lambda each: sampled(*((each, warp), (x, each))[output]), (x, warp)[output].astype(float), g
            ),
            tolerance=1e-5,
        )
        for output in range(2)
    ),
    value(
        "conv_transpose",
        lambda w, g: c.conv_transpose(g, w, [2, 4, 3], 2),
        array(2, 3, 1),
        array(2, 2, 1),
        expected=lambda w, g: np.einsum("nic,koc->niko", g, w).reshape(2, 4, 3),
    ),
]

GRADIENTS: list[GradientCase] = [
    gradient("Dilation2D", lambda x, w: m.dilation2d(x, w, **ATTRS), small(1, 4, 3, 2), small(3, 2, 2) * 2),
    gradient("Resampler", m.resampler, small(2, 3, 4, 2), small(2, 3, 2) * 2 + 1.1),
]
