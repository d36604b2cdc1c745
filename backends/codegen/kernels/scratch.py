"""Scratch memory for kernels that several threads run at once: a row of slots, of which each running call takes one.

The memory lies behind the arena. A word in front of the slots has a bit for each that is taken; there are as many slots
as threads, so a call finds one at once. Memory that a thread gives back is what the next call on it takes, still warm.
Behind the slots is what all calls share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import I8, I64, PTR, FunctionBuilder, Value

if TYPE_CHECKING:
    from xlalite.backends.codegen.kernels.scalars import Scalar

HEADER_BYTES = 64
MAX_SLOTS = 64
PART_ALIGNMENT = 64
COUNTER_BYTES = 8


def scratch_area_bytes(slot_bytes: int, num_threads: int) -> int:
    """Bytes of the whole area for a kernel."""
    return HEADER_BYTES + slot_bytes * min(max(num_threads, 1), MAX_SLOTS)


def open_slots(fb: FunctionBuilder, area: Value, num_threads: int) -> None:
    """Makes all slots free; before the kernel is called. Slots that there are not count as taken."""
    absent = -1 << num_threads if num_threads < MAX_SLOTS else 0
    fb.store(fb.constant(I64, absent), area, 8)


@contextmanager
def own_slot(entry: KernelEntry, slot_bytes: Scalar) -> Iterator[Value]:
    """The address of a slot that is the running call's own; the area's address follows those of the results.

    A kernel that needs no bytes is given no area; there is nothing to take, and no place where the address leads.
    """
    fb = entry.fb
    if isinstance(slot_bytes, int) and not slot_bytes:
        yield fb.parameters[0]
        return
    area = _behind_results(entry, 0)
    with slot_in(fb, area, slot_bytes) as address:
        yield address


@contextmanager
def slot_in(fb: FunctionBuilder, area: Value, slot_bytes: Scalar) -> Iterator[Value]:
    """The address of a slot of an area that is the running task's own."""
    address, bit = _take_slot(fb, area, slot_bytes)
    yield address
    _give_back_slot(fb, area, bit)


def shared_memory(entry: KernelEntry) -> Value:
    """The address of what all running calls share, counters first."""
    return _behind_results(entry, 1)


def _behind_results(entry: KernelEntry, number: int) -> Value:
    place = len(entry.inputs) + len(entry.outputs) + number
    return entry.fb.load(PTR, entry.fb.gep(PTR, entry.fb.parameters[0], place), 8)


def aligned(size_bytes: int) -> int:
    """Bytes of a part of a slot behind which another part begins on a line of the caches."""
    return -(-size_bytes // PART_ALIGNMENT) * PART_ALIGNMENT


def parts_of(fb: FunctionBuilder, slot: Value, sizes: Sequence[int]) -> list[Value]:
    """The addresses of parts of a slot, one behind the other."""
    return [fb.gep(I8, slot, sum(sizes[:number])) for number in range(len(sizes))]


def _take_slot(fb: FunctionBuilder, area: Value, slot_bytes: Scalar) -> tuple[Value, Value]:
    """Takes a free slot, waiting for one if need be: (its address, its bit)."""
    with fb.while_loop(()) as loop:
        taken = fb.atomic_load(I64, area, "monotonic", 8)
        full = fb.icmp("eq", taken, -1)
        number = fb.cttz(fb.xor(taken, -1))
        number = fb.select(full, 0, number)
        bit = fb.shl(fb.constant(I64, 1), number)
        before = fb.atomic_rmw("or", area, fb.select(full, 0, bit), "acquire")
        lost = fb.or_(full, fb.icmp("ne", fb.and_(before, bit), 0))
        loop.continue_while(lost)
    # The header of the loop, where these were computed, dominates what follows.
    address = fb.gep(I8, area, fb.add(fb.mul(number, slot_bytes), HEADER_BYTES))
    return address, bit


def _give_back_slot(fb: FunctionBuilder, area: Value, bit: Value) -> None:
    """Makes a slot free again."""
    fb.atomic_rmw("and", area, fb.xor(bit, -1), "release")
