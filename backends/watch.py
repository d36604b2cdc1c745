"""What programs do between two moments, for whoever watches: compilations, and the times of their kernels."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from xlalite.backends.compile_report import CompileReport
    from xlalite.backends.kernel_profile import KernelProfile


class Program(Protocol):
    """What may take times."""

    @property
    def takes_times(self) -> bool:
        """Whether its code takes the times of its kernels."""

    def run_clocked(self, *, wanted: bool) -> None:
        """Whether from now on calls of it run code that does."""

    def kernel_profile(self) -> KernelProfile:
        """The times in all calls so far, if it takes any."""


class Watch:
    """Watches from entering to leaving, in all threads.

    Attributes:
        compilations: What was compiled, as it ended; what came out of a cache is not among it.
        programs: The kernels of each program that ran, of those with clocks; known at the end.
    """

    def __init__(self, *, clocks: bool = False) -> None:
        """Watches nothing yet; with `clocks`, programs are compiled with them meanwhile."""
        self.clocks = clocks
        self.compilations: list[CompileReport] = []
        self.programs: tuple[KernelProfile, ...] = ()
        self._before: dict[Program, KernelProfile | None] = {}

    def __enter__(self) -> Watch:
        with _LOCK:
            _WATCHES.append(self)
            for program in tuple(_PROGRAMS) if self.clocks else ():
                program.run_clocked(wanted=True)
                if program.takes_times:
                    self._before[program] = program.kernel_profile()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _LOCK:
            _WATCHES.remove(self)
            before, self._before = self._before, {}
            for program in tuple(_PROGRAMS) if self.clocks and not wants_clocks() else ():
                program.run_clocked(wanted=False)
        profiles = (program.kernel_profile().since(earlier) for program, earlier in before.items())
        self.programs = tuple(profile for profile in profiles if profile.total.calls)

    def see(self, program: Program) -> None:
        """Keeps a new program with clocks until the end."""
        if self.clocks and program.takes_times:
            self._before[program] = None


def wants_clocks() -> bool:
    """Whether somebody watches kernels."""
    return any(watch.clocks for watch in _WATCHES)


def note_compilation(report: CompileReport) -> None:
    """Says that something was compiled."""
    for watch in tuple(_WATCHES):
        watch.compilations.append(report)


def note_program(program: Program) -> None:
    """Says that there is a program that takes times, or can be made to."""
    with _LOCK:
        _PROGRAMS.add(program)
        for watch in _WATCHES:
            watch.see(program)


_LOCK = threading.RLock()
_WATCHES: list[Watch] = []
_PROGRAMS: WeakSet[Program] = WeakSet()
