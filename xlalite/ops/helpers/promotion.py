"""Brings operands of different element types to a common one, by NumPy's rules (NEP 50).

Tensors, variables and arrays keep their types and are promoted together; Python numbers take the type they meet. So
does `np.float64`, unlike in NumPy: it is a Python float, too, and what `np.sqrt` makes of one, and TensorFlow 1
programs scale their single-precision tensors by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import DType, as_dtype, result_type
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import as_array, contains_tensor, convert_to_tensor, weak_kind
from xlalite.ops.helpers.node import node

_COMPLEX_OF = {"float64": dtypes.complex128, "complex128": dtypes.complex128}


def promote(*values: Any, name: str | None = None) -> tuple[Tensor, ...]:
    """The operands as tensors of one element type.

    Args:
        values: Tensors, variables, arrays, Python numbers or sequences.
        name: Name for new constants.

    Raises:
        ElementTypeError: the types have no common type.
    """
    values = tuple(float(value) if type(value) is np.float64 else value for value in values)
    kinds = [None if contains_tensor(value) else weak_kind(value) for value in values]
    strong = [
        convert_to_tensor(value, name=name) if kind is None else None for value, kind in zip(values, kinds, strict=True)
    ]
    dtype = _common_type([t.dtype for t in strong if t is not None], values, kinds)
    return tuple(
        convert_to_tensor(value, dtype, name) if tensor is None else cast_to(tensor, dtype)
        for tensor, value in zip(strong, values, strict=True)
    )


def cast_to(tensor: Tensor, dtype: DType) -> Tensor:
    """`tensor` in another element type."""
    return tensor if tensor.dtype is dtype else node("Cast", [tensor], {"dtype": dtype})


def floating(x: Tensor) -> Tensor:
    """The tensor itself, or f64 of whole numbers."""
    return x if x.dtype.is_differentiable else cast_to(x, dtypes.float64)


def _common_type(strong: list[DType], values: tuple[Any, ...], kinds: list[type | None]) -> DType:
    try:
        if not strong:
            return result_type(*(as_dtype(as_array(value).dtype) for value in values))
        dtype = result_type(*strong)
    except TypeError as error:
        raise ElementTypeError(str(error)) from None
    for kind in kinds:
        dtype = dtype if kind is None else _with_python_number(dtype, kind)
    return dtype


def _with_python_number(dtype: DType, kind: type) -> DType:
    """The common type of a tensor's elements and a Python number."""
    if dtype.is_host_only:
        raise ElementTypeError(f"no common element type for {dtype.name} and a Python {kind.__name__}")
    if kind is int and dtype.is_bool:
        return dtypes.int64
    if kind is float and not dtype.is_differentiable:
        return dtypes.float64
    if kind is complex and not dtype.is_complex:
        wide = not dtype.is_floating
        return dtypes.complex128 if wide else _COMPLEX_OF.get(dtype.name, dtypes.complex64)
    return dtype
