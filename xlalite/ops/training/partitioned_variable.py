"""Variables that lie in parts, one behind the other along a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.operators import TensorOperators
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.hlo.records import dataclass
from xlalite.ops.functions.array import concat, identity, slice as slice_
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.training.variable import Variable


@dataclass(frozen=True)
class SaveSliceInfo:
    """Which part of a whole a variable is, in checkpoints.

    Attributes:
        full_name: The name of the whole.
        full_shape: Its sizes.
        var_offset: Where in it the part begins.
        var_shape: The sizes of the part.
    """

    full_name: str
    full_shape: tuple[int, ...]
    var_offset: tuple[int, ...]
    var_shape: tuple[int, ...]

    @property
    def spec(self) -> str:
        """The same as `SaveV2` takes it."""
        extents = ":".join(f"{start},{size}" for start, size in zip(self.var_offset, self.var_shape, strict=True))
        return " ".join([*map(str, self.full_shape), extents])


class PartitionedVariable(TensorOperators):
    """Several variables that are one; wherever a tensor is expected, their values are joined."""

    def __init__(self, name: str, shape: Any, dtype: DType, variable_list: Sequence[Variable], partitions: Any) -> None:
        """Of variables that hold the parts.

        Args:
            name: Name of the whole.
            shape: Its shape.
            dtype: Its element type.
            variable_list: The parts in order.
            partitions: How many there are along each dimension.
        """
        self._name, self._shape, self._dtype = name, as_shape(shape), dtype
        self._parts, self._partitions = list(variable_list), list(partitions)

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    @property
    def partition_axis(self) -> int:
        """The dimension along which the parts lie."""
        return next((axis for axis, count in enumerate(self._partitions) if count > 1), 0)

    def as_tensor(self) -> Tensor:
        """The whole value."""
        graph = get_default_graph()
        with graph.name_scope(f"{self._name}/ConcatPartitions/"):
            whole = concat([part.value() for part in self._parts], self.partition_axis)
        with graph.name_scope(None):
            return identity(whole, name=self._name)

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Replaces all parts; gives what each of them gives."""
        return self._each("assign", value, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to all parts; gives what each of them gives."""
        return self._each("assign_add", value, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from all parts; gives what each of them gives."""
        return self._each("assign_sub", value, read_value)

    def _each(self, change: str, value: Any, read_value: bool) -> list[Any]:
        given = convert_to_tensor(value, self._dtype)
        parts = [(part, part._save_slice_info) for part in self._parts]
        return [
            getattr(part, change)(slice_(given, info.var_offset, info.var_shape), read_value=read_value)
            for part, info in parts
        ]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def _get_variable_list(self) -> list[Variable]:
        return list(self._parts)

    def _as_tensor(self) -> Tensor:
        return self.as_tensor()

    __hash__ = object.__hash__


def parts_of(full_name: str, shape: Any, partitions: Sequence[int]) -> list[SaveSliceInfo]:
    """What each part of a variable is; the first ones are longer by one if they cannot be alike.

    Raises:
        ValueError: there are parts along several dimensions, or more than there are rows.
    """
    dims = as_shape(shape).known_dims()
    if len(partitions) != len(dims) or any(not count >= 1 for count in partitions):
        raise ValueError(f"Partitioner returned {list(partitions)} for variable {full_name!r} of shape {dims}")
    divided = [axis for axis, count in enumerate(partitions) if count > 1]
    if len(divided) > 1:
        raise ValueError(f"Cannot slice variable {full_name!r} along more than one dimension: {list(partitions)}")
    axis = divided[0] if divided else 0
    count = partitions[axis]
    if count > dims[axis]:
        raise ValueError(
            f"Variable {full_name!r} has {dims[axis]} rows along dimension {axis}, asked for {count} parts"
        )
    sizes = [dims[axis] // count + (number < dims[axis] % count) for number in range(count)]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return [
        SaveSliceInfo(
            full_name,
            dims,
            tuple(start if each == axis else 0 for each in range(len(dims))),
            tuple(size if each == axis else whole for each, whole in enumerate(dims)),
        )
        for start, size in zip(starts, sizes, strict=True)
    ]
