"""The rules for gathers and scatters keep every bit, whatever the attributes."""

import random
from typing import Any

import pytest

from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier

COMBINERS = {
    "add": "ROOT r = f32[] add(a, b)",
    "assign": "ROOT r = f32[] negate(b)",
    "keep": "ROOT r = f32[] negate(a)",
    "in order": "ROOT r = f32[] subtract(b, a)",
}


def sizes(dims: list[int]) -> str:
    return ",".join(map(str, dims))


def program(chance: random.Random, combine: str | None) -> str:
    """A scatter with a combiner, or a gather, at positions of which some are those of the indices themselves."""
    operand = [chance.choice((1, 2, 3, 4)) for _ in range(chance.randint(1, 3))]
    roles = [chance.choice(("counted", "batching", "given", "given", "whole")) for _ in operand]
    rows = [d for d, role in enumerate(roles) if role in ("counted", "batching")]
    batch = [operand[d] for d in rows] + ([chance.choice((1, 1, 2))] if chance.random() < 0.3 else [])
    vector = len(batch)
    addressed = [d for d, role in enumerate(roles) if role in ("counted", "given")]
    chance.shuffle(addressed)
    partly = [d for d, role in enumerate(roles) if role == "given" and chance.random() < 0.3]
    window = [
        size if role == "whole" or d in partly else 1 for d, (size, role) in enumerate(zip(operand, roles, strict=True))
    ]
    kept = [d for d, role in enumerate(roles) if role == "whole" or d in partly]
    batching = [d for d in rows if roles[d] == "batching"]
    collapsed = [d for d in range(len(operand)) if d not in kept and d not in batching]
    offsets = list(range(len(batch), len(batch) + len(kept)))
    updates = [*batch, *(window[d] for d in kept)]
    lines, parameters = ["n = s32[] constant(5)"], 0
    for d in addressed:
        piece = sizes([*batch, 1])
        if roles[d] == "counted":
            lines.append(f"c{d} = s32[{piece}] iota(), iota_dimension={rows.index(d)}")
            continue
        value = chance.choice(("given", "given", "constant", "clamped"))
        if value == "constant":
            lines.append(f"k{d} = s32[] constant({chance.randint(-1, operand[d] - window[d] + 1)})")
            lines.append(f"c{d} = s32[{piece}] broadcast(k{d}), dimensions={{}}")
            continue
        lines += [
            f"p{d} = s32[{piece}] parameter({parameters})",
            f"n{d} = s32[{piece}] broadcast(n), dimensions={{}}",
            f"{'c' if value == 'given' else 'r'}{d} = s32[{piece}] remainder(p{d}, n{d})",
        ]
        if value == "clamped":
            lines += [
                f"l{d} = s32[] constant(0)",
                f"h{d} = s32[] constant({operand[d] - window[d]})",
                f"c{d} = s32[{piece}] clamp(l{d}, r{d}, h{d})",
            ]
        parameters += 1
    if not addressed:
        return ""
    components = ", ".join(f"c{d}" for d in addressed)
    lines.append(f"i = s32[{sizes([*batch, len(addressed)])}] concatenate({components}), dimensions={{{vector}}}")
    whole = f"f32[{sizes(operand)}]"
    if combine is None or chance.random() < 0.4:
        lines.append(f"x = {whole} parameter({parameters})")
        parameters += 1
    else:
        lines += [f"s = f32[] parameter({parameters})", f"x = {whole} broadcast(s), dimensions={{}}"]
        parameters += 1
    pairs = f"{{{sizes(batching)}}}", f"{{{sizes([rows.index(d) for d in batching])}}}", f"index_vector_dim={vector}"
    if combine is None:
        attributes = (
            f"offset_dims={{{sizes(offsets)}}}, start_index_map={{{sizes(addressed)}}}, "
            f"collapsed_slice_dims={{{sizes(collapsed)}}}, operand_batching_dims={pairs[0]}, "
            f"start_indices_batching_dims={pairs[1]}, {pairs[2]}, slice_sizes={{{sizes(window)}}}"
        )
        lines.append(f"ROOT g = f32[{sizes(updates)}] gather(x, i), {attributes}")
    else:
        attributes = (
            f"update_window_dims={{{sizes(offsets)}}}, scatter_dims_to_operand_dims={{{sizes(addressed)}}}, "
            f"inserted_window_dims={{{sizes(collapsed)}}}, input_batching_dims={pairs[0]}, "
            f"scatter_indices_batching_dims={pairs[1]}, {pairs[2]}"
        )
        lines.append(f"u = f32[{sizes(updates)}] parameter({parameters})")
        lines.append(f"ROOT g = {whole} scatter(x, i, u), to_apply=f, {attributes}")
    combiner = (
        f"f {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  {COMBINERS[combine]} }}\n" if combine else ""
    )
    return f"HloModule m\n{combiner}ENTRY e {{\n  " + "\n  ".join(lines) + " }"


