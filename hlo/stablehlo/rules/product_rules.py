"""Products, transforms, linear systems, random numbers."""

from __future__ import annotations

import re

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.dot import DotAlgorithm, DotAttrs
from xlalite.hlo.ops.fourier import FftAttrs, FftType
from xlalite.hlo.ops.linear_algebra import CholeskyAttrs, Transpose, TriangularSolveAttrs
from xlalite.hlo.ops.random import Distribution, RandomAlgorithm, RngAttrs, RngBitGeneratorAttrs
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Word
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.stablehlo.rules.reduction_rules import make_window
from xlalite.hlo.types.convolution_dims import ConvolutionDims

_LABELS = re.compile(r"([^_]*)_([^-]*)->(.*)")


def _dimension_pairs(context: OperationContext, pretty: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`batching_dims = [0] x [0]`: a pair of lists."""
    value = context.operation.attributes.get(pretty, ((), ()))
    if not isinstance(value, tuple) or len(value) != 2:
        raise context.error(f"{pretty} is written as [...] x [...]")
    return context.as_integers(value[0], pretty), context.as_integers(value[1], pretty)


def _dot_general(context: OperationContext) -> Handle:
    if context.has("dot_dimension_numbers"):
        numbers = context.get("dot_dimension_numbers", dict)
        parts = [
            context.as_integers(numbers.get(f"{side}_{kind}_dimensions"), kind)
            for kind in ("batching", "contracting")
            for side in ("lhs", "rhs")
        ]
    else:
        parts = [*_dimension_pairs(context, "batching_dims"), *_dimension_pairs(context, "contracting_dims")]
    attrs = DotAttrs(
        lhs_batch_dims=parts[0],
        rhs_batch_dims=parts[1],
        lhs_contracting_dims=parts[2],
        rhs_contracting_dims=parts[3],
        operand_precision=context.precision(),
        algorithm=_algorithm(context, context.get("algorithm", dict, {})),
    )
    return context.op("dot", context.take(2), attrs)


def _algorithm(context: OperationContext, fields: dict[str, Attribute]) -> DotAlgorithm:
    """XLA's name of an algorithm that StableHLO describes by its types and the number of products."""
    if not fields:
        return DotAlgorithm.UNSET
    types = []
    for key in ("lhs_precision_type", "rhs_precision_type", "accumulation_type"):
        value = fields.get(key)
        types.append(_type_word(value))
    products = fields.get("num_primitive_operations", 1)
    name = "dot_" + "_".join("any_f8" if word.startswith("f8") else word for word in types)
    name += f"_x{products}" if products != 1 else ""
    name += "_fast_accum" if fields.get("allow_imprecise_accumulation") is True else ""
    found = next((member for member in DotAlgorithm if member.value == name), None)
    if found is None:
        raise context.error(f"there is no algorithm {name}")
    return found


def _type_word(value: object) -> str:
    if isinstance(value, Word):
        return value.text.lower()
    dtype = getattr(value, "dtype", None)
    return str(getattr(dtype, "value", "unknown"))


def _dot(context: OperationContext) -> Handle:
    lhs, rhs = context.take(2)
    if not lhs.shape.rank or not rhs.shape.rank:
        raise context.error("the operands must be vectors or matrices")
    attrs = DotAttrs(
        lhs_contracting_dims=(lhs.shape.rank - 1,), rhs_contracting_dims=(0,), operand_precision=context.precision()
    )
    return context.op("dot", (lhs, rhs), attrs)


def _convolution(context: OperationContext) -> Handle:
    lhs, rhs = context.take(2)
    dims = _convolution_dims(context)
    if len(dims.kernel) != rhs.shape.rank:
        raise context.error(f"the labels {dims} do not fit a kernel of rank {rhs.shape.rank}")
    flags = context.operation.attributes.get("window_reversal", ())
    if isinstance(flags, tuple):
        reversals = [flag is True or (isinstance(flag, int) and flag != 0) for flag in flags]
    else:
        reversals = [bool(flag) for flag in context.matrix(flags, "window_reversal").reshape(-1)]
    sizes = [rhs.dims[place] for place in dims.kernel_spatial]
    attrs = ConvolutionAttrs(
        window=make_window(context, sizes, base="lhs_dilation", dilation="rhs_dilation", reversals=reversals),
        dim_labels=dims,
        feature_group_count=context.get("feature_group_count", int, 1),
        batch_group_count=context.get("batch_group_count", int, 1),
        operand_precision=context.precision(),
    )
    return context.op("convolution", (lhs, rhs), attrs)


def _convolution_dims(context: OperationContext) -> ConvolutionDims:
    if context.has("dim_numbers"):
        text = context.get("dim_numbers", str)
    else:
        value = context.get("dimension_numbers", dict).get("dim_numbers")
        text = value if isinstance(value, str) else ""
    match = _LABELS.fullmatch(text)
    if match is None:
        raise context.error("the dimensions are written as [...]x[...]->[...]")
    dims = ConvolutionDims(match[1], match[2], match[3])
    if dims.problem is not None:
        raise context.error(dims.problem)
    return dims


def _fft(context: OperationContext) -> Handle:
    attrs = FftAttrs(context.member(FftType, "fft_type"), context.integers("fft_length"))
    return context.op("fft", context.take(1), attrs)


def _cholesky(context: OperationContext) -> Handle:
    return context.op("cholesky", context.take(1), CholeskyAttrs(context.get("lower", bool, False)))


def _triangular_solve(context: OperationContext) -> Handle:
    attrs = TriangularSolveAttrs(
        context.get("left_side", bool, False),
        context.get("lower", bool, False),
        context.get("unit_diagonal", bool, False),
        context.member(Transpose, "transpose_a", default="NO_TRANSPOSE"),
    )
    return context.op("triangular-solve", context.take(2), attrs)


def _rng(context: OperationContext) -> Handle:
    low, high, _ = context.take(3)
    return context.op("rng", (low, high), RngAttrs(context.member(Distribution, "rng_distribution", prefix="RNG_")))


def _rng_bit_generator(context: OperationContext) -> tuple[Handle, ...]:
    attrs = RngBitGeneratorAttrs(context.member(RandomAlgorithm, "rng_algorithm", prefix="RNG_"))
    return context.unpack(context.op("rng-bit-generator", context.take(1), attrs))


RULES: dict[str, ImportRule] = {
    "dot_general": _dot_general,
    "dot": _dot,
    "convolution": _convolution,
    "fft": _fft,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "rng": _rng,
    "rng_bit_generator": _rng_bit_generator,
}
