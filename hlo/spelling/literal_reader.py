"""Reads literals: numbers, nested braces, tuples, and elided constants, which are filled with pseudo data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from xlalite.hlo.spelling.float_text import is_float_text, parse_floats
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Literal, Token
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.spelling.cursor import TokenCursor

_INTEGER = re.compile(r"[-+]?\d{1,20}", re.ASCII)
_PAYLOAD = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_ALL_BITS = (1 << 64) - 1
_NANS = frozenset({"nan", "-nan", "+nan"})
_BOOLEANS = {"true": True, "false": False}


def read_literal(cursor: TokenCursor, shape: Shape) -> Literal:
    """Consumes a literal of a shape.

    Raises:
        ParseError: The text does not fit the shape.
    """
    _check_leaves(cursor, shape)
    if cursor.at("{") and cursor.tokens[cursor.index + 1] == "...":
        cursor.index += 2
        cursor.expect("}")
        return Literal.elided(shape, cursor.limits.literal_elements)
    if shape.is_tuple:
        return _read_tuple(cursor, shape)
    if shape.is_token:
        cursor.expect("token")
        return Literal(Token())
    if shape.element_count > cursor.limits.literal_elements:
        raise cursor.error(f"literal: {shape.text()} has more than {cursor.limits.literal_elements} elements")
    first = cursor.index
    if shape.rank and shape.element_count and not shape.dtype.is_complex and not cursor.at("{"):
        return _first_element(cursor, shape)
    words = _read_words(cursor, shape)
    return Literal.owning(_to_array(cursor, first, shape, words), shape)


def _check_leaves(cursor: TokenCursor, shape: Shape) -> None:
    leaves = [leaf for _, leaf in shape.leaves()]
    if not all(leaf.is_array or leaf.is_token for leaf in leaves) or any(
        min(leaf.dims, default=0) < 0 for leaf in leaves
    ):
        raise cursor.error(f"literal: there are no values of shape {shape.text()}")


def _first_element(cursor: TokenCursor, shape: Shape) -> Literal:
    """A number in the place of an array: as in XLA the first element, all others are 0."""
    scalar = Shape.array(shape.dtype)
    number = _to_array(cursor, cursor.index, scalar, [_read_number(cursor)])
    if Literal.owning(number, scalar).is_all(0):
        return Literal(np.broadcast_to(number, shape.dims), shape)
    values = np.zeros(shape.dims, shape.dtype.numpy)
    values[(0,) * shape.rank] = number
    return Literal.owning(values, shape)


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
            if word not in _BOOLEANS and not _INTEGER.fullmatch(word):
                raise _bad_word(cursor, first, word, "true, false or an integer", shape)
        flags = [_BOOLEANS[word] if word in _BOOLEANS else int(word) != 0 for word in words]
        return np.array(flags, np.bool_).reshape(shape.dims)
    for word in words:
        if not _INTEGER.fullmatch(word):
            raise _bad_word(cursor, first, word, "an integer", shape)
    numbers = list(map(int, words))
    low, high = _integer_range(dtype)
    for number, word in zip(numbers, words, strict=True):
        if not low <= number <= high:
            raise _bad_word(cursor, first, word, f"an integer from {low} to {high}", shape)
    if dtype.bits == 64:
        return np.array([number & _ALL_BITS for number in numbers], np.uint64).view(dtype.numpy).reshape(shape.dims)
    return np.array(numbers, np.int64).astype(dtype.numpy).reshape(shape.dims)


def _bad_word(cursor: TokenCursor, first: int, word: str, expected: str, shape: Shape) -> Exception:
    """The error for the first occurrence of a word in the literal."""
    token = word.partition("(")[0]
    index = cursor.tokens.index(token, first) if token in cursor.tokens[first : cursor.index] else first
    return cursor.error_at(index, f"literal: found {word[:40]!r}, expected {expected} for {shape.dtype.value}")


def _integer_range(dtype: DType) -> tuple[int, int]:
    """What may be written; 64 bits may be written signed or unsigned, as in XLA."""
    if dtype.bits == 64:
        return -(1 << 63), _ALL_BITS
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1
