"""What goes into LLVM's compiler and what comes out of it: values that can be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xlalite.backends.cpu.native.aligned_memory import ByteArray

JsonValue = bool | int | float | str | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
Record = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class CodeSummary:
    """What a piece of code is, for people.

    Attributes:
        name: What was compiled: the name of a module, or a part of the runtime in parentheses.
        kernels: How many kernels the code has.
        compile_ms: How long it took to make, passes included.
    """

    name: str = ""
    kernels: int = 0
    compile_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class IrSource:
    """A module to compile.

    Attributes:
        text: LLVM IR.
        record: What must be known, besides the machine code, to use the module without emitting it again.
        constants: Bytes of values that the code refers to by name and that whoever links it cannot know otherwise.
        summary: What the module is; the time is not known yet.
    """

    text: str
    record: Record = field(default_factory=dict)
    constants: Mapping[str, ByteArray] = field(default_factory=dict)
    summary: CodeSummary = field(default_factory=CodeSummary)


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Compiled, relocatable machine code of this host.

    Attributes:
        image: The object file.
        exports: Names of the functions and variables that it defines for others.
        record: The side record of its source.
        constants: The constants of its source.
        summary: What it is the code of.
    """

    image: bytes
    exports: tuple[str, ...]
    record: Record = field(default_factory=dict)
    constants: Mapping[str, ByteArray] = field(default_factory=dict)
    summary: CodeSummary = field(default_factory=CodeSummary)

    @property
    def size_bytes(self) -> int:
        """Bytes of machine code and constants."""
        return len(self.image) + sum(data.size for data in self.constants.values())
