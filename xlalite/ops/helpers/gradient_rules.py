"""What gradient functions share: summing over broadcast dimensions, and the usual one-output form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.op_spec import Gradient, GradientFunction
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dims
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation

OneOutputGradient = Callable[[Operation, Tensor], "Sequence[Gradient | None]"]


def of_one_output(function: OneOutputGradient) -> GradientFunction:
    """A gradient function for an operation whose first output alone is differentiable."""

    def gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Gradient | None]:
        if grads[0] is None:
            return [None] * len(op.inputs)
        return function(op, grads[0])

    return gradient


def all_gradients(op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor]:
    """One gradient for each output: zeros for those from which none comes."""
    return [
        node("ZerosLike", [output]) if grad is None else grad for output, grad in zip(op.outputs, grads, strict=True)
    ]


def sum_to_operands(op: Operation, lhs: Tensor | None, rhs: Tensor | None) -> list[Tensor | None]:
    """Gradients at the broadcast shape, each summed down to the shape of its operand."""
    x, y = op.inputs[0], op.inputs[1]
    return [None if lhs is None else sum_to(lhs, x, y), None if rhs is None else sum_to(rhs, y, x)]


def reshape_like(value: Tensor, like: Tensor) -> Tensor:
    """`value` with the sizes of `like`, which has as many elements."""
    if like.shape.is_fully_defined() and value.shape == like.shape:
        return value
    return node("Reshape", [value, shape_tensor(like)])


def shape_tensor(tensor: Tensor) -> Tensor:
    """The sizes of `tensor`: a constant when they are known."""
    if tensor.shape.is_fully_defined():
        return constant(np.array(tensor.shape.known_dims(), np.int32), name="Shape")
    return node("Shape", [tensor], {"out_type": dtypes.int32})


def sum_to(gradient: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """A gradient at the common shape of two operands, summed over what was repeated of `own`."""
    if own.shape.dims is not None and other.shape.dims is not None:
        leading = max(0, len(other.shape.dims) - len(own.shape.dims))
        repeated = _repeated(own.shape.dims, other.shape.dims)
        if repeated is not None:
            return _sum(_sum(gradient, range(leading), False), repeated, True)
    own_shape, other_shape = shape_tensor(own), shape_tensor(other)
    axes = operation("BroadcastGradientArgs", [own_shape, other_shape]).outputs[0]
    return node("Reshape", [node("Sum", [gradient, axes], {"keep_dims": False}), own_shape])


def _repeated(own: Dims, other: Dims) -> list[int] | None:
    """Dimensions of `own` of size 1 that `other` repeats; None when unknown sizes leave that open.

    A dimension of unknown size beside one of size 1 needs no sum: either it stays, or the sum is over one element.
    """
    found = []
    for distance in range(1, min(len(own), len(other)) + 1):
        mine, theirs = own[-distance], other[-distance]
        if mine == 1 and theirs != 1:
            found.append(len(own) - distance)
        elif mine is None and theirs != 1:
            return None
    return sorted(found)


def _sum(gradient: Tensor, axes: Sequence[int], keep_dims: bool) -> Tensor:
    if not axes:
        return gradient
    return node("Sum", [gradient, constant(np.array(axes, np.int32))], {"keep_dims": keep_dims})
