"""Blocks of space as examples or channels, and patches, beside one element at a time."""

from typing import Any

import numpy as np
from ops.cases.case import GradientCase, ValueCase, gradient, value
from ops.cases.convolutions import array, first, last, small

from xlalite.ops.functions import space_blocks as s
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
X = array(2, 5, 4, 3)
BLOCKS, MARGINS = (3, 2), [[1, 0], [2, 0]]


def to_batch(x: np.ndarray, blocks: Any = BLOCKS, margins: Any = MARGINS) -> np.ndarray:
    padded = np.pad(x, [(0, 0), *margins, *[(0, 0)] * (x.ndim - 1 - len(blocks))])
    parts = []
    for offset in np.ndindex(*blocks):
        steps = (slice(start, None, block) for start, block in zip(offset, blocks, strict=True))
        parts.append(padded[(slice(None), *steps)])
    return np.concatenate(parts)


def to_depth(x: np.ndarray, block: int) -> np.ndarray:
    return np.concatenate([x[:, i::block, j::block] for i in range(block) for j in range(block)], -1)


def of_whole_channels(move: Any, x: np.ndarray) -> np.ndarray:
    """What a move of `[batch, height, width, channels]` makes of `[batch, channels / 4, height, width, 4]`."""
    moved = move(x.transpose(0, 2, 3, 1, 4).reshape(x.shape[0], *x.shape[2:4], -1))
    return moved.reshape(*moved.shape[:3], -1, 4).transpose(0, 3, 1, 2, 4)


def from_depth(x: np.ndarray, block: int) -> np.ndarray:
    parts = np.split(x, block * block, -1)
    rows = [np.stack(parts[i * block : (i + 1) * block], 3) for i in range(block)]
    apart = np.stack(rows, 2)
    return apart.reshape(x.shape[0], x.shape[1] * block, x.shape[2] * block, -1)


