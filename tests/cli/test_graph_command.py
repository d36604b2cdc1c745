"""`xlalite graph`, and pictures as stages of `xlalite opt`."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("name", "start"), [("g.svg", "<svg "), ("g.html", "<!DOCTYPE html>"), ("g.dot", 'digraph "main"')]
)
def test_the_name_of_the_file_chooses_the_form(
    softmax: Path, tmp_path: Path, xlalite: Callable[..., object], name: str, start: str
) -> None:
    out = tmp_path / name
    assert xlalite("graph", softmax, "-o", out).code == 0
    text = out.read_text()
    assert text.startswith(start)
    assert "to_apply=maximum" in text, "reducers are words, not boxes"


def test_what_is_near_and_what_lies_between(softmax: Path, xlalite: Callable[..., object]) -> None:
    near = xlalite("graph", softmax, "e", "--radius=1").out
    assert near.count("label=") - near.count("->") == 4  # d, s, q and e itself
    ways = xlalite("graph", softmax, "--from=d", "--to=q").out
    assert ways.count("label=") - ways.count("->") == 5


def test_wrong_words_are_answered(softmax: Path, xlalite: Callable[..., object]) -> None:
    assert "-o g.png: expected a name that ends in .svg, .html, .dot" in xlalite("graph", softmax, "-o", "g.png").err
    assert "--from and --to go together" in xlalite("graph", softmax, "--from=e").err
    assert "has no instruction 'ee'" in xlalite("graph", softmax, "ee").err


def test_opt_draws_what_the_passes_made(softmax: Path, xlalite: Callable[..., object]) -> None:
    assert 'data-name="q_fusion"' in xlalite("opt", softmax, "--stage=svg").out
    assert "q_fusion" not in xlalite("opt", softmax, "--stage=dot", "--passes=dce").out
