"""Object files to addresses in this process, without LLVM: what its linker does, for the objects that it makes here.

A process that finds its code in the cache then never loads LLVM, which takes longer than all the rest. Only relocatable
ELF of x86-64 is known, and of that only what code generation gives; `load` declines everything else, and LLVM's linker
takes it or says what is wrong with it.

The sections lie behind each other: code with stubs for functions that are too far away for a call, then constants with
the table of addresses (GOT), then variables. Unwinding through code that says how goes by `__register_frame`: a thread
that ends by `pthread_exit` leaves by it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from xlalite.hlo.records import dataclass

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE_X86_64 = (1, 62)
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")

_BITS, _SYMBOLS, _RELOCATIONS, _ZEROS, _UNWINDING = 1, 2, 4, 8, 0x70000001  # types of sections
_WRITE, _ALLOCATE, _EXECUTE = 1, 2, 4
_KNOWN_FLAGS = 0x3F7  # all but thread-local ones and what processors define
_LOCAL, _WEAK = 0, 2
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00

_ABSOLUTE_64, _RELATIVE_64 = 1, 24
_RELATIVE, _CALL = 2, 4
_BY_TABLE = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX

_JUMP_BY_ADDRESS = bytes((0xFF, 0x25))  # jmp *[rip + 32 bits]
_WORD = 8
_KINDS = (_EXECUTE, 0, _WRITE)


@dataclass(slots=True)
class _Section:
    """A section that is in memory.

    Attributes:
        kind: Its flags `_WRITE` and `_EXECUTE`.
        alignment: Of its address.
        size: Its bytes.
        data: Its contents; empty for zeros.
        is_unwinding: Whether it says how to unwind.
        relocations: (offset, kind, symbol, addend) of each place to fill in.
        offset: Where it lies in the memory.
    """

    kind: int
    alignment: int
    size: int
    data: bytes
    is_unwinding: bool
    relocations: list[tuple[int, int, int, int]] = field(default_factory=list)
    offset: int = 0


_Symbol = tuple[str, int, _Section | None, int]
"""Name, binding, section and value of a symbol; no section for one that is defined elsewhere."""


class LoadedCode:
    """Code in memory, which goes when this object goes, but for the end of the process: threads may still run it."""

    __slots__ = ("__weakref__", "_frames", "_memory", "addresses")

    def __init__(self, memory: tuple[int, int], frames: Sequence[int], addresses: Mapping[str, int]) -> None:
        """Takes over the memory, an address and a size, in which the frames are registered already."""
        self._memory = memory
        self._frames = tuple(frames)
        self.addresses = addresses

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Gives the memory back."""
        if not is_ending():
            for frame in self._frames:
                _system().remove_frame(frame)
            _system().unmap(*self._memory)


