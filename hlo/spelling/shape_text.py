"""Reads shapes: `f32[2,<=3]{1,0:T(8,128)}`, `(f32[], s32[2])`, `token[]`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Layout, Shape

if TYPE_CHECKING:
    from xlalite.hlo.spelling.cursor import TokenCursor

_COMPACT = re.compile(r"([a-z]\w*)\[([\d,<=?]*)\](?:\{([\d,]*)(?::([^{}\s]*))?\})?", re.ASCII)
_DIMENSION = re.compile(r"(<=)?(\d{1,19})|\?", re.ASCII)
_LAYOUT_START = re.compile(r"\d+", re.ASCII)
_DTYPES = {dtype.value: dtype for dtype in DType if dtype not in (DType.TUPLE, DType.BUFFER)}


def at_shape(cursor: TokenCursor) -> bool:
    """Whether a shape starts at the cursor."""
    token = cursor.tokens[cursor.index]
    if token in cursor.shapes or token == "(":
        return True
    if token.partition("[")[0] in _DTYPES:
        return "[" in token or cursor.tokens[cursor.index + 1] == "["
    return token == "b" and cursor.tokens[cursor.index + 1] == "("


def read_shape(cursor: TokenCursor) -> Shape:
    """Consumes a shape.

    Raises:
        ParseError: There is none, or it is impossible.
    """
    token = cursor.peek()
    if token == "(":
        return _read_tuple(cursor)
    if token == "b":
        return _read_buffer(cursor)
    start = cursor.index
    try:
        match = _COMPACT.fullmatch(token)
        if match is None:
            return _read_spaced(cursor)
        dtype = _dtype(cursor, match[1])
        cursor.index += 1
        sizes = match[2].split(",") if match[2] else []
        layout = None
        if match[3] is not None and (match[3] or match[4]):
            order = list(filter(None, match[3].split(",")))
            if len(max(order, key=len, default="")) > len(str(cursor.limits.rank)):
                raise cursor.error(f"shape: the layout of {token[:40]!r} names a dimension that no array has")
            layout = Layout(tuple(map(int, order)), match[4] or "")
        elif match[3] is None and _layout_follows(cursor):
            layout = _read_layout(cursor)
            return _array(cursor, start, dtype, sizes, layout)
        shape = _array(cursor, start, dtype, sizes, layout)
    except ShapeError as error:
        raise cursor.error_at(start, error) from error
    cursor.shapes[token] = shape
    return shape


def _dtype(cursor: TokenCursor, name: str) -> DType:
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise cursor.error(f"shape: {name!r} is no element type")
    return dtype


def _read_tuple(cursor: TokenCursor) -> Shape:
    cursor.expect("(")
    cursor.enter()
    elements: list[Shape] = []
    for _ in separated(cursor, ")"):
        elements.append(cursor.shape())
    cursor.leave()
    return Shape.tuple(elements)


def _read_buffer(cursor: TokenCursor) -> Shape:
    cursor.expect("b")
    cursor.expect("(")
    start = cursor.index
    array = cursor.shape()
    if not array.is_array:
        raise cursor.error_at(start, f"shape: a buffer holds an array, found {array.text()}")
    cursor.expect(")")
    return Shape(DType.BUFFER, elements=(array,))


def _read_spaced(cursor: TokenCursor) -> Shape:
    """A shape with spaces inside, token by token."""
    start = cursor.index
    name = cursor.peek()
    if name not in _DTYPES:
        raise cursor.unexpected("a shape")
    cursor.index += 1
    cursor.expect("[")
    sizes: list[str] = []
    for _ in separated(cursor, "]"):
        bound = cursor.accept("<=")
        sizes.append(("<=" if bound else "") + cursor.peek())
        cursor.index += bool(cursor.peek())
    layout = _read_layout(cursor) if _layout_follows(cursor) else None
    return _array(cursor, start, _DTYPES[name], sizes, layout)


def _layout_follows(cursor: TokenCursor) -> bool:
    if not cursor.at("{"):
        return False
    following = cursor.tokens[cursor.index + 1]
    return following == ":" or bool(_LAYOUT_START.fullmatch(following))


def _read_layout(cursor: TokenCursor) -> Layout:
    start = cursor.index
    cursor.expect("{")
    order: list[int] = []
    while not cursor.at("}") and not cursor.at(":"):
        if order:
            cursor.expect(",")
        order.append(cursor.integer())
    if cursor.accept("}"):
        return Layout(tuple(order))
    first = cursor.index + 1
    cursor.index = start
    cursor.skip_balanced()
    return Layout(tuple(order), cursor.source.between(first, cursor.index - 1).strip())


def _array(cursor: TokenCursor, start: int, dtype: DType, sizes: list[str], layout: Layout | None) -> Shape:
    if not dtype.is_array:
        if sizes or layout is not None:
            raise cursor.error_at(start, f"shape: {dtype.value} has neither sizes nor a layout")
        return Shape(dtype)
    if len(sizes) > cursor.limits.rank:
        raise cursor.error_at(start, f"shape: {len(sizes)} dimensions are more than {cursor.limits.rank}")
    matches = [_DIMENSION.fullmatch(size) for size in sizes]
    dims: list[int] = []
    for match, size in zip(matches, sizes, strict=True):
        if match is None:
            raise cursor.error_at(start, f"shape: found size {size[:40]!r}, expected an integer, <=integer or ?")
        dims.append(int(match[2]) if match[2] else -1)
    shape = Shape.array(dtype, dims, layout, [size[0] in "<?" for size in sizes])
    if math.prod(max(dim, 1) for dim in dims) > cursor.limits.elements:
        raise cursor.error_at(start, f"shape: {shape.text()} has more than {cursor.limits.elements} elements")
    return shape
