"""Compilation takes time in proportion to the number of instructions: each phase, for each form of a large module.

The quick test counts calls of functions, Python's own among them, which no other process can disturb; the slow one
holds the clock against it. Of calls, what is added between three sizes, each twice the one before, must double; where
the first step adds less than its share, since kernels that turn out equal are made once, the second may add its own.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

import pytest

from xlalite.backends.base import CompileOptions
from xlalite.backends.cpu.compilation.compilation import Compilation, Step
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.pass_record import PassRecord

Clock = Callable[[], float]
_Result = TypeVar("_Result")

FORMS = (
    "chain", "blocks", "mixed", "outputs", "cumulated_outputs", "training_step", "concatenation", "parameters",
    "readers", "updates", "loops", "wide_loop", "branches", "calls", "transposes",
)  # fmt: skip


UNTIL_CODE = (Step.GIVEN, Step.OPTIMIZED, Step.ASSIGNED, Step.EMITTED)


class Phases:
    """What a clock shows for each phase, each pass by itself; an observer of the passes."""

    def __init__(self, clock: Clock) -> None:
        self.spent: dict[str, float] = {}
        self._clock = clock
        self._start = 0.0

    def add(self, name: str, work: Callable[[], _Result]) -> _Result:
        start = self._clock()
        result = work()
        self.spent[name] = self.spent.get(name, 0.0) + self._clock() - start
        return result

    def before_pass(self, module: HloModule, record: PassRecord) -> None:
        self._start = self._clock()

    def after_pass(self, module: HloModule, record: PassRecord) -> None:
        self.spent[record.name] = self.spent.get(record.name, 0.0) + self._clock() - self._start

    def failed_pass(self, module: HloModule, record: PassRecord) -> str | None:
        return None


def phases_of(text: str, clock: Clock) -> dict[str, float]:
    """What compiling a module takes, phase by phase."""
    phases = Phases(clock)
    module = phases.add("parse", lambda: parse(text))
    phases.add("verify", lambda: verify(module))
    phases.add("print", module.to_string)
    phases.add("fingerprint", lambda: module_fingerprint(module))
    # Threads are given: how many there may be is read from files once a second.
    request = phases.add("clone", lambda: CompileRequest.of(module, CompileOptions(num_threads=2)))
    steps = Compilation(request, observers=(phases,)).steps()
    for step in UNTIL_CODE:
        assert phases.add(step.name, lambda: next(steps)) is step
    return phases.spent


@contextmanager
def no_collection() -> Iterator[None]:
    """Keeps the collector of cycles from looking at all that earlier phases made while a phase is timed.

    It does so whenever there are a quarter more objects: linear in all, but it hits one phase or another.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def counted_calls() -> Iterator[Clock]:
    """A clock that shows how many functions have been called."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(note)
    try:
        yield lambda: count
    finally:
        sys.setprofile(None)


def steeper(found: list[dict[str, float]], least: float, limit: float) -> dict[str, list[float]]:
    """Phases that take more than `least` and whose increase grows by more than `limit`."""
    result = {}
    for name, large in found[2].items():
        small, middle = (sizes.get(name, 0.0) for sizes in found[:2])
        if large > least and large - middle > limit * max(middle - small, middle / 2):
            result[name] = [small, middle, large]
    return result


@pytest.mark.parametrize("form", FORMS)
def test_each_phase_calls_in_proportion(form: str, large_modules: dict[str, Callable[[int], str]]) -> None:
    text = large_modules[form]
    phases_of(text(8), lambda: 0.0)  # What is imported or made once is not counted.
    found = []
    for size in (16, 32, 64):
        with counted_calls() as clock:
            found.append(phases_of(text(size), clock))
    assert steeper(found, least=2000, limit=2.6) == {}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_phase_takes_time_in_proportion(form: str, large_modules: dict[str, Callable[[int], str]]) -> None:
    """The best of three runs; four times the size takes less than eight times as long.

    Increases are too small to be compared on a busy machine, where caches cost what they like. A phase that is half
    quadratic at the small size fails; phases under 0.1 s say nothing.
    """
    text = large_modules[form]
    found = []
    for size in (2000, 8000):
        module = text(size)
        runs = []
        for _ in range(3):
            with no_collection():
                runs.append(phases_of(module, time.process_time))
        found.append({name: min(run[name] for run in runs) for name in runs[0]})
    small, large = found
    times = {name: (small.get(name, 0.0), spent) for name, spent in large.items()}
    assert {name: pair for name, pair in times.items() if pair[1] > max(0.1, 8 * pair[0])} == {}


def test_every_form_is_tried(large_modules: dict[str, Callable[[int], str]]) -> None:
    assert tuple(large_modules) == FORMS
