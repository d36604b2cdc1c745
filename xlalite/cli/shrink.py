"""`xlalite shrink`: the smallest module that goes wrong in the same way."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xlalite.cli.arguments import CommandParser, positive
from xlalite.cli.errors import ANSWER_IS_NO, UsageError
from xlalite.cli.random_inputs import random_arguments, read_arguments
from xlalite.cli.reading import read_module
from xlalite.cli.trial import Outcome, run_in_process, trial_options, trial_parser
from xlalite.hlo.tools.shrinking import Case, shrink


def run(words: Sequence[str]) -> int:
    """Runs the command; the exit code is 1 when something goes wrong with the module."""
    arguments, _ = _parser().read(words)
    module = read_module(arguments.file)
    shapes = [parameter.shape for parameter in module.entry_computation.parameters]
    if not all(shape.is_array for shape in shapes):
        raise UsageError(f"{arguments.file}: a parameter is no array; extract a part without such parameters first")
    generator = np.random.default_rng(arguments.random_seed)
    values = (
        read_arguments(arguments.inputs, tuple(shapes))
        if arguments.inputs is not None
        else random_arguments(module, generator)
    )
    options = trial_options(arguments, words)
    case = Case(module, tuple(values))
    with tempfile.TemporaryDirectory() as folder:
        first = _outcome(case, options, folder)
        if first is Outcome.GOOD:
            print(f"{module.name} {first.value}")
            return 0
        print(f"{module.name} {first.value}", file=sys.stderr)
        smallest = shrink(case, lambda one: _outcome(one, options, folder) is first, arguments.trials)
    print(smallest.text(), end="")
    return ANSWER_IS_NO


def _outcome(case: Case, options: Sequence[str], folder: str) -> Outcome:
    path = Path(folder) / "inputs.npz"
    np.savez(path, *(np.asarray(argument) for argument in case.arguments))
    inputs = [f"--inputs={path}"] if case.arguments else []
    return run_in_process(case.module.to_string("short_parsable"), [*options, *inputs])


def _parser() -> CommandParser:
    parser = trial_parser(
        "shrink",
        "Takes parts away from a module that differs from the interpreter, fails or crashes, as long as it still does, "
        "and prints what remains as HLO text, with the arguments as comments.",
    )
    parser.add_argument("--trials", type=positive, default=300, metavar="N", help="runs at most (default: 300)")
    return parser
