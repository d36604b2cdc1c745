"""Reads types, attributes and locations of MLIR text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from xlalite.hlo.errors import ParseError
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.stablehlo.reading.dense import float_from_bits
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, FunctionType, Location, Opaque, Symbol, Word
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.shape import Shape

ELEMENT_TYPES = {
    "i1": DType.PRED,
    **{f"i{bits}": DType.from_name(f"s{bits}") for bits in (2, 4, 8, 16, 32, 64)},
    **{f"si{bits}": DType.from_name(f"s{bits}") for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": DType.from_name(f"u{bits}") for bits in (2, 4, 8, 16, 32, 64)},
    **{"f" + dtype.value[1:].upper(): dtype for dtype in DType if dtype.is_floating and "e" in dtype.value},
    "f16": DType.F16,
    "bf16": DType.BF16,
    "f32": DType.F32,
    "f64": DType.F64,
    "complex<f32>": DType.C64,
    "complex<f64>": DType.C128,
    "index": DType.S64,
}
ELEMENT_NAMES = {dtype: name for name, dtype in reversed(ELEMENT_TYPES.items())}
_TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)([^,]+)((?:,.*)?)>", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?|0x[0-9A-Fa-f]+", re.ASCII)


def read_type(cursor: MlirCursor) -> Shape:
    """Consumes a type: an array, a tuple, a token; what is to come is a tuple, too.

    Raises:
        ParseError: Another type is there, or one with sizes that are not known.
    """
    token = cursor.peek()
    if token.startswith("tensor<"):
        shape = cursor.array_types.get(token)
        if shape is None:
            shape = cursor.array_types[token] = _array_type(cursor, token)
        cursor.index += 1
        return shape
    if token in ("!stablehlo.token", "!mhlo.token"):
        cursor.index += 1
        return Shape.token()
    if token in ("tuple", "!stablehlo.future"):
        cursor.index += 1
        cursor.expect("<")
        cursor.enter()
        elements: list[Shape] = []
        for _ in separated(cursor, ">"):
            elements.append(read_type(cursor))
        cursor.leave()
        return Shape.tuple(elements)
    if token in ELEMENT_TYPES:  # the type of a number: `0 : i64`
        cursor.index += 1
        return Shape.array(ELEMENT_TYPES[token])
    if token == "complex":
        start = cursor.index
        cursor.index += 1
        component = cursor.skip_balanced()
        if f"complex{component}" not in ELEMENT_TYPES:
            raise cursor.error_at(start, f"there is no type 'complex{component[:20]}'")
        return Shape.array(ELEMENT_TYPES[f"complex{component}"])
    raise cursor.unexpected("a type")


def _array_type(cursor: MlirCursor, token: str) -> Shape:
    match = _TENSOR.fullmatch(token)
    if match is None or match[2] not in ELEMENT_TYPES:
        if token.startswith("tensor<*"):
            raise cursor.error("an array without a rank cannot be read: all sizes must be known")
        if "!quant" in token:
            raise cursor.error("quantised types are not supported")
        raise cursor.error(f"{token[:60]!r} is no type of an array")
    sizes = match[1].split("x")[:-1]
    if "?" in sizes:
        raise cursor.error(f"{token[:60]!r} has a size that is not known; only static shapes can be read")
    too_long = next((size for size in sizes if len(size) > 19), None)
    if too_long is not None:
        raise cursor.error(f"size {too_long[:30]} is too large")
    try:
        return array_type(ELEMENT_TYPES[match[2]], [int(size) for size in sizes], cursor.limits)
    except ValueError as problem:
        raise cursor.error(str(problem)) from None


def array_type(dtype: DType, sizes: Sequence[int], limits: ParseLimits) -> Shape:
    """The type of an array; a negative size is one that is not known.

    Raises:
        ValueError: It is more than the limits allow, or a size is not known.
    """
    if any(size < 0 for size in sizes):
        raise ValueError("an array has a size that is not known; only static shapes can be read")
    if len(sizes) > limits.rank:
        raise ValueError(f"{len(sizes)} dimensions are more than {limits.rank}")
    if math.prod(max(1, size) for size in sizes) > limits.elements:
        raise ValueError(f"an array of {dtype.value} with sizes {list(sizes)[:8]} has too many elements")
    return Shape.array(dtype, sizes)


def read_types(cursor: MlirCursor) -> tuple[Shape, ...]:
    """Consumes `(types)` or one type."""
    if not cursor.accept("("):
        return (read_type(cursor),)
    types: list[Shape] = []
    for _ in separated(cursor, ")"):
        types.append(read_type(cursor))
    return tuple(types)


def read_attribute(cursor: MlirCursor) -> Attribute:
    """Consumes the value of an attribute, its type included."""
    cursor.enter()
    value = _attribute(cursor)
    cursor.leave()
    return value


def read_untyped_attribute(cursor: MlirCursor) -> Attribute:
    """Consumes the value of an attribute; a type behind a number belongs to something else."""
    if _NUMBER.fullmatch(cursor.peek()):
        token = cursor.next()
        return _plain_number(cursor, token)
    return read_attribute(cursor)


def _attribute(cursor: MlirCursor) -> Attribute:
    token = cursor.peek()
    if token in ("true", "false"):
        cursor.index += 1
        return token == "true"
    if token.startswith('"'):
        text = cursor.string()
        if cursor.accept(":"):
            read_type(cursor)
        return text
    if _NUMBER.fullmatch(token):
        return _number(cursor)
    if token == "[":
        return read_list(cursor)
    if token == "{":
        return read_dictionary(cursor)
    if token.startswith("dense"):
        return read_dense(cursor)
    if token == "array":
        return _flat_array(cursor)
    if token.startswith("@"):
        name = cursor.name("a symbol", "@")
        while cursor.accept("::"):
            name = cursor.name("a symbol", "@")
        return Symbol(name)
    if token.startswith("#"):
        return _dialect_attribute(cursor)
    if token == "loc":
        read_location(cursor)
        return Opaque("loc")
    if token == "(":
        parameters = read_types(cursor)
        cursor.expect("->")
        return FunctionType(parameters, read_types(cursor))
    if token.startswith(("tensor<", "!")) or token in ELEMENT_TYPES or token in ("tuple", "complex"):
        return read_type(cursor)
    if token == "<":
        return _structure(cursor)
    word = Word(cursor.word("the value of an attribute"))
    if cursor.at("<"):
        return Opaque(word.text + cursor.skip_balanced())
    return word


def _number(cursor: MlirCursor) -> Attribute:
    token = cursor.next()
    shape = read_type(cursor) if cursor.accept(":") else None
    if token.startswith("0x"):
        if shape is None or not shape.dtype.is_floating:
            return _plain_number(cursor, token)
        try:
            return float_from_bits(int(token, 16), shape.dtype)
        except ValueError as error:
            raise cursor.error(str(error)) from None
    if shape is not None and shape.dtype.is_floating:
        return float(_plain_number(cursor, token))
    return _plain_number(cursor, token)


def _plain_number(cursor: MlirCursor, token: str) -> int | float:
    """The number that a token behind the cursor spells."""
    if len(token) > 400:
        raise cursor.error_at(cursor.index - 1, "the number is too long")
    is_hexadecimal = token.startswith("0x")
    if not (is_hexadecimal or token.removeprefix("-").isdecimal()):
        return float(token)
    value = int(token, 16 if is_hexadecimal else 10)
    if not -(1 << 63) <= value < 1 << 63:
        raise cursor.error_at(cursor.index - 1, f"{token[:40]} does not fit into 64 bits")
    return value


def read_list(cursor: MlirCursor) -> tuple[Attribute, ...]:
    """Consumes `[a, b, ...]`; `[a] x [b]`, as dot_general writes its dimensions, gives a pair of lists."""
    cursor.expect("[")
    values: list[Attribute] = []
    for _ in separated(cursor, "]"):
        values.append(read_attribute(cursor))
    if cursor.at("x") and cursor.tokens[cursor.index + 1] == "[":
        cursor.index += 1
        return (tuple(values), read_list(cursor))
    return tuple(values)


def read_dictionary(cursor: MlirCursor) -> dict[str, Attribute]:
    """Consumes `{key = value, unit, ...}`."""
    cursor.expect("{")
    return _entries(cursor, "}")


def _entries(cursor: MlirCursor, closing: str) -> dict[str, Attribute]:
    entries: dict[str, Attribute] = {}
    while not cursor.accept(closing):
        if entries:
            cursor.expect(",")
            if cursor.accept(closing):
                break
        start = cursor.index
        key = cursor.string() if cursor.peek().startswith('"') else cursor.word("the name of an attribute")
        if key in entries:
            raise cursor.error_at(start, f"there is already an attribute {key!r}")
        if not cursor.accept("="):
            entries[key] = True
        elif key.endswith("backend_config") and cursor.at("{"):  # for somebody else to understand, types included
            entries[key] = Opaque(cursor.skip_balanced())
        else:
            entries[key] = read_attribute(cursor)
    return entries


def read_dense(cursor: MlirCursor) -> Dense:
    """Consumes `dense<...> : type`."""
    start = cursor.index
    token = cursor.next()
    if token.startswith("dense<"):
        payload = token[6:-1]
    elif token == "dense":
        cursor.expect("<")
        payload = cursor.next()
        cursor.expect(">")
    elif token == "dense_resource":
        raise cursor.error_at(start, "the constant is left out of the text (dense_resource); its values are needed")
    else:
        raise cursor.error_at(start, f"{token!r} is no constant")
    shape = read_type(cursor) if cursor.accept(":") else None
    return Dense(payload, shape, start)


def _flat_array(cursor: MlirCursor) -> tuple[Attribute, ...]:
    """Consumes `array<i64: 1, 2>`."""
    cursor.expect("array")
    cursor.expect("<")
    cursor.word("the type of the elements")
    values: list[Attribute] = []
    if cursor.accept(":"):
        while not cursor.at(">"):
            if values:
                cursor.expect(",")
            values.append(read_attribute(cursor))
    cursor.expect(">")
    return tuple(values)


def _dialect_attribute(cursor: MlirCursor) -> Attribute:
    """Consumes `#stablehlo<kind VALUE>`, `#stablehlo.gather<...>` or something of another dialect."""
    start = cursor.index
    token = cursor.next()
    dialect, _, kind = token[1:].partition(".")
    if not cursor.at("<"):
        return Opaque(token)
    if dialect not in ("stablehlo", "chlo", "mhlo"):
        return Opaque(token + cursor.skip_balanced())
    if kind == "conv":
        cursor.index += 1
        value: Attribute = {"dim_numbers": read_convolution_dims(cursor)}
        cursor.expect(">")
        return value
    if kind and cursor.tokens[cursor.index + 2] == "=":
        return _structure(cursor)
    cursor.index += 1
    words = [cursor.word("a word")]
    while not cursor.accept(">"):
        if len(words) > 1:
            raise cursor.error_at(start, f"the attribute {token!r} is unknown")
        words.append(cursor.word("a word"))
    return Word(words[-1])


def _structure(cursor: MlirCursor) -> dict[str, Attribute]:
    cursor.expect("<")
    return _entries(cursor, ">")


def read_convolution_dims(cursor: MlirCursor) -> str:
    """Consumes `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` and returns XLA's spelling."""
    start = cursor.index
    parts = [_labels(cursor)]
    separator = cursor.next()
    if separator != "x":
        raise cursor.error_at(start, "the dimensions of a convolution are written as [...]x[...]->[...]")
    parts.append(_labels(cursor))
    cursor.expect("->")
    parts.append(_labels(cursor))
    return f"{parts[0]}_{parts[1]}->{parts[2]}"


