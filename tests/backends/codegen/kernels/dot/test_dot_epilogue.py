"""Elementwise work after a dot, in the dot's kernel."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo import evaluate, parse


def compile_text(text: str, threads: int = 2, **options: bool) -> Executable:
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False, **options))


def kernels_of(executable: Executable) -> list[str]:
    """The kinds of kernels, in order."""
    return [decision.verdict for decision in executable.decisions() if decision.decided_by == "kernel planner"]


def check(text: str, rng: np.random.Generator, kernels: list[str], tolerance: float = 1e-4) -> None:
    parameters = parse(text).entry_computation.parameters
    arrays = [rng.standard_normal(parameter.shape.dims).astype(parameter.shape.dtype.numpy) for parameter in parameters]
    executable = compile_text(text)
    assert kernels_of(executable) == kernels
    got, wanted = executable(*arrays), evaluate(parse(text), *arrays)
    pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
    for mine, theirs in pairs:
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=tolerance, atol=tolerance)


def layer(m: int, n: int, k: int, added: str) -> str:
    """tanh(max(a.b + bias, 0)) + residual; `added` is the order of the first sum's operands."""
    return f"""HloModule layer
ENTRY main {{
  a = f32[{m},{k}] parameter(0)
  b = f32[{k},{n}] parameter(1)
  bias = f32[{n}] parameter(2)
  residual = f32[{m},{n}] parameter(3)
  d = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  spread = f32[{m},{n}] broadcast(bias), dimensions={{1}}
  x = f32[{m},{n}] add({added})
  zero = f32[] constant(0)
  zeros = f32[{m},{n}] broadcast(zero), dimensions={{}}
  y = f32[{m},{n}] maximum(x, zeros)
  z = f32[{m},{n}] tanh(y)
  ROOT o = f32[{m},{n}] add(z, residual)
}}"""


@pytest.mark.parametrize("added", ["d, spread", "spread, d"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(5, 7, 3), (64, 64, 64), (100, 10, 784), (300, 2, 50), (1, 40, 50), (40, 1, 50), (40, 40, 3000)],
)
def test_a_layer_is_one_kernel(m: int, n: int, k: int, added: str, rng: np.random.Generator) -> None:
    check(layer(m, n, k, added), rng, ["dot"])


def test_work_on_turned_tiles(rng: np.random.Generator) -> None:
    text = """HloModule gradient
ENTRY main {
  x = f32[100,300] parameter(0)
  g = f32[100,10] parameter(1)
  w = f32[300,10] parameter(2)
  d = f32[300,10] dot(x, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  rate = f32[] constant(0.01)
  rates = f32[300,10] broadcast(rate), dimensions={}
  step = f32[300,10] multiply(d, rates)
  ROOT after = f32[300,10] subtract(w, step)
}"""
    check(text, rng, ["dot"])


def test_work_on_turned_tiles_of_lines(rng: np.random.Generator) -> None:
    text = """HloModule image
ENTRY main {
  x = f32[2,16,10,17] parameter(0)
  k = f32[32,16,3,3] parameter(1)
  bias = f32[32] parameter(2)
  c = f32[2,32,8,15] convolution(x, k), window={size=3x3}, dim_labels=bf01_oi01->bf01
  spread = f32[2,32,8,15] broadcast(bias), dimensions={1}
  ROOT y = f32[2,32,8,15] add(c, spread)
}"""
    check(text, rng, ["dot"])


def test_work_over_several_dimensions(rng: np.random.Generator) -> None:
    """The bias lies along the columns, the positions along a part of the rows."""
    text = """HloModule projection
ENTRY main {
  x = f32[2,9,20] parameter(0)
  w = f32[20,3,8] parameter(1)
  bias = f32[3,8] parameter(2)
  positions = f32[9] parameter(3)
  d = f32[2,9,3,8] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  b = f32[2,9,3,8] broadcast(bias), dimensions={2,3}
  p = f32[2,9,3,8] broadcast(positions), dimensions={1}
  e = f32[2,9,3,8] add(d, b)
  ROOT o = f32[2,9,3,8] add(e, p)
}"""
    check(text, rng, ["dot"])


def test_work_along_a_part_of_the_columns(rng: np.random.Generator) -> None:
    text = """HloModule heads
ENTRY main {
  x = f32[9,20] parameter(0)
  w = f32[20,3,8] parameter(1)
  scale = f32[3] parameter(2)
  d = f32[9,3,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[9,3,8] broadcast(scale), dimensions={1}
  ROOT o = f32[9,3,8] multiply(d, s)
}"""
    check(text, rng, ["dot"])


def test_work_on_batches(rng: np.random.Generator) -> None:
    text = """HloModule scores
ENTRY main {
  q = f32[2,9,3,8] parameter(0)
  k = f32[2,11,3,8] parameter(1)
  mask = f32[9,11] parameter(2)
  d = f32[2,3,9,11] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3},
    rhs_contracting_dims={3}
  m = f32[2,3,9,11] broadcast(mask), dimensions={2,3}
  ROOT o = f32[2,3,9,11] add(d, m)
}"""
    check(text, rng, ["dot"])