@pytest.mark.parametrize("combine", [None, *COMBINERS])
def test_bits_stay_and_every_rule_fires(transform: Any, combine: str | None) -> None:
    chance = random.Random(combine or "gather")
    fired = set[str]()
    for _ in range(150):
        text = program(chance, combine)
        if text:
            result = transform(AlgebraicSimplifier(), text)
            fired |= {d.subject[0] for d in result.module.decisions if d.verdict == "applied"}
    assert fired >= (
        {"gather_of_one_window", "gather_at_own_position"}
        if combine is None
        else {"scatter_of_one_window", "scatter_at_own_position", "scatter_into_broadcast"}
    )


@pytest.mark.parametrize("combine", [None, *COMBINERS])
def test_a_dimension_of_the_indices_counts_through_one_of_the_operand_only(transform: Any, combine: str | None) -> None:
    lines = "x = f32[3,3,3,2] parameter(0)\n  n = s32[3,1] iota(), iota_dimension=0"
    indices = "i = s32[3,3] concatenate(n, n, n), dimensions={1}"
    if combine is None:
        combiner, attributes = "", "offset_dims={1}, start_index_map={0,1,2}, collapsed_slice_dims={0,1,2}"
        root = f"ROOT g = f32[3,2] gather(x, i), {attributes}, index_vector_dim=1, slice_sizes={{1,1,1,2}}"
    else:
        combiner = f"f {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  {COMBINERS[combine]} }}\n"
        attributes = "update_window_dims={1}, scatter_dims_to_operand_dims={0,1,2}, inserted_window_dims={0,1,2}"
        scattered = f"scatter(x, i, u), to_apply=f, {attributes}, index_vector_dim=1"
        root = f"u = f32[3,2] parameter(1)\n  ROOT g = f32[3,3,3,2] {scattered}"
    result = transform(AlgebraicSimplifier(), f"HloModule m\n{combiner}ENTRY e {{\n  {lines}\n  {indices}\n  {root} }}")
    assert result.module.to_string().count("batching_dims={0}") == 2


@pytest.mark.parametrize("back", ["2,3,0,1", "2,0,3,1", "2,0,1,3", "3,2,0,1", "2,3,1,0", "0,1,2,3"])
@pytest.mark.parametrize("places", ["2,3,0,1", "2,3,1,0", "3,2,0,1", "0,1,2,3"])
def test_planes_are_taken_from_where_they_lie(transform: Any, places: str, back: str) -> None:
    sizes = (2, 3, 5, 7)
    front, order = (tuple(map(int, one.split(","))) for one in (places, back))
    turned = [sizes[d] for d in front]
    taken = [4, 6, *turned[2:]]
    text = f"""HloModule m
ENTRY e {{
  x = f32[2,3,5,7] parameter(0)
  i = s32[4,6,2] parameter(1)
  t = f32[{",".join(map(str, turned))}] transpose(x), dimensions={{{places}}}
  g = f32[{",".join(map(str, taken))}] gather(t, i), offset_dims={{2,3}}, collapsed_slice_dims={{0,1}},
    start_index_map={{0,1}}, index_vector_dim=2, slice_sizes={{1,1,{turned[2]},{turned[3]}}}
  ROOT r = f32[{",".join(str(taken[d]) for d in order)}] transpose(g), dimensions={{{back}}} }}"""
    result = transform(AlgebraicSimplifier(), text)
    keeps_orders = order.index(0) < order.index(1) and order.index(2) < order.index(3)
    is_turned = back != "0,1,2,3" or places != "0,1,2,3"
    is_direct = {front[0], front[1]} == {2, 3} and front[2] < front[3] and keeps_orders and order[-1] in (0, 1)
    assert ("transpose" in result.module.to_string()) == (is_turned and not is_direct)