def load(images: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> LoadedCode | None:
    """The objects in memory together; None where this is not the machine for it, or something in them is not known."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        return _Link([_read(image) for image in images], imports).load(exports)
    except (_UnknownError, struct.error, LookupError, ValueError, OverflowError, AttributeError, OSError, MemoryError):
        return None


class _UnknownError(Exception):
    """The object has something that only LLVM's linker knows, or nobody."""


def _read(image: bytes) -> tuple[list[_Section], list[_Symbol]]:
    """The sections and symbols of an object."""
    identity, kind, machine, *_, table, _, _, _, _, entry_bytes, count, _ = _HEADER.unpack_from(image)
    if not identity.startswith(_IDENTITY) or (kind, machine) != _RELOCATABLE_X86_64 or entry_bytes != _SECTION.size:
        raise _UnknownError
    headers = [_SECTION.unpack_from(image, table + number * entry_bytes) for number in range(count)]
    contents = [image[offset : offset + size] for _, _, _, _, offset, size, _, _, _, _ in headers]
    sections: dict[int, _Section] = {}
    for number, (_, kind, flags, _, _, size, _, _, alignment, _) in enumerate(headers):
        if not flags & _ALLOCATE:
            continue
        if kind not in (_BITS, _ZEROS, _UNWINDING) or flags & ~_KNOWN_FLAGS or alignment > mmap.PAGESIZE:
            raise _UnknownError
        data = b"" if kind == _ZEROS else contents[number]
        if kind != _ZEROS and len(data) != size:
            raise _UnknownError
        sections[number] = _Section(flags & (_WRITE | _EXECUTE), max(alignment, 1), size, data, kind == _UNWINDING)
    symbols: list[_Symbol] = []
    for number, (_, kind, *_, link, info, _, _) in enumerate(headers):
        if kind == _SYMBOLS:
            symbols = list(_symbols(contents[number], contents[link], sections))
        elif kind == _RELOCATIONS and info in sections:
            places = _RELOCATION.iter_unpack(contents[number])
            sections[info].relocations = [(offset, kind, symbol, addend) for offset, kind, symbol, addend in places]
    return list(sections.values()), symbols


def _symbols(table: bytes, names: bytes, sections: Mapping[int, _Section]) -> Iterator[_Symbol]:
    for name, info, _, number, value, _ in _SYMBOL.iter_unpack(table):
        text = names[name : names.index(b"\0", name)].decode()
        section = None if number == _UNDEFINED or number >= _FIRST_RESERVED else sections.get(number)
        if (number >= _FIRST_RESERVED and info >> 4 != _LOCAL) or (section is not None and value > section.size):
            raise _UnknownError
        yield text, info >> 4, section, value


@dataclass(slots=True)
class _Link:
    """Objects that become one piece of memory.

    Attributes:
        objects: Sections and symbols of each.
        imports: Addresses of what others define.
        defined: Section and value of what the objects define for each other.
        table: Position in the table of addresses, by (object, symbol), or by name for what others may define.
        targets: What stands in the table: a section and a value, or no section and an address.
    """

    objects: Sequence[tuple[list[_Section], list[_Symbol]]]
    imports: Mapping[str, int]
    defined: dict[str, tuple[_Section, int]] = field(default_factory=dict)
    table: dict[object, int] = field(default_factory=dict)
    targets: list[tuple[_Section | None, int]] = field(default_factory=list)
    stubs: _Section = field(default_factory=lambda: _Section(_EXECUTE, _WORD, 0, b"", False))
    addresses: _Section = field(default_factory=lambda: _Section(0, _WORD, 0, b"", False))

    def load(self, exports: Sequence[str]) -> LoadedCode:
        """The objects in memory."""
        self._define()
        self._fill_table()
        sections = [section for own, _ in self.objects for section in own]
        ends = _lay_out([*sections, self.stubs, self.addresses])
        system, size = _system(), max(ends[-1], mmap.PAGESIZE)
        base = system.map(size)
        frames: list[int] = []
        try:
            memory = (ctypes.c_char * size).from_address(base)
            self._write(memory, base)
            system.protect(base, ends)
            found = {name: base + _place(*self.defined[name]) for name in exports}
            frames += [base + section.offset for section in sections if section.is_unwinding]
            for frame in frames:
                system.add_frame(frame)
        except BaseException:
            system.unmap(base, size)
            raise
        return LoadedCode((base, size), frames, found)

    def _define(self) -> None:
        weak: set[str] = set()
        for _, symbols in self.objects:
            for name, binding, section, value in symbols:
                if binding == _LOCAL or section is None:
                    continue
                if name in self.defined and binding != _WEAK and name not in weak:
                    raise _UnknownError
                if name not in self.defined or (name in weak and binding != _WEAK):
                    self.defined[name] = section, value
                    weak.discard(name)
                    if binding == _WEAK:
                        weak.add(name)

    def _fill_table(self) -> None:
        for which, (sections, symbols) in enumerate(self.objects):
            for section in sections:
                for _, kind, index, _ in section.relocations:
                    target = self._target(symbols[index])
                    if kind in _BY_TABLE or (kind == _CALL and target[0] is None):
                        key = self._key(which, index)
                        if key not in self.table:
                            self.table[key] = len(self.targets)
                            self.targets.append(target)
        self.stubs.size = self.addresses.size = _WORD * len(self.targets)

    def _target(self, symbol: _Symbol) -> tuple[_Section | None, int]:
        name, binding, section, value = symbol
        if binding == _LOCAL:
            if section is None:
                raise _UnknownError
            return section, value
        return self.defined[name] if name in self.defined else (None, self._address(name))

    def _address(self, name: str) -> int:
        address = self.imports.get(name)
        return _system().address(name) if address is None else address

    def _key(self, which: int, index: int) -> object:
        name, binding, _, _ = self.objects[which][1][index]
        return (which, index) if binding == _LOCAL else name

    def _write(self, memory: ctypes.Array[ctypes.c_char], base: int) -> None:
        for number, (home, value) in enumerate(self.targets):
            entry, stub = (section.offset + number * _WORD for section in (self.addresses, self.stubs))
            struct.pack_into("<Q", memory, entry, value if home is None else base + _place(home, value))
            struct.pack_into("<2si", memory, stub, _JUMP_BY_ADDRESS, entry - stub - 6)
        for which, (sections, symbols) in enumerate(self.objects):
            for section in sections:
                ctypes.memmove(base + section.offset, section.data, len(section.data))
                for offset, kind, index, addend in section.relocations:
                    size = 8 if kind in (_ABSOLUTE_64, _RELATIVE_64) else 4
                    if not 0 <= offset <= section.size - size:
                        raise _UnknownError
                    home, value = self._target(symbols[index])
                    if kind in _BY_TABLE:
                        home, value = self.addresses, self.table[self._key(which, index)] * _WORD
                    elif kind == _CALL and home is None:
                        home, value = self.stubs, self.table[self._key(which, index)] * _WORD
                    target = addend + (value if home is None else base + _place(home, value))
                    place = section.offset + offset
                    if kind == _ABSOLUTE_64:
                        struct.pack_into("<Q", memory, place, target % (1 << 64))
                    elif kind == _RELATIVE_64:
                        struct.pack_into("<q", memory, place, target - base - place)
                    elif kind in (_RELATIVE, _CALL, *_BY_TABLE):
                        struct.pack_into("<i", memory, place, target - base - place)
                    else:
                        raise _UnknownError


def _place(section: _Section, value: int) -> int:
    return section.offset + value


def _lay_out(sections: Sequence[_Section]) -> list[int]:
    """Gives every section its place, and gives where each of `_KINDS` ends, at the end of a page."""
    end, ends = 0, []
    for kind in _KINDS:
        for section in sections:
            if section.kind == kind:
                section.offset = -(-end // section.alignment) * section.alignment
                end = section.offset + section.size + (_WORD if section.is_unwinding else 0)  # zeros end the frames
        end = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        ends.append(end)
    if any(section.kind not in _KINDS for section in sections):
        raise _UnknownError
    return ends


class _System:
    """Functions of the C library and of the one that unwinds."""

    def __init__(self) -> None:
        self._process = process = ctypes.CDLL(None)
        word, pointer = ctypes.c_size_t, ctypes.c_void_p
        number = ctypes.c_int
        self._map = ctypes.CFUNCTYPE(pointer, pointer, word, number, number, number, word)(("mmap", process))
        self._protect = ctypes.CFUNCTYPE(number, pointer, word, number, use_errno=True)(("mprotect", process))
        self.unmap = ctypes.CFUNCTYPE(number, pointer, word)(("munmap", process))
        unwinder = ctypes.CDLL("libgcc_s.so.1")
        self.add_frame = ctypes.CFUNCTYPE(None, pointer)(("__register_frame", unwinder))
        self.remove_frame = ctypes.CFUNCTYPE(None, pointer)(("__deregister_frame", unwinder))

    def address(self, name: str) -> int:
        """The address of a function of this process; an AttributeError when there is none."""
        return ctypes.cast(getattr(self._process, name), ctypes.c_void_p).value or 0

    def map(self, size: int) -> int:
        """The address of so many zeros."""
        access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address: int | None = self._map(None, size, access, kind, -1, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise MemoryError(f"no memory for {size} bytes of code")
        return address

    def protect(self, base: int, ends: Sequence[int]) -> None:
        """Makes the code executable and the constants constant."""
        begin = 0
        for end, access in zip(ends, (mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_READ), strict=False):
            if end > begin and self._protect(base + begin, end - begin, access):
                raise OSError(ctypes.get_errno(), "mprotect")
            begin = end


@functools.cache
def _system() -> _System:
    return _System()
