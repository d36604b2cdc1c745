"""NumPy's indexing, read and written: basic keys are views, index arrays gather and scatter, masks select.

Indices that are known are checked as NumPy checks them. Of those that are not, reads take the nearest element and
writes are left out where they are out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions import array, math, selection
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing import views
from xlalite.tracing.masked_array import MaskedSelection
from xlalite.tracing.promotion import as_tensor, contains_traced, converted
from xlalite.tracing.traced_array import TracedArray


def taken(x: TracedArray, key: Any) -> Any:
    """`x[key]`."""
    if _is_mask(key):
        return MaskedSelection(x, _fitting_mask(x, key))
    parts = _parts(x, key)
    if not any(isinstance(part, TracedArray | np.ndarray) for part in parts):
        view = x.view_through(views.sliced(parts))
        # One element is a number: it does not follow the array.
        return view.copy() if len(parts) == x.ndim and not view.shape and key is not Ellipsis else view
    basic, rest = _split(parts)
    whole = x if all(part == slice(None) for part in basic) else x.view_through(views.sliced(basic))
    chosen = _Chosen.of(whole.shape, rest)
    return TracedArray(chosen.read(whole.tensor))


def known_view(x: TracedArray, key: Any) -> Any:
    """`x[key]` of an array whose elements are known."""
    whole = np.asarray(x.known)
    found = whole[key]
    if not isinstance(found, np.ndarray):
        return found
    if found.base is None or not np.shares_memory(found, whole):
        return TracedArray(None, known=found)
    return x.view_through(views.sliced(_parts(x, key)), found)


def put(x: TracedArray, key: Any, value: Any) -> None:
    """`x[key] = value`."""
    if _is_mask(key):
        mask = _fitting_mask(x, key)
        given = value.values_at(mask) if isinstance(value, MaskedSelection) else value
        if not isinstance(value, MaskedSelection) and np.ndim(value) > x.ndim - mask.ndim:
            raise TracingError(
                f"{x!r}: values for a mask must be single ones or x[mask] itself, found {np.shape(value)}; how many "
                "a mask selects is not known while the function is traced"
            )
        wide = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
        x.assign(array.where_v2(wide.tensor, converted(given, x.tensor.dtype), x.tensor))
        return
    parts = _parts(x, key)
    if not any(isinstance(part, TracedArray | np.ndarray) for part in parts):
        part = x.view_through(views.sliced(parts))
        part.assign(_broadcast(value, part))
        return
    basic, rest = _split(parts)
    whole = x if all(part == slice(None) for part in basic) else x.view_through(views.sliced(basic))
    _scatter(whole, rest, value, "TensorScatterUpdate")


def combine_at(x: TracedArray, key: Any, value: Any, operation: str) -> None:
    """`ufunc.at`: combines values with the elements that a key chooses, each as often as it is chosen."""
    parts = _parts(x, key)
    basic, rest = _split([part if not isinstance(part, int) else np.asarray(part) for part in parts])
    whole = x if all(part == slice(None) for part in basic) else x.view_through(views.sliced(basic))
    _scatter(whole, rest, value, operation)


def _scatter(whole: TracedArray, rest: Sequence[Any], value: Any, operation: str) -> None:
    chosen = _Chosen.of(whole.shape, rest)
    values = converted(value, whole.tensor.dtype)
    whole.assign(chosen.write(whole.tensor, array.broadcast_to(values, list(chosen.shape)), operation))


def _broadcast(value: Any, like: TracedArray) -> Tensor:
    x = converted(value, like.tensor.dtype)
    dims = x.shape.known_dims()
    # NumPy drops leading dimensions of size 1 when it assigns.
    while len(dims) > like.ndim and dims[0] == 1:
        dims = dims[1:]
    try:
        fits = np.broadcast_shapes(dims, like.shape) == like.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {x.shape.known_dims()} into shape {like.shape}")
    return array.broadcast_to(array.reshape(x, list(dims)), list(like.shape))


def _is_mask(key: Any) -> bool:
    """A mask that is traced; a known one becomes indices."""
    return isinstance(key, TracedArray) and key.known is None and key.dtype == np.bool_


def _fitting_mask(x: TracedArray, mask: TracedArray) -> TracedArray:
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"boolean index of shape {mask.shape} did not match indexed array of shape {x.shape}")
    return mask


def _parts(x: TracedArray, key: Any) -> tuple[Any, ...]:
    """The key as one part for each dimension, and None for new ones; masks are indices, lists arrays."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if part is None or part is Ellipsis or isinstance(part, slice):
            parts.append(part)
        elif isinstance(part, TracedArray) and part.known is None:
            parts.append(_traced_part(x, part))
        elif isinstance(part, list) and contains_traced(part):
            parts.append(_traced_part(x, TracedArray(as_tensor(part))))
        else:
            parts.extend(_known_parts(x, part))
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    consumed = sum(part is not None and part is not Ellipsis for part in parts)
    if consumed > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {consumed} were indexed")
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return (*parts[:at], *[slice(None)] * (x.ndim - consumed), *parts[at + 1 :])


