"""`xlalite bisect`: which pass, and which of its changes, makes a module go wrong.

Every trial is `xlalite run` in a process of its own, so that code that crashes is a result like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.cli.arguments import CommandParser
from xlalite.cli.errors import ANSWER_IS_NO
from xlalite.cli.reading import module_of, read_text
from xlalite.cli.trial import Outcome, run_in_process, trial_options, trial_parser
from xlalite.client.compilation import compile_options
from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass

_MOST_CHANGES = 1 << 24
_HLO_STAGE = "hlo-backend"


@dataclass(frozen=True, slots=True)
class Culprit:
    """What makes the module go wrong.

    Attributes:
        pass_name: The pass without which all is well.
        change: The number of its first change that does harm; None when its changes cannot be counted apart.
    """

    pass_name: str
    change: int | None


Trial = Callable[[Sequence[str]], Outcome]
"""Runs the module with some flags."""


def run(words: Sequence[str]) -> int:
    """Runs the command; the exit code is 1 when something goes wrong with the module, found or not."""
    arguments, flags = _parser().read(words)
    text = read_text(arguments.file)
    module = module_of(text, arguments.file)
    options = trial_options(arguments, words)
    if arguments.inputs is not None:
        options.append(f"--inputs={arguments.inputs}")

    def trial(more: Sequence[str]) -> Outcome:
        return run_in_process(text, [*options, *more])

    first = trial(())
    print(f"{module.name} {first.value}")
    if first is Outcome.GOOD:
        return 0
    names = _passes_that_change(module, arguments.platform, compile_options(flags))
    print(_verdict(find_culprit(names, trial, first)))
    return ANSWER_IS_NO


def find_culprit(names: Sequence[str], trial: Trial, first: Outcome) -> Culprit | None:
    """The first pass without which the module is good, with the first of its changes that does harm.

    Args:
        names: The passes that may be to blame.
        trial: Runs the module.
        first: How it ends when all passes run.
    """
    for name in names:
        if trial([f"--xla_disable_hlo_passes={name}"]) is Outcome.GOOD:
            return Culprit(name, _first_bad_change(name, trial, first))
    return None


def _first_bad_change(name: str, trial: Trial, first: Outcome) -> int | None:
    """The smallest amount of fuel with which the pass does harm, by doubling and then halving."""

    def is_good(changes: int) -> bool:
        return trial([f"--xla_fuel={name}={changes}"]) is not first

    high = 1
    while is_good(high):
        high *= 2
        if high > _MOST_CHANGES:
            return None
    low = high // 2  # good, or no change at all
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return high


def _parser() -> CommandParser:
    return trial_parser(
        "bisect",
        "Finds the pass that makes a module differ from the interpreter, fail or crash, and the first of its changes "
        "that does harm.",
    )


def _passes_that_change(module: HloModule, platform: str, options: CompileOptions) -> list[str]:
    """The passes that change the module, last ones first; all of them when the pipeline does not get through."""
    backend = get_backend(platform)
    try:
        records = backend.compile_to(_HLO_STAGE, module, options).pass_records
    except PassError:
        return list(backend.passes)
    return list(dict.fromkeys(record.name for record in reversed(records) if record.changed))


def _verdict(culprit: Culprit | None) -> str:
    if culprit is None:
        return "no single pass is to blame: it goes wrong without any of them, or in making code"
    lines = [f"{culprit.pass_name} is to blame: without it all is well (--xla_disable_hlo_passes={culprit.pass_name})"]
    if culprit.change is not None:
        lines.append(
            f"its change number {culprit.change} does the harm: good with --xla_fuel={culprit.pass_name}="
            f"{culprit.change - 1}, wrong with --xla_fuel={culprit.pass_name}={culprit.change}"
        )
    return "\n".join(lines)
