"""`xlalite dump`, and what lies in the directory afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.passes.dump.index import write_index

PROGRAM = """\
import sys
import numpy as np
import xlalite as xl

with open(sys.argv[1]) as file:
    executable = xl.compile(xl.hlo.parse(file.read()))
print(sys.argv[2:], executable(np.ones((4, 16), np.float32)).sum())
sys.exit(5)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(repository))


def test_hlo_is_no_program_to_run(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("dump", "--to", tmp_path / "dumps", "--", softmax)
    assert ran.code == 2
    assert f"{softmax} holds a module, not a Python program: 'xlalite opt {softmax} --stage=html" in ran.err
    assert not (tmp_path / "dumps").exists()


@pytest.mark.usefixtures("importable")
def test_an_interpreter_given_by_its_path_is_no_hlo(
    program: Path, softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    ran = xlalite("dump", "--to", tmp_path / "dumps", "--", sys.executable, program, softmax)
    assert "holds a module" not in ran.err
    assert ran.err.endswith("/dumps/index.html\n")


@pytest.mark.usefixtures("importable")
def test_the_path_at_the_end_is_short(
    program: Path, softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    (tmp_path / "there").mkdir()
    ran = xlalite("dump", "--to", tmp_path / "there" / ".." / "dumps", "--", program, softmax)
    assert ran.err.endswith(f": {tmp_path.resolve()}/dumps/index.html\n")


@pytest.mark.usefixtures("importable")
def test_program_gets_its_arguments_and_gives_its_code(
    program: Path, softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    directory = tmp_path / "dumps"
    ran = xlalite("dump", "--to", directory, "--", program, softmax, "a b", "--flag=1")
    assert ran.code == 5
    assert ran.out == "['a b', '--flag=1'] 4.0\n"
    assert ran.err == f"xlalite dump: 1 module: {directory}/index.html\n"
    suffixes = {path.name.removeprefix("module_0000.softmax.") for path in directory.iterdir()}
    assert suffixes >= {
        "before_optimizations.txt",
        "cpu_after_optimizations.txt",
        "cpu_after_optimizations-schedule.txt",
        "cpu_after_optimizations-buffer-assignment.txt",
        "decisions.json",
        "ir-no-opt.ll",
        "ir-with-opt.ll",
        "s",
        "obj-file.o",
        "index.json",
        "index.html",
    }
    assert any(".after_fusion.before_" in suffix for suffix in suffixes)
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A directory with the dumps of two runs of one module, whose name is hostile to HTML."""
    directory = tmp_path_factory.mktemp("two_runs")
    (directory / "m.hlo").write_text(
        "HloModule m\nENTRY e {\n  a = f32[4,16] parameter(0)\n  z = f32[4,16] negate(a)\n"
        '  ROOT b = f32[4,16] negate(z), metadata={op_name="<b>&amp"}\n}\n'
    )
    (directory / "program.py").write_text(PROGRAM)
    flags = f"--xla_dump_to={directory / 'd'} --xla_dump_hlo_pass_re=.*"
    environment = {**os.environ, "PYTHONPATH": str(repository), "XLALITE_FLAGS": flags}
    for _ in range(2):
        command = [sys.executable, directory / "program.py", directory / "m.hlo"]
        assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 5
    return directory / "d"


def test_flags_alone_do_the_same_and_runs_do_not_overwrite_each_other(two_runs: Path) -> None:
    index = json.loads((two_runs / "index.json").read_text())
    assert index["format"] == 3
    assert [module["prefix"] for module in index["modules"]] == ["module_0000.m", "module_0001.m"]
    assert {module["status"] for module in index["modules"]} == {"compiled"}


def test_index_lists_passes_with_their_files(two_runs: Path) -> None:
    (module, _) = json.loads((two_runs / "index.json").read_text())["modules"]
    simplifier = next(one for one in module["passes"] if one["changed"])
    assert simplifier["name"] == "algebraic-simplifier"
    assert simplifier["instructions"][0] == 3
    before, after = ((two_runs / simplifier[which]).read_text() for which in ("before", "after"))
    assert before == (two_runs / module["files"]["hlo-before-optimizations"]).read_text()
    assert before != after
    assert all((two_runs / name).exists() for name in module["files"].values())
    unchanged = [one for one in module["passes"] if not one["changed"]]
    assert unchanged
    assert all(one["before"] is one["after"] is None for one in unchanged)


def test_page_is_self_contained_and_escaped(two_runs: Path) -> None:
    page = (two_runs / "index.html").read_text()
    assert "default-src 'none'" in page
    namespace = "http://www.w3.org/2000/svg"  # a name, which nobody fetches
    assert "http://" not in page.replace(namespace, "")
    assert "https://" not in page
    assert "<b>&amp" not in page
    assert "&lt;b&gt;&amp;amp" in page
    assert '<span class="del">-  %z = f32[4,16]{1,0} negate(%a)</span>' in page
    assert '<a href="module_0001.m.s">file</a>' in page
    assert '<p><a href="module_0001.m.obj-file.o">object</a></p>' in page


def test_clear_removes_earlier_dumps_only(two_runs: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    for name in ("module_0000.x.s", "session_0000.cluster_report.txt", "index.html", "notes.txt"):
        (directory / name).write_text("")
    ran = xlalite("dump", "--to", directory, "--clear", "--", "-c", "pass")
    assert ran.code == 0
    assert "nothing was compiled" in ran.err
    assert sorted(path.name for path in directory.iterdir()) == ["index.html", "index.json", "notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "/tmp"], "expected -- and a Python program"),
        (["--", "x.py"], "expected --to DIR, where the dumps go"),
        (["--to", "/proc/nothing", "--", "x.py"], "dump directory /proc/nothing: cannot be used: "),
        (["--to", "/tmp", "--xla_dump_hlo_pass_re=(", "--", "x.py"], "--xla_dump_hlo_pass_re: expected a regular"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, xlalite: Callable[..., object]) -> None:
    ran = xlalite("dump", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_failed_pass_is_in_the_index(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, "--passes=cse,copy-insertion", f"--xla_dump_to={tmp_path / 'd'}")
    assert ran.code == 2
    assert "the module as the pass left it: " in ran.err
    (module,) = json.loads((tmp_path / "d" / "index.json").read_text())["modules"]
    assert module["status"] == "failed"
    assert "module softmax is not scheduled" in module["error"]
    assert [entry["name"] for entry in module["passes"]] == ["cse"]
    assert "module softmax is not scheduled" in (tmp_path / "d" / "index.html").read_text()


def test_killed_process_leaves_an_unfinished_module(tmp_path: Path) -> None:
    for name in ("before_optimizations.txt", "0001.p.after_x.before_y.txt", "ir-no-opt.ll"):
        (tmp_path / f"module_0007.m.{name}").write_text("HloModule m\n")
    assert write_index(tmp_path) == 1
    (module,) = json.loads((tmp_path / "index.json").read_text())["modules"]
    assert (module["prefix"], module["status"]) == ("module_0007.m", "unfinished")
    assert module["files"] == {
        "hlo-before-optimizations": "module_0007.m.before_optimizations.txt",
        "ir-no-opt.ll": "module_0007.m.ir-no-opt.ll",
    }
