"""Products of few rows whose first tile packs a far right operand for the others, a few columns at a time."""

from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.base import CompileOptions, Executable
from xlalite.backends.codegen.kernels.dot.pieces import choices
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.passes.core.debug_options import DebugOptions

SIZES = [(13, 257, 650), (16, 130, 1100), (64, 200, 777), (37, 300, 653), (200, 250, 641)]


def product(
    m: int, k: int, n: int, *, dtype: str = "f32", batch: int = 0, after: str = "", config: str = "", lhs: str = "mk"
) -> str:
    heads, many = ("", "") if not batch else (f"{batch},", "lhs_batch_dims={0}, rhs_batch_dims={0}, ")
    first = 1 if batch else 0
    sizes = f"{m},{k}" if lhs == "mk" else f"{k},{m}"
    attributes = f"{many}lhs_contracting_dims={{{first + lhs.index('k')}}}, rhs_contracting_dims={{{first}}}"
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{heads}{sizes}] parameter(0)
  w = {dtype}[{heads}{k},{n}] parameter(1)
  {"" if after else "ROOT "}d = {dtype}[{heads}{m},{n}] dot(x, w), {attributes}{config}
  {after}
}}"""


def panels(executable: Executable) -> bool:
    return any(decision.numbers.get("packed") == "rhs in panels" for decision in executable.decisions())


def operands(rng: np.random.Generator, m: int, k: int, n: int, batch: tuple[int, ...] = ()) -> list[Any]:
    return [rng.standard_normal((*batch, *sizes)).astype(np.float32) for sizes in ((m, k), (k, n))]


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products_are_those_of_the_evaluator(check: Any, rng: np.random.Generator, m: int, k: int, n: int) -> None:
    assert panels(check(product(m, k, n), *operands(rng, m, k, n), ulps=2.0**12))


@pytest.mark.parametrize("isa", ["AVX2", "SSE4_2"])
def test_other_targets(check: Any, rng: np.random.Generator, isa: str) -> None:
    check(product(45, 200, 610), *operands(rng, 45, 200, 610), ulps=2.0**12, debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.parametrize("dtype", ["f64", "s32"])
def test_other_types(check: Any, rng: np.random.Generator, dtype: str) -> None:
    x, w = (10 * one for one in operands(rng, 21, 271, 645))
    kind = np.dtype(dtype.replace("s", "i").replace("f64", "f8").replace("i32", "i4"))
    assert panels(check(product(21, 271, 645, dtype=dtype), x.astype(kind), w.astype(kind), ulps=2.0**12))


def test_what_follows_the_product(check: Any, rng: np.random.Generator) -> None:
    after = "n = f32[30,650] negate(d)\n  ROOT r = f32[30,650] maximum(n, d)"
    assert panels(check(product(30, 300, 650, after=after), *operands(rng, 30, 300, 650), ulps=2.0**12))


def test_batches(check: Any, rng: np.random.Generator) -> None:
    assert panels(check(product(20, 260, 650, batch=3), *operands(rng, 20, 260, 650, (3,)), ulps=2.0**12))


def test_results_do_not_depend_on_threads(rng: np.random.Generator) -> None:
    arguments, results = operands(rng, 64, 300, 1100), list[Any]()
    for threads in (1, 2, 5):
        options = CompileOptions(num_threads=threads)
        results.append(xl.compile(parse(product(64, 300, 1100)), options=options)(*arguments))
    assert all((one == results[0]).all() for one in results)


def test_pieces_that_somebody_chooses(check: Any, rng: np.random.Generator) -> None:
    target = TargetInfo.host()
    plan = plan_dot(parse(product(48, 150, 960)).entry_computation.root, target)
    assert plan.shares_panels
    chosen = choices(plan)
    assert len(chosen) > 1
    assert not any(pieces.rows_outside for pieces in chosen)  # the first tile would not be that of the panel
    for pieces in chosen:
        text = product(48, 150, 960, config=f", backend_config={pieces.config}")
        check(text, *operands(rng, 48, 150, 960), ulps=2.0**12)


def test_a_left_operand_whose_neighbours_are_rows_is_packed_first(check: Any, rng: np.random.Generator) -> None:
    x, w = operands(rng, 64, 300, 1100)
    assert not panels(check(product(64, 300, 1100, lhs="km"), np.ascontiguousarray(x.T), w, ulps=2.0**12))
