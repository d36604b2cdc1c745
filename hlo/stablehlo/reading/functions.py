"""Functions of a module, made of the operations that define them."""

from __future__ import annotations

from dataclasses import replace

from xlalite.hlo.stablehlo.reading.syntax import Attribute, Function, FunctionType, Operation, Program, Region, Source

RETURNS = frozenset({"return", "func.return", "stablehlo.return", "chlo.return", "mhlo.return", "sdy.return"})
"""Operations that end a region with its values."""


def add_function(program: Program, function: Function, source: Source) -> None:
    """Adds a function to a module.

    Raises:
        ParseError: There is already one of its name.
    """
    if function.name in program.functions:
        raise source.error_at(function.token, f"there is already a function @{function.name}")
    program.functions[function.name] = function


def function_of(operation: Operation, source: Source) -> Function:
    """The function that "func.func" in generic spelling defines.

    Raises:
        ParseError: The operation lacks something, or its body is not of its type.
    """
    name, kind = operation.attributes.get("sym_name"), operation.attributes.get("function_type")
    if not isinstance(name, str) or not isinstance(kind, FunctionType) or len(operation.regions) > 1:
        raise source.error_at(operation.token, "func.func needs sym_name, function_type and one region")
    body = operation.regions[0] if operation.regions else Region(return_token=operation.token)
    is_declaration = not body.operations and not body.arguments and not body.returned
    found = tuple(argument.shape for argument in body.arguments)
    if found != kind.parameters and not is_declaration:
        raise source.error_at(operation.token, f"@{name}: the parameters of the body differ from its type")
    given = _dictionaries(operation.attributes.get("arg_attrs"), len(body.arguments))
    body.arguments = [
        replace(argument, attributes=attributes) for argument, attributes in zip(body.arguments, given, strict=True)
    ]
    results = _dictionaries(operation.attributes.get("res_attrs"), len(kind.results))
    return Function(name, operation.token, body, kind.results, results, is_declaration and bool(kind.parameters))


def _dictionaries(value: object, count: int) -> tuple[dict[str, Attribute], ...]:
    found = value if isinstance(value, tuple) and len(value) == count else ({},) * count
    return tuple(entry if isinstance(entry, dict) else {} for entry in found)
