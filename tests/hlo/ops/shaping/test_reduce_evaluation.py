"""reduce, map, and the recognition of monoids."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity, recognise_monoid, recognise_monoids
from xlalite.hlo.ops.reduction import MapAttrs
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

F32, S32 = DType.F32, DType.S32
ARRAY_TYPES = [dtype for dtype in DType if dtype.is_array]


def reduce(opcode: str, x: np.ndarray, initial: np.ndarray, dimensions: tuple[int, ...]) -> np.ndarray:
    dtype = DType.from_numpy(x.dtype)
    builder = Builder("reduce")
    operand, start = builder.parameter(Shape.array(dtype, x.shape)), builder.parameter(Shape.array(dtype))
    return np.asarray(evaluate(builder.build_module(builder.reduce(operand, start, dimensions, opcode)), x, initial))


def by_fold(opcode: str, x: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """Over the first dimension, one element after the other, by way of the elementwise operation."""
    dtype = DType.from_numpy(x.dtype)
    builder = Builder("step")
    shape = Shape.array(dtype, x.shape[1:])
    module = builder.build_module(builder.op(opcode, (builder.parameter(shape), builder.parameter(shape))))
    total = np.broadcast_to(initial, x.shape[1:])
    for row in x:
        total = evaluate(module, total, row)
    return np.asarray(total)


def small_numbers(dtype: DType, dims: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype is DType.PRED:
        return rng.random(dims) < 0.5
    low = -2 if dtype.is_signed or dtype.is_floating or dtype.is_complex else 0
    return rng.integers(low, 3, dims).astype(np.float32).astype(dtype.numpy)


EXACT = [d for d in ARRAY_TYPES if d.is_integral or d in (DType.PRED, DType.F16, DType.BF16, DType.F32, DType.F64)]


@pytest.mark.parametrize("dtype", [*EXACT, DType.C64, DType.C128], ids=lambda dtype: dtype.value)
def test_sum_of_small_numbers_is_exact_and_wraps(dtype: DType, rng: np.random.Generator) -> None:
    x = small_numbers(dtype, (30, 4), rng)
    initial = np.zeros((), dtype.numpy)
    np.testing.assert_array_equal(reduce("add", x, initial, (0,)), by_fold("add", x, initial))


@pytest.mark.parametrize("opcode", ["maximum", "minimum", "multiply", "and", "or", "xor"])
@pytest.mark.parametrize("dtype", EXACT, ids=lambda dtype: dtype.value)
def test_other_monoids_agree_with_a_fold(opcode: str, dtype: DType, rng: np.random.Generator) -> None:
    if opcode in ("and", "or", "xor") and dtype.is_floating:
        pytest.skip("not an operation on floating point")
    x = small_numbers(dtype, (6, 5), rng)
    initial = monoid_identity(MonoidKind(opcode), dtype)
    np.testing.assert_array_equal(reduce(opcode, x, initial, (0,)), by_fold(opcode, x, initial))


def test_float_sums_round_once(rng: np.random.Generator) -> None:
    x = rng.standard_normal(20_000).astype(np.float32)
    assert reduce("add", x, np.float32(0).reshape(()), (0,)) == np.float32(math.fsum(x.astype(np.float64)))
    narrow = rng.standard_normal(300).astype(ml_dtypes.bfloat16)
    exact = math.fsum(narrow.astype(np.float64))
    found = float(reduce("add", narrow, np.zeros((), ml_dtypes.bfloat16), (0,)))
    neighbours = [float(np.array(exact * s).astype(np.float32).astype(ml_dtypes.bfloat16)) for s in (1, 1.01, 0.99)]
    assert abs(found - exact) <= min(abs(value - exact) for value in neighbours) + 1e-12


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, F32, DType.F64], ids=lambda dtype: dtype.value)
def test_nan_wins_and_zeros_have_an_order(opcode: str, dtype: DType) -> None:
    start = monoid_identity(MonoidKind(opcode), dtype)
    with_nan = np.array([1, np.nan, -np.inf, np.inf]).astype(dtype.numpy)
    assert np.isnan(reduce(opcode, with_nan, start, (0,)).astype(np.float64))
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]]).astype(dtype.numpy)
    negative = np.signbit(reduce(opcode, zeros, start, (1,)).astype(np.float64))
    expected = [False, False, True, False] if opcode == "maximum" else [True, True, True, False]
    assert negative.tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "largest"), [(DType.F8E4M3FN, 448), (DType.F8E4M3FNUZ, 240), (DType.F4E2M1FN, 6), (DType.F8E5M2, np.inf)]
)
def test_extremes_start_at_the_last_number_of_a_type_without_infinities(dtype: DType, largest: float) -> None:
    assert float(monoid_identity(MonoidKind.MAXIMUM, dtype)) == -largest
    assert float(monoid_identity(MonoidKind.MINIMUM, dtype)) == largest


@pytest.mark.parametrize("dims", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_empty_dimensions_give_the_initial_value(dims: tuple[int, ...]) -> None:
    found = reduce("add", np.zeros(dims, np.float32), np.float32(7).reshape(()), (0,))
    np.testing.assert_array_equal(found, np.full(dims[1:], 7 if dims[0] == 0 else 0, np.float32))


def test_one_infinite_complex_factor_stays_what_it_is() -> None:
    x = np.array([[complex(-np.inf, -0.5)]], np.complex64)
    found = reduce("multiply", x, x.reshape(()), (1,))
    assert (found[0].real, found[0].imag) == (np.inf, np.inf)


def test_reducing_no_dimension_still_combines_with_the_initial_value() -> None:
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(reduce("add", x, np.float32(1).reshape(()), ()), x + 1)


ARGMAX = """argmax {
  v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  gt = pred[] compare(v0, v1), direction=GE
  v = f32[] select(gt, v0, v1)
  i = s32[] select(gt, i0, i1)
  ROOT t = (f32[], s32[]) tuple(v, i)
}
"""


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 1024, 1025, 5001])
def test_variadic_reduction_keeps_the_order_of_elements(length: int, run: Callable[..., tuple]) -> None:
    x = np.random.default_rng(length).integers(0, 30, (2, length)).astype(np.float32)
    text = f"""HloModule m
{ARGMAX}
ENTRY e {{
  x = f32[2,{length}] parameter(0)
  i = s32[2,{length}] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[2], s32[2]) reduce(x, i, low, zero), dimensions={{1}}, to_apply=argmax
}}"""
    values, positions = run(text, x)
    np.testing.assert_array_equal(values, x.max(axis=1))
    np.testing.assert_array_equal(positions, x.argmax(axis=1))


def test_short_reductions_fold_from_left_to_right(run: Callable[..., np.ndarray]) -> None:
    text = """HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  half = f32[] constant(0.5)
  scaled = f32[] multiply(a, half)
  ROOT r = f32[] add(scaled, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  s = f32[] parameter(1)
  ROOT r = f32[] reduce(x, s), dimensions={0}, to_apply=f
}"""
    x = np.array([1, 2, 4, 8], np.float32)
    assert run(text, x, np.float32(16)) == ((((16 / 2 + 1) / 2 + 2) / 2) + 4) / 2 + 8


def test_reducers_that_are_not_elementwise_run_element_by_element(run: Callable[..., np.ndarray]) -> None:
    text = """HloModule m
