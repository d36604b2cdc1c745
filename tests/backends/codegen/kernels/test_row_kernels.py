"""Row kernels: reductions along minor dimensions with all that is around them."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

COLUMNS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255)

FUNCTIONS = """
add { a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT r = $T[] add(a, b) }
max { a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT r = $T[] maximum(a, b) }
"""

SOFTMAX = """HloModule softmax
$FUNCTIONS
ENTRY e {
  x = $T[$R,$C] parameter(0)
  low = $T[] constant(-inf)
  zero = $T[] constant(0)
  m = $T[$R] reduce(x, low), dimensions={1}, to_apply=max
  mb = $T[$R,$C] broadcast(m), dimensions={0}
  d = $T[$R,$C] subtract(x, mb)
  p = $T[$R,$C] exponential(d)
  s = $T[$R] reduce(p, zero), dimensions={1}, to_apply=add
  sb = $T[$R,$C] broadcast(s), dimensions={0}
  ROOT y = $T[$R,$C] divide(p, sb)
}"""

LOG_SOFTMAX = """HloModule log_softmax
$FUNCTIONS
ENTRY e {
  x = $T[$R,$C] parameter(0)
  low = $T[] constant(-inf)
  zero = $T[] constant(0)
  m = $T[$R] reduce(x, low), dimensions={1}, to_apply=max
  mb = $T[$R,$C] broadcast(m), dimensions={0}
  d = $T[$R,$C] subtract(x, mb)
  p = $T[$R,$C] exponential(d)
  s = $T[$R] reduce(p, zero), dimensions={1}, to_apply=add
  l = $T[$R] log(s)
  lb = $T[$R,$C] broadcast(l), dimensions={0}
  ROOT y = $T[$R,$C] subtract(d, lb)
}"""

LAYER_NORM = """HloModule layer_norm
$FUNCTIONS
ENTRY e {
  x = $T[$R,$C] parameter(0)
  scale = $T[$C] parameter(1)
  shift = $T[$C] parameter(2)
  zero = $T[] constant(0)
  count = $T[] constant($C)
  countb = $T[$R] broadcast(count), dimensions={}
  s = $T[$R] reduce(x, zero), dimensions={1}, to_apply=add
  mean = $T[$R] divide(s, countb)
  meanb = $T[$R,$C] broadcast(mean), dimensions={0}
  d = $T[$R,$C] subtract(x, meanb)
  q = $T[$R,$C] multiply(d, d)
  v = $T[$R] reduce(q, zero), dimensions={1}, to_apply=add
  var = $T[$R] divide(v, countb)
  eps = $T[] constant(0.001)
  epsb = $T[$R] broadcast(eps), dimensions={}
  shifted = $T[$R] add(var, epsb)
  inv = $T[$R] rsqrt(shifted)
  invb = $T[$R,$C] broadcast(inv), dimensions={0}
  n = $T[$R,$C] multiply(d, invb)
  scaleb = $T[$R,$C] broadcast(scale), dimensions={1}
  shiftb = $T[$R,$C] broadcast(shift), dimensions={1}
  ns = $T[$R,$C] multiply(n, scaleb)
  y = $T[$R,$C] add(ns, shiftb)
  ROOT t = ($T[$R,$C], $T[$R], $T[$R]) tuple(y, mean, var)
}"""

VARIANCE = """HloModule variance
$FUNCTIONS
ENTRY e {
  x = $T[$R,$C] parameter(0)
  zero = $T[] constant(0)
  count = $T[] constant($C)
  countb = $T[$R] broadcast(count), dimensions={}
  s = $T[$R] reduce(x, zero), dimensions={1}, to_apply=add
  mean = $T[$R] divide(s, countb)
  meanb = $T[$R,$C] broadcast(mean), dimensions={0}
  d = $T[$R,$C] subtract(x, meanb)
  q = $T[$R,$C] multiply(d, d)
  v = $T[$R] reduce(q, zero), dimensions={1}, to_apply=add
  ROOT var = $T[$R] divide(v, countb)
}"""

CROSS_ENTROPY = """HloModule cross_entropy
$FUNCTIONS
ENTRY e {
  x = $T[$R,$C] parameter(0)
  labels = s32[$R] parameter(1)
  low = $T[] constant(-inf)
  zero = $T[] constant(0)
  m = $T[$R] reduce(x, low), dimensions={1}, to_apply=max
  mb = $T[$R,$C] broadcast(m), dimensions={0}
  d = $T[$R,$C] subtract(x, mb)
  p = $T[$R,$C] exponential(d)
  s = $T[$R] reduce(p, zero), dimensions={1}, to_apply=add
  l = $T[$R] log(s)
  lb = $T[$R,$C] broadcast(l), dimensions={0}
  logp = $T[$R,$C] subtract(d, lb)
  i = s32[$R,$C] iota(), iota_dimension=1
  labelb = s32[$R,$C] broadcast(labels), dimensions={0}
  hit = pred[$R,$C] compare(i, labelb), direction=EQ
  hot = $T[$R,$C] convert(hit)
  picked = $T[$R,$C] multiply(logp, hot)
  loss = $T[$R] reduce(picked, zero), dimensions={1}, to_apply=add
  negative = $T[$R] negate(loss)
  sb = $T[$R,$C] broadcast(s), dimensions={0}
  soft = $T[$R,$C] divide(p, sb)
  gradient = $T[$R,$C] subtract(soft, hot)
  ROOT t = ($T[$R], $T[$R,$C]) tuple(negative, gradient)
}"""

ARG = """HloModule arg
pick { a = $T[] parameter(0)
  i = s32[] parameter(1)
  b = $T[] parameter(2)
  j = s32[] parameter(3)
  wins = pred[] compare(a, b), direction=$D
  nan = pred[] compare(a, a), direction=NE
  first = pred[] or(wins, nan)
  equal = pred[] compare(a, b), direction=EQ
  earlier = pred[] compare(i, j), direction=LT
  tie = pred[] and(equal, earlier)
  index = pred[] or(first, tie)
  x = $T[] select(first, a, b)
  k = s32[] select(index, i, j)
  ROOT r = ($T[], s32[]) tuple(x, k) }
