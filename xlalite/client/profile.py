"""`xlalite.profile`: where the time of a stretch of a program goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from xlalite.backends.compile_report import CompileReport
from xlalite.backends.kernel_profile import KernelProfile, KernelTime
from xlalite.backends.watch import Watch
from xlalite.framework.meaning.signatures import clocked_entries
from xlalite.hlo.record_tables import html_text
from xlalite.hlo.records import dataclass


@dataclass(slots=True)
class Profile:
    """What was measured between entering and leaving `profile`; prints as tables.

    Attributes:
        seconds: How long that was.
        compilations: What was compiled, with the time of each phase.
        programs: The kernels of each program that ran, the longest first.
    """

    seconds: float = 0.0
    compilations: tuple[CompileReport, ...] = field(default=())
    programs: tuple[KernelProfile, ...] = field(default=())

    def report(self) -> str:
        """Time in all, compilations by phase, and of each program the kernels beside this machine's roof."""
        from xlalite.backends.roofline import measured_roofline

        calls = sum(program.total.time_ns for program in self.programs) / 1e6
        compiling = sum(each.total_ms for each in self.compilations)
        lines = [f"{1e3 * self.seconds:.3f} ms: {calls:.3f} in programs, {compiling:.3f} in the compiler"]
        lines += ["", *(_phases(each) for each in self.compilations)] if self.compilations else []
        dtypes = frozenset[str]().union(*(program.dtypes for program in self.programs))
        roof = measured_roofline(dtypes=dtypes) if self.programs else None
        for program in self.programs:
            lines += ["", program.report(roof.share if roof else None)]
        return "\n".join(lines)

    def roofline_svg(self) -> str:
        """The kernels of all programs below this machine's roofline, as an `<svg>`."""
        from xlalite.backends.roofline import measured_roofline, roofline_svg

        kernels = tuple(kernel for program in self.programs for kernel in program.kernels)
        together = KernelProfile(KernelTime("", "", 0, 0, 0, 0), kernels)
        return roofline_svg(together, measured_roofline(dtypes=together.dtypes))

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        """As notebooks show it: the tables, and the roofline."""
        return html_text(self.report()) + (self.roofline_svg() if self.programs else "")


@contextmanager
def profile() -> Iterator[Profile]:
    """Measures the programs that run meanwhile, in all threads: functions of `jit`, clusters of sessions, executables.

    Each is compiled once more at its first call, with code that reads a clock around each kernel, some 60 ns; so call
    what is to be measured more than once. Afterwards everything is as it was. Programs that were loaded from bytes, and
    operations that sessions run one by one, are not measured.

    Returns:
        The profile, which is filled when the `with` block ends.
    """
    found = Profile()
    start = time.perf_counter()
    watch = Watch(clocks=True)
    try:
        with watch, clocked_entries():
            yield found
    finally:
        found.seconds = time.perf_counter() - start
        found.compilations = tuple(watch.compilations)
        found.programs = tuple(sorted(watch.programs, key=lambda program: -program.total.time_ns))


def _phases(report: CompileReport) -> str:
    phases = ", ".join(f"{name} {ms:.1f}" for name, ms in report.phases.items())
    return f"compiled {report.name} in {report.total_ms:.1f} ms: {phases}"
