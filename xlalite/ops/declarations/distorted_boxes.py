"""Random parts of an image that still show enough of an object, for training on many views of few images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES, float32
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.random_stream import WHY_HOST, stream_for
from xlalite.ops.helpers.shape_rules import require_scalar, require_type

_DEFAULTS = {
    "seed": 0,
    "seed2": 0,
    "aspect_ratio_range": (0.75, 1.33),
    "area_range": (0.05, 1.0),
    "max_attempts": 100,
    "use_image_if_no_bounding_boxes": False,
}
Box = tuple[int, int, int, int]


def _infer(op: Operation) -> Sequence[OutputType]:
    size, boxes, covered = op.inputs
    require_type(size, INTEGER_TYPES, "image_size")
    require_type(boxes, {float32}, "bounding_boxes")
    require_type(covered, {float32}, "min_object_covered")
    require_scalar(covered, "min_object_covered")
    size.shape.assert_is_compatible_with([3])
    boxes.shape.assert_is_compatible_with([None, None, 4])
    return [(size.dtype, TensorShape([3])), (size.dtype, TensorShape([3])), (float32, TensorShape([1, 1, 4]))]


def _kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    size, given, covered = (np.asarray(value) for value in inputs)
    high, wide = int(size[0]), int(size[1])
    boxes = given.reshape(-1, 4)
    if not len(boxes):
        if not op.get_attr("use_image_if_no_bounding_boxes"):
            raise InvalidArgumentError(
                None, op, "there is no bounding box; use_image_if_no_bounding_boxes takes the image for one"
            )
        boxes = np.array([[0.0, 0.0, 1.0, 1.0]])
    if (boxes < 0).any() or (boxes > 1).any() or (boxes[:, :2] > boxes[:, 2:]).any():
        raise InvalidArgumentError(None, op, "bounding boxes must be [y1, x1, y2, x2] in parts of the image")
    stream = context.state(op, lambda: stream_for(op))
    found: Box = (0, 0, high, wide)
    with stream.lock:
        for _ in range(op.get_attr("max_attempts")):
            drawn = _part(op, stream.generator, high, wide)
            if drawn is not None and _shows(drawn, boxes * [high, wide, high, wide], float(covered)):
                found = drawn
                break
    top, left, bottom, right = found
    relative = np.array([top / high, left / wide, bottom / high, right / wide], np.float32)
    begin, extent = [top, left, 0], [bottom - top, right - left, -1]
    return [np.array(begin, size.dtype), np.array(extent, size.dtype), relative.reshape(1, 1, 4)]


def _part(op: Operation, rng: np.random.Generator, high: int, wide: int) -> Box | None:
    """A part of an image with area and proportions from their ranges, None when none such was met."""
    ratio = rng.uniform(*op.get_attr("aspect_ratio_range"))
    least, most = (share * high * wide for share in op.get_attr("area_range"))
    lowest, highest = (round(math.sqrt(area / ratio)) for area in (least, most))
    highest = min(highest, high, int((wide + 0.5) / ratio))
    if lowest > highest:
        return None
    height = int(rng.integers(lowest, highest + 1))
    width = round(height * ratio)
    if not (0 < height <= high and 0 < width <= wide and least - 0.5 <= height * width <= most + 0.5):
        return None
    top, left = int(rng.integers(0, high - height + 1)), int(rng.integers(0, wide - width + 1))
    return top, left, top + height, left + width


def _shows(part: Box, boxes: Array, covered: float) -> bool:
    """Whether enough of some box lies in the part."""
    common = np.minimum(part[2:], boxes[:, 2:]) - np.maximum(part[:2], boxes[:, :2])
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    exists = areas > 0
    return bool((np.maximum(common, 0).prod(1)[exists] >= covered * areas[exists]).any())


register(
    OpSpec(
        "SampleDistortedBoundingBoxV2",
        _infer,
        inputs=("image_size", "bounding_boxes", "min_object_covered"),
        attrs=tuple(_DEFAULTS),
        defaults=_DEFAULTS,
        host_kernel=_kernel,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host=WHY_HOST,
    )
)