ENTRY e {
  x = $T[$R,$C] parameter(0)
  i = s32[$R,$C] iota(), iota_dimension=1
  start = $T[] constant($S)
  zero = s32[] constant(0)
  ROOT r = ($T[$R], s32[$R]) reduce(x, i, start, zero), dimensions={1}, to_apply=pick
}"""


def program(text: str, rows: int, columns: int, dtype: str = "f32") -> str:
    text = text.replace("$FUNCTIONS", FUNCTIONS)
    return text.replace("$T", dtype).replace("$R", str(rows)).replace("$C", str(columns))


def numbers(rng: np.random.Generator, *dims: int, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(rng.standard_normal(dims)).astype(dtype)


@pytest.mark.parametrize("columns", COLUMNS)
def test_every_column_count(check: Any, rng: np.random.Generator, columns: int) -> None:
    x = numbers(rng, 5, columns)
    check(program(SOFTMAX, 5, columns), x, ulps=8)
    check(program(VARIANCE, 5, columns), x, ulps=8)


@pytest.mark.parametrize("rows", [0, 1, 2, 64])
@pytest.mark.parametrize("text", [SOFTMAX, LOG_SOFTMAX, VARIANCE])
def test_every_row_count(check: Any, rng: np.random.Generator, text: str, rows: int) -> None:
    check(program(text, rows, 37), numbers(rng, rows, 37), ulps=16)


def test_softmax_is_one_row_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    assert kernels(check(program(SOFTMAX, 9, 50), numbers(rng, 9, 50), ulps=8)) == ["row"]


def test_code_of_expensive_elements_is_there_once(compile_text: Any) -> None:
    text = compile_text(program(SOFTMAX, 8, 512)).as_text("llvm-before-optimizations")
    # Those of the exponentials and of the result.
    assert len(re.findall(r"store <\d+ x float>", text)) == 2


def test_log_softmax_is_one_row_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    assert kernels(check(program(LOG_SOFTMAX, 9, 50), numbers(rng, 9, 50), ulps=8)) == ["row"]


def test_variance_is_one_row_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    assert kernels(check(program(VARIANCE, 9, 50), numbers(rng, 9, 50), ulps=8)) == ["row"]


@pytest.mark.parametrize("columns", [1, 6, 16, 75])
def test_layer_norm_writes_full_and_row_results_in_one_kernel(
    check: Any, kernels: Any, rng: np.random.Generator, columns: int
) -> None:
    arguments = numbers(rng, 7, columns), numbers(rng, columns), numbers(rng, columns)
    executable = check(program(LAYER_NORM, 7, columns), *arguments, ulps=64)
    if columns > 1:
        assert kernels(executable) == ["row"]


@pytest.mark.parametrize("columns", [1, 10, 33])
def test_cross_entropy_with_its_gradient(check: Any, kernels: Any, rng: np.random.Generator, columns: int) -> None:
    labels = rng.integers(0, columns, 11).astype(np.int32)
    executable = check(program(CROSS_ENTROPY, 11, columns), numbers(rng, 11, columns), labels, ulps=16)
    if columns > 1:
        assert kernels(executable) == ["row"]


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16"])
@pytest.mark.parametrize("columns", [3, 40])
def test_softmax_of_other_types(check: Any, rng: np.random.Generator, dtype: str, columns: int) -> None:
    import ml_dtypes

    numpy_dtype = {"f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    check(program(SOFTMAX, 4, columns, dtype), numbers(rng, 4, columns, dtype=numpy_dtype), ulps=16)


def test_a_row_larger_than_the_scratch_limit(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    assert kernels(check(program(SOFTMAX, 64, 20_000), numbers(rng, 64, 20_000), ulps=64)) == ["row"]


def test_softmax_of_nan_and_infinity(check: Any) -> None:
    x = np.zeros((4, 20), np.float32)
    x[0, 3], x[1, 4], x[2, :] = np.nan, np.inf, -np.inf
    check(program(SOFTMAX, 4, 20), x, ulps=4)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("direction", "start"), [("GT", "-inf"), ("LT", "inf")])
def test_arg_extrema_with_ties_and_nan(
    check: Any, kernels: Any, rng: np.random.Generator, columns: int, direction: str, start: str
) -> None:
    x = rng.integers(0, 4, (12, columns)).astype(np.float32)
    x[3, columns // 2] = np.nan
    x[4, [0, -1]] = np.nan
    x[5] = np.nan
    x[6] = -np.inf
    x[7] = np.inf
    text = program(ARG, 12, columns).replace("$D", direction).replace("$S", start)
    executable = check(text, x)
    if columns > 4:
        assert kernels(executable) == ["row"]


def test_arg_extremum_of_integers(check: Any, rng: np.random.Generator) -> None:
    text = program(ARG, 6, 50, "s8").replace("$D", "GT").replace("$S", "-128")
    check(text, rng.integers(-3, 3, (6, 50)).astype(np.int8))


@pytest.mark.parametrize("dims", [(3, 4, 5), (2, 3, 17), (2, 1, 33), (1, 7, 1), (4, 5, 128)])
def test_columns_of_several_dimensions(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    a, b, c = dims
    text = f"""HloModule m
{FUNCTIONS.replace("$T", "f32")}
ENTRY e {{
  x = f32[{a},{b},{c}] parameter(0)
  w = f32[{c}] parameter(1)
  zero = f32[] constant(0)
  wb = f32[{a},{b},{c}] broadcast(w), dimensions={{2}}
  xw = f32[{a},{b},{c}] multiply(x, wb)
  s = f32[{a}] reduce(xw, zero), dimensions={{1,2}}, to_apply=add
  sb = f32[{a},{b},{c}] broadcast(s), dimensions={{0}}
  ROOT y = f32[{a},{b},{c}] subtract(xw, sb)
}}"""
    check(text, numbers(rng, *dims), numbers(rng, c), ulps=16)


@pytest.mark.parametrize("dims", [(2, 3, 33), (2, 3, 1), (3, 1, 20)])
def test_rows_of_several_dimensions(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    a, b, c = dims
    text = f"""HloModule m
{FUNCTIONS.replace("$T", "f32")}
ENTRY e {{
  x = f32[{a},{b},{c}] parameter(0)
  w = f32[{b}] parameter(1)
  zero = f32[] constant(2)
  s = f32[{a},{b}] reduce(x, zero), dimensions={{2}}, to_apply=add
  wb = f32[{a},{b}] broadcast(w), dimensions={{1}}
  t = f32[{a},{b}] multiply(s, wb)
  tb = f32[{a},{b},{c}] broadcast(t), dimensions={{0,1}}
  y = f32[{a},{b},{c}] subtract(x, tb)
  ROOT r = (f32[{a},{b},{c}], f32[{a},{b}]) tuple(y, t)
}}"""
    check(text, numbers(rng, *dims), numbers(rng, b), ulps=16)


def test_an_initial_value_that_is_no_identity_counts_once(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
ENTRY e { x = f32[6,70] parameter(0)
  s = f32[] parameter(1)
  ROOT r = f32[6] reduce(x, s), dimensions={1}, to_apply=max }"""
    check(text, numbers(rng, 6, 70), np.float32(1.5))


