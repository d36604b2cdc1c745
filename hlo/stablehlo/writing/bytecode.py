"""A module as a portable artifact of StableHLO: MLIR bytecode in the dialect vhlo, which jaxlib and others open.

The container is that of `bytecode/container.py`; the sections are written in the order in which they become known.
"""

from __future__ import annotations

import itertools

from xlalite.hlo.stablehlo.bytecode.container import MAGIC
from xlalite.hlo.stablehlo.reading.syntax import (
    Argument,
    Attribute,
    Function,
    FunctionType,
    Location,
    Operation,
    Program,
    Region,
)
from xlalite.hlo.stablehlo.writing.byte_writer import integer, listed, section
from xlalite.hlo.stablehlo.writing.bytecode_values import BUILTIN, VHLO, Numbered, ValueWriter
from xlalite.hlo.stablehlo.writing.portable import as_portable

_VERSION = 6
_PRODUCER = b"StableHLO_v1.17.0\0"
_ATTRIBUTES, _RESULTS, _OPERANDS, _REGIONS, _PROPERTIES = 1, 2, 4, 16, 64
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _OPERATIONS, _PROPERTY_SETS = 0, 1, 2, 3, 4, 8
_RESOURCES, _RESOURCE_OFFSETS = 5, 6


def bytecode_of(program: Program) -> bytes:
    """The artifact of a module."""
    return _ModuleWriter().write(program)


class _Scope:
    """The numbers of the values that operations see."""

    __slots__ = ("numbers", "total")

    def __init__(self, region: Region, outer: _Scope | None = None) -> None:
        values = [argument.name for argument in region.arguments]
        values += [name for operation in region.operations for name in operation.results]
        first = 0 if outer is None else outer.total
        self.total: int = first + len(values)
        self.numbers: dict[str, int] = {} if outer is None else dict(outer.numbers)
        self.numbers.update(zip(values, itertools.count(first)))


