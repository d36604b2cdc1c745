"""Changes of some rows of a variable: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.promotion import cast_to


def scatter(kind: str, variable: Any, indices: Any, updates: Any, name: str | None = None) -> Operation:
    """The operation that changes rows (`Update`, `Add`, ...) or slices (`NdUpdate`, ...) of a variable."""
    given = cast_to(convert_to_tensor(updates, preferred_dtype=variable.dtype), variable.dtype)
    places: Tensor = convert_to_tensor(indices)
    return operation(f"ResourceScatter{kind}", [variable.handle, places, given], None, name)


def _of_variable(kind: str, summary: str) -> Callable[..., Any]:
    def function(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        return ref.after(scatter(kind, ref, indices, updates, name))

    function.__doc__ = f"{summary} of a variable; gives its value after that."
    function.__name__ = function.__qualname__ = f"scatter_{kind.lower()}"
    return function


scatter_update = _of_variable("Update", "Replaces rows")
scatter_add = _of_variable("Add", "Adds to rows")
scatter_sub = _of_variable("Sub", "Subtracts from rows")
scatter_mul = _of_variable("Mul", "Multiplies rows")
scatter_div = _of_variable("Div", "Divides rows")
scatter_min = _of_variable("Min", "Takes the smaller one of element and update in rows")
scatter_max = _of_variable("Max", "Takes the larger one of element and update in rows")
scatter_nd_update = _of_variable("NdUpdate", "Replaces slices at index vectors")
scatter_nd_add = _of_variable("NdAdd", "Adds to slices at index vectors")
scatter_nd_sub = _of_variable("NdSub", "Subtracts from slices at index vectors")


def scatter_rows(kind: str, variable: Any, rows: IndexedSlices, name: str | None = None) -> Any:
    """Changes the rows of a variable that an `IndexedSlices` names; gives its value after that."""
    return variable.after(scatter(kind, variable, rows.indices, rows.values, name))
