"""Constants, and the conversion of Python and NumPy values to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.op_spec import OpGroup, OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, TensorShape, as_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import LiteralError, ShapeError
from xlalite.ops.helpers.node import node

_WEAK_TYPES = (bool, int, float, complex)

_MOST_SHARED_BYTES = 64
"""Sizes, axes and limits are smaller."""


def _const_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("dtype"), TensorShape(op.get_attr("value").shape))]


def _const_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.constant(op.get_attr("value"), op.outputs[0].dtype.hlo)]


def _const_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [op.get_attr("value")]


register(
    OpSpec(
        "Const",
        _const_infer,
        attrs=("value", "dtype"),
        lower=_const_lower,
        host_kernel=_const_on_host,
        gradient=None,
        group=OpGroup.ELEMENTWISE,
        is_constant=True,
    )
)


def constant(
    value: Any, dtype: Any = None, shape: ShapeLike = None, name: str = "Const", verify_shape: bool = False
) -> Tensor:
    """A tensor whose value is part of the graph.

    Args:
        value: A number, nested sequence or array. Python floats become float32 and integers int32.
        dtype: Element type; by default that of the value.
        shape: Shape; a single element fills it.
        name: Name of the operation.
        verify_shape: Refuse to reshape or fill.

    Raises:
        ShapeError: the value does not fit `shape`.
        LiteralError: the value does not exist in `dtype`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    array = as_array(value, wanted)
    if shape is not None:
        array = _fit(array, as_shape(shape).known_dims(), verify_shape)
    return _constant_node(array, name, wanted)


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None) -> Tensor:
    """`value` as a tensor; tensors and variables are taken as they are.

    Args:
        value: A tensor, a variable, or what `constant` takes; sequences may contain tensors.
        dtype: Required element type. Values are converted to it, tensors are not.
        name: Name for a new constant.
        preferred_dtype: Element type for Python values when `dtype` is not given.

    Raises:
        ElementTypeError: a tensor has another element type than `dtype`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    tensor = as_existing_tensor(value)
    if tensor is not None:
        if wanted is not None and tensor.dtype is not wanted:
            raise ElementTypeError(f"{tensor!r} has element type {tensor.dtype.name}; expected {wanted.name}")
        return tensor
    if isinstance(value, list | tuple) and contains_tensor(value):
        return _stacked(value, wanted, name)
    if isinstance(value, TensorShape):
        value = np.array(value.known_dims(), (wanted or dtypes.int32).numpy_dtype)
    if wanted is None and preferred_dtype is not None and weak_kind(value) is not None:
        wanted = as_dtype(preferred_dtype)
    return _constant_node(as_array(value, wanted), name or "Const", wanted)


def literal(value: Any, dtype: DType) -> Tensor:
    """A number that stands in the text of a program; where constants may be shared, equal ones are one tensor.

    Raises:
        LiteralError: it does not exist in `dtype`.
    """
    array, graph = as_array(value, dtype), get_default_graph()
    return _shared(array, dtype, "Const", graph) if graph.is_traced else _constant_node(array, "Const", dtype)


def as_existing_tensor(value: Any) -> Tensor | None:
    """`value` if it is a tensor, the value of it if it is a variable, otherwise None."""
    if isinstance(value, Tensor):
        return value
    converter = getattr(value, "_as_tensor", None)
    converted = converter() if converter is not None else None
    return converted if isinstance(converted, Tensor) else None


def contains_tensor(value: Any) -> bool:
    """Whether a nested sequence holds a tensor or variable somewhere."""
    if isinstance(value, list | tuple):
        return any(map(contains_tensor, value))
    return isinstance(value, Tensor) or hasattr(value, "_as_tensor")


def as_array(value: Any, dtype: DType | None = None) -> Array:
    """`value` as a read-only array of `dtype`, or of its natural front-end type.

    Raises:
        LiteralError: a number does not exist in `dtype`, or the value is no rectangular array.
        TypeError: the value has no front-end element type.
    """
    kind = weak_kind(value)
    try:
        array = np.array(value)
    except ValueError:
        raise LiteralError(f"{value!r} is not a rectangular array") from None
    if array.dtype.kind in "SUO":
        return _host_array(value, array, dtype)
    if dtype is None:
        dtype = _default_type(array, kind) if kind is not None else as_dtype(array.dtype)
    converted = _converted(array, dtype, kind)
    converted.setflags(write=False)
    return converted


def weak_kind(value: Any) -> type | None:
    """For Python numbers and nested sequences of them, the widest of bool, int, float and complex; otherwise None.

    Such values take the type of what they meet; NumPy scalars and arrays do not.
    """
    if isinstance(value, list | tuple):
        kinds = [weak_kind(item) for item in value]
        if not kinds:
            return float
        return None if None in kinds else max((k for k in kinds if k), key=_WEAK_TYPES.index)
    return type(value) if type(value) in _WEAK_TYPES else None


def _default_type(array: Array, kind: type) -> DType:
    if kind is int:
        fits = array.dtype.kind == "i" and (array.size == 0 or (abs(array.astype(np.float64)) < 2**31).all())
        return dtypes.int32 if fits else as_dtype(array.dtype)
    return as_dtype(kind)


def _converted(array: Array, dtype: DType, kind: type | None) -> Array:
    wanted, is_whole = dtype.numpy_dtype, dtype.is_integer or dtype.is_quantized
    if array.dtype == wanted:
        return array
    if array.size and (is_whole or dtype.is_bool) and array.dtype.kind in "fc":
        raise LiteralError(f"cannot make {dtype.name} of {array.tolist()!r}: the values are not integers")
    if dtype.is_floating and array.dtype.kind == "c":
        raise LiteralError(f"cannot make {dtype.name} of the complex {array.tolist()!r}")
    with np.errstate(all="ignore"):
        converted = array.astype(wanted)
    if is_whole and not np.array_equal(converted.astype(array.dtype), array):
        raise LiteralError(f"cannot make {dtype.name} of {array.tolist()!r}: a value is out of range")
    return converted


def _host_array(value: Any, array: Array, dtype: DType | None) -> Array:
    if array.dtype.kind == "O" and array.size and all(isinstance(item, int) for item in array.ravel()):
        raise LiteralError(f"cannot make a tensor of {value!r}: an integer does not fit into 64 bits")
    if array.dtype.kind == "O" and not all(isinstance(item, str | bytes) for item in array.ravel()):
        raise TypeError(f"cannot make a tensor of {value!r}: it holds values that are neither numbers nor strings")
    if dtype is not None and dtype is not dtypes.string:
        raise LiteralError(f"cannot make {dtype.name} of the text {value!r}")
    encoded = np.empty(array.shape, object)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray | np.generic):
        # NumPy's own strings end before their last zero bytes.
        array = np.array(value, object)
    for index, item in np.ndenumerate(array):
        encoded[index] = item.encode() if isinstance(item, str) else bytes(item)
    return encoded


def _fit(array: Array, dims: tuple[int, ...], verify_shape: bool) -> Array:
    if array.shape == dims:
        return array
    if verify_shape:
        raise ShapeError(f"constant: the value has shape {array.shape}, expected {dims}")
    if array.size == 1:
        return np.full(dims, array.reshape(()))
    if array.size == np.prod(dims, dtype=np.int64):
        return array.reshape(dims)
    raise ShapeError(f"constant: {array.size} elements cannot fill shape {dims}")


def _constant_node(array: Array, name: str, dtype: DType | None) -> Tensor:
    dtype = dtype or (dtypes.string if array.dtype == object else as_dtype(array.dtype))
    graph = get_default_graph()
    # What has a gradient may be asked for its own.
    if not graph.is_traced or dtype.is_differentiable or dtype.is_host_only or array.nbytes > _MOST_SHARED_BYTES:
        return node("Const", (), {"value": array, "dtype": dtype}, name)
    return _shared(array, dtype, name, graph)


def _shared(array: Array, dtype: DType, name: str, graph: Graph) -> Tensor:
    key = (dtype, array.shape, array.tobytes())
    if key not in graph.shared_constants:
        graph.shared_constants[key] = node("Const", (), {"value": array, "dtype": dtype}, name)
    return graph.shared_constants[key]


def _stacked(value: Sequence[Any], dtype: DType | None, name: str | None) -> Tensor:
    # Stacking is an operation on tensors, declared on top of this file.
    from xlalite.ops.helpers.promotion import promote

    items = [convert_to_tensor(item) if isinstance(item, list | tuple) else item for item in value]
    tensors = promote(*items) if dtype is None else tuple(convert_to_tensor(item, dtype) for item in items)
    return node("Pack", tensors, {"axis": 0}, name or "packed")
