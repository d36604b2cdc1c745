"""What goes into LLVM's compiler and what comes out of it: values that can be stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from xlalite.backends.cpu.native.aligned_memory import ByteArray
from xlalite.hlo.records import dataclass

NEXT_MODULE = "\n; Here the next module begins.\n"
SHARED_MODULE = "; Programs share this module.\n"
"""Begins the text of a module whose object code is worth keeping by itself."""
RENAMED_MODULE = "; Programs share this module under names of its own.\n"
"""Begins the text of such a module in which a program's names stand."""

_ARCHIVE = b"!<arch>\n"
_MEMBER_HEADER_BYTES = 60

JsonValue = bool | int | float | str | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
SideRecord = Mapping[str, JsonValue]


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
        text: LLVM IR; modules that are compiled one by one and linked together have `NEXT_MODULE` between them.
        record: What must be known, besides the machine code, to use the module without emitting it again.
        constants: Bytes of values that the code refers to by name and that whoever links it cannot know otherwise.
        summary: What the module is; the time is not known yet.
    """

    text: str
    record: SideRecord = field(default_factory=dict)
    constants: Mapping[str, ByteArray] = field(default_factory=dict)
    summary: CodeSummary = field(default_factory=CodeSummary)


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Compiled, relocatable machine code of this host.

    Attributes:
        image: The object file, or an archive of several.
        exports: Names of the functions and variables that it defines for others.
        record: The side record of its source.
        constants: The constants of its source.
        summary: What it is the code of.
    """

    image: bytes
    exports: tuple[str, ...]
    record: SideRecord = field(default_factory=dict)
    constants: Mapping[str, ByteArray] = field(default_factory=dict)
    summary: CodeSummary = field(default_factory=CodeSummary)

    @property
    def images(self) -> tuple[bytes, ...]:
        """The object files."""
        return tuple(_members(self.image)) if self.image.startswith(_ARCHIVE) else (self.image,)

    @property
    def size_bytes(self) -> int:
        """Bytes of machine code and constants."""
        return len(self.image) + sum(data.size for data in self.constants.values())


def joined(images: Sequence[bytes]) -> bytes:
    """Object files as one image: itself, or an archive in the format of `ar`."""
    if len(images) == 1:
        return images[0]
    parts = [_ARCHIVE]
    for number, image in enumerate(images):
        header = f"{f'part{number}.o/':16}{0:<12}{0:<6}{0:<6}{644:<8}{len(image):<10}`\n"
        parts += (header.encode(), image, b"\n" * (len(image) % 2))
    return b"".join(parts)


def _members(archive: bytes) -> Iterator[bytes]:
    at = len(_ARCHIVE)
    while at < len(archive):
        size = int(archive[at + 48 : at + 58])
        if size < 0:
            raise ValueError(f"an archive has a member of {size} bytes")
        at += _MEMBER_HEADER_BYTES
        yield archive[at : at + size]
        at += size + size % 2