def patches(x: np.ndarray, ksize: Any, strides: Any, rates: Any, pads: Any) -> np.ndarray:
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    spans = [(k - 1) * rate + 1 for k, rate in zip(ksize, rates, strict=True)]
    counts = [(n - k) // step + 1 for n, k, step in zip(padded.shape[1:3], spans, strides, strict=True)]
    result = np.zeros((x.shape[0], *counts, ksize[0] * ksize[1] * x.shape[3]), x.dtype)
    for i, j in np.ndindex(*counts):
        top, left = i * strides[0], j * strides[1]
        below = padded[:, top : top + spans[0] : rates[0], left : left + spans[1] : rates[1]]
        result[:, i, j] = below.reshape(x.shape[0], -1)
    return result


IMAGE = array(2, 4, 6, 3)
FORMATS = {"src_format": "NHWC", "dst_format": "NCHW"}
PATCHES: dict[str, Any] = {"ksizes": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"}

VALUES: list[ValueCase] = [
    value(
        "SpaceToBatchND of fractions that are whole",
        lambda x: s.space_to_batch_nd(x, BLOCKS, F(MARGINS)),
        X,
        expected=to_batch,
    ),
    value(
        "SpaceToBatchND of no blocks", lambda x: s.space_to_batch_nd(x, [], np.zeros((0, 2))), X, expected=lambda x: x
    ),
    value("SpaceToBatchND", lambda x: s.space_to_batch_nd(x, BLOCKS, MARGINS), X, expected=to_batch),
    value(
        "SpaceToBatchND along one dimension",
        lambda x: s.space_to_batch_nd(x, [5], [[0, 0]]),
        np.int32(X * 9),
        expected=lambda x: to_batch(x, [5], [[0, 0]]),
    ),
    value(
        "BatchToSpaceND",
        lambda x: s.batch_to_space_nd(x, BLOCKS, MARGINS),
        to_batch(X),
        expected=lambda x: X,
    ),
    value(
        "SpaceToBatch",
        lambda x: node("SpaceToBatch", [x, constant([[1, 0], [0, 2]])], {"block_size": 2}),
        X,
        expected=lambda x: to_batch(x, (2, 2), [[1, 0], [0, 2]]),
    ),
    value(
        "BatchToSpace",
        lambda x: node("BatchToSpace", [x, constant([[1, 0], [0, 2]])], {"block_size": 2}),
        to_batch(X, (2, 2), [[1, 0], [0, 2]]),
        expected=lambda x: X,
    ),
    value(
        "SpaceToDepth channels in fours",
        lambda x: s.space_to_depth(x, 2, data_format="NCHW_VECT_C"),
        np.arange(2 * 3 * 4 * 6 * 4).reshape(2, 3, 4, 6, 4),
        expected=lambda x: of_whole_channels(lambda y: to_depth(y, 2), x),
    ),
    value(
        "DepthToSpace channels in fours",
        lambda x: s.depth_to_space(x, 2, data_format="NCHW_VECT_C"),
        np.arange(2 * 8 * 3 * 2 * 4).reshape(2, 8, 3, 2, 4),
        expected=lambda x: of_whole_channels(lambda y: from_depth(y, 2), x),
    ),
    value("SpaceToDepth", lambda x: s.space_to_depth(x, 2), IMAGE, expected=lambda x: to_depth(x, 2)),
    value(
        "SpaceToDepth channels first",
        lambda x: s.space_to_depth(x, 2, data_format="NCHW"),
        first(IMAGE),
        expected=lambda x: first(to_depth(last(x), 2)),
    ),
    value("DepthToSpace", lambda x: s.depth_to_space(x, 2), to_depth(IMAGE, 2), expected=lambda x: IMAGE),
    value(
        "DepthToSpace channels first",
        lambda x: s.depth_to_space(x, 2, data_format="NCHW"),
        first(to_depth(IMAGE, 2)),
        expected=lambda x: first(IMAGE),
    ),
    value(
        "ExtractImagePatches",
        lambda x: s.extract_image_patches(x, **PATCHES),
        IMAGE,
        expected=lambda x: patches(x, (3, 2), (2, 1), (1, 2), [(0, 1), (1, 1)]),
    ),
    value(
        "ExtractImagePatches of integers",
        lambda x: s.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        np.uint8(IMAGE * 9 + 10),
        expected=lambda x: patches(x, (2, 2), (2, 2), (1, 1), [(0, 0), (0, 0)]),
    ),
    value(
        "DataFormatDimMap",
        lambda x: node("DataFormatDimMap", [x], FORMATS),
        np.int32([0, 1, 2, 3, -1, -4]),
        expected=lambda x: np.int32([0, 2, 3, 1, 1, 0]),
    ),
    value(
        "DataFormatVecPermute",
        lambda x: node("DataFormatVecPermute", [x], FORMATS),
        np.int64([[7, 8], [4, 5], [9, 1], [3, 2]]),
        expected=lambda x: x[[0, 3, 1, 2]],
    ),
    value(
        "DataFormatVecPermute of space",
        lambda x: node("DataFormatVecPermute", [x], {"src_format": "NHWC", "dst_format": "NWHC"}),
        np.int32([4, 9]),
        expected=lambda x: x[::-1],
    ),
]

GRADIENTS: list[GradientCase] = [
    gradient("SpaceToBatchND", lambda x: s.space_to_batch(x, [[1, 0], [0, 0]], 2), small(1, 3, 2, 1)),
    gradient("BatchToSpaceND", lambda x: s.batch_to_space(x, [[1, 0], [0, 0]], 2), small(4, 2, 1, 1)),
    gradient(
        "SpaceToBatch",
        lambda x: node("SpaceToBatch", [x, constant([[1, 0], [0, 0]])], {"block_size": 2}),
        small(1, 3, 2, 1),
    ),
    gradient(
        "BatchToSpace",
        lambda x: node("BatchToSpace", [x, constant([[1, 0], [0, 0]])], {"block_size": 2}),
        small(4, 2, 1, 1),
    ),
    gradient("SpaceToDepth", lambda x: s.space_to_depth(x, 2), small(1, 2, 4, 2)),
    gradient("DepthToSpace", lambda x: s.depth_to_space(x, 2), small(1, 2, 1, 8)),
    gradient(
        "ExtractImagePatches",
        lambda x: s.extract_image_patches(node("Reshape", [x, constant([1, 4, 3, 2])]), **PATCHES),
        small(1, 4, 3, 2),
    ),
]
