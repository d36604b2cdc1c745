"""The entry function of a program as jax calls it: what crosses its signature are arrays, and each device's own part.

Tokens: jax passes and expects an empty array of booleans for each. Inside, effects hang on tokens; outside, that one
call ends before the next begins is all the order there is.

Programs that say themselves what each device does (`jax.pmap`, `jax.shard_map`) have a single operation in their entry,
whose region is the program of one device.

Attributes of arguments and results say which memory and layout jax's users want.
"""

from __future__ import annotations

from dataclasses import replace

from xlalite.hlo.stablehlo.reading.syntax import Dense, Function, Operation, Program
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.jax.shardings import is_as_asked

_MANUAL = "sdy.manual_computation"
_EMPTY = Shape.array(DType.PRED, (0,))
_DEFAULT_LAYOUTS = ("default", "auto")


def program_of_one_device(program: Program) -> bool:
    """Makes the region of an entry that says what each device does the entry; whether there was one.

    One whose arrays lie otherwise than those of the entry stays.
    """
    function = program.functions.get("main")
    if function is None or len(function.body.operations) != 1:
        return False
    (operation,) = function.body.operations
    taken = tuple(argument.name for argument in function.body.arguments)
    if operation.name != _MANUAL or operation.operands != taken or function.body.returned != operation.results:
        return False
    if not is_as_asked(program):
        return False
    outer, function.body = function.body.arguments, operation.regions[0]
    pairs = zip(function.body.arguments, outer, strict=True)
    function.body.arguments = [replace(argument, attributes=each.attributes) for argument, each in pairs]
    shapes = _shapes(function)
    function.result_types = tuple(shapes[name] for name in function.body.returned)
    return True


def tokens_as_arrays(program: Program) -> None:
    """Replaces the tokens that the entry function takes and gives by empty arrays."""
    function = program.functions.get("main")
    if function is None:
        return
    body, made = function.body, []
    for number, argument in enumerate(body.arguments):
        if argument.shape.is_token:
            made.append(_operation(function, "create_token", argument.name, argument.shape))
            body.arguments[number] = replace(argument, shape=_EMPTY, name=f"{argument.name}.token")
    body.operations = [*made, *body.operations]
    if any(shape.is_token for shape in function.result_types):
        name, value = "result.token", Dense(b"", _EMPTY, function.token)
        body.operations.append(_operation(function, "constant", name, _EMPTY))
        body.operations[-1].attributes["value"] = value
        pairs = list(zip(body.returned, function.result_types, strict=True))
        body.returned = tuple(name if shape.is_token else returned for returned, shape in pairs)
        function.result_types = tuple(_EMPTY if shape.is_token else shape for _, shape in pairs)


def layout_not_offered(program: Program) -> str:
    """What a program wants that is another order of elements than row-major, in words; empty if it wants nothing."""
    function = program.functions.get("main")
    if function is None:
        return ""
    given = [(each.shape, each.attributes) for each in function.body.arguments]
    made = list(zip(function.result_types, function.result_attributes, strict=False))
    for what, values in (("argument", given), ("result", made)):
        for number, (shape, attributes) in enumerate(values):
            wanted = str(attributes.get("mhlo.layout_mode", _DEFAULT_LAYOUTS[0]))
            usual = f"{{{','.join(map(str, reversed(range(shape.rank if shape.is_array else 0))))}}}"
            if wanted not in (*_DEFAULT_LAYOUTS, usual):
                return f"{what} {number} in the layout {wanted}"
    return ""


def memory_kinds(program: Program, default: str) -> list[str]:
    """The kinds of memory in which results are to be."""
    return [str(each.get("mhlo.memory_kind", default)) for each in program.functions["main"].result_attributes]


def _operation(function: Function, name: str, result: str, shape: Shape) -> Operation:
    return Operation(f"stablehlo.{name}", function.token, (result,), result_types=(shape,))


def _shapes(function: Function) -> dict[str, Shape]:
    """Types of the values of a function, those in regions left out."""
    shapes = {argument.name: argument.shape for argument in function.body.arguments}
    for operation in function.body.operations:
        shapes.update(zip(operation.results, operation.result_types, strict=True))
    return shapes
