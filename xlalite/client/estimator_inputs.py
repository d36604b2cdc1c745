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


def _as_arrays(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_as_arrays, given))
    return {key: np.asarray(each) for key, each in given.items()} if isinstance(given, dict) else np.asarray(given)
