"""Pictures as files."""

import builtins
import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.files.png import encode_png

IMAGE = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
SMOOTH = np.add.outer(np.arange(16) * 8, np.arange(24) * 4)[:, :, None].repeat(3, 2).astype(np.uint8)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def pillow() -> Any:
    return pytest.importorskip("PIL.Image")


def run(fetches: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(fetches)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_hold_what_was_put_in(pillow: Any, channels: int) -> None:
    pixels = np.concatenate([IMAGE, IMAGE[:, :, :1]], 2)[:, :, :channels]
    data = tf.image.encode_png(pixels)
    decoded = tf.image.decode_png(data)
    assert decoded.shape.as_list() == [None, None, None]
    np.testing.assert_array_equal(run(decoded), pixels)
    np.testing.assert_array_equal(run(tf.image.decode_image(data)), pixels)


def test_channels_and_types_as_asked_for(pillow: Any) -> None:
    data = encode_png(IMAGE)
    decoded = tf.image.decode_png(data, channels=4)
    assert decoded.shape.as_list() == [None, None, 4]
    assert (run(decoded)[..., 3] == 255).all()
    np.testing.assert_array_equal(run(tf.image.decode_png(data, dtype=tf.uint16)), IMAGE.astype(np.uint16) * 257)
    scaled = run(tf.image.decode_image(data, dtype=tf.float32))
    np.testing.assert_array_equal(scaled, IMAGE.astype(np.float32) / 255)
    deep = (IMAGE[:, :, :1].astype(np.uint16) << 8) + 3
    np.testing.assert_array_equal(run(tf.image.decode_png(encode_png(deep), dtype=tf.uint16)), deep)


def test_jpeg_files_are_near_what_was_put_in(pillow: Any) -> None:
    data = tf.image.encode_jpeg(SMOOTH, quality=98)
    near = run(tf.image.decode_jpeg(data))
    assert np.abs(near.astype(int) - SMOOTH).max() <= 6
    assert list(run(tf.image.extract_jpeg_shape(data))) == [16, 24, 3]
    assert run(tf.image.decode_jpeg(data, channels=1)).shape == (16, 24, 1)
    assert run(tf.image.decode_jpeg(data, ratio=2)).shape == (8, 12, 3)
    np.testing.assert_array_equal(run(tf.image.decode_and_crop_jpeg(data, [2, 3, 4, 5])), near[2:6, 3:8])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid crop window"):
        run(tf.image.decode_and_crop_jpeg(data, [14, 0, 4, 5]))


def test_frames_and_bitmaps(pillow: Any) -> None:
    gif, bmp = io.BytesIO(), io.BytesIO()
    frames = [pillow.fromarray(np.full((4, 6, 3), value, np.uint8)) for value in (0, 255)]
    frames[0].save(gif, "GIF", save_all=True, append_images=frames[1:])
    pillow.fromarray(IMAGE).save(bmp, "BMP")
    moving = run(tf.image.decode_gif(gif.getvalue()))
    assert moving.shape == (2, 4, 6, 3)
    assert list(moving[:, 0, 0, 0]) == [0, 255]
    assert run(tf.image.decode_image(gif.getvalue())).shape == (2, 4, 6, 3)
    assert run(tf.image.decode_image(gif.getvalue(), expand_animations=False)).shape == (4, 6, 3)
    np.testing.assert_array_equal(run(tf.image.decode_bmp(bmp.getvalue())), IMAGE)


def test_what_is_no_picture(pillow: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown image file format"):
        run(tf.image.decode_jpeg("nothing"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="damaged"):
        run(tf.image.decode_png(encode_png(IMAGE)[:60]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 or 3 channels"):
        run(tf.image.encode_jpeg(IMAGE[:, :, :2]))


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "PIL":
            raise ImportError(name)
        return original(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(tf.image.encode_png(IMAGE)).startswith(b"\x89PNG")
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install xlalite\[images\]"):
        run(tf.image.decode_png("x"))


def png_of_sizes(height: int, width: int, depth: int = 8) -> bytes:
    """A PNG file that says how large it is, without pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(("height", "width", "depth"), [(60000, 60000, 8), (10000, 10000, 8), (9, 9, 16)])
def test_files_that_promise_more_than_they_hold_are_refused(pillow: Any, height: int, width: int, depth: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="damaged file"):
        run(tf.image.decode_png(png_of_sizes(height, width, depth), dtype=tf.uint16))


def test_moving_pictures_have_a_largest_size(pillow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    frames = [pillow.new("RGB", (8, 8), (shade, 0, 0)) for shade in range(0, 250, 50)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    assert run(tf.image.decode_gif(file.getvalue())).shape == (5, 8, 8, 3)
    monkeypatch.setattr("xlalite.ops.declarations.image_files._MOST_PIXELS", 200)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"5 frames of \(8, 8\) are too large"):
        run(tf.image.decode_gif(file.getvalue()))


@pytest.mark.parametrize("format", ["TIFF", "EPS"])
def test_only_the_formats_of_the_operations_are_opened(pillow: Any, format: str) -> None:
    file = io.BytesIO()
    pillow.new("RGB", (3, 4)).save(file, format)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown image file format"):
        run(tf.image.decode_image(file.getvalue()))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_channels_of_deep_gray_pictures_are_those_asked_for(pillow: Any, channels: int) -> None:
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4, 1) * 1000
    found = run(tf.image.decode_png(encode_png(deep), channels, tf.uint16))
    assert found.shape == (3, 4, channels)
    np.testing.assert_array_equal(found[..., 0], deep[..., 0])
    np.testing.assert_array_equal(found[..., -1], deep[..., 0] if channels % 2 else 65535)


def test_numbers_of_channels_that_no_picture_has() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels must be 0, 1, 2, 3 or 4, not 5"):
        tf.image.decode_png(b"", 5)


def test_crop_windows_have_four_numbers(pillow: Any) -> None:
    data = run(tf.image.encode_jpeg(SMOOTH))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not enough values"):
        run(tf.image.decode_and_crop_jpeg(data, [1, 1, 1]))


@pytest.mark.parametrize("found", [1, 2, 3, 4])
def test_deep_pictures_in_colour_and_with_alpha_keep_all_bits(pillow: Any, found: int) -> None:
    pixels = np.random.default_rng(found).integers(0, 65536, (5, 7, found)).astype(np.uint16)
    data = encode_png(pixels)
    colors = pixels[:, :, :1] if found < 3 else pixels[:, :, :3]
    alpha = np.full_like(colors[:, :, :1], 65535) if found % 2 else pixels[:, :, -1:]
    gray = colors if found < 3 else np.round(colors @ np.array([[0.299], [0.587], [0.114]])).astype(np.uint16)
    color = np.repeat(colors, 3, 2) if found < 3 else colors
    wanted = {0: pixels, 1: gray, 2: [gray, alpha], 3: color, 4: [color, alpha]}
    for channels, parts in wanted.items():
        expected = np.concatenate(parts, 2) if isinstance(parts, list) else parts
        decoded = run(tf.image.decode_png(data, channels=channels, dtype=tf.uint16))
        np.testing.assert_allclose(decoded, expected, rtol=0, atol=1 if channels in (1, 2) and found > 2 else 0)
    np.testing.assert_array_equal(run(tf.image.decode_png(data)), pixels >> 8)
    np.testing.assert_array_equal(run(tf.image.decode_image(data, dtype=tf.float32)), pixels / np.float32(65535))
