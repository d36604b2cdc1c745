"""Reads operations in the spelling that MLIR prints by default.

Most operations share one form: operands, words and `key = value` between commas, attributes in braces, types. The
others have a reader of their own in `_READERS`. Tables give the names that attributes have in the generic spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.stablehlo.reading.attribute_reader import (
    read_convolution_dims,
    read_dense,
    read_dictionary,
    read_list,
    read_type,
    read_types,
    read_untyped_attribute,
)
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.syntax import Argument, Attribute, Opaque, Operation, Region, Symbol, Word
from xlalite.hlo.types.shape import Shape

RegionReader: TypeAlias = Callable[..., Region]
ArgumentReader: TypeAlias = Callable[[], list[Argument]]

# Pretty key -> generic attribute, by operation.
_KEYS: dict[str, dict[str, str]] = {
    "broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "broadcast": {"sizes": "broadcast_sizes"},
    "transpose": {"dims": "permutation"},
    "reverse": {"dims": "dimensions"},
    "iota": {"dim": "iota_dimension"},
    "dynamic_iota": {"dim": "iota_dimension"},
    "concatenate": {"dim": "dimension"},
    "get_dimension_size": {"dim": "dimension"},
    "set_dimension_size": {"dim": "dimension"},
    "pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "dynamic_slice": {"sizes": "slice_sizes"},
    "fft": {"type": "fft_type", "length": "fft_length"},
    "rng": {"distribution": "rng_distribution"},
    "rng_bit_generator": {"algorithm": "rng_algorithm"},
    "dot": {"precision": "precision_config"},
    "dot_general": {"precision": "precision_config"},
}
# Attributes that words without a key stand for, in their order.
_WORDS: dict[str, tuple[str, ...]] = {"compare": ("comparison_direction", "compare_type")}


@dataclass(frozen=True, slots=True)
class PrettyOperation:
    """What is known before the body of an operation: its name, where it stands, how many results are named."""

    name: str
    token: int
    result_count: int

    @property
    def short_name(self) -> str:
        """The name without the dialect."""
        return self.name.rpartition(".")[2]


def read_pretty(
    cursor: MlirCursor, head: PrettyOperation, read_region: RegionReader, read_arguments: ArgumentReader
) -> Operation:
    """The rest of an operation behind its name.

    Raises:
        ParseError: It is written in a way that nobody knows.
    """
    operation = Operation(head.name, head.token)
    if head.name in ("stablehlo.reduce", "mhlo.reduce"):
        return _read_reduce(cursor, head, operation, read_region, read_arguments)
    if head.name in ("stablehlo.while", "mhlo.while"):
        return _read_while(cursor, operation, read_region)
    if head.name == "sdy.manual_computation":
        return _read_manual_computation(cursor, operation, read_region, read_arguments)
    reader = _READERS.get(head.short_name)
    if reader is not None:
        reader(cursor, operation)
    else:
        _read_items(cursor, operation)
    if cursor.at("{"):
        operation.attributes.update(read_dictionary(cursor))
    if cursor.accept(":"):
        _read_signature(cursor, operation, head.result_count)
    elif operation.operands or head.result_count:
        raise cursor.unexpected("':' and types")
    return operation


def read_value_name(cursor: MlirCursor) -> str:
    """Consumes `%a` or `%a#1`."""
    name = cursor.name("a value", "%")
    token = cursor.peek()
    if token.startswith("#") and token[1:].isdecimal():
        cursor.index += 1
        return name + token
    return name


def _read_signature(cursor: MlirCursor, operation: Operation, result_count: int) -> None:
    """Consumes `(types) -> types`, `types -> types`, one type for all, or one for each result."""
    parenthesised = cursor.at("(")
    types = list(read_types(cursor))
    while not parenthesised and cursor.accept(","):
        types.append(read_type(cursor))
    if cursor.accept("->"):
        operation.operand_types = tuple(types)
        operation.result_types = read_types(cursor)
    elif not result_count:
        operation.operand_types = tuple(types)
    elif len(types) == result_count:
        operation.result_types = tuple(types)
    else:
        operation.result_types = tuple(types[-result_count:])


def _read_items(cursor: MlirCursor, operation: Operation) -> None:
    """Consumes operands, words and `key = value`, separated by commas."""
    short = operation.name.rpartition(".")[2]
    keys, words = _KEYS.get(short, {}), list(_WORDS.get(short, ()))
    operands: list[str] = []
    first = True
    parenthesised = cursor.at("(") and cursor.tokens[cursor.index + 1][:1] in ("%", ")")
    cursor.index += parenthesised
    while cursor.peek()[:1] not in ("", "^") and cursor.peek() not in (":", "{", "}", ")", "loc"):
        if not first:
            cursor.expect(",")
        first = False
        token = cursor.peek()
        if token.startswith("%"):
            operands.append(read_value_name(cursor))
            if cursor.at("["):
                operation.attributes["brackets"] = _read_brackets(cursor)
            elif cursor.at("<"):
                operation.attributes["sharding"] = Opaque(f"#sdy.sharding{cursor.skip_balanced()}")
            first = cursor.tokens[cursor.index + 1] == "="  # `%x group_id=0`
        elif cursor.tokens[cursor.index + 1] == "=":
            key = cursor.word("the name of an attribute")
            cursor.index += 1
            operation.attributes[keys.get(key, key)] = read_untyped_attribute(cursor)
        elif words:
            operation.attributes[words.pop(0)] = Word(cursor.word("a word"))
        else:
            raise cursor.unexpected("an operand, or the type of the operation")
    if parenthesised:
        cursor.expect(")")
    operation.operands = tuple(operands)


def _read_brackets(cursor: MlirCursor) -> tuple[Attribute, ...]:
    """Consumes `[0:4, 1:5:2]` or `[3]`: tuples of the numbers between colons."""
    cursor.expect("[")
    entries: list[Attribute] = []
    for _ in separated(cursor, "]"):
        numbers: list[Attribute] = [cursor.integer()]
        while cursor.accept(":"):
            numbers.append(cursor.integer())
        entries.append(tuple(numbers))
    return tuple(entries)


def _read_slice(cursor: MlirCursor, operation: Operation) -> None:
    _read_items(cursor, operation)
    entries = operation.attributes.pop("brackets", None)
    if not isinstance(entries, tuple):
        raise cursor.unexpected("[start:limit:stride, ...]")
    columns: list[list[Attribute]] = [[], [], []]
    for entry in entries:
        if not isinstance(entry, tuple) or not 2 <= len(entry) <= 3:
            raise cursor.error("a slice is written as [start:limit] or [start:limit:stride]")
        for column, value in zip(columns, (*entry, 1), strict=False):
            column.append(value)
    for key, column in zip(("start_indices", "limit_indices", "strides"), columns, strict=True):
        operation.attributes[key] = tuple(column)


def _read_tuple_element(cursor: MlirCursor, operation: Operation) -> None:
    _read_items(cursor, operation)
    match operation.attributes.pop("brackets", None):
        case ((int() as index,),):
            operation.attributes["index"] = index
        case _:
            raise cursor.unexpected("the number of an element in brackets")


def _read_constant(cursor: MlirCursor, operation: Operation) -> None:
    if cursor.at("{"):
        operation.attributes.update(read_dictionary(cursor))
    value = read_dense(cursor)
    if value.shape is None:
        raise cursor.unexpected("':' and the type of the constant")
    operation.attributes["value"] = value
    operation.result_types = (value.shape,)
    cursor.index -= 2  # the type stands where every operation has it
    if not cursor.at(":"):
        raise cursor.error_at(operation.token, "the constant is not an array")


def _read_call(cursor: MlirCursor, operation: Operation) -> None:
    """Consumes `@function(%a, %b)`."""
    operation.attributes["callee"] = Symbol(cursor.name("the name of a function", "@"))
    if not cursor.at("("):
        raise cursor.unexpected("'('")
    _read_items(cursor, operation)


def _read_composite(cursor: MlirCursor, operation: Operation) -> None:
    operation.attributes["name"] = cursor.string("the name of the composite")
    _read_items(cursor, operation)


def _read_convolution(cursor: MlirCursor, operation: Operation) -> None:
    """Consumes `(%a, %b) dim_numbers = ..., window = {...}`."""
    _read_items(cursor, operation)
    if cursor.word("'dim_numbers'") != "dim_numbers":
        raise cursor.error_at(cursor.index - 1, "expected 'dim_numbers'")
    cursor.expect("=")
    operation.attributes["dim_numbers"] = read_convolution_dims(cursor)
    cursor.expect(",")
    if cursor.word("'window'") != "window":
        raise cursor.error_at(cursor.index - 1, "expected 'window'")
    cursor.expect("=")
    for key, value in read_dictionary(cursor).items():
        operation.attributes[_WINDOW_KEYS.get(key, key)] = value


_WINDOW_KEYS = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}

_READERS: dict[str, Callable[[MlirCursor, Operation], None]] = {
    "slice": _read_slice,
    "get_tuple_element": _read_tuple_element,
    "constant": _read_constant,
    "call": _read_call,
    "custom_call": _read_call,
    "composite": _read_composite,
    "convolution": _read_convolution,
}


def _read_while(cursor: MlirCursor, operation: Operation, read_region: RegionReader) -> Operation:
    """Consumes `(%a = %x, ...) : types attributes {...} cond {...} do {...}`."""
    cursor.expect("(")
    names: list[str] = []
    operands: list[str] = []
    for _ in separated(cursor, ")"):
        names.append(cursor.name("a value of the loop", "%"))
        cursor.expect("=")
        operands.append(read_value_name(cursor))
    types: list[Shape] = []
    if cursor.accept(":"):
        types.append(read_type(cursor))
        while cursor.accept(","):
            types.append(read_type(cursor))
    if len(types) != len(names):
        raise cursor.error(f"the loop has {len(names)} values and {len(types)} types")
    if cursor.accept("attributes"):
        operation.attributes.update(read_dictionary(cursor))
    operation.operands, operation.operand_types, operation.result_types = tuple(operands), tuple(types), tuple(types)
    for keyword in ("cond", "do"):
        if not cursor.accept(keyword):
            raise cursor.unexpected(repr(keyword))
        arguments = [Argument(name, shape) for name, shape in zip(names, types, strict=True)]
        operation.regions.append(read_region(arguments))
    return operation


def _read_manual_computation(
    cursor: MlirCursor, operation: Operation, read_region: RegionReader, read_arguments: ArgumentReader
) -> Operation:
    """Consumes `(%a, ...) in_shardings=[...] out_shardings=[...] manual_axes={...} (...) {...} : types -> types`."""
    cursor.expect("(")
    operation.operands = tuple(read_value_name(cursor) for _ in separated(cursor, ")"))
    for key, form in (
        ("in_shardings", "#sdy.sharding_per_value<{}>"),
        ("out_shardings", "#sdy.sharding_per_value<{}>"),
        ("manual_axes", "#sdy<manual_axes{}>"),
    ):
        if cursor.word("an attribute") != key:
            raise cursor.error_at(cursor.index - 1, f"expected {key!r}")
        cursor.expect("=")
        operation.attributes[key] = Opaque(form.format(cursor.skip_balanced()))
    operation.regions.append(read_region(read_arguments()))
    if cursor.at("{"):
        operation.attributes.update(read_dictionary(cursor))
    cursor.expect(":")
    operation.operand_types = read_types(cursor)
    cursor.expect("->")
    operation.result_types = read_types(cursor)
    return operation


def _read_reduce(
    cursor: MlirCursor,
    head: PrettyOperation,
    operation: Operation,
    read_region: RegionReader,
    read_arguments: ArgumentReader,
) -> Operation:
    """Consumes `(%a init: %x), ... [applies op] across dimensions = [...] : types [reducer(...) (...) {...}]`."""
    arrays: list[str] = []
    starts: list[str] = []
    while True:
        cursor.expect("(")
        arrays.append(read_value_name(cursor))
        if not cursor.accept("init"):
            raise cursor.unexpected("'init'")
        cursor.expect(":")
        starts.append(read_value_name(cursor))
        cursor.expect(")")
        if not cursor.accept(","):
            break
    applied = ""
    applied_token = cursor.index
    if cursor.accept("applies"):
        applied_token = cursor.index
        applied = cursor.word("an operation")
    for word in ("across", "dimensions"):
        if not cursor.accept(word):
            raise cursor.unexpected(repr(word))
    cursor.expect("=")
    operation.attributes["dimensions"] = read_list(cursor)
    if cursor.at("{"):
        operation.attributes.update(read_dictionary(cursor))
    cursor.expect(":")
    _read_signature(cursor, operation, head.result_count)
    operation.operands = (*arrays, *starts)
    if applied:
        operation.regions.append(_applied_region(cursor, operation, applied, applied_token))
        return operation
    if not cursor.accept("reducer"):
        raise cursor.unexpected("'reducer'")
    pairs = [read_arguments()]
    while cursor.at("("):
        pairs.append(read_arguments())
    if len(pairs) != len(arrays) or any(len(pair) != 2 for pair in pairs):
        raise cursor.error(f"the reducer must have {len(arrays)} pairs of parameters")
    operation.regions.append(read_region([pair[0] for pair in pairs] + [pair[1] for pair in pairs]))
    return operation


def _applied_region(cursor: MlirCursor, operation: Operation, applied: str, token: int) -> Region:
    """The region `(x, y) -> applied(x, y)` that the short form stands for."""
    types = operation.operand_types or ()
    if len(types) != 2 or not types[1].is_array:
        raise cursor.error_at(token, "'applies' needs one operand with its initial value, and their types")
    scalar = Shape.array(types[1].dtype)
    body = Operation(applied, token, ("result",), ("lhs", "rhs"), {}, [], None, (scalar,))
    return Region([Argument("lhs", scalar), Argument("rhs", scalar)], [body], ("result",), token)
