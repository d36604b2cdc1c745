"""What is known of a tensor's value while the graph is built, for shape functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_size, unknown_shape
from xlalite.framework.meaning.constant_resolver import ConstantResolver
from xlalite.framework.meaning.host import Array
from xlalite.hlo.errors import ShapeError

PartialShapeRule = Callable[[Tensor], TensorShape]

_PARTIAL_RULES: dict[str, PartialShapeRule] = {}


def register_partial_shape(op_type: str, rule: PartialShapeRule) -> None:
    """Says how the output of an operation, read as a shape, follows from its inputs when only parts are known."""
    assert op_type not in _PARTIAL_RULES, f"{op_type} has two rules"
    _PARTIAL_RULES[op_type] = rule


def constant_value(tensor: Tensor) -> Array | None:
    """The value of `tensor` if the graph alone determines it, whatever is fed."""
    if tensor.dtype.is_host_only:
        return None
    return ConstantResolver(trusts_defaults=False).resolve(tensor)


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """What is known of a vector of sizes: unknown parts, and -1, become unknown sizes.

    Raises:
        ShapeError: the tensor cannot be a shape.
    """
    if tensor.shape.rank == 0:
        value = constant_value(tensor)
        if value is not None and int(value) == -1:
            return unknown_shape()
        raise ShapeError(f"a shape must be a vector, found {tensor.name!r} of shape ()")
    value = constant_value(tensor)
    rule = _PARTIAL_RULES.get(tensor.op.type)
    if value is None and rule is not None:
        return rule(tensor)
    if value is None:
        return unknown_shape(tensor.shape.with_rank(1).as_list()[0])
    return sizes_to_shape(value)


def sizes_to_shape(sizes: Array) -> TensorShape:
    """A vector of sizes as a shape; -1 becomes an unknown size.

    Raises:
        ShapeError: it is no vector, or a size is less than -1.
    """
    vector = np.asarray(sizes)
    if vector.ndim != 1:
        raise ShapeError(f"a shape must be a vector, found an array of shape {vector.shape}")
    if (vector < -1).any():
        raise ShapeError(f"a size must not be negative, found {vector.tolist()}")
    return TensorShape([None if size == -1 else as_size(int(size)) for size in vector])
