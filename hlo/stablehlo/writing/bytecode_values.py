"""Types and attributes of the dialect vhlo as bytes, each written once and numbered: the way back of `Values`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.stablehlo.bytecode.values import ABSENT, ELEMENT_CODES, WORD_CODES
from xlalite.hlo.stablehlo.reading.attribute_reader import ELEMENT_NAMES, read_type
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.syntax import (
    Attribute,
    Dense,
    FunctionType,
    Location,
    Opaque,
    Symbol,
    Word,
)
from xlalite.hlo.stablehlo.writing.attribute_kinds import integer_dtype
from xlalite.hlo.stablehlo.writing.byte_writer import integer, listed, signed
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.hlo.types.shape import Shape

VHLO, BUILTIN = "vhlo", "builtin"


class Numbered:
    """Entries with numbers, equal ones once.

    Attributes:
        entries: Dialect and bytes of each.
    """

    __slots__ = ("_numbers", "entries")

    def __init__(self) -> None:
        self.entries: list[tuple[str, bytes]] = []
        self._numbers: dict[tuple[str, bytes], int] = {}

    def number(self, dialect: str, data: bytes) -> int:
        """The number of an entry, which is new if no equal one is there."""
        if (dialect, data) not in self._numbers:
            self._numbers[dialect, data] = len(self.entries)
            self.entries.append((dialect, data))
        return self._numbers[dialect, data]


class ValueWriter:
    """Numbers texts, types and attributes.

    Attributes:
        strings: Numbers of the texts.
        types: The types.
        attributes: The attributes.
    """

    __slots__ = ("attributes", "strings", "types")

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.types = Numbered()
        self.attributes = Numbered()

    def text(self, text: str) -> int:
        """The number of a text."""
        return self.strings.setdefault(text, len(self.strings))

    def string(self, text: str) -> bytes:
        """The number of a text, as bytes, which those of all others here are, too."""
        return integer(self.text(text))

    def type_number(self, value: Shape | FunctionType | Word) -> int:
        """The number of a type."""
        return self.types.number(VHLO, self._type(value))

    def type(self, value: Shape | FunctionType | Word) -> bytes:
        """The number of a type, as bytes."""
        return integer(self.type_number(value))

    def _type(self, value: Shape | FunctionType | Word) -> bytes:
        match value:
            case Word(text):
                return integer(ELEMENT_CODES[text])
            case FunctionType(parameters, results):
                return integer(8) + listed(map(self.type, parameters)) + listed(map(self.type, results))
        if value.is_token:
            return integer(22)
        if value.is_tuple:
            return integer(23) + listed(map(self.type, value.elements))
        return integer(20) + listed(map(signed, value.dims)) + self.element(value.dtype)

    def element(self, dtype: DType, name: str = "") -> bytes:
        """The number of a type of elements."""
        if not dtype.is_complex:
            return integer(self.types.number(VHLO, integer(ELEMENT_CODES[name or ELEMENT_NAMES[dtype]])))
        return integer(self.types.number(VHLO, integer(1) + self.element(dtype.component)))

    def attribute(self, key: str, value: Attribute) -> bytes:
        """The number of an attribute, under its name."""
        return integer(self.attributes.number(VHLO, self._attribute(key, value)))

    def _attribute(self, key: str, value: Attribute) -> bytes:
        match value:
            case _ if value == ABSENT:
                return integer(17) + integer(self.types.number(VHLO, integer(33)))
            case bool():
                return integer(2) + integer(value)
            case int() if key == "api_version":
                return integer(5) + integer(value)
            case int():
                return self._number(value, integer_dtype(key))
            case float():
                bits = int(np.float32(value).view(np.int32))
                return integer(8) + self.element(DType.F32) + signed(bits)
            case str() | Symbol():
                return integer(14) + self.string(value if isinstance(value, str) else value.name)
            case Word(text) if key in WORD_CODES:
                code, numbers = WORD_CODES[key]
                return integer(code) + integer(numbers[text])
            case Dense(bytes() as data, Shape() as shape):
                return integer(15) + self.type(shape) + integer(len(data)) + data
            case tuple():
                return integer(1) + listed(self.attribute(key, part) for part in value)
            case dict() if key == "output_operand_aliases":
                outputs, number, index = value.values()
                assert isinstance(outputs, tuple), "the exporter makes it"
                assert isinstance(number, int), "the exporter makes it"
                assert isinstance(index, tuple), "the exporter makes it"
                return integer(10) + _numbers(outputs) + signed(number) + _numbers(index)
            case dict():
                return integer(6) + listed(
                    self.attribute("", name) + self.attribute(name, part) for name, part in value.items()
                )
            case Opaque(text):
                return self._configuration(MlirCursor(text, DEFAULT_LIMITS))
            case Shape() | FunctionType() | Word():
                return integer(17) + self.type(value)
        raise AssertionError(f"the exporter makes no {value!r}")

    def _number(self, value: int, dtype: DType) -> bytes:
        data = (value & 0xFF).to_bytes(1, "little") if dtype.bits <= 8 else signed(value)
        return integer(9) + self.element(dtype) + data

    def _configuration(self, cursor: MlirCursor) -> bytes:
        """An attribute that is text with the types of its numbers."""
        token = cursor.peek()
        if cursor.accept("{"):
            entries = []
            for _ in separated(cursor, "}"):
                key = cursor.string() if cursor.peek().startswith('"') else cursor.word("the name of an attribute")
                value = self._configured(cursor) if cursor.accept("=") else self.attribute("", True)
                entries.append(self.attribute("", key) + value)
            return integer(6) + listed(entries)
        if cursor.accept("["):
            return integer(1) + listed([self._configured(cursor) for _ in separated(cursor, "]")])
        if token in ("true", "false"):
            cursor.index += 1
            return self._attribute("", token == "true")
        if token.startswith('"'):
            return self._attribute("", cursor.string())
        number = cursor.next()
        dtype = (
            read_type(cursor).dtype
            if cursor.accept(":")
            else DType.S64
            if number.lstrip("-").isdecimal()
            else DType.F64
        )
        if not dtype.is_floating:
            return self._number(int(number), dtype)
        bits = np.array(float(number)).astype(dtype.numpy).tobytes()
        whole = int.from_bytes(bits, "little", signed=True)
        return integer(8) + self.element(dtype) + (bits if dtype.bits <= 8 else signed(whole))

    def _configured(self, cursor: MlirCursor) -> bytes:
        return integer(self.attributes.number(VHLO, self._configuration(cursor)))

    def builtin(self, value: str | int | Mapping[str, Attribute]) -> bytes:
        """The number of an attribute of a module, as bytes."""
        return integer(self.builtin_number(value))

    def builtin_number(self, value: str | int | Mapping[str, Attribute]) -> int:
        """The number of an attribute of a module: a text, an integer of 32 bits, a dictionary."""
        match value:
            case str():
                data = integer(2) + self.string(value)
            case int():
                data = integer(8) + integer(self.types.number(BUILTIN, integer(0) + integer(32 << 2))) + signed(value)
            case _:
                found = {key: part for key, part in value.items() if isinstance(part, str | int)}
                data = integer(1) + listed(self.builtin(key) + self.builtin(part) for key, part in found.items())
        return self.attributes.number(BUILTIN, data)

    def dictionary(self, attributes: Mapping[str, Attribute]) -> bytes:
        """The number of the dictionary of what an operation may carry besides its definition."""
        entries = (self.builtin(key) + self.attribute(key, value) for key, value in attributes.items())
        return integer(self.attributes.number(BUILTIN, integer(1) + listed(entries)))

    def location(self, location: Location | None) -> bytes:
        """The number of a location."""
        data = integer(15)
        if location is not None and location.file:
            data = integer(11) + self.builtin(location.file) + integer(location.line) + integer(0)
        if location is not None and location.name:
            data = integer(14) + self.builtin(location.name) + integer(self.attributes.number(BUILTIN, data))
        return integer(self.attributes.number(BUILTIN, data))


def _numbers(values: Sequence[Attribute]) -> bytes:
    return listed(signed(value) for value in values if isinstance(value, int))
