"""Codecs for the values that attributes of operations have."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from xlalite.hlo.spelling.attributes import Codec, Cursor
from xlalite.hlo.spelling.literal_text import format_literal
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.quoting import quote
from xlalite.hlo.types.shape import Shape, ShapeIndex

if TYPE_CHECKING:
    from xlalite.hlo.types.convolution_dims import ConvolutionDims
    from xlalite.hlo.types.replica_groups import ReplicaGroups
    from xlalite.hlo.types.window import Window

E = TypeVar("E", bound=enum.Enum)
T = TypeVar("T")


class Precision(enum.Enum):
    """How exactly the operands of a dot or convolution are used."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"
    PACKED_NIBBLE = "packed_nibble"


def list_codec(
    name: str, parse_one: Callable[[Cursor], T], format_one: Callable[[T], str], *, separator: str = ","
) -> Codec[tuple[T, ...]]:
    """A codec for `{a, b, c}` lists of one kind of element; `separator` is what the printer writes between them."""

    def parse(cursor: Cursor) -> tuple[T, ...]:
        cursor.expect("{")
        return tuple(parse_one(cursor) for _ in separated(cursor, "}"))

    return Codec(name, parse, lambda values: "{" + separator.join(map(format_one, values)) + "}")


def enum_codec(enum_class: type[E], *, what: str, any_case: bool = False) -> Codec[E]:
    """A codec for a closed set of words; the member's value is the word, which may be read in capitals."""
    by_word = {member.value: member for member in enum_class}

    def parse(cursor: Cursor) -> E:
        word = cursor.peek().lower() if any_case else cursor.peek()
        if word not in by_word:
            raise cursor.error(f"{what}: found {_quoted(word)}, expected one of {', '.join(by_word)}")
        cursor.word(what)
        return by_word[word]

    return Codec(what, parse, lambda member: str(member.value))


def _quoted(word: str) -> str:
    """A word for a message; of a long one the beginning."""
    return repr(word if len(word) <= 40 else word[:40] + "...")


def _parse_bool(cursor: Cursor) -> bool:
    word = cursor.peek()
    if word not in ("true", "false"):
        raise cursor.error(f"found {_quoted(word)}, expected true or false")
    cursor.word("true or false")
    return word == "true"


def format_float(value: float) -> str:
    """The shortest of %.6g, %.9g and %.17g that reads back as the same number."""
    for digits in (6, 9):
        text = f"{value:.{digits}g}"
        if float(text) == value:
            return text
    return f"{value:.17g}"


INT: Codec[int] = Codec("integer", lambda cursor: cursor.integer(), str)
BOOL: Codec[bool] = Codec("boolean", _parse_bool, lambda value: "true" if value else "false")
FLOAT: Codec[float] = Codec("number", lambda cursor: cursor.number(), format_float)
STRING: Codec[str] = Codec("quoted string", lambda cursor: cursor.string(), quote)
WORD: Codec[str] = Codec("word", lambda cursor: cursor.word("a word"), str)
VERBATIM: Codec[str] = Codec("text kept as it is", lambda cursor: cursor.verbatim(), str)
INT_LIST: Codec[tuple[int, ...]] = list_codec("list of integers", lambda cursor: cursor.integer(), str)
BOOL_LIST: Codec[tuple[bool, ...]] = list_codec("list of booleans", _parse_bool, BOOL.format)


# slice={[0:4], [1:9:2]}: (start, limit, stride) of each dimension.


def _parse_slice_dimension(cursor: Cursor) -> tuple[int, int, int]:
    cursor.expect("[")
    start = cursor.integer()
    cursor.expect(":")
    limit = cursor.integer()
    stride = cursor.integer() if cursor.accept(":") else 1
    cursor.expect("]")
    return start, limit, stride


def _format_slice(dimensions: tuple[tuple[int, int, int], ...]) -> str:
    strided = any(stride != 1 for _, _, stride in dimensions)
    parts = (f"[{start}:{limit}:{stride}]" if strided else f"[{start}:{limit}]" for start, limit, stride in dimensions)
    return "{" + ", ".join(parts) + "}"


SLICE: Codec[tuple[tuple[int, int, int], ...]] = Codec(
    "list of [start:limit:stride]", list_codec("", _parse_slice_dimension, str).parse, _format_slice
)


