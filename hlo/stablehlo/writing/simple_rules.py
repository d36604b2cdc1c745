"""Operations that StableHLO has in the same form: another name, other names of attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.hlo.ops.comparison import CompareAttrs, default_comparison_type
from xlalite.hlo.ops.dot import DotAlgorithm, DotAttrs
from xlalite.hlo.spelling.codecs import Precision
from xlalite.hlo.stablehlo.bytecode.values import DOT_DIMENSIONS, GATHER_DIMENSIONS, SCATTER_DIMENSIONS, dot_algorithm
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, Word
from xlalite.hlo.stablehlo.rules.elementwise_rules import TWINS
from xlalite.hlo.stablehlo.writing.exporter import Attributes, ExportContext, ExportRule, Leaf, Tree, array_leaf
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window

OF_CHLO = frozenset({"acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "mulhi", "sinh"})
"""Functions of elements that are not StableHLO's but CHLO's."""


def _renamed(name: str, attributes: Callable[[Any], Attributes]) -> ExportRule:
    return lambda context: context.op(name, attributes(context.instruction.attrs))


def integers(rows: object, rank: int = 1) -> Dense:
    """Integers as a constant; rows that are shorter than others end with -1."""
    array = np.asarray(rows, np.int64)
    array = array.reshape((0,) * rank) if not array.size else array
    return dense(array, DType.S64)


def dense(array: np.ndarray[Any, Any], dtype: DType) -> Dense:
    """An array as a constant."""
    return Dense(np.ascontiguousarray(array).tobytes(), Shape.array(dtype, array.shape), 0)


def _enum_word(value: Any, prefix: str = "") -> Word:
    return Word(str(value.value).upper().removeprefix(prefix))


def precision(value: tuple[Precision, ...]) -> Attributes:
    """How exactly the operands are used; nothing when that is the default."""
    return {"precision_config": tuple(_enum_word(entry) for entry in value)} if value else {}


def _compare(context: ExportContext) -> Tree:
    attrs: CompareAttrs = context.instruction.attrs
    kind = attrs.type or default_comparison_type(array_leaf(context.operands[0]).shape.dtype)
    return context.op(
        "compare", {"comparison_direction": _enum_word(attrs.direction), "compare_type": _enum_word(kind)}
    )


def constant(context: ExportContext) -> Tree:
    """A constant; each array of a tuple by itself."""
    return _literal(context, context.instruction.attrs.literal)


def _literal(context: ExportContext, literal: Literal) -> Tree:
    if literal.shape.is_tuple:
        return tuple(_literal(context, element) for element in literal.elements)
    if literal.shape.is_token:
        return context.block.one("create_token", (), Shape.token())
    if literal.is_elided:
        raise context.error("its values were left out where the module was read")
    return constant_leaf(context, literal.value, literal.shape.dtype)


def constant_leaf(context: ExportContext, value: np.ndarray[Any, Any], dtype: DType) -> Leaf:
    """A constant that is made for an instruction."""
    found = dense(value, dtype)
    assert found.shape is not None, "given above"
    return context.block.one("constant", (), found.shape, {"value": found})


def _arc_tangent(context: ExportContext) -> Tree:
    """The angle of (x, 1)."""
    (operand,), shape = context.arrays, context.instruction.shape.without_layout()
    one = constant_leaf(context, np.ones((), shape.dtype.numpy), shape.dtype)
    ones = context.block.one("broadcast_in_dim", [one], shape, {"broadcast_dimensions": ()})
    return context.block.one("atan2", [operand, ones], shape)


def _slice(attrs: Any) -> Attributes:
    keys = ("start_indices", "limit_indices", "strides")
    return {key: tuple(entry[place] for entry in attrs.slice) for place, key in enumerate(keys)}


def _pad(attrs: Any) -> Attributes:
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return {key: tuple(entry[place] for entry in attrs.padding) for place, key in enumerate(keys)}


def _dynamic_slice(context: ExportContext) -> Tree:
    return context.op(
        "dynamic_slice", {"slice_sizes": context.instruction.attrs.dynamic_slice_sizes}, _apart(context, 1)
    )


def _dynamic_update_slice(context: ExportContext) -> Tree:
    return context.op("dynamic_update_slice", {}, _apart(context, 2))


def _apart(context: ExportContext, first: int) -> tuple[Leaf, ...]:
    """The operands; starts that are one vector become numbers."""
    starts = context.arrays[first:]
    if len(starts) != 1 or not starts[0].shape.rank:
        return context.arrays
    (vector,), block = starts, context.block
    numbers = []
    for place in range(vector.shape.dims[0]):
        cut: Attributes = {"start_indices": (place,), "limit_indices": (place + 1,), "strides": (1,)}
        piece = block.one("slice", [vector], vector.shape.with_dims((1,)), cut)
        numbers.append(block.one("reshape", [piece], vector.shape.with_dims(())))
    return (*context.arrays[:first], *numbers)


def _gather(attrs: Any) -> Attributes:
    numbers: dict[str, Attribute] = {key: getattr(attrs, key) for key in GATHER_DIMENSIONS}
    return {
        "dimension_numbers": {**numbers, "index_vector_dim": attrs.index_vector_dim},
        "slice_sizes": attrs.slice_sizes,
        "indices_are_sorted": attrs.indices_are_sorted,
    }


def _scatter(attrs: Any) -> Attributes:
    numbers: dict[str, Attribute] = {key: getattr(attrs, key) for key in SCATTER_DIMENSIONS}
    return {
        "scatter_dimension_numbers": {**numbers, "index_vector_dim": attrs.index_vector_dim},
        "indices_are_sorted": attrs.indices_are_sorted,
        "unique_indices": attrs.unique_indices,
    }


def _dot(context: ExportContext) -> Tree:
    attrs: DotAttrs = context.instruction.attrs
    sides = (attrs.lhs_batch_dims, attrs.rhs_batch_dims, attrs.lhs_contracting_dims, attrs.rhs_contracting_dims)
    attributes: Attributes = {"dot_dimension_numbers": dict(zip(DOT_DIMENSIONS, sides, strict=True))}
    attributes |= precision(attrs.operand_precision)
    if attrs.algorithm is not DotAlgorithm.UNSET:
        attributes["algorithm"] = _algorithm(context, attrs.algorithm.value)
    return context.op("dot_general", attributes)


def _algorithm(context: ExportContext, name: str) -> Attribute:
    """StableHLO's description of an algorithm that XLA has a name for."""
    is_fast = name.endswith("_fast_accum")
    words = name.removeprefix("dot_").removesuffix("_fast_accum").replace("any_f8", "any").split("_")
    if "any" in words:
        raise context.error(f"the algorithm {name} does not say its types")
    products = int(words.pop()[1:]) if words[-1][0] == "x" else 1
    return dot_algorithm([Word(word) for word in words], (1, 1, products), is_fast)


