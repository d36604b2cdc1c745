"""Sizes that users pass in many forms, as one integer vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dimension, TensorShape
from xlalite.ops.helpers.constant import constant, contains_tensor, convert_to_tensor


def as_size_vector(sizes: Any, name: str = "shape") -> Tensor:
    """Sizes as an integer vector.

    Args:
        sizes: An integer, integers or dimensions, a shape, a tensor, or a sequence with scalar tensors in it.
        name: Name for a new constant.

    Raises:
        ElementTypeError: the sizes are no integers.
    """
    if isinstance(sizes, TensorShape):
        sizes = sizes.known_dims()
    elif isinstance(sizes, int | Dimension | np.integer):
        sizes = [int(sizes)]
    if isinstance(sizes, list | tuple) and not contains_tensor(sizes):
        integers = [int(size.__index__()) if hasattr(size, "__index__") else _not_an_integer(size) for size in sizes]
        wide = any(abs(size) >= 2**31 for size in integers)
        return constant(np.array(integers, np.int64 if wide else np.int32), name=name)
    tensor = convert_to_tensor(sizes, name=name)
    if not tensor.dtype.is_integer:
        raise ElementTypeError(f"sizes must be integers, found {tensor.dtype.name}")
    return tensor


def _not_an_integer(size: object) -> int:
    raise ElementTypeError(f"sizes must be integers, found {size!r}")
