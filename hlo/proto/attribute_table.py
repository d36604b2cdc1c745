"""Which field of an instruction's message holds which attribute: one entry for each attributes dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
from xlalite.hlo.proto.message import Message
from xlalite.hlo.spelling.attributes import AttributeField, attribute_fields
from xlalite.hlo.spelling.cursor import TokenCursor

T = TypeVar("T")

# Names of attributes that lie as text, lest they be taken for attributes that xlalite does not know.
_AS_TEXT = "attribute:"
_DIMENSIONS = integers("dimensions")
_DOT = tuple(
    integers(f"{side}_{kind}_dims", f"dot_dimension_numbers.{side}_{kind}_dimensions")
    for kind in ("batch", "contracting")
    for side in ("lhs", "rhs")
)
_RAGGED = tuple(
    integers(f"{side}_{kind}_dims", f"ragged_dot_dimension_numbers.dot_dimension_numbers.{side}_{kind}_dimensions")
    for kind in ("batch", "contracting")
    for side in ("lhs", "rhs")
)
_CHANNEL = optional_positive("channel_id")
_COLLECTIVE = (_CHANNEL, REPLICA_GROUPS, boolean("constrain_layout"), boolean("use_global_device_ids"))
_CONVOLUTION = (WINDOW, DIM_LABELS, positive("feature_group_count"), positive("batch_group_count"), PRECISION)

ATTRIBUTE_RULES: dict[str, tuple[AttributeRule, ...]] = {
    "NoAttrs": (),
    "ParameterAttrs": (integer("number", "parameter_number"),),
    "ConstantAttrs": (LITERAL,),
    "GetTupleElementAttrs": (integer("index", "tuple_index"),),
    "IotaAttrs": (only_integer("iota_dimension", "dimensions"),),
    "BroadcastAttrs": (_DIMENSIONS,),
    "ReshapeAttrs": (only_integer("inferred_dimension", "dimensions", absent=-1),),
    "TransposeAttrs": (_DIMENSIONS,),
    "ReverseAttrs": (_DIMENSIONS,),
    "ConcatenateAttrs": (_DIMENSIONS,),
    "ReduceAttrs": (_DIMENSIONS,),
    "MapAttrs": (_DIMENSIONS,),
    "DimensionSizeAttrs": (_DIMENSIONS,),
    "SliceAttrs": (triples("slice", "slice_dimensions", "", ("start", "limit", "stride")),),
    "DynamicSliceAttrs": (integers("dynamic_slice_sizes"),),
    "PadAttrs": (
        triples(
            "padding", "padding_config", "dimensions", ("edge_padding_low", "edge_padding_high", "interior_padding")
        ),
    ),
    "DotAttrs": (*_DOT, PRECISION, ALGORITHM),
    "RaggedDotAttrs": (
        *_RAGGED,
        PRECISION,
        integers("lhs_ragged_dims", "ragged_dot_dimension_numbers.lhs_ragged_dimensions"),
        integers("rhs_group_dims", "ragged_dot_dimension_numbers.rhs_group_dimensions"),
    ),
    "ConvolutionAttrs": (*_CONVOLUTION, ALGORITHM),
    "ReduceWindowAttrs": (WINDOW,),
    "SelectAndScatterAttrs": (WINDOW,),
    "GatherAttrs": (
        *(
            integers(name, f"gather_dimension_numbers.{name}")
            for name in (
                "offset_dims",
                "collapsed_slice_dims",
                "start_index_map",
                "operand_batching_dims",
                "start_indices_batching_dims",
            )
        ),
        integer("index_vector_dim", "gather_dimension_numbers.index_vector_dim"),
        integers("slice_sizes", "gather_slice_sizes"),
        boolean("indices_are_sorted"),
    ),
    "ScatterAttrs": (
        *(
            integers(name, f"scatter_dimension_numbers.{name}")
            for name in (
                "update_window_dims",
                "inserted_window_dims",
                "scatter_dims_to_operand_dims",
                "input_batching_dims",
                "scatter_indices_batching_dims",
            )
        ),
        integer("index_vector_dim", "scatter_dimension_numbers.index_vector_dim"),
        boolean("indices_are_sorted"),
        boolean("unique_indices"),
    ),
    "SortAttrs": (_DIMENSIONS, boolean("is_stable")),
    "TopkAttrs": (integer("k"), boolean("largest")),
    "ScanAttrs": (_DIMENSIONS, integer("num_carries"), boolean("is_reverse"), tri_state("is_associative")),
    "CompareAttrs": (spelled_enum("direction", "comparison_direction", Direction), COMPARISON_TYPE),
    "ReducePrecisionAttrs": (integer("exponent_bits"), integer("mantissa_bits")),
    "FftAttrs": (numbered_enum("fft_type", "fft_type", upper(FftType)), integers("fft_length")),
    "CholeskyAttrs": (boolean("lower", "cholesky_options.lower"),),
    "TriangularSolveAttrs": (
        *(boolean(name, f"triangular_solve_options.{name}") for name in ("left_side", "lower", "unit_diagonal")),
        numbered_enum("transpose_a", "triangular_solve_options.transpose_a", upper(Transpose)),
    ),
    "BatchNormAttrs": (number("epsilon"), integer("feature_index")),
    "RngAttrs": (numbered_enum("distribution", "distribution", upper(Distribution)),),
    "RngBitGeneratorAttrs": (numbered_enum("algorithm", "rng_algorithm", upper(RandomAlgorithm)),),
    "RngGetAndUpdateStateAttrs": (integer("delta"),),
    "CallAttrs": (boolean("is_composite"),),
    "FusionAttrs": (spelled_enum("kind", "fusion_kind", FusionKind), ALIASING),
    "CustomCallAttrs": (
        *_CONVOLUTION,
        numbered_enum("padding_type", "padding_type", upper(PaddingType)),
        text("custom_call_target"),
        LAYOUT_CONSTRAINTS,
        boolean("custom_call_has_side_effect"),
        LITERAL,
        ALIASING,
        numbered_enum("schedule", "custom_call_schedule", upper(CustomCallSchedule)),
        numbered_enum("api_version", "custom_call_api_version", upper(ApiVersion)),
    ),
    "CopyStartAttrs": (optional_integer("cross_program_prefetch_index"),),
    "AsyncStartAttrs": (named("async_execution_thread"),),
    "DomainAttrs": (DOMAIN,),
    "InfeedAttrs": (data("infeed_config"),),
    "OutfeedAttrs": (OUTFEED_SHAPE, data("outfeed_config")),
    "ChannelAttrs": (_CHANNEL, boolean("is_host_transfer")),
    "CollectiveAttrs": _COLLECTIVE,
    "AllGatherAttrs": (*_COLLECTIVE, _DIMENSIONS),
    "ReduceScatterAttrs": (*_COLLECTIVE, _DIMENSIONS),
    "AllToAllAttrs": (*_COLLECTIVE, _DIMENSIONS),
    "CollectivePermuteAttrs": (_CHANNEL, SOURCE_TARGET_PAIRS),
}
"""Rules by the name of the attributes dataclass; attributes without a rule lie as text in a field that XLA skips."""

# A while loop has the body first in the message and the condition first in the text.
_SWAPPED_CALLS = frozenset({OPS["while"]})


def in_call_order(op: OpDef, called: Sequence[T]) -> tuple[T, ...]:
    """What an operation calls, from the order of the text to that of the message, or back."""
    return tuple(reversed(called)) if op in _SWAPPED_CALLS else tuple(called)


def read_attrs(op: OpDef, message: Message, operands: Operands) -> Attrs:
    """The attributes that an instruction's message gives.

    Raises:
        ParseError: One is missing or has an impossible value.
    """
    values: dict[str, object] = {}
    for rule in ATTRIBUTE_RULES[op.attrs.__name__]:
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


def write_attrs(op: OpDef, attrs: Attrs, operands: Operands, message: Message) -> None:
    """Fills an instruction's message with its attributes."""
    left = {field.field: field for field in attribute_fields(op.attrs)}
    for rule in ATTRIBUTE_RULES[op.attrs.__name__]:
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


def _read_as_text(op: OpDef, name: str, entry: Message) -> dict[str, object]:
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
