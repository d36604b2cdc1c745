"""How a strided tensor lies in memory, as a row-major array that HLO can take or give."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """The row-major array in the memory of a tensor whose elements fill it.

    Attributes:
        sizes: Sizes of the tensor.
        strides: Its strides.
        order: Dimension i of the array is dimension order[i] of the tensor.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        """Sizes of the array."""
        return tuple(self.sizes[i] for i in self.order)

    @property
    def is_row_major(self) -> bool:
        """Whether array and tensor are the same."""
        return self.order == tuple(range(len(self.order)))

    def tensor_of(self, builder: Builder, array: Handle) -> Handle:
        """The tensor, of the array."""
        return builder.transpose(array, sorted(range(len(self.order)), key=self.order.__getitem__))

    def array_of(self, builder: Builder, tensor: Handle) -> Handle:
        """The array, of the tensor."""
        return builder.transpose(tensor, self.order)

    def describes(self, sizes: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether a tensor lies like this; strides of dimensions of size 1 mean nothing."""
        pairs = zip(strides, self.strides, sizes, strict=True)
        return 0 in sizes or all(own == wanted for own, wanted, size in pairs if size > 1)


def row_major(sizes: Sequence[int]) -> MemoryOrder:
    """The order of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(1, size)
    return MemoryOrder(tuple(sizes), tuple(reversed(strides)), tuple(range(len(sizes))))


def memory_order(sizes: Sequence[int], strides: Sequence[int]) -> MemoryOrder:
    """The order of a tensor; where its elements do not fill their memory, that of a contiguous copy."""
    plain = row_major(sizes)
    if plain.describes(sizes, strides):
        return plain
    apart = sorted((i for i, size in enumerate(sizes) if size > 1), key=lambda i: -strides[i])
    step = 1
    for i in reversed(apart):
        if strides[i] != step:
            return plain
        step *= sizes[i]
    remaining = iter(apart)
    order = tuple(next(remaining) if size > 1 else i for i, size in enumerate(sizes))
    return MemoryOrder(tuple(sizes), tuple(strides), order)
