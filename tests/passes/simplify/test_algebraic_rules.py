"""One case that fires and one that must not for every algebraic rule; values keep every bit in both."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder, Handle, Number
from xlalite.hlo.errors import PassError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.conversion import ReducePrecisionAttrs
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.ops.gathering import GatherAttrs, ScatterAttrs
from xlalite.hlo.ops.reduction import ReduceAttrs
from xlalite.hlo.ops.reshaping import IotaAttrs
from xlalite.hlo.ops.slicing import ConcatenateAttrs, DynamicSliceAttrs, PadAttrs, SliceAttrs
from xlalite.hlo.ops.sorting import SortAttrs, TopkAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.rewriting.rewrite import Strictness
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier, all_rules

F32, S32, U32, PRED = DType.F32, DType.S32, DType.U32, DType.PRED
DIMS = (2, 3)
ROWS = np.array([[0], [1]], np.int32)


class Values:
    """Parameters of several types, all [2, 3] unless the name says otherwise, and short names for operations."""

    def __init__(self) -> None:
        self.b = b = Builder("case")
        self.x, self.y = (b.parameter(Shape.array(F32, DIMS), name) for name in "xy")
        self.i, self.j = (b.parameter(Shape.array(S32, DIMS), name) for name in "ij")
        self.u = b.parameter(Shape.array(U32, DIMS), "u")
        self.p, self.q = (b.parameter(Shape.array(PRED, DIMS), name) for name in "pq")
        self.z = b.parameter(Shape.array(DType.C64, DIMS), "z")
        self.k, self.k2 = b.parameter(Shape.array(S32), "k"), b.parameter(Shape.array(S32), "k2")
        self.flag = b.parameter(Shape.array(PRED), "flag")
        self.v = b.parameter(Shape.array(F32, (3,)), "v")
        self.v0 = b.parameter(Shape.array(F32, (2,)), "v0")
        self.empty = b.parameter(Shape.array(F32, (2, 0)), "empty")
        self.square = b.parameter(Shape.array(F32, (3, 3)), "square")
        self.cube = b.parameter(Shape.array(F32, (2, 4, 3)), "cube")
        self.column = b.parameter(Shape.array(F32, (2, 1)), "column")
        self.b16 = b.parameter(Shape.array(DType.BF16, DIMS), "b16")

    def full(self, value: Number, like: Handle) -> Handle:
        return self.b.full(value, like.dtype, like.dims)

    def op(self, name: str, *operands: Handle) -> Handle:
        return self.b.op(name, operands)

    def t(self, value: Handle, *order: int) -> Handle:
        return self.b.op("transpose", (value,), OPS["transpose"].attrs(order))

    def bc(self, value: Handle, dims: tuple[int, ...], *places: int) -> Handle:
        return self.b.op("broadcast", (value,), OPS["broadcast"].attrs(places), shape=Shape.array(value.dtype, dims))

    def rs(self, value: Handle, *dims: int) -> Handle:
        return self.b.op("reshape", (value,), shape=Shape.array(value.dtype, dims))

    def rev(self, value: Handle, *dimensions: int) -> Handle:
        return self.b.op("reverse", (value,), OPS["reverse"].attrs(dimensions))

    def cut(self, value: Handle, *ranges: tuple[int, int, int]) -> Handle:
        return self.b.op("slice", (value,), SliceAttrs(ranges))

    def cat(self, along: int, *values: Handle) -> Handle:
        return self.b.op("concatenate", values, ConcatenateAttrs((along,)))

    def pad(self, value: Handle, filler: Handle, *padding: tuple[int, int, int]) -> Handle:
        return self.b.op("pad", (value, filler), PadAttrs(padding))

    def rows(self, value: Handle, count: int, *starts: int, filler: Number = 0.0) -> Handle:
        """The sum of pieces of so many rows, which begin at some places of 7 and have others around them."""
        zero = self.num(filler, value.dtype)
        pieces = [self.b.op(name, (value,)) for name in ("abs", "negate", "sign", "abs")]
        padded = [
            self.pad(piece, zero, (start, 7 - count - start, 0), (0, 0, 0))
            for piece, start in zip(pieces, starts, strict=False)
        ]
        return sum(padded[1:], padded[0])

    def cv(self, value: Handle, dtype: DType) -> Handle:
        return self.b.op("convert", (value,), shape=Shape.array(dtype, value.dims))

    def bits(self, value: Handle, dtype: DType, *dims: int) -> Handle:
        return self.b.op("bitcast-convert", (value,), shape=Shape.array(dtype, dims or value.dims))

    def ds(self, value: Handle, sizes: tuple[int, ...], *starts: Handle) -> Handle:
        return self.b.op("dynamic-slice", (value, *starts), DynamicSliceAttrs(sizes))

    def dus(self, value: Handle, update: Handle, *starts: Handle) -> Handle:
        return self.b.op("dynamic-update-slice", (value, update, *starts))

    def num(self, value: Number, dtype: DType = S32) -> Handle:
        return self.b.constant(value, dtype)

    def cmp(self, lhs: Handle, rhs: Handle, direction: str) -> Handle:
        return self.b.compare(lhs, rhs, direction)

    def sel(self, condition: Handle, on_true: Handle, on_false: Handle) -> Handle:
        return self.b.op("select", (condition, on_true, on_false))

    def red(self, value: Handle, name: str, start: Number, *dimensions: int) -> Handle:
        return self.b.reduce(value, start, dimensions, name)

    def arg(self, dtype: DType, start: int) -> Handle:
        """The position of the largest of each row of x, the last of equals."""
        positions = self.b.op("iota", (), IotaAttrs(1), shape=Shape.array(dtype, DIMS))
        kinds = (Shape.array(F32), Shape.array(dtype))

        def later(b: Builder, p: tuple[Handle, ...]) -> Handle:
            wins = b.compare(p[2], p[0], "GT") | b.compare(p[2], p[2], "NE")
            ties = b.compare(p[2], p[0], "EQ") & b.compare(p[3], p[1], "GT")
            return b.tuple((b.select(wins, p[2], p[0]), b.select(wins | ties, p[3], p[1])))

        starts = self.b.constant(-np.inf, F32), self.b.constant(start, dtype)
        called = (self.b.subcomputation("later", (*kinds, *kinds), later),)
        found = self.b.op("reduce", (self.x, positions, *starts), ReduceAttrs((1,)), called)
        return self.b.element(found, 1)

    def dot(self, lhs: Handle, rhs: Handle, left: tuple[int, ...], right: tuple[int, ...]) -> Handle:
        return self.b.op("dot", (lhs, rhs), DotAttrs(lhs_contracting_dims=left, rhs_contracting_dims=right))

    def batch(self, lhs: Handle, rhs: Handle, left: int, right: int) -> Handle:
        attrs = DotAttrs((0,), (left,), (0,), (right,))
        return self.b.op("dot", (lhs, rhs), attrs)

    def precision(self, value: Handle, exponent: int, mantissa: int) -> Handle:
        return self.b.op("reduce-precision", (value,), ReducePrecisionAttrs(exponent, mantissa))

    def sort(self, value: Handle, along: int) -> Handle:
        scalar = Shape.array(value.dtype)
        less = self.b.subcomputation("less", (scalar, scalar), lambda b, p: b.compare(p[0], p[1], "LT"))
        return self.b.op("sort", (value,), SortAttrs((along,)), (less,))

    def top(self, k: int, index: int) -> Handle:
        return self.b.element(self.b.op("topk", (self.x,), TopkAttrs(k)), index)

    def sort_both(self, index: int) -> Handle:
        scalar = Shape.array(F32)
        less = self.b.subcomputation("less", (scalar,) * 4, lambda b, p: b.compare(p[0], p[1], "LT"))
        return self.b.element(self.b.op("sort", (self.x, self.x), SortAttrs((0,)), (less,)), index)

    def gather(self, value: Handle, indices: Handle, sizes: tuple[int, ...], offsets: tuple[int, ...]) -> Handle:
        attrs = GatherAttrs(
            offset_dims=offsets, collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=indices.shape.rank,
            slice_sizes=sizes,
        )  # fmt: skip
        return self.b.op("gather", (value, indices), attrs)

    def gather_points(self, value: Handle, *components: Handle) -> Handle:
        attrs = GatherAttrs(
            collapsed_slice_dims=(0, 1), start_index_map=(0, 1), index_vector_dim=1, slice_sizes=(1, 1)
        )  # fmt: skip
        return self.b.op("gather", (value, self.cat(1, *components)), attrs)

    def scatter(self, value: Handle, indices: Handle, updates: Handle, combine: str = "add") -> Handle:
        attrs = ScatterAttrs(
            update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1
        )
        return self.b.op("scatter", (value, indices, updates), attrs, (self.b.scalar_function(combine, value.dtype),))

    def scatter_points(self, value: Handle, indices: Handle, updates: Handle) -> Handle:
        attrs = ScatterAttrs(inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1), index_vector_dim=1)
        return self.b.op("scatter", (value, indices, updates), attrs, (self.b.scalar_function("add", value.dtype),))

    def scatter_in_rows(self, value: Handle, indices: Handle, updates: Handle) -> Handle:
        attrs = ScatterAttrs(
            inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,), input_batching_dims=(0,),
            scatter_indices_batching_dims=(0,), index_vector_dim=indices.shape.rank,
        )  # fmt: skip
        return self.b.op("scatter", (value, indices, updates), attrs, (self.b.scalar_function("add", value.dtype),))

    def scatter_window(self, value: Handle, indices: Handle, update: Handle) -> Handle:
        attrs = ScatterAttrs(update_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1), index_vector_dim=0)
        return self.b.op("scatter", (value, indices, update), attrs, (self.b.scalar_function("subtract", value.dtype),))

    def count(self, dims: tuple[int, ...], along: int) -> Handle:
        return self.b.op("iota", (), OPS["iota"].attrs(along), shape=Shape.array(S32, dims))

    def twice_padded(self, first: float, second: float) -> Handle:
        filler = self.num(first, F32)
        other = filler if first == second else self.num(second, F32)
        return self.pad(self.pad(self.x, filler, (1, 0, 1), (0, 2, 0)), other, (0, 1, 0), (2, 0, 0))


Make = Callable[[Values], Handle]


@dataclass(frozen=True)
class Case:
    """What a rule must rewrite, and what it must leave alone."""

    rule: str
    fires: Make
    keeps: Make


LOW, HIGH = -(2**31), 2**31 - 1

CASES = (
    Case("constant_to_the_right", lambda v: v.full(3, v.i) + v.i, lambda v: v.i + v.full(3, v.i)),
    Case("add_zero", lambda v: v.x + v.full(-0.0, v.x), lambda v: v.x + v.full(0.0, v.x)),
    Case(
        "add_zero",
        lambda v: v.red(v.x, "add", 0.0, 1) + 0.0,
        lambda v: v.red(v.x, "add", -0.0, 1) + 0.0,
    ),
    Case("add_zero", lambda v: v.op("maximum", v.x, v.full(0.0, v.x)) + 0.0, lambda v: v.op("sqrt", v.x) + 0.0),
    Case(
        "add_zero",
        lambda v: v.op("maximum", v.op("abs", v.x), v.full(-1.0, v.x)) + 0.0,
        lambda v: v.op("maximum", v.x, v.full(-1.0, v.x)) + 0.0,
    ),
    Case("add_zero", lambda v: v.x * v.x + 0.0, lambda v: v.x * v.y + 0.0),
    Case("add_constants", lambda v: (v.i + 3) + HIGH, lambda v: (v.x + 3.0) + 4.0),
    Case("add_negated", lambda v: v.x + -v.y, lambda v: v.x + v.op("abs", v.y)),
    Case("add_common_factor", lambda v: v.i * v.j + v.cv(v.u, S32) * v.j, lambda v: v.x * v.y + v.x * v.y * v.y),
    Case("add_padded", lambda v: v.rows(v.x, 2, 3, 0, 5), lambda v: v.rows(v.x, 2, 3, 0, 4)),
    Case("add_padded", lambda v: v.rows(v.i, 2, 0, 2, 4), lambda v: v.rows(v.x, 2, 0, 2, 4, filler=-0.0)),
    Case(
        "add_padded",
        lambda v: v.rows(v.x, 2, 4, 2, 0) + v.bc(v.v, (7, 3), 1),
        lambda v: v.rows(v.x, 2, 4, 2, 0) + v.bc(v.v, (7, 3), 1) + v.bc(v.cv(v.k, F32), (7, 3)),
    ),
    Case("subtract_zero", lambda v: v.x - v.full(0.0, v.x), lambda v: v.x - v.full(-0.0, v.x)),
    Case("subtract_itself", lambda v: v.i - v.i, lambda v: v.x - v.x),
    Case("subtract_constant", lambda v: v.i - 5, lambda v: v.x - 5.0),
    Case("subtract_from_zero", lambda v: v.full(-0.0, v.x) - v.x, lambda v: v.full(0.0, v.x) - v.x),
    Case("subtract_negated", lambda v: v.x - -v.y, lambda v: -v.x - v.y),
    Case("subtract_sum", lambda v: (v.i + v.j) - v.i, lambda v: (v.x + v.y) - v.x),
    Case("multiply_one", lambda v: v.x * 1.0, lambda v: v.z * v.full(1, v.z)),
    Case("multiply_zero", lambda v: v.i * 0, lambda v: v.x * 0.0),
    Case("multiply_minus_one", lambda v: v.x * -1.0, lambda v: v.x * -2.0),
    Case("multiply_constants", lambda v: (v.i * 3) * HIGH, lambda v: (v.x * 3.0) * 7.0),
    Case("both_negated", lambda v: -v.x / -v.y, lambda v: -v.i / -v.j),
    Case("multiply_by_mask", lambda v: v.i * v.cv(v.p, S32), lambda v: v.x * v.cv(v.p, F32)),
    Case("divide_one", lambda v: v.x / 1.0, lambda v: v.x / 3.0),
    Case("divide_power_of_two", lambda v: v.x / 8.0, lambda v: v.x / 3.0),
    Case("divide_power_of_two", lambda v: v.u / 8, lambda v: v.i / 8),
    Case("divide_power_of_two", lambda v: v.b16 / 0.25, lambda v: v.x / v.full(np.float32(1e-45), v.x)),
    Case("remainder_power_of_two", lambda v: v.u % 8, lambda v: v.i % 8),
    Case(
        "remainder_of_iota",
        lambda v: v.b.iota(S32, DIMS, 1) % 3,
        lambda v: v.b.iota(S32, DIMS, 1) % 2,
    ),
    Case("power_zero", lambda v: v.x**0.0, lambda v: v.z ** v.full(0, v.z)),
    Case("power_one", lambda v: v.x**1.0, lambda v: v.x**1.5),
    Case("power_two", lambda v: v.x**2.0, lambda v: v.x**3.0),
    Case("power_three_of_integer", lambda v: v.i**3, lambda v: v.x**3.0),
    Case("power_minus_one", lambda v: v.x**-1.0, lambda v: v.i**-1),
    Case(
        "negate_powers",
        lambda v: -v.cv(v.x, DType.F8E8M0FNU) * -v.cv(v.y, DType.F8E8M0FNU),
        lambda v: -v.cv(v.x, DType.F8E4M3),
    ),
    Case("negate_twice", lambda v: v.op("negate", -v.x), lambda v: -v.op("abs", v.x)),
    Case("negate_scaled", lambda v: -(v.x * 0.3), lambda v: -(v.x * v.y)),
    Case("negate_difference", lambda v: -(v.i - v.j), lambda v: -(v.x - v.y)),
    Case("abs_of_sign", lambda v: v.op("abs", -v.x), lambda v: v.op("abs", v.op("sign", v.x))),
    Case("idempotent_rounding", lambda v: v.op("ceil", v.op("floor", v.x)), lambda v: v.op("ceil", v.op("sqrt", v.x))),
    Case("extreme_of_same", lambda v: v.op("maximum", v.x, v.x), lambda v: v.op("maximum", v.x, v.y)),
    Case(
        "extreme_with_identity",
        lambda v: v.op("maximum", v.x, v.full(-np.inf, v.x)),
        lambda v: v.op("maximum", v.x, v.full(np.inf, v.x)),
    ),
    Case(
        "extreme_with_absorber",
        lambda v: v.op("minimum", v.i, v.full(LOW, v.i)),
        lambda v: v.op("minimum", v.x, v.full(-np.inf, v.x)),
    ),
    Case(
        "extreme_of_extreme",
        lambda v: v.op("minimum", v.x, v.op("minimum", v.y, v.x)),
        lambda v: v.op("minimum", v.x, v.op("maximum", v.y, v.x)),
    ),
    Case(
        "extreme_of_constants",
        lambda v: v.op("maximum", v.op("maximum", v.x, v.full(1.0, v.x)), v.full(2.0, v.x)),
        lambda v: v.op("maximum", v.op("minimum", v.x, v.full(1.0, v.x)), v.full(2.0, v.x)),
    ),
    Case("part_of_complex", lambda v: v.op("imag", v.op("complex", v.x, v.y)), lambda v: v.op("imag", v.z)),
    Case(
        "complex_of_parts",
        lambda v: v.op("complex", v.op("real", v.z), v.op("imag", v.z)),
        lambda v: v.op("complex", v.op("imag", v.z), v.op("real", v.z)),
    ),
    # bits
    Case("bits_with_itself", lambda v: v.i & v.i, lambda v: v.i & v.j),
    Case("bits_with_identity", lambda v: v.i & -1, lambda v: v.i & 1),
    Case("bits_with_absorber", lambda v: v.i | -1, lambda v: v.i | 1),
    Case("bits_repeated", lambda v: (v.i & v.j) & v.i, lambda v: (v.i | v.j) & v.i),
    Case("bits_with_complement", lambda v: v.i & ~v.i, lambda v: v.i & ~v.j),
    Case("bits_of_constants", lambda v: (v.i ^ 5) ^ 3, lambda v: (v.i | 5) ^ 3),
    Case("xor_with_itself", lambda v: v.p ^ v.p, lambda v: v.p ^ v.q),
    Case("xor_with_ones", lambda v: v.u ^ (2**32 - 1), lambda v: v.u ^ 1),
    Case("not_twice", lambda v: ~~v.i, lambda v: ~-v.i),
    Case("not_of_comparison", lambda v: ~v.cmp(v.i, v.j, "LT"), lambda v: ~v.cmp(v.x, v.y, "LT")),
    Case("pred_arithmetic", lambda v: v.p + v.q, lambda v: v.i + v.j),
    Case("shift_by_zero", lambda v: v.op("shift-left", v.i, v.full(0, v.i)), lambda v: v.op("shift-left", v.i, v.j)),
    Case(
        "shift_out",
        lambda v: v.op("shift-right-logical", v.i, v.full(-1, v.i)),
        lambda v: v.op("shift-right-arithmetic", v.i, v.full(32, v.i)),
    ),
    Case(
        "shift_of_shift",
        lambda v: v.op("shift-left", v.op("shift-left", v.i, v.full(3, v.i)), v.full(4, v.i)),
        lambda v: v.op("shift-left", v.op("shift-left", v.i, v.full(20, v.i)), v.full(20, v.i)),
    ),
    # choice
    Case(
        "compare_constant_to_the_right",
        lambda v: v.cmp(v.full(2, v.i), v.i, "LT"),
        lambda v: v.cmp(v.i, v.full(2, v.i), "LT"),
    ),
    Case("compare_with_itself", lambda v: v.cmp(v.x, v.x, "LT"), lambda v: v.cmp(v.x, v.x, "EQ")),
    Case(
        "compare_with_extreme",
        lambda v: v.cmp(v.u, v.full(0, v.u), "GE"),
        lambda v: v.cmp(v.u, v.full(0, v.u), "GT"),
    ),
    Case(
        "compare_with_extreme",
        lambda v: v.cmp(v.count(DIMS, 1), v.full(3, v.i), "LT"),
        lambda v: v.cmp(v.count(DIMS, 1), v.full(2, v.i), "LT"),
    ),
    Case(
        "compare_with_extreme",
        lambda v: v.cmp(v.count(DIMS, 1), v.full(-1, v.i), "EQ"),
        lambda v: v.cmp(v.count(DIMS, 1), v.full(0, v.i), "EQ"),
    ),
    Case(
        "compare_pred_with_constant",
        lambda v: v.cmp(v.p, v.full(False, v.p), "EQ"),
        lambda v: v.cmp(v.p, v.q, "EQ"),
    ),
    Case(
        "compare_converted_pred",
        lambda v: v.cmp(v.cv(v.p, F32), v.full(0.0, v.x), "NE"),
        lambda v: v.cmp(v.cv(v.p, F32), v.full(1.0, v.x), "NE"),
    ),
    Case("select_same", lambda v: v.sel(v.p, v.x, v.x), lambda v: v.sel(v.p, v.x, v.y)),
    Case("select_by_constant", lambda v: v.sel(v.num(False, PRED), v.x, v.y), lambda v: v.sel(v.flag, v.x, v.y)),
    Case("select_by_negation", lambda v: v.sel(~v.p, v.x, v.y), lambda v: v.sel(v.p ^ v.q, v.x, v.y)),
    Case("select_by_broadcast", lambda v: v.sel(v.bc(v.flag, DIMS), v.x, v.y), lambda v: v.sel(v.flag, v.x, v.y)),
    Case(
        "select_of_select",
        lambda v: v.sel(v.p, v.sel(v.p, v.x, v.y), v.y),
        lambda v: v.sel(v.p, v.sel(v.q, v.x, v.y), v.y),
    ),
    Case(
        "select_of_preds",
        lambda v: v.sel(v.flag, v.p, v.full(True, v.p)),
        lambda v: v.sel(v.flag, v.p, v.q),
    ),
    Case(
        "clamp_without_bounds",
        lambda v: v.op("clamp", v.num(LOW), v.i, v.num(5)),
        lambda v: v.op("clamp", v.num(1), v.i, v.num(5)),
    ),
    Case(
        "clamp_of_clamp",
        lambda v: v.op("clamp", v.num(1), v.op("clamp", v.num(1), v.i, v.num(5)), v.num(5)),
        lambda v: v.op("clamp", v.num(1), v.op("clamp", v.num(2), v.i, v.num(5)), v.num(5)),
    ),
    # conversion
    Case("convert_nothing", lambda v: v.cv(v.x, F32), lambda v: v.cv(v.x, S32)),
    Case(
        "convert_of_convert",
        lambda v: v.cv(v.cv(v.i, DType.F64), F32),
        lambda v: v.cv(v.cv(v.i, DType.F64), DType.S8),
    ),
    Case(
        "convert_of_convert",
        lambda v: v.cv(v.cv(v.i, DType.S16), DType.S8),
        lambda v: v.cv(v.cv(v.x, DType.F16), F32),
    ),
    Case("bitcast_convert_nothing", lambda v: v.bits(v.x, F32), lambda v: v.bits(v.x, U32)),
    Case(
        "bitcast_convert_of_bitcast_convert",
        lambda v: v.bits(v.bits(v.x, U32), S32),
        lambda v: v.bits(v.bits(v.x, DType.U16, 2, 3, 2), DType.S16, 2, 3, 2),
    ),
    Case("reduce_precision_nothing", lambda v: v.precision(v.x, 8, 23), lambda v: v.precision(v.x, 8, 7)),
    Case(
        "reduce_precision_twice",
        lambda v: v.precision(v.precision(v.x, 5, 10), 5, 10),
        lambda v: v.precision(v.precision(v.x, 5, 10), 8, 7),
    ),
    # shaping
    Case("broadcast_nothing", lambda v: v.bc(v.x, DIMS, 0, 1), lambda v: v.bc(v.v, DIMS, 1)),
    Case(
        "broadcast_of_broadcast",
        lambda v: v.bc(v.bc(v.v, (3, 2), 0), (4, 2, 3), 2, 1),
        lambda v: v.bc(v.x, (4, 2, 3), 1, 2),
    ),
    Case(
        "broadcast_of_transpose",
        lambda v: v.bc(v.t(v.x, 1, 0), (2, 4, 3), 2, 0),
        lambda v: v.bc(v.t(v.x, 1, 0), (4, 3, 2), 1, 2),
    ),
    Case(
        "broadcast_of_ones",
        lambda v: v.bc(v.rs(v.v, 3, 1), (2, 3, 1), 1, 2),
        lambda v: v.bc(v.rs(v.x, 6, 1), (2, 6, 1), 1, 2),
    ),
    Case(
        "broadcast_of_ones",
        lambda v: v.bc(v.rs(-v.rs(v.x, 2, 1, 3), 2, 3), (2, 1, 1, 3, 5), 0, 3),
        lambda v: v.bc(v.rs(-v.rs(v.x, 2, 1, 3), 2, 3), (1, 2, 3, 5), 1, 2),
    ),
    Case("broadcast_as_reshape", lambda v: v.bc(v.x, (3, 1, 2), 2, 0), lambda v: v.bc(v.x, (3, 2, 2), 2, 0)),
    Case("reshape_nothing", lambda v: v.rs(v.x, 2, 3), lambda v: v.rs(v.x, 3, 2)),
    Case("reshape_of_reshape", lambda v: v.rs(v.rs(v.x, 6), 3, 2), lambda v: v.rs(-v.x, 3, 2)),
    Case(
        "reshape_of_broadcast",
        lambda v: v.rs(v.bc(v.x, (2, 4, 5, 3), 0, 3), 2, 20, 3),
        lambda v: v.rs(v.bc(v.x, (2, 4, 5, 3), 0, 3), 8, 5, 3),
    ),
    Case(
        "reshape_of_iota",
        lambda v: v.rs(v.b.iota(S32, (1, 4), 1), 4, 1),
        lambda v: v.rs(v.b.iota(S32, (2, 4), 1), 8),
    ),
    Case("transpose_nothing", lambda v: v.t(v.x, 0, 1), lambda v: v.t(v.x, 1, 0)),
    Case("transpose_of_transpose", lambda v: v.t(v.t(v.x, 1, 0), 1, 0), lambda v: v.t(-v.x, 1, 0)),
    Case("transpose_as_reshape", lambda v: v.t(v.column, 1, 0), lambda v: v.t(v.x, 1, 0)),
    Case("transpose_of_broadcast", lambda v: v.t(v.bc(v.v, DIMS, 1), 1, 0), lambda v: v.t(v.x, 1, 0)),
    Case(
        "transpose_of_replicated",
        lambda v: v.t(v.bc(v.v, DIMS, 1) * v.bc(v.v, DIMS, 1) + v.bc(v.v, DIMS, 1), 1, 0),
        lambda v: v.t(v.bc(v.v, DIMS, 1) * v.bc(v.v, DIMS, 1) + v.x, 1, 0),
    ),
    Case("transpose_of_iota", lambda v: v.t(v.b.iota(S32, (3, 4), 0), 1, 0), lambda v: v.t(v.i, 1, 0)),
    Case("reverse_nothing", lambda v: v.rev(v.column, 1), lambda v: v.rev(v.column, 0)),
    Case("reverse_of_reverse", lambda v: v.rev(v.rev(v.x, 0, 1), 1), lambda v: v.rev(-v.x, 1)),
    Case(
        "constant_that_counts",
        lambda v: v.i + v.num(np.array([[0, 0, 0], [1, 1, 1]], np.int32)),
        lambda v: v.i + v.num(np.array([[0, 0, 0], [1, 1, 2]], np.int32)),
    ),
    Case("iota_of_one", lambda v: v.b.iota(S32, (3, 1), 1), lambda v: v.b.iota(S32, (3, 1), 0)),
    # slicing
    Case("slice_everything", lambda v: v.cut(v.x, (0, 2, 1), (0, 3, 1)), lambda v: v.cut(v.x, (0, 2, 1), (0, 2, 1))),
    Case(
        "slice_of_slice",
        lambda v: v.cut(v.cut(v.square, (1, 3, 1), (0, 3, 2)), (1, 2, 1), (1, 2, 1)),
        lambda v: v.cut(-v.square, (1, 2, 1), (1, 2, 1)),
    ),
    Case(
        "slice_of_broadcast",
        lambda v: v.cut(v.bc(v.v, (4, 3), 1), (1, 3, 1), (1, 2, 1)),
        lambda v: v.cut(v.x, (1, 2, 1), (1, 2, 1)),
    ),
    Case(
        "slice_of_concatenate",
        lambda v: v.cut(v.cat(0, v.x, v.y, v.square), (2, 4, 1), (0, 2, 1)),
        lambda v: v.cut(v.cat(0, v.x, v.y), (1, 3, 1), (0, 3, 1)),
    ),
    Case(
        "slice_of_pad",
        lambda v: v.cut(v.pad(v.x, v.num(1.0, F32), (1, 1, 0), (0, 2, 0)), (1, 3, 1), (1, 3, 1)),
        lambda v: v.cut(v.pad(v.x, v.num(1.0, F32), (1, 1, 0), (0, 2, 0)), (0, 3, 1), (1, 3, 1)),
    ),
    Case(
        "slice_of_transpose",
        lambda v: v.cut(v.t(v.x, 1, 0), (1, 2, 1), (0, 2, 1)),
        lambda v: v.cut(v.t(v.x, 1, 0), (1, 3, 1), (0, 2, 1)),
    ),
    Case("concatenate_of_one", lambda v: v.cat(0, v.x), lambda v: v.cat(0, v.x, v.x)),
    Case("concatenate_of_empty", lambda v: v.cat(1, v.x, v.empty, v.y), lambda v: v.cat(1, v.x, v.y)),
    Case(
        "concatenate_of_concatenate",
        lambda v: v.cat(0, v.cat(0, v.x, v.y), v.x),
        lambda v: v.cat(0, v.cat(1, v.x, v.y), v.cat(1, v.y, v.x)),
    ),
    Case(
        "concatenate_of_neighbours",
        lambda v: v.cat(1, v.cut(v.x, (0, 2, 1), (0, 1, 1)), v.cut(v.x, (0, 2, 1), (1, 3, 1))),
        lambda v: v.cat(1, v.cut(v.x, (0, 2, 1), (1, 3, 1)), v.cut(v.x, (0, 2, 1), (0, 1, 1))),
    ),
    Case(
        "concatenate_of_splats",
        lambda v: v.cat(0, v.full(2.0, v.x), v.full(2.0, v.square)),
        lambda v: v.cat(0, v.full(0.0, v.x), v.full(-0.0, v.square)),
    ),
    Case(
        "concatenate_as_pad",
        lambda v: v.cat(0, v.full(2.0, v.x), v.square, v.full(2.0, v.x)),
        lambda v: v.cat(0, v.full(2.0, v.x), v.square, v.full(1.0, v.x)),
    ),
    Case(
        "pad_nothing",
        lambda v: v.pad(v.x, v.num(1.0, F32), (0, 0, 0), (0, 0, 0)),
        lambda v: v.pad(v.x, v.num(1.0, F32), (0, 0, 1), (0, 0, 0)),
    ),
    Case(
        "pad_of_empty",
        lambda v: v.pad(v.empty, v.num(1.0, F32), (0, 0, 0), (1, 2, 0)),
        lambda v: v.pad(v.x, v.num(1.0, F32), (0, 0, 0), (1, 2, 0)),
    ),
    Case(
        "pad_of_splat",
        lambda v: v.pad(v.full(1.0, v.x), v.num(1.0, F32), (0, 0, 0), (1, 2, 0)),
        lambda v: v.pad(v.full(1.0, v.x), v.num(2.0, F32), (0, 0, 0), (1, 2, 0)),
    ),
    Case(
        "pad_negative",
        lambda v: v.pad(v.x, v.num(1.0, F32), (-1, 2, 0), (0, -1, 0)),
        lambda v: v.pad(v.x, v.num(1.0, F32), (0, 2, 0), (-1, 0, 1)),
    ),
    Case("pad_of_pad", lambda v: v.twice_padded(1.0, 1.0), lambda v: v.twice_padded(1.0, 2.0)),
    Case(
        "dynamic_slice_everything",
        lambda v: v.ds(v.x, (2, 3), v.k, v.k2),
        lambda v: v.ds(v.x, (2, 2), v.k, v.k2),
    ),
    Case(
        "dynamic_slice_at_constant",
        lambda v: v.ds(v.x, (1, 2), v.num(-7), v.num(9)),
        lambda v: v.ds(v.x, (1, 2), v.num(1), v.k),
    ),
    Case(
        "dynamic_slice_of_broadcast",
        lambda v: v.ds(v.bc(v.v, (4, 3), 1), (1, 2), v.k, v.k2),
        lambda v: v.ds(v.x, (1, 2), v.k, v.k2),
    ),
    Case(
        "dynamic_slice_of_update",
        lambda v: v.ds(v.dus(v.square, v.x, v.k, v.k2), (2, 3), v.k, v.k2),
        lambda v: v.ds(v.dus(v.square, v.x, v.k, v.k2), (2, 3), v.k2, v.k),
    ),
    Case("update_everything", lambda v: v.dus(v.x, v.y, v.k, v.k2), lambda v: v.dus(v.square, v.y, v.k, v.k2)),
    Case("update_nothing", lambda v: v.dus(v.x, v.empty, v.k, v.k2), lambda v: v.dus(v.square, v.x, v.k, v.k2)),
    Case(
        "update_with_own_slice",
        lambda v: v.dus(v.square, v.ds(v.square, (2, 3), v.k, v.k2), v.k, v.k2),
        lambda v: v.dus(v.square, v.ds(v.square, (2, 3), v.k2, v.k), v.k, v.k2),
    ),
    Case(
        "update_of_update",
        lambda v: v.dus(v.dus(v.square, v.x, v.k, v.k2), v.y, v.k, v.k2),
        lambda v: v.dus(v.dus(v.square, v.x, v.k, v.k2), v.y, v.k2, v.k),
    ),
    # reduction
    Case("reduce_of_nothing", lambda v: v.red(v.empty, "add", 3.0, 1), lambda v: v.red(v.x, "add", 3.0, 1)),
    Case("reduce_of_one", lambda v: v.red(v.column, "add", 0.0, 1), lambda v: v.red(v.x, "add", 0.0, 1)),
    Case(
        "reduce_of_broadcast",
        lambda v: v.red(v.bc(v.x, (4, 2, 3), 1, 2), "maximum", -1.0, 0, 2),
        lambda v: v.red(v.bc(v.x, (4, 2, 3), 1, 2), "multiply", 1.0, 0),
    ),
    Case(
        "exact_reduce_of_reduce",
        lambda v: v.red(v.red(v.i, "add", 0, 1), "add", 5, 0),
        lambda v: v.red(v.red(v.i, "add", 1, 1), "add", 5, 0),
    ),
    Case(
        "exact_reduce_of_transpose",
        lambda v: v.red(v.t(v.x, 1, 0), "maximum", 0.0, 0),
        lambda v: v.red(v.t(v.x, 1, 0), "add", 0.0, 0),
    ),
    Case(
        "exact_reduce_of_reshape",
        lambda v: v.red(v.rs(v.i, 3, 2), "add", 0, 0, 1),
        lambda v: v.red(v.rs(v.i, 3, 2), "add", 0, 0),
    ),
    Case("reduce_with_short_positions", lambda v: v.arg(DType.S64, 0), lambda v: v.arg(DType.S64, 2**31)),
    Case("sort_of_one", lambda v: v.sort(v.column, 1), lambda v: v.sort(v.column, 0)),
    Case("top_of_whole_rows", lambda v: v.top(DIMS[1], 1), lambda v: v.top(DIMS[1] - 1, 1)),
    Case("sort_of_what_is_used", lambda v: v.sort_both(0), lambda v: v.sort_both(1)),
    # dot
    Case("dot_of_nothing", lambda v: v.dot(v.empty, v.empty, (1,), (1,)), lambda v: v.dot(v.x, v.y, (1,), (1,))),
    Case("dot_as_product", lambda v: v.dot(v.column, v.column, (1,), (1,)), lambda v: v.dot(v.x, v.y, (1,), (1,))),
    Case(
        "dot_of_transpose",
        lambda v: v.dot(v.t(v.x, 1, 0), v.y, (0,), (1,)),
        lambda v: v.dot(v.x, v.y, (0,), (0,)),
    ),
    Case(
        "dot_of_large_transpose",
        lambda v: v.dot(v.t(v.cube, 1, 0, 2), v.v, (2,), (0,)),
        lambda v: v.dot(v.t(v.cube, 1, 0, 2), v.square, (2,), (0,)),
    ),
    Case(
        "dot_of_reshape",
        lambda v: v.dot(v.rs(v.x, 2, 1, 3), v.square, (2,), (0,)),
        lambda v: v.dot(v.rs(v.x, 3, 2), v.x, (1,), (0,)),
    ),
    Case(
        "dot_of_ones",
        lambda v: v.batch(-v.rs(v.cube, 2, 1, 4, 3), -v.cube, 3, 2),
        lambda v: v.dot(-v.rs(v.square, 1, 3, 3), -v.square, (2,), (1,)),
    ),
    Case(
        "dot_of_ones",
        lambda v: v.dot(-v.rs(v.x, 1, 2, 1, 3), -v.rs(v.square, 3, 1, 1, 3), (0, 3), (2, 0)),
        lambda v: v.dot(-v.rs(v.square, 1, 9), -v.rs(v.square, 9, 1), (1,), (0,)),
    ),
    Case(
        "dot_of_broadcast",
        lambda v: v.batch(v.cube, v.bc(v.square, (2, 3, 3), 1, 2), 2, 1),
        lambda v: v.batch(v.cube, v.bc(v.x, (2, 3, 4), 0, 1), 2, 1),
    ),
    Case(
        "reshape_of_transpose",
        lambda v: v.rs(v.t(v.bc(v.cube, (2, 4, 1, 3), 0, 1, 3), 2, 3, 1, 0), 3, 4, 2),
        lambda v: v.rs(v.t(v.cube, 2, 1, 0), 3, 1, 4, 2),
    ),
    Case(
        "transpose_of_dot",
        lambda v: v.t(v.dot(v.x, v.square, (1,), (0,)), 1, 0),
        lambda v: v.dot(v.x, v.square, (1,), (0,)),
    ),
    # indexing
    Case(
        "gather_of_one_window",
        lambda v: v.gather(v.square, v.k, (1, 3), (0,)),
        lambda v: v.gather(v.square, v.rs(v.i, 6), (1, 3), (1,)),
    ),
    Case(
        "gather_at_own_position",
        lambda v: v.gather_points(v.x, v.count((2, 1), 0), v.cut(v.i, (0, 2, 1), (1, 2, 1))),
        lambda v: v.gather_points(v.square, v.count((2, 1), 0), v.cut(v.i, (0, 2, 1), (1, 2, 1))),
    ),
    Case(
        "gather_of_transpose",
        lambda v: v.t(v.gather(v.t(v.x, 1, 0), v.rs(v.i, 6), (1, 2), (1,)), 1, 0),
        lambda v: v.t(v.gather(v.t(v.x, 1, 0), v.rs(v.i, 6), (1, 1), (1,)), 1, 0),
    ),
    Case(
        "scatter_at_own_position",
        lambda v: v.scatter_points(v.x, v.cat(1, v.b.constant(ROWS), v.cut(v.i, (0, 2, 1), (1, 2, 1))), v.v0),
        lambda v: v.scatter_points(v.x, v.cat(1, v.b.constant(ROWS[::-1]), v.cut(v.i, (0, 2, 1), (1, 2, 1))), v.v0),
    ),
    Case(
        "scatter_into_broadcast",
        lambda v: v.scatter_in_rows(v.full(0.5, v.x), v.rs(v.cut(v.i, (0, 2, 1), (1, 2, 1)), 2), v.v0),
        lambda v: v.scatter_in_rows(v.full(0.5, v.x), v.i, v.y),
    ),
    Case(
        "scatter_of_one_window",
        lambda v: v.scatter_window(v.square, v.b.constant(np.array([1, 0], np.int32)), v.x),
        lambda v: v.scatter_window(v.square, v.b.constant(np.array([2, 0], np.int32)), v.x),
    ),
    Case(
        "scatter_of_nothing",
        lambda v: v.scatter(v.x, v.cut(v.rs(v.i, 6, 1), (0, 0, 1), (0, 1, 1)), v.cut(v.x, (0, 0, 1), (0, 3, 1))),
        lambda v: v.scatter(v.square, v.cut(v.rs(v.i, 6, 1), (0, 2, 1), (0, 1, 1)), v.x),
    ),
)
REORDERING = (
    Case("dot_of_lines", lambda v: v.batch(v.x, v.y, 1, 1), lambda v: v.batch(v.cube, v.cube, 2, 2)),
    Case(
        "dot_of_lines",
        lambda v: v.b.op("dot", (v.cube, v.t(v.cube, 1, 2, 0)), DotAttrs((1, 0), (2,), (0, 2), (1,))),
        lambda v: v.dot(v.x, v.y, (0, 1), (0, 1)),
    ),
    Case(
        "dot_of_few",
        lambda v: v.batch(v.op("abs", v.bc(v.x, (8, 2, 3), 1, 2)), v.op("sign", v.bc(v.y, (8, 2, 3), 1, 2)), 2, 2),
        lambda v: v.batch(v.cube, v.cube, 2, 2),
    ),
    Case(
        "dot_of_few",
        lambda v: v.batch(v.op("abs", v.bc(v.i, (9, 2, 3), 1, 2)), v.op("abs", v.bc(v.cv(v.v, S32), (9, 3), 1)), 2, 1),
        lambda v: v.batch(v.bc(v.x, (9, 2, 3), 1, 2), v.op("abs", v.bc(v.v, (9, 3), 1)), 2, 1),
    ),
    Case(
        "reduce_of_stack",
        lambda v: v.red(v.cat(1, v.column, v.column), "add", 1.0, 1),
        lambda v: v.red(v.cat(1, v.column, v.x), "add", 1.0, 1),
    ),
    Case(
        "reduce_of_reduce",
        lambda v: v.red(v.red(v.x, "add", 0.0, 1), "add", 0.0, 0),
        lambda v: v.red(v.red(v.x, "multiply", 1.0, 1), "add", 0.0, 0),
    ),
    Case(
        "reduce_of_transpose",
        lambda v: v.red(v.t(v.square, 1, 0), "add", 0.0, 0),
        lambda v: v.red(v.x, "add", 0.0, 1),
    ),
    Case(
        "reduce_of_reshape",
        lambda v: v.red(v.rs(v.x, 6), "add", 0.0, 0),
        lambda v: v.red(v.rs(v.x, 3, 2), "add", 0.0, 1),
    ),
    Case(
        "reduce_of_reshape",
        lambda v: v.red(v.rs(v.column, 1, 2, 1), "add", 0.0, 1),
        lambda v: v.red(v.rs(v.column, 2), "add", 0.0, 0),
    ),
)
RELAXED = (
    Case("relaxed_add_zero", lambda v: v.x + 0.0, lambda v: v.x + 1.0),
    Case("relaxed_divide_by_constant", lambda v: v.x / 3.0, lambda v: v.x / 0.0),
    Case("relaxed_divide_by_square_root", lambda v: v.x / v.op("sqrt", v.y), lambda v: v.op("sqrt", v.y) / v.x),
    Case(
        "relaxed_log_of_exponential",
        lambda v: v.op("log", v.op("exponential", v.x)),
        lambda v: v.op("log", v.op("tanh", v.x)),
    ),
    Case(
        "relaxed_product_of_exponentials",
        lambda v: v.op("exponential", v.x) * v.op("exponential", v.y),
        lambda v: v.op("exponential", v.x) + v.op("exponential", v.y),
    ),
    Case("relaxed_subtract_itself", lambda v: v.x - v.x, lambda v: v.x - v.y),
)


def build(make: Make) -> HloModule:
    values = Values()
    return values.b.build_module(make(values))


def fired(module: HloModule) -> set[str]:
    return {decision.subject[0] for decision in module.decisions if decision.verdict == "applied"}


def ids(case: Case) -> str:
    return case.rule


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_rule_fires_and_keeps_every_bit(case: Case, transform) -> None:
    result = transform(AlgebraicSimplifier(reorder_reductions=False), build(case.fires))
    assert case.rule in fired(result.module)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_rule_leaves_what_it_must_not_touch(case: Case, transform) -> None:
    result = transform(AlgebraicSimplifier(reorder_reductions=False), build(case.keeps))
    assert case.rule not in fired(result.module)


@pytest.mark.parametrize("case", REORDERING, ids=ids)
def test_reordering_rule_fires_only_when_allowed(case: Case, transform, rng: np.random.Generator) -> None:
    before = build(case.fires)
    arguments = [
        rng.integers(0, 4, p.shape.dims).astype(p.shape.dtype.numpy) for p in before.entry_computation.parameters
    ]
    expected = evaluate(before, *arguments)
    result = transform(AlgebraicSimplifier(), before, evaluated=False)
    assert case.rule in fired(result.module)
    np.testing.assert_array_equal(evaluate(result.module, *arguments), expected)
    assert case.rule not in fired(transform(AlgebraicSimplifier(), build(case.keeps), evaluated=False).module)
    assert case.rule not in fired(transform(AlgebraicSimplifier(reorder_reductions=False), build(case.fires)).module)


@pytest.mark.parametrize("case", RELAXED, ids=ids)
def test_relaxed_rule_fires_only_by_name(case: Case, transform) -> None:
    relaxed = AlgebraicSimplifier(relaxed=frozenset({case.rule}))
    assert case.rule in fired(transform(relaxed, build(case.fires), evaluated=False).module)
    assert case.rule not in fired(transform(relaxed, build(case.keeps)).module)
    assert case.rule not in fired(transform(AlgebraicSimplifier(), build(case.fires)).module)


def test_every_rule_has_a_case_and_an_identity() -> None:
    tested = {case.rule for case in (*CASES, *REORDERING, *RELAXED)}
    assert {rule.name for rule in all_rules()} - tested == {"power_half"}
    assert all(rule.identity for rule in all_rules())


def test_relaxed_rules_say_so_in_their_name() -> None:
    for rule in all_rules():
        assert rule.name.startswith("relaxed_") == (rule.strictness is Strictness.RELAXED), rule.name


def test_explain_mode_records_why_a_rule_declined(transform) -> None:
    result = transform(AlgebraicSimplifier(explain=True), build(lambda v: v.x**0.5))
    decision = next(d for d in result.module.decisions if d.verdict == "declined")
    assert decision.subject[0] == "power_half"
    assert decision.reason == "sqrt(-0) is -0 and sqrt(-inf) is NaN"


def test_disabled_rule_does_not_fire(transform) -> None:
    simplifier = AlgebraicSimplifier(disabled=frozenset({"negate_twice"}))
    assert not transform(simplifier, build(lambda v: v.op("negate", -v.x))).changed


def test_unknown_rule_is_refused() -> None:
    with pytest.raises(PassError, match="algebraic-simplifier: there is no rule 'add_nil'"):
        AlgebraicSimplifier(disabled=frozenset({"add_nil"}))


def test_control_dependencies_keep_an_instruction(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  first = f32[2] tanh(x)
  twice = f32[2] negate(x)
  back = f32[2] negate(twice), control-predecessors={first}
  ROOT t = (f32[2], f32[2]) tuple(first, back)
}
"""
    assert not transform(AlgebraicSimplifier(), text).changed


