"""Traced arrays, arrays and numbers as tensors, in the element types that NumPy's rules give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.constant import convert_to_tensor, literal
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.traced_array import TracedArray, is_numeric

_WEAK_TYPES: Mapping[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


def as_tensor(value: Any) -> Tensor:
    """A traced array, an array, a number or a nesting of them as a tensor of its NumPy element type.

    Raises:
        TracingError: Its elements are text, dates, objects or records, or some are masked.
    """
    if hasattr(value, "_as_tensor") or isinstance(value, Tensor):
        return convert_to_tensor(value)
    if isinstance(value, list | tuple) and contains_traced(value):
        return array.stack(promoted(*value), 0)
    refuse_mask(value)
    elements = np.asarray(value)
    if not is_numeric(elements.dtype):
        raise TracingError(
            f"{value!r} cannot be recorded by xlalite.jit: its elements are {elements.dtype}, not numbers or truth "
            "values"
        )
    return convert_to_tensor(elements)


def refuse_mask(value: Any) -> None:
    """Raises TracingError if the value is a masked array."""
    if type(value) is not np.ndarray and isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray):
        raise TracingError(f"a masked array cannot be recorded, as its mask would be lost: {value!r}")


def traced_array(value: Any) -> Any:
    """The value as a traced array; one that is stays the same object.

    For type checkers it is anything: NumPy's stubs know no arrays but its own.
    """
    return value if isinstance(value, TracedArray) else TracedArray(as_tensor(value))


def contains_traced(value: Any) -> bool:
    """Whether a traced array stands somewhere in nested lists."""
    if isinstance(value, list | tuple):
        return any(map(contains_traced, value))
    return isinstance(value, TracedArray)


def sizes(value: Any) -> tuple[int, ...]:
    """The shape of an array or number."""
    return tuple(value.shape) if isinstance(value, TracedArray | np.ndarray) else as_tensor(value).shape.known_dims()


def numpy_dtype(value: Any) -> np.dtype[Any]:
    """The element type that NumPy would see."""
    return (
        value.dtype if isinstance(value, TracedArray | np.ndarray | np.generic) else as_tensor(value).dtype.numpy_dtype
    )


def type_for_numpy(value: Any) -> Any:
    """What NumPy's promotion looks at: the element type, or a Python type for numbers."""
    if isinstance(value, TracedArray):
        return _WEAK_TYPES[value.dtype.kind] if value.is_weak else value.dtype
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return type(value)
    return as_tensor(value).dtype.numpy_dtype


def common_type(*values: Any) -> np.dtype[Any]:
    """The element type that NumPy would give a combination of values."""
    return np.result_type(*[each(0) if isinstance(each, type) else each for each in map(type_for_numpy, values)])


def promoted(*values: Any) -> list[Tensor]:
    """The values as tensors of the element type that NumPy would give their combination."""
    dtype = as_dtype(common_type(*values))
    return [cast_to(as_tensor(value), dtype) for value in values]


def converted(value: Any, dtype: DType) -> Tensor:
    """The value as a tensor of an element type that NumPy chose for it.

    Raises:
        OverflowError: It is a Python integer out of the type's range.
    """
    if type(value) is int:
        value = dtype.numpy_dtype.type(value) if dtype.is_integer else float(value)
    if type(value) is float and dtype.is_differentiable:
        return literal(value, dtype)
    return cast_to(as_tensor(value), dtype)


def floating(value: Any) -> Tensor:
    """The value as numbers with fractions: whole numbers become float64."""
    x = as_tensor(value)
    return cast_to(x, as_dtype(np.float64)) if x.dtype.is_integer or x.dtype.is_bool else x


def flat_for_no_axis(value: Any, axis: int | None) -> tuple[Any, int]:
    """The array and a dimension; without one all elements in one."""
    if axis is None:
        return np.ravel(value), 0
    return value, normal_axis(axis, len(sizes(value)))


def normal_axis(axis: Any, rank: int) -> int:
    """A dimension counted from the front.

    Raises:
        numpy.exceptions.AxisError: There is no such dimension.
    """
    return int(np.lib.array_utils.normalize_axis_index(axis, rank))


def normal_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front; all of them for None.

    Raises:
        numpy.exceptions.AxisError: There is no such dimension.
    """
    if axis is None:
        return tuple(range(rank))
    return tuple(int(each) for each in np.lib.array_utils.normalize_axis_tuple(axis, rank))


def matrix_product(x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul: a vector is a row on the left, a column on the right, and its dimension goes away again."""
    left = array.expand_dims(x, 0) if x.shape.rank == 1 else x
    right = array.expand_dims(y, 1) if y.shape.rank == 1 else y
    product = of_truth_values(math.matmul, left, right)
    dropped = [axis for axis, operand in ((-2, x), (-1, y)) if operand.shape.rank == 1]
    return array.squeeze(product, dropped) if dropped else product


def of_truth_values(product: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A sum of products; of truth values it is whether one of the products is true."""
    if not operands[0].dtype.is_bool:
        return product(*operands)
    return math.not_equal(product(*[math.cast(each, np.int32) for each in operands]), 0)


def traced(*tensors: Tensor) -> Any:
    """Tensors as traced arrays: one, or a tuple of several."""
    found: Sequence[TracedArray] = [TracedArray(tensor) for tensor in tensors]
    return found[0] if len(found) == 1 else tuple(found)
