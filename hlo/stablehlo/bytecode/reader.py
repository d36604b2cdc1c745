"""The operations of MLIR bytecode, as the records that StableHLO text is read into."""

from __future__ import annotations

from xlalite.hlo.errors import BinaryParseError, XlaliteError
from xlalite.hlo.stablehlo.bytecode.attribute_names import ATTRIBUTE_NAMES
from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.container import Container, pick, read_container
from xlalite.hlo.stablehlo.bytecode.entries import LocationEntries
from xlalite.hlo.stablehlo.bytecode.portable import as_stablehlo
from xlalite.hlo.stablehlo.bytecode.values import Values
from xlalite.hlo.stablehlo.reading.functions import RETURNS, add_function, function_of
from xlalite.hlo.stablehlo.reading.syntax import Argument, Attribute, Location, Opaque, Operation, Program, Region
from xlalite.hlo.types.limits import ParseLimits

# The dialect of annotations that mean nothing on one device.
_SHARDINGS = "sdy."
# Stands between the types of two dialects, which are the same here.
_CAST = "builtin.unrealized_conversion_cast"
# What the versions of the format brought.
_ISOLATED_REGIONS, _USE_LISTS, _OPTIONAL_LOCATIONS = 2, 3, 4
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _PROPERTIES = (1 << bit for bit in range(7))


class Bytes:
    """Bytes as the source of operations: a place in it is the number of a byte."""

    def __init__(self, limits: ParseLimits) -> None:
        self.limits = limits

    def error_at(self, index: int, error: XlaliteError | str, /) -> BinaryParseError:
        """The error for a byte."""
        return BinaryParseError(str(error), index)


def read_bytecode(data: bytes, limits: ParseLimits) -> tuple[Program, Bytes]:
    """The functions of a file, and what names places in it.

    Raises:
        ParseError: The bytes are no MLIR bytecode, or hold something else than StableHLO; says where.
    """
    container = read_container(data)
    source = Bytes(limits)
    return _ModuleReader(container, source).read(), source


class _Scope:
    """The numbered values that operations see.

    Attributes:
        names: Name of each value by its number.
        next: Number of the next value.
        total: How many numbers are taken, those of values to come included.
    """

    __slots__ = ("names", "next", "total")

    def __init__(self, names: dict[int, str], first: int, total: int) -> None:
        self.names = names
        self.next = first
        self.total = total


