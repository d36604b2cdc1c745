"""How a dot is seen as matrix products, and which plan is made for it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.dot.layout import layout_of
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, Form, plan_dot
from xlalite.backends.codegen.kernels.dot.view import Matrix, view_of
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.kernel_body import kernel_body
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.ir.instruction import HloInstruction

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "fma"))
NARROW = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx", "fma"))


def dot_of(lhs: str, rhs: str, result: str, attributes: str) -> HloInstruction:
    text = f"""HloModule m
ENTRY main {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  ROOT d = {result} dot(a, b), {attributes}
}}"""
    return parse(text).entry_computation.root


def plain(m: int, n: int, k: int, *, lhs_dim: int = 1, rhs_dim: int = 0) -> HloInstruction:
    lhs = (m, k) if lhs_dim else (k, m)
    rhs = (n, k) if rhs_dim else (k, n)
    return dot_of(
        f"f32[{lhs[0]},{lhs[1]}]",
        f"f32[{rhs[0]},{rhs[1]}]",
        f"f32[{m},{n}]",
        f"lhs_contracting_dims={{{lhs_dim}}}, rhs_contracting_dims={{{rhs_dim}}}",
    )


def matrix(outer: tuple[int, int], depth: tuple[int, int], batch: tuple[int, ...] = ()) -> Matrix:
    return Matrix(Walk((outer,)), Walk((depth,)), batch)


def test_view_of_a_plain_product() -> None:
    view = view_of(plain(2, 5, 3))
    assert (view.batch, view.m, view.n, view.k) == ((), 2, 5, 3)
    assert view.lhs == matrix(outer=(2, 3), depth=(3, 1))
    assert view.rhs == matrix(outer=(5, 1), depth=(3, 5))


def test_view_of_transposed_operands_moves_nothing() -> None:
    view = view_of(plain(2, 5, 3, lhs_dim=0, rhs_dim=1))
    assert view.lhs == matrix(outer=(2, 1), depth=(3, 2))
    assert view.rhs == matrix(outer=(5, 3), depth=(3, 1))


def test_view_of_batches_inside() -> None:
    dot = dot_of(
        "f32[2,9,3,8]",
        "f32[2,11,3,8]",
        "f32[2,3,9,11]",
        "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    )
    view = view_of(dot)
    assert view.batch == (2, 3)
    assert view.lhs == matrix(outer=(9, 24), depth=(8, 1), batch=(216, 8))
    assert view.rhs == matrix(outer=(11, 24), depth=(8, 1), batch=(264, 8))


def test_neighbouring_dimensions_are_one() -> None:
    view = view_of(
        dot_of("f32[2,9,20]", "f32[20,3,8]", "f32[2,9,3,8]", "lhs_contracting_dims={2}, rhs_contracting_dims={0}")
    )
    assert (view.m, view.n, view.k) == (18, 24, 20)


def test_collapse_merges_dimensions_of_a_dot_that_follow_one_another() -> None:
    dot = dot_of(
        "f32[2,5,9,3,4]",
        "f32[2,5,3,4,6,7]",
        "f32[2,5,9,6,7]",
        "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3,4}, rhs_contracting_dims={2,3}",
    )
    merged = collapse(kernel_body(dot).computation).root
    assert [operand.shape.dims for operand in merged.operands] == [(10, 9, 12), (10, 12, 42)]
    assert merged.shape.dims == (10, 9, 42)


def test_collapse_keeps_dimensions_of_a_dot_that_lie_apart() -> None:
    dot = dot_of(
        "f32[2,9,3,8]",
        "f32[2,11,3,8]",
        "f32[2,3,9,11]",
        "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    )
    assert collapse(kernel_body(dot).computation).root.shape.dims == (2, 3, 9, 11)


def test_dimensions_that_lie_apart_are_walked_through() -> None:
    dot = dot_of("f32[2,3,9,8]", "f32[3,8,20]", "f32[2,9,20]", "lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}")
    view = view_of(dot)
    assert (view.m, view.n, view.k) == (18, 20, 24)
    assert view.lhs == Matrix(Walk(((2, 216), (9, 8))), Walk(((3, 72), (8, 1))), ())
    assert view.rhs == matrix(outer=(20, 1), depth=(24, 20))


def test_the_larger_operand_is_walked_through_in_order() -> None:
    for left in (30, 3):
        sizes = f"f32[4,5,{left}]", "f32[20,4,5]", f"f32[{left},20]"
        view = view_of(dot_of(*sizes, "lhs_contracting_dims={1,0}, rhs_contracting_dims={2,1}"))
        assert (view.lhs.depth.is_single, view.rhs.depth.is_single) == (True, True)


def convolution_of(lhs: str, rhs: str, result: str, attributes: str) -> HloInstruction:
    text = f"""HloModule m
