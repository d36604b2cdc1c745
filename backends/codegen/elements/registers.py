"""Elements as LLVM values: a real element is in one register, a complex one in two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.llvm import Value

Registers: TypeAlias = tuple[Value, ...]


def flatten(elements: Iterable[Element]) -> Registers:
    """The registers of elements, a complex one giving two."""
    registers: list[Value] = []
    for element in elements:
        registers.extend(element if isinstance(element, tuple) else (element,))
    return tuple(registers)


def unflatten(registers: Registers, like: Sequence[Element]) -> tuple[Element, ...]:
    """Elements of the same kinds as `like` out of their registers."""
    elements: list[Element] = []
    position = 0
    for element in like:
        if isinstance(element, tuple):
            elements.append((registers[position], registers[position + 1]))
            position += 2
        else:
            elements.append(registers[position])
            position += 1
    return tuple(elements)
