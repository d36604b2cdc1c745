"""The page of a dump in a browser: what a click, a permalink, a search and the switches show; and its differences."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from large_modules import blocks

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.dump.differences import difference
from xlalite.passes.dump.index import write_index

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

TEXT = """HloModule m
step { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[64,64] get-tuple-element(s), index=1
  w = f32[64,64] dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(w), metadata={op_name="squash" source_file="model.py" source_line=7}
  ROOT r = (s32[], f32[64,64]) tuple(next, t) }
more { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT }
ENTRY e { x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[64,64]) tuple(zero, x)
  loop = (s32[], f32[64,64]) while(start), condition=more, body=step
  y = f32[64,64] get-tuple-element(loop), index=1
  t = f32[64,64] exponential(y), metadata={op_name="growth" source_file="model.py" source_line=9}
  n = f32[64,64] negate(t)
  ROOT both = (f32[64,64], f32[64,64]) tuple(t, n) }
"""

DRIVER = """<script>
setTimeout(() => {
  const answer = {}, pre = (stage) => document.querySelector(`pre[data-stage="${stage}"]`);
  const about = document.getElementById("about");
  setTimeout(() => {
    STEPS
    document.body.innerHTML = `<pre>${JSON.stringify(answer)}</pre>`;
  }, 200);
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
}, 100);
</script>"""


def answers(directory: Path, steps: str, fragment: str = "", text: str = TEXT) -> Any:
    """What the steps answer on the page of a program."""
    debug = DebugOptions(dump_to=str(directory), dump_hlo_pass_re=".*")
    get_backend("cpu").compile(parse(text), CompileOptions(debug=debug, use_cache=False))
    write_index(directory)
    page = directory / "driven.html"
    driver = DRIVER.replace("STEPS", steps)
    page.write_text((directory / "index.html").read_text().replace("</body>", driver + "</body>"))
    assert CHROMIUM is not None, "the mark says so"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory / 'profile'}"]
    options += ["--no-first-run", "--disable-background-networking", "--virtual-time-budget=4000", "--dump-dom"]
    ran = subprocess.run([CHROMIUM, *options, page.as_uri() + fragment], capture_output=True, text=True, timeout=120)
    found = re.search(r"<body[^>]*><pre>(.*)</pre>", ran.stdout, re.DOTALL)
    assert found is not None, ran.stdout[-2000:]
    return json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_a_click_in_the_text_shows_what_became_of_an_instruction(tmp_path: Path) -> None:
    given = answers(
        tmp_path,
        """
    const line = pre("hlo-before-optimizations").querySelector('[data-at="step/t"]');
    line.click();
    answer.title = about.querySelector("h2").textContent;
    answer.text = about.textContent;
    answer.hash = decodeURIComponent(location.hash);
    answer.hot = [...document.querySelectorAll(".l.hot")].map((one) => one.dataset.at);
    answer.kin = [...document.querySelectorAll(".l.kin")].map((one) => one.textContent);
    answer.lit = new Set([...document.querySelectorAll(".l.lit")].map((one) => one.parentNode.dataset.stage)).size;
    const colour = (one) => one.style.getPropertyValue("--k");
    const lit = [...document.querySelectorAll(".l.lit[data-kernel]")];
    answer.alike = colour(line) && lit.every((one) => colour(one) === colour(line));
    const nodes = [...document.querySelectorAll(".hlo-graph .hot[data-name]")];
    answer.picture = nodes.map((one) => [one.dataset.computation, one.dataset.name]);
    answer.meta = getComputedStyle(line.querySelector(".meta")).display;
    """,
    )
    assert given["title"] == "t"
    assert "tanh(%w)" in given["text"]
    assert "model.py:7, squash" in given["text"]
    assert given["hash"].endswith("/hlo-before-optimizations/step/t")
    assert given["hot"] == ["step/t"]
    assert len(given["kin"]) == 1
    assert "tanh(" in given["kin"][0]
    assert given["lit"] >= 3  # LLVM before and after, assembly
    assert given["alike"]
    assert given["picture"] == [["step", "t"]]
    assert given["meta"] == "none"


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_clicks_in_pictures_and_code_lead_to_the_same_place(tmp_path: Path) -> None:
    given = answers(
        tmp_path,
        """
    const nodes = [...document.querySelectorAll('.hlo-graph .n[data-name="t"][data-computation="e"]')];
    nodes[0].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    answer.text = about.textContent;
    answer.hot = [...document.querySelectorAll(".l.hot")].map((one) => one.dataset.at);
    const first = document.querySelector('pre[data-stage="asm"] .l[data-kernel]');
    answer.kernel = first.dataset.kernel;
    first.click();
    answer.chosen = about.querySelector("h2").textContent;
    answer.chip = about.querySelector(".chip").textContent;
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    answer.hidden = about.hidden;
    """,
    )
    assert "exponential(%y)" in given["text"]
    assert "model.py:9, growth" in given["text"]
    assert given["hot"] == ["e/t"]
    assert given["chosen"] == given["kernel"]
    assert given["chip"].startswith(f"{given['kernel']}: ")
    assert given["hidden"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_permalinks_lead_to_instructions_and_searches_to_lines(tmp_path: Path) -> None:
    given = answers(
        tmp_path,
        """
    answer.title = about.querySelector("h2")?.textContent;
    answer.text = about.textContent;
    answer.rows = document.querySelectorAll("tr[id]").length;
    const search = document.querySelector("input[type=search]");
    search.value = "exponential(";
    search.dispatchEvent(new Event("input"));
    setTimeout(() => {
      answer.hits = [...document.querySelectorAll("#hits a")].map((one) => one.textContent);
      document.querySelector("#hits a").click();
      answer.found = about.querySelector("h2").textContent;
      const [, sides, metadata] = document.querySelectorAll(".tools input[type=checkbox]");
      sides.click();
      metadata.click();
      answer.sides = document.querySelectorAll("tr.diff table.sides tr").length;
      answer.meta = getComputedStyle(document.querySelector(".meta")).display;
      const diff = [...document.querySelectorAll("tr.diff pre")].find((one) => one.querySelector(".meta"));
      answer.tail = diff.querySelector(".meta").textContent;
      answer.shown = getComputedStyle(diff.querySelector(".meta")).display;
      document.body.innerHTML = `<pre>${JSON.stringify(answer)}</pre>`;
    }, 400);
    return;
    """,
        "#module_0000.m/hlo-before-optimizations/e/n",
    )
    assert given["title"] == "n"
    assert "negate(%t)" in given["text"]
    assert given["rows"] > 5
    assert "hlo-before-optimizations" in given["hits"][0]
    assert given["found"] == "t"
    assert given["sides"] > 0
    assert given["meta"] == given["shown"] == "inline"
    assert given["tail"].startswith(", metadata={op_name=")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_pictures_of_large_programs_open_at_what_was_chosen(tmp_path: Path) -> None:
    given = answers(
        tmp_path,
        """
    setTimeout(() => {
      const picture = document.querySelector(".picture"), frame = picture.querySelector(".scroll");
      const node = picture.querySelector(".n.hot"), box = node.parentNode.closest(".box");
      answer.name = node.dataset.name;
      answer.region = [box.classList.contains("region"), box.classList.contains("open")];
      const here = frame.getBoundingClientRect(), there = node.getBoundingClientRect();
      answer.inside = there.top >= here.top && there.bottom <= here.bottom;
      document.body.innerHTML = `<pre>${JSON.stringify(answer)}</pre>`;
    }, 600);
    return;
    """,
        "#module_0000.m/hlo-before-optimizations/e/r100",
        blocks(600),
    )
    assert given == {"name": "r100", "region": [True, True], "inside": True}


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open pages with")
def test_broad_pictures_begin_where_something_is(tmp_path: Path) -> None:
    lines = [f"x{i} = f32[4] parameter({i})" for i in range(60)]
    names = ", ".join(f"x{i}" for i in range(60))
    given = answers(
        tmp_path,
        """
    setTimeout(() => {
      const frame = document.querySelector(".picture .scroll").getBoundingClientRect();
      const seen = ({ left, right }) => left >= frame.left && right <= frame.right;
      answer.width = document.querySelector(".hlo-graph").getBoundingClientRect().width > frame.width;
      answer.top = seen(document.querySelector('.n[data-name="first"]').getBoundingClientRect());
      document.body.innerHTML = `<pre>${JSON.stringify(answer)}</pre>`;
    }, 600);
    return;
    """,
        text="\n".join(
            [
                "HloModule m",
                "ENTRY e {",
                *lines,
                "first = f32[4] negate(x59)",
                "second = f32[4] tanh(first)",
                f"ROOT t = ({', '.join(['f32[4]'] * 61)}) tuple({names}, second) }}",
            ]
        ),
    )
    assert given == {"width": True, "top": True}


def test_moved_lines_are_not_counted_and_changed_words_are_marked() -> None:
    old = ["  %a = f32[4] add(%x, %y)", "  %b = f32[4] tanh(%a)", "  %c = f32[4] negate(%a)", "  %d = f32[4] sine(%b)"]
    new = ["  %b = f32[4] tanh(%a)", "  %a = f32[4] add(%x, %y)", "  %c = f32[4] abs(%a)", "  %e = f32[4] <b>"]
    found = difference(old, new)
    assert (found.added, found.removed, found.moved) == (2, 2, 1)
    text = "".join(found.lines)
    assert '<span class="del">-  %c = f32[4] <b>negate</b>(%a)</span>' in text
    assert '<span class="add">+  %c = f32[4] <b>abs</b>(%a)</span>' in text
    assert '<span class="add">+  %e = f32[4] &lt;b&gt;</span>' in text
    assert text.count('class="moved"') == 2


def test_metadata_is_hidden_and_no_difference() -> None:
    old, new = (f'  %a = f32[4] {op}(%x), metadata={{op_name="<a}}b" stack_frame_id={{1}}}}' for op in ("tanh", "sine"))
    found = difference([old, "  %b = f32[4] abs(%a)"], [new, '  %b = f32[4] abs(%a), metadata={op_name="late"}'])
    assert (found.added, found.removed) == (1, 1)
    meta = '<span class="meta">, metadata={op_name=&quot;&lt;a}b&quot; stack_frame_id={1}}</span></span>\n'
    assert found.lines[1] == f'<span class="del">-  %a = f32[4] <b>tanh</b>(%x){meta}'
    assert found.lines[3].startswith('<span class="same">   %b = f32[4] abs(%a)<span class="meta">, metadata={')
