"""The gradient of attention in one kernel: two products make rows, and three sum over their columns or over rows."""

import numpy as np
import pytest

from tests.backends.codegen.kernels.test_chains import (
    ADDED,
    CAUSAL,
    JOINED,
    SCALED,
    arguments,
    attention,
    compiled,
    reasons,
)
from xlalite.backends.codegen.kernels.dot import tilings

GRADIENT = """  w = f32[@B,@M,@D] parameter(3)
  dp = f32[@B,@M,@N] dot(w, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, @LAST
  pp = f32[@B,@M,@N] multiply(dp, p)
  e = f32[@B,@M] reduce(pp, zero), dimensions={2}, to_apply=sum
  es = f32[@B,@M,@N] broadcast(e), dimensions={0,1}
  u = f32[@B,@M,@N] subtract(dp, es)
  ds = f32[@B,@M,@N] multiply(p, u)
  dq = f32[@B,@M,@K] dot(ds, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, @ROWS
  dk = f32[@B,@N,@K] dot(ds, q), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, @ROWS
  dv = f32[@B,@N,@D] dot(p, w), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, @ROWS
  ROOT r = (f32[@B,@M,@K], f32[@B,@N,@K], f32[@B,@N,@D]) tuple(dq, dk, dv)
"""
RIGHT = GRADIENT.replace("dv = f32[@B,@N,@D] dot(p, w)", "dv = f32[@B,@D,@N] dot(w, p)").replace(
    "f32[@B,@N,@D]) tuple", "f32[@B,@D,@N]) tuple"
)
FINISHED = (
    GRADIENT.replace("dk = ", "dkk = ")
    .replace("dv = ", "dvv = ")
    .replace("f32[@B,@N,@D]) tuple", "f16[@B,@N,@D]) tuple")
    .replace(
        "  ROOT",
        """  two = f32[] constant(2)
  twos = f32[@B,@N,@K] broadcast(two), dimensions={}
  dk = f32[@B,@N,@K] multiply(dkk, twos)
  dv = f16[@B,@N,@D] convert(dvv)
  ROOT""",
    )
)
ROWS_OF_BOTH = "lhs_contracting_dims={1,2}, rhs_batch_dims={0}, rhs_contracting_dims={1,2}"
RUNS_OF_ROWS = "lhs_contracting_dims={1,2}, rhs_batch_dims={1}, rhs_contracting_dims={0,2}"
ROWS_BETWEEN = ROWS_OF_BOTH.replace("{1,2}", "{1,3}", 1)


def gradient(*sizes: int, middle: str = SCALED, end: str = GRADIENT) -> str:
    """The program, whose last parameter is the gradient of what attention gives."""
    end = end.replace("@ROWS", "rhs_contracting_dims={1}")
    end = end.replace("parameter(3)", "parameter(4)") if middle is ADDED else end
    return attention(*sizes, middle=middle, end=end)


SIZES = [(7, 130, 300, 33, 61), (4, 513, 257, 32, 40), (60, 65, 80, 17, 24), (5, 300, 1000, 24, 70)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    "options",
    [{}, {"middle": CAUSAL}, {"middle": ADDED}, {"end": RIGHT}, {"end": FINISHED}, {"middle": CAUSAL, "end": FINISHED}],
    ids=["scaled", "causal", "added mask", "rows on the right", "finished", "causal, finished"],
)
def test_the_gradient_is_one_kernel(sizes: tuple[int, ...], options: dict[str, str], check, kernels, rng) -> None:
    text = gradient(*sizes, **options)
    executable = check(text, *arguments(text, rng), ulps=64)
    assert kernels(executable) == ["chain"]
    assert reasons(executable) == JOINED
    batch, queries, keys, depth, width = sizes
    (chain,) = [d for d in executable.decisions() if d.verdict == "chain"]
    flops = 2 * batch * queries * keys * (3 * depth + 2 * width)
    assert flops <= chain.numbers["flops"] <= flops + 50 * batch * queries * keys


@pytest.mark.parametrize("middle", [SCALED, CAUSAL], ids=["scaled", "causal"])
def test_every_number_of_threads_gives_the_same_bits(middle: str, rng) -> None:
    text = gradient(9, 200, 300, 24, 31, middle=middle)
    values = arguments(text, rng)
    expected = compiled(text, 1)(*values)
    for threads in (2, 5):
        for found, of_one in zip(compiled(text, threads)(*values), expected, strict=True):
            np.testing.assert_array_equal(found, of_one)


def test_rows_of_zeros_are_left_out_of_sums_over_rows(check, rng) -> None:
    text = gradient(4, 700, 900, 16, 40, middle=CAUSAL)
    q, k, v, w = arguments(text, rng)
    (chain,) = [d for d in compiled(text).decisions() if d.verdict == "chain"]
    assert chain.numbers["depths"] == 8
    check(text, q, k, v, w, ulps=64)
    # Times 0 this is no number, wherever the mask hides it.
    w[0, 30, 7], q[1, 3, 2], k[2, 650, 0] = np.inf, np.nan, -np.inf
    check(text, q, k, v, w, ulps=64)