# padding=1_2x0_0_1: (low, high, interior) of each dimension; nothing at all for a scalar.

# Numbers of at most 18 digits fit into 64 bits.
_PADDING = r"(?:(?:^|x)-?\d{1,18}_-?\d{1,18}(?:_-?\d{1,18})?)+"


def _parse_padding(cursor: Cursor) -> tuple[tuple[int, int, int], ...]:
    word = cursor.peek()
    if not re.fullmatch(_PADDING, word, re.ASCII):
        if word in (",", "}") or not cursor.touching():
            return ()
        raise cursor.error(f"padding: found {_quoted(word)}, expected low_high or low_high_interior joined by x")
    cursor.word("padding")
    dimensions: list[tuple[int, int, int]] = []
    for part in word.split("x"):
        low, high, *interior = map(int, part.split("_"))
        dimensions.append((low, high, interior[0] if interior else 0))
    return tuple(dimensions)


def _format_padding(dimensions: tuple[tuple[int, int, int], ...]) -> str:
    inner = any(interior for _, _, interior in dimensions)
    return "x".join(f"{low}_{high}_{interior}" if inner else f"{low}_{high}" for low, high, interior in dimensions)


PADDING: Codec[tuple[tuple[int, int, int], ...]] = Codec(
    "low_high_interior joined by x", _parse_padding, _format_padding
)


# window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}, fields in any order.

_BY_X = r"(?:(?:^|x)-?\d{1,18})+"
_WINDOW_FIELDS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def _parse_window(cursor: Cursor) -> Window:
    from xlalite.hlo.types.window import Window, WindowDimension

    cursor.expect("{")
    found: dict[str, list[str]] = {}
    while not cursor.accept("}"):
        if found:
            cursor.accept(",")
        name = cursor.peek().removesuffix("=")
        if name not in _WINDOW_FIELDS or not cursor.peek().endswith("=") or name in found:
            raise cursor.error(
                f"window: found {_quoted(cursor.peek())}, expected one of {', '.join(_WINDOW_FIELDS)}, "
                "each once, before '='"
            )
        cursor.word("a window field")
        word = cursor.peek()
        if not re.fullmatch(_PADDING if name == "pad" else _BY_X, word, re.ASCII):
            raise cursor.error(f"window: {name}: found {_quoted(word)}, expected one entry a dimension, joined by x")
        cursor.word(name)
        found[name] = word.split("x")
    rank = len(found.get("size", []))
    for name, words in found.items():
        if len(words) != rank:
            raise cursor.error(f"window: {name} has {len(words)} entries, size has {rank}")
    pads = [tuple(map(int, word.split("_"))) for word in found.get("pad", ["0_0"] * rank)]
    if any(len(pad) != 2 for pad in pads):
        raise cursor.error("window: pad entries are low_high")
    numbers = {
        name: [int(word) for word in found.get(name, [default] * rank)]
        for name, default in (
            ("size", "0"),
            ("stride", "1"),
            ("lhs_dilate", "1"),
            ("rhs_dilate", "1"),
            ("rhs_reversal", "0"),
        )
    }
    window = Window(
        tuple(
            WindowDimension(
                numbers["size"][i],
                numbers["stride"][i],
                pads[i][0],
                pads[i][1],
                numbers["lhs_dilate"][i],
                numbers["rhs_dilate"][i],
                bool(numbers["rhs_reversal"][i]),
            )
            for i in range(rank)
        )
    )
    if window.problem is not None:
        raise cursor.error(window.problem)
    return window


WINDOW: Codec[Window] = Codec("window", _parse_window, lambda window: "{" + str(window) + "}")


# dim_labels=b01f_01io->b01f

_DIM_LABELS = r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)"


def _parse_dim_labels(cursor: Cursor) -> ConvolutionDims:
    match = re.fullmatch(_DIM_LABELS, cursor.peek(), re.ASCII)
    if match is None:
        raise cursor.error(f"dim_labels: found {cursor.peek()!r}, expected labels like b01f_01io->b01f")
    from xlalite.hlo.types.convolution_dims import ConvolutionDims

    dims = ConvolutionDims(match[1], match[2], match[3])
    if dims.problem is not None:
        raise cursor.error(f"dim_labels: {dims.problem}")
    cursor.word("dim_labels")
    return dims


