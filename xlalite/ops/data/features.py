"""What `parse_example` may be asked to read."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import as_dtype


class FixedLenFeature:
    """A feature of known shape; without a default, every example must have it."""

    def __init__(self, shape: Any, dtype: Any, default_value: Any = None) -> None:
        self.shape = shape
        self.dtype = as_dtype(dtype)
        self.default_value = default_value


class FixedLenSequenceFeature:
    """A feature of rows of known shape, of which there may be any number; shorter ones are padded."""

    def __init__(self, shape: Any, dtype: Any, allow_missing: bool = False, default_value: Any = None) -> None:
        self.shape = shape
        self.dtype = as_dtype(dtype)
        self.allow_missing = allow_missing
        self.default_value = default_value


class VarLenFeature:
    """A feature of any number of values; those of all examples become a `SparseTensor`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = as_dtype(dtype)


class SparseFeature:
    """A `SparseTensor` of `size` whose indices stand in a feature, or several, and whose values in another."""

    def __init__(self, index_key: Any, value_key: str, dtype: Any, size: Any, already_sorted: bool = False) -> None:
        self.index_key = index_key
        self.value_key = value_key
        self.dtype = as_dtype(dtype)
        self.size = size
        self.already_sorted = already_sorted

    @property
    def index_keys(self) -> list[str]:
        """The features of the indices."""
        return [self.index_key] if isinstance(self.index_key, str) else list(self.index_key)
