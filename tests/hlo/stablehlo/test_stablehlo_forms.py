"""Every operation in its pretty and its generic spelling, and the HLO it becomes."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np
import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.stablehlo.rules.elementwise_rules import TWINS
from xlalite.hlo.stablehlo.rules.table import RULES
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

ADD = """({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = "stablehlo.add"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    })"""
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>"
F, P = "tensor<2x3xf32>", "tensor<2x3xi1>"


@dataclass(frozen=True)
class Form:
    """An operation: types of the operands a, b, ..., of the results, both spellings, and a piece of the HLO text."""

    operands: str
    results: str
    pretty: str
    generic: str
    hlo: str


def same(name: str, count: int = 1, hlo: str = "", kind: str = F, dialect: str = "stablehlo") -> Form:
    """An operation on arrays of one type."""
    names = ["%a", "%b", "%c"][:count]
    types = ", ".join([kind] * count)
    listed = ", ".join(names)
    pretty_types = f"{types} -> {kind}" if dialect == "chlo" else kind
    return Form(
        "; ".join([kind] * count),
        kind,
        f"{dialect}.{name} {listed} : {pretty_types}",
        f'"{dialect}.{name}"({listed}) : ({types}) -> {kind}',
        (hlo or name.replace("_", "-")) + "(",
    )


UNARY = "abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate " + (
    "round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
)
BINARY = "add atan2 divide maximum minimum multiply power remainder subtract"
INTEGER = "and or xor shift_left shift_right_arithmetic shift_right_logical"
WHOLE = "tensor<4xi32>"
T = "!stablehlo.token"

FORMS: dict[str, Form] = {
    **{name: same(name) for name in UNARY.split()},
    **{name: same(name, 2) for name in BINARY.split()},
    **{name: same(name, 2, kind=WHOLE) for name in INTEGER.split()},
    **{name: same(name, kind=WHOLE) for name in ("not", "popcnt", "count_leading_zeros")},
    **{
        f"chlo.{name}": same(name, dialect="chlo")
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "sinh", "tan")
    },
    "chlo.square": same("square", hlo="multiply", dialect="chlo"),
    "select": Form(
        f"{P}; {F}; {F}",
        F,
        f"stablehlo.select %a, %b, %c : {P}, {F}",
        f'"stablehlo.select"(%a, %b, %c) : ({P}, {F}, {F}) -> {F}',
        "select(",
    ),
    "clamp": Form(
        f"tensor<f32>; {F}; tensor<f32>",
        F,
        f"stablehlo.clamp %a, %b, %c : (tensor<f32>, {F}, tensor<f32>) -> {F}",
        f'"stablehlo.clamp"(%a, %b, %c) : (tensor<f32>, {F}, tensor<f32>) -> {F}',
        "clamp(",
    ),
    "compare": Form(
        f"{F}; {F}",
        P,
        f"stablehlo.compare LT, %a, %b, TOTALORDER : ({F}, {F}) -> {P}",
        f'"stablehlo.compare"(%a, %b) <{{compare_type = #stablehlo<comparison_type TOTALORDER>, '
        f"comparison_direction = #stablehlo<comparison_direction LT>}}> : ({F}, {F}) -> {P}",
        "direction=LT, type=TOTALORDER",
    ),
    "is_finite": Form(
        F, P, f"stablehlo.is_finite %a : ({F}) -> {P}", f'"stablehlo.is_finite"(%a) : ({F}) -> {P}', "is-finite("
    ),
    "complex": Form(
        f"{F}; {F}",
        "tensor<2x3xcomplex<f32>>",
        "stablehlo.complex %a, %b : tensor<2x3xcomplex<f32>>",
        f'"stablehlo.complex"(%a, %b) : ({F}, {F}) -> tensor<2x3xcomplex<f32>>',
        "c64[2,3]",
    ),
    "real": Form(
        "tensor<2x3xcomplex<f32>>",
        F,
        f"stablehlo.real %a : (tensor<2x3xcomplex<f32>>) -> {F}",
        f'"stablehlo.real"(%a) : (tensor<2x3xcomplex<f32>>) -> {F}',
        "real(",
    ),
    "imag": Form(
        "tensor<2x3xcomplex<f32>>",
        F,
        f"stablehlo.imag %a : (tensor<2x3xcomplex<f32>>) -> {F}",
        f'"stablehlo.imag"(%a) : (tensor<2x3xcomplex<f32>>) -> {F}',
        "imag(",
    ),
    "convert": Form(
        F,
        "tensor<2x3xf8E4M3FN>",
        f"stablehlo.convert %a : ({F}) -> tensor<2x3xf8E4M3FN>",
        f'"stablehlo.convert"(%a) : ({F}) -> tensor<2x3xf8E4M3FN>',
        "f8e4m3fn[2,3]",
    ),
    "bitcast_convert": Form(
        F,
        "tensor<2x3x2xui16>",
        f"stablehlo.bitcast_convert %a : ({F}) -> tensor<2x3x2xui16>",
        f'"stablehlo.bitcast_convert"(%a) : ({F}) -> tensor<2x3x2xui16>',
        "u16[2,3,2]",
    ),
    "reduce_precision": Form(
        F,
        F,
        f"stablehlo.reduce_precision %a, format = e5m10 : {F}",
        f'"stablehlo.reduce_precision"(%a) <{{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}}> : ({F}) -> {F}',
        "exponent_bits=5, mantissa_bits=10",
    ),
    "broadcast_in_dim": Form(
        "tensor<1x3xf32>",
        F,
        f"stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x3xf32>) -> {F}",
        f'"stablehlo.broadcast_in_dim"(%a) <{{broadcast_dimensions = array<i64: 0, 1>}}> : (tensor<1x3xf32>) -> {F}',
        "broadcast(%reshape), dimensions={1}",
    ),
    "dynamic_broadcast_in_dim": Form(
        "tensor<3xf32>; tensor<2xi64>",
        F,
        f"stablehlo.dynamic_broadcast_in_dim %a, %b, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> {F}",
        '"stablehlo.dynamic_broadcast_in_dim"(%a, %b) <{broadcast_dimensions = array<i64: 1>}> : '
        f"(tensor<3xf32>, tensor<2xi64>) -> {F}",
        "dimensions={1}",
    ),
    "broadcast": Form(
        "tensor<3xf32>",
        F,
        f"stablehlo.broadcast %a, sizes = [2] : (tensor<3xf32>) -> {F}",
        f'"stablehlo.broadcast"(%a) <{{broadcast_sizes = array<i64: 2>}}> : (tensor<3xf32>) -> {F}',
        "dimensions={1}",
    ),
    "reshape": Form(
        F,
        "tensor<6xf32>",
        f"stablehlo.reshape %a : ({F}) -> tensor<6xf32>",
        f'"stablehlo.reshape"(%a) : ({F}) -> tensor<6xf32>',
        "reshape(",
    ),
    "transpose": Form(
        F,
        "tensor<3x2xf32>",
        f"stablehlo.transpose %a, dims = [1, 0] : ({F}) -> tensor<3x2xf32>",
        f'"stablehlo.transpose"(%a) <{{permutation = array<i64: 1, 0>}}> : ({F}) -> tensor<3x2xf32>',
        "dimensions={1,0}",
    ),
    "reverse": Form(
        F,
        F,
        f"stablehlo.reverse %a, dims = [1] : {F}",
        f'"stablehlo.reverse"(%a) <{{dimensions = array<i64: 1>}}> : ({F}) -> {F}',
        "dimensions={1}",
    ),
    "iota": Form(
        "",
        F,
        f"stablehlo.iota dim = 1 : {F}",
        f'"stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> {F}',
        "iota_dimension=1",
    ),
    "slice": Form(
        F,
        "tensor<1x2xf32>",
        f"stablehlo.slice %a [1:2, 0:3:2] : ({F}) -> tensor<1x2xf32>",
        '"stablehlo.slice"(%a) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 1, 0>, '
        f"strides = array<i64: 1, 2>}}> : ({F}) -> tensor<1x2xf32>",
        "slice={[1:2:1], [0:3:2]}",
    ),
    "dynamic_slice": Form(
        f"{F}; tensor<i32>; tensor<i32>",
        "tensor<1x2xf32>",
        f"stablehlo.dynamic_slice %a, %b, %c, sizes = [1, 2] : ({F}, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>",
        '"stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 1, 2>}> : '
        f"({F}, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>",
        "dynamic_slice_sizes={1,2}",
    ),
    "dynamic_update_slice": Form(
        f"{F}; tensor<1x2xf32>; tensor<i32>",
        F,
        f"stablehlo.dynamic_update_slice %a, %b, %c, %c : ({F}, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> {F}",
        f'"stablehlo.dynamic_update_slice"(%a, %b, %c, %c) : ({F}, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> {F}',
        "dynamic-update-slice(",
    ),
    "pad": Form(
        f"{F}; tensor<f32>",
        "tensor<4x5xf32>",
        "stablehlo.pad %a, %b, low = [1, -1], high = [1, 1], interior = [0, 1] : "
        f"({F}, tensor<f32>) -> tensor<4x5xf32>",
        '"stablehlo.pad"(%a, %b) <{edge_padding_high = array<i64: 1, 1>, edge_padding_low = array<i64: 1, -1>, '
        f"interior_padding = array<i64: 0, 1>}}> : ({F}, tensor<f32>) -> tensor<4x5xf32>",
        "padding=1_1_0x-1_1_1",
    ),
    "concatenate": Form(
        f"{F}; {F}",
        "tensor<2x6xf32>",
        f"stablehlo.concatenate %a, %b, dim = 1 : ({F}, {F}) -> tensor<2x6xf32>",
        f'"stablehlo.concatenate"(%a, %b) <{{dimension = 1 : i64}}> : ({F}, {F}) -> tensor<2x6xf32>',
        "dimensions={1}",
    ),
    "reduce": Form(
        f"{F}; tensor<f32>",
        "tensor<3xf32>",
        f"stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [0] : ({F}, tensor<f32>) "
        "-> tensor<3xf32>",
        f'"stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 0>}}> {ADD} : ({F}, tensor<f32>) -> tensor<3xf32>',
        "dimensions={0}, to_apply=",
    ),
    "dot_general": Form(
        f"{F}; {F}",
        "tensor<2xf32>",
        f"stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], "
        f"precision = [HIGHEST, DEFAULT] : ({F}, {F}) -> tensor<2xf32>",
        '"stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], '
        "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, "
        "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}> : "
        f"({F}, {F}) -> tensor<2xf32>",
        "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}, "
        "operand_precision={highest,default}",
    ),
    "dot_algorithm": Form(
        "tensor<2x2xf32>; tensor<2x2xf32>",
        "tensor<2x2xf32>",
        "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, "
        "rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
        "num_primitive_operations = 3, allow_imprecise_accumulation = false> : "
        "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        '"stablehlo.dot_general"(%a, %b) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, '
        "rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
        "num_primitive_operations = 3, allow_imprecise_accumulation = false>, dot_dimension_numbers = "
        "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : "
        "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        "algorithm=dot_bf16_bf16_f32_x3",
    ),
    "dot": Form(
        f"{F}; tensor<3x2xf32>",
        "tensor<2x2xf32>",
        f"stablehlo.dot %a, %b : ({F}, tensor<3x2xf32>) -> tensor<2x2xf32>",
        f'"stablehlo.dot"(%a, %b) : ({F}, tensor<3x2xf32>) -> tensor<2x2xf32>',
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "convolution": Form(
        "tensor<1x8x8x3xf32>; tensor<3x3x3x4xf32>",
        "tensor<1x4x8x4xf32>",
        "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = "
        "[2, 1], pad = [[0, 1], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count "
        "= 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>",
        '"stablehlo.convolution"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<'
        "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[0, 1], [1, 1]]> "
        ": tensor<2x2xi64>, window_reversal = array<i1: true, false>, window_strides = array<i64: 2, 1>}> : "
        "(tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>",
        "window={size=3x3 stride=2x1 pad=0_1x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f",
    ),
    "fft": Form(
        F,
        "tensor<2x2xcomplex<f32>>",
        f"stablehlo.fft %a, type = RFFT, length = [3] : ({F}) -> tensor<2x2xcomplex<f32>>",
        '"stablehlo.fft"(%a) <{fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type RFFT>}> : '
        f"({F}) -> tensor<2x2xcomplex<f32>>",
        "fft_type=RFFT, fft_length={3}",
    ),
    "cholesky": Form(
        "tensor<2x2xf32>",
        "tensor<2x2xf32>",
        "stablehlo.cholesky %a, lower = true : tensor<2x2xf32>",
        '"stablehlo.cholesky"(%a) <{lower = true}> : (tensor<2x2xf32>) -> tensor<2x2xf32>',
        "cholesky(%a), lower=true",
    ),
    "rng": Form(
        "tensor<f32>; tensor<f32>; tensor<2xi64>",
        F,
        f"stablehlo.rng %a, %b, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> {F}",
        '"stablehlo.rng"(%a, %b, %c) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : '
        f"(tensor<f32>, tensor<f32>, tensor<2xi64>) -> {F}",
        "distribution=rng_uniform",
    ),
    "rng_bit_generator": Form(
        "tensor<2xui64>",
        "tensor<2xui64>; tensor<3xui32>",
        "stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)",
        '"stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : '
        "(tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)",
        "algorithm=rng_three_fry",
    ),
    "custom_call": Form(
        F,
        F,
        'stablehlo.custom_call @foo(%a) {api_version = 4 : i32, backend_config = {s = "q", x = 1 : i32}, '
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = "
        "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], "
        f"result_layouts = [dense<[1, 0]> : tensor<2xindex>]}} : ({F}) -> {F}",
        '"stablehlo.custom_call"(%a) <{api_version = 4 : i32, backend_config = {s = "q", x = 1 : i32}, '
        'call_target_name = "foo", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = '
        "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], "
        f"result_layouts = [dense<[1, 0]> : tensor<2xindex>]}}> : ({F}) -> {F}",
        'custom_call_target="foo", operand_layout_constraints={f32[2,3]{0,1}}, '
        "output_to_operand_aliasing={{}: (0, {})}",
    ),
    "tuple": Form(
        f"{F}; tensor<i1>",
        f"tuple<{F}, tensor<i1>>",
        f"stablehlo.tuple %a, %b : tuple<{F}, tensor<i1>>",
        f'"stablehlo.tuple"(%a, %b) : ({F}, tensor<i1>) -> tuple<{F}, tensor<i1>>',
        "tuple(",
    ),
    "get_tuple_element": Form(
        f"tuple<{F}, tensor<i1>>",
        F,
        f"stablehlo.get_tuple_element %a[0] : (tuple<{F}, tensor<i1>>) -> {F}",
        f'"stablehlo.get_tuple_element"(%a) <{{index = 0 : i32}}> : (tuple<{F}, tensor<i1>>) -> {F}',
        "index=0",
    ),
    "optimization_barrier": Form(
        f"{F}; {P}",
        f"{F}; {P}",
        f"stablehlo.optimization_barrier %a, %b : {F}, {P}",
        f'"stablehlo.optimization_barrier"(%a, %b) : ({F}, {P}) -> ({F}, {P})',
        "opt-barrier(",
    ),
    "after_all": Form(
        f"{T}; {T}",
        T,
        f"stablehlo.after_all %a, %b : {T}",
        f'"stablehlo.after_all"(%a, %b) : ({T}, {T}) -> {T}',
        "after-all(",
    ),
    "create_token": Form(
        "", T, f"stablehlo.create_token : {T}", f'"stablehlo.create_token"() : () -> {T}', "after-all("
    ),
    "partition_id": Form(
        "",
        "tensor<ui32>",
        "stablehlo.partition_id : tensor<ui32>",
        '"stablehlo.partition_id"() : () -> tensor<ui32>',
        "partition-id(",
    ),
    "replica_id": Form(
        "",
        "tensor<ui32>",
        "stablehlo.replica_id : tensor<ui32>",
        '"stablehlo.replica_id"() : () -> tensor<ui32>',
        "replica-id(",
    ),
    "get_dimension_size": Form(
        F,
        "tensor<i32>",
        f"stablehlo.get_dimension_size %a, dim = 1 : ({F}) -> tensor<i32>",
        f'"stablehlo.get_dimension_size"(%a) <{{dimension = 1 : i64}}> : ({F}) -> tensor<i32>',
        "constant(3)",
    ),
    "chlo.top_k": Form(
        F,
        "tensor<2x2xf32>; tensor<2x2xi32>",
        f"chlo.top_k(%a, k = 2) : {F} -> (tensor<2x2xf32>, tensor<2x2xi32>)",
        f'"chlo.top_k"(%a) <{{k = 2 : i64}}> : ({F}) -> (tensor<2x2xf32>, tensor<2x2xi32>)',
        "k=2",
    ),
    "chlo.broadcast_add": Form(
        f"{F}; tensor<3xf32>",
        F,
        f"chlo.broadcast_add %a, %b {{broadcast_dimensions = array<i64: 1>}} : ({F}, tensor<3xf32>) -> {F}",
        f'"chlo.broadcast_add"(%a, %b) <{{broadcast_dimensions = array<i64: 1>}}> : ({F}, tensor<3xf32>) -> {F}',
        "add(",
    ),
    "chlo.is_inf": Form(F, P, f"chlo.is_inf %a : {F} -> {P}", f'"chlo.is_inf"(%a) : ({F}) -> {P}', "direction=EQ"),
}
# Operations that MLIR prints in the generic spelling only: (operand types, result types, text, HLO).
GENERIC: dict[str, tuple[str, str, str, str]] = {
    "map": (f"{F}; {F}", F, f'"stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> {ADD} :', "dimensions={0,1}"),
    "copy": (F, F, '"mhlo.copy"(%a) :', " copy("),
    "mulhi": ("tensor<3xui32>; tensor<3xui32>", "tensor<3xui32>", '"mhlo.mulhi"(%a, %b) :', " mulhi("),
    "gather": (
        "tensor<5xf32>; tensor<2x1xi32>",
        "tensor<2xf32>",
        '"stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], '
        "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1>}> :",
        "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}, indices_are_sorted=true",
    ),
    "torch_index_select": (
        "tensor<4x3xf32>; tensor<2xi64>",
        "tensor<2x3xf32>",
        '"stablehlo.torch_index_select"(%a, %b) <{batch_dims = 0 : i64, dim = 0 : i64}> :',
        "slice_sizes={1,3}",
    ),
    "scatter": (
        "tensor<5xf32>; tensor<2x1xi32>; tensor<2xf32>",
        "tensor<5xf32>",
        '"stablehlo.scatter"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], '
        f"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}}> {ADD} :",
        "unique_indices=true",
    ),
    "reduce_window": (
        f"{F}; tensor<f32>",
        F,
        '"stablehlo.reduce_window"(%a, %b) <{padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>, '
        f"window_dimensions = array<i64: 1, 3>}}> {ADD} :",
        "window={size=1x3 pad=0_0x2_0}",
    ),
    "triangular_solve": (
        "tensor<2x2xf32>; tensor<2x2xf32>",
        "tensor<2x2xf32>",
        '"stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = '
        "#stablehlo<transpose ADJOINT>, unit_diagonal = false}> :",
        "transpose_a=ADJOINT",
    ),
    "batch_norm_training": (
        "tensor<1x4x4x2xf32>; tensor<2xf32>; tensor<2xf32>",
        "tensor<1x4x4x2xf32>; tensor<2xf32>; tensor<2xf32>",
        '"stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> :',
        "epsilon=0.001, feature_index=3",
    ),
    "all_reduce": (F, F, f'"stablehlo.all_reduce"(%a) <{{{CHANNEL}, {GROUPS}}}> {ADD} :', "replica_groups={{0,1}}"),
    "reduce_scatter": (
        "tensor<4xf32>",
        "tensor<2xf32>",
        f'"stablehlo.reduce_scatter"(%a) <{{{GROUPS}, scatter_dimension = 0 : i64}}> {ADD} :',
        "reduce-scatter(",
    ),
    "all_gather": (
        F,
        "tensor<4x3xf32>",
        f'"stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {CHANNEL}, {GROUPS}, use_global_device_ids}}> :',
        "use_global_device_ids=true",
    ),
    "all_to_all": (
        "tensor<4x4xf32>",
        "tensor<2x8xf32>",
        '"stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, split_count = 2 : i64, split_dimension = 0 : i64, '
        f"{GROUPS}}}> :",
        "all-to-all(",
    ),
    "collective_permute": (
        F,
        F,
        '"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> :',
        "source_target_pairs={{0,1}}",
    ),
    "collective_broadcast": (F, F, f'"stablehlo.collective_broadcast"(%a) <{{{GROUPS}}}> :', "collective-broadcast("),
    "infeed": (T, f"{F}; {T}", '"stablehlo.infeed"(%a) <{infeed_config = "x", layout = [[0, 1]]}> :', "infeed("),
    "outfeed": (f"{F}; {T}", T, '"stablehlo.outfeed"(%a, %b) <{outfeed_config = "x"}> :', 'outfeed_config="x"'),
    "send": (f"{F}; {T}", T, f'"stablehlo.send"(%a, %b) <{{{CHANNEL}, is_host_transfer = true}}> :', "channel_id=3"),
    "recv": (T, f"{F}; {T}", f'"stablehlo.recv"(%a) <{{{CHANNEL}, is_host_transfer = true}}> :', "recv-done("),
}


def function(operands: str, results: str, operation: str) -> str:
    """A function around one operation."""
    types = [kind for kind in operands.split("; ") if kind]
    outs = results.split("; ")
    parameters = ", ".join(f"%{letter}: {kind}" for letter, kind in zip("abc", types, strict=False))
    names = [f"%r#{i}" for i in range(len(outs))] if len(outs) > 1 else ["%r"]
    head = f"%r:{len(outs)}" if len(outs) > 1 else "%r"
    listed = f"({', '.join(outs)})"
    return (
        f"func.func @main({parameters}) -> {listed} {{\n  {head} = {operation}\n"
        f"  return {', '.join(names)} : {', '.join(outs)}\n}}\n"
    )


@pytest.mark.parametrize("name", FORMS)
def test_both_spellings_become_the_same_hlo(name: str) -> None:
    form = FORMS[name]
    pretty = parse(function(form.operands, form.results, form.pretty))
    generic = parse(function(form.operands, form.results, form.generic))
    verify(pretty)
    assert structurally_equal(pretty, generic)
    assert form.hlo in str(pretty)


@pytest.mark.parametrize("name", GENERIC)
def test_generic_operations_become_hlo(name: str) -> None:
    operands, results, text, hlo = GENERIC[name]
    module = parse(
        function(operands, results, f"{text} ({operands.replace(';', ',')}) -> ({results.replace(';', ',')})")
    )
    verify(module)
    assert hlo in str(module)


def test_every_rule_has_a_form() -> None:
    tried = {name.rpartition(".")[2] for name in (*FORMS, *GENERIC)}
    elsewhere = {  # in the other tests of this folder
        *("while", "if", "case", "call", "composite", "sort", "select_and_scatter", "constant", "sharding_constraint"),
        *("manual_computation", "async_start", "async_done", "sharding_group"),
        *("batch_norm_inference", "batch_norm_grad", "dynamic_iota", "dynamic_reshape", "constant_like", "conj"),
        *("bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "next_after", "polygamma", "zeta"),
        *("is_neg_inf", "is_pos_inf"),
    }
    names = {name.rpartition(".")[2] for name in RULES} - TWINS.keys()
    assert {name for name in names - tried - elsewhere if not name.startswith("broadcast_")} == set()


def test_all_to_all_moves_pieces_between_dimensions() -> None:
    text = function(
        "tensor<4x4xf32>", "tensor<2x8xf32>", GENERIC["all_to_all"][2] + " (tensor<4x4xf32>) -> tensor<2x8xf32>"
    )
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    (result,) = [np.asarray(evaluate(parse(text.replace("[[0, 1]]", "[[0]]").replace("1x2xi64", "1x1xi64")), x))]
    # One device keeps all pieces; the rows' halves come to lie beside each other.
    np.testing.assert_array_equal(result, np.concatenate([x[:2], x[2:]], 1))


def odd(text: str, chance: random.Random) -> str:
    """The text with a number that is too long for Python or 64 bits, or with a letter that no text should have."""
    numbers = [*re.finditer(r"\d+(?:\.\d+)?", text)]
    if numbers and chance.randrange(2):
        place = chance.choice(numbers)
        number = chance.choice(
            ("9" * 5000, "1" + "0" * 25, "0x" + "f" * 300, "0." + "9" * 5000, "1e99999", "-" + "8" * 5000)
        )
        return text[: place.start()] + number + text[place.end() :]
    place = chance.randrange(len(text))
    letter = chance.choice(("\ud800", "\udcff", "\x1b[2J", "\x00", "\x85", "\u202e", "\u0663", "\xb2"))
    return text[:place] + letter + text[place:]


def check_odd(text: str) -> None:
    refusal = ""
    try:
        verify(parse(text))
    except ParseError as error:
        refusal = str(error)
    assert refusal.encode().decode().replace("\n", "").isprintable()


def odd_forms(chance: random.Random) -> list[str]:
    texts = [
        function(form.operands, form.results, text) for form in FORMS.values() for text in (form.pretty, form.generic)
    ]
    return [odd(text, chance) for text in texts]


def test_odd_numbers_and_letters_are_refused_or_read() -> None:
    chance = random.Random(11)
    for _ in range(4):
        for text in odd_forms(chance):
            check_odd(text)


@pytest.mark.slow
def test_many_odd_numbers_and_letters_are_refused_or_read() -> None:
    chance = random.Random(12)
    for _ in range(100):
        for text in odd_forms(chance):
            check_odd(text)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ("dense<0.0>", "4x0xf32", np.zeros((4, 0), np.float32)),
        ("dense<7>", "0xi32", np.zeros(0, np.int32)),
        ("dense<true>", "0x2xi1", np.zeros((0, 2), np.bool_)),
        ("dense<(1.0,2.0)>", "0xcomplex<f32>", np.zeros(0, np.complex64)),
        ("dense<>", "4x0xf32", np.zeros((4, 0), np.float32)),
        ("dense<[[], []]>", "2x0xf32", np.zeros((2, 0), np.float32)),
        ('dense<"0x">', "0xf32", np.zeros(0, np.float32)),
        ("dense<(1.0,2.0)>", "2xcomplex<f32>", np.array([1 + 2j, 1 + 2j], np.complex64)),
        ('dense<"0x0000803F00000040">', "2xcomplex<f32>", np.array([1 + 2j, 1 + 2j], np.complex64)),
        ("dense<[0x7F800000, -0.0]>", "2xf32", np.array([np.inf, -0.0], np.float32)),
        ("dense<[0xFF, -0x1]>", "2xi8", np.array([-1, -1], np.int8)),
        ("dense<0x1>", "2xi1", np.array([True, True])),
        ('dense<"0x05">', "3xi1", np.array([True, False, True])),
    ],
)
def test_constants_in_every_spelling(values: str, kind: str, expected: np.ndarray) -> None:
    text = function("", f"tensor<{kind}>", f"stablehlo.constant {values} : tensor<{kind}>")
    found = np.asarray(evaluate(parse(text)))
    assert found.tobytes() == expected.tobytes()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("dense<one>", "0xf32"),
        ("dense<1, 2>", "0xi32"),
        ("dense<[1]>", "0xi32"),
        ("dense<1_000>", "2xi32"),
        ("dense<0.5>", "0xi32"),
        ('dense<"0x00">', "0xf32"),
    ],
)
def test_constants_that_mean_nothing_are_refused(values: str, kind: str) -> None:
    with pytest.raises(ParseError, match="constant: "):
        parse(function("", f"tensor<{kind}>", f"stablehlo.constant {values} : tensor<{kind}>"))
