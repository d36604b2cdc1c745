"""Tiles of long sums, and pieces that two threads share."""

import pytest

from xlalite.backends.codegen.kernels.dot.layout import layout_of, tile_of
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, plan_dot
from xlalite.backends.codegen.llvm import ModuleBuilder, TargetInfo
from xlalite.hlo import parse

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "fma"))
NARROW = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx", "fma"))


def plan_of(m: int, k: int, n: int, dtype: str = "f32", target: TargetInfo = WIDE, *, turned: bool = False) -> DotPlan:
    lhs = f"{dtype}[{k},{m}]" if turned else f"{dtype}[{m},{k}]"
    text = f"""HloModule m
ENTRY e {{
  a = {lhs} parameter(0)
  b = {dtype}[{k},{n}] parameter(1)
  ROOT d = {dtype}[{m},{n}] dot(a, b), lhs_contracting_dims={{{0 if turned else 1}}}, rhs_contracting_dims={{0}}
}}"""
    return plan_dot(parse(text).entry_computation.root, target, may_overlap=True)


@pytest.mark.parametrize(
    ("sizes", "dtype", "target", "terms"),
    [
        ((1024, 1024, 1024), "f32", WIDE, 2),
        ((512, 512, 512), "f64", WIDE, 2),
        ((1024, 1023, 1024), "f32", WIDE, 1),  # an odd number of terms
        ((1024, 770, 1024), "f32", WIDE, 1),  # sums begin anew after 193
        ((1024, 128, 1024), "f32", WIDE, 1),
        ((1568, 576, 64), "f32", WIDE, 1),  # 14 rows leave too few registers
        ((1024, 1024, 1024), "f32", NARROW, 2),
    ],
)
def test_long_tiles_take_terms_two_by_two(
    sizes: tuple[int, int, int], dtype: str, target: TargetInfo, terms: int
) -> None:
    plan, module = plan_of(*sizes, dtype, target), ModuleBuilder("tile", target)
    layout = layout_of(plan, stores_result=True)
    tile_of(plan, layout, plan.rows, plan.columns).function(module, plan.numbers)
    (text,) = module.shared_texts
    multiply_adds = sum("= call" in line and "@llvm.fma" in line for line in text.splitlines())
    assert multiply_adds == terms * plan.rows * plan.columns // plan.lanes


@pytest.mark.parametrize(
    ("sizes", "turned"),
    [((777, 777, 777), False), ((777, 2000, 513), True), ((1000, 777, 63), False), ((1024, 1024, 1024), False)],
)
def test_halves_of_the_pieces_are_even(sizes: tuple[int, int, int], turned: bool) -> None:
    plan = plan_of(*sizes, turned=turned)
    view, pieces = plan.view, list[int]()
    for column in range(0, view.n, plan.unit_columns):
        for row in range(0, view.m, plan.unit_rows):
            pieces.append(min(plan.unit_rows, view.m - row) * min(plan.unit_columns, view.n - column))
    middle = -(-len(pieces) // 2)
    assert max(sum(pieces[:middle]), sum(pieces[middle:])) <= 0.525 * view.m * view.n


def test_short_products_stay_in_one_piece() -> None:
    assert plan_of(63, 63, 63).extent == 1
    assert plan_of(100, 10, 100).extent == 1
