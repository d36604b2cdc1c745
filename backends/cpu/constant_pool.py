"""Large constants stay out of the code: the code names them by content, and the linker finds them here.

Equal values share one aligned copy for as long as some linked module uses it.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable

import numpy as np

from xlalite.backends.cpu.native.jit import LinkedModule
from xlalite.hlo.literal import Literal

_ALIGNMENT = 64


class PooledConstant:
    """One value's bytes at an aligned address."""

    __slots__ = ("__weakref__", "_memory", "address")

    def __init__(self, literal: Literal) -> None:
        """Copies the value."""
        data = np.frombuffer(literal.value.tobytes(), np.uint8)
        self._memory = np.empty(data.size + _ALIGNMENT, np.uint8)
        offset = -self._memory.ctypes.data % _ALIGNMENT
        self._memory[offset : offset + data.size] = data
        self.address: int = self._memory.ctypes.data + offset


_pool: weakref.WeakValueDictionary[str, PooledConstant] = weakref.WeakValueDictionary()
_used_by: weakref.WeakKeyDictionary[LinkedModule, tuple[object, ...]] = weakref.WeakKeyDictionary()


def symbol_of(literal: Literal) -> str:
    """The name under which code refers to a constant; equal bytes have equal names."""
    digest = hashlib.blake2b(literal.value.tobytes(), digest_size=16).hexdigest()
    return f"xlalite_constant_{digest}"


def pooled(literals: Iterable[Literal]) -> dict[str, PooledConstant]:
    """The constants by name, in memory."""
    found: dict[str, PooledConstant] = {}
    for literal in literals:
        name = symbol_of(literal)
        constant = _pool.get(name)
        if constant is None:
            constant = _pool[name] = PooledConstant(literal)
        found[name] = constant
    return found


def keep_alive(module: LinkedModule, used: tuple[object, ...]) -> None:
    """Ties the lives of objects to the module whose code uses their memory."""
    if used:
        _used_by[module] = used
