"""NumPy's basic indexing of tensors: `t[1:, ::-2, ..., None, 3]`, and `t[i]` where i is a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations.strided_slice import MASKS
from xlalite.ops.helpers.constant import as_existing_tensor, constant, convert_to_tensor
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote

newaxis = None
"""Makes a new dimension where it stands in an index."""


def index_tensor(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]`: integers, slices, `...`, None (a new dimension), and scalar integer tensors.

    Raises:
        ShapeError: there are more indices than dimensions, or a known index is out of range.
        TypeError: an index is of another sort.
    """
    keys = key if isinstance(key, tuple) else (key,)
    found = [None if isinstance(item, slice) else as_existing_tensor(item) for item in keys]
    axes = _result_axes(keys, found, tensor.shape.rank)
    if axes is None or not any(index is not None for index in found):
        return _static_index(tensor, keys)
    # Whole dimensions stay where a tensor indexes; those are then gathered, the last one first.
    whole = tuple(slice(None) if index is not None else item for item, index in zip(keys, found, strict=True))
    result = tensor if all(item == slice(None) for item in whole) else _static_index(tensor, whole)
    for index, axis in reversed(list(zip(found, axes, strict=True))):
        if index is not None:
            result = _gathered(result, _checked(index, tensor), axis)
    return result


def assign_slice(part: Tensor, value: Any, use_locking: Any = None, name: str | None = None) -> Tensor:
    """Replaces what a slice of a variable took; gives the whole variable after it."""
    source, *index = part.op.inputs
    handle = source.op.inputs[0]
    replacement = cast_to(convert_to_tensor(value, preferred_dtype=part.dtype), part.dtype)
    masks = {mask: part.op.get_attr(mask) for mask in MASKS}
    change = operation("ResourceStridedSliceAssign", [handle, *index, replacement], masks, name)
    with part.graph.control_dependencies([change]):
        return node("ReadVariableOp", [handle])


def _result_axes(keys: tuple[Any, ...], found: list[Tensor | None], rank: int | None) -> list[int] | None:
    """Which dimension of the statically indexed tensor each key stands for; None when `...` leaves that open."""
    consuming = sum(1 for item in keys if item is not None and item is not Ellipsis)
    if Ellipsis in [item for item, index in zip(keys, found, strict=True) if index is None] and rank is None:
        return None
    axes, axis = [], 0
    for item, index in zip(keys, found, strict=True):
        axes.append(axis)
        if item is Ellipsis:
            axis += (rank or 0) - consuming
        elif index is not None or item is None or isinstance(item, slice):
            axis += 1
    return axes


def _gathered(tensor: Tensor, index: Tensor, axis: int) -> Tensor:
    """`tensor` at one run-time index along `axis`; negative indices count from the end."""
    size = node("GatherV2", [shape_tensor(tensor), constant(axis), constant(0)])
    size = node("Cast", [size], {"dtype": index.dtype})
    negative = node("Less", [index, node("ZerosLike", [index])])
    positive = node("SelectV2", [negative, index + size, index])
    return node("GatherV2", [tensor, positive, constant(axis)], None, "strided_slice")


def _static_index(tensor: Tensor, keys: tuple[Any, ...]) -> Tensor:
    begins: list[Any] = []
    ends: list[Any] = []
    steps: list[Any] = []
    masks = dict.fromkeys(MASKS, 0)
    for position, item in enumerate(keys):
        bit = 1 << position
        begin, end, step = 0, 0, 1
        if item is None:
            masks["new_axis_mask"] |= bit
        elif item is Ellipsis:
            if masks["ellipsis_mask"]:
                raise ShapeError("an index can have only one '...'")
            masks["ellipsis_mask"] |= bit
        elif isinstance(item, slice):
            begin, end, step = (
                default if value is None else value
                for value, default in ((item.start, 0), (item.stop, 0), (item.step, 1))
            )
            masks["begin_mask"] |= bit if item.start is None else 0
            masks["end_mask"] |= bit if item.stop is None else 0
        else:
            begin, end = _single_index(item, tensor)
            masks["shrink_axis_mask"] |= bit
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    vectors = promote(_index_vector(begins), _index_vector(ends), _index_vector(steps))
    return node("StridedSlice", [tensor, *vectors], masks, "strided_slice")


def _single_index(item: Any, tensor: Tensor) -> tuple[Any, Any]:
    existing = as_existing_tensor(item)
    if existing is not None:
        return _checked(existing, tensor), existing + 1
    if isinstance(item, bool | np.bool_) or not hasattr(item, "__index__"):
        raise TypeError(
            f"tensor {tensor.name!r}: an index must be an integer, a slice, '...', None or a scalar integer tensor, "
            f"found {item!r}"
        )
    return int(item.__index__()), int(item.__index__()) + 1


def _checked(index: Tensor, tensor: Tensor) -> Tensor:
    if not index.dtype.is_integer or index.shape.rank not in (0, None):
        raise TypeError(f"tensor {tensor.name!r}: an index must be a scalar integer, found {index!r}")
    return index


def _index_vector(values: list[Any]) -> Tensor:
    plain = [int(value.__index__()) if hasattr(value, "__index__") else value for value in values]
    return convert_to_tensor(plain) if plain else constant(np.zeros(0, np.int32))