less { s = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(a, b), direction=LT }
up { s = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  c = s32[] add(a, one)
  ROOT t = (s32[], s32[]) tuple(c, b) }
largest {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  t = (s32[], s32[]) tuple(a, b)
  w = (s32[], s32[]) while(t), condition=less, body=up
  ROOT r = s32[] get-tuple-element(w), index=0 }
ENTRY e {
  x = s32[3,4] parameter(0)
  zero = s32[] constant(0)
  ROOT r = s32[3] reduce(x, zero), dimensions={1}, to_apply=largest }"""
    x = np.array([[1, 9, 3, 2], [0, 0, 0, 0], [4, 4, 5, 1]], np.int32)
    np.testing.assert_array_equal(run(text, x), x.max(axis=1))


def test_bfloat16_elements_may_be_combined_in_f32(run: Callable[..., np.ndarray]) -> None:
    text = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { x = bf16[100] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }"""
    assert run(text, np.full(100, 1.5, ml_dtypes.bfloat16)) == np.float32(150)


def test_reduce_errors() -> None:
    builder = Builder("bad")
    x, s = builder.parameter(Shape.array(F32, (2, 3))), builder.parameter(Shape.array(F32))
    with pytest.raises(ShapeError, match="dimensions has 2, which is not a dimension of rank 2"):
        builder.reduce(x, s, (2,), "add")
    with pytest.raises(ShapeError, match="names a dimension twice"):
        builder.reduce(x, s, (1, 1), "add")
    with pytest.raises(ShapeError, match="initial value 0 must be a scalar"):
        builder.reduce(x, x, (1,), "add")
    with pytest.raises(ShapeError, match=r"to_apply has the signature \(s32\[\], s32\[\]\) -> s32\[\], expected"):
        builder.reduce(x, s, (1,), builder.scalar_function("add", S32))


