"""What stands for names of NumPy that do not ask their arguments how they are computed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy

from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.promotion import contains_traced, sizes, traced_array
from xlalite.tracing.traced_array import TracedArray


def take(a: Any, indices: Any, *arguments: Any, **options: Any) -> Any:
    """`numpy.take`, also where only the indices are traced."""
    array = traced_array(a) if contains_traced([a, indices]) else a
    return np.take(array, indices, *arguments, **options)


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, **options: Any) -> Any:  # NumPy's name
    """`numpy.fromiter`, also of traced numbers."""
    values = list(iter)
    if not contains_traced(values):
        return numpy.fromiter(values, dtype, count, **options)
    return traced_array(values if count < 0 else values[:count]).astype(dtype)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """`numpy.ndenumerate`: each index with its element."""
    array = arr if isinstance(arr, TracedArray) else numpy.asarray(arr)
    return ((index, array[index]) for index in numpy.ndindex(*array.shape))


def nditer(op: Any, *arguments: Any, **options: Any) -> Any:
    """`numpy.nditer`, of arrays with values.

    Raises:
        TracingError: One is traced.
    """
    if contains_traced([op]):
        raise TracingError(
            "numpy.nditer cannot be recorded by xlalite.jit: it takes arrays that have values; write operations on "
            "whole arrays, or for index in np.ndindex(x.shape)"
        )
    return numpy.nditer(op, *arguments, **options)


class Vectorized:
    """A function of numbers for arrays, as `numpy.vectorize` makes it: all elements at once, by `xlalite.vmap`."""

    def __init__(self, of_numpy: numpy.vectorize) -> None:
        self._of_numpy = of_numpy
        functools.update_wrapper(self, of_numpy.pyfunc)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """The results for all elements.

        Raises:
            TracingError: The function is to see whole arrays, or decides by their elements.
        """
        from xlalite.tracing.vectorization import vmap  # which stands on these names

        given = self._of_numpy
        if not contains_traced([*arguments, *options.values()]):
            return given(*arguments, **options)
        if options or given.signature or given.excluded:
            raise TracingError(
                "numpy.vectorize with a signature, excluded or named arguments cannot be recorded by xlalite.jit; use "
                "xlalite.vmap"
            )
        arrays = np.broadcast_arrays(*map(traced_array, arguments))
        shape = sizes(arrays[0])
        leaves, structure = flatten(vmap(given.pyfunc)(*(each.ravel() for each in arrays)))
        types = [None] * len(leaves) if given.otypes is None else [*given.otypes]
        found = [
            np.reshape(each if dtype is None else each.astype(dtype), shape)
            for each, dtype in zip(leaves, types, strict=True)
        ]
        return rebuild(structure, found)


def vectorize(pyfunc: Callable[..., Any] | None = None, *arguments: Any, **options: Any) -> Any:
    """`numpy.vectorize`, also a decorator with options."""
    if pyfunc is None:
        return lambda function: vectorize(function, *arguments, **options)
    return Vectorized(numpy.vectorize(pyfunc, *arguments, **options))


NAMES: Mapping[str, Callable[..., Any]] = {
    each.__name__: each for each in (take, fromiter, ndenumerate, nditer, vectorize)
}
"""By NumPy's names."""
