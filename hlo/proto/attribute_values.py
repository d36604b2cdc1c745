"""Attribute values that have a message, or a rule, of their own."""

from __future__ import annotations

from xlalite.hlo.ops.comparison import ComparisonType, default_comparison_type
from xlalite.hlo.ops.dot import DotAlgorithm
from xlalite.hlo.proto.attribute_rules import AttributeRule, Operands, plain, words_of
from xlalite.hlo.proto.enum_words import ENUM_NUMBERS
from xlalite.hlo.proto.literals import read_literal, write_literal
from xlalite.hlo.proto.meshes import read_groups, write_groups
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.shapes import read_shape, write_shape
from xlalite.hlo.proto.shardings import read_sharding, write_sharding
from xlalite.hlo.spelling.codecs import OutputAlias, Precision
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension


def _read_comparison(message: ProtoMessage, operands: Operands) -> ComparisonType | None:
    word = message.text("comparison_type")
    if word and word not in ComparisonType.__members__:
        raise message.error(f"comparison_type: found {word!r}, expected one of {words_of(ComparisonType)}")
    # XLA always writes the type; the text has it only where it is not the default.
    found = ComparisonType(word) if word else None
    return None if operands and found is default_comparison_type(operands[0].dtype) else found


def _write_comparison(message: ProtoMessage, value: ComparisonType | None, operands: Operands) -> bool:
    message.put("comparison_type", (value or default_comparison_type(operands[0].dtype)).value)
    return True


COMPARISON_TYPE = AttributeRule("type", _read_comparison, _write_comparison)


def _read_precision(message: ProtoMessage, operands: Operands) -> tuple[Precision, ...]:
    words = message.message("precision_config").words("operand_precision")
    found = tuple(Precision[word] for word in words)
    return () if all(one is Precision.DEFAULT for one in found) else found


def _write_precision(message: ProtoMessage, value: tuple[Precision, ...], operands: Operands) -> bool:
    words = [precision.name for precision in value] or ["DEFAULT"] * len(operands)
    message.open("precision_config").put_words("operand_precision", words)
    return True


PRECISION = AttributeRule("operand_precision", _read_precision, _write_precision)

_ALGORITHMS = {algorithm: f"ALG_{algorithm.value.upper()}" for algorithm in DotAlgorithm}


def _read_algorithm(message: ProtoMessage, operands: Operands) -> DotAlgorithm:
    word = message.message("precision_config").word("algorithm")
    return next(algorithm for algorithm, spelled in _ALGORITHMS.items() if spelled == word)


def _write_algorithm(message: ProtoMessage, value: DotAlgorithm, operands: Operands) -> bool:
    known = ENUM_NUMBERS["PrecisionConfig.Algorithm"].get(_ALGORITHMS[value])
    if known:
        message.open("precision_config").put("algorithm", known)
    return known is not None


ALGORITHM = AttributeRule("algorithm", _read_algorithm, _write_algorithm)


def _read_window(message: ProtoMessage, operands: Operands) -> Window | None:
    if not message.has("window"):
        return None
    window = Window(
        tuple(
            WindowDimension(
                one.integer("size"),
                one.integer("stride"),
                one.integer("padding_low"),
                one.integer("padding_high"),
                one.integer("base_dilation"),
                one.integer("window_dilation"),
                one.boolean("window_reversal"),
            )
            for one in message.message("window").messages("dimensions")
        )
    )
    if window.problem is not None:
        raise message.error(window.problem)
    return window


def _write_window(message: ProtoMessage, value: Window | None, operands: Operands) -> bool:
    if value is None:
        return True
    target = message.open("window")
    for one in value.dimensions:
        dimension = target.append("dimensions").put("size", one.size).put("stride", one.stride)
        dimension.put("padding_low", one.pad_low).put("padding_high", one.pad_high)
        dimension.put("base_dilation", one.lhs_dilate).put("window_dilation", one.rhs_dilate)
        dimension.put("window_reversal", one.reversal)
    return True


WINDOW = AttributeRule("window", _read_window, _write_window)

# (part of the labels, prefix of the fields, letter of the first special dimension, its field, of the second, its field)
_LABELS = (
    ("input", "input", "b", "batch", "f", "feature"),
    ("kernel", "kernel", "i", "input_feature", "o", "output_feature"),
    ("output", "output", "b", "batch", "f", "feature"),
)
_MOST_LABELS = 64


