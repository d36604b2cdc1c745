"""Reads literals: numbers, nested braces, tuples, and elided constants, which are filled with pseudo data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.dtype import DType
from xlalite.hlo.float_text import is_float_text, parse_floats
from xlalite.hlo.literal import Array, Literal, Token
from xlalite.hlo.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.cursor import TokenCursor

_INTEGER = re.compile(r"[-+]?\d{1,20}", re.ASCII)
_PAYLOAD = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_NANS = frozenset({"nan", "-nan", "+nan"})
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_literal(cursor: TokenCursor, shape: Shape) -> Literal:
    """Consumes a literal of a shape.

    Raises:
        ParseError: The text does not fit the shape.
    """
    _check_size(cursor, shape)
    if cursor.at("{") and cursor.tokens[cursor.index + 1] == "...":
        cursor.index += 2
        cursor.expect("}")
        return pseudo_literal(shape)
    if shape.is_tuple:
        return _read_tuple(cursor, shape)
    if shape.is_token:
        cursor.expect("token")
        return Literal(Token())
    first = cursor.index
    words = _read_words(cursor, shape)
    return Literal(_to_array(cursor, first, shape, words), shape)


def pseudo_literal(shape: Shape) -> Literal:
    """What stands in for an elided constant: small numbers that depend on nothing but the shape."""
    if shape.is_tuple:
        return Literal(tuple(pseudo_literal(element) for element in shape.elements), shape)
    return Literal(_pseudo_array(shape), shape) if shape.is_array else Literal(Token())


def _check_size(cursor: TokenCursor, shape: Shape) -> None:
    leaves = [leaf for _, leaf in shape.leaves()]
    if not all(leaf.is_array or leaf.is_token for leaf in leaves) or any(
        min(leaf.dims, default=0) < 0 for leaf in leaves
    ):
        raise cursor.error(f"literal: there are no values of shape {shape.text()}")
    if sum(leaf.element_count for leaf in leaves) > cursor.limits.literal_elements:
        raise cursor.error(f"literal: {shape.text()} has more than {cursor.limits.literal_elements} elements")


def _read_tuple(cursor: TokenCursor, shape: Shape) -> Literal:
    cursor.expect("(")
    elements: list[Literal] = []
    for position, element in enumerate(shape.elements):
        if position:
            cursor.accept(",")
        elements.append(read_literal(cursor, element))
    cursor.expect(")")
    return Literal(tuple(elements), shape)


def _read_words(cursor: TokenCursor, shape: Shape) -> list[str]:
    """The words of the elements, two for a complex one; the braces are checked against the sizes."""
    dims, rank = shape.dims, shape.rank
    if not rank:
        return _read_element(cursor, shape)
    tokens = cursor.tokens
    plain = not shape.dtype.is_complex
    words: list[str] = []
    counts = [0] * (rank + 1)
    cursor.expect("{")
    index, depth = cursor.index, 1
    while depth:
        token = tokens[index]
        if token == "}":
            if counts[depth] != dims[depth - 1]:
                raise cursor.error_at(index, _wrong_count(shape, depth, counts[depth]))
            depth -= 1
            counts[depth] += 1
        elif token == "{":
            if depth == rank:
                raise cursor.error_at(index, f"literal: {shape.text()} has only {rank} levels of braces")
            depth += 1
            counts[depth] = 0
        elif token != ",":
            if depth != rank or not token:
                cursor.index = index
                raise cursor.unexpected(f"{'a number' if depth == rank else repr('{')} in a literal of {shape.text()}")
            counts[depth] += 1
            if counts[depth] > dims[depth - 1]:
                raise cursor.error_at(index, _wrong_count(shape, depth, counts[depth]))
            if plain and tokens[index + 1] != "(":
                words.append(token)
            else:
                cursor.index = index
                words.extend(_read_element(cursor, shape))
                index = cursor.index - 1
        index += 1
    cursor.index = index
    return words


def _wrong_count(shape: Shape, depth: int, count: int) -> str:
    return (
        f"literal: found {count} elements in dimension {depth - 1}, expected {shape.dims[depth - 1]} in {shape.text()}"
    )


def _read_element(cursor: TokenCursor, shape: Shape) -> list[str]:
    if not shape.dtype.is_complex:
        return [_read_number(cursor)]
    if not cursor.accept("("):
        return [_read_number(cursor), "0"]
    real = _read_number(cursor)
    cursor.expect(",")
    imaginary = _read_number(cursor)
    cursor.expect(")")
    return [real, imaginary]


def _read_number(cursor: TokenCursor) -> str:
    """One number word; the payload of a NaN is joined to it."""
    word = cursor.word("a number")
    if word not in _NANS or not cursor.accept("("):
        return word
    if not _PAYLOAD.fullmatch(cursor.peek()):
        raise cursor.unexpected("the payload of a NaN like 0x123")
    payload = cursor.word("a payload")
    cursor.expect(")")
    return f"{word}({payload})"


def _to_array(cursor: TokenCursor, first: int, shape: Shape, words: list[str]) -> Array:
    dtype = shape.dtype
    if dtype.is_floating or dtype.is_complex:
        for word in words:
            if not is_float_text(word):
                raise _bad_word(cursor, first, word, "a number", shape)
        flat, bad = parse_floats(words, dtype.component)
        if bad is not None:
            raise _bad_word(cursor, first, words[bad], "a number in range", shape)
        return flat.view(dtype.numpy).reshape(shape.dims)
    if dtype is DType.PRED:
        for word in words:
            if word not in _BOOLEANS:
                raise _bad_word(cursor, first, word, "true, false, 1 or 0", shape)
        return np.array([_BOOLEANS[word] for word in words], np.bool_).reshape(shape.dims)
    for word in words:
        if not _INTEGER.fullmatch(word):
            raise _bad_word(cursor, first, word, "an integer", shape)
    numbers = list(map(int, words))
    low, high = _integer_range(dtype)
    for number, word in zip(numbers, words, strict=True):
        if not low <= number <= high:
            raise _bad_word(cursor, first, word, f"an integer from {low} to {high}", shape)
    wide = np.array(numbers, np.uint64 if dtype.is_unsigned else np.int64)
    return wide.astype(dtype.numpy).reshape(shape.dims)


def _bad_word(cursor: TokenCursor, first: int, word: str, expected: str, shape: Shape) -> Exception:
    """The error for the first occurrence of a word in the literal."""
    token = word.partition("(")[0]
    index = cursor.tokens.index(token, first) if token in cursor.tokens[first : cursor.index] else first
    return cursor.error_at(index, f"literal: found {word[:40]!r}, expected {expected} for {shape.dtype.value}")


def _integer_range(dtype: DType) -> tuple[int, int]:
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _pseudo_array(shape: Shape) -> Array:
    mixed = np.arange(shape.element_count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x1234567)
    fraction = (mixed >> np.uint64(40)).astype(np.float64) / (1 << 24)
    dtype = shape.dtype
    values: npt.NDArray[Any]
    if dtype is DType.PRED:
        values = fraction < 0.5
    elif dtype.is_integral:
        low, high = (max(-8, _integer_range(dtype)[0]), min(8, _integer_range(dtype)[1]))
        values = np.floor(low + fraction * (high - low + 1))
    elif dtype is DType.F8E8M0FNU:
        values = fraction + 0.5
    else:
        values = fraction * 2 - 1
    return values.astype(dtype.numpy).reshape(shape.dims)