def test_map_applies_to_every_element_and_checks_dimensions(rng: np.random.Generator) -> None:
    builder = Builder("map")
    x = builder.parameter(Shape.array(F32, (3, 4)))
    function = builder.subcomputation("f", [Shape.array(F32)] * 2, lambda b, p: b.compare(p[0], p[1], "LT"))
    with pytest.raises(ShapeError, match="is not a dimension of rank 2"):
        builder.op("map", (x, x), MapAttrs((2,)), (function,))
    root = builder.op("map", (x, builder.full(0.0, F32, (3, 4))), MapAttrs((0, 1)), (function,))
    values = rng.standard_normal((3, 4)).astype(np.float32)
    found = evaluate(builder.build_module(root), values)
    np.testing.assert_array_equal(found, values < 0)
    assert found.dtype == np.bool_


def test_map_to_a_constant_has_the_size_of_the_operands() -> None:
    builder = Builder("map")
    x = builder.parameter(Shape.array(F32, (3,)))
    function = builder.subcomputation("f", [Shape.array(F32)], lambda b, p: b.constant(7, S32))
    found = evaluate(
        builder.build_module(builder.op("map", (x,), MapAttrs((0,)), (function,))), np.zeros(3, np.float32)
    )
    np.testing.assert_array_equal(found, np.full(3, 7, np.int32))


def _function(text: str) -> HloComputation:
    return parse("HloModule m\n" + text).entry_computation


@pytest.mark.parametrize("kind", list(MonoidKind), ids=lambda kind: kind.value)
@pytest.mark.parametrize("dtype", [S32, DType.U8, DType.S4, DType.PRED, F32, DType.F8E4M3FN, DType.C64])
def test_identities_change_nothing(kind: MonoidKind, dtype: DType, rng: np.random.Generator) -> None:
    builder = Builder("m")
    try:
        function = builder.scalar_function(kind.value, dtype)
    except ShapeError:
        pytest.skip(f"{kind.value} does not exist on {dtype.value}")
    monoid = recognise_monoid(function)
    assert monoid is not None
    assert monoid.dtype is dtype
    for x in small_numbers(dtype, (9,), rng):
        assert np.asarray(evaluate(function, monoid.identity, np.asarray(x))).tobytes() == x.tobytes()


def test_monoids_on_pred_are_and_or() -> None:
    builder = Builder("m")
    kinds = {
        opcode: builder.scalar_function(opcode, DType.PRED) for opcode in ("add", "multiply", "maximum", "minimum")
    }
    found = {opcode: recognise_monoid(function) for opcode, function in kinds.items()}
    assert {opcode: monoid.kind.value for opcode, monoid in found.items() if monoid is not None} == {
        "add": "or",
        "multiply": "and",
        "maximum": "or",
        "minimum": "and",
    }


@pytest.mark.parametrize(
    "text",
    [
        "ENTRY f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] subtract(a, b) }",
        "ENTRY f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, a) }",
        "ENTRY f { a = f32[] parameter(0)  b = f32[] parameter(1)  n = f32[] negate(b)  ROOT r = f32[] add(a, n) }",
        "ENTRY f { a = f32[2] parameter(0)  b = f32[2] parameter(1)  ROOT r = f32[2] add(a, b) }",
    ],
)
def test_other_functions_are_no_monoids(text: str) -> None:
    assert recognise_monoid(_function(text)) is None


def test_swapped_parameters_are_a_monoid() -> None:
    text = "ENTRY f { a = s8[] parameter(0)  b = s8[] parameter(1)  ROOT r = s8[] maximum(b, a) }"
    monoid = recognise_monoid(_function(text))
    assert monoid is not None
    assert monoid.kind is MonoidKind.MAXIMUM
    assert monoid.identity == -128


