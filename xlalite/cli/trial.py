"""`xlalite run` in a process of its own, so that code that crashes is a result like any other."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections.abc import Sequence


class Outcome(enum.Enum):
    """How a trial ended."""

    GOOD = "agrees"
    MISMATCH = "gives other results"
    ERROR = "fails with an error"
    CRASH = "crashes"


def run_in_process(text: str, options: Sequence[str]) -> Outcome:
    """Runs HLO text with options of `xlalite run`."""
    command = [sys.executable, "-m", "xlalite", "run", "-", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)
    outcomes = {0: Outcome.GOOD, 1: Outcome.MISMATCH, 2: Outcome.ERROR}
    return outcomes.get(done.returncode, Outcome.CRASH)
