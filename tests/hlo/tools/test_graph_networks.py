"""Programs as graphs of networkx: what is near, what lies between, and pages and texts of such parts."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import networkx
import pytest
from large_modules import blocks

from xlalite.hlo import XlaliteError, parse
from xlalite.hlo.tools.graph.dot import graph_dot
from xlalite.hlo.tools.graph.network import between, find_instruction, neighbourhood
from xlalite.hlo.tools.graph.page import graph_page

TEXT = """HloModule m
fused { p = f32[4] parameter(0)
  ROOT n = f32[4] multiply(p, p) }
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  f = f32[4] fusion(x), kind=kLoop, calls=fused
  a = f32[4] add(f, y)
  b = f32[4] negate(a)
  c = f32[4] cosine(a)
  side = f32[4] sine(y), control-predecessors={f}
  d = f32[4] add(b, c)
  ROOT t = (f32[4], f32[4]) tuple(d, side)
}"""


def names(instructions: object) -> set[str]:
    return {one.name for one in instructions}


def test_a_module_is_a_network_of_all_its_instructions():
    module = parse(TEXT)
    network = module.to_networkx()
    assert isinstance(network, networkx.DiGraph)
    assert len(network) == 11
    assert network.nodes["fused/n"] | {"instruction": None} == {
        "opcode": "multiply", "shape": "f32[4]", "size_bytes": 16, "computation": "fused", "is_root": True,
        "instruction": None,
    }  # fmt: skip
    assert network.edges["fused/p", "fused/n"] == {"positions": (0, 1)}
    assert network.edges["f", "side"] == {"positions": ()}
    assert network.edges["fused/n", "f"] == {"positions": (), "calls": True}
    assert networkx.is_directed_acyclic_graph(network)
    assert networkx.shortest_path_length(network, "x", "d") == 4


def test_a_computation_is_a_network_by_names():
    network = parse(TEXT).find("fused").to_networkx()
    assert [*network] == ["p", "n"]


def test_a_neighbourhood_goes_both_ways():
    module = parse(TEXT)
    assert names(neighbourhood(find_instruction(module, "%a"), 1)) == {"f", "y", "a", "b", "c"}


def test_what_lies_between_two_instructions():
    module = parse(TEXT)
    start, end = find_instruction(module, "f"), find_instruction(module, "d")
    assert names(between(start, end)) == {"f", "a", "b", "c", "d"}
    assert names(between(start, start)) == {"f"}
    with pytest.raises(XlaliteError, match="no path leads from d to f; one leads from f to d"):
        between(end, start)
    with pytest.raises(XlaliteError, match=r"no path from fused/n to d: they are in different computations"):
        between(find_instruction(module, "n"), end)


def test_names_that_are_wrong_or_not_enough():
    with pytest.raises(XlaliteError, match="module m has no instruction 'sidde'; did you mean 'side'"):
        find_instruction(parse(TEXT), "sidde")
    twice = parse(TEXT.replace("ENTRY", "other { p = f32[4] parameter(0) }\nENTRY"))
    with pytest.raises(XlaliteError, match=r"has 2 instructions 'p': .*/p, .*/p; say which"):
        find_instruction(twice, "p")
    assert find_instruction(twice, "other/p").parent.name == "other"


def test_dot_has_clusters_labels_and_widths():
    text = graph_dot(parse(TEXT))
    assert text.startswith('digraph "main" {\n')
    assert text.count("subgraph cluster_") == 1
    assert text.count("->") == 12
    assert 'label="f32[4]", penwidth=1.0' in text
    assert text.count("{") == text.count("}")
    assert text.count("style=dashed") == 1


def test_a_page_is_one_file_with_the_words_of_every_instruction():
    page = graph_page(parse(TEXT.replace("sine(y)", 'sine(y), metadata={op_name="</script><b>"}')), selected="a")
    assert "</script><b>" not in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    (data,) = re.findall(r"const DETAILS = (.*), START", page)
    details = json.loads(data)
    assert details["fused"]["n"] == ["%n = f32[4]{0} multiply(%p, %p)", ["p", "p"]]
    assert len(details["main"]) == 9


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

DRIVER = """<script>
const at = (name) => svg().querySelector(`[data-name="${name}"]`).getBoundingClientRect();
const svg = () => document.querySelector("svg");
const answer = {};
const before = at("d").top;
document.querySelector('[data-name="f"] > text').dispatchEvent(new MouseEvent("click", { bubbles: true }));
answer.moved = at("d").top - before;
answer.inside = at("n").bottom < at("f").bottom && at("n").top > at("f").top;
answer.title = document.querySelector("#details h2").textContent;
answer.hash = location.hash;
answer.hot = svg().querySelectorAll(".e.hot").length;
const search = document.getElementById("search");
search.value = "cosine";
search.dispatchEvent(new Event("input"));
answer.found = [...svg().querySelectorAll(".found")].map((one) => one.dataset.name);
document.getElementById("close").click();
answer.closed = at("d").top - before;
document.body.innerHTML = `<pre>${JSON.stringify(answer)}</pre>`;
</script>"""


def in_browser(page: Path) -> str:
    """The page's contents after its scripts have run."""
    assert CHROMIUM is not None, "the mark says so"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}"]
    ran = subprocess.run([CHROMIUM, *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    return ran.stdout


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_boxes_open_search_finds_and_clicks_explain_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    closing = '<script>document.getElementById("close").click();</script>'
    path.write_text(graph_page(parse(TEXT)).replace("</body>", closing + DRIVER))
    answer = json.loads(re.search(r"<pre>(.*)</pre>", in_browser(path))[1].replace("&gt;", ">"))
    assert answer["moved"] > 50
    assert answer["inside"]
    assert answer["title"] == "f"
    assert answer["hash"] == "#main/f"
    assert answer["hot"] == 3
    assert answer["found"] == ["c"]
    assert answer["closed"] == 0


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_a_link_opens_regions_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    driver = '<script>document.body.innerHTML = `<pre>${document.querySelector(".n.hot").dataset.name}</pre>`</script>'
    page = graph_page(parse(blocks(2000)), selected="r300").replace("</body>", driver)
    path.write_text(page)
    assert "<pre>r300</pre>" in in_browser(path)