@pytest.mark.parametrize("columns", [1, 2, 16, 19, 64, 70])
def test_an_unknown_associative_computation(check: Any, rng: np.random.Generator, columns: int) -> None:
    """a + b - 3 with the start 3: no monoid that the compiler knows, but associative."""
    text = f"""HloModule m
odd {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  three = s32[] constant(3)
  s = s32[] add(a, b)
  ROOT r = s32[] subtract(s, three) }}
ENTRY e {{ x = s32[6,{columns}] parameter(0)
  s = s32[] constant(3)
  ROOT r = s32[6] reduce(x, s), dimensions={{1}}, to_apply=odd }}"""
    check(text, rng.integers(-50, 50, (6, columns)).astype(np.int32))


def test_complex_rows(check: Any, rng: np.random.Generator) -> None:
    text = f"""HloModule m
{FUNCTIONS.split("max")[0].replace("$T", "c64")}
ENTRY e {{ x = c64[3,21] parameter(0)
  zero = c64[] constant((0, 0))
  s = c64[3] reduce(x, zero), dimensions={{1}}, to_apply=add
  sb = c64[3,21] broadcast(s), dimensions={{0}}
  ROOT y = c64[3,21] multiply(x, sb) }}"""
    x = (rng.standard_normal((3, 21)) + 1j * rng.standard_normal((3, 21))).astype(np.complex64)
    check(text, x, ulps=16)


