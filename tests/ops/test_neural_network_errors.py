"""What neural-network operations refuse, and what they say."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import XlaliteError
from xlalite.ops.functions import (
    array as a,
    convolutions as c,
    image,
    image_colors as colors,
    morphology,
    normalization as n,
    pooling as p,
    quantization as q,
    space_blocks as b,
)

IMAGE = np.zeros((2, 5, 5, 4), np.float32)
KERNEL = np.zeros((3, 3, 4, 2), np.float32)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "rank": (lambda: c.conv2d(IMAGE[0], KERNEL, 1, "SAME"), r"shape \(5, 5, 4\) must have rank 4"),
    "channels": (
        lambda: c.conv2d(IMAGE, KERNEL[:, :, :3], 1, "SAME"),
        "an image of 4 channels does not fit a filter from 3 to 2 channels",
    ),
    "groups": (lambda: c.conv2d(IMAGE, KERNEL[:, :, :1], 1, "SAME"), "so must the groups the 2"),
    "depthwise channels": (
        lambda: c.depthwise_conv2d(IMAGE, KERNEL[:, :, :2], 1, "SAME"),
        "an image of 4 channels does not fit a filter for 2",
    ),
    "format": (lambda: c.conv2d(IMAGE, KERNEL, 1, "SAME", data_format="NDHWC"), "'NDHWC' is not one of NHWC, NCHW"),
    "padding": (lambda: c.conv2d(IMAGE, KERNEL, 1, "FULL"), "padding 'FULL' is not one of SAME, VALID, EXPLICIT"),
    "explicit padding": (
        lambda: c.conv2d(IMAGE, KERNEL, 1, [[0, 0], [1, 1]]),
        r"explicit_paddings are \[0, 0, 1, 1\]; expected 8 sizes",
    ),
    "strides": (lambda: c.conv2d(IMAGE, KERNEL, [1, 2, 3], "SAME"), r"strides are \[1, 2, 3\]; expected 1, 2 or 4"),
    "stride 0": (lambda: c.conv2d(IMAGE, KERNEL, 0, "SAME"), "expected 4 positive numbers"),
    "stride of the batch": (
        lambda: c.conv2d(IMAGE, KERNEL, [2, 1, 1, 1], "SAME"),
        "of batch and channels must be 1, 1 and 0",
    ),
    "window": (lambda: c.conv2d(IMAGE, a.zeros([9, 3, 4, 2]), 1, "VALID"), "a window of 9 is larger than .* 5"),
    "gradient": (
        lambda: c.conv2d_backprop_input(IMAGE.shape, KERNEL, IMAGE, 1, "SAME"),
        r"out_backprop has shape \(2, 5, 5, 4\); expected \(2, 5, 5, 2\)",
    ),
    "both spellings": (lambda: c.conv2d(IMAGE, KERNEL, 1, "SAME", filters=KERNEL), "exactly one spelling of filter"),
    "window of pooling": (
        lambda: p.max_pool(IMAGE, [2, 2, 2], 1, "SAME"),
        r"ksize are \[2, 2, 2\]; expected 1, 2 or 4",
    ),
    "kind of pooling": (lambda: p.pool(IMAGE, [2, 2], "MEDIAN", "SAME"), "'MEDIAN' is not one of AVG, MAX"),
    "pooling of truth values": (lambda: p.avg_pool(IMAGE > 0, 2, 2, "SAME"), "element type bool"),
    "rank of pooling": (lambda: p.pool(IMAGE[0, 0], [2], "MAX", "SAME"), "must have rank 3, 4 or 5"),
    "statistics": (
        lambda: n.fused_batch_norm(IMAGE, [1.0] * 4, [0.0] * 4, is_training=False),
        "mean and variance are needed",
    ),
    "channels of statistics": (
        lambda: n.fused_batch_norm(IMAGE, [1.0] * 3, [0.0] * 3),
        r"shapes \(4,\) and \(3,\)",
    ),
    "format of batch norm": (
        lambda: n.fused_batch_norm(IMAGE, [1.0] * 4, [0.0] * 4, data_format="NHCW"),
        "'NHCW' is not one of NHWC, NCHW",
    ),
    "radius": (lambda: n.local_response_normalization(IMAGE, -1), "depth_radius must not be negative, found -1"),
    "blocks": (lambda: b.space_to_batch_nd(IMAGE, [2, 2], [[0, 0], [0, 1]]), "a size of 5, 5 with padding, is not div"),
    "batch of blocks": (lambda: b.batch_to_space(IMAGE, [[0, 0], [0, 0]], 2), "a batch of 2 is not divisible by the 4"),
    "crops": (lambda: b.batch_to_space_nd(IMAGE, [2], [[6, 6]]), r"crops \[6, 6\] leave nothing of a size of 5"),
    "margins": (
        lambda: b.space_to_batch_nd(IMAGE, [2, 2], [[0, 0]]),
        r"paddings have shape \(1, 2\); expected \(2, 2\)",
    ),
    "depth": (lambda: b.depth_to_space(IMAGE, 3), "dimension 3 of size 4 is not divisible by 9"),
    "rates": (
        lambda: b.extract_image_patches(IMAGE, [1, 2, 2, 1], [1] * 4, [1, 1, 1, 2], "SAME"),
        r"rates of batch and channels must be 1",
    ),
    "range": (lambda: q.fake_quant_with_min_max_args(IMAGE, 3, 2), "min 3.0 must be less than max 2.0"),
    "bits": (lambda: q.fake_quant_with_min_max_args(IMAGE, num_bits=1), "num_bits must be from 2 to 16, found 1"),
    "ranges of channels": (
        lambda: q.fake_quant_with_min_max_vars_per_channel(IMAGE, [0.0] * 3, [1.0] * 3),
        r"shapes \(3,\) and \(4,\)",
    ),
    "resizing": (
        lambda: image.resize_bilinear(IMAGE, [2, 2], True, half_pixel_centers=True),
        "align_corners and half_pixel_centers exclude each other",
    ),
    "rank of resizing": (lambda: image.resize_bilinear(IMAGE[0], [2, 2]), "must have rank 4"),
    "method": (lambda: image.resize_images(IMAGE, [2, 2], "lanczos"), "'lanczos' is not one of"),
    "rank of an image": (lambda: image.rot90(IMAGE[0, 0]), "must have rank 3 or 4"),
    "box": (lambda: image.pad_to_bounding_box(IMAGE, 3, 0, 7, 7), "exceeds the target height"),
    "crops of boxes": (lambda: image.crop_and_resize(IMAGE, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2], "cubic"), "'cubic'"),
    "boxes": (lambda: image.crop_and_resize(IMAGE, [[0.0, 1.0]], [0], [2, 2]), r"\(1, 2\)"),
    "scores": (lambda: image.non_max_suppression(IMAGE[0, 0], [0.5], 2), r"\(1,\)"),
    "colours": (lambda: colors.rgb_to_hsv(IMAGE), r"\(2, 5, 5, 4\)"),
    "contrast": (lambda: colors.random_contrast(IMAGE, 2.0, 1.0), "expected 0 <= lower < upper, found 2.0 and 1.0"),
    "dilation": (
        lambda: morphology.dilation2d(IMAGE, KERNEL[..., 0], [2, 1, 1, 1], [1] * 4, "SAME"),
        "strides and rates of batch and channels must be 1",
    ),
    "channels of dilation": (
        lambda: morphology.dilation2d(IMAGE, KERNEL[:, :, 0], [1] * 4, [1] * 4, "SAME"),
        "an image of 4 channels does not fit a filter for 2",
    ),
    "places": (lambda: morphology.resampler(IMAGE, IMAGE[..., :3]), r"\(2, 5, 5, 3\)"),
    "element types": (lambda: c.conv2d(IMAGE.astype(bool), KERNEL.astype(bool), 1, "SAME"), "element type bool"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_when_the_graph_is_built(case: str, graph: Graph) -> None:
    build, message = REFUSED[case]
    with pytest.raises(XlaliteError, match=message):
        build()
