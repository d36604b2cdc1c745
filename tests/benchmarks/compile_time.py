"""Measures compilations of large modules: `python tests/benchmarks/compile_time.py FORM SIZE...`.

A form is a function of `tests/large_modules.py`. Each size is compiled once, in a process of its own, without a cache.
Printed are the CPU seconds of the whole and how much memory the process used at its peak.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import large_modules

import xlalite as xl


def main(words: list[str]) -> int:
    form, *sizes = words
    if len(sizes) > 1:
        for size in sizes:
            subprocess.run([sys.executable, __file__, form, size], check=True)
        return 0
    text = getattr(large_modules, form)(int(sizes[0]))
    # The first compilation of a process imports the compiler.
    xl.compile(xl.hlo.parse(large_modules.chain(4)), options=xl.CompileOptions(use_cache=False))
    module = xl.hlo.parse(text)
    count = sum(len(computation) for computation in module.computations())
    start = time.process_time()
    xl.compile(module, options=xl.CompileOptions(use_cache=False))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{form:<12} {count:>7} instructions  {seconds:7.2f} s of CPU  {peak:6.0f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
