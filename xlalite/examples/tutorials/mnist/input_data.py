"""MNIST as TensorFlow's tutorials read it: `read_data_sets(...)`, then `.train.next_batch(100)`.

Without a directory the smaller set of digits that ships in the package takes MNIST's place. Nothing is downloaded.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xlalite.examples.tutorials.mnist import digits, idx
from xlalite.examples.tutorials.mnist.idx import MissingDataError, Split
from xlalite.hlo.errors import DataError

CLASSES = 10
MAX_BYTE = 255
# MNIST's customary 5,000 of 60,000; the same share of smaller sets.
VALIDATION_SHARE = 12
FAKE_EXAMPLES = 10_000

Images = NDArray[np.float32] | NDArray[np.uint8]
Labels = NDArray[np.float64] | NDArray[np.uint8]


class DataSet:
    """Images with their labels, handed out in shuffled batches.

    Attributes:
        images: `[n, pixels]`, or `[n, rows, columns, 1]` when they were not flattened.
        labels: `[n]` as uint8, or `[n, 10]` as float64 when they are one-hot.
        num_examples: How many there are.
        epochs_completed: How often all of them have been handed out.
    """

    def __init__(self, images: Images, labels: Labels, seed: int | None = None) -> None:
        """Takes over the arrays; a seed makes the order independent of `numpy.random`'s state.

        Raises:
            DataError: There is not one label for each image.
        """
        if len(images) != len(labels):
            raise DataError(f"a data set needs a label for each image, found {len(images)} and {len(labels)}")
        self.images = images
        self.labels = labels
        self.num_examples = len(images)
        self.epochs_completed = 0
        self._order = np.arange(self.num_examples)
        self._position = 0
        self._shuffle_in_place = np.random.shuffle if seed is None else np.random.RandomState(seed).shuffle

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Images, Labels]:
        """The next examples; the tail of an epoch is joined with the start of the next.

        Args:
            batch_size: How many examples; may exceed the size of the set.
            fake_data: Has no effect here: `read_data_sets(fake_data=True)` makes sets of fake examples.
            shuffle: Whether the epochs that this call begins are in a new random order.

        Raises:
            ValueError: The size is not positive, or the set is empty.
        """
        if batch_size < 1 or not self.num_examples:
            raise ValueError(f"next_batch: cannot take {batch_size} examples from a set of {self.num_examples}")
        if self.epochs_completed == 0 and self._position == 0 and shuffle:
            self._shuffle_in_place(self._order)
        end = self._position + batch_size
        if end <= self.num_examples:
            chosen = self._order[self._position : end]
            self._position = end
        else:
            chosen = self._across_epochs(batch_size, shuffle)
        return self.images[chosen], self.labels[chosen]

    def _across_epochs(self, batch_size: int, shuffle: bool) -> NDArray[np.intp]:
        parts = [self._order[self._position :].copy()]
        missing = batch_size - len(parts[0])
        while missing:
            self.epochs_completed += 1
            if shuffle:
                self._shuffle_in_place(self._order)
            self._position = min(missing, self.num_examples)
            parts.append(self._order[: self._position].copy())
            missing -= self._position
        return np.concatenate(parts)


class Datasets(NamedTuple):
    """The three parts of a data set."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str | Path | None,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: DTypeLike = np.float32,
    reshape: bool = True,
    validation_size: int | None = None,
    seed: int | None = None,
) -> Datasets:
    """Reads MNIST's four files from a directory; without a directory, the digits of the package.

    Args:
        train_dir: The directory, or None or an empty string.
        fake_data: Makes up constant examples of MNIST's size and reads nothing.
        one_hot: Gives labels as `[n, 10]` instead of `[n]`.
        dtype: float32 scales the pixels to 0..1, uint8 leaves them as they are (0..255, the package's digits 0..16).
        reshape: Flattens each image.
        validation_size: How many training images, from the first on, make the validation set. The default is one of
            twelve: MNIST's customary 5,000.
        seed: Makes the order of the batches reproducible without `numpy.random.seed`.

    Raises:
        MissingDataError: The directory does not have the files.
        DataError: A file is not what its name promises.
        TypeError: The dtype is neither float32 nor uint8.
        ValueError: More validation images than training images were wanted.
    """
    wanted = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    if wanted not in (np.dtype(np.float32), np.dtype(np.uint8)):
        raise TypeError(f"read_data_sets: expected dtype float32 or uint8, found {wanted}")
    if fake_data:
        fake = _fake_split()
        return Datasets(*(_data_set(fake, MAX_BYTE, wanted, one_hot, reshape, seed) for _ in range(3)))
    if train_dir:
        train, test = _read_mnist(Path(train_dir))
        max_pixel = MAX_BYTE
    else:
        train, test = digits.read_digits()
        max_pixel = digits.MAX_PIXEL
    count = len(train.labels) // VALIDATION_SHARE if validation_size is None else validation_size
    if not 0 <= count <= len(train.labels):
        raise ValueError(
            f"read_data_sets: validation_size must be from 0 to the number of training images, {len(train.labels)}; "
            f"found {count}"
        )
    validation = Split(train.images[:count], train.labels[:count])
    train = Split(train.images[count:], train.labels[count:])
    return Datasets(*(_data_set(part, max_pixel, wanted, one_hot, reshape, seed) for part in (train, validation, test)))


def _read_mnist(directory: Path) -> tuple[Split, Split]:
    names = [f"{prefix}-{kind}-ubyte" for prefix in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    missing = [name for name in names if idx.find(directory, name) is None]
    if missing:
        state = "has no" if directory.is_dir() else "is not a directory, so there is no"
        raise MissingDataError(
            f"{directory} {state} {', '.join(missing)}: MNIST is four files in IDX format, {', '.join(names)}, each "
            "plain or with .gz. Without a directory, the digits that ship in the package are read"
        )
    return idx.read_split(directory, "train"), idx.read_split(directory, "t10k")


def _fake_split() -> Split:
    """White images that show a zero."""
    return Split(np.full((FAKE_EXAMPLES, 28, 28), MAX_BYTE, np.uint8), np.zeros(FAKE_EXAMPLES, np.uint8))


def _data_set(
    split: Split, max_pixel: int, dtype: np.dtype[np.generic], one_hot: bool, reshape: bool, seed: int | None
) -> DataSet:
    count, rows, columns = split.images.shape
    pixels = split.images.reshape((count, rows * columns) if reshape else (count, rows, columns, 1))
    images: Images = pixels if dtype == np.uint8 else np.multiply(pixels, np.float32(1 / max_pixel), dtype=np.float32)
    if one_hot and split.labels.size and split.labels.max() >= CLASSES:
        raise DataError(f"one-hot labels are for the digits 0 to 9, found {split.labels.max()}")
    return DataSet(images, np.eye(CLASSES)[split.labels] if one_hot else split.labels, seed)


__all__ = ["DataSet", "Datasets", "MissingDataError", "read_data_sets"]
