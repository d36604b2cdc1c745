"""Options that every command has, and environment variables that every program obeys."""

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.cli import common_options
from xlalite.cli.common_options import take_option
from xlalite.flags import Flags, flags_from_environment
from xlalite.passes.core import progress


def test_options_are_taken_up_to_another_program() -> None:
    words = ["run", "--load", "a", "--load=b", "f", "--", "--load", "c"]
    assert take_option(words, "--load") == ["a", "b"]
    assert words == ["run", "f", "--", "--load", "c"]


ENDLESS = """HloModule m
condition {
  s = s32[] parameter(0)
  z = s32[] constant(0)
  ROOT c = pred[] compare(z, z), direction=EQ
}
body {
  s = s32[] parameter(0)
  ROOT n = s32[] add(s, s)
}
ENTRY e {
  x = s32[] parameter(0)
  ROOT w = s32[] while(x), condition=condition, body=body
}"""


@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_a_command_ends_at_its_timeout(tmp_path: Path, platform: str) -> None:
    path = tmp_path / "endless.hlo"
    path.write_text(ENDLESS)
    options = [f"--platform={platform}", "--reference_platform=", "--timeout=1"]
    command = [sys.executable, "-m", "xlalite", "run", str(path), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 124
    assert "has not ended after 1 s (--timeout)" in ran.stderr


def test_a_timeout_is_a_number(softmax: Path, xlalite: Callable[..., object]) -> None:
    assert "expected a number of seconds, found 'soon'" in xlalite("run", softmax, "--timeout=soon").err
    assert xlalite("stats", softmax, "--timeout", "100").code == 0
    assert common_options.TIMED_OUT == 124


def test_flags_of_xla_count_as_far_as_they_are_known() -> None:
    flags = flags_from_environment(
        {
            "XLA_FLAGS": "--xla_gpu_autotune_level=2 --xla_dump_to=/a --xla_dump_hlo_as_text --xla_fuel=wrong",
            "XLALITE_FLAGS": "--xla_dump_to=/b",
        }
    )
    assert flags == Flags(xla_dump_to="/b", xla_dump_hlo_as_text=True)


def test_flags_of_tensorflow_count_as_far_as_they_are_known() -> None:
    flags = flags_from_environment(
        {
            "TF_XLA_FLAGS": "--tf_xla_async_compilation=true --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=2"
            " --xla_dump_to=/a",
            "XLA_FLAGS": "--tf_xla_clustering_debug",
            "XLALITE_FLAGS": "--tf_xla_min_cluster_size=3",
        }
    )
    assert flags == Flags(tf_xla_async_compilation=True, tf_xla_min_cluster_size=3)


def test_states_are_dumped_in_other_forms_and_no_more_modules_than_wanted(
    softmax: Path, tmp_path: Path, xlalite: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    flags = [f"--xla_dump_to={tmp_path}", "--xla_dump_hlo_as_dot", "--xla_dump_hlo_as_proto", "--xla_dump_hlo_as_url"]
    assert xlalite("run", softmax, *flags, "--xla_dump_hlo_pass_re=fusion", "--xla_dump_max_hlo_modules=1").code == 0
    for stem in ("before_optimizations", "cpu_after_optimizations"):
        for suffix, start in (("dot", b"digraph"), ("hlo.pb", b"\n\x07softmax"), ("html", b"<!DOCTYPE html>")):
            assert (tmp_path / f"module_0000.softmax.{stem}.{suffix}").read_bytes().startswith(start)
    assert len([*tmp_path.glob("*after_fusion*.dot")]) == 1
    assert (tmp_path / "module_0000.softmax.before_optimizations.html").as_uri() in caplog.text
    before = sorted(tmp_path.iterdir())
    assert xlalite("run", softmax, *flags, "--xla_dump_max_hlo_modules=1").code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_all_passes_can_be_left_out(softmax: Path, xlalite: Callable[..., object]) -> None:
    assert "fusion" not in xlalite("opt", softmax, "--xla_disable_all_hlo_passes").out


def test_the_log_is_shown_when_the_environment_says_so(softmax: Path) -> None:
    program = "import xlalite, logging; logging.getLogger('xlalite').info('hello')"
    for level, expected in (("info", "xlalite INFO: hello\n"), ("warning", ""), ("loud", "found 'loud'")):
        environment = {"XLALITE_LOG": level, "PATH": ""}
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert expected in ran.stderr
        assert bool(ran.stderr) == bool(expected)


class Terminal:
    """Standard error that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_a_line_on_a_terminal_says_where_a_long_compilation_is_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, times = Terminal(), iter([0.0, 1.0, 2.5, 3.0])
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(logging.getLogger("xlalite"), "level", logging.WARNING)
    logging.getLogger("xlalite").manager._clear_cache()
    shown = progress.Progress()
    for step in ("cse", "dce", "fusion", "copies"):
        shown.note("jit_f", step, 4180)
    assert terminal.text == "\r\x1b[Kcompiling jit_f: fusion, 4,180 instructions, 2 s"
    shown.end()
    shown.end()
    assert terminal.text.endswith(" s\r\x1b[K")
    assert terminal.text.count("\r") == 2
