"""StableHLO as MLIR spells it: operations of elements and constants in their short form, all others in the generic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.hlo.stablehlo.bytecode.attribute_names import ATTRIBUTE_NAMES
from xlalite.hlo.stablehlo.reading.attribute_reader import ELEMENT_NAMES
from xlalite.hlo.stablehlo.reading.dense import dense_values
from xlalite.hlo.stablehlo.reading.syntax import (
    Argument,
    Attribute,
    Dense,
    Function,
    FunctionType,
    Location,
    Opaque,
    Operation,
    Program,
    Region,
    Symbol,
    Word,
)
from xlalite.hlo.stablehlo.rules.elementwise_rules import TWINS
from xlalite.hlo.stablehlo.writing.attribute_kinds import integer_dtype
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.hlo.types.shape import Shape

_MOST_NUMBERS = 64
_PLAIN = re.compile(rb'[^\x20-\x7e]|["\\]')
_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_SHORT = frozenset(f"stablehlo.{name}" for name in TWINS)
_UNITS = frozenset({"use_global_device_ids"})
# Attributes that are lists of attributes; all other lists are of plain integers.
_LISTS = frozenset(
    {"called_computations", "operand_layouts", "output_operand_aliases", "precision_config", "result_layouts"}
)
# What MLIR calls the closed sets and structures that attributes are made of.
_WORDS = {
    "comparison_direction": "comparison_direction",
    "compare_type": "comparison_type",
    "fft_type": "fft_type",
    "precision_config": "precision",
    "rng_algorithm": "rng_algorithm",
    "rng_distribution": "rng_distribution",
    "transpose_a": "transpose",
}
_STRUCTURES = {
    "algorithm": "dot_algorithm",
    "channel_handle": "channel_handle",
    "dimension_numbers": "gather",
    "dot_dimension_numbers": "dot",
    "output_operand_aliases": "output_operand_alias",
    "scatter_dimension_numbers": "scatter",
}


def text_of(program: Program) -> str:
    """The text of a module."""
    head = f"module @{program.name}"
    if program.attributes:
        head += f" attributes {_dictionary(program.attributes)}"
    functions = [line for function in program.functions.values() for line in _function(function)]
    return "\n".join((f"{head} {{", *functions, "}", ""))


def _function(function: Function) -> Iterable[str]:
    visibility = "public" if function.name == "main" else "private"
    arguments = ", ".join(_argument(argument) for argument in function.body.arguments)
    results = ", ".join(map(type_text, function.result_types))
    yield f"  func.func {visibility} @{function.name}({arguments}) -> ({results}) {{"
    shapes = {argument.name: argument.shape for argument in function.body.arguments}
    yield from _body(function.body, "return", shapes, "    ")
    yield "  }"


def _argument(argument: Argument) -> str:
    attributes = f" {_dictionary(argument.attributes)}" if argument.attributes else ""
    return f"%{argument.name}: {type_text(argument.shape)}{attributes}{_location(argument.location)}"


def _body(region: Region, returns: str, shapes: dict[str, Shape], indent: str) -> Iterable[str]:
    """The lines of a block; `shapes` has the types of all values of the function that stand before it."""
    for operation in region.operations:
        yield from _operation(operation, shapes, indent)
        shapes.update(zip(operation.results, operation.result_types, strict=True))
    values = ", ".join(f"%{name}" for name in region.returned)
    yield f"{indent}{returns}{f' {values} : ' if values else ''}{_types(shapes[name] for name in region.returned)}"


def _operation(operation: Operation, shapes: dict[str, Shape], indent: str) -> Iterable[str]:
    results = ", ".join(f"%{name}" for name in operation.results)
    start = f"{indent}{results} = " if results else indent
    end = _location(operation.location)
    operands = ", ".join(f"%{name}" for name in operation.operands)
    assert operation.operand_types is not None, "the exporter knows them"
    types = {*operation.operand_types, *operation.result_types}
    if operation.name in _SHORT and len(types) == 1 and not operation.attributes and len(operation.operands) in (1, 2):
        yield f"{start}{operation.name} {operands} : {type_text(types.pop())}{end}"
        return
    inherent, others = _parted(operation)
    if operation.name == "stablehlo.constant" and not others:
        yield f"{start}{operation.name} {_attribute('value', inherent['value'])}{end}"
        return
    properties = f" <{_dictionary(inherent)}>" if inherent else ""
    tail = f" {_dictionary(others)}" if others else ""
    signature = f"({_types(operation.operand_types)}) -> ({_types(operation.result_types)})"
    line = f'{start}"{operation.name}"({operands}){properties}'
    if not operation.regions:
        yield f"{line}{tail} : {signature}{end}"
        return
    line += " ("
    for region in operation.regions:
        arguments = ", ".join(_argument(argument) for argument in region.arguments)
        yield line + "{"
        yield f"{indent}^bb0({arguments}):" if arguments else f"{indent}^bb0:"
        shapes.update((argument.name, argument.shape) for argument in region.arguments)
        yield from _body(region, "stablehlo.return", shapes, indent + "  ")
        line = f"{indent}}}, "
    yield f"{indent}}}){tail} : {signature}{end}"


def _parted(operation: Operation) -> tuple[Mapping[str, Attribute], Mapping[str, Attribute]]:
    """The attributes of the operation's definition, and those that anything may carry."""
    known = {key.removeprefix("?") for key in ATTRIBUTE_NAMES.get(operation.name, ())}
    inherent = {key: value for key, value in operation.attributes.items() if key in known}
    return inherent, {key: value for key, value in operation.attributes.items() if key not in known}