@pytest.mark.parametrize(("m", "n", "k"), [(300, 10, 100), (64, 64, 64), (90, 70, 2500), (500, 300, 100)])
def test_an_update_after_a_product_is_in_place(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    text = f"""HloModule update, input_output_alias={{ {{}}: (2, {{}}, must-alias) }}
ENTRY main {{
  x = f32[{k},{m}] parameter(0)
  g = f32[{k},{n}] parameter(1)
  w = f32[{m},{n}] parameter(2)
  d = f32[{m},{n}] dot(x, g), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT after = f32[{m},{n}] subtract(w, d)
}}"""
    x, g, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((k, m), (k, n), (m, n)))
    wanted = w.astype(np.float64) - x.astype(np.float64).T @ g.astype(np.float64)
    executable = compile_text(text, donate_arguments=True)
    assert kernels_of(executable) == ["dot"]
    assert executable.memory_analysis().alias_size_bytes == w.nbytes
    np.testing.assert_allclose(executable(x, g, w), wanted, rtol=1e-4, atol=1e-3)


def test_an_update_by_one_sample_is_one_loop(rng: np.random.Generator) -> None:
    text = """HloModule update
ENTRY main {
  x = f32[1,90] parameter(0)
  g = f32[1,70] parameter(1)
  w = f32[90,70] parameter(2)
  d = f32[70,90] dot(g, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  t = f32[90,70] transpose(d), dimensions={1,0}
  rate = f32[] constant(0.1)
  rates = f32[90,70] broadcast(rate), dimensions={}
  step = f32[90,70] multiply(rates, t)
  ROOT after = f32[90,70] subtract(w, step)
}"""
    check(text, rng, ["loop"])


def test_a_conversion_rounds_once(rng: np.random.Generator) -> None:
    text = """HloModule narrow
ENTRY main {
  a = bf16[20,50] parameter(0)
  b = bf16[50,33] parameter(1)
  d = f32[20,33] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT o = bf16[20,33] convert(d)
}"""
    check(text, rng, ["dot"], tolerance=2**-7)


def test_the_product_may_be_a_result_too(rng: np.random.Generator) -> None:
    text = """HloModule both
ENTRY main {
  a = f32[20,30] parameter(0)
  b = f32[30,40] parameter(1)
  d = f32[20,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[20,40] tanh(d)
  ROOT r = (f32[20,40], f32[20,40]) tuple(t, d)
}"""
    check(text, rng, ["dot"])


def test_what_the_product_reads_stays_outside(rng: np.random.Generator) -> None:
    text = """HloModule producer
ENTRY main {
  a = f32[20,20] parameter(0)
  b = f32[20,20] parameter(1)
  e = f32[20,20] exponential(a)
  d = f32[20,20] dot(e, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT o = f32[20,20] add(d, e)
}"""
    check(text, rng, ["loop", "dot"], tolerance=1e-3)


def test_two_products_are_two_kernels(rng: np.random.Generator) -> None:
    text = """HloModule two
ENTRY main {
  a = f32[20,30] parameter(0)
  b = f32[30,40] parameter(1)
  c = f32[20,30] parameter(2)
  d = f32[20,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[20,40] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT o = f32[20,40] add(d, e)
}"""
    check(text, rng, ["dot", "dot"])


@pytest.mark.parametrize(("m", "n", "k"), [(200, 150, 1200), (500, 1000, 300), (777, 63, 500)])
def test_an_epilogue_does_not_depend_on_the_threads(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    text = layer(m, n, k, "d, spread")
    arrays = [rng.standard_normal(p.shape.dims).astype(np.float32) for p in parse(text).entry_computation.parameters]
    one, *others = (compile_text(text, threads)(*arrays).view(np.uint32) for threads in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("m", "n", "k"), [(500, 300, 100), (59, 512, 512)])
def test_an_update_in_place_where_tiles_overlap_is_done_once(m: int, n: int, k: int, rng: np.random.Generator) -> None:
    text = f"""HloModule update, input_output_alias={{ {{}}: (2, {{}}, must-alias) }}
ENTRY main {{
  x = f32[{m},{k}] parameter(0)
  g = f32[{k},{n}] parameter(1)
  w = f32[{m},{n}] parameter(2)
  d = f32[{m},{n}] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT after = f32[{m},{n}] subtract(w, d)
}}"""
    x, g, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    wanted = w.astype(np.float64) - x.astype(np.float64) @ g.astype(np.float64)
    np.testing.assert_allclose(compile_text(text, donate_arguments=True)(x, g, w), wanted, rtol=1e-4, atol=1e-3)


def test_the_last_part_of_a_long_sum_computes_what_follows(rng: np.random.Generator) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[12001,20] parameter(0)
  y = f32[12001,33] parameter(1)
  b = f32[20,33] parameter(2)
  d = f32[20,33] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[20,33] multiply(d, b)
  ROOT t = f32[20,33] tanh(s)
}"""
    executable = compile_text(text)
    assert "parts=" in str(executable.decisions()[-1])
    check(text, rng, ["dot"], 1e-3)
