"""What lies in a directory of dumps: files around single passes, numbers, records, reports, and the page about them."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import DumpError
from xlalite.hlo.text import parse
from xlalite.hlo.types.decision import Decision
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.core.pipeline import Pipeline
from xlalite.passes.dump.dumper import module_dumper, session_dumper
from xlalite.passes.dump.index import write_index
from xlalite.passes.dump.page import PageLimits, render_page
from xlalite.passes.dump.records import DumpContents, ModuleEntry, Status, read_contents, write_atomically
from xlalite.passes.memory.schedule_report import schedule_report
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.simplify.cse import CommonSubexpressionElimination
from xlalite.passes.simplify.dce import DeadCodeElimination

TEXT = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  dead = f32[4] tanh(x)
  one = f32[4] exponential(x)
  two = f32[4] exponential(x)
  sum = f32[4] add(one, two)
  n = f32[4] negate(sum)
  ROOT m = f32[4] negate(n)
}
"""
STAGES = (DeadCodeElimination(), CommonSubexpressionElimination(), AlgebraicSimplifier())


def dump(directory: Path, pattern: str | None, name: str = "m", text: str = TEXT) -> ModuleEntry:
    """Runs passes with dumps, and gives the record that they left."""
    options = DebugOptions(dump_to=str(directory), dump_hlo_pass_re=pattern)
    module = parse(text)
    dumper = module_dumper(options, name)
    assert dumper is not None
    with dumper:
        dumper.write_given(module)
        Pipeline("p", STAGES).run(module, Instrumentation(options, [dumper]))
        dumper.write_decisions(module.decisions)
    return read_contents(directory).modules[-1]


def test_pass_in_the_middle_is_shown_before_and_after(tmp_path: Path) -> None:
    dead, equal, simplified = dump(tmp_path, "^cse$").passes
    assert dead.changed
    assert simplified.changed
    assert dead.after is simplified.after is None
    assert equal.before == "module_0000.m.0001.p.after_dce.before_cse.txt"
    assert equal.after == "module_0000.m.0002.p.after_cse.before_algebraic-simplifier.txt"
    before, after = ((tmp_path / name).read_text().count("exponential(") for name in (equal.before, equal.after))
    assert (before, after) == (2, 1)


def test_after_of_one_pass_is_before_of_the_next(tmp_path: Path) -> None:
    entry = dump(tmp_path, "dce|cse|algebraic")
    files = [name for one in entry.passes for name in (one.before, one.after)]
    assert files[0] == "module_0000.m.before_optimizations.txt"
    assert files[1::2][:-1] == files[2::2]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_page_says_where_the_time_went(tmp_path: Path, is_compiled: bool) -> None:
    if is_compiled:
        debug = DebugOptions(dump_to=str(tmp_path), dump_hlo_pass_re=".*")
        get_backend("cpu").compile(parse(TEXT), CompileOptions(debug=debug, use_cache=False))
    else:
        dump(tmp_path, ".*")
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text()
    found = re.search(r"<p>([\d.]+) ms: (.*)</p></div>", page)
    assert found is not None
    parts = re.findall(r"</i>([^<,]*) ([\d.]+)", found[2])
    assert sum(float(ms) for _, ms in parts) == pytest.approx(float(found[1]), abs=0.4)  # each is rounded to a tenth
    generation = ["buffer assignment", "LLVM IR", "machine code", "dumps"] if is_compiled else ["all else"]
    assert [name for name, _ in parts] == ["verifier", "passes", *generation]


def test_record_reads_back_as_it_was(tmp_path: Path) -> None:
    entry = dump(tmp_path, ".*")
    assert ModuleEntry.from_json(json.loads(json.dumps(entry.as_json()))) == entry
    assert (entry.process, entry.status.value) == (os.getpid(), "compiled")
    assert dict(entry.files) == {
        "hlo-before-optimizations": "module_0000.m.before_optimizations.txt",
        "decisions": "module_0000.m.decisions.json",
    }


def test_numbers_go_on_behind_those_of_other_processes(tmp_path: Path) -> None:
    (tmp_path / "module_0041.other.before_optimizations.txt").write_text("HloModule other\n")
    assert [dump(tmp_path, None, name).prefix for name in ("a", "b")] == ["module_0042.a", "module_0043.b"]


def test_processes_at_the_same_time_get_names_of_their_own(tmp_path: Path) -> None:
    options = DebugOptions(dump_to=str(tmp_path))
    first = module_dumper(options, "m")
    assert first is not None
    (tmp_path / "module_0001.m.before_optimizations.txt").write_text("of another process")
    second = module_dumper(options, "m")
    assert second is not None
    assert (first.prefix, second.prefix) == ("module_0000.m", "module_0002.m")