DIM_LABELS: Codec[ConvolutionDims] = Codec("dimension labels", _parse_dim_labels, str)


# operand_precision={highest,default}; all default is the empty tuple.

_PRECISION = enum_codec(Precision, what="precision", any_case=True)
_PRECISIONS = list_codec("list of precisions", _PRECISION.parse, _PRECISION.format)


def _parse_precisions(cursor: Cursor) -> tuple[Precision, ...]:
    precisions = _PRECISIONS.parse(cursor)
    return () if all(precision is Precision.DEFAULT for precision in precisions) else precisions


PRECISION: Codec[tuple[Precision, ...]] = Codec(_PRECISIONS.name, _parse_precisions, _PRECISIONS.format)


# replica_groups={{0,1},{2,3}} or [2,2]<=[4] or [2,2]<=[2,2]T(1,0) or mesh['a'=2,'b'=2] {'a'}


def _parse_replica_groups(cursor: Cursor) -> ReplicaGroups:
    from xlalite.hlo.spelling.replica_group_text import read_replica_groups

    return read_replica_groups(cursor)


REPLICA_GROUPS: Codec[ReplicaGroups] = Codec("replica groups", _parse_replica_groups, str)


# source_target_pairs={{0,1},{1,0}}


def _parse_pair(cursor: Cursor) -> tuple[int, int]:
    numbers = INT_LIST.parse(cursor)
    if len(numbers) != 2:
        raise cursor.error(f"found {len(numbers)} numbers, expected a pair {{a,b}}")
    return numbers[0], numbers[1]


INT_LISTS: Codec[tuple[tuple[int, ...], ...]] = list_codec("list of lists", INT_LIST.parse, INT_LIST.format)
PAIRS: Codec[tuple[tuple[int, int], ...]] = list_codec("list of pairs", _parse_pair, INT_LIST.format)


# Shapes and literals.

SHAPE: Codec[Shape] = Codec("shape", lambda cursor: cursor.shape(), str)
SHAPE_LIST: Codec[tuple[Shape, ...]] = list_codec("list of shapes", lambda cursor: cursor.shape(), str, separator=", ")


# literal=( ( s32[2] {1, 2}, f32[] 0.5 ) ): each array has its shape before it.


def _parse_literal(cursor: Cursor) -> Literal:
    cursor.expect("(")
    literal = _parse_typed_literal(cursor)
    cursor.expect(")")
    return literal


def _parse_typed_literal(cursor: Cursor) -> Literal:
    if not cursor.accept("("):
        return cursor.literal(cursor.shape())
    cursor.enter()
    elements: list[Literal] = []
    for _ in separated(cursor, ")"):
        elements.append(_parse_typed_literal(cursor))
    cursor.leave()
    return Literal(tuple(elements))


def _format_literal(literal: Literal) -> str:
    return f"( {_format_typed_literal(literal)} )"


def _format_typed_literal(literal: Literal) -> str:
    if literal.shape.is_tuple:
        return "( " + ", ".join(map(_format_typed_literal, literal.elements)) + " )"
    return f"{literal.shape} {format_literal(literal)}"


LITERAL: Codec[Literal] = Codec("(shape literal)", _parse_literal, _format_literal)


# output_to_operand_aliasing={{}: (0, {}), {1}: (1, {0})}: (output index, operand number, operand index).

OutputAlias = tuple[ShapeIndex, int, ShapeIndex]


def _parse_alias(cursor: Cursor) -> OutputAlias:
    output = INT_LIST.parse(cursor)
    cursor.expect(":")
    cursor.expect("(")
    operand = cursor.integer()
    cursor.expect(",")
    index = INT_LIST.parse(cursor)
    cursor.expect(")")
    return output, operand, index


def _format_alias(alias: OutputAlias) -> str:
    output, operand, index = alias
    return f"{INT_LIST.format(output)}: ({operand}, {INT_LIST.format(index)})"


ALIASING: Codec[tuple[OutputAlias, ...]] = list_codec("list of aliases", _parse_alias, _format_alias, separator=", ")
