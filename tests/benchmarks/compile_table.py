"""Times compilations beside XLA's: `python tests/benchmarks/compile_table.py [--markdown] [--only WORD] [--sample N]`.

Each module is compiled by us and, from its HLO text, by the XLA of jax, in turns in one process and without caches;
reading the text counts for nobody. Printed of each is the quickest: milliseconds of our phases, of the whole by the
clock and of all processors together. Then follow N workloads of `run.py`, evenly out of all that have a program, and
the geometric means of our time over XLA's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from zlib import crc32

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.compile_programs import programs
from benchmarks.harness import OWN, Call, Workload, has
from benchmarks.run import workloads

import xlalite as xl
from xlalite.backends.compile_report import CompileReport
from xlalite.backends.cpu.compilation.phases import time_phases
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.hlo.garbage import few_collections

Peer = Callable[[str], Call | None]

_PHASES = {
    "check": ("copy", "fingerprint", "verification"),
    "passes": ("passes",),
    "buffers": ("buffer assignment",),
    "IR": ("LLVM IR",),
    "code": ("machine code",),
    "link": ("linking", "call"),
}
"""Columns of the table, and the phases that each adds up."""

_NOT_FOR_XLA = ("random graph of 20000",)
"""Programs that take XLA minutes."""

_TITLES = ("program", "instructions", *_PHASES, "total", "XLA", "ratio", "CPU", "XLA, CPU")


@dataclass(frozen=True)
class Row:
    """The quickest compilations of one module, in milliseconds; XLA's are 0 if it was not asked."""

    name: str
    instructions: int
    report: CompileReport
    cpu: float
    peer: float = 0.0
    peer_cpu: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/benchmarks.md")
    parser.add_argument("--only", default="", metavar="WORD", help="programs whose name contains this word")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="as many workloads of run.py as well")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each program")
    parser.add_argument("--alone", action="store_true", help="without XLA")
    parser.add_argument("--passes", action="store_true", help="print the time of every pass, too")
    options = parser.parse_args(arguments)
    peer = None if options.alone or not has("jax") else _peer()
    _print(_TITLES, markdown=options.markdown)
    if options.markdown:
        print("|---|" + "--:|" * (len(_TITLES) - 1))
    compared: list[Row] = []
    for name, module in chain(_programs(options.only), _sample(options.only, options.sample)):
        row = measured(name, module, peer, options.seconds)
        _print(cells(row), markdown=options.markdown)
        if options.passes:
            print(row.report)
        if row.peer:
            compared.append(row)
    if compared:
        walls = statistics.geometric_mean(row.report.total_ms / row.peer for row in compared)
        cpus = statistics.geometric_mean(row.cpu / row.peer_cpu for row in compared)
        print(f"\ngeometric mean of {len(compared)}: {walls:.2f} of XLA's time, {cpus:.2f} of all its processors'")
    return 0


def measured(name: str, module: xl.hlo.HloModule, peer: Peer | None, seconds: float) -> Row:
    """Compiles a module in turns, at least once and for about so many seconds."""
    contestants: dict[str, Call] = {OWN: partial(_compiled, module)}
    if peer is not None and name not in _NOT_FOR_XLA and (theirs := peer(module.to_string())) is not None:
        contestants["jax"] = theirs
    reports: list[CompileReport] = []
    walls: dict[str, list[float]] = {each: [] for each in contestants}
    cpus: dict[str, list[float]] = {each: [] for each in contestants}
    start = time.perf_counter()
    while not reports or time.perf_counter() - start < seconds:
        for each, call in contestants.items():
            begin, begin_cpu = time.perf_counter(), time.process_time()
            result = call()
            walls[each].append(1e3 * (time.perf_counter() - begin))
            cpus[each].append(1e3 * (time.process_time() - begin_cpu))
            if isinstance(result, CompileReport):
                reports.append(result)
    best = min(reports, key=lambda report: report.total_ms)
    size = sum(map(len, module.computations()))
    return Row(name, size, best, min(cpus[OWN]), *(min(taken.get("jax", [0.0])) for taken in (walls, cpus)))


def _compiled(module: xl.hlo.HloModule) -> CompileReport:
    with few_collections:
        return time_phases(CompileRequest.of(module, xl.CompileOptions()), CpuExecutable)


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    phases = row.report.phases
    times = [sum(phases[each] for each in group) for group in _PHASES.values()]
    peer = ("", "") if not row.peer else (_shown(row.peer), f"{row.report.total_ms / row.peer:.2f}")
    own = _shown(row.report.total_ms)
    peer_cpu = _shown(row.peer_cpu) if row.peer else ""
    return (row.name, str(row.instructions), *map(_shown, times), own, *peer, _shown(row.cpu), peer_cpu)


def _programs(word: str) -> Iterator[tuple[str, xl.hlo.HloModule]]:
    return ((name, make()) for name, make in programs().items() if word in name)


def _sample(word: str, count: int) -> Iterator[tuple[str, xl.hlo.HloModule]]:
    """Spread over all; a workload more changes one of the sample at most."""
    wanted = [each for each in workloads() if word in each.name]
    spread = sorted(wanted, key=lambda each: crc32(each.name.encode()))
    found = dict(islice((program for each in spread if (program := _program(each)) is not None), count))
    return ((each.name, found[each.name]) for each in wanted if each.name in found)


def _program(workload: Workload) -> tuple[str, xl.hlo.HloModule] | None:
    executable = workload.build(**workload.sizes).executable
    if executable is None:
        return None
    return workload.name, xl.hlo.parse(executable.as_text("hlo-before-optimizations"))


def _peer() -> Peer:
    """Compilers for HLO text by the XLA that jax brings; None for text that it does not read or compile."""
    import jax
    from jaxlib import _hlo, _jax

    device = jax.devices("cpu")[0]
    devices = _jax.DeviceList((device,))

    def compiler(text: str) -> Call | None:
        try:
            computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
            module = _jax.mlir.xla_computation_to_mlir_module(computation)
        except RuntimeError:
            return None
        call = partial(device.client.compile_and_load, module, devices)
        try:
            call()
        except RuntimeError:  # an operation that it does not compile for the CPU
            return None
        return call

    return compiler


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def _print(cells: Sequence[str], *, markdown: bool) -> None:
    if markdown:
        print("| " + " | ".join(cells) + " |", flush=True)
    else:
        print(f"{cells[0]:<44.44}" + "".join(f" {cell:>8.8}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