def _labels(cursor: MlirCursor) -> str:
    cursor.expect("[")
    labels = ""
    for _ in separated(cursor, "]"):
        label = cursor.next()
        if len(label) != 1 or not (label.isdigit() or label in "bfio?"):
            raise cursor.error_at(cursor.index - 1, f"{label!r} is no label of a dimension")
        labels += label
    return labels


def read_location(cursor: MlirCursor) -> Location:
    """Consumes `loc(...)`."""
    cursor.expect("loc")
    cursor.expect("(")
    location = _location(cursor)
    cursor.expect(")")
    return location


def _location(cursor: MlirCursor) -> Location:
    cursor.enter()
    try:
        return _location_kind(cursor)
    finally:
        cursor.leave()


def _location_kind(cursor: MlirCursor) -> Location:
    token = cursor.peek()
    if token.startswith("#"):
        cursor.index += 1
        return Location(alias=token)
    if token.startswith('"'):
        return _named_location(cursor)
    if token == "loc":
        return read_location(cursor)
    kind = cursor.word("a location")
    if kind == "unknown":
        return Location()
    if kind == "callsite":
        cursor.expect("(")
        callee = _location(cursor)
        if cursor.word("'at'") != "at":
            raise cursor.error_at(cursor.index - 1, "expected 'at'")
        _location(cursor)
        cursor.expect(")")
        return Location(inner=(callee,))
    if kind == "fused":
        if cursor.at("<"):
            cursor.skip_balanced()
        cursor.expect("[")
        parts: list[Location] = []
        for _ in separated(cursor, "]"):
            parts.append(_location(cursor))
        return Location(inner=tuple(parts))
    raise _unknown_location(cursor, kind)


def _unknown_location(cursor: MlirCursor, kind: str) -> ParseError:
    return cursor.error_at(cursor.index - 1, f"{kind!r} is no kind of location")


def _named_location(cursor: MlirCursor) -> Location:
    text = cursor.string()
    if cursor.accept(":"):
        line = cursor.integer("a line")
        cursor.expect(":")
        cursor.integer("a column")
        if cursor.at("to"):
            cursor.index += 1
            if not cursor.at(":"):
                cursor.integer("a line")
            cursor.expect(":")
            cursor.integer("a column")
        return Location(file=text, line=line)
    if not cursor.accept("("):
        return Location(name=text)
    inner = _location(cursor)
    cursor.expect(")")
    return Location(name=text, inner=(inner,))