def test_a_reducer_that_ignores_an_operand_leaves_no_trace_of_it() -> None:
    """What it ignores is not made an operand of anything."""
    b = Builder("m")
    x, start = b.parameter(Shape.array(F32, (1,))), b.parameter(Shape.array(F32))
    second = b.subcomputation(
        "second", (Shape.array(F32), Shape.array(F32)), lambda inner, p: inner.op("copy", (p[1],))
    )
    module = b.build_module(b.reduce(x, start, (0,), second))
    assert AlgebraicSimplifier().run(module)
    verify(module)
    assert module.entry_computation.parameters[1].user_count == 0
    np.testing.assert_array_equal(evaluate(module, np.array([3], np.float32), np.float32(4)), 3)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_integral])
@pytest.mark.parametrize("dims", [(2,), (300,), (1, 2), (3, 2), (2, 3, 1), (1,), (0,), (2, 0), ()])
def test_constants_that_count_are_iotas(dtype: DType, dims: tuple[int, ...], transform) -> None:
    least, greatest = integer_range(dtype)
    for along, size in enumerate(dims or (1,)):
        positions = np.zeros(dims, np.int64)
        if dims:
            positions += np.arange(size).reshape(-1, *(1,) * (len(dims) - along - 1))
        counted = size > 1 and positions.size > 0 and size - 1 <= greatest
        for change in (0, 1):
            numbers = (positions + change if counted else np.clip(positions, least, greatest)).astype(dtype.numpy)
            b = Builder("m")
            module = b.build_module(b.constant(numbers, dtype))
            result = transform(AlgebraicSimplifier(), module)
            assert ("constant_that_counts" in fired(result.module)) == (counted and not change)
