"""Images cut, padded, turned, resized and boxed: what users reach as `xlalite.image`.

Images are `[height, width, channels]`, or batches of them.
"""

from __future__ import annotations

import math
from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32, int32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import (
    concat,
    expand_dims,
    pad,
    reshape,
    reverse,
    shape,
    slice,
    squeeze,
    stack,
    transpose as permute,
    unstack,
    where_v2,
)
from xlalite.ops.functions.math import cast, less, maximum, minimum
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.sizes import as_size_vector

# Size.


class ResizeMethod:
    """How `resize_images` finds new elements."""

    BILINEAR: Final = 0
    NEAREST_NEIGHBOR: Final = 1
    BICUBIC: Final = 2
    AREA: Final = 3


_METHODS = {
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
}


def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """Images `[batch, height, width, channels]` at another size, as f32, by linear interpolation."""
    return _resize("ResizeBilinear", images, size, align_corners, half_pixel_centers, name)


def resize_bicubic(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """Images at another size, as f32, by cubic interpolation."""
    return _resize("ResizeBicubic", images, size, align_corners, half_pixel_centers, name)


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """Images at another size, each element the nearest old one."""
    return _resize("ResizeNearestNeighbor", images, size, align_corners, half_pixel_centers, name)


def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """Images at another size, as f32, each element the average of what it covers."""
    inputs = [convert_to_tensor(images), as_size_vector(size)]
    return node("ResizeArea", inputs, {"align_corners": align_corners}, name)


def _resize(op_type: str, images: Any, size: Any, corners: bool, centers: bool, name: str | None) -> Tensor:
    attrs = {"align_corners": corners, "half_pixel_centers": centers}
    return node(op_type, [convert_to_tensor(images), as_size_vector(size)], attrs, name)


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images at another size, by any of the methods; those that have that size already stay as they are.

    Raises:
        GraphError: there is no such method.
    """
    if method not in _METHODS:
        raise GraphError(f"resize_images: method {method!r} is not one of {', '.join(map(str, _METHODS))}")
    with get_default_graph().name_scope(name or "resize"):
        batch, is_single = _as_batch(images)
        sizes = as_size_vector(size)
        if preserve_aspect_ratio:
            sizes = _fitting_size(batch, sizes)
        known = sizes.op.attrs["value"].tolist() if sizes.op.type == "Const" else None
        if known is not None and list(batch.shape.as_list()[1:3]) == known:
            return convert_to_tensor(images)
        if _METHODS[method] == "ResizeArea":
            result = resize_area(batch, sizes, align_corners)
        else:
            result = _resize(_METHODS[method], batch, sizes, align_corners, False, None)
        return squeeze(result, [0]) if is_single else result


def _fitting_size(batch: Tensor, sizes: Tensor) -> Tensor:
    """The largest size within `sizes` that has the proportions of the images."""
    old = cast(shape(batch)[1:3], float32)
    wanted = cast(sizes, float32)
    ratios = wanted / old
    scale = minimum(ratios[0], ratios[1])
    return cast(node("Round", [scale * old]), int32)


def _as_batch(images: Any) -> tuple[Tensor, bool]:
    """Images with a batch dimension, and whether there was none.

    Raises:
        ShapeError: the rank is neither 3 nor 4.
    """
    tensor = convert_to_tensor(images)
    if tensor.shape.rank == 3:
        return expand_dims(tensor, 0), True
    if tensor.shape.rank != 4:
        raise ShapeError(f"images of shape {tensor.shape} must have rank 3 or 4")
    return tensor, False


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of images that begins at the offset and has the target size."""
    batch, is_single = _as_batch(image)
    result = slice(batch, [0, offset_height, offset_width, 0], [-1, target_height, target_width, -1])
    return squeeze(result, [0]) if is_single else result


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Images of the target size, zero but for the old one at the offset."""
    batch, is_single = _as_batch(image)
    high, wide = _sizes(batch)
    below, right = target_height - offset_height - high, target_width - offset_width - wide
    for rest, what in ((below, "height"), (right, "width")):
        if isinstance(rest, int) and rest < 0:
            raise ShapeError(f"pad_to_bounding_box: the image of shape {batch.shape} exceeds the target {what}")
    margins = [0, 0, offset_height, below, offset_width, right, 0, 0]
    known = all(isinstance(each, int) for each in margins)
    paddings = [margins[i : i + 2] for i in range(0, 8, 2)] if known else reshape(stack(margins), [4, 2])
    result = pad(batch, paddings)
    return squeeze(result, [0]) if is_single else result


def _sizes(batch: Tensor) -> list[Any]:
    """Height and width of a batch: numbers where they are known, otherwise tensors."""
    dims = batch.shape.as_list()
    return [shape(batch)[i] if dims[i] is None else dims[i] for i in (1, 2)]


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images of the target size, cut or padded on both sides alike."""
    batch, is_single = _as_batch(image)
    high, wide = _sizes(batch)
    pairs = ((high, target_height), (wide, target_width))
    cut = [_maximum(size - target, 0) // 2 for size, target in pairs]
    added = [_maximum(target - size, 0) // 2 for size, target in pairs]
    rows, columns = (_minimum(size, target) for size, target in pairs)
    cropped = crop_to_bounding_box(batch, cut[0], cut[1], rows, columns)
    result = pad_to_bounding_box(cropped, added[0], added[1], target_height, target_width)
    return squeeze(result, [0]) if is_single else result


def _maximum(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else maximum(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else minimum(a, b)


def resize_image_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False
) -> Tensor:
    """Images resized with their proportions, and padded to the target size on both sides alike."""
    batch, is_single = _as_batch(image)
    dims = batch.shape.as_list()
    if dims[1] is None or dims[2] is None:
        raise ShapeError(f"resize_image_with_pad: the size of images of shape {batch.shape} must be known")
    ratio = max(dims[1] / target_height, dims[2] / target_width)
    sizes = [math.floor(dims[1] / ratio), math.floor(dims[2] / ratio)]
    resized = resize_images(batch, sizes, method, align_corners)
    margins = [max(0, (target_height - sizes[0]) // 2), max(0, (target_width - sizes[1]) // 2)]
    result = pad_to_bounding_box(resized, margins[0], margins[1], target_height, target_width)
    return squeeze(result, [0]) if is_single else result


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of images, `central_fraction` of their height and width.

    Raises:
        GraphError: the fraction is not in (0, 1].
    """
    if not 0 < central_fraction <= 1:
        raise GraphError(f"central_crop: central_fraction must be in (0, 1], found {central_fraction}")
    batch, is_single = _as_batch(image)
    if central_fraction == 1:
        return convert_to_tensor(image)
    starts: list[Any] = []
    for size in _sizes(batch):
        if isinstance(size, int):
            starts.append(int((size - size * central_fraction) / 2))
        else:
            wide = cast(size, "float64")
            starts.append(cast((wide - wide * central_fraction) / 2.0, int32))
    rows, columns = (size - 2 * start for size, start in zip(_sizes(batch), starts, strict=True))
    result = crop_to_bounding_box(batch, starts[0], starts[1], rows, columns)
    return squeeze(result, [0]) if is_single else result


# Turning.


def flip_left_right(image: Any) -> Tensor:
    """Images with their columns in the opposite order."""
    return reverse(convert_to_tensor(image), [1 if _as_batch(image)[1] else 2])


def flip_up_down(image: Any) -> Tensor:
    """Images with their rows in the opposite order."""
    return reverse(convert_to_tensor(image), [0 if _as_batch(image)[1] else 1])


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Images with rows and columns exchanged."""
    batch, is_single = _as_batch(image)
    result = permute(batch, [0, 2, 1, 3], name or "transpose_image")
    return squeeze(result, [0]) if is_single else result


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """Images turned `k` times by 90 degrees against the clock."""
    batch, is_single = _as_batch(image)
    with get_default_graph().name_scope(name or "rot90"):
        match k % 4:
            case 1:
                result = permute(reverse(batch, [2]), [0, 2, 1, 3])
            case 2:
                result = reverse(batch, [1, 2])
            case 3:
                result = reverse(permute(batch, [0, 2, 1, 3]), [2])
            case _:
                result = batch
        return squeeze(result, [0]) if is_single else result


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Each image flipped, or not."""
    return _flipped_at_random(image, flip_left_right(image), seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Each image flipped, or not."""
    return _flipped_at_random(image, flip_up_down(image), seed)


def _flipped_at_random(image: Any, flipped: Tensor, seed: int | None) -> Tensor:
    tensor = convert_to_tensor(image)
    _, is_single = _as_batch(tensor)
    sizes = [1, 1, 1] if is_single else concat([shape(tensor)[:1], [1, 1, 1]], 0)
    return where_v2(less(random_uniform(sizes, seed=seed), 0.5), flipped, tensor)


# Boxes.


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Boxes `[y1, x1, y2, x2]`, in parts of the image, brought to one size; `box_ind` says from which image each is."""
    owners = box_ind if box_indices is None else box_indices
    inputs = [convert_to_tensor(image), convert_to_tensor(boxes, float32), convert_to_tensor(owners)]
    attrs = {"method": method, "extrapolation_value": float(extrapolation_value)}
    return node("CropAndResize", [*inputs, as_size_vector(crop_size)], attrs, name)


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A random part of an image that shows enough of one of the boxes: where it begins, its size, and it as a box.

    Args:
        image_size: `[height, width, channels]`.
        bounding_boxes: `[batch, number, 4]`, as `[y1, x1, y2, x2]` in parts of the image.
        seed: Seed of the operation.
        seed2: A second seed.
        min_object_covered: How much of a box must be shown.
        aspect_ratio_range: Smallest and largest width over height.
        area_range: Smallest and largest part of the image.
        max_attempts: After so many the whole image is taken.
        use_image_if_no_bounding_boxes: Take the image as the box when there is none.
        name: Name of the operation.
    """
    graph_seed, op_seed = get_seed(seed) if not seed2 else (seed or 0, seed2)
    given = {
        "aspect_ratio_range": aspect_ratio_range and tuple(aspect_ratio_range),
        "area_range": area_range and tuple(area_range),
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    attrs = {"seed": graph_seed, "seed2": op_seed, **{key: each for key, each in given.items() if each is not None}}
    inputs = [convert_to_tensor(image_size), convert_to_tensor(bounding_boxes, float32)]
    covered = convert_to_tensor(min_object_covered, float32)
    begin, size, box = operation("SampleDistortedBoundingBoxV2", [*inputs, covered], attrs, name).outputs
    return begin, size, box


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Tensor:
    """Numbers of the boxes with the best scores, without those that overlap a better one too much."""
    inputs = [*_boxes(boxes, scores, max_output_size), *map(_limit, (iou_threshold, score_threshold))]
    return node("NonMaxSuppressionV3", inputs, None, name)


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `non_max_suppression`, with scores, which `soft_nms_sigma` above 0 lowers instead of striking boxes out."""
    limits = map(_limit, (iou_threshold, score_threshold, soft_nms_sigma))
    inputs = [*_boxes(boxes, scores, max_output_size), *limits]
    found = operation("NonMaxSuppressionV5", inputs, {"pad_to_max_output_size": False}, name).outputs
    return found[0], found[1]


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """As `non_max_suppression`, filled up with zeros to `max_output_size`; and how many there are.

    Args:
        boxes: `[..., number, 4]`; leading dimensions, which must be known, are batches.
        scores: `[..., number]`.
        max_output_size: A number.
        iou_threshold: As in `non_max_suppression`.
        score_threshold: As in `non_max_suppression`.
        pad_to_max_output_size: Whether it is filled up; batches always are.
        name: Name of the operation.
        sorted_input: Accepted for compatibility.
        canonicalized_coordinates: Accepted for compatibility.
        tile_size: Accepted for compatibility.
    """
    corners, values = convert_to_tensor(boxes), convert_to_tensor(scores)
    limits = [*map(_limit, (iou_threshold, score_threshold))]
    with get_default_graph().name_scope(name or "non_max_suppression_padded"):
        if corners.shape.rank in (None, 2):
            attrs = {"pad_to_max_output_size": pad_to_max_output_size}
            found = operation("NonMaxSuppressionV4", [*_boxes(corners, values, max_output_size), *limits], attrs)
            return found.outputs[0], found.outputs[1]
        batch = list(values.shape[:-1].known_dims())
        pairs = zip(
            unstack(reshape(corners, [math.prod(batch), -1, 4]), math.prod(batch)),
            unstack(reshape(values, [math.prod(batch), -1]), math.prod(batch)),
            strict=True,
        )
        each = [
            operation(
                "NonMaxSuppressionV4", [*_boxes(*pair, max_output_size), *limits], {"pad_to_max_output_size": True}
            ).outputs
            for pair in pairs
        ]
        chosen, counts = stack([one[0] for one in each]), stack([one[1] for one in each])
        return reshape(chosen, [*batch, max_output_size]), reshape(counts, batch)


def _boxes(boxes: Any, scores: Any, count: Any) -> list[Tensor]:
    return [convert_to_tensor(boxes), convert_to_tensor(scores), convert_to_tensor(count, int32)]


def _limit(value: Any) -> Tensor:
    return convert_to_tensor(value, preferred_dtype=float32)