def type_text(shape: Shape) -> str:
    """A type."""
    if shape.is_token:
        return "!stablehlo.token"
    if shape.is_tuple:
        return f"tuple<{_types(shape.elements)}>"
    return f"tensor<{''.join(f'{size}x' for size in shape.dims)}{ELEMENT_NAMES[shape.dtype]}>"


def _types(shapes: Iterable[Shape]) -> str:
    return ", ".join(map(type_text, shapes))


def _location(location: Location | None) -> str:
    if location is None:
        return ""
    place = f"{_quoted(location.file)}:{location.line}:0" if location.file else ""
    name = _quoted(location.name) if location.name else ""
    return f" loc({name}({place}))" if name and place else f" loc({name or place})"


def _dictionary(attributes: Mapping[str, Attribute]) -> str:
    return "{" + ", ".join(f"{_key(key)} = {_attribute(key, value)}" for key, value in attributes.items()) + "}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _attribute(key: str, value: Attribute) -> str:
    match value:
        case True if key in _UNITS:
            return "unit"
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : {ELEMENT_NAMES[integer_dtype(key)]}"
        case float():
            return f"{number_text(float(str(np.float32(value))), DType.F64)} : f32"
        case str():
            return _quoted(value)
        case Symbol(name):
            return f"@{name}"
        case Word(text):
            return f"#stablehlo<{_WORDS[key]} {text}>"
        case Opaque(text):
            return text
        case Dense():
            return _dense(value, "index" if key.endswith("layouts") else "")
        case tuple():
            return _list(key, value)
        case dict():
            return _structure(key, value) if key in _STRUCTURES else _dictionary(value)
        case Shape():
            return type_text(value)
        case FunctionType():
            return f"({_types(value.parameters)}) -> ({_types(value.results)})"


def _list(key: str, values: tuple[Attribute, ...]) -> str:
    if key == "window_reversal":
        return _flat("i1", [str(value).lower() for value in values])
    if key not in _LISTS:
        return _flat("i64", map(str, values))
    return "[" + ", ".join(_attribute(key, value) for value in values) + "]"


def _flat(element: str, numbers: Iterable[str]) -> str:
    listed = ", ".join(numbers)
    return f"array<{element}: {listed}>" if listed else f"array<{element}>"


def _structure(key: str, fields: Mapping[str, Attribute]) -> str:
    labels = fields.get("dim_numbers")
    if isinstance(labels, str):
        parts = [f"[{', '.join(part)}]" for part in re.split("_|->", labels)]
        return f"#stablehlo.conv<{parts[0]}x{parts[1]}->{parts[2]}>"
    keeps_empty = key == "output_operand_aliases"
    shown = ", ".join(f"{name} = {_field(value)}" for name, value in fields.items() if keeps_empty or value != ())
    return f"#stablehlo.{_STRUCTURES[key]}<{shown}>"


def _field(value: Attribute) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Word(text):
            return text
        case tuple():
            return "[" + ", ".join(map(str, value)) + "]"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    return '"' + _PLAIN.sub(lambda found: b"\\%02X" % ord(found[0]), data).decode("ascii") + '"'


def _dense(value: Dense, element: str = "") -> str:
    shape = value.shape
    assert shape is not None, "the exporter gives it"
    found = dense_values(value.payload, shape, DEFAULT_LIMITS)
    array = np.ascontiguousarray(np.broadcast_to(found, shape.dims))
    named = type_text(shape)
    return f"dense<{_values(array, shape)}> : {named.replace('i64', element) if element else named}"


def _values(array: np.ndarray[Any, Any], shape: Shape) -> str:
    if not array.size:
        return ""
    flat = array.reshape(-1)
    rows = flat.view(np.uint8).reshape(flat.size, -1)
    if (rows == rows[0]).all():
        return number_text(flat[0], shape.dtype)
    if flat.size > _MOST_NUMBERS and shape.dtype.bits >= 8:
        return f'"0x{flat.tobytes().hex().upper()}"'
    return _nested([number_text(value, shape.dtype) for value in flat], shape.dims)


def _nested(texts: Sequence[str], dims: Sequence[int]) -> str:
    if not dims:
        return texts[0]
    step = len(texts) // dims[0]
    rows = (_nested(texts[start : start + step], dims[1:]) for start in range(0, len(texts), step))
    return "[" + ", ".join(rows) + "]"


def number_text(value: Any, dtype: DType) -> str:
    """A number that is read back to the bit."""
    if dtype is DType.PRED:
        return str(bool(value)).lower()
    if dtype.is_complex:
        parts = np.asarray(value).reshape(1).view(dtype.component.numpy)
        return f"({', '.join(number_text(part, dtype.component) for part in parts)})"
    if not dtype.is_floating:
        return str(int(value))
    if not np.isfinite(float(value)):
        return f"0x{int.from_bytes(np.asarray(value).tobytes(), 'little'):0{max(1, dtype.bits // 4)}X}"
    mantissa, exponent, power = repr(float(value)).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"