ENTRY main {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  ROOT d = {result} convolution(a, b), {attributes}
}}"""
    return parse(text).entry_computation.root


def test_pixels_are_rows_and_windows_are_terms() -> None:
    view = view_of(
        convolution_of(
            "f32[2,9,8,6]",
            "f32[3,3,6,7]",
            "f32[2,4,3,7]",
            "window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f",
        )
    )
    assert (view.batch, view.m, view.n, view.k, view.exchanged) == ((), 24, 7, 54, False)
    assert view.lhs == Matrix(Walk(((2, 432), (4, 96), (3, 12))), Walk(((3, 48), (18, 1))), ())
    assert view.rhs == matrix(outer=(7, 1), depth=(54, 7))


def test_features_before_pixels_make_the_kernel_the_left_operand() -> None:
    view = view_of(
        convolution_of(
            "f32[2,6,9,8]",
            "f32[7,6,3,3]",
            "f32[2,7,7,5]",
            "window={size=3x3 pad=0_0x0_-1}, dim_labels=bf01_oi01->bf01",
        )
    )
    assert (view.batch, view.m, view.n, view.k, view.exchanged) == ((2,), 7, 35, 54, True)
    assert view.lhs == matrix(outer=(7, 54), depth=(54, 1), batch=(0,))
    assert view.rhs == Matrix(Walk(((7, 8), (5, 1))), Walk(((6, 72), (3, 8), (3, 1))), (432,))


def test_a_kernel_that_is_reversed_is_read_backwards() -> None:
    view = view_of(
        convolution_of(
            "f32[2,9,8,6]",
            "f32[3,3,6,7]",
            "f32[2,7,6,7]",
            "window={size=3x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
        )
    )
    assert view.lhs.depth == Walk(((3, 48), (18, 1)))
    assert (view.rhs.depth, view.rhs.origin) == (Walk(((9, -42), (6, 7))), 8 * 42)
    assert view.looked_up() is None


def plans(target: TargetInfo) -> list[DotPlan]:
    sizes = [(1, 1, 1), (7, 9, 11), (100, 10, 784), (784, 10, 100), (1000, 1000, 1000), (1, 100000, 30), (3, 5, 100000)]
    return [
        plan_dot(plain(m, n, k, lhs_dim=lhs, rhs_dim=rhs), target)
        for m, n, k in sizes
        for lhs in (0, 1)
        for rhs in (0, 1)
    ]


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_tiles_fit_into_the_registers(target: TargetInfo) -> None:
    for plan in plans(target):
        if plan.form is Form.STREAM:
            assert plan.rows * plan.streams < target.vector_registers
            continue
        vectors = plan.columns if plan.form is Form.DEPTH else -(-plan.columns // plan.lanes)
        lines = vectors if plan.rows > 1 else 1
        assert plan.rows * vectors * plan.chains + lines < target.vector_registers


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_pieces_are_whole_tiles(target: TargetInfo) -> None:
    for plan in plans(target):
        assert plan.unit_rows == plan.view.m or plan.unit_rows % plan.rows == 0
        assert plan.unit_columns == plan.view.n or plan.unit_columns % plan.columns == 0


def test_few_columns_do_not_waste_lanes() -> None:
    assert plan_dot(plain(100, 10, 784), WIDE).form is Form.DEPTH
    assert plan_dot(plain(784, 10, 100, lhs_dim=0), WIDE).form is Form.ROWS
    assert plan_dot(plain(100, 784, 10, rhs_dim=1), WIDE).form is Form.COLUMNS


def test_few_rows_stream_what_does_not_fit_into_the_nearest_caches() -> None:
    assert plan_dot(plain(4, 1000, 800), WIDE).form is Form.STREAM
    assert plan_dot(plain(5, 1000, 800), WIDE).form is Form.COLUMNS
    assert plan_dot(plain(4, 1000, 30), WIDE).form is Form.COLUMNS
    assert plan_dot(plain(4, 1000, 800, rhs_dim=1), WIDE).form is Form.DEPTH


def test_small_products_are_one_piece_without_packing() -> None:
    plan = plan_dot(plain(32, 32, 32), WIDE)
    assert plan.extent == 1
    assert not plan.packs_lhs
    assert not plan.packs_rhs


def test_large_products_are_packed_and_divided() -> None:
    plan = plan_dot(plain(1024, 1024, 1024), WIDE)
    assert not plan.packs_lhs
    assert plan.packs_rhs
    assert plan.extent >= 8
    assert plan.row_units == 1


def test_long_sums_with_few_results_are_divided() -> None:
    for m, n in ((64, 64), (4, 5), (1000, 30)):
        plan = plan_dot(plain(m, n, 100_000, lhs_dim=0), WIDE)
        assert 1 < plan.parts == -(-100_000 // plan.part_depth)
        assert plan.part_depth % plan.unit_depth == 0
    for m, n, k in ((512, 512, 512), (64, 64, 500), (512, 512, 1024)):
        assert plan_dot(plain(m, n, k, lhs_dim=0), WIDE).parts == 1


def test_the_last_tile_of_many_rows_begins_in_the_one_before() -> None:
    for m in (512, 777, 1000):
        plan = plan_dot(plain(m, 512, 512), WIDE, may_overlap=True)
        assert plan.overlaps
        assert (m - 1) % plan.unit_rows + 1 >= plan.rows
        assert plan_dot(plain(m, 512, 512), WIDE).overlaps  # where others follow, too
    assert not plan_dot(plain(504, 512, 512), WIDE, may_overlap=True).overlaps  # there is no rest
    assert not plan_dot(plain(29, 512, 512), WIDE, may_overlap=True).overlaps  # too much twice
    assert not plan_dot(plain(512, 512, 4096), WIDE, may_overlap=True).overlaps  # sums are added to others
    assert not plan_dot(plain(512, 512, 512, lhs_dim=0), WIDE, may_overlap=True).overlaps  # rows are packed


def test_rows_that_lie_far_away_meet_all_columns_of_a_piece() -> None:
    assert plan_dot(plain(600, 600, 600), WIDE).rows_outside
    assert not plan_dot(plain(64, 64, 64), WIDE).rows_outside


def test_columns_that_come_from_far_away_have_high_tiles() -> None:
    assert (plan_dot(plain(1024, 768, 128), WIDE).rows, plan_dot(plain(32, 768, 768), WIDE).rows) == (9, 8)
    assert plan_dot(plain(1024, 768, 768), WIDE).rows == 12


def test_what_is_packed_stays_in_the_second_cache() -> None:
    for m, n, k in ((512, 4096, 1024), (1024, 3072, 768), (2048, 2048, 2048)):
        plan = plan_dot(plain(m, n, k), WIDE)
        assert plan.packs_rhs
        assert plan.rows_outside
        assert plan.unit_columns * plan.unit_depth <= 1 << 18


def test_pieces_of_which_both_operands_are_packed_are_large_and_shallow() -> None:
    plan = plan_dot(plain(768, 3072, 1024, lhs_dim=0), WIDE)
    assert (plan.packs_lhs, plan.packs_rhs, plan.unit_depth) == (True, True, 256)
    assert plan.extent <= 16
    assert plan.shares_packed
    assert not plan_dot(plain(3136, 64, 576), WIDE).shares_packed


def test_pieces_that_share_columns_step_by_step_have_all_of_them() -> None:
    dot = plain(1024, 1024, 1024, lhs_dim=0)
    assert plan_dot(dot, WIDE, may_overlap=True).unit_columns == 1024
    # Where something follows the sums, each piece goes through all steps.
    assert plan_dot(dot, WIDE).unit_columns < 1024


def test_pieces_take_whole_lines_of_far_rows_that_are_neighbours() -> None:
    machine = replace(WIDE, cache_bytes=(48 << 10, 2 << 20, 32 << 20))
    plan = plan_dot(plain(256, 21, 4225, lhs_dim=0), machine)
    assert (plan.unit_rows, plan.packs_lhs) == (256, False)
    assert plan.parts > 1
    assert plan_dot(plain(256, 21, 900, lhs_dim=0), machine).unit_rows < 256


def test_few_rows_read_the_right_operand_where_it_stays_near() -> None:
    assert not plan_dot(plain(32, 1000, 1000), WIDE).packs_rhs
    assert not plan_dot(plain(32, 2048, 250), WIDE).packs_rhs
    assert plan_dot(plain(40, 500, 1000), WIDE).packs_rhs
    assert plan_dot(plain(257, 1000, 1000), WIDE).packs_rhs


def test_few_rows_read_the_right_operand_where_it_is_fetched_ahead() -> None:
    assert not plan_dot(plain(8, 2048, 250), WIDE).rhs_is_far
    plan = plan_dot(plain(8, 1024, 1024), WIDE)
    assert (plan.rhs_is_far, plan.packs_rhs) == (True, False)
    for m, n, k in ((40, 500, 4096), (300, 1024, 1024)):  # short rows, and many that meet them
        plan = plan_dot(plain(m, n, k), WIDE)
        assert (plan.rhs_is_far, plan.packs_rhs) == (False, True)


def test_tiles_have_three_vectors_where_these_stay_near_and_leave_no_rest() -> None:
    plan = plan_dot(plain(784, 48, 128), WIDE)
    assert (plan.rows, plan.columns) == (9, 48)
    for n, k in ((48, 256), (96, 128)):  # deep panels, and columns that two vectors divide
        assert plan_dot(plain(784, n, k), WIDE).columns == 32


def test_the_first_tile_of_few_rows_packs_what_is_far_away() -> None:
    for m, n, k in ((13, 1024, 512), (64, 1024, 1024), (256, 777, 2048)):
        plan = plan_dot(plain(m, n, k), WIDE)
        assert (plan.shares_panels, plan.packs_rhs, plan.rows_outside) == (True, False, False)
        assert (plan.unit_rows, plan.parts) == (m, 1)
        assert 2 * plan.columns * plan.unit_depth * 4 <= WIDE.cache_bytes[0]
        assert plan.unit_columns >= 3 * plan.columns
    few_rows, many_rows, near, short = (12, 1024, 1024), (257, 1024, 1024), (64, 1024, 60), (64, 500, 2048)
    for m, n, k in (few_rows, many_rows, near, short):
        assert not plan_dot(plain(m, n, k), WIDE).shares_panels
    for turned in ({"lhs_dim": 0}, {"rhs_dim": 1}):
        assert not plan_dot(plain(64, 1024, 1024, **turned), WIDE).shares_panels


def test_few_rows_take_whole_lines_of_what_is_far_away_few_terms_at_a_time() -> None:
    plan = plan_dot(plain(16, 480, 3072), WIDE)
    assert (plan.unit_columns, plan.unit_depth, plan.parts) == (480, 64, 8)
    plan = plan_dot(plain(64, 500, 768), WIDE)
    assert (plan.packs_rhs, plan.unit_depth) == (True, 128)
    assert plan_dot(plain(65, 500, 768), WIDE).unit_depth > 128
    assert plan_dot(plain(16, 128, 512), WIDE).unit_depth == 512  # near
    plan = plan_dot(plain(16, 768, 3072, rhs_dim=1), WIDE)
    assert (plan.form, plan.unit_rows) == (Form.DEPTH, 16)
    assert plan.columns <= 6
    plan = plan_dot(plain(4, 30, 300, rhs_dim=1), TargetInfo.of("x86_64-unknown-linux-gnu"))
    assert plan.form is Form.DEPTH
    assert plan.columns <= plan.lanes == 4  # no more than lanes, which hold the totals of a row


def test_tall_products_are_divided_into_rows_that_stay_in_the_caches() -> None:
    plan = plan_dot(plain(4096, 256, 1024), WIDE)
    assert (plan.row_units, plan.column_units) == (8, 1)


@pytest.mark.parametrize(("m", "n", "k"), [(100, 10, 1 << 20), (10, 100, 1 << 20), (1, 1 << 20, 512), (1 << 20, 3, 64)])
def test_long_products_are_packed_piece_by_piece(m: int, n: int, k: int) -> None:
    for lhs in (0, 1):
        for rhs in (0, 1):
            for target in (WIDE, NARROW):
                plan = plan_dot(plain(m, n, k, lhs_dim=lhs, rhs_dim=rhs), target)
                assert plan.packed_elements <= 1 << 19


@pytest.mark.parametrize(("m", "n", "k"), [(2000, 96, 1500), (1000, 64, 3000)])
def test_pieces_of_rows_share_what_is_packed_of_all_terms(
    m: int, n: int, k: int, check: Any, rng: np.random.Generator
) -> None:
    plan = plan_dot(plain(m, n, k), WIDE)
    assert plan.holds_rhs
    assert min(plan.row_units, plan.depth_units) > 1
    once = layout_of(replace(plan, in_steps=True), stores_result=True)
    held = layout_of(plan, stores_result=True)
    assert held.scratch_bytes - once.scratch_bytes == (plan.depth_units - 1) * held.rhs.size_bytes
    arguments = [rng.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n))]
    text = f"""HloModule m
