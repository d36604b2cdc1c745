"""Shapes, layouts and signatures as messages."""

from __future__ import annotations

import math
import re

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.hlo.types.shape import Layout, ProgramShape, Shape

# XLA's spelling of a size without bound, and of `*` in a tile.
_UNBOUNDED = -(1 << 63)
_WORDS = {DType.OPAQUE: "OPAQUE_TYPE"}
_DTYPES = {_WORDS.get(dtype, dtype.name): dtype for dtype in DType}
_TAG = re.compile(r"(T|L|#|\*|E|S|SC|M)\(([^()]*)\)((?:\([^()]*\))*)", re.ASCII)
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_TILE_SIZE = re.compile(r"\d{1,18}|\*", re.ASCII)
_NUMBER_TAGS = {
    "L": "tail_padding_alignment_in_elements",
    "E": "element_size_in_bits",
    "S": "memory_space",
    "M": "dynamic_shape_metadata_prefix_bytes",
}
_TYPE_TAGS = {"#": "index_primitive_type", "*": "pointer_primitive_type"}
_VERBATIM = "tags"


def read_shape(message: ProtoMessage, depth: int = 0) -> Shape:
    """The shape that a `ShapeProto` says.

    Raises:
        ParseError: It says none.
    """
    limits = DEFAULT_LIMITS
    if depth > limits.nesting:
        raise message.error(f"tuples are nested more than {limits.nesting} deep")
    dtype = _DTYPES.get(message.word("element_type"))
    elements = [read_shape(element, depth + 1) for element in message.messages("tuple_shapes")]
    if dtype is DType.TUPLE:
        return Shape.tuple(elements)
    if dtype is DType.BUFFER:
        if len(elements) != 1 or not elements[0].is_array:
            raise message.error("a buffer holds one array")
        return Shape(DType.BUFFER, elements=tuple(elements))
    if dtype is None:
        raise message.error(f"found element type {message.word('element_type')}, which no value has")
    dims = message.integers("dimensions")
    if elements or (dims and not dtype.is_array):
        raise message.error(f"an element of type {dtype.value} has neither sizes nor parts of its own here")
    if not dtype.is_array:
        return Shape(dtype)
    if len(dims) > limits.rank:
        raise message.error(f"{len(dims)} dimensions are more than {limits.rank}")
    flags = message.booleans("is_dynamic_dimension")
    if any(flags) and len(flags) != len(dims):
        raise message.error(f"found {len(flags)} dynamic flags for {len(dims)} dimensions")
    if math.prod(max(dim, 1) for dim in dims) > limits.elements:
        raise message.error(f"an array of sizes {list(dims)} has more than {limits.elements} elements")
    layout = _read_layout(message.message("layout"), len(dims)) if message.has("layout") else None
    try:
        return Shape.array(dtype, [-1 if dim == _UNBOUNDED else dim for dim in dims], layout, flags)
    except ShapeError as error:
        raise message.error(str(error)) from error


def write_shape(shape: Shape, message: ProtoMessage) -> None:
    """Fills a `ShapeProto`."""
    message.put_word("element_type", _WORDS.get(shape.dtype, shape.dtype.name))
    for element in shape.elements:
        write_shape(element, message.append("tuple_shapes"))
    if not shape.is_array:
        return
    message.put_all("dimensions", [_UNBOUNDED if dim < 0 else dim for dim in shape.dims])
    message.put_all("is_dynamic_dimension", shape.dynamic or (False,) * shape.rank)
    _write_layout(shape.layout or Layout.row_major(shape.rank), message.open("layout"))


def read_signature(message: ProtoMessage) -> ProgramShape:
    """The signature that a `ProgramShapeProto` says.

    Raises:
        ParseError: It says none.
    """
    return ProgramShape(tuple(map(read_shape, message.messages("parameters"))), read_shape(message.message("result")))


def write_signature(signature: ProgramShape, names: tuple[str, ...], message: ProtoMessage) -> None:
    """Fills a `ProgramShapeProto`."""
    for parameter in signature.parameters:
        write_shape(parameter, message.append("parameters"))
    write_shape(signature.result, message.open("result"))
    message.put_all("parameter_names", names)


def _read_layout(message: ProtoMessage, rank: int) -> Layout | None:
    """The layout, or None for that of a scalar, which has no text."""
    order, tags = message.integers("minor_to_major"), _read_tags(message)
    return Layout(order, tags) if rank or order or tags else None


def _read_tags(message: ProtoMessage) -> str:
    for text in message.messages("xlalite_text"):
        if text.text("name") == _VERBATIM:
            return text.text("text")
    tiles = "".join(
        "(" + ",".join("*" if size == _UNBOUNDED else str(size) for size in tile.integers("dimensions")) + ")"
        for tile in message.messages("tiles")
    )
    parts = ["T" + tiles] if tiles else []
    if message.integer("tail_padding_alignment_in_elements") > 1:
        parts.append(f"L({message.integer('tail_padding_alignment_in_elements')})")
    for letter, name in _TYPE_TAGS.items():
        if message.integer(name):
            parts.append(f"{letter}({message.word(name).lower()})")
    parts.extend(f"{letter}({message.integer(_NUMBER_TAGS[letter])})" for letter in "ES" if _has(message, letter))
    for split in message.messages("split_configs"):
        parts.append(f"SC({split.integer('dimension')}:{','.join(map(str, split.integers('split_indices')))})")
    parts.extend(f"M({message.integer(_NUMBER_TAGS['M'])})" for _ in range(_has(message, "M")))
    return "".join(parts)


def _has(message: ProtoMessage, letter: str) -> bool:
    return message.integer(_NUMBER_TAGS[letter]) != 0


def _write_layout(layout: Layout, message: ProtoMessage) -> None:
    message.put_all("minor_to_major", layout.minor_to_major)
    message.put("tail_padding_alignment_in_elements", 1)
    if not layout.tags:
        return
    _write_tags(layout.tags, message)
    if _read_tags(message) != layout.tags:
        message.append("xlalite_text").put("name", _VERBATIM).put("text", layout.tags)


def _write_tags(tags: str, message: ProtoMessage) -> None:
    """Fills the fields that the tags name; what is not understood is left out."""
    for letter, inside, more in _TAG.findall(tags):
        if letter == "T":
            for tile in (inside, *filter(None, re.split(r"[()]+", more))):
                sizes = tile.split(",")
                if all(map(_TILE_SIZE.fullmatch, sizes)):
                    dims = [_UNBOUNDED if size == "*" else int(size) for size in sizes]
                    message.append("tiles").put_all("dimensions", dims)
        elif letter == "SC":
            dimension, _, indices = inside.partition(":")
            if all(map(_INTEGER.fullmatch, (dimension, *indices.split(",")))):
                split = message.append("split_configs").put("dimension", int(dimension))
                split.put_all("split_indices", map(int, indices.split(",")))
        elif letter in _TYPE_TAGS:
            if inside in ("u8", "u16", "u32", "u64"):
                message.put_word(_TYPE_TAGS[letter], inside.upper())
        elif _INTEGER.fullmatch(inside):
            message.put(_NUMBER_TAGS[letter], int(inside))
