"""Blocks of space as examples or channels, patches of images: the functions that users call."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import contains_tensor, convert_to_tensor
from xlalite.ops.helpers.node import node


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """`[batch, space..., rest...]` padded, with the elements of each block in examples of their own."""
    return node(
        "SpaceToBatchND", [convert_to_tensor(input), _whole_numbers(block_shape), _whole_numbers(paddings)], None, name
    )


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The way back from `space_to_batch_nd`."""
    return node(
        "BatchToSpaceND", [convert_to_tensor(input), _whole_numbers(block_shape), _whole_numbers(crops)], None, name
    )


def _whole_numbers(given: Any) -> Tensor:
    """Sizes; an empty list, and an array of numbers of another kind, are read as integers."""
    is_array = isinstance(given, list | tuple | np.ndarray) and not contains_tensor(given)
    array = np.asarray(given) if is_array else None
    return convert_to_tensor(given if array is None or array.dtype.kind != "f" else array.astype(np.int32))


def space_to_batch(
    input: Any, paddings: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`space_to_batch_nd` for images, with square blocks of one size."""
    return space_to_batch_nd(input, _square(block_size, block_shape), paddings, name)


def batch_to_space(
    input: Any, crops: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """The way back from `space_to_batch`."""
    return batch_to_space_nd(input, _square(block_size, block_shape), crops, name)


def _square(size: Any, shape: Any) -> Any:
    if (size is None) == (shape is None):
        raise GraphError("exactly one of block_size and block_shape is needed")
    return [size, size] if shape is None else shape


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Each square block of an image as one place with more channels."""
    attrs = {"block_size": block_size, "data_format": data_format}
    return node("SpaceToDepth", [convert_to_tensor(input)], attrs, name)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """The way back from `space_to_depth`."""
    attrs = {"block_size": block_size, "data_format": data_format}
    return node("DepthToSpace", [convert_to_tensor(input)], attrs, name)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """The elements of `[batch, height, width, channels]` below a window at each of its positions, as channels."""
    window = ksizes if sizes is None else sizes
    attrs = {"ksizes": tuple(window), "strides": tuple(strides), "rates": tuple(rates), "padding": padding}
    return node("ExtractImagePatches", [convert_to_tensor(images)], attrs, name)
