"""`xlalite run` in a process of its own, so that code that crashes is a result like any other."""

from __future__ import annotations

import argparse
import enum
import subprocess
import sys
from collections.abc import Sequence

from xlalite.cli.arguments import CommandParser, add_file, add_inputs, add_platform, flag_words
from xlalite.cli.errors import ANSWER_IS_NO, WRONG_INPUT

_PASSED_ON = ("platform", "random_seed", "abs_error_bound", "rel_error_bound")


class Outcome(enum.Enum):
    """How a trial ended."""

    GOOD = "agrees with the interpreter: there is nothing to find"
    MISMATCH = "gives other results"
    ERROR = "fails with an error"
    CRASH = "crashes"


def trial_parser(name: str, summary: str) -> CommandParser:
    """The parser of a command that looks for what makes a module go wrong."""
    summary += " The exit code is 1 when something is wrong with the module."
    parser = CommandParser(name, summary, "FILE [options]")
    add_file(parser)
    add_platform(parser)
    add_inputs(parser)
    return parser


def trial_options(arguments: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """What a command passes on to each trial: how to run, how to compare, and flags; the inputs are its own affair."""
    given = [(name, getattr(arguments, name)) for name in _PASSED_ON]
    return [*(f"--{name}={value}" for name, value in given if value is not None), *flag_words(words)]


def run_in_process(text: str, options: Sequence[str]) -> Outcome:
    """Runs HLO text with options of `xlalite run`."""
    command = [sys.executable, "-m", "xlalite", "run", "-", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)
    outcomes = {0: Outcome.GOOD, ANSWER_IS_NO: Outcome.MISMATCH, WRONG_INPUT: Outcome.ERROR}
    return outcomes.get(done.returncode, Outcome.CRASH)
