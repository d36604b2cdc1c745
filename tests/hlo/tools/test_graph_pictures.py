"""Pictures of programs: what is in them, and that nothing stands on anything else."""

import itertools
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import numpy as np
import pytest
from large_modules import blocks, chain, mixed

from xlalite.hlo import parse
from xlalite.hlo.tools.graph.diagram import KINDS, Node, diagram_of
from xlalite.hlo.tools.graph.folding import LARGEST, folded
from xlalite.hlo.tools.graph.placement import Extent, Placement, place, settle
from xlalite.hlo.tools.graph.svg import graph_script, graph_style, graph_svg

SVG = "{http://www.w3.org/2000/svg}"
TEXT = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
fused { p = f32[4,8] parameter(0)
  k = f32[] constant(0.5)
  b = f32[4,8] broadcast(k), dimensions={}
  ROOT m = f32[4,8] multiply(p, b) }
condition { s = f32[4,8] parameter(0)
  ROOT c = pred[] constant(false) }
body { s = f32[4,8] parameter(0)
  ROOT n = f32[4,8] negate(s) }
ENTRY main {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  f = f32[4,8] fusion(x), kind=kLoop, calls=fused
  w = f32[4,8] while(f), condition=condition, body=body
  late = f32[4,8] exponential(x), control-predecessors={w}
  r = f32[4] reduce(w, zero), dimensions={1}, to_apply=sum
  ROOT t = (f32[4], f32[4,8]) tuple(r, late)
}"""


def groups(svg: str) -> list[ElementTree.Element]:
    """Every group with a class."""
    return [one for one in ElementTree.fromstring(svg).iter(f"{SVG}g") if one.get("class")]


def names(svg: str) -> list[str]:
    return [one.attrib["data-name"] for one in groups(svg) if "data-name" in one.attrib]


def words_of(svg: str, name: str) -> list[str]:
    (node,) = (one for one in groups(svg) if one.get("data-name") == name)
    return [text.text or "" for text in node.findall(f"{SVG}text")]


def test_every_instruction_is_a_node_but_scalar_constants_which_stand_at_their_users():
    svg = graph_svg(parse(TEXT))
    assert sorted(names(svg)) == sorted(["x", "f", "w", "late", "r", "t", "p", "b", "m", "s", "c", "s", "n"])
    assert "broadcast(0.5)" in words_of(svg, "b")
    assert {"reduce(·, 0)", "dimensions={1}, to_apply=add"} <= set(words_of(svg, "r"))
    assert "f32[4]" in words_of(svg, "r"), "its edge says what it hands on"
    assert "data-computation" in svg
    for node in groups(svg):
        assert {"d", "i", "in", "n"} & set(node.attrib["class"].split())


def test_edges_follow_operands_and_control_dependencies():
    diagram = diagram_of(parse(TEXT).entry_computation)
    numbers = {node.name: number for number, node in enumerate(diagram.nodes)}
    found = {(edge.source, edge.target, edge.is_control) for edge in diagram.edges}
    pairs = ["x-f", "f-w", "x-late", "w-r", "r-t", "late-t"]
    expected = {(numbers[a], numbers[b], False) for a, _, b in (pair.partition("-") for pair in pairs)}
    assert found == expected | {(numbers["w"], numbers["late"], True)}


def test_every_kind_has_a_colour():
    assert all(f".{kind} > rect" in graph_style() for kind in KINDS if kind != "other")


def test_closed_boxes_hide_their_contents_for_the_script_or_leave_them_out():
    module = parse(TEXT)
    assert "m" not in names(graph_svg(module, opened=False))
    foldable = graph_svg(module, opened=False, foldable=True)
    assert "m" in names(foldable)
    assert 'display="none"' in foldable
    assert "data-rows" in foldable
    assert "data-rows" not in graph_svg(module)
    assert "hloGraph" in graph_script()


def test_a_part_of_a_computation_says_where_it_was_cut():
    entry = parse(TEXT).entry_computation
    svg = graph_svg(entry, {entry.find("f"), entry.find("w")})
    assert names(svg)[0] == "f"
    cut = [one.attrib["data-name"] for one in groups(svg) if "cut" in one.attrib["class"].split()]
    assert cut == ["f", "w"]


def test_text_from_programs_is_escaped():
    module = parse(
        TEXT.replace("late = f32[4,8] exponential(x)", 'late = f32[4,8] exponential(x), metadata={op_name="<&"}')
    )
    assert any("<&" in (one.text or "") for one in ElementTree.fromstring(graph_svg(module)).iter(f"{SVG}title"))


def test_a_computation_with_two_callers_is_drawn_once():
    calls = "\n".join(f"c{i} = f32[4,8] call({f'c{i - 1}' if i else 'x'}), to_apply=body" for i in range(3))
    text = TEXT.replace("ROOT t =", f"{calls}\nROOT t =").replace("tuple(r, late)", "tuple(r, c2)")
    svg = graph_svg(parse(text))
    assert names(svg).count("n") == 1
    assert "to_apply=body, drawn in w" in " ".join(words_of(svg, "c0"))


def boxes_of(extents: list[Extent], placement: Placement) -> Iterator[tuple[float, float, float, float]]:
    for item, row in enumerate(placement.row_of()[: len(extents)]):
        one, x = extents[item], placement.x[item]
        yield x - one.left, x + one.right, placement.tops[row], placement.tops[row] + one.height


@pytest.mark.parametrize("seed", range(6))
def test_nodes_do_not_overlap_and_edges_lead_down(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([0, 1, 2, 30, 90])
    extents = [
        Extent(w := chance.uniform(5, 60), w + chance.uniform(0, 30), chance.uniform(10, 90)) for _ in range(count)
    ]
    edges = sorted({tuple(sorted(chance.sample(range(count), 2))) for _ in range(2 * count)} if count > 1 else [])
    placement = place(extents, edges, 40)
    boxes = list(boxes_of(extents, placement))
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
        assert b <= e + 1e-6 or f <= a + 1e-6 or d <= g or h <= c
    rows = placement.row_of()
    for (source, target), route in zip(edges, placement.routes, strict=True):
        assert (route[0], route[-1]) == (source, target)
        assert [rows[item] for item in route] == list(range(rows[source], rows[target] + 1))
    assert all(left >= -1e-6 and right <= placement.width + 1e-6 for left, right, _, _ in boxes)


def test_what_prepares_a_value_stands_where_it_is_used() -> None:
    # 0 -> 1 -> 2 -> 3 -> 4 is the long way; 5 -> 6 and 0 -> 7 only prepare what 8 reads besides.
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 8), (5, 6), (6, 8), (0, 7), (7, 8)]
    rows = place([Extent(9.0, 9.0, 9.0)] * 9, edges, 40).row_of()
    assert rows[:9] == [0, 1, 2, 3, 4, 3, 4, 4, 5]


def test_places_are_the_nearest_that_keep_the_spaces():
    found = settle([0.0, 0.0, 10.0, 9.0], [1.0, 3.0, 1.0, 1.0], [4.0, 1.0, 2.0])
    assert np.allclose(found, [-3.0, 1.0, 8.5, 10.5])


@pytest.mark.parametrize("form", [chain, blocks, mixed])
@pytest.mark.parametrize("count", [400, 10_000])
def test_large_programs_are_folded_without_losing_an_instruction(form, count: int) -> None:
    entry = parse(form(count)).entry_computation
    diagram = diagram_of(entry, fold=folded)
    assert len(diagram.nodes) <= LARGEST
    drawn = [node for node in diagram.all_nodes() if node.kind not in ("region", "port")]
    scalars = sum(one.opcode == "constant" for one in entry.instructions)
    assert len(drawn) == len(entry) - scalars
    assert all(edge.source < edge.target for edge in diagram.edges)
    largest = max((inside for node in diagram.nodes for inside in node.insides), key=lambda one: len(one.nodes))
    assert len(largest.nodes) <= LARGEST


def test_regions_are_named_after_the_scopes_that_they_hold() -> None:
    def regions(per_layer: int, inner: str) -> list[Node]:
        lines = [
            f'x{i} = f32[4] tanh(x{i - 1}), metadata={{op_name="jit(f)/layer_{i // per_layer}/{inner}tanh"}}'
            for i in range(1, 300)
        ]
        text = "\n".join(["HloModule m", "ENTRY e {", "x0 = f32[4] parameter(0)", *lines, "}"])
        return diagram_of(parse(text).entry_computation, fold=folded).nodes

    assert regions(30, "")[0].lines[:2] == ("layer_0", "17 instructions")
    assert {name for node in regions(30, "") for name in node.lines[0].split(", ")} == {
        f"layer_{number}" for number in range(10)
    }
    assert regions(30, "mlp/")[0].lines[0] == "layer_0/mlp"
    assert regions(2, "")[0].lines[0] == "layer_0 … layer_8"
    plain = diagram_of(parse(chain(400)).entry_computation, fold=folded)
    assert plain.nodes[0].lines[0].endswith(" instructions")
