"""`xlalite bench`: how long a module takes to compile and to run, and what rates that makes."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.compile_report import CompileReport
from xlalite.backends.kernel_profile import KernelProfile
from xlalite.cli.arguments import CommandParser, add_file, add_platform, add_threads
from xlalite.cli.cache import shown_bytes
from xlalite.cli.errors import UsageError
from xlalite.cli.random_inputs import random_arguments
from xlalite.cli.reading import read_module, shown_name
from xlalite.client.compilation import compile_options
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Value

_BATCH_SECONDS = 1e-3
"""Calls quicker than this are timed together, so that reading the clock does not count."""

_COMPARED = {"best_us": "best call", "median_us": "median call", "compile_ms": "compilation"}
"""What is compared with a baseline."""

_COMPILATIONS = 4
"""How often a module is compiled without a cache."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of one module.

    Attributes:
        first_compile_ms: The first compilation of the process, which wakes LLVM up.
        compile_ms: The quickest of a few compilations without any cache.
        warm_compile_ms: Compilation when the cache has the code.
        best_us: The quickest call.
        median_us: The median of the calls.
        ninth_decile_us: Nine calls of ten take at most so long.
        calls: How many calls were made.
        gflops: Arithmetic operations per nanosecond of the quickest call, transcendental functions not among them.
        gbytes: Bytes that kernels read and write, per nanosecond of the quickest call.
        peak_bytes: Memory at the peak of a call.
        code_bytes: Size of the machine code.
    """

    first_compile_ms: float
    compile_ms: float
    warm_compile_ms: float
    best_us: float
    median_us: float
    ninth_decile_us: float
    calls: int
    gflops: float
    gbytes: float
    peak_bytes: int
    code_bytes: int

    def __str__(self) -> str:
        return (
            f"  compile  {self.compile_ms:.1f} ms, with a warm cache {self.warm_compile_ms:.2f} ms "
            f"(the first time {self.first_compile_ms:.1f} ms)\n"
            f"  run      best {_shown_us(self.best_us)}, median {_shown_us(self.median_us)}, "
            f"nine of ten within {_shown_us(self.ninth_decile_us)}, of {self.calls} calls\n"
            f"  rates    {self.gflops:.3g} GFLOP/s, {self.gbytes:.3g} GB/s\n"
            f"  memory   {shown_bytes(self.peak_bytes)} at the peak, machine code {shown_bytes(self.code_bytes)}"
        )


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    arguments, flags = _parser().read(words)
    options = compile_options(flags, arguments.num_threads)
    baseline = _read_baseline(arguments.baseline) if arguments.baseline else {}
    for path in arguments.files:
        module = read_module(path)
        if arguments.phases:
            report = quickest_compilation(module, arguments.platform, options)
            if arguments.json:
                print(json.dumps({"file": path, "module": module.name, "phases": report.phases}))
            else:
                print(f"{shown_name(path)}: module {module.name} on {arguments.platform}\n{report.table()}")
            continue
        if arguments.kernels:
            profile = measure_kernels(module, arguments.platform, options, arguments.min_time)
            if arguments.json:
                rows = [dataclasses.asdict(one) for one in profile.kernels]
                print(json.dumps({"file": path, "module": module.name, "kernels": rows}))
            else:
                print(f"{shown_name(path)}: module {module.name} on {arguments.platform}\n{profile}")
            continue
        measured = measure(module, arguments.platform, options, arguments.min_time)
        earlier = baseline.get(module.name)
        if arguments.json:
            print(json.dumps({"file": path, "module": module.name, **dataclasses.asdict(measured)}))
        else:
            print(f"{shown_name(path)}: module {module.name} on {arguments.platform}\n{measured}")
            if earlier is not None:
                print(f"  before   {_compared(measured, earlier)}")
            elif arguments.baseline:
                print(f"  before   {arguments.baseline} has no module {module.name}")
    return 0


def _read_baseline(path: str) -> dict[str, dict[str, float]]:
    """What an earlier `bench --json` printed, by the name of the module.

    Raises:
        UsageError: The file holds something else.
    """
    try:
        lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
        return {line["module"]: {name: line[name] for name in _COMPARED} for line in lines}
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"--baseline: {path} does not hold what bench --json prints: {error!r}") from error


def _compared(measured: Measurement, earlier: dict[str, float]) -> str:
    """How many times as quick each figure is as it was."""
    parts = []
    for name, words in _COMPARED.items():
        now, then = getattr(measured, name), earlier[name]
        ratio = then / now if now else 1.0
        shown = f"{ratio:.2f} times as quick" if ratio >= 1 else f"{1 / ratio:.2f} times as slow"
        parts.append(f"{words} {shown}")
    return ", ".join(parts)


def quickest_compilation(module: HloModule, platform: str, options: CompileOptions) -> CompileReport:
    """The phases of the quickest of a few compilations without any cache."""
    executable = get_backend(platform).compile(module, options)
    reports = [executable.compile_report() for _ in range(_COMPILATIONS)]
    return min(reports, key=lambda report: report.total_ms)


def measure(module: HloModule, platform: str, options: CompileOptions, min_seconds: float) -> Measurement:
    """Compiles a module and runs it on random inputs for at least so long."""
    backend = get_backend(platform)
    uncached = dataclasses.replace(options, use_cache=False)
    compilations = [_timed(lambda: backend.compile(module, uncached))[0] for _ in range(_COMPILATIONS)]
    backend.compile(module, options)
    warm_seconds, executable = _timed(lambda: backend.compile(module, options))
    calls = _time_calls(executable, random_arguments(module, np.random.default_rng(0)), min_seconds)
    best = min(calls)
    cost = executable.cost_analysis()
    return Measurement(
        first_compile_ms=1e3 * compilations[0],
        compile_ms=1e3 * min(compilations),
        warm_compile_ms=1e3 * warm_seconds,
        best_us=1e6 * best,
        median_us=1e6 * statistics.median(calls),
        ninth_decile_us=1e6 * sorted(calls)[len(calls) * 9 // 10],
        calls=len(calls),
        gflops=cost["flops"] / best / 1e9,
        gbytes=cost["bytes accessed"] / best / 1e9,
        peak_bytes=executable.memory_analysis().peak_bytes,
        code_bytes=executable.code_size_bytes,
    )


def measure_kernels(module: HloModule, platform: str, options: CompileOptions, min_seconds: float) -> KernelProfile:
    """Where the time of calls on random inputs, for at least so long, goes."""
    executable = get_backend(platform).compile(module, dataclasses.replace(options, profile=True))
    _time_calls(executable, random_arguments(module, np.random.default_rng(0)), min_seconds)
    return executable.kernel_profile()


def _parser() -> CommandParser:
    parser = CommandParser(
        "bench",
        "Measures compilation (without a cache, then with a warm one) and calls on random inputs.",
        "FILE... [options]",
    )
    add_file(parser, "files", nargs="+")
    add_platform(parser)
    add_threads(parser)
    parser.add_argument(
        "--min_time", type=_seconds, default=0.5, metavar="SECONDS", help="how long to run calls (default: 0.5)"
    )
    parser.add_argument(
        "--phases", action="store_true", help="instead: the time of each phase of the quickest compilation"
    )
    parser.add_argument("--kernels", action="store_true", help="instead: the time of each kernel, on cpu")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each file")
    parser.add_argument("--baseline", metavar="FILE", help="compare with what --json printed before, by module")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < 1e6:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, found {text!r}")
    return seconds


def _timed(make: Callable[[], Executable]) -> tuple[float, Executable]:
    start = time.perf_counter()
    made = make()
    return time.perf_counter() - start, made


def _time_calls(executable: Executable, arguments: Sequence[Value], min_seconds: float) -> list[float]:
    """Seconds of each call; of quick ones the mean of each batch, once for each call."""
    shapes = executable.program_shape.parameters
    call = executable.function if all(shape.is_array for shape in shapes) else executable
    call(*arguments)
    first, _ = _time_batch(call, arguments, 1)
    size = max(1, int(_BATCH_SECONDS / max(first, 1e-9)))
    calls: list[float] = []
    deadline = time.perf_counter() + min_seconds
    while not calls or time.perf_counter() < deadline:
        each, count = _time_batch(call, arguments, size)
        calls += [each] * count
    return calls


def _time_batch(call: Callable[..., object], arguments: Sequence[object], count: int) -> tuple[float, int]:
    repetitions = range(count)
    start = time.perf_counter()
    for _ in repetitions:
        call(*arguments)
    return (time.perf_counter() - start) / count, count


def _shown_us(time_us: float) -> str:
    return f"{time_us:.2f} µs" if time_us < 1e3 else f"{time_us / 1e3:.3f} ms"
