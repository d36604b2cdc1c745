"""Writes literals as XLA does: nested braces in logical row-major order, shortest numbers that read back the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.spelling.float_text import format_floats
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Literal


def format_literal(literal: Literal) -> str:
    """The literal on one line, without its shape; `{...}` for values that a text had left out."""
    if literal.shape.is_tuple:
        return "( " + ", ".join(map(format_literal, literal.elements)) + " )"
    if literal.shape.is_token:
        return "token"
    if literal.is_elided:
        return "{...}"
    return format_array(literal.value, literal.shape.dtype)


def format_array(value: Array, dtype: DType) -> str:
    """An array as nested braces, a scalar as a number."""
    words = _element_words(value, dtype)
    if value.ndim == 0:
        return words[0] if dtype is not DType.PRED else ("true" if words[0] == "1" else "false")
    if value.ndim == 1:
        return "{" + ", ".join(words) + "}"
    return _nested(words, value.shape)


def _element_words(value: Array, dtype: DType) -> list[str]:
    flat = np.ascontiguousarray(value).reshape(-1)
    if dtype.is_floating:
        return format_floats(flat, dtype)
    if dtype.is_complex:
        words = format_floats(flat.view(dtype.component.numpy), dtype.component)
        return [f"({real}, {imaginary})" for real, imaginary in zip(words[::2], words[1::2], strict=True)]
    return list(map(str, flat.astype(np.uint64 if dtype is DType.U64 else np.int64).tolist()))


def _nested(words: Sequence[str], sizes: Sequence[int]) -> str:
    """Joins the words from the innermost dimension outwards; from rank 4 on, comments number the blocks."""
    rank = len(sizes)
    row = sizes[-1]
    space = " " if row > 1 else ""
    blocks = [
        "{" + space + ", ".join(words[i * row : (i + 1) * row]) + space + "}" for i in range(_product(sizes[:-1]))
    ]
    for dimension in range(rank - 2, -1, -1):
        size = sizes[dimension]
        numbered = rank > 3 and dimension > 0
        joined: list[str] = []
        for i in range(_product(sizes[:dimension])):
            comment = f" /*i{dimension - 1}={i % sizes[dimension - 1]}*/" if numbered else ""
            joined.append("{" + comment + " " + ", ".join(blocks[i * size : (i + 1) * size]) + " }")
        blocks = joined
    return blocks[0]


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
