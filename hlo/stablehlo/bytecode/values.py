"""Types and attributes of MLIR bytecode as the records that StableHLO text is read into.

The dialects builtin, vhlo (of portable artifacts) and stablehlo encode theirs by a number and fields; what a dialect
leaves to text is read as text; the attributes of others are kept unread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.container import Container, Entry, pick
from xlalite.hlo.stablehlo.bytecode.entries import EntryTable
from xlalite.hlo.stablehlo.bytecode.shardings import ShardingReader
from xlalite.hlo.stablehlo.reading.attribute_reader import (
    ELEMENT_NAMES,
    ELEMENT_TYPES,
    array_type,
    read_attribute,
    read_type,
)
from xlalite.hlo.stablehlo.reading.dense import float_from_bits
from xlalite.hlo.stablehlo.reading.lexer import MlirCursor
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, FunctionType, Opaque, Symbol, Word
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.shape import Shape

Type: TypeAlias = Shape | FunctionType | Word | Opaque
Reader: TypeAlias = Callable[[ByteCursor], Attribute]
ABSENT = Opaque("none")
"""The type that stands where an attribute is absent."""


def _numbered(words: str, first: int = 0) -> dict[int, str]:
    return dict(enumerate(words.split(), first))


# Element types by dialect and number, under their names in MLIR.
_ELEMENTS: dict[str, dict[int, str]] = {
    "vhlo": {
        **_numbered("bf16 f16 f32 f64 f8E4M3FN f8E5M2", 2),
        **_numbered("index i4 i8 i16 i32 i64 ui4 ui8 ui16 ui32 ui64", 9),
        **_numbered("f8E4M3FNUZ f8E5M2FNUZ f8E4M3B11FNUZ", 27),
        **_numbered("tf32 f8E4M3 f8E3M4 f4E2M1FN f6E2M3FN f6E3M2FN f8E8M0FNU", 34),
        **{0: "i1", 31: "i2", 32: "ui2"},
    },
    "builtin": {
        **{1: "index", 3: "bf16", 4: "f16", 5: "f32", 6: "f64"},
        **_numbered("tf32 f8E5M2 f8E4M3 f8E4M3FN f8E5M2FNUZ f8E4M3FNUZ f8E4M3B11FNUZ f8E3M4", 21),
        **_numbered("f4E2M1FN f6E2M3FN f6E3M2FN f8E8M0FNU", 29),
    },
}
_MOST_SPATIAL = 10
_LONGEST_CONFIGURATION = 1 << 20
_LABELS = (("b", "f"), ("i", "o"), ("b", "f"))
_ALGORITHM_KEYS = (
    *("lhs_precision_type", "rhs_precision_type", "accumulation_type"),
    *("lhs_component_count", "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"),
)
_SIGNS = ("i", "si", "ui")
_COMPLEX = {DType.F32: DType.C64, DType.F64: DType.C128}
# Closed sets of words, by dialect and number.
_DIRECTIONS, _KINDS = _numbered("EQ NE GE GT LE LT"), _numbered("NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED")
_FFTS, _PRECISIONS = _numbered("FFT IFFT RFFT IRFFT"), _numbered("DEFAULT HIGH HIGHEST")
_ALGORITHMS, _DISTRIBUTIONS = _numbered("DEFAULT THREE_FRY PHILOX"), _numbered("INVALID UNIFORM NORMAL")
_TRANSPOSES = _numbered("INVALID NO_TRANSPOSE TRANSPOSE ADJOINT")
_WORDS: dict[str, dict[int, dict[int, str]]] = {
    "vhlo": {
        3: _DIRECTIONS,
        4: _KINDS,
        7: _FFTS,
        11: _PRECISIONS,
        12: _ALGORITHMS,
        13: _DISTRIBUTIONS,
        16: _TRANSPOSES,
    },
    "stablehlo": {
        2: _DIRECTIONS,
        3: _KINDS,
        6: _FFTS,
        8: _PRECISIONS,
        9: _ALGORITHMS,
        10: _DISTRIBUTIONS,
        12: _TRANSPOSES,
    },
    "chlo": {0: _DIRECTIONS, 1: _KINDS},
}

ELEMENT_CODES = {name: code for code, name in _ELEMENTS["vhlo"].items()}
"""Element types of portable artifacts: numbers by name."""
WORD_CODES = {
    key: (code, {word: number for number, word in _WORDS["vhlo"][code].items()})
    for key, code in (
        *(("comparison_direction", 3), ("compare_type", 4), ("fft_type", 7), ("precision_config", 11)),
        *(("rng_algorithm", 12), ("rng_distribution", 13), ("transpose_a", 16)),
    )
}
"""Closed sets of words in portable artifacts, by the attribute that they are in: number of the set, numbers by word."""

DOT_DIMENSIONS = tuple(f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs"))
GATHER_DIMENSIONS = (
    *("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"),
    "start_index_map",
)
SCATTER_DIMENSIONS = (
    *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
    "scatter_dims_to_operand_dims",
)


class Values:
    """Reads the types and attributes of a file.

    Attributes:
        types: The types by number.
        attributes: The attributes by number.
    """

    __slots__ = ("_container", "_limits", "_readers", "_spellings", "_type_readers", "attributes", "types")

    def __init__(self, container: Container, limits: ParseLimits) -> None:
        self._container = container
        self._limits = limits
        self._spellings: dict[int, str] = {}
        self.types: EntryTable[Type] = EntryTable(container, container.types, "type", self._type)
        self.attributes: EntryTable[Attribute] = EntryTable(
            container, container.attributes, "attribute", self._attribute
        )
        self._type_readers: dict[tuple[str, int], Callable[[ByteCursor], Type]] = {
            ("vhlo", 1): self._complex,
            ("builtin", 9): self._complex,
            ("vhlo", 8): self._function,
            ("builtin", 2): self._function,
            ("vhlo", 20): self._array,
            ("builtin", 13): self._array,
            ("vhlo", 21): self._encoded_array,
            ("builtin", 14): self._encoded_array,
            ("vhlo", 23): self._tuple,
            ("builtin", 15): self._tuple,
            ("vhlo", 42): self._tuple,  # of what is to come
            ("stablehlo", 1): self._tuple,
            ("builtin", 0): self._integer_type,
            ("vhlo", 22): lambda _: Shape.token(),
            ("stablehlo", 0): lambda _: Shape.token(),
            ("vhlo", 33): lambda _: ABSENT,
            ("builtin", 12): lambda _: ABSENT,
        }
        self._readers: dict[tuple[str, int], Reader] = {
            ("vhlo", 1): self._list,
            ("builtin", 0): self._list,
            ("vhlo", 2): lambda cursor: bool(cursor.integer()),
            ("vhlo", 5): ByteCursor.integer,
            ("vhlo", 6): self._dictionary,
            ("builtin", 1): self._dictionary,
            ("vhlo", 8): self._number,
            ("vhlo", 9): self._number,
            ("builtin", 8): self._number,
            ("builtin", 9): self._number,
            ("vhlo", 10): _alias,
            ("stablehlo", 14): _alias,
            ("vhlo", 14): container.text,
            ("builtin", 2): container.text,
            ("builtin", 3): self._typed_text,
            ("builtin", 4): self._symbol,
            ("builtin", 5): self._symbol,
            ("vhlo", 15): self._dense,
            ("builtin", 18): self._dense,
            ("builtin", 17): self._flat_array,
            ("vhlo", 17): self.types.next,
            ("builtin", 6): self.types.next,
            ("builtin", 7): lambda _: True,
            ("stablehlo", 1): lambda cursor: {"handle": cursor.signed(), "type": cursor.signed()},
            ("stablehlo", 4): _convolution_dims,
            ("stablehlo", 5): lambda cursor: {key: _numbers(cursor) for key in DOT_DIMENSIONS},
            ("stablehlo", 7): lambda cursor: _dimensions(cursor, GATHER_DIMENSIONS),
            ("stablehlo", 11): lambda cursor: _dimensions(cursor, SCATTER_DIMENSIONS),
            ("stablehlo", 15): self._algorithm,
            **ShardingReader(container, self.attributes.at).readers,
        }

    def _list(self, cursor: ByteCursor) -> Attribute:
        return tuple(cursor.list(lambda: self.attributes.next(cursor)))

    def _type(self, entry: Entry, cursor: ByteCursor) -> Type:
        if not entry.is_custom:
            return read_type(MlirCursor(cursor.text(), self._limits))
        code = cursor.integer()
        name = _ELEMENTS.get(entry.dialect, {}).get(code)
        if name is not None:
            return Word(name) if name == "tf32" else _element(cursor, name)
        reader = self._type_readers.get((entry.dialect, code))
        if reader is None:
            raise cursor.error(f"type {code} of the dialect {entry.dialect} is not supported")
        return reader(cursor)

    def _attribute(self, entry: Entry, cursor: ByteCursor) -> Attribute:
        if not entry.is_custom:
            return read_attribute(MlirCursor(cursor.text(), self._limits))
        code = cursor.integer()
        words = _WORDS.get(entry.dialect, {}).get(code)
        if words is not None:
            number = cursor.integer()
            if number not in words:
                raise cursor.error(f"there is no word {number}")
            return Word(words[number])
        reader = self._readers.get((entry.dialect, code))
        # What nobody asks for may be anything: an operation that needs it says that it is not understood.
        return reader(cursor) if reader is not None else Opaque(f"{entry.dialect} attribute {code}")

    def shape(self, cursor: ByteCursor, number: int | None = None) -> Shape:
        """The type of a value; consumes its number if that is not given."""
        found = self.types.at(cursor, cursor.integer() if number is None else number)
        if not isinstance(found, Shape):
            raise cursor.error("a value cannot be of this type")
        return found

    def _integer_type(self, cursor: ByteCursor) -> Type:
        code = cursor.integer()
        return _element(cursor, pick(cursor, _SIGNS, code & 3, "kind of integer") + str(code >> 2))

    def _complex(self, cursor: ByteCursor) -> Type:
        component = self.shape(cursor).dtype
        if component not in _COMPLEX:
            raise cursor.error(f"there are no complex numbers of {component.value}")
        return Shape.array(_COMPLEX[component])

    def _function(self, cursor: ByteCursor) -> Type:
        parameters = cursor.list(lambda: self.shape(cursor))
        return FunctionType(tuple(parameters), tuple(cursor.list(lambda: self.shape(cursor))))

    def _tuple(self, cursor: ByteCursor) -> Type:
        return Shape.tuple(cursor.list(lambda: self.shape(cursor)))

    def _encoded_array(self, cursor: ByteCursor) -> Type:
        cursor.integer()  # bounds of sizes that are not known: such sizes are refused anyway
        return self._array(cursor)

    def _array(self, cursor: ByteCursor) -> Type:
        sizes = cursor.list(cursor.signed)
        element = self.shape(cursor)
        if not element.is_array or element.rank:
            raise cursor.error(f"an array cannot have elements of type {element.text()}")
        try:
            return array_type(element.dtype, sizes, self._limits)
        except ValueError as problem:
            raise cursor.error(str(problem)) from None

    def _number(self, cursor: ByteCursor) -> Attribute:
        """A number with its type: as many bits as that has."""
        shape = self.shape(cursor)
        if not shape.is_array or shape.rank or shape.dtype.is_complex:
            raise cursor.error(f"there are no numbers of type {shape.text()}")
        dtype = shape.dtype
        bits = (cursor.byte() if dtype.bits <= 8 else cursor.signed()) & (1 << dtype.bits) - 1
        if dtype is DType.PRED:
            return bool(bits)
        if dtype.is_floating:
            return float_from_bits(bits, dtype)
        return bits - (1 << dtype.bits) if dtype.is_signed and bits >> (dtype.bits - 1) else bits

    def _dictionary(self, cursor: ByteCursor) -> Attribute:
        found: dict[str, Attribute] = {}
        for _ in range(cursor.count()):
            key = self.attributes.next(cursor)
            if not isinstance(key, str):
                raise cursor.error("the name of an attribute must be a text")
            found[key] = self.member(cursor, key, cursor.integer())
        return found

    def member(self, cursor: ByteCursor, key: str, number: int) -> Attribute:
        """An attribute by its number, under its name: configurations stay text, with the types of their numbers."""
        value = self.attributes.at(cursor, number)
        if key.endswith("backend_config") and isinstance(value, dict):
            return Opaque(self._spelled(cursor, number))
        return value

    def _spelled(self, cursor: ByteCursor, number: int) -> str:
        """An attribute as MLIR spells it; what stands in it several times is spelled once."""
        if number not in self._spellings:
            self._spellings[number] = self._spelling(cursor, number)
        return self._spellings[number]

    def _spelling(self, cursor: ByteCursor, number: int) -> str:
        value = self.attributes.at(cursor, number)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return json.dumps(value)
        inner = self._container.cursor(self._container.attributes[number])
        inner.integer()
        if isinstance(value, int | float):
            return f"{value} : {ELEMENT_NAMES[self.shape(inner).dtype]}"
        if isinstance(value, tuple):
            parts = inner.list(lambda: self._spelled(inner, inner.integer()))
            _require_short(inner, parts)
            return "[" + ", ".join(parts) + "]"
        if not isinstance(value, dict):
            raise cursor.error("an attribute of a configuration is neither a number nor a text, list or dictionary")
        pairs = inner.list(lambda: (self.attributes.next(inner), self._spelled(inner, inner.integer())))
        _require_short(inner, [text for _, text in pairs])
        return "{" + ", ".join(f"{key} = {text}" for key, text in pairs) + "}"

    def _typed_text(self, cursor: ByteCursor) -> Attribute:
        text = self._container.text(cursor)
        cursor.integer()
        return text

    def _symbol(self, cursor: ByteCursor) -> Attribute:
        name = self.attributes.next(cursor)
        if not isinstance(name, str):
            raise cursor.error("a symbol needs a text")
        return Symbol(name)

    def _algorithm(self, cursor: ByteCursor) -> Attribute:
        """How a product is computed, in its parts."""
        types = [self.types.next(cursor) for _ in range(3)]
        counts = [cursor.signed() for _ in range(3)]
        return dot_algorithm(types, counts, bool(cursor.byte()))

    def _dense(self, cursor: ByteCursor) -> Attribute:
        shape = self.shape(cursor)
        return Dense(cursor.take(cursor.integer()), shape, cursor.position)

    def _flat_array(self, cursor: ByteCursor) -> Attribute:
        """A list of numbers: their type, how many there are, their bytes."""
        element, count = self.shape(cursor), cursor.integer()
        data = cursor.take(cursor.integer())
        if not element.is_array or element.rank or count * element.dtype.size_bytes != len(data):
            raise cursor.error(f"{len(data)} bytes are not {count} numbers of {element.text()}")
        return tuple(np.frombuffer(data, element.dtype.numpy).tolist())


def _require_short(cursor: ByteCursor, parts: Sequence[str]) -> None:
    if sum(map(len, parts)) > _LONGEST_CONFIGURATION:
        raise cursor.error("a configuration is too long")


def _element(cursor: ByteCursor, name: str) -> Shape:
    if name not in ELEMENT_TYPES:
        raise cursor.error(f"the type {name} is not supported")
    return Shape.array(ELEMENT_TYPES[name])


def _numbers(cursor: ByteCursor) -> tuple[int, ...]:
    return tuple(cursor.list(cursor.signed))


def _dimensions(cursor: ByteCursor, keys: Sequence[str]) -> Attribute:
    return {**{key: _numbers(cursor) for key in keys}, "index_vector_dim": cursor.signed()}


def _convolution_dims(cursor: ByteCursor) -> Attribute:
    parts = [(cursor.signed(), cursor.signed(), _numbers(cursor)) for _ in range(3)]
    return convolution_dims(cursor, parts)


def convolution_dims(cursor: ByteCursor, parts: Sequence[tuple[int, int, Sequence[int]]]) -> Attribute:
    """Which dimension is what, as `b01f_01io->b01f`, from the two that are not spatial and those that are.

    Raises:
        BinaryParseError: A dimension is named twice or left out.
    """
    texts = []
    for (first, second, spatial), (one, other) in zip(parts, _LABELS, strict=True):
        labels = {first: one, second: other, **{place: str(number) for number, place in enumerate(spatial)}}
        if sorted(labels) != list(range(len(spatial) + 2)) or len(spatial) > _MOST_SPATIAL:
            raise cursor.error("the dimensions of a convolution do not fit together")
        texts.append("".join(labels[place] for place in range(len(labels))))
    return {"dim_numbers": f"{texts[0]}_{texts[1]}->{texts[2]}"}


def dot_algorithm(types: Sequence[Attribute], counts: Sequence[Attribute], fast: Attribute) -> Attribute:
    """How a product is computed, as text spells it."""
    return dict(zip(_ALGORITHM_KEYS, (*types, *counts, fast), strict=True))


def _alias(cursor: ByteCursor) -> Attribute:
    outputs = _numbers(cursor)
    number = cursor.signed()
    return {"output_tuple_indices": outputs, "operand_index": number, "operand_tuple_indices": _numbers(cursor)}