def window_attributes(window: Window, base: str, dilation: str) -> Attributes:
    """Strides, padding and dilations; the sizes have different names."""
    dims = window.dimensions
    padding = np.array([(dim.pad_low, dim.pad_high) for dim in dims], np.int64).reshape(len(dims), 2)
    return {
        "window_strides": tuple(dim.stride for dim in dims),
        "padding": dense(padding, DType.S64),
        base: tuple(dim.lhs_dilate for dim in dims),
        dilation: tuple(dim.rhs_dilate for dim in dims),
    }


def _reduce_window(context: ExportContext) -> Tree:
    return context.op("reduce_window", _plain_window(context, context.instruction.attrs.window))


def _select_and_scatter(context: ExportContext) -> Tree:
    attributes = _plain_window(context, context.instruction.attrs.window)
    for key in ("base_dilations", "window_dilations"):
        if any(size != 1 for size in attributes.pop(key)):  # type: ignore[union-attr]
            raise context.error("a window with holes cannot be said")
    return context.op("select_and_scatter", attributes)


def _plain_window(context: ExportContext, window: Window) -> Attributes:
    if any(dim.reversal for dim in window.dimensions):
        raise context.error("a window that is read backwards cannot be said")
    sizes = tuple(dim.size for dim in window.dimensions)
    return {"window_dimensions": sizes, **window_attributes(window, "base_dilations", "window_dilations")}