def test_what_others_need_is_a_result(check, kernels, rng) -> None:
    text = gradient(5, 190, 300, 24, 31).replace("tuple(dq, dk, dv)", "tuple(dq, dk, dv, p, e)")
    text = text.replace(
        "(f32[5,190,24], f32[5,300,24], f32[5,300,31])",
        "(f32[5,190,24], f32[5,300,24], f32[5,300,31], f32[5,190,300], f32[5,190])",
    )
    assert kernels(check(text, *arguments(text, rng), ulps=64)) == ["chain"]


def test_narrow_rows_are_multiplied_in_words(check, kernels, rng) -> None:
    end = (
        GRADIENT.replace("dot(ds, k)", "dot(dsn, kn)")
        .replace("dot(ds, q)", "dot(dsn, qn)")
        .replace(
            "  dq =",
            """  dsn = bf16[@B,@M,@N] convert(ds)
  qn = bf16[@B,@M,@K] convert(q)
  kn = bf16[@B,@N,@K] convert(k)
  dq =""",
        )
    )
    text = gradient(6, 190, 333, 24, 31, end=end)
    executable = check(text, *arguments(text, rng), ulps=2.0**12)
    assert "chain" in kernels(executable)


@pytest.mark.parametrize(("outer", "inner"), [(4, 40), (40, 5)])
def test_what_is_multiplied_with_rows_may_lie_apart(outer: int, inner: int, check, rng) -> None:
    """On their left, in two dimensions between which is the one that is summed."""
    text = gradient(5, 200, 300, 24, 40, end=RIGHT)
    head, _, tail = text.partition("dv = f32[5,40,300] dot(w, p), lhs_batch_dims={0}, lhs_contracting_dims={1}")
    tail = tail.replace("f32[5,40,300]) tuple", f"f32[5,{outer},{inner},300]) tuple")
    wide = f"wide = f32[5,{outer},200,{inner}] parameter(4)\n  dv = f32[5,{outer},{inner},300] dot(wide, p)"
    text = f"{head}{wide}, lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}{tail}"
    check(text, *arguments(text, rng), ulps=64)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [(3, 64, ["a second product goes through the rows in another order", *JOINED]), (64, 12, JOINED)],
    ids=["read where it lies", "packed"],
)
def test_blocks_need_not_end_where_runs_of_terms_do(
    outer: int, inner: int, expected: list[str], check, kernels, rng
) -> None:
    """The terms of what is multiplied with the rows lie in two dimensions, between which is that of the result."""
    text = gradient(6, outer * inner, 300, 24, 40, end=RIGHT).replace("dot(w, p)", "dot(wide, p)")
    for old, new in (
        (f"[6,{outer * inner}", f"[6,{outer},{inner}"),
        ("lhs_contracting_dims={2}", "lhs_contracting_dims={3}"),
        ("lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}", ROWS_OF_BOTH),
        (f"dot(wide, p), lhs_batch_dims={{0}}, {ROWS_OF_BOTH}", f"dot(wide, p), lhs_batch_dims={{0}}, {ROWS_BETWEEN}"),
        ("dimensions={0,1}\n", "dimensions={0,1,2}\n"),
        ("dimensions={2}, to_apply", "dimensions={3}, to_apply"),
        ("  dv =", f"  wide = f32[6,{outer},40,{inner}] parameter(4)\n  dv ="),
    ):
        text = text.replace(old, new)
    executable = check(text, *arguments(text, rng), ulps=64)
    assert reasons(executable) == expected
    assert "chain" in kernels(executable)


def test_terms_are_looked_up_from_where_a_block_begins(check, monkeypatch, rng) -> None:
    """What is multiplied with the rows lies in two runs of terms, and a block has the terms of one."""
    monkeypatch.setattr(tilings, "_SECOND_OF_IMAGE", 0.0)
    text = gradient(6, 384, 300, 32, 64)
    for old, new in (
        (" q = f32[6,384,32]", " q = f32[2,6,192,32]"),
        (" w = f32[6,384,64]", " w = f32[2,6,192,64]"),
        ("[6,384", "[6,2,192"),
        ("dot(q, k), lhs_batch_dims={0}", "dot(q, k), lhs_batch_dims={1}"),
        ("dot(w, v), lhs_batch_dims={0}", "dot(w, v), lhs_batch_dims={1}"),
        ("lhs_contracting_dims={2}", "lhs_contracting_dims={3}"),
        ("lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}", RUNS_OF_ROWS),
        ("dimensions={0,1}\n", "dimensions={0,1,2}\n"),
        ("dimensions={2}, to_apply", "dimensions={3}, to_apply"),
    ):
        text = text.replace(old, new)
    executable = check(text, *arguments(text, rng), ulps=64)
    (chain,) = [d for d in executable.decisions() if d.verdict == "chain"]
    assert chain.numbers["rows"] < chain.numbers["second_places_looked_up"] == 384


def test_few_products_sum_over_rows_apart(check, kernels, rng) -> None:
    text = gradient(2, 400, 513, 24, 24)
    executable = check(text, *arguments(text, rng), ulps=64)
    assert sorted(kernels(executable)) == ["chain", "dot", "dot"]
    assert reasons(executable)[-1:] == JOINED


def test_narrow_products_find_what_the_evaluator_finds(check, kernels, rng) -> None:
    text = gradient(5, 300, 1000, 16, 16)
    assert "chain" in kernels(check(text, *arguments(text, rng), ulps=64))
