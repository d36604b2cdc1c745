"""Measures compilations of large modules: `python tests/benchmarks/compile_time.py [--markdown] FORM INSTRUCTIONS...`.

A form is a function of `tests/large_modules.py`, or `all` of them, grown to about so many instructions. Each size is
compiled once, in a process of its own, without a cache. Printed are the CPU seconds of the whole, how much memory the
process used at its peak, text and module included, and how both compare with the size before; `--markdown`: as a table.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import large_modules

import xlalite as xl

_TITLES = ("form", "instructions", "CPU s", "peak MiB", "instructions, times the size before", "CPU, times that before")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one compilation took."""

    instructions: int
    seconds: float
    peak_mib: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print a table")
    parser.add_argument("--here", action="store_true", help="measure one form and size in this process")
    parser.add_argument("form", choices=[*large_modules.FORMS, "all"])
    parser.add_argument("instructions", type=int, nargs="+")
    options = parser.parse_args()
    if options.here:
        found = measured(options.form, options.instructions[0])
        print(found.instructions, found.seconds, found.peak_mib)
        return 0
    if options.markdown:
        print("| " + " | ".join(_TITLES) + " |\n|---" + "|--:" * (len(_TITLES) - 1) + "|", flush=True)
    for form in large_modules.FORMS if options.form == "all" else [options.form]:
        before: Measurement | None = None
        for size in options.instructions:
            found = measured_elsewhere(form, size)
            print(row(form, found, before, markdown=options.markdown), flush=True)
            before = found
    return 0


def measured_elsewhere(form: str, instructions: int) -> Measurement:
    """One compilation in a new process."""
    command = [sys.executable, __file__, "--here", form, str(instructions)]
    count, seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return Measurement(int(count), float(seconds), float(peak))


def measured(form: str, instructions: int) -> Measurement:
    """One compilation in this process, which must not have compiled anything large."""
    text = large_modules.FORMS[form](size_of(form, instructions))
    # The first compilation of a process imports the compiler.
    xl.compile(xl.hlo.parse(large_modules.chain(4)), options=xl.CompileOptions(use_cache=False))
    module = xl.hlo.parse(text)
    start = time.process_time()
    xl.compile(module, options=xl.CompileOptions(use_cache=False))
    seconds = time.process_time() - start
    return Measurement(count_of(module), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def size_of(form: str, instructions: int) -> int:
    """What the form must be asked for to have about so many instructions, in which all forms are linear."""
    small, large = (count_of(xl.hlo.parse(large_modules.FORMS[form](size))) for size in (64, 128))
    return max(1, round(64 + 64 * (instructions - small) / (large - small)))


def count_of(module: xl.hlo.HloModule) -> int:
    """The instructions of all computations."""
    return sum(map(len, module.computations()))


def row(form: str, found: Measurement, before: Measurement | None, *, markdown: bool) -> str:
    """One line of the table, or of plain text."""
    times = ("", "")
    if before is not None:
        pairs = ((found.instructions, before.instructions), (found.seconds, before.seconds))
        times = (f"{pairs[0][0] / pairs[0][1]:.1f}", f"{pairs[1][0] / pairs[1][1]:.1f}")
    if markdown:
        cells = (form, f"{found.instructions:,}", f"{found.seconds:.1f}", f"{found.peak_mib:.0f}", *times)
        return f"| {' | '.join(cells)} |"
    growth = f"  {times[0]} times the size before, {times[1]} times the seconds" if before is not None else ""
    size = f"{form:<18} {found.instructions:>7} instructions"
    return f"{size}  {found.seconds:7.2f} s of CPU  {found.peak_mib:6.0f} MiB{growth}"


if __name__ == "__main__":
    sys.exit(main())
