"""The dot kernel against the evaluator: sizes, layouts, element types, batches, odd values, threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.codegen.kernels.dot import plan, reading
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.object_code import NEXT_MODULE
from xlalite.hlo import evaluate, parse

Array = np.ndarray

TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "s8": np.int8,
    "u8": np.uint8,
    "s16": np.int16,
    "s32": np.int32,
    "u64": np.uint64,
}

EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}


def compile_text(text: str, threads: int = 2) -> Executable:
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False))


def kernels_of(executable: Executable) -> list[str]:
    """The kinds of kernels, in order."""
    return [decision.verdict for decision in executable.decisions() if decision.decided_by == "kernel planner"]


def dot_text(
    m: int,
    n: int,
    k: int,
    *,
    lhs: str = "mk",
    rhs: str = "kn",
    dtype: str = "f32",
    result: str | None = None,
    batch: tuple[int, ...] = (),
) -> str:
    """A module with one dot; `lhs` and `rhs` name the order of dimensions, batch dimensions lead."""
    sizes = {"m": m, "n": n, "k": k}
    shapes = [(*batch, *(sizes[letter] for letter in order)) for order in (lhs, rhs)]
    spelled = [",".join(map(str, shape)) for shape in (*shapes, (*batch, m, n))]
    dims = ",".join(map(str, range(len(batch))))
    return f"""HloModule dot
ENTRY main {{
  a = {dtype}[{spelled[0]}] parameter(0)
  b = {dtype}[{spelled[1]}] parameter(1)
  ROOT d = {result or dtype}[{spelled[2]}] dot(a, b), lhs_batch_dims={{{dims}}}, rhs_batch_dims={{{dims}}},
    lhs_contracting_dims={{{len(batch) + lhs.index("k")}}}, rhs_contracting_dims={{{len(batch) + rhs.index("k")}}}
}}"""


def arrays_for(text: str, rng: np.random.Generator) -> list[Array]:
    """Random values for the parameters of a module; integers over their whole range."""
    arrays = []
    for parameter in parse(text).entry_computation.parameters:
        dtype = parameter.shape.dtype.numpy
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            values = rng.integers(limits.min, limits.max, parameter.shape.dims, dtype=dtype, endpoint=True)
        else:
            values = rng.standard_normal(parameter.shape.dims).astype(dtype)
        arrays.append(values)
    return arrays


def assert_close(got: Array, wanted: Array, terms: int) -> None:
    """Equal integers; floats within the rounding of sums of `terms` products of numbers of about 1."""
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if np.issubdtype(got.dtype, np.integer):
        np.testing.assert_array_equal(got, wanted)
        return
    own = EPSILON[{np.dtype(t): name for name, t in TYPES.items()}[got.dtype]]
    kept = min(own, EPSILON["f32"])
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=own, atol=kept * (terms + 8) * 2)


def check(text: str, rng: np.random.Generator, terms: int, *, kind: str = "dot") -> None:
    arrays = arrays_for(text, rng)
    executable = compile_text(text)
    assert kernels_of(executable) == [kind]
    assert_close(executable(*arrays), evaluate(parse(text), *arrays), terms)


SIZES = (1, 2, 3, 15, 16, 17, 31, 33, 64, 100)


@pytest.mark.parametrize("m", SIZES)
def test_dot_of_any_sizes(m: int, rng: np.random.Generator) -> None:
    """Every m; n and k from a list that takes other values for each m, so that all pairs occur."""
    for number, n in enumerate(SIZES):
        k = SIZES[(number * 3 + SIZES.index(m)) % len(SIZES)]
        arrays = arrays_for(dot_text(m, n, k), rng)
        executable = compile_text(dot_text(m, n, k))
        assert_close(executable(*arrays), evaluate(parse(dot_text(m, n, k)), *arrays), k)


@pytest.mark.parametrize(("lhs", "rhs"), list(itertools.product(("mk", "km"), ("kn", "nk"))))
@pytest.mark.parametrize(("m", "n", "k"), [(33, 17, 31), (100, 10, 64), (10, 100, 33), (1, 70, 40), (70, 1, 40)])
def test_dot_of_transposed_operands(m: int, n: int, k: int, lhs: str, rhs: str, rng: np.random.Generator) -> None:
    check(dot_text(m, n, k, lhs=lhs, rhs=rhs), rng, k)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("m", "n", "k", "rhs"), [(17, 33, 40, "nk"), (3, 2, 100, "kn"), (1, 1, 15, "kn")])
def test_dot_of_each_type(dtype: str, m: int, n: int, k: int, rhs: str, rng: np.random.Generator) -> None:
    check(dot_text(m, n, k, rhs=rhs, dtype=dtype), rng, k)


@pytest.mark.parametrize(
    ("dtype", "result"), [("s8", "s32"), ("u8", "s32"), ("bf16", "f32"), ("f16", "f32"), ("f32", "f64")]
)
def test_dot_with_a_wider_result(dtype: str, result: str, rng: np.random.Generator) -> None:
    check(dot_text(20, 33, 50, dtype=dtype, result=result), rng, 50)


@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "u64", "bf16", "u8"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_columns_of_few_terms_are_gathered_by_a_loop(k: int, dtype: str, rng: np.random.Generator) -> None:
    for m in (2, 17, 333):
        check(dot_text(m, 1, k, dtype=dtype), rng, k, kind="loop")
        check(dot_text(1, m, k, rhs="nk", dtype=dtype), rng, k, kind="loop")
        check(dot_text(m, 1, k, dtype=dtype, batch=(3, 5)), rng, k, kind="loop")
    check(dot_text(5, 1, 6, dtype=dtype, batch=(7,)), rng, 6, kind="loop")
    check(dot_text(333, 3, k, dtype=dtype), rng, k, kind="loop")
    check(dot_text(4, 333, k, rhs="nk", dtype=dtype), rng, k, kind="loop")
    check(dot_text(8, 1, 5, dtype=dtype, batch=(7,)), rng, 5)
    check(dot_text(333, 1, k, lhs="km", dtype=dtype), rng, k)
    check(dot_text(333, 1, 5, dtype=dtype), rng, 5)
    check(dot_text(333, 5, k, dtype=dtype), rng, k)
    check(dot_text(333, 2, k, dtype=dtype, batch=(2,)), rng, k)


@pytest.mark.parametrize(("lhs", "rhs"), [("mk", "kn"), ("km", "nk")])
def test_dot_with_batches(lhs: str, rhs: str, rng: np.random.Generator) -> None:
    check(dot_text(9, 20, 17, lhs=lhs, rhs=rhs, batch=(2, 3)), rng, 17)


def test_dot_with_batches_inside_is_read_in_place(rng: np.random.Generator) -> None:
    text = """HloModule attention
