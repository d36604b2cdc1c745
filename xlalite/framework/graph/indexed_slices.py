"""Some rows of a tensor: what the gradient of a gather is, so that an update touches only the rows that were used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.operators import TensorOperators, apply_operator
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph
    from xlalite.framework.graph.operation import Operation


class IndexedSlicesValue(NamedTuple):
    """What a fetched `IndexedSlices` is: arrays."""

    values: Any
    indices: Any
    dense_shape: Any


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IndexedSlices(TensorOperators):
    """A tensor of zeros but for rows that are added up: `values[i]` goes to row `indices[i]`, which may come twice.

    Wherever a tensor is expected it becomes one, with all its zeros.

    Attributes:
        values: The rows, `[n, ...]`.
        indices: Where each row belongs, `[n]`.
        dense_shape: The sizes of the whole tensor as a vector, when they were said.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor | None = None

    value_type: ClassVar[type] = IndexedSlicesValue

    @property
    def name(self) -> str:
        """The name of the rows."""
        return self.values.name

    @property
    def dtype(self) -> DType:
        """Element type of the rows."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """What is known of the shape of the whole: the number of rows is not."""
        dims = self.values.shape.dims
        return TensorShape(None if dims is None else [None, *dims[1:]])

    @property
    def op(self) -> Operation:
        """The producer of the rows."""
        return self.values.op

    @property
    def graph(self) -> Graph:
        """The graph of the rows."""
        return self.values.graph

    @property
    def device(self) -> str:
        """Requested device of the rows."""
        return self.values.device

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    def _as_tensor(self) -> Tensor:
        dense: Tensor = apply_operator("dense", self)
        return dense

    def __repr__(self) -> str:
        return f"<xlalite.IndexedSlices values={self.values!r} indices={self.indices!r}>"