def test_sessions_overwrite_their_own_reports_only(tmp_path: Path) -> None:
    options = DebugOptions(dump_to=str(tmp_path))
    one, other = session_dumper(options), session_dumper(options)
    assert one is not None
    assert other is not None
    decision = Decision("clustering", ("MatMul",), "clustered", "<reason>")
    one.write("first\n", [])
    one.write("second\n", [decision])
    other.write("third\n", [])
    contents = read_contents(tmp_path)
    assert [(report.name, (tmp_path / report.file).read_text()) for report in contents.reports] == [
        ("session_0000", "second\n"),
        ("session_0001", "third\n"),
    ]
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "second" in page
    assert "&lt;reason&gt;" in page
    assert session_dumper(DebugOptions()) is None


def test_reports_lead_to_the_modules_of_their_clusters(tmp_path: Path) -> None:
    for name in ("cluster_0_train", "cluster_0"):
        dump(tmp_path, None, name)
    report = session_dumper(DebugOptions(dump_to=str(tmp_path)))
    assert report is not None
    report.write("cluster_0_train: 3 operations\n", ())
    page = render_page(read_contents(tmp_path), tmp_path)
    assert 'of its own: <a class="mono" href="#module_0000.cluster_0_train">cluster_0_train</a>.</p>' in page


def test_reports_go_to_standard_output_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    dumper = session_dumper(DebugOptions(dump_to="-"))
    assert dumper is not None
    dumper.write("report\n", [])
    assert capsys.readouterr().out.endswith(".cluster_report.txt\nreport\n\n")


def test_page_is_limited(tmp_path: Path) -> None:
    contents = DumpContents((dump(tmp_path, ".*"),))
    whole = render_page(contents, tmp_path)
    assert "%two" in whole.split("<details><summary>hlo-before-optimizations")[1]
    assert "... the rest is in the file\n" not in whole
    cut = render_page(contents, tmp_path, limits=PageLimits(text_bytes=120))
    assert "... the rest is in the file\n" in cut
    assert "%two" not in cut.split("<details><summary>hlo-before-optimizations")[1]
    assert "%two" not in render_page(contents, tmp_path, limits=PageLimits(page_bytes=0))
    assert "too long to compare" not in whole
    assert "too long to compare" in render_page(contents, tmp_path, limits=PageLimits(diff_lines=3))


def test_a_picture_is_folded_for_good_where_boxes_that_open_have_no_room(tmp_path: Path) -> None:
    lines = [f"  x{i} = f32[4] negate(x{i - 1})" for i in range(1, 600)]
    contents = DumpContents(
        (dump(tmp_path, None, text="\n".join(["ENTRY e {", "  x0 = f32[4] parameter(0)", *lines, "}"])),)
    )

    def page(size: int) -> str:
        return render_page(contents, tmp_path, limits=PageLimits(text_bytes=1000, page_bytes=size))

    folded = "Too large to open here"
    assert "Click an instruction" in page(1 << 23)
    assert folded not in page(1 << 23)
    assert folded in page(10_000)
    assert "too large for a page" in page(1000)


def test_texts_of_errors_are_no_markup(tmp_path: Path) -> None:
    entry = ModuleEntry("module_0000.m", "m", Status.FAILED, error="no <fusion> today")
    assert '<p class="bad">no &lt;fusion&gt; today</p>' in render_page(DumpContents((entry,)), tmp_path)


def test_files_that_went_away_do_not_break_the_page(tmp_path: Path) -> None:
    entry = dump(tmp_path, ".*")
    for path in tmp_path.glob("module_*.txt"):
        path.unlink()
    assert "module_0000.m" in render_page(DumpContents((entry,)), tmp_path)


def test_page_of_nothing(tmp_path: Path) -> None:
    assert write_index(tmp_path / "new") == 0
    assert "No module has been compiled." in (tmp_path / "new" / "index.html").read_text()