SPELLINGS = {
    "plain": "ROOT r = bf16[] add(a, b)",
    "swapped": "ROOT r = bf16[] add(b, a)",
    "copied": "s = bf16[] add(a, b)\n ROOT r = bf16[] copy(s)",
    "copies": "c = bf16[] copy(a)\n d = bf16[] reshape(b)\n ROOT r = bf16[] add(c, d)",
    "called": "ROOT r = bf16[] call(b, a), to_apply=sum",
    "in a tuple": "t = (bf16[], bf16[]) tuple(b, a)\n c = bf16[] get-tuple-element(t), index=1\n"
    "ROOT r = bf16[] add(b, c)",
    "promoted": "c = f32[] convert(a)\n d = f32[] convert(b)\n s = f32[] add(c, d)\n ROOT r = bf16[] convert(s)",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_sum_is_a_sum_however_it_is_spelt(spelling: str, rng: np.random.Generator) -> None:
    """Kept in a wide type and rounded once, which sums of bf16 need to have any digits."""
    module = parse(
        f"""HloModule m
sum {{ x = bf16[] parameter(0)
 y = bf16[] parameter(1)
 ROOT s = bf16[] add(x, y) }}
f {{ a = bf16[] parameter(0)
 b = bf16[] parameter(1)
 {SPELLINGS[spelling]} }}
ENTRY e {{ x = bf16[3,1000] parameter(0)
 z = bf16[] constant(0)
 ROOT r = bf16[3] reduce(x, z), dimensions={{1}}, to_apply=f }}"""
    )
    x = rng.standard_normal((3, 1000)).astype(DType.BF16.numpy)
    exact = x.astype(np.float64).sum(1).astype(DType.BF16.numpy)
    assert np.asarray(evaluate(module, x)).tobytes() == exact.tobytes()


def test_monoids_side_by_side_are_each_its_own() -> None:
    function = _function(
        """ENTRY f { a = f32[] parameter(0)  i = s8[] parameter(1)  b = f32[] parameter(2)  j = s8[] parameter(3)
        s = f32[] add(b, a)  m = s8[] maximum(i, j)  ROOT t = (f32[], s8[]) tuple(s, m) }"""
    )
    monoids = recognise_monoids(function)
    assert monoids is not None
    assert [(monoid.kind, monoid.dtype) for monoid in monoids] == [
        (MonoidKind.ADD, F32),
        (MonoidKind.MAXIMUM, DType.S8),
    ]


@pytest.mark.parametrize(
    ("narrow", "wide", "opcode", "is_known"),
    [
        ("bf16", "f32", "add", True),
        ("bf16", "f32", "multiply", True),
        ("f16", "bf16", "maximum", False),
        ("f32", "bf16", "add", False),
        ("f8e4m3fn", "bf16", "add", False),
        ("s8", "s32", "add", True),
        ("s8", "u32", "add", True),
        ("s8", "u32", "maximum", False),
        ("u8", "s32", "maximum", True),
        ("s8", "f32", "add", False),
        ("pred", "s32", "add", True),
    ],
)
def test_only_a_type_wide_enough_keeps_a_monoid(narrow: str, wide: str, opcode: str, is_known: bool) -> None:
    function = _function(
        f"""ENTRY f {{ a = {narrow}[] parameter(0)  b = {narrow}[] parameter(1)  c = {wide}[] convert(a)
        d = {wide}[] convert(b)  s = {wide}[] {opcode}(c, d)  ROOT r = {narrow}[] convert(s) }}"""
    )
    assert (recognise_monoid(function) is not None) == is_known


def test_along_no_dimension_the_initial_value_counts_once() -> None:
    module = parse(
        """HloModule m
f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[2] parameter(0)
 z = f32[] constant(5)
 ROOT r = f32[2] reduce(x, z), dimensions={}, to_apply=f }"""
    )
    np.testing.assert_array_equal(evaluate(module, np.array([1, 2], np.float32)), [6, 7])


def test_reduction_flops_count_the_reducer() -> None:
    builder = Builder("flops")
    x: Handle = builder.parameter(Shape.array(F32, (10, 4)))
    instruction = builder.reduce(x, 0.0, (0,), "add").instruction
    assert instruction.op.flops is not None
    assert instruction.op.flops(instruction) == 36
