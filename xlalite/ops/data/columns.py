"""Columns, which say how features of examples become what layers and linear models take.

A column is a value: the features of its examples come in when `feature_layers.py` asks for its tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, float32, int64, string
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass
from xlalite.ops.data.features import FixedLenFeature, VarLenFeature
from xlalite.ops.functions.array import expand_dims, one_hot, reshape, shape, stack, tile, where
from xlalite.ops.functions.math import cast, not_equal, range as range_, reduce_sum
from xlalite.ops.functions.ordering import bucketize
from xlalite.ops.functions.selection import gather_nd
from xlalite.ops.functions.sparse import safe_embedding_lookup_sparse, sparse_tensor_to_dense
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import operation
from xlalite.ops.training.checkpoint_init import init_from_checkpoint
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import get_variable


class Features:
    """The features of a batch, and what columns have made of them."""

    def __init__(self, given: Mapping[Any, Any]) -> None:
        self._given = given
        self._made: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """A feature by its name, of two dimensions at least; or what a column makes of its features, made once."""
        if key not in self._made:
            self._made[key] = self._feature(key) if isinstance(key, str) else key.transform(self)
        return self._made[key]

    def _feature(self, key: str) -> Any:
        if key not in self._given:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        feature = self._given[key]
        if isinstance(feature, SparseTensor):
            return feature
        tensor = convert_to_tensor(feature)
        if tensor.shape.rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {tensor}")
        return expand_dims(tensor, -1) if tensor.shape.rank == 1 else tensor


class Weighted(NamedTuple):
    """Numbers of categories, sparse, and their weights if they have some."""

    ids: SparseTensor
    weights: SparseTensor | None


class Column:
    """What every column has."""

    name: str

    @property
    def scope_name(self) -> str:
        """The scope of its variables."""
        return self.name

    @property
    def parse_spec(self) -> dict[str, Any]:
        """How `parse_example` reads the features that it needs."""
        raise NotImplementedError

    def transform(self, features: Features) -> Any:
        """What it makes of its features."""
        raise NotImplementedError


class DenseColumn(Column):
    """A column that gives numbers for each example."""

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """The sizes of an example's numbers."""
        raise NotImplementedError

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """The numbers of the examples."""
        made: Tensor = features.get(self)
        return made


class CategoricalColumn(Column):
    """A column that gives categories for each example."""

    @property
    def num_buckets(self) -> int:
        """How many categories there are."""
        raise NotImplementedError

    def sparse(self, features: Features) -> Weighted:
        """The categories of the examples."""
        return Weighted(features.get(self), None)


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:  # type: ignore[override]  # computed from what the column is made of
        """The feature's."""
        return self.key

    @property
    def parse_spec(self) -> dict[str, Any]:
        """A feature of fixed shape."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def transform(self, features: Features) -> Tensor:
        """The normalised numbers, as float32."""
        given = features.get(self.key)
        if isinstance(given, SparseTensor):
            raise ValueError(f"The corresponding Tensor of numerical column must be a Tensor. key: {self.key}")
        return cast(given if self.normalizer_fn is None else self.normalizer_fn(given), float32)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """Between which boundaries numbers lie."""

    source: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The source's, and what is done."""
        return f"{self.source.name}_bucketized"

    @property
    def parse_spec(self) -> dict[str, Any]:
        """The source's."""
        return self.source.parse_spec

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """Those of the source, with the buckets as last dimension."""
        return (*self.source.shape, len(self.boundaries) + 1)

    @property
    def num_buckets(self) -> int:
        """The buckets of all numbers of an example."""
        return (len(self.boundaries) + 1) * self.source.shape[0]

    def transform(self, features: Features) -> Tensor:
        """The bucket of each number."""
        return cast(bucketize(features.get(self.source), list(self.boundaries)), int64)

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """A one at each number's bucket."""
        return one_hot(features.get(self), len(self.boundaries) + 1, 1.0, 0.0)

    def sparse(self, features: Features) -> Weighted:
        """The buckets, which differ from number to number of an example."""
        buckets = features.get(self)
        examples, width = shape(buckets)[0], self.source.shape[0]
        rows = reshape(tile(expand_dims(range_(0, examples), 1), [1, width]), [-1])
        places = tile(range_(0, width), [examples])
        values = reshape(buckets, [-1]) + cast((len(self.boundaries) + 1) * places, int64)
        indices = cast(stack([rows, places], 1), int64)
        return Weighted(SparseTensor(indices, values, cast(stack([examples, width]), int64)), None)


