"""Times contestants in turn."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """One piece of work.

    Attributes:
        name: What is done, with sizes.
        make: Makes the contestants: name -> a call that does the work once and waits for the result.
        calls: Calls timed together, for work that is shorter than the clock can tell.
    """

    name: str
    make: Callable[[], Mapping[str, Callable[[], object]]]
    calls: int = 1


@dataclass(frozen=True)
class Result:
    """Seconds for one call."""

    contestant: str
    best: float
    median: float


def measure(workload: Workload, seconds: float) -> Sequence[Result]:
    """Lets the contestants take turns for about so many seconds."""
    contestants = workload.make()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        for _ in range(3):
            call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, call in contestants.items():
            start = time.perf_counter()
            for _ in range(workload.calls):
                call()
            times[name].append((time.perf_counter() - start) / workload.calls)
    return [Result(name, min(taken), statistics.median(taken)) for name, taken in times.items()]


def has(package: str) -> bool:
    """Whether a peer is installed."""
    return importlib.util.find_spec(package) is not None


def peer_notes() -> list[str]:
    """A word about each peer that is not here."""
    return [f"{package} is not installed: left out" for package in ("jax",) if not has(package)]
