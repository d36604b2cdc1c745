"""The program as a whole: help, version, and what happens to mistakes."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import xlalite as package
from xlalite.cli.main import COMMANDS
from xlalite.flags import Flags


def test_help_names_every_command_in_80_columns(xlalite: Callable[..., object]) -> None:
    ran = xlalite("--help")
    assert ran.code == 0
    assert all(f"  {command.name} " in ran.out for command in COMMANDS)
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_in_80_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], xlalite: Callable[..., object]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as left:
        xlalite(command, "--help")
    out = capfd.readouterr().out
    assert left.value.code == 0
    assert out.startswith(f"usage: xlalite {command}")
    assert max(map(len, out.splitlines())) <= 80


def test_no_arguments_show_the_help_and_fail(xlalite: Callable[..., object]) -> None:
    ran = xlalite()
    assert ran.code == 2
    assert "usage: xlalite COMMAND" in ran.out


def test_module_and_version() -> None:
    done = subprocess.run([sys.executable, "-m", "xlalite", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"xlalite {package.__version__}\n"


def test_listing_commands_loads_neither_numpy_nor_llvm() -> None:
    program = (
        "import sys\nfrom xlalite.cli.main import main\nmain(['--help'])\n"
        "sys.exit(bool({'numpy', 'llvmlite', 'networkx'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["otp"], "xlalite: error: there is no command 'otp'; did you mean 'opt'?"),
        (["--vesion"], "xlalite: error: there is no option '--vesion'; did you mean '--version'?"),
        (["opt", "--stge=hlo"], "xlalite opt: error: there is no option '--stge'; did you mean '--stage'?"),
        (["opt", "--xla_dump_ot=/x"], "unknown flag --xla_dump_ot; did you mean '--xla_dump_to'?"),
        (["opt", "a", "b"], "xlalite opt: error: there is no place for 'b'"),
        (["run"], "xlalite run: error: the following arguments are required: FILE"),
        (["run", "x", "--iterations=0"], "expected an integer from 1, found '0'"),
        (["run", "x", "--random_seed=-5"], "expected an integer from 0, found '-5'"),
        (["run", "x", "--timeout=inf"], "expected a number of seconds, found 'inf'"),
        (["run", "x", "--rel_error_bound=nan"], "expected a number that is not negative, found 'nan'"),
        (["opt", "--platform=gpu"], "xlalite opt: error: backend 'gpu' does not exist, expected one of cpu, inter"),
        (["opt", "/nowhere/f.hlo"], "xlalite opt: error: /nowhere/f.hlo: No such file or directory"),
    ],
)
def test_mistakes_are_one_message_and_code_2(
    arguments: list[str], message: str, xlalite: Callable[..., object]
) -> None:
    ran = xlalite(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_flags_of_the_environment_are_read_and_checked(
    softmax: Path, monkeypatch: pytest.MonkeyPatch, xlalite: Callable[..., object]
) -> None:
    xlalite("flags")  # the fixture forgets the caller's flags at its first use
    monkeypatch.setenv("XLALITE_FLAGS", "--xla_disable_hlo_pases=fusion")
    ran = xlalite("opt", softmax)
    assert ran.code == 2
    assert "XLALITE_FLAGS: unknown flag --xla_disable_hlo_pases; did you mean '--xla_disable_hlo_passes'?" in ran.err
    monkeypatch.setenv("XLALITE_FLAGS", "--xla_disable_hlo_passes=fusion")
    assert "fusion(" not in xlalite("opt", softmax).out


def test_flags_lists_all_and_shows_what_is_set(xlalite: Callable[..., object]) -> None:
    ran = xlalite("flags", "--xla_fuel=cse=3")
    assert "--xla_dump_hlo_pass_re=REGEX" in ran.out
    assert ran.out.endswith("set:\n  xla_fuel = (('cse', 3),)\n")


def test_traceback_is_shown_when_asked_for(xlalite: Callable[..., object]) -> None:
    with pytest.raises(FileNotFoundError):
        xlalite("opt", "--traceback", "/nowhere/f.hlo")


@pytest.mark.parametrize(
    ("command", "contents", "message"),
    [
        ("opt", b"", "f: line 1, column 1: the text is empty, expected HLO"),
        ("opt", "HloModule m".encode("utf-16"), "f: expected HLO, found text in UTF-16; HLO is text in UTF-8"),
        ("opt", b"\x0c\x00\xff", "f: expected HLO, found neither text nor a proto: byte 0: "),
        ("scan", b"a\x00b", "f: source code string cannot contain null bytes"),
        ("scan", b"x = '\xff'", "f"),
    ],
)
def test_other_files_are_one_message_and_code_2(
    tmp_path: Path, command: str, contents: bytes, message: str, xlalite: Callable[..., object]
) -> None:
    (tmp_path / "f").write_bytes(contents)
    ran = xlalite(command, tmp_path / "f")
    assert ran.code == 2
    assert message in ran.err
    assert "^" not in ran.err


def test_arrays_in_damaged_files_are_one_message(tmp_path: Path, softmax: Path, xlalite: Callable[..., object]) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(1000.0))
    whole = path.read_bytes()
    for damaged in (b"text", whole[:100], whole[:200] + b"\xff" * 40 + whole[240:]):
        path.write_bytes(damaged)
        ran = xlalite("run", softmax, f"--inputs={path}")
        assert ran.code == 2
        assert "a.npz: expected an .npy or .npz file of plain arrays: " in ran.err
        assert "pickle_" not in ran.err


def test_streams_may_be_closed(softmax: Path) -> None:
    command = f"exec {sys.executable} -m xlalite stats {softmax} <&- >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_letters_that_the_terminal_has_not_are_escaped(tmp_path: Path, softmax: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.hlo"
    Path(os.fsdecode(path)).write_bytes(softmax.read_bytes())
    command = [sys.executable, "-m", "xlalite", "bench", "--min_time=0.01", path]
    for encoding in ("ascii", "utf-8"):
        done = subprocess.run(
            command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\\udcff.hlo" in done.stdout


def test_a_full_disk_behind_a_stream_is_one_message(softmax: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "xlalite", "stats", str(softmax)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "xlalite stats: error: cannot read or write: No space left on device\n"


def test_a_reader_that_goes_away_is_no_error(softmax: Path) -> None:
    command = f"{sys.executable} -m xlalite opt {softmax} --stage=asm | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""


def test_the_document_has_every_command(repository: Path) -> None:
    text = (repository / "docs" / "tools.md").read_text()
    rows = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert {command.name for command in COMMANDS} <= rows


def test_the_document_knows_only_flags_that_exist(repository: Path) -> None:
    text = (repository / "docs" / "tools.md").read_text()
    names = set(re.findall(r"--((?:tf_)?xla(?:lite)?_\w+)", text))
    assert names
    assert names <= {field.name for field in dataclasses.fields(Flags)}
