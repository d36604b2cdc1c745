"""Runs the benchmarks beside their peers: `python tests/benchmarks/run.py [--only WORD] [--seconds S] [--markdown]`.

Contestants of one workload take turns in one process, so that a machine whose speed drifts treats them alike.
Reported are the best and the median time of a call, and the ratio of the best times to xlalite's. A peer that is not
installed is left out with a word.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import arrays
import numpy_functions
import training
from harness import Result, Workload, measure, peer_notes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run workloads whose name contains this word")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each workload")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    workloads: list[Workload] = [*arrays.workloads(), *numpy_functions.workloads(), *training.workloads()]
    for note in peer_notes():
        print(note)
    if chosen.markdown:
        print("| workload | contestant | best | median | best / xlalite |\n|---|---|---|---|---|")
    for workload in workloads:
        if chosen.only in workload.name:
            _report(workload, measure(workload, chosen.seconds), markdown=chosen.markdown)
    return 0


def _report(workload: Workload, results: Sequence[Result], *, markdown: bool) -> None:
    own = next((result.best for result in results if result.contestant.startswith("xlalite")), None)
    for result in results:
        ratio = f"{result.best / own:.2f}" if own else "-"
        cells = (workload.name, result.contestant, _time(result.best), _time(result.median), ratio)
        if markdown:
            print("| " + " | ".join(cells) + " |")
        else:
            print(f"{cells[0]:<38} {cells[1]:<22} {cells[2]:>10} {cells[3]:>10} {cells[4]:>6}", flush=True)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


if __name__ == "__main__":
    sys.exit(main())
