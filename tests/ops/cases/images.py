"""Operations on images, beside loops over their places."""

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value, value_of
from ops.cases.convolutions import array, small

from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import image
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
X = array(2, 4, 5, 3)
COLOURS = (array(2, 3, 4, 3) + 1) / 2
GREY = np.repeat(COLOURS[..., :1], 3, -1)


def places(new: int, old: int, corners: bool, centers: bool) -> np.ndarray:
    scale = (old - 1) / (new - 1) if corners and new > 1 else old / new
    return (np.arange(new) + 0.5) * scale - 0.5 if centers else np.arange(new) * scale


def linear(new: int, old: int, corners: bool, centers: bool) -> np.ndarray:
    """Each new element as weights of the old ones."""
    weights = np.zeros((new, old))
    for row, place in enumerate(places(new, old, corners, centers)):
        below = int(np.floor(place))
        weights[row, max(below, 0)] += 1 - (place - below)
        weights[row, min(below + 1, old - 1)] += place - below
    return weights


def nearest(new: int, old: int, corners: bool, centers: bool) -> np.ndarray:
    found = places(new, old, corners, centers) + (0.5 if corners or centers else 0)
    return np.eye(old)[np.clip(np.floor(found).astype(int), 0, old - 1)]


def cubic(new: int, old: int, corners: bool, centers: bool) -> np.ndarray:
    a = -0.5 if centers else -0.75
    weights = np.zeros((new, old))
    for row, place in enumerate(places(new, old, corners, centers)):
        below = int(np.floor(place))
        share = np.rint((place - below) * 1024) / 1024
        for i in range(-1, 3):
            d = abs(i - share)
            w = ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            if 0 <= below + i < old or not centers:
                weights[row, np.clip(below + i, 0, old - 1)] += w
    return weights / weights.sum(1, keepdims=True)


def area(new: int, old: int, corners: bool, centers: bool) -> np.ndarray:
    scale = old / new
    edges = np.arange(old)
    covered = [np.minimum(edges + 1, (i + 1) * scale) - np.maximum(edges, i * scale) for i in range(new)]
    return np.maximum(covered, 0) / scale


def resized(weights: Any, size: Any, corners: bool = False, centers: bool = False) -> Callable[..., np.ndarray]:
    return lambda x: np.einsum(
        "nhwc,Hh,Ww->nHWc",
        x,
        *(weights(new, old, corners, centers) for new, old in zip(size, x.shape[1:3], strict=True)),
    )


def back(weights: Any, old: Any, corners: bool = False, centers: bool = False) -> Callable[..., np.ndarray]:
    return lambda g, *_: np.einsum(
        "nHWc,Hh,Ww->nhwc",
        g,
        *(weights(new, size, corners, centers) for new, size in zip(g.shape[1:3], old, strict=True)),
    )


def by_colour(function: Callable[..., tuple[float, ...]]) -> Callable[..., np.ndarray]:
    return lambda x, *rest: np.array([function(*each, *rest) for each in x.reshape(-1, 3)]).reshape(x.shape)


def turned(red: float, green: float, blue: float, delta: float) -> tuple[float, ...]:
    hue, saturation, brightness = colorsys.rgb_to_hsv(red, green, blue)
    return colorsys.hsv_to_rgb((hue + delta) % 1, saturation, brightness)


def saturated(red: float, green: float, blue: float, scale: float) -> tuple[float, ...]:
    hue, saturation, brightness = colorsys.rgb_to_hsv(red, green, blue)
    return colorsys.hsv_to_rgb(hue, min(saturation * scale, 1), brightness)


def contrast(x: np.ndarray, factor: Any) -> np.ndarray:
    mean = x.mean((-3, -2), keepdims=True)
    return (x - mean) * factor + mean


BOXES = F([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.9, 0.5, 0.2, 1.2], [-0.3, 0.1, 0.4, 0.6]])
OWNERS = np.int32([0, 1, 0, 1])
SIZE = (3, 2)


def cropped(x: np.ndarray, boxes: Any, owners: Any, method: str = "bilinear") -> np.ndarray:
    result = np.full((len(boxes), *SIZE, x.shape[3]), 7.0)
    for number, i, j in np.ndindex(len(boxes), *SIZE):
        one, two = boxes[number, :2], boxes[number, 2:]
        limit = np.array(x.shape[1:3]) - 1
        place = (one + (two - one) * np.array([i, j]) / (np.array(SIZE) - 1)) * limit
        if (place < 0).any() or (place > limit).any():
            continue
        rows = [max(0, 1 - abs(place[0] - y)) for y in range(x.shape[1])]
        columns = [max(0, 1 - abs(place[1] - c)) for c in range(x.shape[2])]
        if method == "nearest":
            rows, columns = (np.eye(n + 1)[int(np.floor(at + 0.5))] for at, n in zip(place, limit, strict=True))
        result[number, i, j] = np.einsum("hwc,h,w->c", x[owners[number]], rows, columns)
    return result


def crop(method: str = "bilinear") -> Callable[..., Tensor]:
    return lambda x, boxes, owners: image.crop_and_resize(x, boxes, owners, SIZE, method, 7.0)


