"""What a workload is, and how its contestants are compared and timed."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

Call = Callable[[], object]

OWN = "xlalite"
PEERS = ("jax", "numpy", "scipy", "numba", "onnxruntime", "torch")
"""Packages that workloads may be given functions for; the result of each is waited for."""


@dataclass(frozen=True)
class Contest:
    """One piece of work of one size, ready to run.

    Attributes:
        contestants: Name -> a call that does the work once and waits for the result; ours is the first.
        peers: Package -> what makes such a call, importing the package.
        executable: Our program, which says how much memory and arithmetic it needs.
        traffic: Bytes that must be read and written, where these are not all arguments and all results.
        flops: Arithmetic that must be done, where it is not what the program's instructions count.
        tolerance: Largest difference of results in units of the largest element; None if they are not compared.
    """

    contestants: Mapping[str, Call]
    peers: Mapping[str, Callable[[], Call]] = field(default_factory=dict)
    executable: Any = None
    traffic: tuple[int, int] | None = None
    flops: int | None = None
    tolerance: float | None = 1e-4

    def enter(self, packages: Sequence[str] = PEERS) -> Mapping[str, Call]:
        """All contestants, of the packages only those that are asked for and installed."""
        entering = {name: make() for name, make in self.peers.items() if name in packages and has(name)}
        return {**self.contestants, **entering}

    def work(self) -> tuple[int, int, int]:
        """Bytes read, bytes written and arithmetic operations; zeros if there is no program to ask."""
        if self.executable is None:
            return 0, 0, 0
        memory, cost = self.executable.memory_analysis(), self.executable.cost_analysis()
        counted = int(cost["flops"] + cost["transcendentals"])
        traffic = self.traffic or (memory.argument_size_bytes, memory.output_size_bytes)
        return *traffic, counted if self.flops is None else self.flops

    def peak_bytes(self) -> int:
        """What our program holds at its peak, arguments and results included."""
        return 0 if self.executable is None else int(self.executable.memory_analysis().peak_bytes)


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    Attributes:
        label: What is done, with places for the sizes.
        build: Makes the contest of given sizes; without sizes, a tiny one, for tests.
        sizes: What is measured.
    """

    label: str
    build: Callable[..., Contest]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The label with the sizes."""
        return self.label.format(**self.sizes)


@dataclass(frozen=True)
class Times:
    """Seconds for one call: wall clock, and of all processors together on average.

    The system books the time of other threads a tick late, so that the least of many short measurements tells nothing.
    """

    best: float
    median: float
    cpu: float


class DisagreementError(AssertionError):
    """Two contestants computed different things."""


def workload(label: str, build: Callable[..., Contest], **sizes: int) -> Workload:
    """A row with sizes by name."""
    return Workload(label, build, sizes)


def contest(own: Any, arguments: Sequence[Any], executable: Any, **options: Any) -> Contest:
    """Our program beside whichever peers are installed.

    Args:
        own: Called with the arguments.
        arguments: NumPy arrays.
        executable: The program behind `own`.
        options: For a package of `PEERS`, what makes a function of the arguments, given the package; `plain`, what
            makes one for NumPy and for jax, given `numpy` or `jax.numpy`; else fields of `Contest`.
    """
    plain = options.pop("plain", None)
    makers = {package: options.pop(package, None) for package in PEERS}
    if plain is not None:
        makers["numpy"] = makers["numpy"] or plain
        makers["jax"] = makers["jax"] or (lambda jax: plain(jax.numpy))
    peers = {
        package: partial(_entered, package, make, arguments) for package, make in makers.items() if make is not None
    }
    return Contest({OWN: lambda: own(*arguments)}, peers, executable, **options)


def agree(calls: Mapping[str, Call], tolerance: float) -> None:
    """Runs every contestant once.

    Raises:
        DisagreementError: The largest difference of a result from ours is above `tolerance` times its largest element.
    """
    results = {name: leaves(call()) for name, call in calls.items()}
    ours = results[OWN]
    for name, theirs in results.items():
        if len(ours) != len(theirs):
            raise DisagreementError(f"{name} gives {len(theirs)} results, {OWN} {len(ours)}")
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a.shape != b.shape:
                raise DisagreementError(f"result {i} of {name} has shape {b.shape}, of {OWN} {a.shape}")
            difference, scale = np.max(np.abs(a - b), initial=0), np.max(np.abs(b), initial=1e-30)
            if not difference <= tolerance * scale:
                raise DisagreementError(f"result {i} of {name} differs from {OWN} by {difference} at most, of {scale}")


def leaves(result: object) -> list[np.ndarray]:
    """The arrays of a result, widened for subtraction."""
    if isinstance(result, tuple | list):
        return [leaf for each in result for leaf in leaves(each)]
    if type(result).__module__ == "torch":
        result = result.double() if result.is_floating_point() else result  # type: ignore[attr-defined]
    array = np.asarray(result)
    return [array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)]


def measure(contestants: Mapping[str, Call], seconds: float) -> Mapping[str, Times]:
    """Lets the contestants take turns for about so many seconds, each at least three times.

    Calls shorter than the clock can tell are timed many at a time. A contestant that has used up its share waits for
    the others.
    """
    repeats = {name: _repeats(call) for name, call in contestants.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    spent = dict.fromkeys(contestants, 0.0)
    share = seconds / len(contestants)
    while waiting := [name for name in contestants if spent[name] < share or len(times[name]) < 3]:
        for name in waiting:
            call, count = contestants[name], repeats[name]
            start, start_cpu = time.perf_counter(), time.process_time()
            for _ in range(count):
                call()
            taken, cpu = time.perf_counter() - start, time.process_time() - start_cpu
            times[name].append((taken / count, cpu / count))
            spent[name] += taken
    return {name: _summary(taken) for name, taken in times.items()}


def has(package: str) -> bool:
    """Whether a peer is installed, and what states its programs."""
    needed = (package, "onnx") if package == "onnxruntime" else (package,)
    return all(importlib.util.find_spec(each) is not None for each in needed)


def peer_notes() -> list[str]:
    """A word about each peer that is not here."""
    return [f"{package} is not installed: left out" for package in PEERS if not has(package)]


def _entered(package: str, make: Callable[[ModuleType], Any], arguments: Sequence[Any]) -> Call:
    module: Any = importlib.import_module(package)
    function = make(module)
    if package == "jax":
        compiled, devices = module.jit(function), [module.device_put(each) for each in arguments]
        return lambda: module.block_until_ready(compiled(*devices))
    if package == "torch":
        tensors = [_tensor(module, each) for each in arguments]
        return lambda: function(*tensors)
    return lambda: function(*arguments)


def _tensor(torch: Any, array: np.ndarray) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _repeats(call: Call) -> int:
    """How many calls take a tenth of a millisecond; warms the call up."""
    call()
    call()
    start = time.perf_counter()
    call()
    return max(1, int(1e-4 / max(time.perf_counter() - start, 1e-8)))


def _summary(taken: Sequence[tuple[float, float]]) -> Times:
    walls, cpus = zip(*taken, strict=True)
    return Times(min(walls), statistics.median(walls), statistics.fmean(cpus))