def _traced_part(x: TracedArray, part: TracedArray) -> TracedArray:
    if part.dtype == np.bool_:
        raise TracingError(f"{x!r}: a mask that is traced cannot stand beside other indices: its size is not known")
    if part.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return part


def _known_parts(x: TracedArray, part: Any) -> list[Any]:
    found = np.asarray(part)
    if found.size == 0 and not isinstance(part, np.ndarray):
        found = found.astype(np.intp)
    if found.dtype == np.bool_:
        if found.ndim == 0:
            raise TracingError(f"{x!r}: a single truth value as an index cannot be recorded by xlalite.jit")
        return [*found.nonzero()]
    if found.dtype.kind not in "iu":
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        )
    return [int(found)] if found.ndim == 0 else [found]


def _split(parts: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """A basic key, and what is chosen by arrays from what it leaves; whole dimensions are None there."""
    is_array = [isinstance(part, TracedArray | np.ndarray) for part in parts]
    # An integer beside arrays is an array too.
    advanced = [found or isinstance(part, int) for found, part in zip(is_array, parts, strict=True)]
    basic = tuple(slice(None) if each else part for each, part in zip(advanced, parts, strict=True))
    return basic, [part if each else None for each, part in zip(advanced, parts, strict=True)]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Elements that index arrays choose.

    Attributes:
        order: The order of dimensions in which the indexed ones come first.
        indices: Index vectors of those.
        place: Where the dimensions of the indices go among the others.
        shape: Of the result.
    """

    order: tuple[int, ...]
    indices: Tensor
    place: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, dims: tuple[int, ...], parts: Sequence[Any]) -> _Chosen:
        """Indices by dimension; None takes a whole one."""
        axes = [axis for axis, part in enumerate(parts) if part is not None]
        wrapped = [_wrapped(parts[axis], axis, dims[axis]) for axis in axes]
        common = np.broadcast_shapes(*[each.shape.known_dims() for each in wrapped])
        vectors = array.stack([array.broadcast_to(each, list(common)) for each in wrapped], len(common))
        kept = [axis for axis in range(len(dims)) if axis not in axes]
        is_together = axes == list(range(axes[0], axes[-1] + 1))
        place = axes[0] if is_together else 0
        rest = [dims[axis] for axis in kept]
        return cls((*axes, *kept), vectors, place, (*rest[:place], *common, *rest[place:]))

    def read(self, whole: Tensor) -> Tensor:
        """The chosen elements."""
        *dims, count = self.indices.shape.known_dims()
        if count == 1:
            return array.gather(whole, array.reshape(self.indices, dims), axis=self.order[0])
        found = selection.gather_nd(array.transpose(whole, list(self.order)), self.indices)
        return array.transpose(found, self._placing())

    def write(self, whole: Tensor, values: Tensor, operation: str) -> Tensor:
        """The whole with values at the chosen elements."""
        back = [int(each) for each in np.argsort(self._placing())]
        turned = array.transpose(whole, list(self.order))
        found = node(operation, [turned, self.indices, array.transpose(values, back)])
        return array.transpose(found, [int(each) for each in np.argsort(self.order)])

    def _placing(self) -> list[int]:
        """The order of dimensions that brings those of the indices from the front to their place."""
        count, rank = len(self.indices.shape.known_dims()) - 1, len(self.shape)
        others = list(range(count, rank))
        return [*others[: self.place], *range(count), *others[self.place :]]


def _wrapped(part: Any, axis: int, size: int) -> Tensor:
    """Indices of which negative ones count from the end.

    Raises:
        IndexError: A known one is out of range.
    """
    if not isinstance(part, TracedArray):
        known = np.asarray(part)
        outside = known[(known < -size) | (known >= size)]
        if outside.size:
            raise IndexError(f"index {outside.flat[0]} is out of bounds for axis {axis} with size {size}")
        return as_tensor(np.where(known < 0, known + size, known).astype(np.int64))
    indices = cast_to(part.tensor, as_dtype(np.int64))
    if part.dtype.kind == "u":
        return indices
    return array.where_v2(math.less(indices, 0), indices + size, indices)
