"""Constants of the module as given are not kept beside the code: who asks for the code has the module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xlalite.backends.cpu.emission.constant_pool import bytes_of, symbol_of
from xlalite.backends.cpu.native.aligned_memory import ByteArray
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.literal import Literal


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
