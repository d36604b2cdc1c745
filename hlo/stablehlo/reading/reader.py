"""Reads the structure of MLIR text: modules, functions, regions, operations in generic spelling.

Operations in pretty spelling are read by `pretty_reader`.
"""

from __future__ import annotations

from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.stablehlo.reading.attribute_reader import (
    read_attribute,
    read_dictionary,
    read_location,
    read_type,
    read_types,
)
from xlalite.hlo.stablehlo.reading.functions import RETURNS, add_function, function_of
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.pretty_reader import (
    PrettyOperation,
    read_pretty,
    read_value_name,
)
from xlalite.hlo.stablehlo.reading.syntax import (
    Argument,
    Attribute,
    Function,
    Location,
    Operation,
    Program,
    Region,
)
from xlalite.hlo.types.shape import Shape

_VISIBILITY = ("public", "private", "nested")


def read_program(cursor: MlirCursor) -> Program:
    """The functions of a text, as written.

    Raises:
        ParseError: The text is no StableHLO; says where.
    """
    return _ProgramReader(cursor).read()


class _ProgramReader:
    """Reads one text."""

    __slots__ = ("cursor", "locations", "program")

    def __init__(self, cursor: MlirCursor) -> None:
        self.cursor = cursor
        self.locations: dict[str, Location] = {}
        self.program = Program("", {}, {}, self.locations)

    def read(self) -> Program:
        cursor = self.cursor
        while not cursor.at(""):
            self._read_top_level()
        if not self.program.functions:
            raise cursor.error("the module has no function")
        return self.program

    def _read_top_level(self) -> None:
        cursor = self.cursor
        token = cursor.peek()
        if token.startswith(("#", "!")):
            self._read_alias()
        elif token == "module" or token == "builtin.module":
            cursor.index += 1
            self._read_module()
        elif token == '"builtin.module"':
            self._read_generic_module()
        else:
            self._read_module_member()

    def _read_alias(self) -> None:
        cursor = self.cursor
        name = cursor.next()
        cursor.expect("=")
        if cursor.at("loc"):
            self.locations[name] = read_location(cursor)
        elif name.startswith("!"):
            raise cursor.error("names for types are not supported")
        else:
            read_attribute(cursor)

    def _read_module(self) -> None:
        cursor = self.cursor
        if cursor.peek().startswith("@"):
            self.program.name = cursor.name("the name of the module", "@")
        if cursor.accept("attributes"):
            self.program.attributes = read_dictionary(cursor)
        cursor.expect("{")
        while not cursor.accept("}"):
            self._read_module_member()
        self._location()

    def _read_module_member(self) -> None:
        cursor = self.cursor
        token = cursor.peek()
        if token == "func.func":
            self._read_function()
        elif token == '"func.func"':
            operation = self._operation()
            add_function(self.program, function_of(operation, cursor), cursor)
        elif token == "sdy.mesh":
            cursor.index += 1
            name = cursor.name("the name of a mesh", "@")
            cursor.expect("=")
            self.program.meshes[name] = f"#sdy.mesh{cursor.skip_balanced()}"
            if cursor.at("{"):
                read_dictionary(cursor)
            self._location()
        else:
            raise cursor.unexpected("a function (func.func)")

    def _read_generic_module(self) -> None:
        operation = self._operation(module_body=True)
        name = operation.attributes.get("sym_name", "")
        self.program.name = name if isinstance(name, str) else ""
        self.program.attributes = operation.attributes

    def _read_function(self) -> None:
        cursor = self.cursor
        token = cursor.index
        cursor.expect("func.func")
        if cursor.peek() in _VISIBILITY:
            cursor.index += 1
        name = cursor.name("the name of a function", "@")
        cursor.expect("(")
        arguments: list[Argument] = []
        for _ in separated(cursor, ")"):
            arguments.append(self._function_argument(len(arguments)))
        types, attributes = self._function_results() if cursor.accept("->") else ((), ())
        if cursor.accept("attributes"):
            read_dictionary(cursor)
        body = Region(arguments, return_token=token)
        function = Function(name, token, body, types, attributes, is_declaration=not cursor.at("{"))
        if not function.is_declaration:
            function.body = self._region(arguments)
        self._location()
        add_function(self.program, function, cursor)

    def _function_argument(self, position: int) -> Argument:
        cursor = self.cursor
        name = f"arg{position}"
        if cursor.peek().startswith("%"):
            name = cursor.name("a parameter", "%")
            cursor.expect(":")
        shape = read_type(cursor)
        attributes = read_dictionary(cursor) if cursor.at("{") else {}
        return Argument(name, shape, attributes, self._location())

    def _function_results(self) -> tuple[tuple[Shape, ...], tuple[dict[str, Attribute], ...]]:
        cursor = self.cursor
        if not cursor.accept("("):
            return (read_type(cursor),), ({},)
        types: list[Shape] = []
        attributes: list[dict[str, Attribute]] = []
        for _ in separated(cursor, ")"):
            types.append(read_type(cursor))
            attributes.append(read_dictionary(cursor) if cursor.at("{") else {})
        return tuple(types), tuple(attributes)

    def _region(self, arguments: list[Argument] | None = None) -> Region:
        """Consumes `{ operations }`, with the block's parameters when they are not given."""
        cursor = self.cursor
        cursor.enter()
        opening = cursor.index
        cursor.expect("{")
        region = Region([] if arguments is None else arguments, return_token=opening)
        if cursor.peek().startswith("^"):
            cursor.index += 1
            if cursor.at("("):
                region.arguments = self._block_arguments()
            cursor.expect(":")
        while not cursor.accept("}"):
            if not cursor.peek():
                raise cursor.error_at(opening, "the region does not end")
            operation = self._operation()
            if operation.name not in RETURNS:
                region.operations.append(operation)
                continue
            region.returned, region.return_token = operation.operands, operation.token
            if cursor.peek().startswith("^"):
                raise cursor.error("a region with several blocks cannot be read")
            cursor.expect("}")
            break
        cursor.leave()
        return region

    def _block_arguments(self) -> list[Argument]:
        """Consumes `(%a: type, ...)`."""
        cursor = self.cursor
        cursor.expect("(")
        arguments: list[Argument] = []
        for _ in separated(cursor, ")"):
            name = cursor.name("a parameter", "%")
            cursor.expect(":")
            arguments.append(Argument(name, read_type(cursor), location=self._location()))
        return arguments

    def _operation(self, *, module_body: bool = False) -> Operation:
        """Consumes one operation with its results, whatever its spelling."""
        cursor = self.cursor
        results = self._results()
        token = cursor.index
        if cursor.peek().startswith('"'):
            operation = self._generic(token, module_body=module_body)
        else:
            name = cursor.word("an operation")
            pretty = PrettyOperation(name, token, len(results))
            operation = read_pretty(cursor, pretty, self._region, self._block_arguments)
        operation.results = results
        operation.location = self._location()
        if len(results) != len(operation.result_types) and (results or operation.name not in RETURNS):
            named = len(results)
            if named:
                raise cursor.error_at(
                    token, f"{operation.name} has {len(operation.result_types)} results, {named} are named"
                )
        return operation

    def _results(self) -> tuple[str, ...]:
        """Consumes `%a, %b:2 =` if it is there."""
        cursor = self.cursor
        names: list[str] = []
        while cursor.peek().startswith("%"):
            name = cursor.name("a value", "%")
            if cursor.accept(":"):
                count = cursor.integer("the number of values")
                if not 0 < count <= 100_000:
                    raise cursor.error_at(cursor.index - 1, f"{count} values are impossible")
                names.extend(f"{name}#{index}" for index in range(count))
            else:
                names.append(name)
            if not cursor.accept(","):
                cursor.expect("=")
                break
        return tuple(names)

    def _generic(self, token: int, *, module_body: bool) -> Operation:
        """Consumes `"name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        cursor = self.cursor
        operation = Operation(cursor.string(), token)
        cursor.expect("(")
        operation.operands = _operands(cursor)
        if cursor.at("<") and cursor.tokens[cursor.index + 1] == "{":
            cursor.index += 1
            operation.attributes = read_dictionary(cursor)
            cursor.expect(">")
        if cursor.accept("("):
            for _ in separated(cursor, ")"):
                operation.regions.append(self._module_region() if module_body else self._region())
        if cursor.at("{"):
            operation.attributes = {**read_dictionary(cursor), **operation.attributes}
        cursor.expect(":")
        operation.operand_types = read_types(cursor)
        cursor.expect("->")
        operation.result_types = read_types(cursor)
        return operation

    def _module_region(self) -> Region:
        """The body of a module in generic spelling: functions only."""
        cursor = self.cursor
        opening = cursor.index
        cursor.expect("{")
        while not cursor.accept("}"):
            self._read_module_member()
        return Region(return_token=opening)

    def _location(self) -> Location | None:
        return read_location(self.cursor) if self.cursor.at("loc") else None


def _operands(cursor: MlirCursor) -> tuple[str, ...]:
    """Consumes the rest of `%a, %b#1)`."""
    return tuple(read_value_name(cursor) for _ in separated(cursor, ")"))
