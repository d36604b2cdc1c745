"""Functions of images as `xlalite.image` has them, and gradients that are in single precision whatever comes in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.cases import images as cases

from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.ops.functions import array as a, image, image_colors as colors, image_measures as measures, math as m
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients

F = np.float32
X = cases.X
ONE = X[0]
BYTES = np.arange(60, dtype=np.uint8).reshape(4, 5, 3) * 4


def centred(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Cut and padded on both sides alike."""
    for axis, size in ((0, rows), (1, columns)):
        rest = x.shape[axis] - size
        if rest > 0:
            x = np.take(x, range(rest // 2, rest // 2 + size), axis)
        else:
            margins = [(0, 0)] * x.ndim
            margins[axis] = (-rest // 2, -rest - -rest // 2)
            x = np.pad(x, margins)
    return x


SAME: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "flip_left_right": (image.flip_left_right, lambda x: x[:, ::-1]),
    "flip_up_down": (image.flip_up_down, lambda x: x[::-1]),
    "transpose": (image.transpose, lambda x: x.transpose(1, 0, 2)),
    **{f"rot90 {k}": (lambda x, k=k: image.rot90(x, k), lambda x, k=k: np.rot90(x, k)) for k in range(-1, 4)},
    "crop_to_bounding_box": (lambda x: image.crop_to_bounding_box(x, 1, 2, 3, 2), lambda x: x[1:4, 2:4]),
    "pad_to_bounding_box": (
        lambda x: image.pad_to_bounding_box(x, 1, 2, 6, 9),
        lambda x: np.pad(x, [(1, 1), (2, 2), (0, 0)]),
    ),
    "crop or pad": (lambda x: image.resize_image_with_crop_or_pad(x, 7, 3), lambda x: centred(x, 7, 3)),
    "central_crop": (lambda x: image.central_crop(x, 0.5), lambda x: x[1:3, 1:4]),
    "resize_images": (
        lambda x: image.resize_images(x, (8, 5), image.ResizeMethod.NEAREST_NEIGHBOR),
        lambda x: x.repeat(2, 0),
    ),
    "resize_images with proportions": (
        lambda x: image.resize_images(x, (8, 40), image.ResizeMethod.NEAREST_NEIGHBOR, preserve_aspect_ratio=True),
        lambda x: x.repeat(2, 0).repeat(2, 1),
    ),
    "resize_images to the same": (lambda x: image.resize_images(x, (4, 5)), lambda x: x),
    "resize with pad": (
        lambda x: image.resize_image_with_pad(x, 8, 14, image.ResizeMethod.NEAREST_NEIGHBOR),
        lambda x: np.pad(x.repeat(2, 0).repeat(2, 1), [(0, 0), (2, 2), (0, 0)]),
    ),
    "rgb_to_grayscale": (colors.rgb_to_grayscale, lambda x: (x @ F([0.2989, 0.587, 0.114]))[..., None]),
    "grayscale_to_rgb": (lambda x: colors.grayscale_to_rgb(x[..., :1]), lambda x: np.repeat(x[..., :1], 3, -1)),
    "yiq and back": (lambda x: colors.yiq_to_rgb(colors.rgb_to_yiq(x)), lambda x: x),
    "yuv and back": (lambda x: colors.yuv_to_rgb(colors.rgb_to_yuv(x)), lambda x: x),
    "adjust_brightness": (lambda x: colors.adjust_brightness(x, -0.25), lambda x: x - F(0.25)),
    "adjust_contrast": (lambda x: colors.adjust_contrast(x, 0.5), lambda x: cases.contrast(x, F(0.5))),
    "adjust_gamma": (lambda x: colors.adjust_gamma(abs(x), 2, 3), lambda x: 3 * x * x),
    "per_image_standardization": (colors.per_image_standardization, lambda x: (x - x.mean()) / x.std()),
    "total_variation": (
        measures.total_variation,
        lambda x: np.abs(np.diff(x, axis=0)).sum() + np.abs(np.diff(x, axis=1)).sum(),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_functions_of_one_image_and_of_a_batch(name: str, run: Any) -> None:
    build, expected = SAME[name]
    # The two matrices are each other's inverses but for the digits that were written down.
    tolerance = 1e-4 if name.endswith("back") else 1e-5
    np.testing.assert_allclose(run(build(constant(ONE))), expected(ONE), rtol=tolerance, atol=tolerance)
    batch = np.stack([expected(each) for each in X])
    found = build(constant(X))
    assert found.shape.is_compatible_with(batch.shape)
    np.testing.assert_allclose(run(found), batch, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["crop or pad", "pad_to_bounding_box", "central_crop", "per_image_standardization"])
def test_functions_of_images_whose_size_is_not_known(name: str, run: Any) -> None:
    build, expected = SAME[name]
    x = a.placeholder(np.float32, [None, None, 3])
    np.testing.assert_allclose(run(build(x), {x: ONE}), expected(ONE), rtol=1e-5, atol=1e-5)


CONVERSIONS = {
    ("uint8", "float32"): (np.uint8([0, 128, 255]), F([0, 128 / 255, 1])),
    ("float32", "uint8"): (F([0, 0.5, 1]), np.uint8([0, 127, 255])),
    ("uint8", "int16"): (np.uint8([0, 1, 255]), np.int16([0, 128, 32640])),
    ("int16", "uint8"): (np.int16([0, 128, 32767]), np.uint8([0, 1, 255])),
    ("float32", "float64"): (F([0.25, 3]), np.array([0.25, 3.0])),
    ("uint8", "uint8"): (np.uint8([7]), np.uint8([7])),
}


@pytest.mark.parametrize("types", CONVERSIONS, ids=" to ".join)
def test_all_of_an_integer_type_stands_for_the_range_to_1(types: tuple[str, str], run: Any) -> None:
    given, expected = CONVERSIONS[types]
    found = run(colors.convert_image_dtype(constant(given), types[1]))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_conversion_cuts_off_if_asked_to(run: Any) -> None:
    found = run(colors.convert_image_dtype(constant(F([-1, 2])), "uint8", saturate=True))
    np.testing.assert_array_equal(found, [0, 255])
    bright = run(colors.adjust_brightness(constant(BYTES), 0.5))
    np.testing.assert_allclose(bright, np.minimum(BYTES + 127.5, 255), atol=1)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: colors.random_brightness(x, 0.3, seed=1),
        lambda x: colors.random_contrast(x, 0.5, 1.5, seed=1),
        lambda x: colors.random_hue(x, 0.3, seed=1),
        lambda x: colors.random_saturation(x, 0.5, 1.5, seed=1),
        lambda x: image.random_flip_left_right(x, seed=1),
        lambda x: image.random_flip_up_down(x, seed=1),
    ],
)
def test_random_changes_keep_the_type_and_differ_from_run_to_run(build: Any, run: Any) -> None:
    x = constant(BYTES)
    result = build(x)
    found = [run(result) for _ in range(12)]
    assert found[0].dtype == np.uint8
    assert any((each != found[0]).any() for each in found)


def test_flips_of_a_batch_are_independent(run: Any) -> None:
    batch = np.stack([ONE] * 40)
    found = run(image.random_flip_left_right(constant(batch), seed=3))
    flipped = [bool((each == ONE[:, ::-1]).all()) for each in found]
    assert all(flip or (each == ONE).all() for flip, each in zip(flipped, found, strict=True))
    assert 5 < sum(flipped) < 35


@pytest.mark.parametrize("build", [image.resize_bilinear, image.resize_bicubic])
def test_gradients_of_resizing_are_its_transpose_again_and_again(build: Any, run: Any) -> None:
    x, g = constant(X), constant(cases.array(2, 7, 3, 3))
    (back,) = gradients(build(x, [7, 3]), x, grad_ys=[g])
    (forth,) = gradients(back, g, grad_ys=[x])
    product, forward, again = run([m.reduce_sum(back * x), m.reduce_sum(build(x, [7, 3]) * g), m.reduce_sum(forth * g)])
    np.testing.assert_allclose([product, again], [forward, forward], rtol=1e-4)


def test_gradients_of_crops_reach_images_and_boxes(run: Any) -> None:
    x, boxes = constant(X), constant(cases.BOXES)
    result = image.crop_and_resize(x, boxes, cases.OWNERS, [3, 2])
    found = gradients(result, [x, boxes])
    assert [each.op.type for each in found] == ["CropAndResizeGradImage", "CropAndResizeGradBoxes"]
    assert [run(each).shape for each in found] == [X.shape, (4, 4)]


def test_boxes_that_overlap_a_better_one_are_left_out(run: Any) -> None:
    boxes, scores = cases.CORNERS, cases.SCORES
    np.testing.assert_array_equal(run(image.non_max_suppression(boxes, scores, 3)), [3, 0, 5])
    np.testing.assert_array_equal(run(image.non_max_suppression(boxes, scores, 30, 0.5, 0.4)), [3, 0])
    np.testing.assert_array_equal(run(image.non_max_suppression(boxes, scores, 4, 1.0)), [3, 0, 1, 2])
    chosen, count = run(list(image.non_max_suppression_padded(boxes, scores, 5)))
    np.testing.assert_array_equal(chosen, [3, 0, 5])
    assert count == 3


def test_random_parts_of_an_image_show_enough_of_a_box(run: Any) -> None:
    boxes = np.float32([[[0.2, 0.3, 0.5, 0.7]]])
    options = {"min_object_covered": 0.5, "aspect_ratio_range": [0.5, 2.0], "area_range": [0.1, 0.6]}
    results = list(image.sample_distorted_bounding_box([100, 80, 3], boxes, seed=1, **options))
    seen = set()
    for _ in range(40):
        begin, size, box = run(results)
        seen.add((*begin, *size))
        top, left, bottom, right = box[0, 0] * [100, 80, 100, 80]
        np.testing.assert_allclose([*begin, *size], [top, left, 0, bottom - top, right - left, -1], atol=1e-4)
        assert 0.1 * 8000 - 1 <= size[0] * size[1] <= 0.6 * 8000 + 1
        assert (size[1] + 0.5) / size[0] >= 0.5
        assert (size[1] - 0.5) / size[0] <= 2
        common = max(0, min(bottom, 50) - max(top, 20)) * max(0, min(right, 56) - max(left, 24))
        assert common >= 0.5 * 30 * 32 - 1
    assert len(seen) > 30
    with pytest.raises(InvalidArgumentError, match="there is no bounding box"):
        run(image.sample_distorted_bounding_box([9, 9, 3], np.zeros((1, 0, 4), np.float32))[0])
    whole = image.sample_distorted_bounding_box([9, 9, 3], boxes, max_attempts=1, area_range=[0.001, 0.002])
    np.testing.assert_array_equal(run(whole[1]), [9, 9, -1])


def test_soft_suppression_lowers_scores_instead(run: Any) -> None:
    chosen, scores = run(list(image.non_max_suppression_with_scores(cases.CORNERS, cases.SCORES, 6, 1.0, 0.0, 0.5)))
    np.testing.assert_array_equal(chosen, [3, 0, 1, 5, 4, 2])
    np.testing.assert_allclose(scores, [0.95, 0.9, 0.384, 0.3, 0.256, 0.197], atol=1e-3)


def test_differences_of_images(run: Any) -> None:
    down, right = run(list(measures.image_gradients(constant(X))))
    np.testing.assert_array_equal(down[:, :-1], np.diff(X, axis=1))
    np.testing.assert_array_equal(right[:, :, :-1], np.diff(X, axis=2))
    assert not down[:, -1].any()
    assert not right[:, :, -1].any()
    ramp = np.arange(5.0)[None, :, None, None] * np.ones((1, 5, 4, 2))
    edges = run(measures.sobel_edges(constant(F(ramp))))
    assert edges.shape == (1, 5, 4, 2, 2)
    np.testing.assert_array_equal(edges[0, 1:-1, :, :, 0], 8)
    np.testing.assert_array_equal(edges[..., 1], 0)


def test_likeness_of_images(run: Any) -> None:
    x = cases.array(2, 16, 16, 1)
    noisy = x + F(0.1) * cases.array(2, 16, 16, 1, seed=5.0)
    noise = ((x - noisy) ** 2).mean((1, 2, 3))
    np.testing.assert_allclose(run(measures.psnr(x, noisy, 2.0)), 10 * np.log10(4 / noise), rtol=1e-5)
    same, other = run([measures.ssim(x, x, 2.0), measures.ssim(x, noisy, 2.0)])
    np.testing.assert_allclose(same, [1, 1], rtol=1e-5)
    # All of a 11 x 11 image counts once, with the weights of the bell.
    offsets = np.arange(11) - 5
    bell = np.exp(-(offsets**2) / 4.5)
    weights = np.outer(bell, bell) / bell.sum() ** 2
    p, q = x[0, :11, :11, 0].astype(float), noisy[0, :11, :11, 0].astype(float)
    mean_p, mean_q = (weights * p).sum(), (weights * q).sum()
    both = (weights * p * q).sum() - mean_p * mean_q
    own = (weights * (p * p + q * q)).sum() - mean_p**2 - mean_q**2
    expected = (2 * mean_p * mean_q + 4e-4) / (mean_p**2 + mean_q**2 + 4e-4) * (2 * both + 36e-4) / (own + 36e-4)
    found = run(measures.ssim(x[:1, :11, :11], noisy[:1, :11, :11], 2.0))
    np.testing.assert_allclose(found, [expected], rtol=1e-4)
    assert (other < same).all()
