"""Shape and type rules that families share: each takes the operation and gives its outputs' types and shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import InferFunction, OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import ShapeError


def require_type(tensor: Tensor, allowed: Collection[DType], what: str = "input") -> None:
    """Raises ElementTypeError unless the tensor's element type is allowed."""
    if tensor.dtype not in allowed:
        names = ", ".join(sorted(dtype.name for dtype in allowed))
        raise ElementTypeError(f"{what} {tensor.name!r} has element type {tensor.dtype.name}; expected one of {names}")


def require_same_type(tensors: Sequence[Tensor]) -> DType:
    """The common element type; raises ElementTypeError when the types differ."""
    first = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dtype is not first:
            raise ElementTypeError(f"element types {first.name} and {tensor.dtype.name} differ")
    return first


def unchanged(allowed: Collection[DType], result: DType | None = None) -> InferFunction:
    """One output of the inputs' type, or of `result`; the inputs have one allowed type and compatible shapes."""

    def infer(op: Operation) -> Sequence[OutputType]:
        dtype = require_same_type(op.inputs)
        require_type(op.inputs[0], allowed)
        shape = op.inputs[0].shape
        for tensor in op.inputs[1:]:
            shape = shape.merge_with(tensor.shape)
        return [(result or dtype, shape)]

    return infer


def broadcasting(allowed: Collection[DType], result: DType | None = None) -> InferFunction:
    """One output of the two inputs' broadcast shape; of their type, or of `result`."""

    def infer(op: Operation) -> Sequence[OutputType]:
        dtype = require_same_type(op.inputs)
        require_type(op.inputs[0], allowed)
        return [(result or dtype, broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape))]

    return infer


def no_outputs(op: Operation) -> Sequence[OutputType]:
    """An operation that only has an effect."""
    return []


def broadcast_shapes(lhs: TensorShape, rhs: TensorShape) -> TensorShape:
    """The shape two operands are broadcast to, by NumPy's rules.

    Raises:
        ShapeError: two known sizes differ and neither is 1.
    """
    if lhs.dims is None or rhs.dims is None:
        return unknown_shape()
    rank = max(len(lhs.dims), len(rhs.dims))
    padded_lhs = (1,) * (rank - len(lhs.dims)) + lhs.dims
    padded_rhs = (1,) * (rank - len(rhs.dims)) + rhs.dims
    return TensorShape([_broadcast_sizes(a, b, lhs, rhs) for a, b in zip(padded_lhs, padded_rhs, strict=True)])


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """A dimension number counted from the front.

    Raises:
        ShapeError: it is outside `[-rank, rank)`.
    """
    if not -rank <= axis < rank:
        raise ShapeError(f"{what} {axis} is out of range for rank {rank}; expected {-rank} to {rank - 1}")
    return axis + rank if axis < 0 else axis


def constant_axes(tensor: Tensor, rank: int) -> tuple[int, ...] | None:
    """The dimension numbers that an input holds, normalised; None when not known.

    Raises:
        ShapeError: one is out of range, or named twice.
    """
    value = constant_value(tensor)
    return None if value is None else distinct_axes(value.ravel().tolist(), rank)


def distinct_axes(axes: Iterable[int], rank: int, what: str = "axis") -> tuple[int, ...]:
    """Dimension numbers, normalised.

    Raises:
        ShapeError: one is out of range, or named twice.
    """
    found: list[int] = []
    for axis in axes:
        position = normalize_axis(axis, rank, what)
        if position in found:
            raise ShapeError(f"Axes contains duplicate dimension: {what} {axis} is named twice")
        found.append(position)
    return tuple(found)


def require_rank(tensor: Tensor, accepts: Callable[[int], bool], expected: str, what: str = "input") -> None:
    """Raises ShapeError when the rank is known and not accepted."""
    if tensor.shape.rank is not None and not accepts(tensor.shape.rank):
        raise ShapeError(f"{what} {tensor.name!r} has shape {tensor.shape}; expected {expected}")


def require_scalar(tensor: Tensor, what: str) -> None:
    """Raises ShapeError when the tensor is known not to be a scalar."""
    require_rank(tensor, lambda rank: rank == 0, "a scalar", what)


def _broadcast_sizes(a: int | None, b: int | None, lhs: TensorShape, rhs: TensorShape) -> int | None:
    if a == 1:
        return b
    if b == 1:
        return a
    if a is None or b is None:
        return a if b is None else b
    if a != b:
        raise ShapeError(f"Incompatible shapes {lhs} and {rhs}: sizes {a} and {b} differ")
    return a