ENTRY e {{
  a = f32[{m},{k}] parameter(0)
  b = f32[{k},{n}] parameter(1)
  ROOT d = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
    for threads in (1, 3):
        check(text, *arguments, num_threads=threads)


@pytest.mark.parametrize(("m", "n", "k"), [(2000, 960, 1500), (100, 96, 300), (64, 96, 1500)])
def test_large_operands_and_those_of_one_piece_of_rows_are_packed_term_by_term(m: int, n: int, k: int) -> None:
    plan = plan_dot(plain(m, n, k), WIDE)
    assert not plan.holds_rhs
    is_piecewise = plan.packs_rhs and plan.row_units > 1 and plan.depth_units > 1
    assert not is_piecewise or plan.unit_columns * k * 4 > 1 << 20


def test_rows_of_pixels_are_runs_of_one_product() -> None:
    image, window = "[2,9,41,16]", "window={size=3x3}, dim_labels=b01f_01io->b01f"
    view = view_of(convolution_of("f32" + image, "f32[3,3,16,7]", "f32[2,7,39,7]", window))
    assert (view.batch, view.m, view.k, view.left_rank) == ((), 546, 144, 3)
    assert view.lhs == Matrix(Walk(((2, 5904), (7, 656), (39, 16))), Walk(((3, 656), (48, 1))), ())
    for dtype, is_packed in (("f32", False), ("bf16", True)):
        result = f"{dtype}[2,7,39,70]"
        plan = plan_dot(convolution_of(dtype + image, dtype + "[3,3,16,70]", result, window), WIDE)
        assert plan.packs_lhs is is_packed


def test_the_last_tile_of_each_line_of_pixels_begins_in_the_one_before(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,7,61,16] parameter(0)
  k = f32[3,3,16,20] parameter(1)
  ROOT c = f32[2,5,59,20] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f }"""
    plan = plan_dot(parse(text).entry_computation.root, WIDE, may_overlap=True)
    assert (plan.row_run, plan.overlaps, plan.row_run % plan.rows > 0) == (59, True, True)
    arguments = [rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 7, 61, 16), (3, 3, 16, 20))]
    for threads in (1, 3):
        check(text, *arguments, num_threads=threads)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes", "piece"),
    [
        ("8,58,58,64", "8,56,56,64", "3,3,64,64", "window={size=56x56}, dim_labels=f01b_i01o->01bf", (192, 56)),
        (
            "8,117,117,3",
            "8,56,56,64",
            "7,7,3,64",
            "window={size=56x56 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf",
            (21, 56),
        ),
        (
            "2,117,117,3",
            "7,7,3,64",
            "2,56,56,64",
            "window={size=7x7 stride=2x2}, dim_labels=b01f_01io->b01f",
            (56, 147),
        ),
        ("2,9,9,128", "3,3,128,200", "2,7,7,200", "window={size=3x3}, dim_labels=b01f_01io->b01f", (7, 384)),
        ("3,22,21,65", "3,20,20,30", "3,2,65,30", "window={size=20x20}, dim_labels=f01b_i01o->01bf", (130, 100)),
        ("8,24,24,1", "8,20,20,32", "5,5,1,32", "window={size=20x20}, dim_labels=f01b_i01o->01bf", (5, 100)),
        ("16,9,9,32", "16,7,7,64", "3,3,32,64", "window={size=7x7}, dim_labels=f01b_i01o->01bf", (96, 49)),
    ],
)
def test_images_are_read_where_they_lie_run_after_run(
    lhs: str, rhs: str, result: str, attributes: str, piece: tuple[int, int]
) -> None:
    plan = plan_dot(convolution_of(f"f32[{lhs}]", f"f32[{rhs}]", f"f32[{result}]", attributes), WIDE)
    assert not plan.packs_lhs
    assert (plan.row_run, plan.unit_depth) == piece
    assert plan.unit_rows % plan.row_run == 0


def test_short_runs_are_packed() -> None:
    for features, side, depth in ((1, 2, 20), (64, 3, 6)):
        size = depth + side - 1
        dims = f"16,{size},{size},{features}", f"16,{depth},{depth},64", f"{side},{side},{features},64"
        attributes = f"window={{size={depth}x{depth}}}, dim_labels=f01b_i01o->01bf"
        assert plan_dot(convolution_of(*(f"f32[{one}]" for one in dims), attributes), WIDE).packs_lhs


def test_images_share_the_kernel_that_is_packed_for_them() -> None:
    def plan(images: int, features: int) -> DotPlan:
        dims = f"{images},256,9,9", f"{features},256,3,3", f"{images},{features},7,7"
        attributes = "window={size=3x3}, dim_labels=bf01_oi01->bf01"
        return plan_dot(convolution_of(*(f"f32[{one}]" for one in dims), attributes), WIDE)

    several = plan(8, 256)
    assert (several.packs_lhs, several.packs_rhs, several.products_inside) == (False, True, True)
    assert several.shares_packed  # pieces of a thread follow one another
    assert several.cycles < 8 * plan(1, 256).cycles
    assert not plan(1, 256).products_inside
    assert not plan(8, 32).products_inside  # one piece has all columns


def test_groups_are_products_beside_each_other() -> None:
    view = view_of(
        convolution_of(
            "f32[2,9,8,6]",
            "f32[3,3,3,14]",
            "f32[2,7,6,14]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        )
    )
    assert (view.batch, view.m, view.n, view.k, view.groups) == ((2,), 84, 7, 27, 2)
    assert (view.lhs.batch, view.rhs.batch, view.products, view.line) == ((3,), (7,), Walk(((2, 7),)), 14)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes", "seen"),
    [
        ("2,40,30,30", "33,40,3,3", "2,33,28,28", "size=3x3}, dim_labels=bf01_oi01->bf01", ((28, 30), (28, 1))),
        ("2,40,300", "33,40,9", "2,33,292", "size=9}, dim_labels=bf0_oi0->bf0", None),
        (
            "1,20,9,20,20",
            "33,20,3,3,3",
            "1,33,7,18,18",
            "size=3x3x3}, dim_labels=bf012_oi012->bf012",
            ((7, 400), (18, 20), (18, 1)),
        ),
    ],
)
def test_pixels_behind_their_features_are_read_where_they_lie(
    lhs: str, rhs: str, result: str, attributes: str, seen: tuple[tuple[int, int], ...] | None
) -> None:
    convolution = convolution_of(f"f32[{lhs}]", f"f32[{rhs}]", f"f32[{result}]", f"window={{{attributes}")
    plan = plan_dot(convolution, WIDE)
    assert plan.view.rhs.looked_up
    assert (plan.packs_lhs, plan.packs_rhs, plan.unit_depth) == (False, False, plan.view.k)
    assert plan.view.seen == (None if seen is None else Walk(seen))
    assert plan.view.n == (292 if seen is None else Walk(seen).span)
    assert plan.overlaps_columns == (seen is not None)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ("2,64,58,58", "64,64,3,3", "2,64,56,56", "size=3x3}, dim_labels=bf01_oi01->bf01"),
        ("2,3,117,117", "64,3,7,7", "2,64,56,56", "size=7x7 stride=2x2}, dim_labels=bf01_oi01->bf01"),
        ("1,20,9,16,16", "32,20,3,3,3", "1,32,7,14,14", "size=3x3x3}, dim_labels=bf012_oi012->bf012"),
    ],
)
def test_pixels_before_many_features_are_rows(lhs: str, rhs: str, result: str, attributes: str) -> None:
    convolution = convolution_of(f"f32[{lhs}]", f"f32[{rhs}]", f"f32[{result}]", f"window={{{attributes}")
    plan = plan_dot(convolution, WIDE)
    assert plan.form is Form.ROWS
    assert plan.view.lhs.looked_up
    assert (plan.rows, plan.packs_lhs, plan.packs_rhs) == (14, False, True)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ("2,30,30,3", "3,3,3,16", "2,28,28,16", "size=3x3}, dim_labels=b01f_01io->b01f"),
        ("2,35,33,1", "5,5,1,40", "2,16,15,40", "size=5x5 stride=2x2}, dim_labels=b01f_01io->b01f"),
        ("1,30,30,2", "3,3,2,8", "1,26,26,8", "size=3x3 rhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f"),
        ("2,3,30,30", "3,3,3,16", "2,28,28,16", "size=3x3}, dim_labels=bf01_01io->b01f"),
    ],
)
def test_pixels_of_few_features_are_read_where_they_lie(
    check: Any, rng: np.random.Generator, lhs: str, rhs: str, result: str, attributes: str
) -> None:
    convolution = convolution_of(f"f32[{lhs}]", f"f32[{rhs}]", f"f32[{result}]", f"window={{{attributes}")
    plan = plan_dot(convolution, WIDE)
    assert (plan.form, plan.packs_lhs, plan.view.lhs.looked_up) == (Form.COLUMNS, False, 1)
    assert plan.unit_depth == plan.view.k
    text = f"""HloModule m
ENTRY e {{
  x = f32[{lhs}] parameter(0)
  k = f32[{rhs}] parameter(1)
  ROOT c = f32[{result}] convolution(x, k), window={{{attributes} }}"""
    arguments = [rng.integers(-3, 4, tuple(map(int, dims.split(",")))).astype(np.float32) for dims in (lhs, rhs)]
    for threads in (1, 3):
        check(text, *arguments, num_threads=threads)


@pytest.mark.parametrize(("apart", "form"), [(1, Form.ROWS), (12, Form.COLUMNS)])
def test_images_behind_the_second_cache_are_fetched_once(apart: int, form: Form) -> None:
    machine, size = replace(WIDE, cache_bytes=(48 << 10, 2 << 20, 32 << 20)), 33 + 2 * apart
    dims = f"f32[1,256,{size},{size}]", "f32[256,256,3,3]", "f32[1,256,33,33]"
    attributes = f"window={{size=3x3 rhs_dilate={apart}x{apart}}}, dim_labels=bf01_oi01->bf01"
    plan = plan_dot(convolution_of(*dims, attributes), machine, may_overlap=True)
    assert plan.form is form
    assert plan.packs_rhs


@pytest.mark.parametrize(("size", "window"), [("57,57", "3x3 stride=2x2"), ("9,9", "3x3")])
def test_pixels_with_much_between_them_are_packed(size: str, window: str) -> None:
    result = "28,28" if "stride" in window else "7,7"
    attributes = f"window={{size={window}}}, dim_labels=bf01_oi01->bf01"
    plan = plan_dot(convolution_of(f"f32[2,40,{size}]", "f32[333,40,3,3]", f"f32[2,333,{result}]", attributes), WIDE)
    assert plan.packs_rhs
    assert not plan.view.rhs.looked_up
