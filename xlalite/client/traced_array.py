"""Arrays without values that a NumPy function runs on while `xlalite.jit` records what it computes.

They implement NumPy's protocols, so operators, ufuncs and the functions of `numpy_functions` build a graph. Element
types follow NumPy's own rules, because NumPy is asked for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to

NumpyType = np.dtype[Any]

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
        self.tensor = tensor
        self.is_weak = is_weak

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol: records the call of a ufunc. `x += y` makes x mean the sum: values never change."""
        from xlalite.client.numpy_ufuncs import apply_ufunc

        if options.get("out") == (inputs[0],) and isinstance(inputs[0], TracedArray):
            del options["out"]
        if method != "__call__" or options:
            given = f" with {', '.join(options)}" if method == "__call__" else f".{method}"
            raise TracingError(f"numpy.{ufunc.__name__}{given} cannot be recorded by xlalite.jit")
        return apply_ufunc(ufunc, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """NumPy's protocol: records the call of a function."""
        from xlalite.client.numpy_functions import FUNCTIONS

        rule, name = FUNCTIONS.get(function), f"{function.__module__}.{function.__name__}"
        if rule is None:
            raise TracingError(f"{name} cannot be recorded by xlalite.jit; {self!r} has no value for NumPy to use")
        parameters = inspect.signature(rule)
        try:
            bound = parameters.bind(*arguments, **options)
        except TypeError as error:
            raise TracingError(f"{name}: {error}; xlalite.jit records it with the parameters {parameters}") from None
        return rule(*bound.args, **bound.kwargs)

    def _as_tensor(self) -> Tensor:
        return self.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes; all are known."""
        return self.tensor.shape.known_dims()

    @property
    def dtype(self) -> NumpyType:
        """Element type."""
        return self.tensor.dtype.numpy_dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def real(self) -> Any:
        """The real part."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return np.imag(self)

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
        parts = tuple(map(_index, key)) if isinstance(key, tuple) else _index(key)
        return TracedArray(convert_to_tensor(self.tensor[parts]))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
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
        """Element type and shape, as it stands in messages."""
        return f"{self.dtype}{list(self.shape)} array (being traced)"


def as_tensor(value: Any) -> Tensor:
    """A traced array, an array or a number as a tensor of its NumPy element type."""
    return convert_to_tensor(value if hasattr(value, "_as_tensor") or isinstance(value, Tensor) else np.asarray(value))


def type_for_numpy(value: Any) -> Any:
    """What NumPy's promotion looks at: the element type, or a Python type for numbers."""
    if isinstance(value, TracedArray):
        return _WEAK_TYPES[value.dtype.kind] if value.is_weak else value.dtype
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return type(value)
    return value.dtype.numpy_dtype if isinstance(value, Tensor) else np.asarray(value).dtype


def promoted(*values: Any) -> list[Tensor]:
    """The values as tensors of the element type that NumPy would give their combination."""
    samples = [each(0) if isinstance(each, type) else each for each in map(type_for_numpy, values)]
    dtype = as_dtype(np.result_type(*samples))
    return [cast_to(as_tensor(value), dtype) for value in values]


def converted(value: Any, dtype: DType) -> Tensor:
    """The value as a tensor of an element type that NumPy chose for it.

    Raises:
        OverflowError: It is a Python integer out of the type's range.
    """
    if type(value) is int:
        value = dtype.numpy_dtype.type(value) if dtype.is_integer else float(value)
    return cast_to(as_tensor(value), dtype)


def matrix_product(x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul: a vector is a row on the left, a column on the right, and its dimension goes away again."""
    left = array.expand_dims(x, 0) if x.shape.rank == 1 else x
    right = array.expand_dims(y, 1) if y.shape.rank == 1 else y
    product = math.matmul(left, right)
    dropped = [axis for axis, operand in ((-2, x), (-1, y)) if operand.shape.rank == 1]
    return array.squeeze(product, dropped) if dropped else product


def _index(part: Any) -> Any:
    return part.tensor if isinstance(part, TracedArray) else part