def slopes(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Central differences."""
    result = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[index] = 1e-6
        result[index] = ((function(x + step) - function(x - step)) * g).sum() / 2e-6
    return result


CORNERS = F([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 100, 1, 101]])
SCORES = F([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
GRADS = array(4, *SIZE, 3, seed=2.0)
NEW = (7, 3)
CROP = {"method": "bilinear"}


def resize(build: Any, **options: Any) -> Callable[..., Tensor]:
    return lambda x: build(x, NEW, **options)


def suppress(output: int) -> Callable[..., Tensor]:
    return lambda boxes, scores: image.non_max_suppression_padded(boxes, scores, 4, 0.5, 0.4, True)[output]


VALUES: list[ValueCase] = [
    *(
        value(
            f"{op_type} {corners} {centers}",
            resize(build, align_corners=corners, half_pixel_centers=centers),
            X,
            expected=resized(weights, NEW, corners, centers),
            tolerance=5e-6,
        )
        for op_type, build, weights in (
            ("ResizeBilinear", image.resize_bilinear, linear),
            ("ResizeBicubic", image.resize_bicubic, cubic),
            ("ResizeNearestNeighbor", image.resize_nearest_neighbor, nearest),
        )
        for corners, centers in ((False, False), (True, False), (False, True))
    ),
    value("ResizeArea", resize(image.resize_area), X, expected=resized(area, NEW), tolerance=5e-6),
    value(
        "ResizeBilinear of integers",
        resize(image.resize_bilinear),
        np.uint8(X * 100 + 100),
        expected=lambda x: resized(linear, NEW)(x.astype(F)),
        tolerance=5e-6,
    ),
    value(
        "ResizeNearestNeighbor of integers",
        resize(image.resize_nearest_neighbor),
        np.int64(X * 100),
        expected=resized(nearest, NEW),
    ),
    *(
        value(
            f"{op_type}Grad {corners} {centers}",
            lambda g, x, op_type=op_type, corners=corners, centers=centers: node(
                f"{op_type}Grad", [g, x], {"align_corners": corners, "half_pixel_centers": centers}
            ),
            array(2, *NEW, 3),
            X,
            expected=back(weights, X.shape[1:3], corners, centers),
            tolerance=5e-6,
        )
        for op_type, weights in (("ResizeBilinear", linear), ("ResizeBicubic", cubic))
        for corners, centers in ((False, False), (True, False), (False, True))
    ),
    value(
        "ResizeNearestNeighborGrad",
        lambda g: node(
            "ResizeNearestNeighborGrad", [g, constant([4, 5])], {"align_corners": False, "half_pixel_centers": False}
        ),
        array(2, *NEW, 3),
        expected=back(nearest, (4, 5)),
    ),
    value_of("RGBToHSV", COLOURS, expected=by_colour(colorsys.rgb_to_hsv), tolerance=5e-6),
    value("RGBToHSV of grey", lambda x: node("RGBToHSV", [x]), GREY, expected=by_colour(colorsys.rgb_to_hsv)),
    value_of("HSVToRGB", COLOURS, expected=by_colour(colorsys.hsv_to_rgb), tolerance=5e-6),
    value_of("AdjustHue", COLOURS, F(-0.4), expected=by_colour(turned), tolerance=5e-6),
    value_of("AdjustSaturation", COLOURS, F(1.7), expected=by_colour(saturated), tolerance=5e-6),
    value_of("AdjustContrastv2", COLOURS, F(-1.5), expected=contrast),
    value("CropAndResize", crop(), X, BOXES, OWNERS, expected=cropped),
    value(
        "CropAndResize to the nearest",
        crop("nearest"),
        X,
        BOXES,
        OWNERS,
        expected=lambda x, boxes, owners: cropped(x, boxes, owners, "nearest"),
    ),
    value(
        "CropAndResizeGradImage",
        lambda g, boxes, owners: node(
            "CropAndResizeGradImage", [g, boxes, owners, constant(X.shape)], {**CROP, "T": float32}
        ),
        GRADS,
        BOXES,
        OWNERS,
        expected=lambda g, boxes, owners: slopes(lambda x: cropped(x, boxes, owners), X.astype(np.float64), g),
    ),
    value(
        "CropAndResizeGradBoxes",
        lambda *t: node("CropAndResizeGradBoxes", t, CROP),
        GRADS[1:],
        X,
        BOXES[1:] + F(0.003),
        OWNERS[1:],
        expected=lambda g, x, boxes, owners: slopes(lambda each: cropped(x, each, owners), boxes.astype(np.float64), g),
        tolerance=1e-5,
    ),
    value(
        "NonMaxSuppressionV4",
        suppress(0),
        CORNERS,
        SCORES,
        expected=lambda *_: np.int32([3, 0, 0, 0]),
    ),
    value(
        "NonMaxSuppressionV4 count",
        suppress(1),
        CORNERS,
        SCORES,
        expected=lambda *_: np.int32(2),
    ),
    value(
        "NonMaxSuppressionV4 of batches",
        lambda boxes, scores: image.non_max_suppression_padded(
            node("Pack", [boxes, boxes], {"axis": 0}), node("Pack", [scores, -scores], {"axis": 0}), 3
        )[0],
        CORNERS,
        SCORES,
        expected=lambda *_: np.int32([[3, 0, 5], [5, 4, 2]]),
    ),
]

GRADIENTS: list[GradientCase] = [
    gradient("ResizeNearestNeighbor", lambda x: image.resize_nearest_neighbor(x, [5, 2]), small(1, 3, 4, 2)),
    gradient(
        "ResizeNearestNeighborGrad",
        lambda g: node(
            "ResizeNearestNeighborGrad", [g, constant([3, 4])], {"align_corners": True, "half_pixel_centers": False}
        ),
        small(1, 5, 2, 2),
    ),
]
