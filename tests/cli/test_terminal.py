"""What the commands print on a terminal of 80 columns, and elsewhere."""

import fcntl
import os
import re
import struct
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.cli.main import main
from xlalite.cli.wrapping import wrapped


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`on_terminal("flags")`: what the command writes when standard output is a terminal of 80 columns."""
    monkeypatch.delenv("XLALITE_FLAGS", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def run(*arguments: object, code: int = 0, colours: bool = False) -> str:
        monkeypatch.setenv("NO_COLOR", "" if colours else "1")
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        written: list[bytes] = []

        def read() -> None:
            try:
                while part := os.read(ours, 65536):
                    written.append(part)
            except OSError:  # the other end is closed
                pass

        reader = threading.Thread(target=read)
        reader.start()
        with open(theirs, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            found = main([str(argument) for argument in arguments])
        reader.join()
        os.close(ours)
        assert found == code
        return b"".join(written).decode().replace("\r\n", "\n")

    return run


@pytest.mark.parametrize("words", [("flags",), ("opt", "--list-passes"), ("opt", "--list-stages"), ("explain",)])
def test_lines_are_broken_between_words(
    words: tuple[str, ...], on_terminal: Callable[..., str], xlalite: Callable[..., object], softmax: Path
) -> None:
    arguments = (*words, softmax) if words == ("explain",) else words
    narrow, wide = on_terminal(*arguments), xlalite(*arguments).out
    assert max(map(len, wide.splitlines())) > 80 or words == ("opt", "--list-stages")
    assert [line for line in narrow.splitlines() if len(line) > 80 and len(line.split()) > 1] == []
    assert narrow.split() == wide.split()


def test_colours_are_for_terminals_that_want_them(
    on_terminal: Callable[..., str], hlo_file: Callable[..., Path], softmax: Path, xlalite: Callable[..., object]
) -> None:
    other = hlo_file("  a = f32[4,16] parameter(0)\n  ROOT b = f32[4,16] negate(a)")
    words = ("diff", softmax, other)
    coloured, plain = on_terminal(*words, code=1, colours=True), on_terminal(*words, code=1)
    assert "\x1b[32m" in coloured
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain == xlalite(*words).out
    assert "\x1b[1m" in on_terminal("explain", softmax, colours=True)


def test_what_follows_hangs() -> None:
    assert wrapped("  one: two three", 40) == ["  one: two three"]
    assert wrapped("  one: two three four", 15) == ["  one: two", "      three", "      four"]
    assert wrapped("name      a b c d e f", 16, hang=10) == ["name      a b c", "          d e f"]


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert wrapped("of averylongword-with-hyphens", 10) == ["of", "    averylongword-with-hyphens"]


def test_explain_adds_up_what_is_alike_and_shows_each_on_request(softmax: Path, xlalite: Callable[..., object]) -> None:
    short, full = xlalite("explain", softmax).out, xlalite("explain", softmax, "--all").out
    assert re.findall(r"q_fusion: (.*?): ", short) == re.findall(r"q_fusion: (.*?): ", full) == ["row"]
    assert "\n    fusion: sb, s, e, d, mb, m -> q: fused: saves writing and reading it (bytes=1056)\n" in short
    assert "\n  e -> q: fused: saves writing and reading it (bytes=256)\n" in full


def test_large_literals_are_elided(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    def printed(size: int) -> str:
        return xlalite(
            "run", hlo_file(f"  a = f32[{size}] parameter(0)\n  ROOT b = f32[{size}] negate(a)"), "--print_literals"
        ).out

    assert printed(1000).count(", ") > 2000 - 10
    assert "..." not in printed(1000)
    assert printed(1001).count("...") == 2
    assert len(printed(1001).splitlines()) < 15
