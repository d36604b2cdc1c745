"""Input functions for Estimators out of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.ops.data.dataset import Dataset


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """A function that gives batches of arrays, or of arrays by name: features, or features and labels.

    Raises:
        ValueError: `shuffle` is not given, or the arrays have different lengths.
    """
    if shuffle not in (True, False):
        raise ValueError("shuffle must be provided and explicitly set as boolean (it is recommended to set it as True)")
    arrays = x if y is None else (x, y)
    sizes = {
        len(each)
        for part in (x, y)
        if part is not None
        for each in (part.values() if isinstance(part, dict) else [part])
    }
    if len(sizes) != 1:
        raise ValueError(f"Length of tensors in x and y is mismatched: {sorted(sizes)}")

    def input_fn() -> Any:
        dataset = Dataset.from_tensor_slices(_as_arrays(arrays))
        if shuffle:
            dataset = dataset.shuffle(queue_capacity)
        return dataset.repeat(num_epochs).batch(batch_size).make_one_shot_iterator().get_next()

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """A function that gives batches of a pandas `DataFrame`: a vector for each column, and for `index`.

    Args:
        x: The features.
        y: The labels, a `Series` with the same index or a `DataFrame`, which gives a dictionary.
        batch_size: Rows of a batch; the last one may have fewer.
        num_epochs: How often each row comes; None for ever.
        shuffle: Whether the rows are shuffled.
        queue_capacity: How many rows are shuffled at a time.
        num_threads: Has no effect.
        target_column: The name of a column of `x` in place of which labels would stand.

    Raises:
        ValueError: `shuffle` is not given, `target_column` is a column of `x`, or labels have another index.
    """
    if y is not None and target_column in x:
        raise ValueError(f"Cannot use name {target_column} for target column: DataFrame already has a column with it")
    if y is not None and not x.index.equals(y.index):
        raise ValueError("Index for x and y are mismatched.")
    columns = {"index": x.index.to_numpy(), **_columns_of(x)}
    labels = _columns_of(y) if hasattr(y, "columns") else None if y is None else y.to_numpy()
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def _columns_of(frame: Any) -> dict[str, Any]:
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def _as_arrays(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_as_arrays, given))
    return {key: np.asarray(each) for key, each in given.items()} if isinstance(given, dict) else np.asarray(given)