ARG_MAX = """arg_max { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  nan = pred[] compare(a, a), direction=NE
  first = pred[] or(gt, nan)
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  second = pred[] or(first, tie)
  v = f32[] select(first, a, b)
  n = s32[] select(second, i, j)
  ROOT t = (f32[], s32[]) tuple(v, n) }
"""


@pytest.mark.parametrize("columns", [1, 2, 7, 16, 33, 64, 100, 257])
@pytest.mark.parametrize("dimension", [0, 1])
def test_of_several_nans_the_first_wins(check: Any, rng: np.random.Generator, columns: int, dimension: int) -> None:
    dims = (3, columns) if dimension else (columns, 3)
    shape = f"[{dims[0]},{dims[1]}]"
    x = rng.standard_normal(dims).astype(np.float32)
    x[rng.random(dims) < 0.1] = np.nan
    check(
        f"""HloModule m
{ARG_MAX}ENTRY e {{ x = f32{shape} parameter(0)
  n = s32{shape} iota(), iota_dimension={dimension}
  low = f32[] constant(-inf)
  z = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(x, n, low, z), dimensions={{{dimension}}}, to_apply=arg_max }}""",
        x,
    )


COMPOSE = """compose { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = s32[] multiply(a, c)
  f = s32[] multiply(b, c)
  g = s32[] add(f, d)
  ROOT t = (s32[], s32[]) tuple(e, g) }
"""


