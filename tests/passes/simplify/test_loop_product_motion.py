import pytest

from xlalite.passes.simplify.loop_product_motion import LoopProductMotion


def scanning(
    body: str,
    *,
    xs: str = "s32[5,2,3]",
    w: str = "s32[3,4]",
    result: str = "s32[2,4]",
    start: int = 0,
    limit: str = "constant(5)",
) -> str:
    """A loop over i that adds up `d`, which `body` makes of i, xs and w."""
    state = f"(s32[], {xs}, {w}, {result}, s32[])"
    return f"""HloModule m

condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] {limit}
  ROOT r = pred[] compare(i, n), direction=LT
}}

body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  xs = {xs} get-tuple-element(s), index=1
  w = {w} get-tuple-element(s), index=2
  total = {result} get-tuple-element(s), index=3
  n = s32[] get-tuple-element(s), index=4
  one = s32[] constant(1)
  zero = s32[] constant(0)
  four = s32[] constant(4)
{body}
  more = {result} add(total, d)
  next = s32[] add(i, one)
  ROOT r = {state} tuple(next, xs, w, more, n)
}}

ENTRY e {{
  xs = {xs} parameter(0)
  w = {w} parameter(1)
  total = {result} parameter(2)
  n = s32[] parameter(3)
  zero = s32[] constant({start})
  state = {state} tuple(zero, xs, w, total, n)
  loop = {state} while(state), condition=condition, body=body
  ROOT r = {result} get-tuple-element(loop), index=3
}}
"""


STEP = """  x = s32[1,2,3] dynamic-slice(xs, i, zero, zero), dynamic_slice_sizes={1,2,3}
  v = s32[2,3] reshape(x)
  d = s32[2,4] dot(v, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""


def test_product_of_each_step_is_one_product_before_the_loop(transform) -> None:
    result = transform(LoopProductMotion(), scanning(STEP))
    (dot,) = [one for one in result.module.instructions() if one.opcode == "dot"]
    assert dot.parent is result.module.entry_computation
    assert dot.shape.text() == "s32[5,2,4]"
    assert [d.reason for d in result.module.decisions] == ["one product for all slices"]


@pytest.mark.parametrize(
    "step",
    [
        STEP.replace("(xs, i,", "(xs, j,").replace("  x =", "  j = s32[] subtract(four, i)\n  x ="),
        STEP.replace("(xs, i,", "(xs, j,").replace("  x =", "  j = s32[] multiply(i, i)\n  x ="),
        STEP.replace("dot(v, w), lhs_contracting_dims={1}", "dot(w, v), lhs_contracting_dims={0}")
        .replace("rhs_contracting_dims={0}", "rhs_contracting_dims={1}")
        .replace("d = s32[2,4]", "t = s32[4,2]")
        + "  d = s32[2,4] transpose(t), dimensions={1,0}",
    ],
    ids=["reversed", "beyond the end", "on the right"],
)
def test_any_index_and_either_side(step: str, transform) -> None:
    assert transform(LoopProductMotion(), scanning(step)).changed


@pytest.mark.parametrize(
    ("xs", "cut", "sizes", "dot"),
    [
        ("s32[2,5,3]", "zero, i, zero", "2,1,3", "s32[2,3] reshape(x)\n  d = s32[2,4] dot(v, w)"),
        ("s32[2,3,5]", "zero, zero, i", "2,3,1", "s32[2,3] reshape(x)\n  d = s32[2,4] dot(v, w)"),
        ("s32[10,3]", "j, zero", "2,3", "s32[2,3] copy(x)\n  d = s32[2,4] dot(x, w)"),
        ("s32[4,3]", "j, zero", "2,3", "s32[2,3] copy(x)\n  d = s32[2,4] dot(x, w)"),
    ],
    ids=["in the middle", "minor", "several rows", "overlapping rows"],
)
def test_any_dimension_is_sliced(xs: str, cut: str, sizes: str, dot: str, transform) -> None:
    step = f"""  j = s32[] multiply(i, {"one" if xs == "s32[4,3]" else "four"})
  x = s32[{sizes}] dynamic-slice(xs, {cut}), dynamic_slice_sizes={{{sizes}}}
  v = {dot}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
    assert transform(LoopProductMotion(), scanning(step, xs=xs)).changed