class _ModuleReader:
    """Reads one file."""

    __slots__ = ("_container", "_depth", "_named", "_source", "_values")

    def __init__(self, container: Container, source: Bytes) -> None:
        self._container = container
        self._source = source
        self._values = Values(container, source.limits)
        self._depth = 0
        self._named = 0

    def read(self) -> Program:
        """The module: the first operation."""
        cursor = self._container.operations
        program = Program("", {}, {}, LocationEntries(self._container))
        for operation in self._block(cursor, _Scope({}, 0, 0)).operations:
            if operation.name != "builtin.module" or len(operation.regions) != 1:
                raise self._source.error_at(operation.token, f"found {operation.name}, expected a module")
            name = operation.attributes.get("sym_name")
            program.name, program.attributes = name if isinstance(name, str) else "", operation.attributes
            for member in operation.regions[0].operations:
                self._add(program, member)
        if not program.functions:
            raise cursor.error("the module has no function")
        return program

    def _add(self, program: Program, member: Operation) -> None:
        if member.name == "func.func":
            add_function(program, function_of(member, self._source), self._source)
            return
        name, mesh = member.attributes.get("sym_name"), member.attributes.get("mesh")
        if isinstance(name, str) and isinstance(mesh, Opaque):
            program.meshes[name] = mesh.text
        elif not member.name.startswith(_SHARDINGS):
            raise self._source.error_at(member.token, f"found {member.name}, expected a function")

    def _block(self, cursor: ByteCursor, scope: _Scope, prefix: str = "") -> Region:
        """Consumes a block; a prefix gives its arguments names of their own, with their numbers."""
        region = Region(return_token=cursor.position)
        head = cursor.integer()
        if head & 1:
            region.arguments = cursor.list(lambda: self._argument(cursor, scope, prefix))
            if self._container.version >= _USE_LISTS and cursor.byte():
                self._skip_use_list(cursor, len(region.arguments))
        for _ in range(head >> 1):
            operation = self._operation(cursor, scope)
            if operation.name in RETURNS:
                region.returned, region.return_token = operation.operands, operation.token
            elif operation.name != _CAST:
                region.operations.append(operation)
        return region

    def _argument(self, cursor: ByteCursor, scope: _Scope, prefix: str) -> Argument:
        number, has_location = cursor.integer(), True
        if self._container.version >= _OPTIONAL_LOCATIONS:
            number, has_location = number >> 1, bool(number & 1)
        location = Location(alias=str(cursor.integer())) if has_location else None
        shape = self._values.shape(cursor, number)
        return Argument(self._define(scope, f"{prefix}{scope.next}" if prefix else ""), shape, location=location)

    def _define(self, scope: _Scope, name: str = "") -> str:
        """The name of the next value: names are never used twice, numbers are."""
        name = scope.names[scope.next] = name or f"v{self._named}"
        self._named += 1
        scope.next += 1
        return name

    def _operation(self, cursor: ByteCursor, scope: _Scope) -> Operation:
        token = cursor.position
        spelled = pick(cursor, self._container.operation_names, cursor.integer(), "operation")
        mask, location = cursor.byte(), cursor.integer()
        attributes: dict[str, Attribute] = {}
        if mask & _ATTRIBUTES:
            found = self._values.attributes.next(cursor)
            if not isinstance(found, dict):
                raise cursor.error("the attributes of an operation must be a dictionary")
            attributes.update(found)
        if mask & _PROPERTIES:
            attributes.update(self._properties(cursor, spelled))
        name, attributes = as_stablehlo(spelled, attributes, cursor)
        operation = Operation(name, token, attributes=attributes, location=Location(alias=str(location)))
        if mask & _RESULTS:
            operation.result_types = tuple(cursor.list(lambda: self._values.shape(cursor)))
        if mask & _OPERANDS:
            operation.operands = tuple(cursor.list(lambda: _used(cursor, scope)))
        if mask & _SUCCESSORS:
            raise cursor.error(f"{spelled}: a region with several blocks cannot be read")
        if mask & _USES:
            self._skip_use_list(cursor, len(operation.result_types))
        names = operation.operands if spelled == _CAST else [""] * len(operation.result_types)
        operation.results = tuple(self._define(scope, name) for name in names)
        if mask & _REGIONS:
            self._read_regions(cursor, operation, scope)
        return operation

    def _properties(self, cursor: ByteCursor, spelled: str) -> dict[str, Attribute]:
        """The attributes of the operation's definition: numbers, in the order of their names."""
        start, end = pick(cursor, self._container.properties, cursor.integer(), "set of attributes")
        if spelled.startswith(_SHARDINGS) and spelled not in ATTRIBUTE_NAMES:
            return {}
        part = ByteCursor(cursor.data, start, end)
        found: dict[str, Attribute] = {}
        for key in ATTRIBUTE_NAMES.get(spelled, ()):
            number = part.integer()
            if key[0] == "?":
                if number & 1:
                    found[key[1:]] = self._values.member(part, key[1:], number >> 1)
            else:
                found[key] = self._values.member(part, key, number)
        part.require_end(f"the definition of {spelled}")
        return found

    def _read_regions(self, cursor: ByteCursor, operation: Operation, scope: _Scope) -> None:
        head = cursor.integer()
        is_isolated = bool(head & 1)
        self._depth += 1
        if self._depth > self._source.limits.nesting:
            raise cursor.error(f"nested more than {self._source.limits.nesting} deep")
        if is_isolated and self._container.version >= _ISOLATED_REGIONS:
            _, cursor = cursor.section()
        for _ in range(head >> 1):
            operation.regions.append(self._region(cursor, operation, None if is_isolated else scope))
        self._depth -= 1

    def _region(self, cursor: ByteCursor, operation: Operation, outer: _Scope | None) -> Region:
        blocks = cursor.integer()
        if not blocks:
            return Region(return_token=cursor.position)
        if blocks > 1:
            raise cursor.error(f"{operation.name}: a region with several blocks cannot be read")
        first = 0 if outer is None else outer.total
        inner = _Scope({} if outer is None else outer.names, first, first + cursor.integer())
        region = self._block(cursor, inner, "arg" if operation.name == "func.func" else "")
        if inner.next != inner.total:
            raise cursor.error(f"{operation.name}: {inner.total - first} values expected, {inner.next - first} found")
        return region

    def _skip_use_list(self, cursor: ByteCursor, values: int) -> None:
        """Consumes in which order values have their users: nobody needs it."""
        for _ in range(cursor.count() if values > 1 else 1):
            if values > 1:
                cursor.integer()
            for _ in range(cursor.integer() >> 1):
                cursor.integer()


def _used(cursor: ByteCursor, scope: _Scope) -> str:
    number = cursor.integer()
    if number not in scope.names:
        raise cursor.error(f"value {number} is not there yet")
    return scope.names[number]
