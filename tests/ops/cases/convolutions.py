"""Convolutions, beside sums over the elements of the window."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import convolutions as c
from xlalite.ops.helpers.node import node

F = np.float32


class Reference:
    """A convolution over images `[batch, space..., channels]` and its derivatives, one window element at a time."""

    def __init__(self, image: Any, kernel: Any, stride: Any, pads: Any, dilation: Any, groups: int = 1) -> None:
        self.image, self.kernel, self.groups = tuple(image), tuple(kernel), groups
        self.stride, self.pads, self.dilation = stride, pads, dilation
        self.padded = [n + low + high for n, (low, high) in zip(self.image[1:-1], pads, strict=True)]
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, dilation, strict=False)]
        self.space = [(n - k) // s + 1 for n, k, s in zip(self.padded, spans, stride, strict=True)]

    def places(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        for offset in np.ndindex(*self.kernel[:-2]):
            starts = [o * d for o, d in zip(offset, self.dilation, strict=True)]
            ends = [b + (n - 1) * s + 1 for b, n, s in zip(starts, self.space, self.stride, strict=True)]
            steps = zip(starts, ends, self.stride, strict=True)
            yield offset, (slice(None), *(slice(*step) for step in steps))

    def pad(self, x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, 0), *self.pads, (0, 0)])

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        return np.split(x, self.groups, -1)

    def forward(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        parts = []
        for own, kernel in zip(self.split(self.pad(x)), self.split(w), strict=True):
            parts.append(sum(own[place] @ kernel[offset] for offset, place in self.places()))
        return np.concatenate(parts, -1)

    def to_input(self, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        parts = []
        for grad, kernel in zip(self.split(g), self.split(w), strict=True):
            part = np.zeros((self.image[0], *self.padded, kernel.shape[-2]), g.dtype)
            for offset, place in self.places():
                part[place] += grad @ kernel[offset].T
            parts.append(part)
        inside = [slice(low, low + n) for n, (low, _) in zip(self.image[1:-1], self.pads, strict=True)]
        return np.concatenate(parts, -1)[(slice(None), *inside)]

    def to_filter(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        result = np.zeros(self.kernel, g.dtype)
        for own, grad, part in zip(self.split(self.pad(x)), self.split(g), self.split(result), strict=True):
            for offset, place in self.places():
                part[offset] = own[place].reshape(-1, own.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])
        return result


def array(*sizes: int, seed: float = 1.0) -> np.ndarray:
    return np.cos(seed + np.arange(np.prod(sizes)) * 1.7).reshape(sizes).astype(F)


def same(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    total = max(0, (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def first(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, 1)


def last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


IMAGE, KERNEL = (2, 7, 6, 4), (3, 2, 4, 3)
STRIDED = Reference(IMAGE, KERNEL, (2, 3), [same(7, 3, 2), same(6, 2, 3)], (1, 1))
DILATED = Reference(IMAGE, KERNEL, (1, 1), [(0, 0), (0, 0)], (2, 3))
EXPLICIT = Reference(IMAGE, KERNEL, (2, 1), [(1, 0), (2, 3)], (1, 1))
GROUPED = Reference(IMAGE, (3, 2, 2, 6), (1, 2), [same(7, 3, 1), same(6, 2, 2)], (1, 1), groups=2)
DEPTHWISE = Reference(IMAGE, (3, 2, 1, 8), (2, 2), [same(7, 3, 2), same(6, 2, 2)], (1, 1), groups=4)
VOLUME = Reference(
    (1, 4, 5, 3, 2), (2, 3, 2, 2, 3), (2, 1, 2), [same(4, 2, 2), same(5, 3, 1), same(3, 2, 2)], (1, 1, 1)
)
ROWS = Reference((2, 9, 3), (4, 3, 2), (2,), [same(9, 4, 2)], (1,))

ATTRS_2D: dict[str, dict[str, Any]] = {
    "strided": {"strides": [1, 2, 3, 1], "padding": "SAME"},
    "dilated": {"strides": 1, "padding": "VALID", "dilations": [2, 3]},
    "explicit": {"strides": [2, 1], "padding": [[0, 0], [1, 0], [2, 3], [0, 0]]},
    "grouped": {"strides": [1, 2], "padding": "SAME"},
}
REFERENCES_2D = {"strided": STRIDED, "dilated": DILATED, "explicit": EXPLICIT, "grouped": GROUPED}


def arrays_of(reference: Reference) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grad = (reference.image[0], *reference.space, reference.kernel[-1])
    return array(*reference.image), array(*reference.kernel, seed=2.0), array(*grad, seed=3.0)


def of_two_dimensions(name: str) -> Iterator[ValueCase]:
    reference, attrs = REFERENCES_2D[name], ATTRS_2D[name]
    x, w, g = arrays_of(reference)
    yield value(f"Conv2D {name}", lambda x, w: c.conv2d(x, w, **attrs), x, w, expected=reference.forward)
    yield value(
        f"Conv2DBackpropInput {name}",
        lambda w, g: c.conv2d_backprop_input(reference.image, w, g, **attrs),
        w,
        g,
        expected=reference.to_input,
    )
    yield value(
        f"Conv2DBackpropFilter {name}",
        lambda x, g: c.conv2d_backprop_filter(x, reference.kernel, g, **attrs),
        x,
        g,
        expected=reference.to_filter,
        tolerance=5e-6,
    )


CHANNELS_FIRST = {"strides": [1, 1, 2, 3], "padding": "SAME", "data_format": "NCHW"}
DEPTH = {"strides": [1, 2, 2, 1], "padding": "SAME"}
VOLUMES = {"strides": [1, 2, 1, 2, 1], "padding": "SAME"}
VOLUMES_FIRST = {"strides": [1, 1, 2, 1, 2], "padding": "SAME", "data_format": "NCDHW"}
X2, W2, G2 = arrays_of(STRIDED)
XD, WD, GD = arrays_of(DEPTHWISE)
WD4 = WD.reshape(3, 2, 4, 2)
X3, W3, G3 = arrays_of(VOLUME)
X1, W1, G1 = arrays_of(ROWS)
POINTWISE = array(8, 5)


def volume_backprop(w: Tensor, g: Tensor) -> Tensor:
    return c.conv3d_transpose(g, w, VOLUME.image, **VOLUMES)


VALUES = [
    *(case for name in REFERENCES_2D for case in of_two_dimensions(name)),
    value(
        "Conv2D channels first",
        lambda x, w: c.conv2d(x, w, **CHANNELS_FIRST),
        first(X2),
        W2,
        expected=lambda x, w: first(STRIDED.forward(last(x), w)),
    ),
    value(
        "Conv2DBackpropInput channels first",
        lambda w, g: c.conv2d_transpose(g, w, first(X2).shape, **CHANNELS_FIRST),
        W2,
        first(G2),
        expected=lambda w, g: first(STRIDED.to_input(w, last(g))),
    ),
    value(
        "Conv2DBackpropFilter channels first",
        lambda x, g: c.conv2d_backprop_filter(x, W2.shape, g, **CHANNELS_FIRST),
        first(X2),
        first(G2),
        expected=lambda x, g: STRIDED.to_filter(last(x), last(g)),
    ),
    value(
        "Conv2D integers",
        lambda x, w: c.conv2d(x, w, **ATTRS_2D["strided"]),
        (X2 * 9).astype(np.int32),
        (W2 * 9).astype(np.int32),
        expected=STRIDED.forward,
    ),
    value("Conv2D of nothing", lambda x, w: c.conv2d(x, w, 1, "SAME"), X2[:0], W2, expected=lambda x, w: x[..., :3]),
    value(
        "Conv2DBackpropFilter of nothing",
        lambda x, g: c.conv2d_backprop_filter(x, W2.shape, g, 1, "SAME"),
        X2[:0],
        X2[:0, ..., :3],
        expected=lambda x, g: 0 * W2,
    ),
    value(
        "DepthwiseConv2dNative",
        lambda x, w: c.depthwise_conv2d_native(x, w, **DEPTH),
        XD,
        WD4,
        expected=lambda x, w: DEPTHWISE.forward(x, WD),
    ),
    value(
        "DepthwiseConv2dNative channels first",
        lambda x, w: c.depthwise_conv2d(x, w, [1, 1, 2, 2], "SAME", data_format="NCHW"),
        first(XD),
        WD4,
        expected=lambda x, w: first(DEPTHWISE.forward(last(x), WD)),
    ),
    value(
        "DepthwiseConv2dNativeBackpropInput",
        lambda w, g: c.depthwise_conv2d_native_backprop_input(IMAGE, w, g, **DEPTH),
        WD4,
        GD,
        expected=lambda w, g: DEPTHWISE.to_input(WD, g),
    ),
    value(
        "DepthwiseConv2dNativeBackpropFilter",
        lambda x, g: c.depthwise_conv2d_native_backprop_filter(x, WD4.shape, g, **DEPTH),
        XD,
        GD,
        expected=lambda x, g: DEPTHWISE.to_filter(x, g).reshape(WD4.shape),
        tolerance=5e-6,
    ),
    value("Conv3D", lambda x, w: c.conv3d(x, w, **VOLUMES), X3, W3, expected=VOLUME.forward),
    value(
        "Conv3D channels first",
        lambda x, w: c.conv3d(x, w, **VOLUMES_FIRST),
        first(X3),
        W3,
        expected=lambda x, w: first(VOLUME.forward(last(x), w)),
    ),
    value("Conv3DBackpropInputV2", volume_backprop, W3, G3, expected=VOLUME.to_input),
    value(
        "Conv3DBackpropFilterV2",
        lambda x, g: c.conv3d_backprop_filter(x, W3.shape, g, **VOLUMES),
        X3,
        G3,
        expected=VOLUME.to_filter,
        tolerance=5e-6,
    ),
    value("conv1d", lambda x, w: c.conv1d(x, w, 2, "SAME"), X1, W1, expected=ROWS.forward),
    value(
        "conv1d channels first",
        lambda x, w: c.convolution(x, w, "SAME", [2], data_format="NCW"),
        first(X1),
        W1,
        expected=lambda x, w: first(ROWS.forward(last(x), w)),
    ),
    value("conv1d_transpose", lambda w, g: c.conv1d_transpose(g, w, X1.shape, 2), W1, G1, expected=ROWS.to_input),
    value("atrous_conv2d", lambda x, w: c.atrous_conv2d(x, w, [2, 3], "VALID"), X2, W2, expected=DILATED.forward),
    value(
        "separable_conv2d",
        lambda x, w, p: c.separable_conv2d(x, w, p, **DEPTH),
        XD,
        WD4,
        POINTWISE[None, None],
        expected=lambda x, w, p: DEPTHWISE.forward(x, WD) @ POINTWISE,
    ),
]


def twice(build: Any) -> Any:
    """The square of a linear function, whose derivative needs the function and its transpose."""
    return lambda *t: node("Square", [build(*t)])


def small(*sizes: int) -> np.ndarray:
    return array(*sizes).astype(np.float64)


GRADIENTS: list[GradientCase] = [
    gradient("Conv2D", lambda x, w: c.conv2d(x, w, [2, 1], "SAME"), small(1, 4, 3, 2), small(3, 2, 2, 2)),
    gradient(
        "Conv2D in groups",
        lambda x, w: c.conv2d(x, w, 1, [[0, 0], [1, 0], [0, 2], [0, 0]], dilations=2),
        small(1, 4, 3, 2),
        small(2, 2, 1, 2),
    ),
    gradient(
        "Conv2DBackpropInput",
        twice(lambda w, g: c.conv2d_backprop_input([1, 4, 3, 2], w, g, [2, 1], "SAME")),
        small(3, 2, 2, 2),
        small(1, 2, 3, 2),
    ),
    gradient(
        "Conv2DBackpropFilter",
        twice(lambda x, g: c.conv2d_backprop_filter(x, [3, 2, 2, 2], g, [2, 1], "SAME")),
        small(1, 4, 3, 2),
        small(1, 2, 3, 2),
    ),
    gradient(
        "DepthwiseConv2dNative", lambda x, w: c.depthwise_conv2d(x, w, 2, "SAME"), small(1, 4, 3, 2), small(2, 2, 2, 2)
    ),
    gradient(
        "DepthwiseConv2dNativeBackpropInput",
        twice(lambda w, g: c.depthwise_conv2d_native_backprop_input([1, 4, 3, 2], w, g, 2, "SAME")),
        small(2, 2, 2, 2),
        small(1, 2, 2, 4),
    ),
    gradient(
        "DepthwiseConv2dNativeBackpropFilter",
        twice(lambda x, g: c.depthwise_conv2d_native_backprop_filter(x, [2, 2, 2, 2], g, 2, "SAME")),
        small(1, 4, 3, 2),
        small(1, 2, 2, 4),
    ),
    gradient("Conv3D", lambda x, w: c.conv3d(x, w, 1, "VALID"), small(1, 3, 3, 2, 1), small(2, 2, 2, 1, 2)),
    gradient(
        "Conv3DBackpropInputV2",
        twice(lambda w, g: c.conv3d_transpose(g, w, [1, 3, 3, 2, 1], 2)),
        small(2, 2, 2, 1, 2),
        small(1, 2, 2, 1, 2),
    ),
    gradient(
        "Conv3DBackpropFilterV2",
        twice(lambda x, g: c.conv3d_backprop_filter(x, [2, 2, 2, 1, 2], g, 2, "SAME")),
        small(1, 3, 3, 2, 1),
        small(1, 2, 2, 1, 2),
    ),
]