ENTRY main {
  q = f32[2,9,3,8] parameter(0)
  k = f32[2,11,3,8] parameter(1)
  ROOT d = f32[2,3,9,11] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3},
    rhs_contracting_dims={3}
}"""
    check(text, rng, 8)


def test_dot_over_several_dimensions(rng: np.random.Generator) -> None:
    text = """HloModule several
ENTRY main {
  x = f32[5,3,8] parameter(0)
  w = f32[3,8,20] parameter(1)
  ROOT d = f32[5,20] dot(x, w), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
}"""
    check(text, rng, 24)


def test_dimensions_that_lie_apart_are_brought_together(rng: np.random.Generator) -> None:
    text = """HloModule apart
ENTRY main {
  x = f32[2,3,9,8] parameter(0)
  w = f32[3,8,20] parameter(1)
  ROOT d = f32[2,9,20] dot(x, w), lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}
}"""
    arrays = arrays_for(text, rng)
    executable = compile_text(text)
    assert kernels_of(executable)[-1] == "dot"
    assert_close(executable(*arrays), evaluate(parse(text), *arrays), 24)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(200, 300, 2100), (40, 700, 1500), (600, 520, 600), (100, 10, 784), (784, 10, 100), (1, 5000, 30), (5000, 1, 90)],
)
def test_dot_in_pieces_and_with_packing(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    check(dot_text(m, n, k), rng, k)


@pytest.mark.parametrize(
    ("m", "n", "k", "packed"),
    [
        (300, 200, 70, "lhs, rhs"),
        (1024, 140, 200, "lhs, rhs"),
        (2048, 64, 130, "lhs, rhs"),
        (300, 120, 130, "rhs"),
        (300, 200, 60, "rhs"),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_left_operands_whose_rows_are_neighbours_are_packed(
    m: int, n: int, k: int, packed: str, dtype: str, rng: np.random.Generator
) -> None:
    text = dot_text(m, n, k, lhs="km", dtype=dtype)
    check(text, rng, k)
    if dtype == "f32" and TargetInfo.host().vector_bits == 512:
        (found,) = [d.numbers["packed"] for d in compile_text(text).decisions() if d.verdict == "dot"]
        assert found == packed


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1000, 801), (2, 130, 2051), (3, 5001, 70), (4, 33, 9000), (1, 40, 20001)]
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8"])
@pytest.mark.parametrize("lhs", ["mk", "km"])
def test_few_rows_stream_a_large_right_operand(
    dtype: str, m: int, n: int, k: int, lhs: str, rng: np.random.Generator
) -> None:
    text = dot_text(m, n, k, lhs=lhs, dtype=dtype)
    arrays = arrays_for(text, rng)
    wanted = evaluate(parse(text), *arrays)
    results = [compile_text(text, threads)(*arrays) for threads in (1, 2, 5)]
    for result in results:
        assert_close(result, wanted, k)
        np.testing.assert_array_equal(result.view(np.uint8), results[0].view(np.uint8))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(5, 700, 300), (12, 515, 301), (33, 1000, 130), (64, 601, 40), (8, 2111, 1100), (33, 2111, 1100)]
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_right_operands_that_fill_the_last_cache_are_fetched_ahead(
    dtype: str, m: int, n: int, k: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = dot_text(m, n, k, dtype=dtype)
    arrays = arrays_for(text, rng)
    # All last caches are full: more rows would be packed for others.
    monkeypatch.setattr(reading, "_FAR_PART", 1 << 30)
    plan._plan.cache_clear()
    results = [compile_text(text, threads)(*arrays) for threads in (1, 2, 5)]
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2)).text
    plan._plan.cache_clear()
    tiles = [module for module in ir.split(NEXT_MODULE) if 'define hidden void @"dot_tile' in module]
    assert tiles
    assert all("@llvm.prefetch" in tile for tile in tiles)
    wanted = evaluate(parse(text), *arrays)
    for result in results:
        assert_close(result, wanted, k)
        np.testing.assert_array_equal(result.view(np.uint8), results[0].view(np.uint8))


def test_large_dot_of_narrow_operands(rng: np.random.Generator) -> None:
    check(dot_text(150, 200, 2100, dtype="bf16"), rng, 2100)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (40, 64, 0)])
def test_empty_dots(m: int, n: int, k: int, optimize: bool) -> None:
    options = CompileOptions(optimize=optimize, use_cache=False)
    executable = get_backend("cpu").compile(parse(dot_text(m, n, k)), options)
    result = executable(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    np.testing.assert_array_equal(result, np.zeros((m, n), np.float32))


@pytest.mark.parametrize(("m", "n", "k"), [(20, 37, 21), (20, 3, 70), (70, 3, 20), (1, 50, 33)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_reach_their_row_and_column_only(
    m: int, n: int, k: int, value: float, rng: np.random.Generator
) -> None:
    text = dot_text(m, n, k)
    a, b = arrays_for(text, rng)
    a[m - 1, k - 1] = value
    b[0, n - 1] = value
    b[k - 1, 0] = 0.0
    got, wanted = compile_text(text)(a, b), evaluate(parse(text), a, b)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted))


def test_operands_need_no_alignment(rng: np.random.Generator) -> None:
    text = dot_text(19, 35, 23)
    a, b = arrays_for(text, rng)
    moved = []
    for array in (a, b):
        memory = np.empty(array.size + 1, np.float32)
        memory[1:] = array.ravel()
        moved.append(memory[1:].reshape(array.shape))
    assert_close(compile_text(text)(*moved), evaluate(parse(text), a, b), 23)


def test_an_operand_may_be_both(rng: np.random.Generator) -> None:
    text = """HloModule gram
