"""The digits that ship in the package: 1,797 images of 8 x 8 pixels from 0 to 16 (see DIGITS_LICENSE.md)."""

import importlib.resources

import numpy as np
from numpy.typing import NDArray

from xlalite.examples.tutorials.mnist.idx import Split

SIDE = 8
MAX_PIXEL = 16
TEST_EVERY = 5


def read_digits() -> tuple[Split, Split]:
    """The training and the test images.

    Every fifth image is for the test: the writers follow one another in the file, so each is in both parts.
    """
    images, labels = _parse(importlib.resources.files(__package__).joinpath("digits.txt").read_bytes())
    is_test = np.arange(len(labels)) % TEST_EVERY == TEST_EVERY - 1
    return Split(images[~is_test], labels[~is_test]), Split(images[is_test], labels[is_test])


def _parse(text: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """One image a line: its pixels as one character each, a space, its label."""
    lines = text.split()
    pixels = np.frombuffer(b"".join(lines[0::2]), np.uint8)
    values = np.where(pixels <= ord("9"), pixels - ord("0"), pixels - ord("a") + 10).astype(np.uint8)
    labels = np.frombuffer(b"".join(lines[1::2]), np.uint8) - ord("0")
    return values.reshape(-1, SIDE, SIDE), labels.astype(np.uint8)
