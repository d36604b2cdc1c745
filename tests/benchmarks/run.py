"""Runs the benchmarks beside their peers: `python tests/benchmarks/run.py [--only WORD] [--seconds S] [--json FILE]`.

Contestants of one workload take turns in one process, so that a machine whose speed drifts treats them alike; before,
their results are compared. Reported for each workload: the best time of our call, how many times as long jax and the
best peer take (above 1: we are faster), the same for the time of all processors together, which part of the machine's
limit we reach, and what our program promises to hold at its peak (`memory.py` measures that, in processes of their
own). `--times` adds every contestant. A peer that is not installed is left out with a word.

The limit is the larger of two times: of moving arguments and results at the bandwidth measured for about so much data,
and of the arithmetic at the peak of multiplications with additions, all processors at work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

# The threads of NumPy's products and of torch would otherwise watch for work while it is another's turn.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import (
    arrays,
    convolution_forms,
    convolution_models,
    convolutions,
    dense_models,
    indexing,
    linear_algebra,
    narrow,
    networks,
    ordering,
    points_and_pictures,
    pooling,
    products,
    programming,
    roofline,
    spectra,
    training,
    training_steps,
)
from benchmarks.harness import OWN, DisagreementError, Times, Workload, agree, measure, peer_notes

ROOMS = (
    arrays,
    narrow,
    products,
    convolutions,
    convolution_forms,
    convolution_models,
    indexing,
    ordering,
    points_and_pictures,
    pooling,
    spectra,
    linear_algebra,
    networks,
    dense_models,
    programming,
    training,
    training_steps,
)

_TITLES = ("workload", "time", "jax", "best peer", "", "jax, CPU", "best, CPU", "limit", "MiB")


@dataclass(frozen=True)
class Row:
    """What was found about a workload.

    Attributes:
        name: What is done, with sizes.
        times: Seconds by contestant; none if results disagree.
        share: Which part of the machine's limit we reach; 0 if unknown.
        peak_bytes: What our program holds at its peak, arguments and results included.
        problem: How results disagree.
    """

    name: str
    times: Mapping[str, Times]
    share: float = 0.0
    peak_bytes: int = 0
    problem: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Gives 1 if results of any workload disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", "--filter", default="", help="run workloads whose name contains this word")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each workload")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/benchmarks.md")
    parser.add_argument("--times", action="store_true", help="print the time of every contestant")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures into a file")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    chosen = parser.parse_args(arguments)
    wanted = [each for each in workloads() if chosen.only in each.name]
    if chosen.list:
        print("\n".join(each.name for each in wanted))
        return 0
    for note in peer_notes():
        print(note)
    machine = roofline.measured(min(0.2, chosen.seconds))
    print(machine)
    print(_line(_TITLES, markdown=chosen.markdown))
    if chosen.markdown:
        print("|---|" + "--:|" * (len(_TITLES) - 1))
    rows = []
    for each in wanted:
        rows.append(_run(each, machine, chosen.seconds))
        _print(rows[-1], markdown=chosen.markdown, times=chosen.times)
    if chosen.json:
        chosen.json.write_text(
            json.dumps({"machine": asdict(machine), "rows": [asdict(row) for row in rows]}, indent=1)
        )
    return int(any(row.problem for row in rows))


def workloads() -> list[Workload]:
    """All of them."""
    return [each for room in ROOMS for each in room.workloads()]


def _run(workload: Workload, machine: roofline.Roofline, seconds: float) -> Row:
    found = workload.build(**workload.sizes)
    calls = found.enter()
    try:
        if found.tolerance is not None:
            agree(calls, found.tolerance)
    except DisagreementError as problem:
        return Row(workload.name, {}, problem=str(problem))
    times = measure(calls, seconds)
    share = machine.seconds(*found.work()) / times[OWN].best
    return Row(workload.name, times, share, found.peak_bytes())


def _print(row: Row, *, markdown: bool, times: bool) -> None:
    if row.problem:
        print(_line((row.name, row.problem, *[""] * (len(_TITLES) - 2)), markdown=markdown), flush=True)
        return
    own = row.times[OWN]
    peers = {name: taken for name, taken in row.times.items() if not name.startswith(OWN)}
    jax = peers.get("jax")
    best = min(peers, key=lambda name: peers[name].best, default="")
    least = min((taken.cpu for taken in peers.values()), default=0.0)
    cells = (
        row.name,
        _time(own.best),
        _ratio(jax.best if jax else 0, own.best),
        _ratio(peers[best].best if best else 0, own.best),
        best,
        _ratio(jax.cpu if jax else 0, own.cpu),
        _ratio(least, own.cpu),
        f"{row.share:.0%}" if row.share else "",
        f"{row.peak_bytes / 2**20:.1f}" if row.peak_bytes else "",
    )
    print(_line(cells, markdown=markdown), flush=True)
    if times:
        for name, taken in row.times.items():
            print(f"    {name:<24} best {_time(taken.best)}, median {_time(taken.median)}, CPU {_time(taken.cpu)}")


def _line(cells: Sequence[str], *, markdown: bool) -> str:
    if markdown:
        return "| " + " | ".join(cells) + " |"
    return f"{cells[0]:<64}" + "".join(f" {cell:>11}" for cell in cells[1:])


def _ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.2f}" if theirs and ours else ""


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


if __name__ == "__main__":
    sys.exit(main())