def _read_labels(message: ProtoMessage, operands: Operands) -> ConvolutionDims | None:
    if not message.has("convolution_dimension_numbers"):
        return None
    numbers = message.message("convolution_dimension_numbers")
    texts = []
    for _, prefix, first, first_name, second, second_name in _LABELS:
        places = {
            numbers.integer(f"{prefix}_{first_name}_dimension"): first,
            numbers.integer(f"{prefix}_{second_name}_dimension"): second,
        }
        for label, place in enumerate(numbers.integers(f"{prefix}_spatial_dimensions")):
            places[place] = str(label)
        if min(places) < 0 or max(places) >= _MOST_LABELS:
            raise numbers.error(f"found {prefix} dimensions {sorted(places)}, expected 0 to {_MOST_LABELS - 1}")
        texts.append("".join(places.get(place, "?") for place in range(max(places) + 1)))
    dims = ConvolutionDims(*texts)
    if dims.problem is not None:
        raise numbers.error(dims.problem)
    return dims


def _write_labels(message: ProtoMessage, value: ConvolutionDims | None, operands: Operands) -> bool:
    if value is None:
        return True
    numbers = message.open("convolution_dimension_numbers")
    for part, prefix, first, first_name, second, second_name in _LABELS:
        labels: str = getattr(value, part)
        numbers.put(f"{prefix}_{first_name}_dimension", labels.index(first))
        numbers.put(f"{prefix}_{second_name}_dimension", labels.index(second))
        spatial = [labels.index(str(label)) for label in range(sum(map(str.isdigit, labels)))]
        numbers.put_all(f"{prefix}_spatial_dimensions", spatial)
    return True


DIM_LABELS = AttributeRule("dim_labels", _read_labels, _write_labels)

REPLICA_GROUPS = plain(
    "replica_groups",
    "replica_groups",
    lambda message, name: read_groups(message),
    lambda message, name, value: write_groups(value, message),
)


def _put_pairs(message: ProtoMessage, name: str, value: tuple[tuple[int, int], ...]) -> None:
    for source, target in value:
        message.append(name).put("source", source).put("target", target)


SOURCE_TARGET_PAIRS = plain(
    "source_target_pairs",
    "source_target_pairs",
    lambda message, name: tuple((one.integer("source"), one.integer("target")) for one in message.messages(name)),
    _put_pairs,
)


def _put_aliases(message: ProtoMessage, name: str, value: tuple[OutputAlias, ...]) -> None:
    for output, operand, index in value:
        alias = message.append(name).put_all("output_shape_index", output).put("operand_index", operand)
        alias.put_all("operand_shape_index", index)


ALIASING = plain(
    "output_to_operand_aliasing",
    "output_operand_aliasing",
    lambda message, name: tuple(
        (one.integers("output_shape_index"), one.integer("operand_index"), one.integers("operand_shape_index"))
        for one in message.messages(name)
    ),
    _put_aliases,
)


def _put_literal(message: ProtoMessage, name: str, value: Literal | None) -> None:
    if value is not None:
        write_literal(value, message.open(name))


LITERAL = plain(
    "literal",
    "literal",
    lambda message, name: read_literal(message.message(name)) if message.has(name) else None,
    _put_literal,
)


def _put_shape(message: ProtoMessage, name: str, value: Shape | None) -> None:
    if value is not None:
        write_shape(value, message.open(name))


OUTFEED_SHAPE = plain(
    "outfeed_shape",
    "outfeed_shape",
    lambda message, name: read_shape(message.message(name)) if message.has(name) else None,
    _put_shape,
)


def _read_constraints(message: ProtoMessage, operands: Operands) -> tuple[Shape, ...] | None:
    if not message.boolean("constrain_layout"):
        return None
    return tuple(map(read_shape, message.messages("operand_shapes_with_layout")))


def _write_constraints(message: ProtoMessage, value: tuple[Shape, ...] | None, operands: Operands) -> bool:
    if value is not None:
        message.put("constrain_layout", True)
        for shape in value:
            write_shape(shape, message.append("operand_shapes_with_layout"))
    return True


LAYOUT_CONSTRAINTS = AttributeRule("operand_layout_constraints", _read_constraints, _write_constraints)

# In the message the two sides of a domain have each other's names.
_DOMAIN = ('{kind="sharding", entry=', ", exit=", "}")


def _read_domain(message: ProtoMessage, operands: Operands) -> str | None:
    if not message.has("domain_entry_sharding") or not message.has("domain_exit_sharding"):
        return None
    entry, leave = message.message("domain_exit_sharding"), message.message("domain_entry_sharding")
    return f"{_DOMAIN[0]}{read_sharding(entry)}{_DOMAIN[1]}{read_sharding(leave)}{_DOMAIN[2]}"


def _write_domain(message: ProtoMessage, value: str, operands: Operands) -> bool:
    start, middle, end = _DOMAIN
    if not (value.startswith(start) and value.endswith(end) and middle in value):
        return not value
    entry, _, leave = value[len(start) : -len(end)].partition(middle)
    write_sharding(entry, message.open("domain_exit_sharding"))
    write_sharding(leave, message.open("domain_entry_sharding"))
    return True


DOMAIN = AttributeRule("domain", _read_domain, _write_domain)
