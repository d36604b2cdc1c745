"""Peak memory of a call beside what memory_analysis promises: `python tests/benchmarks/memory.py`.

Each program runs in a process of its own on Linux, whose kernel keeps the peak of the resident set and lets a process
reset it. Inputs are resident before the call, so the peak of a call should grow by outputs and scratch memory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import xlalite as xl

_CHAIN = """HloModule chain
ENTRY e {
  x = f32[4096,4096] parameter(0)
  a = f32[4096,4096] exponential(x)
  t = f32[4096,4096] transpose(a), dimensions={1,0}
  r = f32[4096,4096] reverse(x), dimensions={0}
  p = f32[4096,4096] dot(t, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  u = f32[4096,4096] transpose(p), dimensions={1,0}
  ROOT s = f32[4096,4096] add(u, x)
}
"""

_STEP = (Path(__file__).parent / "training.py").read_text().split('STEP = """')[1].split('"""')[0]

PROGRAMS = {"chain of transposes and a product, 4096x4096": _CHAIN, "softmax regression step, 100x784": _STEP}


def main() -> None:
    """Prints a table of all programs."""
    print(f"{'program':<46} {'inputs':>10} {'outputs':>10} {'scratch':>10} {'peak grew':>10}")
    for name in PROGRAMS:
        row = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True).stdout
        print(f"{name:<46} {row.strip()}")


def measure(name: str) -> None:
    """Prints the figures of one program, in KiB."""
    executable = xl.compile(xl.hlo.parse(PROGRAMS[name]))
    rng = np.random.default_rng(0)
    arguments = [rng.random(shape.dims, np.float32) for shape in executable.program_shape.parameters]
    analysis = executable.memory_analysis()
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident_kib("VmRSS")
    executable(*arguments)
    grew = _resident_kib("VmHWM") - before
    figures = (analysis.argument_size_bytes, analysis.output_size_bytes, analysis.temp_size_bytes)
    print(" ".join(f"{size // 1024:>10}" for size in figures), f"{grew:>10}")


def _resident_kib(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