def test_failing_writes_name_the_directory_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "index.json").mkdir()
    with pytest.raises(DumpError, match=r"dump of index\.json: cannot write to directory .*: "):
        write_atomically(tmp_path / "index.json", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["index.json"]


def test_directory_that_cannot_be_made_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    options = DebugOptions(dump_to=str(tmp_path / "file" / "directory"))
    for name in ("cpu", "interpreter"):
        executable = get_backend(name).compile(parse(TEXT), CompileOptions(debug=options))
        np.testing.assert_allclose(executable(np.zeros(4, np.float32)), np.full(4, 2), err_msg=name)
    assert session_dumper(options) is None
    (warning,) = caplog.messages
    assert warning.startswith(
        f"dump directory {tmp_path}/file/directory: cannot be made: Not a directory; the program "
    )


def test_directory_that_vanishes_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = tmp_path / "dumps"
    options = DebugOptions(dump_to=str(directory), dump_hlo_pass_re=".*")
    dumper, report, module = module_dumper(options, "m"), session_dumper(options), parse(TEXT)
    assert dumper is not None
    assert report is not None
    shutil.rmtree(directory)
    directory.write_text("a file")
    with dumper:
        dumper.write_given(module)
        assert Pipeline("p", STAGES).run(module, Instrumentation(options, [dumper]))
    report.write("report\n", [])
    assert len(caplog.messages) == 1
    assert "; the program goes on, its dumps are not complete" in caplog.messages[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only some systems have a disk that is always full")
def test_full_disk_leaves_no_part_of_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dumper = module_dumper(DebugOptions(dump_to=str(tmp_path)), "m")
    assert dumper is not None
    path = tmp_path / "module_0000.m.decisions.json"
    path.symlink_to("/dev/full")
    with dumper:
        dumper.write_decisions([])
    assert not path.is_symlink()
    assert "No space left on device; the program goes on" in caplog.messages[0]
    (entry,) = read_contents(tmp_path).modules
    assert entry.files == {}


@pytest.mark.parametrize("letter", ["m", "\N{LATIN SMALL LETTER E WITH ACUTE}", "/", "\N{PILE OF POO}"])
def test_long_names_are_cut_and_stay_different(letter: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entries = [dump(tmp_path, ".*", letter * 1000 + end) for end in ("a", "b")]
    assert caplog.messages == []
    stems = [entry.prefix.partition(".")[2] for entry in entries]
    assert stems[0] != stems[1]
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) > 2 * len(STAGES)
    assert all(len(name.encode()) < 220 for name in names)
    assert entries[0].name == letter * 1000 + "a"
    for entry in entries:
        assert all((tmp_path / name).exists() for one in entry.passes for name in (one.before, one.after) if name)


def test_records_of_other_versions_and_damaged_ones_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "module_0000.m.record.json").write_text('{"format": 99}')
    (tmp_path / "module_0001.m.record.json").write_text("[damaged")
    assert read_contents(tmp_path) == DumpContents()


def test_a_module_that_another_version_recorded_has_files_and_is_not_unfinished(tmp_path: Path) -> None:
    (tmp_path / "module_0000.m.record.json").write_text('{"format": 1, "name": "m", "status": "compiled"}')
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text("HloModule m\n")
    (entry,) = read_contents(tmp_path).modules
    assert entry.status is Status.UNREAD
    assert "hlo-before-optimizations" in entry.files


def test_schedule_report_counts_bytes_alive() -> None:
    module = parse(
        """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[100] parameter(0)
  a = f32[100] exponential(x)
  b = f32[50] slice(a), slice={[0:50]}
  c = f32[50] negate(b)
  ROOT t = (f32[50], f32[50]) tuple(b, c)
}
"""
    )
    lines = schedule_report(module).splitlines()
    assert lines[0] == "Schedule: module m, 5 steps"
    rows = [line.split()[:4] for line in lines if "%" in line]
    assert rows == [
        ["0", "0", "0", "%x"],
        ["1", "400", "400", "%a"],
        ["2", "200", "600", "%b"],
        ["3", "200", "400", "%c"],
        ["4", "0", "400", "%t"],
    ]
    assert lines[-1] == "Most alive at once: 600 bytes, at step 2"


def test_schedule_report_follows_loops() -> None:
    module = parse(
        """HloModule m, is_scheduled=true

body {
  s = (s32[], f32[10]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[10] get-tuple-element(s), index=1
  w = f32[10] negate(v)
  ROOT o = (s32[], f32[10]) tuple(i, w)
}

condition {
  s = (s32[], f32[10]) parameter(0)
  ROOT p = pred[] constant(false)
}

ENTRY e {
  i = s32[] parameter(0)
  x = f32[10] parameter(1)
  t = (s32[], f32[10]) tuple(i, x)
  ROOT l = (s32[], f32[10]) while(t), condition=condition, body=body
}
"""
    )
    text = schedule_report(module)
    assert "computation body:" in text
    assert "computation condition:" in text
    assert text.index("%w = ") < text.index("%l = ")


def test_times_of_passes_are_seen_on_one_scale(tmp_path: Path) -> None:
    passes = [replace(entry, time_ms=ms) for entry, ms in zip(dump(tmp_path, None).passes, (100, 1, 0), strict=False)]
    page = render_page(
        DumpContents((ModuleEntry("module_0000.m", "m", Status.COMPILED, passes=tuple(passes)),)), tmp_path
    )
    bars = re.findall(r'time">([^<]*)<i style="--part:([\d.]+)"', page)
    assert bars == [("100.00", "1.00"), ("1.00", "0.50"), ("0.00", "0.00")]
    assert "what is this?" in page
