"""Which field of an instruction's message holds which attribute: the exceptions from what its declaration says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from xlalite.hlo.errors import ParseError, XlaliteError
from xlalite.hlo.ir.op import Attrs, OpDef
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.ops.control_flow import FusionKind
from xlalite.hlo.ops.custom import ApiVersion, CustomCallSchedule, PaddingType
from xlalite.hlo.ops.fourier import FftType
from xlalite.hlo.ops.linear_algebra import Transpose
from xlalite.hlo.ops.random import Distribution, RandomAlgorithm
from xlalite.hlo.proto.attribute_rules import (
    AttributeRule,
    Operands,
    boolean,
    data,
    integer,
    integers,
    named,
    number,
    numbered_enum,
    only_integer,
    optional_integer,
    optional_positive,
    positive,
    spelled_enum,
    text,
    tri_state,
    triples,
    upper,
)
from xlalite.hlo.proto.attribute_values import (
    ALGORITHM,
    ALIASING,
    COMPARISON_TYPE,
    DIM_LABELS,
    DOMAIN,
    LAYOUT_CONSTRAINTS,
    LITERAL,
    OUTFEED_SHAPE,
    PRECISION,
    REPLICA_GROUPS,
    SOURCE_TARGET_PAIRS,
    WINDOW,
)
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.schema import MESSAGE_TYPES, MessageType
from xlalite.hlo.spelling.attributes import AttributeField, attribute_fields
from xlalite.hlo.spelling.codecs import BOOL, FLOAT, INT, INT_LIST, STRING
from xlalite.hlo.spelling.cursor import TokenCursor

T = TypeVar("T")

# Names of attributes that lie as text, lest they be taken for attributes that xlalite does not know.
_AS_TEXT = "attribute:"

# What follows from how an attribute is declared: its codec says the form of the value, its name the field.
_BY_CODEC: dict[object, Callable[[str, str], AttributeRule]] = {
    INT: integer,
    BOOL: boolean,
    INT_LIST: integers,
    STRING: text,
    FLOAT: number,
}
# Attributes that lie in messages inside the instruction's, under their own names or with `dims` spelled out.
_INSIDE: dict[str, tuple[str, ...]] = {
    "DotAttrs": ("dot_dimension_numbers",),
    "RaggedDotAttrs": ("ragged_dot_dimension_numbers.dot_dimension_numbers", "ragged_dot_dimension_numbers"),
    "GatherAttrs": ("gather_dimension_numbers",),
    "ScatterAttrs": ("scatter_dimension_numbers",),
    "CholeskyAttrs": ("cholesky_options",),
    "TriangularSolveAttrs": ("triangular_solve_options",),
}
EXCEPTIONS: dict[str, AttributeRule | None] = {
    "algorithm": ALGORITHM,
    "async_execution_thread": named("async_execution_thread"),
    "batch_group_count": positive("batch_group_count"),
    "channel_id": optional_positive("channel_id"),
    "cross_program_prefetch_index": optional_integer("cross_program_prefetch_index"),
    "dim_labels": DIM_LABELS,
    "domain": DOMAIN,
    "feature_group_count": positive("feature_group_count"),
    "infeed_config": data("infeed_config"),
    "is_associative": tri_state("is_associative"),
    "literal": LITERAL,
    "operand_layout_constraints": LAYOUT_CONSTRAINTS,
    "operand_precision": PRECISION,
    "outfeed_config": data("outfeed_config"),
    "outfeed_shape": OUTFEED_SHAPE,
    "output_to_operand_aliasing": ALIASING,
    "replica_groups": REPLICA_GROUPS,
    "source_target_pairs": SOURCE_TARGET_PAIRS,
    "window": WINDOW,
    "CollectivePermuteAttrs.slice_sizes": None,
    "CompareAttrs.direction": spelled_enum("direction", "comparison_direction", Direction),
    "CompareAttrs.type": COMPARISON_TYPE,
    "CustomCallAttrs.api_version": numbered_enum("api_version", "custom_call_api_version", upper(ApiVersion)),
    "CustomCallAttrs.padding_type": numbered_enum("padding_type", "padding_type", upper(PaddingType)),
    "CustomCallAttrs.schedule": numbered_enum("schedule", "custom_call_schedule", upper(CustomCallSchedule)),
    "FftAttrs.fft_type": numbered_enum("fft_type", "fft_type", upper(FftType)),
    "FusionAttrs.kind": spelled_enum("kind", "fusion_kind", FusionKind),
    "GatherAttrs.slice_sizes": integers("slice_sizes", "gather_slice_sizes"),
    "GetTupleElementAttrs.index": integer("index", "tuple_index"),
    "IotaAttrs.iota_dimension": only_integer("iota_dimension", "dimensions"),
    "PadAttrs.padding": triples(
        "padding", "padding_config", "dimensions", ("edge_padding_low", "edge_padding_high", "interior_padding")
    ),
    "ParameterAttrs.number": integer("number", "parameter_number"),
    "ReshapeAttrs.inferred_dimension": only_integer("inferred_dimension", "dimensions", absent=-1),
    "RngAttrs.distribution": numbered_enum("distribution", "distribution", upper(Distribution)),
    "RngBitGeneratorAttrs.algorithm": numbered_enum("algorithm", "rng_algorithm", upper(RandomAlgorithm)),
    "SliceAttrs.slice": triples("slice", "slice_dimensions", "", ("start", "limit", "stride")),
    # The message's field of this name is that of `sort`.
    "TopkAttrs.is_stable": None,
    "TriangularSolveAttrs.transpose_a": numbered_enum(
        "transpose_a", "triangular_solve_options.transpose_a", upper(Transpose)
    ),
}
"""Everything else, by the attribute's name, or by class and name; None travels as text in a field that XLA skips."""