def test_batches_keep_their_place(transform) -> None:
    step = """  x = s32[2,3,1,3] dynamic-slice(xs, zero, zero, i, zero), dynamic_slice_sizes={2,3,1,3}
  v = s32[2,3,3] reshape(x)
  d = s32[2,3,4] dot(v, w), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
"""
    text = scanning(step, xs="s32[2,3,5,3]", w="s32[2,3,4]", result="s32[2,3,4]")
    assert transform(LoopProductMotion(), text).changed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (scanning(STEP, limit="get-tuple-element(s), index=4"), "how often the loop runs is not known"),
        (scanning(STEP, start=7), "the loop reads only some of the slices"),
        (scanning(STEP, start=2), "the loop reads only some of the slices"),
    ],
    ids=["unknown", "never", "some"],
)
def test_loops_that_may_read_little_keep_their_products(text: str, reason: str, transform) -> None:
    result = transform(LoopProductMotion(), text)
    assert not result.changed
    assert {d.reason for d in result.module.decisions} == {reason}


def test_products_of_many_rows_and_large_results_stay(transform) -> None:
    for limits, reason in (
        (LoopProductMotion(max_rows=1), "each product has rows enough to be fast by itself"),
        (LoopProductMotion(max_bytes=159), "the products of all slices would take too much memory"),
    ):
        result = transform(limits, scanning(STEP))
        assert not result.changed
        assert {d.reason for d in result.module.decisions} == {reason}


@pytest.mark.parametrize(
    "step",
    [
        STEP.replace("dot(v, w)", "dot(v, u)").replace("  x =", "  u = s32[3,4] broadcast(i), dimensions={}\n  x ="),
        STEP.replace("dynamic-slice(xs", "dynamic-slice(ys").replace("  x =", "  ys = s32[5,2,3] negate(xs)\n  x ="),
        STEP.replace("(xs, i, zero, zero)", "(xs, i, zero, zero)").replace(
            "  v = s32[2,3] reshape(x)", "  t = s32[1,3,2] transpose(x), dimensions={0,2,1}\n  v = s32[2,3] reshape(t)"
        ),
    ],
    ids=["other operand changes", "slice of what is computed", "moved in between"],
)
def test_other_products_stay_in_the_loop(step: str, transform) -> None:
    assert not transform(LoopProductMotion(), scanning(step)).changed


def test_products_of_a_branch_stay_there(transform) -> None:
    branch = f"""branch {{
  p = (s32[], s32[5,2,3], s32[3,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  xs = s32[5,2,3] get-tuple-element(p), index=1
  w = s32[3,4] get-tuple-element(p), index=2
  zero = s32[] constant(0)
{STEP.replace("  d =", "  ROOT d =")}}}

body {{"""
    step = """  p = (s32[], s32[5,2,3], s32[3,4]) tuple(i, xs, w)
  d = s32[2,4] conditional(i, p, p), branch_computations={branch, branch}
"""
    assert not transform(LoopProductMotion(), scanning(step).replace("body {", branch, 1)).changed


def test_inner_loops_hand_theirs_to_outer_ones(transform) -> None:
    text = scanning(STEP)
    state = "(s32[], s32[5,2,3], s32[3,4], s32[2,4], s32[])"
    outer = f"""outer {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  xs = s32[5,2,3] get-tuple-element(s), index=1
  w = s32[3,4] get-tuple-element(s), index=2
  total = s32[2,4] get-tuple-element(s), index=3
  n = s32[] get-tuple-element(s), index=4
  zero = s32[] constant(0)
  one = s32[] constant(1)
  state = {state} tuple(zero, xs, w, total, n)
  loop = {state} while(state), condition=condition, body=body
  more = s32[2,4] get-tuple-element(loop), index=3
  next = s32[] add(i, one)
  ROOT r = {state} tuple(next, xs, w, more, n)
}}

ENTRY e {{"""
    text = text.replace("ENTRY e {", outer)
    head, _, tail = text.rpartition("body=body")
    result = transform(LoopProductMotion(), f"{head}body=outer{tail}")
    assert result.changed
    (dot,) = [one for one in result.module.instructions() if one.opcode == "dot"]
    assert dot.parent is not None
    assert dot.parent.name.startswith("outer")
