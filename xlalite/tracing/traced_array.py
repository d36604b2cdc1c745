"""Arrays without values that a NumPy function runs on while `xlalite.jit` records what it computes.

They implement NumPy's protocols, so operators, ufuncs and NumPy's functions build a graph. Element types follow NumPy's
own rules, because NumPy is asked for them. What is assigned to an array, or through a view of it, is seen by all that
hold it, as in NumPy; the arrays of the caller stay as they are.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions.array import zeros_like
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing import views
from xlalite.tracing.views import View

NumpyType = np.dtype[Any]
Array = npt.NDArray[Any]
_parameters_of = functools.cache(inspect.signature)


def _method(name: str) -> Callable[..., Any]:
    """NumPy's function of that name as a method."""

    def method(self: TracedArray, *arguments: Any, **options: Any) -> Any:
        return getattr(np, name)(self, *arguments, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.{name}` of the array."
    return method


class TracedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of the function being traced: a tensor of known shape.

    Attributes:
        is_weak: Whether it came from Python numbers, whose element type gives way to that of arrays.
    """

    __slots__ = ("_base", "_known", "_seen", "_tensor", "_version", "_view", "is_weak")
    __array_priority__ = 2000

    def __init__(self, tensor: Tensor | None, is_weak: bool = False, known: Array | None = None) -> None:
        self._tensor = tensor
        self._known = known
        self.is_weak = is_weak
        self._base: TracedArray | None = None
        self._view: View | None = None
        # Assignments that this array knows of, and those of the base that it has seen.
        self._version = self._seen = 0

    @property
    def tensor(self) -> Tensor:
        """The tensor; that of a view follows its base."""
        known = self.known
        if known is not None:
            return convert_to_tensor(known.copy())
        assert self._tensor is not None
        return self._tensor

    @property
    def known(self) -> Array | None:
        """The elements, as long as nothing that depends on an argument was assigned; else None.

        Arrays that `xlalite.numpy` makes are known at first. A view shares memory with what it is a view of.
        """
        if self._base is not None and self._view is not None and self._base.known is None:
            whole = self._base.tensor
            if self._seen != self._base._version or self._known is not None:
                self._tensor, self._known, self._seen = self._view.read(whole), None, self._base._version
                self._version += 1
        return self._known

    def view_through(self, view: View, known: Array | None = None) -> TracedArray:
        """A part of the array that shares its elements; `known` are those of the part, if the array's are known."""
        part = TracedArray(view.read(self.tensor) if known is None else None, known=known)
        part._base, part._view, part._seen = self, view, self._version
        return part

    def assign(self, tensor: Tensor) -> None:
        """Gives the array other elements, of its own shape and type; its base has them, too."""
        whole = None if self._base is None else self._base.tensor
        self._tensor, self._known = tensor, None
        self._version += 1
        if self._base is not None and self._view is not None and whole is not None:
            self._base.assign(self._view.write(whole, tensor))
            self._seen = self._base._version

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol: records the call of a ufunc or of one of its methods."""
        from xlalite.tracing.ufunc_methods import apply_method

        if _are_known((inputs, options)):
            return as_known(getattr(ufunc, method)(*_values(inputs), **_values(options)), options.get("out"))
        return apply_method(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """NumPy's protocol: records the call of a function."""
        from xlalite.tracing.functions import REFUSED, rule_of

        if _are_known((arguments, options)):
            return as_known(function(*_values(arguments), **_values(options)))
        rule, name = rule_of(function), f"{function.__module__}.{function.__name__}"
        if function in REFUSED:
            raise TracingError(f"{name} cannot be recorded by xlalite.jit: {REFUSED[function]}")
        if rule is None:
            raise TracingError(f"{name} cannot be recorded by xlalite.jit; {self!r} has no value for NumPy to use")
        parameters = _parameters_of(rule)
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
        return self._tensor.shape.known_dims() if self._known is None else self._known.shape  # type: ignore[union-attr]

    @property
    def dtype(self) -> NumpyType:
        """Element type."""
        return self._tensor.dtype.numpy_dtype if self._known is None else self._known.dtype  # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension of a row-major array."""
        return tuple(self.itemsize * int(np.prod(self.shape[i + 1 :])) for i in range(self.ndim))

    @property
    def device(self) -> str:
        """Where NumPy says that its arrays are."""
        return "cpu"

    @property
    def flat(self) -> Any:
        """All elements in one dimension, as a view."""
        return self.ravel()

    @property
    def real(self) -> TracedArray:
        """The real parts, as a view."""
        return self.view_through(views.component(True)) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> TracedArray:
        """The imaginary parts, as a view."""
        if self.dtype.kind == "c":
            return self.view_through(views.component(False))
        return TracedArray(zeros_like(self.tensor))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    @property
    def T(self) -> Any:  # NumPy's name
        """The array with its dimensions reversed."""
        return self.transpose()

    @property
    def mT(self) -> Any:  # NumPy's name
        """The array with its last two dimensions exchanged."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> TracedArray:
        """The array in another element type."""
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {wanted!r} according to the rule {casting!r}"
            )
        if self.dtype.kind == "c" and wanted.kind not in "cb":
            return self.real.astype(wanted)
        return TracedArray(cast_to(self.tensor, as_dtype(wanted)))

    def view(self, dtype: Any = None) -> TracedArray:
        """The same elements; their bits in an element type of the same width."""
        if dtype is None:
            return self.view_through(views.reshaped(self.shape, self.shape))
        return self.view_through(views.reinterpreted(self.tensor.dtype, as_dtype(np.dtype(dtype))))

    def copy(self, order: str = "C") -> TracedArray:
        """An array of its own with the same elements."""
        return TracedArray(self.tensor) if self.known is None else TracedArray(None, known=self.known.copy())

    def item(self, *arguments: Any) -> Any:
        """One element as a number of Python, if it is known."""
        return self._value("item()", "x[i], which is a number").item(*arguments)

    def tolist(self) -> Any:
        """The elements as numbers of Python in lists, if they are known."""
        return self._value("tolist()", "the array itself").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the elements, if they are known."""
        found: bytes = self._value("tobytes()", "x.view(np.uint8)").tobytes(order)
        return found

    def to_device(self, device: str, /, *, stream: Any = None) -> TracedArray:
        """The array, which is where NumPy says."""
        if device != self.device:
            raise ValueError(f"arrays are on the device 'cpu', not on {device!r}")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """NumPy, whose functions are recorded."""
        return np

    def fill(self, value: Any) -> None:
        """Assigns a value to all elements."""
        self[...] = value

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """The elements in another shape, as a view."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """The array with its dimensions in another order, as a view."""
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def flatten(self, order: Any = "C") -> Any:
        """All elements in one dimension, copied."""
        return np.ravel(self, order).copy()

    def conj(self) -> Any:
        """The complex conjugate."""
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """The parts along a dimension that a known condition chooses."""
        return np.compress(condition, self, axis, out)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> None:
        """Puts the elements along a dimension in order."""
        self[...] = np.sort(self, axis=axis)

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Puts the elements along a dimension in order, of which this is a special case."""
        self[...] = np.partition(self, kth, axis=axis)

    all = _method("all")
    any = _method("any")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose")
    clip = _method("clip")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    max = _method("max")
    mean = _method("mean")
    min = _method("min")
    nonzero = _method("nonzero")
    prod = _method("prod")
    put = _method("put")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    std = _method("std")
    sum = _method("sum")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")
    var = _method("var")

    def __getattr__(self, name: str) -> Any:
        """Nothing; says so of what NumPy's arrays have."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{self!r} has no .{name}: it has no memory while the function is traced, only elements that are computed"
        )

    def __getitem__(self, key: Any) -> Any:
        from xlalite.tracing.indexing import known_view, taken

        if self.known is not None and _are_known(key):
            return known_view(self, _values(key))
        return taken(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from xlalite.tracing.indexing import put

        if self.known is not None and _are_known((key, value)):
            self.known[_values(key)] = _values(value)
            return
        put(self, key, value)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[position] for position in range(len(self))])

    def __contains__(self, element: Any) -> Any:
        return bool((self == element).any())

    def __bool__(self) -> bool:
        """Not defined, unless the value is known."""
        if self.known is not None:
            return bool(self.known)
        raise TracingError(
            f"{self!r} has no truth value while the function is traced; use np.where, np.max and np.sort in the place "
            "of `if`, max and sorted, xlalite.cond or xlalite.while_loop, @xlalite.jit(control_flow=True), or pass "
            "what decides as a static argument"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Not defined, unless the elements are known."""
        if self.known is None:
            from xlalite.tracing.scipy_functions import instead_of_caller

            raise TracingError(
                instead_of_caller()
                or f"{self!r} has no value while the function is traced; NumPy cannot make an array of it. Use NumPy's "
                "functions of arrays, np.take(x, i) where it is an index, or pass it as a static argument"
            )
        return np.array(self.known, dtype, copy=copy)

    def __float__(self) -> float:
        return float(self._value("float(), and the functions of math", "x.astype(float), np.sin for math.sin"))

    def __int__(self) -> int:
        return int(self._value("int()", "x.astype(int)"))

    def __index__(self) -> int:
        return operator.index(self._value("range(), and sizes", "xlalite.fori_loop"))

    def __complex__(self) -> complex:
        return complex(self._value("complex()", "x.astype(complex)"))

    def _value(self, wanted: str, instead: str) -> Any:
        """The elements, if they are known, for what asks for them."""
        if self.known is None:
            raise TracingError(
                f"{self!r} has no value while the function is traced, which is needed by {wanted}; use {instead}, or "
                "pass it as a static argument"
            )
        return self.known

    def __round__(self, ndigits: int | None = None) -> Any:
        return np.round(self, ndigits or 0)

    def __copy__(self) -> TracedArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> TracedArray:
        return self.copy()

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays, whose == is elementwise

    def __repr__(self) -> str:
        """Element type and shape, as it stands in messages."""
        return f"{self.dtype}{list(self.shape)} array (being traced)"


def as_known(value: Any, same: Any = None) -> Any:
    """What NumPy gave for arrays that are known: arrays as such again; `same` is what it was written to."""
    if same is not None:
        return same[0] if isinstance(same, tuple) and len(same) == 1 else same
    if isinstance(value, np.ndarray):
        return TracedArray(None, known=value) if is_numeric(value.dtype) else value
    if isinstance(value, tuple | list) and any(isinstance(each, np.ndarray) for each in value):
        parts = [as_known(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def is_numeric(dtype: NumpyType) -> bool:
    """Whether elements are numbers or truth values, and no text, dates, objects or records."""
    return dtype.kind not in "SUOMm" and dtype.fields is None


def _are_known(value: Any) -> bool:
    if isinstance(value, TracedArray):
        return value.known is not None
    if isinstance(value, Mapping):
        return all(map(_are_known, value.values()))
    if isinstance(value, tuple | list):
        return all(map(_are_known, value))
    return not isinstance(value, Tensor) and not hasattr(value, "_as_tensor") and not hasattr(value, "mask")


def _values(value: Any) -> Any:
    """Known arrays as those of NumPy, also in nested arguments."""
    if isinstance(value, TracedArray):
        return value.known
    if isinstance(value, dict):
        return {name: _values(each) for name, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_values, value))
    return value
