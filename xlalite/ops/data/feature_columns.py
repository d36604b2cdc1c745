"""`tf.feature_column`: how columns are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype, float32, int64, string
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.data.columns import (
    BucketizedColumn,
    CategoricalColumn,
    CrossedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    KeyedColumn,
    NumericColumn,
    WeightedColumn,
)
from xlalite.ops.functions.array import identity, where_v2
from xlalite.ops.functions.control_flow import control_dependencies
from xlalite.ops.functions.host_functions import assert_greater_equal, assert_less
from xlalite.ops.functions.lookup import index_table_from_file, index_table_from_tensor, string_to_hash_bucket_fast
from xlalite.ops.functions.math import cast, logical_or
from xlalite.ops.functions.strings import as_string
from xlalite.ops.helpers.constant import constant
from xlalite.ops.training.initializers import TruncatedNormal

_HASH_KEY = 0xDECAFCAFFE


def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = float32, normalizer_fn: Any = None
) -> NumericColumn:
    """Numbers of a feature as they are, or normalised."""
    sizes = tuple(shape) if isinstance(shape, Sequence) else (int(shape),)
    if any(size <= 0 for size in sizes):
        raise ValueError(f"shape dimensions must be greater than 0, shape: {sizes}")
    if default_value is not None:
        values = np.broadcast_to(np.asarray(default_value), sizes)
        default_value = tuple(values.ravel().tolist())
    return NumericColumn(key, sizes, default_value, as_dtype(dtype), normalizer_fn)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Between which of the sorted boundaries the numbers of a numeric column lie."""
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries or sorted(set(boundaries)) != list(boundaries):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = string) -> KeyedColumn:
    """Categories by the hash of a text or whole number."""
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")

    def numbered(values: Tensor) -> Tensor:
        return string_to_hash_bucket_fast(values if values.dtype is string else as_string(values), hash_bucket_size)

    return KeyedColumn(key, as_dtype(dtype), hash_bucket_size, numbered, is_hashed=True)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> KeyedColumn:
    """Categories that are numbers already; others become the default, or are refused."""
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")

    def numbered(values: Tensor) -> Tensor:
        given = cast(values, int64)
        limit = constant(num_buckets, int64)
        if default_value is not None:
            outside = logical_or(given < 0, given >= limit)
            return where_v2(outside, constant(default_value, int64), given)
        too_large = assert_less(given, limit, message=f"Input values of {key} must be less than {num_buckets}")
        zero = constant(0, int64)
        negative = assert_greater_equal(given, zero, message=f"Input values of {key} must not be negative")
        with control_dependencies([too_large, negative]):
            return identity(given)

    return KeyedColumn(key, int64, num_buckets, numbered)


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> KeyedColumn:
    """Categories by their places in a list; others get the default, or fall into buckets behind."""
    words = list(vocabulary_list)
    if not words or len(set(words)) != len(words):
        raise ValueError(f"vocabulary_list of {key} must hold different words, found {words}")
    if num_oov_buckets and default_value != -1:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    kind = string if np.asarray(words).dtype.kind in "USO" else int64

    def numbered(values: Tensor) -> Any:
        keys = constant(words) if kind is string else constant(np.asarray(words, np.int64))
        table = index_table_from_tensor(keys, num_oov_buckets, default_value, dtype=kind)
        return table.lookup(values if kind is string else cast(values, int64))

    return KeyedColumn(key, as_dtype(dtype) if dtype is not None else kind, len(words) + num_oov_buckets, numbered)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> KeyedColumn:
    """Categories by the lines of a file; others get the default, or fall into buckets behind."""
    if num_oov_buckets and default_value is not None:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if vocabulary_size is None:
        with open(vocabulary_file, "rb") as lines:
            vocabulary_size = sum(1 for _ in lines)
    kind, missing = as_dtype(dtype), -1 if default_value is None else default_value

    def numbered(values: Tensor) -> Any:
        table = index_table_from_file(
            vocabulary_file, num_oov_buckets, vocabulary_size, missing, key_dtype=string if kind is string else int64
        )
        return table.lookup(values if kind is string else cast(values, int64))

    return KeyedColumn(key, kind, vocabulary_size + num_oov_buckets, numbered)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Combinations of features, by name or by column, hashed."""
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, str | CategoricalColumn) or (isinstance(key, KeyedColumn) and key.is_hashed):
            raise ValueError(f"Unsupported key type {key!r}: use the feature's name, or a categorical column")
    return CrossedColumn(tuple(keys), hash_bucket_size, _HASH_KEY if hash_key is None else hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedColumn:
    """Categories with the weights of another feature."""
    return WeightedColumn(categorical_column, weight_feature_key, as_dtype(dtype))


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """How often each category stands in an example."""
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> EmbeddingColumn:
    """Rows of a table that is learned, combined to their mean, sum or sum over the norm of the weights."""
    return _embedding(
        categorical_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[EmbeddingColumn]:
    """Embeddings of several columns by one table."""
    if len({column.num_buckets for column in categorical_columns}) != 1:
        raise ValueError("shared_embedding_columns: all categorical_columns must have the same number of buckets.")
    names = sorted(column.name for column in categorical_columns)
    collection = shared_embedding_collection_name or f"{'_'.join(names)}_shared_embedding"
    made = initializer or TruncatedNormal(0.0, 1 / math.sqrt(dimension))
    return [
        _embedding(
            column, dimension, combiner, made, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, collection
        )
        for column in categorical_columns
    ]


def _embedding(
    source: CategoricalColumn,
    dimension: int,
    combiner: str,
    initializer: Any,
    checkpoint: str | None,
    tensor_name: str | None,
    max_norm: float | None,
    trainable: bool,
    collection: str | None = None,
) -> EmbeddingColumn:
    if dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Embedding of column_name: {source.name}")
    made = initializer or TruncatedNormal(0.0, 1 / math.sqrt(dimension))
    return EmbeddingColumn(source, dimension, combiner, made, checkpoint, tensor_name, max_norm, trainable, collection)
