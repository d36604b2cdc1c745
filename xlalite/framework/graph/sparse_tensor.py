"""Tensors of which only the elements that are not zero are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph
    from xlalite.framework.graph.operation import Operation


class SparseTensorValue(NamedTuple):
    """What a fetched `SparseTensor` is, and what is fed for one: arrays."""

    indices: Any
    values: Any
    dense_shape: Any


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class SparseTensor:
    """A tensor with `values[i]` at `indices[i]` and zeros elsewhere.

    Attributes:
        indices: `[n, rank]` of int64, in row-major order.
        values: `[n]`.
        dense_shape: The sizes, `[rank]` of int64.
    """

    indices: Tensor
    values: Tensor
    dense_shape: Tensor

    value_type: ClassVar[type] = SparseTensorValue

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.values.dtype

    @property
    def op(self) -> Operation:
        """The producer of the values."""
        return self.values.op

    @property
    def graph(self) -> Graph:
        """The graph of the values."""
        return self.values.graph

    @property
    def name(self) -> str:
        """The name of the values."""
        return self.values.name

    def __mul__(self, scalar: Any) -> SparseTensor:
        """The tensor with each of its values times a scalar.

        Raises:
            ShapeError: it is no scalar.
        """
        return self._with_values(self.values * _scalar(scalar))

    def __truediv__(self, scalar: Any) -> SparseTensor:
        """The tensor with each of its values divided by a scalar."""
        return self._with_values(self.values / _scalar(scalar))

    def _with_values(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self.indices, values, self.dense_shape)

    def __repr__(self) -> str:
        return f"<xlalite.SparseTensor indices={self.indices!r} values={self.values!r}>"


def _scalar(value: Any) -> Any:
    rank = value.shape.rank if isinstance(value, Tensor) else np.ndim(value)
    if rank != 0:
        raise ShapeError(f"a sparse tensor is scaled by a scalar, found {value!r}")
    return value