@cache
def attribute_rules(attrs_class: type) -> tuple[AttributeRule, ...]:
    """The rules of the attributes of an operation; an attribute without a rule lies as text."""
    rules = (_rule(attrs_class.__name__, field) for field in dataclasses.fields(attrs_class))
    return tuple(rule for rule in rules if rule is not None)


def _rule(owner: str, field: dataclasses.Field[object]) -> AttributeRule | None:
    for key in (f"{owner}.{field.name}", field.name):
        if key in EXCEPTIONS:
            return EXCEPTIONS[key]
    kind = _BY_CODEC[field.metadata["codec"]]
    for holder in _INSIDE.get(owner, ()):
        known = _message_type(holder).by_name
        for name in (field.name, field.name.replace("_dims", "_dimensions")):
            if name in known:
                return kind(field.name, f"{holder}.{name}")
    return kind(field.name, field.name)


def _message_type(path: str) -> MessageType:
    found = MESSAGE_TYPES["HloInstructionProto"]
    for step in path.split("."):
        found = MESSAGE_TYPES[found.by_name[step].type_name]
    return found


# A while loop has the body first in the message and the condition first in the text.
_SWAPPED_CALLS = frozenset({OPS["while"]})


def in_call_order(op: OpDef, called: Sequence[T]) -> tuple[T, ...]:
    """What an operation calls, from the order of the text to that of the message, or back."""
    return tuple(reversed(called)) if op in _SWAPPED_CALLS else tuple(called)


def read_attrs(op: OpDef, message: ProtoMessage, operands: Operands) -> Attrs:
    """The attributes that an instruction's message gives.

    Raises:
        ParseError: One is missing or has an impossible value.
    """
    values: dict[str, object] = {}
    for rule in attribute_rules(op.attrs):
        value = rule.read(message, operands)
        if value is not None:
            values[rule.field] = value
    for entry in message.messages("xlalite_text"):
        name = entry.text("name")
        if name.startswith(_AS_TEXT):
            values |= _read_as_text(op, name.removeprefix(_AS_TEXT), entry)
    for field in dataclasses.fields(op.attrs):
        if field.name not in values and field.default is dataclasses.MISSING:
            raise message.error(f"{op.name}: {field.name} is missing")
    return op.attrs(**values)


def write_attrs(op: OpDef, attrs: Attrs, operands: Operands, message: ProtoMessage) -> None:
    """Fills an instruction's message with its attributes."""
    left = {field.field: field for field in attribute_fields(op.attrs)}
    for rule in attribute_rules(op.attrs):
        if rule.write(message, getattr(attrs, rule.field), operands):
            left.pop(rule.field, None)
    for field in left.values():
        value = getattr(attrs, field.field)
        if value is not None and value != field.default:
            entry = message.append("xlalite_text").put("name", _AS_TEXT + field.text_name)
            entry.put("text", field.codec.format(value))


def is_attribute_text(name: str) -> bool:
    """Whether a text that travels with an instruction is one of its operation's attributes."""
    return name.startswith(_AS_TEXT)


def _read_as_text(op: OpDef, name: str, entry: ProtoMessage) -> dict[str, object]:
    field = _fields(op).get(name)
    if field is None:
        raise entry.error(f"{op.name} has no attribute {name!r}")
    cursor = TokenCursor(entry.text("text"))
    try:
        value = field.codec.parse(cursor)
        if not cursor.at(""):
            raise cursor.unexpected("the end of the attribute")
    except ParseError as error:
        raise entry.error(f"{name}: {error.bare_message}") from error
    except XlaliteError as error:
        raise entry.error(f"{name}: {error}") from error
    return {field.field: value}


@cache
def _fields(op: OpDef) -> dict[str, AttributeField]:
    return {field.text_name: field for field in attribute_fields(op.attrs)}
