"""`xlalite bisect`."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from xlalite.cli.bisect import Culprit, Outcome, find_culprit

# Python imports a module of this name when it starts: here it breaks a pass for the processes of the trials.
BREAKS_CSE = """\
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.passes.simplify.cse import CommonSubexpressionElimination as Cse

honest = Cse.run

def run(self, module):
    entry = module.entry_computation
    for instruction in entry.instructions:
        if instruction.opcode == "add" and self.may_change():
            replace(instruction, create("subtract", instruction.operands))
            return True
    return honest(self, module)

Cse.run = run
"""


class Broken:
    """A module that goes wrong with the n-th change of a pass."""

    def __init__(self, culprit: str, change: int) -> None:
        self.culprit = culprit
        self.change = change
        self.trials = 0

    def __call__(self, flags: Sequence[str]) -> Outcome:
        self.trials += 1
        (flag,) = flags
        name, *amount = flag.removeprefix("--xla_disable_hlo_passes=").removeprefix("--xla_fuel=").split("=")
        is_harmless = name == self.culprit and (not amount or int(amount[0]) < self.change)
        return Outcome.GOOD if is_harmless else Outcome.CRASH


@pytest.mark.parametrize("change", [1, 2, 3, 7, 8, 9, 1000])
def test_finds_pass_and_change(change: int) -> None:
    broken = Broken("cse", change)
    assert find_culprit(["dce", "cse", "fusion"], broken, Outcome.CRASH) == Culprit("cse", change)
    assert broken.trials < 25


def test_no_single_pass() -> None:
    assert find_culprit(["dce", "fusion"], Broken("cse", 1), Outcome.CRASH) is None


def test_inputs_are_passed_on(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("bisect", softmax, f"--inputs={tmp_path / 'missing.npz'}")
    assert ran.code == 1
    assert "fails with an error" in ran.out


def test_nothing_is_wrong(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("bisect", softmax)
    assert ran.code == 0
    assert "there is nothing to find" in ran.out


def test_pass_that_changes_results_is_found(
    hlo_file: Callable[..., Path],
    tmp_path: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    xlalite: Callable[..., object],
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BREAKS_CSE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{repository}")
    path = hlo_file(
        "  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n  e = f32[4] exponential(x)\n"
        "  f = f32[4] exponential(x)\n  z = f32[4] add(e, y)\n  ROOT m = f32[4] multiply(z, f)"
    )
    ran = xlalite("bisect", path)
    assert ran.code == 1
    assert "module gives other results\n" in ran.out
    assert "cse is to blame: without it all is well (--xla_disable_hlo_passes=cse)\n" in ran.out
    assert "wrong with --xla_fuel=cse=1\n" in ran.out
