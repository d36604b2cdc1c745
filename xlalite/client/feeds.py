"""Fed values: checked against their tensors and turned into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from xlalite.client.session_errors import FeedError, FeedTypeError
from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import GraphError, MissingElementError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array
from xlalite.framework.structure import VALUE_TYPE, flatten


class Feed:
    """How values of one tensor are fed.

    Attributes:
        tensor: The tensor.
        dtype: The element type of arrays that need no conversion.
        accepted: The last shape that was found to fit. The same one needs no check again, for a tensor's shape only
            ever becomes more precise.
    """

    __slots__ = ("accepted", "dtype", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        """Feeds `tensor`."""
        self.tensor = tensor
        self.dtype = tensor.dtype.numpy_dtype
        self.accepted: tuple[int, ...] | None = None

    def convert(self, value: Any) -> Array:
        """The value as an array of the tensor's element type; an array that has it already is not copied.

        Raises:
            FeedError: The shape is not one of the tensor's.
            FeedTypeError: The value cannot stand for an array of that element type.
        """
        array = value if type(value) is np.ndarray and value.dtype is self.dtype else self._convert(value)
        if array.shape != self.accepted:
            self._check_shape(array)
        return array

    def _check_shape(self, array: Array) -> None:
        shape = self.tensor.shape
        if not shape.is_compatible_with(array.shape):
            raise FeedError(
                f"Cannot feed value of shape {array.shape!r} for Tensor {self.tensor.name!r}, which has shape "
                f"{str(shape)!r}"
            )
        self.accepted = array.shape

    def _convert(self, value: Any) -> Array:
        tensor = self.tensor
        if isinstance(value, Tensor | Operation) or hasattr(value, "_as_graph_element"):
            raise FeedTypeError(
                f"The value fed for Tensor {tensor.name!r} is {value!r}: it must be a number, a string, a list or an "
                "array; a Tensor has no value before it is run"
            )
        if tensor.dtype is string:
            return _as_strings(value)
        if isinstance(value, int) and not isinstance(value, bool):
            self._check_number(value)
        try:
            given = np.asarray(value)
            converted = np.asarray(value, self.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._type_error(value, str(error)) from None
        if given.dtype.kind == "O":
            raise self._type_error(value, "it holds objects that are no numbers")
        if _may_lose(given, converted) and not np.array_equal(given, converted):
            raise self._type_error(value, f"the conversion from {given.dtype} would change it")
        return converted

    def _type_error(self, value: Any, reason: str) -> FeedTypeError:
        tensor = self.tensor
        return FeedTypeError(
            f"Cannot feed {_shown(value)} for Tensor {tensor.name!r} of type {tensor.dtype.name}: {reason}"
        )

    def _check_number(self, value: int) -> None:
        """Refuses a Python integer that the element type cannot hold."""
        dtype = self.tensor.dtype
        if dtype.is_integer and not int(dtype.min) <= value <= int(dtype.max):
            raise FeedTypeError(
                f"Type of feed value {value} with type int is not compatible with Tensor type {dtype.name} of "
                f"{self.tensor.name!r}, which holds {dtype.min} to {dtype.max}"
            )


def resolve_feed(graph: Graph, key: Any) -> Feed:
    """The feed for a key of `feed_dict`: a tensor, a variable or a name.

    Raises:
        FeedTypeError: The key does not stand for a tensor of the graph.
        FeedError: The tensor may not be fed.
    """
    try:
        tensor = graph.as_graph_element(key, allow_operation=False)
    except (TypeError, GraphError, MissingElementError) as error:
        raise FeedTypeError(f"Cannot interpret feed_dict key {key!r} as Tensor: {error}") from None
    assert isinstance(tensor, Tensor), "operations were not allowed"
    if tensor.handle_data is not None or not graph.is_feedable(tensor):
        raise FeedError(f"Tensor {tensor.name!r} may not be fed")
    return Feed(tensor)


def feeds_of_parts(feed_dict: Mapping[Any, Any]) -> dict[Any, Any] | None:
    """The feeds with each key that is made of tensors taken apart, and its value with it; None if there is no such key.

    Raises:
        FeedTypeError: The value has another number of parts.
    """
    if not any(_has_parts(key) for key in feed_dict):
        return None
    parts: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        parts.update(_parts(key, value))
    return parts


def _has_parts(key: Any) -> bool:
    return isinstance(key, tuple) or hasattr(key, VALUE_TYPE)


def _parts(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """A key's tensors, each with its value; a tuple of keys takes as many values, tuples or not."""
    if not _has_parts(key):
        yield key, value
        return
    is_tuple = isinstance(key, tuple)
    keys = key if is_tuple else flatten(key)[0]
    values = tuple(value) if isinstance(value, (tuple, list, np.ndarray) if is_tuple else tuple) else ()
    if len(values) != len(keys):
        name = "" if is_tuple else f"{getattr(key, VALUE_TYPE).__name__} or "
        raise FeedTypeError(f"Cannot feed {_shown(value)} for {key!r}: expected {name}a tuple of {len(keys)}")
    for each, its_value in zip(keys, values, strict=True):
        yield from _parts(each, its_value)


def _may_lose(given: Array, converted: Array) -> bool:
    """Whether the conversion could lose more than the last digits of a floating-point number."""
    to_fewer = {"c": "fiub", "f": "iub", "i": "iub", "u": "iub", "b": ""}.get(given.dtype.kind, "")
    return converted.dtype.kind in to_fewer and not np.can_cast(given.dtype, converted.dtype, "safe")


def _as_strings(value: Any) -> Array:
    """An array of `bytes`."""
    given = np.asarray(value, object)
    encoded = [each.encode() if isinstance(each, str) else each for each in given.ravel()]
    wrong = [each for each in encoded if not isinstance(each, bytes)]
    if wrong:
        raise FeedTypeError(f"Cannot feed {_shown(wrong[0])} where a string is expected")
    result = np.empty(given.shape, object)
    result.ravel()[:] = encoded
    return result


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
