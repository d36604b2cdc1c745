"""Products of a matrix with its own transposition: half of the result is copied, with the bits of the whole product."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo import evaluate, parse
from xlalite.passes.core.debug_options import DebugOptions


def text(
    m: int, k: int, *, t: str = "f32", across: bool = False, batch: int = 0, after: str = "", is_own: bool = True
) -> str:
    """`x x'` or, across, `x' x`; `after` says what follows the product `d`, `is_own` whether it is of one matrix."""
    lines, head = f"{k},{m}" if across else f"{m},{k}", f"{batch}," if batch else ""
    contracted = (not across) + (batch > 0)
    batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch else ""
    result = f"{t}[{head}{m},{m}]"
    dims = f"{batches}lhs_contracting_dims={{{contracted}}}, rhs_contracting_dims={{{contracted}}}"
    follows = (
        f"  half = {t}[] constant(0.5)\n  halves = {result} broadcast(half), dimensions={{}}\n{after}" if after else ""
    )
    return f"""HloModule m
ENTRY e {{
  x = {t}[{head}{lines}] parameter(0)
  y = {t}[{head}{lines}] parameter(1)
  z = {result} parameter(2)
  {"" if after else "ROOT "}d = {result} dot(x, {"x" if is_own else "y"}), {dims}
{follows}}}"""


SCALED = "  ROOT r = f32[{m},{m}] multiply(d, halves)\n"
ADDED = "  ROOT r = f32[{m},{m}] add(d, z)\n"


def compiled(program: str, threads: int = 2, isa: str = "") -> Executable:
    options = CompileOptions(num_threads=threads, use_cache=False, debug=DebugOptions(cpu_max_isa=isa))
    return get_backend("cpu").compile(parse(program), options)


def is_mirrored(executable: Executable) -> bool:
    return any("mirrored=1" in str(decision) for decision in executable.decisions())


def arguments(program: str, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(program).entry_computation.parameters]
    return [(rng.standard_normal(shape.dims) * 9).astype(shape.dtype.numpy) for shape in shapes]


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(("m", "k"), [(256, 100), (289, 33), (400, 1300), (777, 65), (1000, 300)])
def test_bits_are_those_of_a_product_of_two_matrices(m: int, k: int, across: bool, rng: np.random.Generator) -> None:
    program = text(m, k, across=across)
    x, _, z = arguments(program, rng)
    whole = compiled(text(m, k, across=across, is_own=False))
    assert not is_mirrored(whole)
    expected = whole(x, x.copy(), z)
    np.testing.assert_allclose(expected, x.T.astype(float) @ x if across else x @ x.T.astype(float), atol=k * 1e-3)
    for threads in (1, 2, 5):
        executable = compiled(program, threads)
        assert is_mirrored(executable)
        np.testing.assert_array_equal(executable(x, x, z), expected)


@pytest.mark.parametrize(("m", "k", "batch", "after"), [(513, 600, 0, ""), (300, 700, 2, ""), (400, 1300, 0, SCALED)])
def test_strips_share_the_columns_of_all(m: int, k: int, batch: int, after: str, rng: np.random.Generator) -> None:
    """Those up to the diagonal, in steps along the depth; of each strip what is below is copied, once all is summed."""
    after = after.format(m=m)
    program = text(m, k, across=True, batch=batch, after=after)
    x, _, z = arguments(program, rng)
    expected = compiled(text(m, k, across=True, batch=batch, after=after, is_own=False))(x, x.copy(), z)
    for threads in (1, 2, 5):
        executable = compiled(program, threads)
        assert is_mirrored(executable)
        assert any(f"x{m}x" in str(decision.numbers.get("piece")) for decision in executable.decisions())
        np.testing.assert_array_equal(executable(x, x, z), expected)


@pytest.mark.parametrize("isa", ["AVX2", "SSE4_2"])
def test_pieces_are_as_wide_as_the_target_likes(isa: str, rng: np.random.Generator) -> None:
    program = text(330, 70)
    values = arguments(program, rng)
    executable = compiled(program, isa=isa)
    assert is_mirrored(executable)
    np.testing.assert_array_equal(
        executable(*values), compiled(text(330, 70, is_own=False), isa=isa)(values[0], *values[:1], values[2])
    )


@pytest.mark.parametrize(("t", "batch"), [("f64", 0), ("s32", 0), ("u64", 0), ("f32", 3), ("f32", 1)])
def test_other_types_and_batches(t: str, batch: int, rng: np.random.Generator) -> None:
    program = text(300, 41, t=t, batch=batch)
    values = arguments(program, rng)
    executable = compiled(program)
    assert is_mirrored(executable)
    np.testing.assert_allclose(executable(*values), evaluate(parse(program), *values), rtol=1e-6, atol=1e-3)


def test_what_treats_all_elements_alike_may_follow(rng: np.random.Generator) -> None:
    program = text(300, 700, after=SCALED.format(m=300))
    values = arguments(program, rng)
    executable = compiled(program)
    assert is_mirrored(executable)
    result = executable(*values)
    np.testing.assert_allclose(result, evaluate(parse(program), *values), rtol=1e-5, atol=1e-2)
    np.testing.assert_array_equal(result, result.T)


def test_a_matrix_may_be_computed_on_the_way(rng: np.random.Generator) -> None:
    program = """HloModule covariance
ENTRY e {
  x = f32[200,500] parameter(0)
  mean = f32[500] parameter(1)
  means = f32[200,500] broadcast(mean), dimensions={1}
  apart = f32[200,500] subtract(x, means)
  ROOT d = f32[500,500] dot(apart, apart), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}"""
    values = arguments(program, rng)
    executable = compiled(program)
    assert is_mirrored(executable)
    np.testing.assert_allclose(executable(*values), evaluate(parse(program), *values), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(text(300, 40, is_own=False), id="of two matrices"),
        pytest.param(text(60, 40), id="of few rows"),
        pytest.param(text(300, 2), id="of few terms"),
        pytest.param(text(300, 40, after=ADDED.format(m=300)), id="another array is added"),
        pytest.param(text(300, 40, t="bf16"), id="of another type than the sums"),
    ],
)
def test_what_is_computed_as_a_whole(program: str, rng: np.random.Generator) -> None:
    values = arguments(program, rng)
    executable = compiled(program)
    assert not is_mirrored(executable)
    expected = np.asarray(evaluate(parse(program), *values), float)
    np.testing.assert_allclose(np.asarray(executable(*values), float), expected, rtol=1e-2, atol=1e-2)