class _ModuleWriter:
    """Writes one file."""

    __slots__ = ("_names", "_properties", "_values")

    def __init__(self) -> None:
        self._values = ValueWriter()
        self._names = Numbered()
        self._properties = Numbered()

    def write(self, program: Program) -> bytes:
        """All sections; that of texts comes last, when all texts are known."""
        values = self._values
        dialects = [values.text(BUILTIN), values.text(VHLO)]
        body = self._block(Region(), [self._function(function) for function in program.functions.values()])
        module = self._operation_bytes(
            (BUILTIN, "module"),
            None,
            attributes=values.builtin(program.attributes) if program.attributes else b"",
            properties=integer(values.builtin_number(program.name) << 1 | 1) + integer(0),
            tail=self._isolated(0, body),
            mask=_REGIONS,
        )
        operations = section(_OPERATIONS, integer(1 << 1) + module)
        entries = (*values.attributes.entries, *values.types.entries)
        offsets = integer(len(values.attributes.entries)) + integer(len(values.types.entries))
        for table in (values.attributes, values.types):
            for dialect, group in itertools.groupby(table.entries, key=lambda entry: entry[0]):
                sizes = [integer(len(data) << 1 | 1) for _, data in group]
                offsets += integer(int(dialect == VHLO)) + listed(sizes)
        names = integer(len(self._names.entries))
        for dialect, group in itertools.groupby(self._names.entries, key=lambda entry: entry[0]):
            names += integer(int(dialect == VHLO))
            names += listed([integer(values.text(data.decode()) << 1 | 1) for _, data in group])
        known = listed([integer(dialect << 1) for dialect in dialects]) + names
        properties = listed(integer(len(data)) + data for _, data in self._properties.entries)
        texts = [text.encode("utf-8", "surrogateescape") + b"\0" for text in values.strings]
        strings = integer(len(texts)) + b"".join(integer(len(text)) for text in reversed(texts)) + b"".join(texts)
        return b"".join(
            (
                MAGIC,
                integer(_VERSION),
                _PRODUCER,
                section(_DIALECTS, known),
                section(_OFFSETS, offsets),
                section(_ENTRIES, b"".join(data for _, data in entries)),
                operations,
                section(_RESOURCE_OFFSETS, integer(0)),
                section(_RESOURCES, b""),
                section(_STRINGS, strings),
                section(_PROPERTY_SETS, properties),
            )
        )

    def _function(self, function: Function) -> bytes:
        arguments = function.body.arguments
        kind = FunctionType(tuple(argument.shape for argument in arguments), function.result_types)
        attributes: dict[str, Attribute] = {
            "arg_attrs": tuple(argument.attributes for argument in arguments)
            if any(a.attributes for a in arguments)
            else (),
            "function_type": kind,
            "res_attrs": (),
            "sym_name": function.name,
            "sym_visibility": "public" if function.name == "main" else "private",
        }
        scope = _Scope(function.body)
        operations = self._operations(function.body, scope)
        return self._operation_bytes(
            (VHLO, "func_v1"),
            None,
            properties=b"".join(self._values.attribute(key, value) for key, value in attributes.items()),
            tail=self._isolated(scope.total, self._block(function.body, operations)),
            mask=_REGIONS,
        )

    def _isolated(self, values: int, block: bytes) -> bytes:
        """A region that sees nothing outside, in a section of its own."""
        return integer(1 << 1 | 1) + section(_OPERATIONS, integer(1) + integer(values) + block)

    def _block(self, region: Region, operations: list[bytes]) -> bytes:
        arguments = listed(map(self._argument, region.arguments)) + b"\0" if region.arguments else b""
        return integer(len(operations) << 1 | bool(region.arguments)) + arguments + b"".join(operations)

    def _argument(self, argument: Argument) -> bytes:
        number = self._values.type_number(argument.shape)
        return integer(number << 1 | 1) + self._values.location(argument.location)

    def _operations(self, region: Region, scope: _Scope) -> list[bytes]:
        """The operations of a block, with the one that ends it."""
        returned = Operation("vhlo.return", 0, operands=region.returned)
        return [self._operation(operation, scope) for operation in (*region.operations, returned)]

    def _operation(self, operation: Operation, scope: _Scope) -> bytes:
        name, known, others = as_portable(operation)
        tail, mask = b"", 0
        if operation.results:
            mask |= _RESULTS
            tail += listed(map(self._values.type, operation.result_types))
        if operation.operands:
            mask |= _OPERANDS
            tail += listed(integer(scope.numbers[operand]) for operand in operation.operands)
        if operation.regions:
            mask |= _REGIONS
            tail += integer(len(operation.regions) << 1)
            tail += b"".join(self._region(region, scope) for region in operation.regions)
        return self._operation_bytes(
            (VHLO, name.removeprefix("vhlo.")),
            operation.location,
            attributes=self._values.dictionary(others) if others else b"",
            properties=b"".join(self._values.attribute(key, value) for key, value in known.items()),
            tail=tail,
            mask=mask,
        )

    def _region(self, region: Region, outer: _Scope) -> bytes:
        scope = _Scope(region, outer)
        block = self._block(region, self._operations(region, scope))
        return integer(1) + integer(scope.total - outer.total) + block

    def _operation_bytes(
        self,
        name: tuple[str, str],
        location: Location | None,
        *,
        attributes: bytes = b"",
        properties: bytes = b"",
        tail: bytes,
        mask: int,
    ) -> bytes:
        """An operation: its name, what it has, where it came from, and that."""
        mask |= (_ATTRIBUTES if attributes else 0) | (_PROPERTIES if properties else 0)
        kept = integer(self._properties.number("", properties)) if properties else b""
        number = integer(self._names.number(name[0], name[1].encode()))
        return number + bytes([mask]) + self._values.location(location) + attributes + kept + tail
