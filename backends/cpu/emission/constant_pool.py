"""Large constants stay out of the code: the code names them by content, and the linker finds them here.

Equal values share one aligned copy for as long as some linked module uses it. Constants of the module as given are not
kept beside the code: who asks for the code has the module.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from xlalite.backends.cpu.native.aligned_memory import ByteArray, aligned
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.hlo.digest import blake2b
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.literal import Literal


class PooledConstant:
    """One value's bytes at an aligned address."""

    __slots__ = ("__weakref__", "_memory", "address")

    def __init__(self, data: ByteArray) -> None:
        """Keeps the bytes, which nobody may change any more."""
        self._memory = aligned(data)
        self.address: int = self._memory.ctypes.data


_pool: weakref.WeakValueDictionary[str, PooledConstant] = weakref.WeakValueDictionary()
_used_by: weakref.WeakKeyDictionary[LinkedModule, tuple[object, ...]] = weakref.WeakKeyDictionary()


def bytes_of(literal: Literal) -> ByteArray:
    """The bytes of an array as code reads them; not a copy."""
    return np.ascontiguousarray(literal.value).reshape(-1).view(np.uint8)


def symbol_of(literal: Literal) -> str:
    """The name under which code refers to a constant; equal bytes have equal names."""
    digest = blake2b(bytes_of(literal).data, digest_size=16).hexdigest()
    return f"xlalite_constant_{digest}"


def pooled(values: Mapping[str, ByteArray]) -> dict[str, PooledConstant]:
    """The constants by name, in memory."""
    found: dict[str, PooledConstant] = {}
    for name, data in values.items():
        constant = _pool.get(name)
        if constant is None:
            constant = _pool[name] = PooledConstant(data)
        found[name] = constant
    return found


def keep_alive(module: LinkedModule, used: tuple[object, ...]) -> None:
    """Ties the lives of objects to the module whose code uses their memory."""
    if used:
        _used_by[module] = used


def divide_constants(used: Sequence[Literal], given: HloModule) -> tuple[dict[str, ByteArray], dict[str, int]]:
    """The bytes of the constants that passes made, and the sizes of those that the module has, both by name."""
    wanted = {symbol_of(literal): bytes_of(literal) for literal in used}
    sizes = frozenset(data.size for data in wanted.values())
    known = {symbol_of(literal) for literal in _literals(given, sizes)}
    made = {name: data for name, data in wanted.items() if name not in known}
    return made, {name: data.size for name, data in wanted.items() if name in known}


def find_constants(sizes: Mapping[str, int], given: HloModule) -> dict[str, ByteArray]:
    """The bytes of constants that a module has, by name; only those of the right sizes are looked at.

    Raises:
        KeyError: It has not all of them.
    """
    found = {symbol_of(literal): literal for literal in _literals(given, frozenset(sizes.values()))}
    return {name: bytes_of(found[name]) for name in sizes}


def _literals(module: HloModule, sizes: frozenset[int]) -> Iterator[Literal]:
    """The arrays among the module's constants that have one of these sizes."""
    if not sizes:
        return
    for instruction in module.instructions():
        if instruction.opcode == "constant" and instruction.shape.is_array:
            literal = instruction.attrs.literal
            if literal.value.nbytes in sizes:
                yield literal
