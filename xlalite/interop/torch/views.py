"""Values of a graph that are views of others: torch makes them without work, from a value that it holds anyway."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection

import torch
from torch.fx import Node

from xlalite.interop.torch.memory_order import memory_order

_NAMES = frozenset(
    f"aten.{name}"
    for name in (
        *("view.default", "_unsafe_view.default", "permute.default", "t.default", "transpose.int", "expand.default"),
        *("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "slice.Tensor", "select.int"),
        *("alias.default", "detach.default", "diagonal.default"),
    )
)
_PARTS = ("aten.split_with_sizes.default",)
_reinterpreted = torch._C._dynamo.guards._reinterpret_tensor


def base_of(node: Node, compiled: Collection[Node]) -> Node:
    """The value that a compiled one is a view of; itself if it is none."""
    while node in compiled:
        viewed = node.args[0] if node.target is operator.getitem else node
        if str(viewed.target) not in (_PARTS if viewed is not node else _NAMES):
            break
        node = viewed.args[0]
    return node


def is_worth_a_view(node: Node, base: Node, outside: Collection[Node]) -> bool:
    """Whether a view costs no more memory than a copy: the base is held anyway, or it is not larger."""
    mine, its = node.meta["val"], base.meta["val"]
    fills_memory = memory_order(its.shape, its.stride()).describes(its.shape, its.stride())
    return fills_memory and mine.dtype == its.dtype and (base in outside or mine.numel() >= its.numel())


def is_all(node: Node, base: Node) -> bool:
    """Whether a view shows all of its base and could be made in its place."""
    mine, its = node.meta["val"], base.meta["val"]
    fills_memory = memory_order(mine.shape, mine.stride()).describes(mine.shape, mine.stride())
    return bool(fills_memory and mine.numel() == its.numel())


def is_same(node: Node, base: Node) -> bool:
    """Whether a view shows just what its base is."""
    mine, its = node.meta["val"], base.meta["val"]
    places = mine.stride() == its.stride() and mine.storage_offset() == its.storage_offset()
    return bool(mine.shape == its.shape and places)


def view_maker(node: Node, base: Node, lies_well: bool, is_watched: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """What makes the view, of the base as it lies in memory.

    Args:
        node: The view.
        base: What it is a view of.
        lies_well: Whether the base lies as the graph says at every call.
        is_watched: Whether others may write to the base while somebody keeps the view for gradients, who must notice.
    """
    mine, its = node.meta["val"], base.meta["val"]
    order = memory_order(its.shape, its.stride())
    size, strides, offset = tuple(mine.shape), mine.stride(), mine.storage_offset() - its.storage_offset()

    def view(held: torch.Tensor) -> torch.Tensor:
        if not lies_well and not order.describes(held.shape, held.stride()):
            held = torch.empty_strided(order.sizes, order.strides, dtype=held.dtype).copy_(held)
        if is_watched:  # a view in torch's sense, which counts the writes to its base
            return held.detach().as_strided(size, strides, held.storage_offset() + offset)
        made: torch.Tensor = _reinterpreted(held, size, strides, offset)
        return made

    return view