def _convolution(attrs: Any) -> Attributes:
    return {
        **window_attributes(attrs.window, "lhs_dilation", "rhs_dilation"),
        "window_reversal": tuple(dim.reversal for dim in attrs.window.dimensions),
        "dimension_numbers": {"dim_numbers": str(attrs.dim_labels)},
        "feature_group_count": attrs.feature_group_count,
        "batch_group_count": attrs.batch_group_count,
        **precision(attrs.operand_precision),
    }


def _rng(context: ExportContext) -> Tree:
    sizes = constant_leaf(context, np.array(context.instruction.shape.dims, np.int64), DType.S64)
    distribution = _enum_word(context.instruction.attrs.distribution, "RNG_")
    return context.op("rng", {"rng_distribution": distribution}, (*context.arrays, sizes))


def _rng_bit_generator(context: ExportContext) -> Tree:
    attributes: Attributes = {"rng_algorithm": _enum_word(context.instruction.attrs.algorithm, "RNG_")}
    if context.instruction.shape.is_tuple:
        return context.op("rng_bit_generator", attributes)
    state = context.arrays[0].shape
    return context.block.emit("rng_bit_generator", context.arrays, [state, context.instruction.shape], attributes)[1]


def _norm(attrs: Any) -> Attributes:
    return {"epsilon": attrs.epsilon, "feature_index": attrs.feature_index}


def _triangular_solve(attrs: Any) -> Attributes:
    flags: Attributes = {key: getattr(attrs, key) for key in ("left_side", "lower", "unit_diagonal")}
    return {**flags, "transpose_a": _enum_word(attrs.transpose_a)}


def _no_attributes(attrs: Any) -> Attributes:
    return {}


RULES: dict[str, ExportRule] = {
    **{name.replace("_", "-"): _renamed(f"chlo.{name}" if name in OF_CHLO else name, _no_attributes) for name in TWINS},
    "compare": _compare,
    "constant": constant,
    "convert": _renamed("convert", _no_attributes),
    "bitcast-convert": _renamed("bitcast_convert", _no_attributes),
    "reduce-precision": _renamed(
        "reduce_precision", lambda a: {"exponent_bits": a.exponent_bits, "mantissa_bits": a.mantissa_bits}
    ),
    "iota": _renamed("iota", lambda a: {"iota_dimension": a.iota_dimension}),
    "get-dimension-size": _renamed("get_dimension_size", lambda a: {"dimension": a.dimensions[0]}),
    "broadcast": _renamed("broadcast_in_dim", lambda a: {"broadcast_dimensions": a.dimensions}),
    "reshape": _renamed("reshape", _no_attributes),
    "transpose": _renamed("transpose", lambda a: {"permutation": a.dimensions}),
    "reverse": _renamed("reverse", lambda a: {"dimensions": a.dimensions}),
    "slice": _renamed("slice", _slice),
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "pad": _renamed("pad", _pad),
    "concatenate": _renamed("concatenate", lambda a: {"dimension": a.dimensions[0]}),
    "gather": _renamed("gather", _gather),
    "scatter": _renamed("scatter", _scatter),
    "sort": _renamed("sort", lambda a: {"dimension": a.dimensions[0], "is_stable": a.is_stable}),
    "dot": _dot,
    "convolution": _renamed("convolution", _convolution),
    "fft": _renamed("fft", lambda a: {"fft_type": _enum_word(a.fft_type), "fft_length": a.fft_length}),
    "cholesky": _renamed("cholesky", lambda a: {"lower": a.lower}),
    "triangular-solve": _renamed("triangular_solve", _triangular_solve),
    "rng": _rng,
    "rng-bit-generator": _rng_bit_generator,
    "reduce": _renamed("reduce", lambda a: {"dimensions": a.dimensions}),
    "map": _renamed("map", lambda a: {"dimensions": a.dimensions}),
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "batch-norm-training": _renamed("batch_norm_training", _norm),
    "batch-norm-inference": _renamed("batch_norm_inference", _norm),
    "batch-norm-grad": _renamed("batch_norm_grad", _norm),
}

PORTABLE: dict[str, ExportRule] = {"atan": _arc_tangent}
"""What is written otherwise where CHLO cannot be said."""
