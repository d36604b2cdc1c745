"""`tf.contrib.learn.datasets`: MNIST by name, and tables out of comma-separated values."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xlalite.examples.tutorials.mnist.input_data import Datasets, read_data_sets
from xlalite.files.gfile import translated_errors


class Table(NamedTuple):
    """Rows of numbers with what is to be learned of each."""

    data: NDArray[Any]
    target: NDArray[Any]


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """MNIST from its files."""
    return read_data_sets(train_dir)


DATASETS: Final[Mapping[str, Callable[..., Datasets]]] = {"mnist": load_mnist}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Datasets:
    """A data set by its name; nothing is downloaded.

    Raises:
        ValueError: There is none of that name here.
    """
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}; there is {', '.join(DATASETS)}")
    return DATASETS[name]()


def load_csv_with_header(
    filename: str, target_dtype: DTypeLike, features_dtype: DTypeLike, target_column: int = -1
) -> Table:
    """The rows after the first line, which gives the numbers of rows and of features."""
    rows = _rows(filename)
    return _table(rows[1 : 1 + int(rows[0][0])], target_dtype, features_dtype, target_column)


def load_csv_without_header(
    filename: str, target_dtype: DTypeLike, features_dtype: DTypeLike, target_column: int = -1
) -> Table:
    """All rows."""
    return _table(_rows(filename), target_dtype, features_dtype, target_column)


def _rows(filename: str) -> list[list[str]]:
    with translated_errors(filename), open(filename, newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if row]


def _table(rows: list[list[str]], target_dtype: DTypeLike, features_dtype: DTypeLike, target_column: int) -> Table:
    target = [row.pop(target_column) for row in rows]
    return Table(np.array(rows, features_dtype), np.array(target, target_dtype))