@dataclass(frozen=True)
class KeyedColumn(CategoricalColumn):
    """Categories that one feature names."""

    key: str
    dtype: DType
    buckets: int
    numbered: Callable[[Any], Any]
    is_hashed: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        """The feature's."""
        return self.key

    @property
    def parse_spec(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        """As many as were asked for."""
        return self.buckets

    def transform(self, features: Features) -> SparseTensor:
        """The numbers of the categories; empty strings and -1 are none."""
        given = _as_sparse(features.get(self.key), "" if self.dtype is string else -1)
        if (given.dtype is string) != (self.dtype is string):
            raise ValueError(f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}")
        return SparseTensor(given.indices, self.numbered(given.values), given.dense_shape)


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Combinations of categories, hashed."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int

    @property
    def leaves(self) -> tuple[Any, ...]:
        """What is crossed: names of features and columns."""
        return tuple(leaf for key in self.keys for leaf in (key.leaves if isinstance(key, CrossedColumn) else (key,)))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Those of what is crossed."""
        return "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in self.leaves))

    @property
    def parse_spec(self) -> dict[str, Any]:
        """Those of what is crossed; features by name are strings."""
        found: dict[str, Any] = {}
        for key in self.keys:
            found.update({key: VarLenFeature(string)} if isinstance(key, str) else key.parse_spec)
        return found

    @property
    def num_buckets(self) -> int:
        """As many as were asked for."""
        return self.hash_bucket_size

    def transform(self, features: Features) -> SparseTensor:
        """The buckets of all combinations of an example."""
        given = [features.get(leaf) if isinstance(leaf, str) else leaf.sparse(features).ids for leaf in self.leaves]
        sparse = [each for each in given if isinstance(each, SparseTensor)]
        dense = [each for each in given if not isinstance(each, SparseTensor)]
        parts = [part for each in sparse for part in (each.indices, each.values, each.dense_shape)]
        attrs = {"sparse_count": len(sparse), "num_buckets": self.hash_bucket_size, "hash_key": self.hash_key}
        return SparseTensor(*operation("_SparseCross", [*parts, *dense], attrs).outputs)


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """Categories with weights, which another feature holds."""

    source: CategoricalColumn
    weight_key: str
    dtype: DType

    @property
    def name(self) -> str:  # type: ignore[override]
        """The source's, and whose weights."""
        return f"{self.source.name}_weighted_by_{self.weight_key}"

    @property
    def parse_spec(self) -> dict[str, Any]:
        """The source's and the weights'."""
        return {**self.source.parse_spec, self.weight_key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        """The source's."""
        return self.source.num_buckets

    def transform(self, features: Features) -> SparseTensor:
        """The weights."""
        given = _as_sparse(features.get(self.weight_key), 0.0)
        return SparseTensor(given.indices, cast(given.values, float32), given.dense_shape)

    def sparse(self, features: Features) -> Weighted:
        """The source's categories with their weights."""
        return Weighted(self.source.sparse(features).ids, features.get(self))


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often each category stands in an example, or its weights."""

    source: CategoricalColumn

    @property
    def name(self) -> str:  # type: ignore[override]
        """The source's, and what is done."""
        return f"{self.source.name}_indicator"

    @property
    def parse_spec(self) -> dict[str, Any]:
        """The source's."""
        return self.source.parse_spec

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """One number for each category."""
        return (self.source.num_buckets,)

    def transform(self, features: Features) -> Tensor:
        """The counts."""
        ids, weights = self.source.sparse(features)
        ones = one_hot(sparse_tensor_to_dense(ids, -1), self.source.num_buckets, 1.0, 0.0)
        if weights is not None:
            ones = ones * expand_dims(sparse_tensor_to_dense(weights), -1)
        return reduce_sum(ones, [-2])


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """Rows of a table that is learned, combined for each example; columns of one collection share the table."""

    source: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    checkpoint: str | None
    tensor_name: str | None
    max_norm: float | None
    trainable: bool
    collection: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The source's, and what is done."""
        return f"{self.source.name}{'_embedding' if self.collection is None else '_shared_embedding'}"

    @property
    def scope_name(self) -> str:
        """The column's or the collection's."""
        return self.collection or self.name

    @property
    def parse_spec(self) -> dict[str, Any]:
        """The source's."""
        return self.source.parse_spec

    @property
    def variable_shape(self) -> tuple[int, ...]:
        """The width of the table."""
        return (self.dimension,)

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """The combined rows of each example; zeros for those without categories."""
        ids, weights = self.source.sparse(features)
        return safe_embedding_lookup_sparse(
            self._table(trainable), ids, weights, combiner=self.combiner, max_norm=self.max_norm
        )

    def _table(self, trainable: bool) -> Variable:
        held = [] if self.collection is None else get_default_graph().outermost.get_collection_ref(self.collection)
        sizes = (self.source.num_buckets, self.dimension)
        if held:
            if held[0].shape.as_list() != list(sizes):
                raise ValueError(f"Shared embedding collection {self.collection} has a table of shape {held[0].shape}")
            return held[0]  # type: ignore[no-any-return]
        table = get_variable("embedding_weights", sizes, float32, self.initializer, None, self.trainable and trainable)
        if self.collection is not None:
            held.append(table)
        if self.checkpoint is not None:
            init_from_checkpoint(self.checkpoint, {str(self.tensor_name): table})
        return table


def _as_sparse(given: Any, nothing: Any) -> SparseTensor:
    """What is not `nothing` of a dense feature."""
    if isinstance(given, SparseTensor):
        return given
    none = constant(nothing, given.dtype) if given.dtype is not string else constant(nothing)
    places = where(not_equal(given, none))
    return SparseTensor(places, gather_nd(given, places), shape(given, out_type=int64))
