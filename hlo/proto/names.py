"""Names in messages: XLA wants every instruction's once in a module, xlalite once in a computation."""

from __future__ import annotations

from collections.abc import Iterable

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.types.names import is_writable_name

# Under this name, which no attribute can have, an instruction says what it is called in its computation.
_OWN_NAME = "%"


def unique_names(computations: Iterable[HloComputation]) -> dict[HloInstruction, str]:
    """New names for the instructions whose own ones are those of others before them."""
    instructions = [instruction for computation in computations for instruction in computation.instructions]
    taken = {instruction.name for instruction in instructions}
    seen: set[str] = set()
    copies: dict[str, int] = {}
    names: dict[HloInstruction, str] = {}
    for instruction in instructions:
        name = instruction.name
        if name not in seen:
            seen.add(name)
            continue
        number = copies.get(name, 1)
        while f"{name}.{number}" in taken:
            number += 1
        copies[name] = number + 1
        names[instruction] = f"{name}.{number}"
        taken.add(names[instruction])
    return names


def write_name(instruction: HloInstruction, names: dict[HloInstruction, str], message: ProtoMessage) -> None:
    """Puts the name that is unique in the module, and the instruction's own if that is another one."""
    unique = names.get(instruction)
    message.put("name", unique if unique is not None else instruction.name)
    if unique is not None:
        message.append("xlalite_text").put("name", _OWN_NAME).put("text", instruction.name)


def read_instruction_name(message: ProtoMessage) -> str:
    """What an instruction is called in its computation.

    Raises:
        ParseError: HLO text cannot hold the name.
    """
    for text in message.messages("xlalite_text"):
        if is_own_name(text.text("name")):
            return _writable(text, "text")
    return read_name(message)


def read_name(message: ProtoMessage) -> str:
    """The name of an instruction or computation.

    Raises:
        ParseError: HLO text cannot hold the name.
    """
    return _writable(message, "name")


def is_own_name(name: str) -> bool:
    """Whether a text that travels with an instruction is its name."""
    return name == _OWN_NAME


def _writable(message: ProtoMessage, field: str) -> str:
    name = message.text(field)
    if not is_writable_name(name):
        raise message.error(f"the name {name[:80]!r} cannot be written as HLO text")
    return name