@pytest.mark.parametrize("dims", [(5, 1), (5, 40), (2, 333), (40, 3), (4, 5, 6), (3, 0, 2)])
def test_maps_are_composed_in_order(check: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    """Over every set of dimensions: x -> a x + b is associative, not commutative."""
    shape = f"s32[{','.join(map(str, dims))}]"
    x, y = (rng.integers(-3, 4, dims).astype(np.int32) for _ in range(2))
    for chosen in range(1 << len(dims)):
        reduced = [d for d in range(len(dims)) if chosen >> d & 1]
        listed = ",".join(map(str, reduced))
        kept = f"s32[{','.join(str(size) for d, size in enumerate(dims) if d not in reduced)}]"
        check(
            f"""HloModule m
{COMPOSE}ENTRY e {{ x = {shape} parameter(0)
  y = {shape} parameter(1)
  one = s32[] constant(1)
  two = s32[] constant(2)
  ROOT r = ({kept}, {kept}) reduce(x, y, one, two), dimensions={{{listed}}}, to_apply=compose }}""",
            x,
            y,
        )


@pytest.mark.parametrize("spelling", ["ROOT r = bf16[] add(b, a)", "s = bf16[] add(a, b)\n ROOT r = bf16[] copy(s)"])
def test_sums_of_narrow_floats_are_kept_in_f32_however_spelt(
    compile_text: Any, rng: np.random.Generator, spelling: str
) -> None:
    text = f"""HloModule m
f {{ a = bf16[] parameter(0)
 b = bf16[] parameter(1)
 {spelling} }}
ENTRY e {{ x = bf16[4,500] parameter(0)
 z = bf16[] constant(0)
 ROOT r = bf16[4] reduce(x, z), dimensions={{1}}, to_apply=f }}"""
    x = rng.standard_normal((4, 500)).astype(ml_dtypes.bfloat16)
    exact = x.astype(np.float64).sum(1)
    for optimize in (True, False):
        found = compile_text(text, optimize=optimize)(x).astype(np.float64)
        np.testing.assert_allclose(found, exact, rtol=2**-8)


def test_a_sum_in_another_type_than_its_elements(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
f { a = f64[] parameter(0)
 b = f64[] parameter(1)
 ROOT r = f64[] add(a, b) }
ENTRY e { x = f32[4,50] parameter(0)
 z = f64[] constant(0)
 ROOT r = f64[4] reduce(x, z), dimensions={1}, to_apply=f }"""
    check(text, rng.standard_normal((4, 50)).astype(np.float32), ulps=8)


def test_sums_that_fit_eight_bits_beside_another_reduction(check: Any) -> None:
    """LLVM aborted on sums of narrow vectors of which it finds out late that a byte would hold them."""
    text = """HloModule m
f { a = s32[] parameter(0)
 b = s32[] parameter(1)
 c = f32[] parameter(2)
 d = s32[] parameter(3)
 e = s32[] parameter(4)
 g = f32[] parameter(5)
 s = s32[] add(a, d)
 n = s32[] and(b, e)
 z = f32[] constant(0)
 ROOT t = (s32[], s32[], f32[]) tuple(s, n, z) }
ENTRY e { x = u4[5] parameter(0)
 y = f32[5] parameter(1)
 w = s32[5] convert(x)
 s = s32[5] add(w, w)
 p = s32[] constant(-7)
 q = s32[] constant(-4)
 z = f32[] constant(0)
 ROOT r = (s32[], s32[], f32[]) reduce(s, w, y, p, q, z), dimensions={0}, to_apply=f }"""
    check(text, np.array([15, 1, 2, 3, 15]).astype(ml_dtypes.uint4), np.zeros(5, np.float32))


@pytest.mark.parametrize("dimensions", ["{}", "{0}", "{1}", "{0,1}"])
@pytest.mark.parametrize("gives_tuple", [False, True])
def test_one_result_may_be_a_tuple(check: Any, rng: np.random.Generator, dimensions: str, gives_tuple: bool) -> None:
    """As XLA reads it: the shape of the reduce says so, the computation may or may not."""
    kept = {"{}": "[4,5]", "{0}": "[5]", "{1}": "[4]", "{0,1}": "[]"}[dimensions]
    function = "r = s32[] add(a, b)\n ROOT t = (s32[]) tuple(r)" if gives_tuple else "ROOT r = s32[] add(a, b)"
    text = f"""HloModule m
f {{ a = s32[] parameter(0)
 b = s32[] parameter(1)
 {function} }}
ENTRY e {{ x = s32[4,5] parameter(0)
 z = s32[] constant(3)
 r = (s32{kept}) reduce(x, z), dimensions={dimensions}, to_apply=f
 ROOT n = s32{kept} get-tuple-element(r), index=0 }}"""
    for optimize in (True, False):
        check(text, rng.integers(-9, 9, (4, 5)).astype(np.int32), optimize=optimize)
