"""Long compilations say now and then where they are; short ones say nothing."""

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.passes.core import progress
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.core.pipeline import Pipeline

MODULE = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}
"""


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Slow(HloPass):
    """Takes some seconds by a clock."""

    clock: ClassVar[Clock]
    seconds: float = 0.0
    name: ClassVar[str] = "slow"

    def run(self, module: HloModule) -> bool:
        self.clock.now += self.seconds
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(Slow, "clock", clock, raising=False)
    return clock


def run(*seconds: float) -> None:
    Pipeline("p", tuple(Slow(seconds=one) for one in seconds)).run(parse(MODULE), Instrumentation())


@pytest.mark.usefixtures("clock")
def test_steps_are_named_once_two_seconds_have_passed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "xlalite")
    run(1.5, 0.7, 0.1, 0.2, 2.8, 0.3)
    assert caplog.messages == ["compiling m: slow, 2 instructions, 2 s", "compiling m: slow, 2 instructions, 5 s"]


@pytest.mark.usefixtures("clock")
def test_quick_compilations_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "xlalite")
    run(*[0.1 + 0.001 * number for number in range(15)])
    executable = get_backend("cpu").compile(parse(MODULE), CompileOptions(use_cache=False))
    np.testing.assert_array_equal(executable(np.ones(4, np.float32)), np.full(4, -1))
    assert caplog.messages == []


def test_backend_names_its_steps(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PAUSE_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "xlalite")
    get_backend("cpu").compile(parse(MODULE), CompileOptions(use_cache=False))
    steps = [message.removeprefix("compiling m: ").split(",")[0] for message in caplog.messages]
    assert steps[-3:] == ["buffer assignment", "LLVM IR", "machine code"]
    assert "scheduler" in steps
