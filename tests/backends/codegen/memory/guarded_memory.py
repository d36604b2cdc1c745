"""Arrays between pages that must not be touched: what lies beyond an array either faults or is seen to have changed.

The worker loads this file; it runs in a process of its own, since a fault ends the process.
"""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
CANARY = 0xA5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Place:
    """Some bytes at one end of a block of pages whose neighbours are no memory at all."""

    def __init__(self, pages: np.ndarray, size: int, alignment: int, at_end: bool) -> None:
        """Takes the last bytes of the pages, or the first; all others, and these, hold the canary."""
        pages.fill(CANARY)
        start = (pages.size - size) // alignment * alignment if at_end else 0
        self._before, self._after = pages[:start], pages[start + size :]
        self.bytes = pages[start : start + size]
        self.address = pages.ctypes.data + start

    def overrun(self) -> str:
        """Where a byte beside the place has changed; empty if none has."""
        before, after = np.flatnonzero(self._before != CANARY), np.flatnonzero(self._after != CANARY)
        if before.size:
            return f"{self._before.size - before[-1]} bytes before it"
        return f"{after[0] + 1} bytes behind it" if after.size else ""


class GuardedMemory:
    """Hands out places; a block of pages serves one place after another."""

    def __init__(self) -> None:
        """Owns no memory yet."""
        self._free: dict[int, list[np.ndarray]] = {}
        self._used: list[np.ndarray] = []
        self._kept: list[mmap.mmap] = []

    def place(self, size: int, alignment: int, at_end: bool) -> Place:
        """Bytes that end at a guard page, or begin at one."""
        count = max(1, -(-size // PAGE))
        free = self._free.setdefault(count, [])
        pages = free.pop() if free else self._map(count)
        self._used.append(pages)
        return Place(pages, size, alignment, at_end)

    def release(self) -> None:
        """Takes all places back."""
        for pages in self._used:
            self._free[pages.size // PAGE].append(pages)
        self._used.clear()

    def _map(self, count: int) -> np.ndarray:
        mapped = mmap.mmap(-1, (count + 2) * PAGE)
        self._kept.append(mapped)
        whole = np.frombuffer(mapped, np.uint8)
        for guard in (whole.ctypes.data, whole.ctypes.data + (count + 1) * PAGE):
            if _libc.mprotect(guard, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect refuses to make a guard page")
        return whole[PAGE : (count + 1) * PAGE]
