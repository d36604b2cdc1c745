"""Kernels of many arrays take the addresses of allocations, and know where in them each array lies."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.kernel import ArrayPlace
from xlalite.passes.memory.buffers import Allocation, BufferSlice

_ADDRESSES_IN_REGISTERS = 12


def share_addresses(slices: list[BufferSlice]) -> bool:
    """Whether a kernel of its own that knows where arrays lie in their allocations is worth it.

    Addresses beyond those that registers hold are stored by the caller, loaded, spilled and loaded again.
    """
    return len(slices) - len({piece.allocation.number for piece in slices}) > _ADDRESSES_IN_REGISTERS


def places_of(slices: list[BufferSlice]) -> tuple[list[Allocation], tuple[ArrayPlace, ...]]:
    """The allocations that hold some arrays, and where in them each lies."""
    allocations = list({piece.allocation.number: piece.allocation for piece in slices}.values())
    numbers = {allocation.number: number for number, allocation in enumerate(allocations)}
    return allocations, tuple(ArrayPlace(numbers[piece.allocation.number], piece.offset) for piece in slices)