ENTRY main {
  a = f32[40,30] parameter(0)
  ROOT d = f32[40,40] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""
    check(text, rng, 30)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(200, 190, 180), (100, 10, 784), (784, 10, 100), (1, 3000, 300), (64, 64, 2500)]
)
def test_results_do_not_depend_on_the_threads(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    check_threads(dot_text(m, n, k, rhs="nk" if n == 190 else "kn"), rng)


@pytest.mark.parametrize(
    ("m", "n", "k", "lhs", "batch"),
    [(300, 700, 1100, "km", ()), (701, 310, 1500, "km", (2,)), (1500, 600, 1300, "mk", ()), (40, 2000, 1030, "km", ())],
)
def test_pieces_share_what_is_packed_for_a_step_along_the_depth(
    m: int, n: int, k: int, lhs: str, batch: tuple[int, ...], rng: np.random.Generator
) -> None:
    text = dot_text(m, n, k, lhs=lhs, batch=batch)
    check(text, rng, k)
    check_threads(text, rng)


def check_threads(text: str, rng: np.random.Generator) -> None:
    """Any number of threads gives the same bits."""
    arrays = arrays_for(text, rng)
    results = [compile_text(text, threads)(*arrays) for threads in (1, 2, 3)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize(
    ("dtype", "result", "batch"), [("f32", "f32", ()), ("f64", "f64", (2,)), ("s8", "s32", ()), ("bf16", "bf16", (3,))]
)
def test_long_sums_are_added_in_an_order_of_their_own(
    dtype: str, result: str, batch: tuple[int, ...], rng: np.random.Generator
) -> None:
    text = dot_text(37, 21, 9001, lhs="km", dtype=dtype, result=result, batch=batch)
    executables = [compile_text(text, threads) for threads in (1, 2, 5)]
    assert "parts=" in str(executables[0].decisions()[-1])
    arrays = [(array * 4).astype(array.dtype) for array in arrays_for(text, rng)]
    results = [executable(*arrays) for executable in executables for _ in range(2)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint8), other.view(np.uint8))
    wanted = evaluate(parse(text), *arrays)
    tolerance = {"f64": 1e-12, "s8": 0.0, "bf16": 1e-2}.get(dtype, 1e-5)
    scale = np.abs(wanted.astype(np.float64)).max()
    np.testing.assert_allclose(results[0].astype(float), wanted.astype(float), rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(("m", "n", "k"), [(260, 520, 700), (40, 30, 20_000)])
def test_calls_at_the_same_time_have_their_own_scratch_memory(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    text = dot_text(m, n, k, lhs="km")
    executable = compile_text(text)
    inputs = [arrays_for(text, rng) for _ in range(4)]
    alone = [executable(*arrays) for arrays in inputs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda arrays: executable(*arrays), inputs * 5))
    for got, wanted in zip(together, alone * 5, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_scratch_memory_is_accounted_for() -> None:
    small, large = (compile_text(dot_text(size, size, size)).memory_analysis() for size in (16, 512))
    assert small.temp_size_bytes == 0
    assert 0 < large.temp_size_bytes < 8 << 20


def test_runs_are_equal_bit_for_bit(rng: np.random.Generator) -> None:
    text = dot_text(300, 300, 300)
    arrays = arrays_for(text, rng)
    executable = compile_text(text)
    first = executable(*arrays)
    for _ in range(5):
        np.testing.assert_array_equal(first.view(np.uint32), executable(*arrays).view(np.uint32))


@pytest.mark.parametrize("size", [1, 13, 64, 130])
def test_the_identity_changes_nothing(size: int) -> None:
    numbered = np.arange(size * size, dtype=np.float32).reshape(size, size)
    product = compile_text(dot_text(size, size, size))(numbered, np.eye(size, dtype=np.float32))
    np.testing.assert_array_equal(product, numbered)
