"""Runs the `*.hlo` files beside it: each says in `// RUN:` lines what to run and in CHECK lines what must come out.

A RUN line is one `xlalite` command on `%s`, the file itself; `| filecheck %s [--check-prefix=P]` compares its output
with the CHECK lines, `2>&1` adds what it wrote to standard error. `not` in front means that it must fail with code 2;
the line, and the message, are those of the `// error:` comment on the line at fault.

Each pass that `--passes` names also runs under every check of the fixture `transform`; `// UNCHECKED: values fixpoint`
says that the modules have no values to compare, or that a second run changes them again.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options

from xlalite.backends.base import get_backend
from xlalite.cli.main import main
from xlalite.cli.pass_list import parse_passes
from xlalite.cli.reading import split_text
from xlalite.hlo.text import parse
from xlalite.passes.core.base import HloPass

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.rglob("*.hlo"))
WRONG_INPUT = 2


@dataclass(frozen=True)
class Run:
    """A RUN line: the words for `xlalite`, and what is expected of it."""

    words: tuple[str, ...]
    fails: bool
    joins_stderr: bool
    check_prefix: str | None


def runs_of(text: str) -> list[Run]:
    return [_parse(line) for line in re.findall(r"^// RUN: (.*)$", text, re.MULTILINE)]


def _parse(line: str) -> Run:
    command, _, check = line.partition("|")
    words = shlex.split(command)
    fails = words[0] == "not"
    words = words[fails:]
    assert words[0] == "xlalite", line
    joins_stderr = "2>&1" in words
    prefix = None
    if check:
        tool, place, *options = shlex.split(check)
        assert (tool, place) == ("filecheck", "%s"), line
        prefix = options[0].removeprefix("--check-prefix=") if options else "CHECK"
    return Run(tuple(word for word in words[1:] if word != "2>&1"), fails, joins_stderr, prefix)


def errors_of(text: str) -> list[tuple[int, str]]:
    """(line, message) of each `// error:` comment."""
    found = ((number, line.partition("// error: ")[2]) for number, line in enumerate(text.splitlines(), 1))
    return [(number, message.strip()) for number, message in found if message]


def ids(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_file(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLALITE_FLAGS", raising=False)
    text = path.read_text()
    runs = runs_of(text)
    assert runs, "no RUN line"
    for run in runs:
        code = main([str(path) if word == "%s" else word for word in run.words])
        output = capfd.readouterr()
        if run.fails:
            assert code == WRONG_INPUT, output.out
            check_errors(errors_of(text), output.err)
        else:
            assert code == 0, output.err
        if run.check_prefix is not None:
            shown = output.out + output.err if run.joins_stderr else output.out
            check_output(path, tmp_path / "output", shown, run.check_prefix, capfd.readouterr)


@pytest.mark.parametrize("path", [path for path in FILES if "--passes=" in path.read_text()], ids=ids)
def test_passes_of_file_keep_what_passes_promise(path: Path, transform: Callable[..., Any]) -> None:
    text = path.read_text()
    unchecked = set("".join(re.findall(r"^// UNCHECKED: (.*)$", text, re.MULTILINE)).split())
    assert unchecked <= {"values", "fixpoint"}
    for passes in {word for run in runs_of(text) for word in run.words if word.startswith("--passes=")}:
        for part in split_text(text):
            module = parse(part)
            for stage in parse_passes(passes.removeprefix("--passes="), get_backend("cpu").passes):
                if isinstance(stage, HloPass):
                    checks = {"idempotent": "fixpoint" not in unchecked, "evaluated": "values" not in unchecked}
                    transform(stage, module, **checks)
                else:
                    stage.run(module)


def check_errors(expected: list[tuple[int, str]], found: str) -> None:
    for line, message in expected:
        assert f": line {line}, column " in found
        assert message in found


def check_output(path: Path, scratch: Path, output: str, prefix: str, read: Callable[[], object]) -> None:
    scratch.write_text(output)
    code = Matcher.from_opts(Options(str(path), str(scratch), [prefix])).run()
    assert code == 0, f"{path.name}: {read()}\n{output}"


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("xlalite opt %s", Run(("opt", "%s"), False, False, None)),
        ("not xlalite opt %s 2>&1 | filecheck %s", Run(("opt", "%s"), True, True, "CHECK")),
        (
            "xlalite opt %s '--passes=fusion{a=1}' | filecheck %s --check-prefix=A",
            Run(("opt", "%s", "--passes=fusion{a=1}"), False, False, "A"),
        ),
    ],
)
def test_run_lines_are_read(line: str, run: Run) -> None:
    assert runs_of(f"// RUN: {line}\n") == [run]


def test_wrong_output_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.hlo"
    path.write_text("// CHECK: add\n// CHECK-NOT: multiply\n")
    check_output(path, tmp_path / "out", "add\n", "CHECK", capfd.readouterr)
    for wrong in ("subtract\n", "add multiply\n"):
        with pytest.raises(AssertionError, match=r"f\.hlo"):
            check_output(path, tmp_path / "out", wrong, "CHECK", capfd.readouterr)
