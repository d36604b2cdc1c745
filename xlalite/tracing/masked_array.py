"""What a traced mask selects: of unknown size, which most of what is done with it does not need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy

from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.promotion import normal_axis
from xlalite.tracing.traced_array import TracedArray

_REDUCTIONS = frozenset({np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.amax, np.amin, np.all, np.any})


def _method(name: str) -> Callable[..., Any]:
    """NumPy's reduction as a method; the largest of no elements is the type's lowest value."""

    def method(self: MaskedSelection, axis: Any = None, **options: Any) -> Any:
        return getattr(np, name)(self, axis=axis, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`numpy.{name}` of the selected elements."
    return method


class MaskedSelection(numpy.lib.mixins.NDArrayOperatorsMixin):
    """`x[mask]`: functions of elements and reductions are recorded; `y[mask]` takes it."""

    __slots__ = ("mask", "values")
    __array_priority__ = 2001

    def __init__(self, values: TracedArray, mask: TracedArray) -> None:
        self.values = values
        self.mask = mask

    def values_at(self, mask: TracedArray) -> TracedArray:
        """All elements, of which those under the mask count.

        Raises:
            TracingError: The mask is another one.
        """
        if not _is_same(mask.tensor, self.mask.tensor):
            raise TracingError("elements that one mask selects cannot be combined with those of another mask")
        return self.values

    def __array_ufunc__(self, ufunc: numpy.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's protocol: elementwise functions of elements under one mask, and of single numbers."""
        if method == "reduce":
            return ufunc.reduce(self.values, axis=None, where=self._wide_mask())
        out = options.pop("out", (None,))
        if method != "__call__" or options or not (out[0] is None or out[0] is inputs[0]):
            self._refuse(f"numpy.{ufunc.__name__} with {', '.join([*options, 'out', method])}")
        whole = []
        for each in inputs:
            if not isinstance(each, MaskedSelection) and np.ndim(each) > self.values.ndim - self.mask.ndim:
                self._refuse(f"numpy.{ufunc.__name__} with an array of shape {np.shape(each)}")
            whole.append(each.values_at(self.mask) if isinstance(each, MaskedSelection) else each)
        return MaskedSelection(ufunc(*whole), self.mask)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """NumPy's protocol: reductions of all elements."""
        if function is np.size:
            return self.size
        extra = {**options, **({"axis": arguments[1]} if len(arguments) == 2 else {})}
        if function not in _REDUCTIONS or len(arguments) > 2 or {*extra} - {"ddof", "initial", "axis"}:
            self._refuse(f"{function.__module__}.{function.__name__}")
        rank = self.values.ndim - self.mask.ndim + 1
        axis = extra.pop("axis", None)
        along = None if axis is None else normal_axis(axis, rank)
        if along:
            return MaskedSelection(function(self.values, axis=along - 1 + self.mask.ndim, **extra), self.mask)
        if along == 0:
            extra["axis"] = tuple(range(self.mask.ndim))
        if function in (np.max, np.min, np.amax, np.amin):
            extra.setdefault("initial", _limit(self.values.dtype, is_lowest=function in (np.max, np.amax)))
        return function(self.values, where=self._wide_mask(), **extra)

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Element type."""
        return self.values.dtype

    @property
    def size(self) -> Any:
        """How many elements are selected, traced."""
        return np.sum(self._wide_mask() & np.ones(self.values.shape, np.bool_))

    all = _method("all")
    any = _method("any")
    max = _method("max")
    mean = _method("mean")
    min = _method("min")
    prod = _method("prod")
    std = _method("std")
    sum = _method("sum")
    var = _method("var")

    def __len__(self) -> NoReturn:
        self._refuse("len()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Not defined: there is no value."""
        self._refuse("an array of its values")

    def __repr__(self) -> str:
        """What it is of."""
        return f"{self.values!r}[mask]"

    def _wide_mask(self) -> TracedArray:
        found: TracedArray = self.mask.reshape(self.mask.shape + (1,) * (self.values.ndim - self.mask.ndim))
        return found

    def _refuse(self, what: str) -> NoReturn:
        raise TracingError(
            f"{what} cannot be recorded by xlalite.jit for {self!r}: how many elements a mask selects is not known "
            "while the function is traced. Use np.where(mask, x, other), or a reduction with where=mask"
        )


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are computed alike: `x > 0` is often written twice."""
    pairs, seen = [(one, other)], set()
    while pairs:
        first, second = pairs.pop()
        if first is second or (id(first), id(second)) in seen:
            continue
        seen.add((id(first), id(second)))
        left, right = first.op, second.op
        is_alike = first.index == second.index and left.type == right.type and left.spec.state is None
        if not is_alike or len(left.inputs) != len(right.inputs) or (not left.inputs and left.type != "Const"):
            return False
        if left.attrs.keys() != right.attrs.keys():
            return False
        if not all(np.array_equal(value, right.attrs[name]) for name, value in left.attrs.items()):
            return False
        pairs += zip(left.inputs, right.inputs, strict=True)
    return True


def _limit(dtype: numpy.dtype[Any], is_lowest: bool) -> Any:
    if dtype == np.bool_:
        return not is_lowest
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_lowest else np.iinfo(dtype).max
    return dtype.type(-np.inf if is_lowest else np.inf)
