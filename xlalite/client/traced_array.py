"""Arrays without values that a NumPy function runs on while `xlalite.jit` records what it computes.

They implement NumPy's protocols, so operators, ufuncs and the functions of `numpy_functions` build a graph. Element
types follow NumPy's own rules, because NumPy is asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from xlalite.framework.dtypes import as_dtype
from xlalite.framework.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops import array, math
from xlalite.ops.constant import convert_to_tensor
from xlalite.ops.promotion import cast_to

NumpyType = np.dtype[Any]
Rule = Callable[..., Tensor]

_WEAK_TYPES: Mapping[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


class TracedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of the function being traced: a tensor of known shape.

    Attributes:
        tensor: The tensor.
        is_weak: Whether it came from Python numbers, whose element type gives way to that of arrays.
    """

    __slots__ = ("is_weak", "tensor")
    __array_priority__ = 2000

    def __init__(self, tensor: Tensor, is_weak: bool = False) -> None:
        """Wraps a tensor."""
        self.tensor = tensor
        self.is_weak = is_weak

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol: records the call of a ufunc. `x += y` makes x mean the sum: values never change."""
        if options.get("out") == (inputs[0],) and isinstance(inputs[0], TracedArray):
            del options["out"]
        if method != "__call__" or options:
            return NotImplemented
        return apply_ufunc(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """NumPy's protocol: records the call of a function."""
        from xlalite.client.numpy_functions import FUNCTIONS

        rule = FUNCTIONS.get(function)
        return NotImplemented if rule is None else rule(*arguments, **options)

    def _as_tensor(self) -> Tensor:
        return self.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes; all are known."""
        return self.tensor.shape.known_dims()

    @property
    def dtype(self) -> NumpyType:
        """Element type."""
        return self.tensor.dtype.as_numpy_dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def T(self) -> TracedArray:  # NumPy's name
        """The array with its dimensions reversed."""
        return TracedArray(array.transpose(self.tensor))

    def astype(self, dtype: Any) -> TracedArray:
        """The array in another element type."""
        return TracedArray(cast_to(self.tensor, as_dtype(np.dtype(dtype))))

    def copy(self) -> TracedArray:
        """The array itself: values never change."""
        return self

    def reshape(self, *shape: Any) -> Any:
        """The elements in another shape."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """The array with its dimensions in another order."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def ravel(self) -> Any:
        """All elements in one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The sum of the elements."""
        return np.sum(self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The product of the elements."""
        return np.prod(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The mean of the elements."""
        return np.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The variance of the elements."""
        return np.var(self, axis=axis, keepdims=keepdims)

    def std(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The standard deviation of the elements."""
        return np.std(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The largest element."""
        return np.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The smallest element."""
        return np.min(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None) -> Any:
        """The position of the largest element."""
        return np.argmax(self, axis=axis)

    def argmin(self, axis: Any = None) -> Any:
        """The position of the smallest element."""
        return np.argmin(self, axis=axis)

    def dot(self, other: Any) -> Any:
        """The product with another array."""
        return np.dot(self, other)

    def __getitem__(self, key: Any) -> TracedArray:
        """A part of the array."""
        parts = tuple(map(_index, key)) if isinstance(key, tuple) else _index(key)
        return TracedArray(convert_to_tensor(self.tensor[parts]))

    def __len__(self) -> int:
        """Size of the first dimension."""
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        """The parts along the first dimension."""
        return iter([self[position] for position in range(len(self))])

    def __bool__(self) -> NoReturn:
        """Not defined: there is no value."""
        raise TracingError(
            f"{self!r} has no truth value while the function is traced; use np.where, xlalite.cond or "
            "xlalite.while_loop, or pass what decides as a static argument"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Not defined: there is no value."""
        raise TracingError(f"{self!r} has no value while the function is traced; NumPy cannot make an array of it")

    __float__ = __int__ = __index__ = __complex__ = __array__

    def __repr__(self) -> str:
        """Element type and shape."""
        return f"TracedArray({self.dtype}{list(self.shape)})"


def as_tensor(value: Any) -> Tensor:
    """A traced array, an array or a number as a tensor of its NumPy element type."""
    return convert_to_tensor(value if hasattr(value, "_as_tensor") or isinstance(value, Tensor) else np.asarray(value))


def type_for_numpy(value: Any) -> Any:
    """What NumPy's promotion looks at: the element type, or a Python type for numbers."""
    if isinstance(value, TracedArray):
        return _WEAK_TYPES[value.dtype.kind] if value.is_weak else value.dtype
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return type(value)
    return value.dtype.as_numpy_dtype if isinstance(value, Tensor) else np.asarray(value).dtype


def promoted(*values: Any) -> list[Tensor]:
    """The values as tensors of the element type that NumPy would give their combination."""
    samples = [each(0) if isinstance(each, type) else each for each in map(type_for_numpy, values)]
    dtype = as_dtype(np.result_type(*samples))
    return [cast_to(as_tensor(value), dtype) for value in values]


def apply_ufunc(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Records the call of a ufunc; NotImplemented where there is no rule for it."""
    found = [type_for_numpy(value) for value in inputs]
    is_weak = all(isinstance(each, type) for each in found)
    wanted = [np.dtype(each) for each in found] if is_weak else found
    rule = UFUNCS.get(ufunc)
    if rule is None or ufunc.nout != 1:
        return NotImplemented
    if ufunc is np.matmul:
        return TracedArray(rule(*promoted(*inputs)))
    dtypes = ufunc.resolve_dtypes((*wanted, None))
    if dtypes[0].kind == "b":
        rule = BOOLEAN_UFUNCS.get(ufunc, rule)
    tensors = [cast_to(as_tensor(v), as_dtype(dtype)) for v, dtype in zip(inputs, dtypes, strict=False)]
    return TracedArray(cast_to(rule(*tensors), as_dtype(dtypes[-1])), is_weak)


def matrix_product(x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul: a vector is a row on the left, a column on the right, and its dimension goes away again."""
    left = array.expand_dims(x, 0) if x.shape.rank == 1 else x
    right = array.expand_dims(y, 1) if y.shape.rank == 1 else y
    product = math.matmul(left, right)
    dropped = [axis for axis, operand in ((-2, x), (-1, y)) if operand.shape.rank == 1]
    return array.squeeze(product, dropped) if dropped else product


def _as_bool(rule: Rule) -> Rule:
    return lambda *tensors: rule(*[math.cast(tensor, np.bool_) for tensor in tensors])


def _index(part: Any) -> Any:
    return part.tensor if isinstance(part, TracedArray) else part


UFUNCS: Mapping[np.ufunc, Rule] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.true_divide: math.truediv,
    np.floor_divide: lambda x, y: x // y,
    np.remainder: lambda x, y: x % y,
    np.fmod: math.truncatemod,
    np.power: lambda x, y: x**y,
    np.negative: math.negative,
    np.positive: array.identity,
    np.absolute: math.abs,
    np.fabs: math.abs,
    np.sign: math.sign,
    np.exp: math.exp,
    np.expm1: math.expm1,
    np.log: math.log,
    np.log1p: math.log1p,
    np.sqrt: math.sqrt,
    np.square: math.square,
    np.reciprocal: math.reciprocal,
    np.sin: math.sin,
    np.cos: math.cos,
    np.tan: math.tan,
    np.arcsin: math.asin,
    np.arccos: math.acos,
    np.arctan: math.atan,
    np.arctan2: math.atan2,
    np.sinh: math.sinh,
    np.cosh: math.cosh,
    np.tanh: math.tanh,
    np.floor: math.floor,
    np.ceil: math.ceil,
    np.rint: math.rint,
    np.maximum: math.maximum,
    np.minimum: math.minimum,
    np.equal: math.equal,
    np.not_equal: math.not_equal,
    np.less: math.less,
    np.less_equal: math.less_equal,
    np.greater: math.greater,
    np.greater_equal: math.greater_equal,
    np.logical_and: _as_bool(math.logical_and),
    np.logical_or: _as_bool(math.logical_or),
    np.logical_xor: _as_bool(math.logical_xor),
    np.logical_not: _as_bool(math.logical_not),
    np.bitwise_and: lambda x, y: x & y,
    np.bitwise_or: lambda x, y: x | y,
    np.bitwise_xor: lambda x, y: x ^ y,
    np.invert: lambda x: ~x,
    np.isnan: math.is_nan,
    np.isinf: math.is_inf,
    np.isfinite: math.is_finite,
    np.conjugate: math.conj,
    np.matmul: matrix_product,
}
"""What each ufunc records, given operands of the element types of NumPy's loop."""

BOOLEAN_UFUNCS: Mapping[np.ufunc, Rule] = {
    np.add: math.logical_or,
    np.multiply: math.logical_and,
    np.maximum: math.logical_or,
    np.minimum: math.logical_and,
    np.absolute: array.identity,
}
"""Ufuncs that mean something else on truth values."""
