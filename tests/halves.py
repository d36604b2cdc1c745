"""Halves of many cases that are much alike: a test runs one by default, and both when it may be slow."""

from collections.abc import Sequence
from typing import TypeVar

import pytest

HALVES = [0, pytest.param(1, marks=pytest.mark.slow)]

_Case = TypeVar("_Case")


def half_of(cases: Sequence[_Case], turn: int, half: int) -> Sequence[_Case]:
    """Every second case: in odd turns the first half has those that it has not in even ones."""
    return cases[(turn + half) % 2 :: 2]
