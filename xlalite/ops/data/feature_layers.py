"""What is made of feature columns: a dense layer's input, a linear model, and how examples are parsed for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.data.columns import CategoricalColumn, Column, DenseColumn, Features, Weighted
from xlalite.ops.functions.array import concat, reshape, shape
from xlalite.ops.functions.math import add_n, matmul
from xlalite.ops.functions.nn import bias_add
from xlalite.ops.functions.sparse import safe_embedding_lookup_sparse, sparse_reshape
from xlalite.ops.helpers.constant import constant
from xlalite.ops.training.initializers import zeros_initializer
from xlalite.ops.training.variable_scope import get_variable, variable_scope


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Tensor] | None = None,
) -> Tensor:
    """The numbers of dense columns side by side, in the order of their names: a matrix with a row for each example.

    Args:
        features: Feature name to tensor, dense or sparse.
        feature_columns: Dense columns, also of embeddings and indicators.
        weight_collections: Accepted for compatibility.
        trainable: Whether the tables of embeddings are trained.
        cols_to_vars: Gets the variables of each column.
        cols_to_output_tensors: Gets the numbers of each column.

    Raises:
        ValueError: a column is not dense, or two have one name.
    """
    columns = _sorted(feature_columns)
    given, found = Features(features), []
    with variable_scope(None, "input_layer"):
        for column in columns:
            if not isinstance(column, DenseColumn):
                raise ValueError(
                    "Items of feature_columns must be a dense column; wrap categorical ones in embedding_column or "
                    f"indicator_column. Given: {column}"
                )
            with variable_scope(None, column.scope_name) as scope:
                numbers = _flat(column, given, trainable)
            found.append(numbers)
            if cols_to_vars is not None:
                cols_to_vars[column] = _variables_of(scope.name)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = numbers
        return concat(found, 1)


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A weighted sum of what the columns give, and a bias.

    Args:
        features: Feature name to tensor, dense or sparse.
        feature_columns: Dense and categorical columns.
        units: How many sums.
        sparse_combiner: How the weights of an example's categories are combined: sum, mean or sqrtn.
        weight_collections: Accepted for compatibility.
        trainable: Whether the weights are trained.
        cols_to_vars: Gets the weights of each column, and the bias under `"bias"`.
    """
    columns = _sorted(feature_columns)
    given, sums = Features(features), []
    with variable_scope(None, "linear_model"):
        for column in columns:
            with variable_scope(None, column.scope_name):
                # Buckets of numbers are categories here, which makes their product a look-up.
                if isinstance(column, CategoricalColumn):
                    weights = _weights(column.num_buckets, units, trainable)
                    made = _rows(column.sparse(given))
                    sums.append(safe_embedding_lookup_sparse(weights, made.ids, made.weights, combiner=sparse_combiner))
                elif isinstance(column, DenseColumn):
                    weights = _weights(int(np.prod(column.variable_shape)), units, trainable)
                    sums.append(matmul(_flat(column, given, trainable), weights))
                else:
                    raise ValueError(f"Items of feature_columns must be dense or categorical columns. Given: {column}")
            if cols_to_vars is not None:
                cols_to_vars[column] = [weights]
        bias = get_variable("bias_weights", [units], float32, zeros_initializer, trainable=trainable)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return bias_add(add_n(sums), bias)


def make_parse_example_spec(feature_columns: Iterable[Column]) -> dict[str, Any]:
    """What `parse_example` must read for columns.

    Raises:
        ValueError: two columns read a feature in different ways.
    """
    found: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, Column):
            raise ValueError(f"All feature_columns must be feature columns. Given: {column}")
        for key, spec in column.parse_spec.items():
            if key in found and (type(found[key]) is not type(spec) or vars(found[key]) != vars(spec)):
                raise ValueError(f"feature_columns contain different parse_spec for key {key}.")
            found[key] = spec
    return found


def _sorted(given: Any) -> list[Column]:
    columns = [given] if isinstance(given, Column) else list(given)
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    for column in columns:
        if not isinstance(column, Column):
            raise ValueError(f"Items of feature_columns must be feature columns. Given: {column}")
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Duplicate feature column name found for columns: {name}")
    return sorted(columns, key=lambda column: column.name)


def _flat(column: DenseColumn, features: Features, trainable: bool) -> Tensor:
    numbers = column.dense(features, trainable)
    return reshape(numbers, [shape(numbers)[0], int(np.prod(column.variable_shape))])


def _weights(rows: int, units: int, trainable: bool) -> Any:
    return get_variable("weights", [rows, units], float32, zeros_initializer, trainable=trainable)


def _rows(given: Weighted) -> Weighted:
    """Matrices with a row for each example."""
    if given.ids.dense_shape.shape.as_list() == [2]:
        return given
    sizes = [given.ids.dense_shape[0], constant(-1, given.ids.dense_shape.dtype)]
    ids, weights = given
    return Weighted(sparse_reshape(ids, sizes), None if weights is None else sparse_reshape(weights, sizes))


def _variables_of(scope: str) -> list[Any]:
    return get_default_graph().outermost.get_collection(GraphKeys.GLOBAL_VARIABLES, f"{scope}/")
