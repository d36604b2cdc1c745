"""What a traced run of a cluster records: how it came to its code, phase by phase, and that code, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.kernel_profile import KernelProfile
from xlalite.backends.watch import Watch
from xlalite.framework.meaning.host import Array
from xlalite.runtime.compilation import CompiledCluster
from xlalite.runtime.trace import StepTrace


class ClusterTrace:
    """The records of one run.

    Kernels are recorded one behind the other, each with the time that all its calls took: the code counts, and writes
    no diary. It is the cluster's code with clocks, which is compiled beside the trace's time.

    Attributes:
        compilations: To be entered while the cluster is compiled.
    """

    def __init__(self, trace: StepTrace, name: str) -> None:
        """Begins with looking for code."""
        self.compilations = Watch()
        self._trace, self._name = trace, name
        self._began = trace.now()
        self._code: CompiledCluster | None = None
        self._code_began = 0
        self._before: KernelProfile | None = None

    def with_clocks(self, compiled: CompiledCluster) -> CompiledCluster:
        """The code that is to be run, now."""
        with self._trace.standing_still():
            self._code = compiled.clocked()
            if self._code.executable.takes_times:
                self._before = self._code.executable.kernel_profile()
        self._code_began = self._trace.now()
        return self._code

    def record_compile(self, inputs: Sequence[str]) -> None:
        """Records the way to the code; or that there is none, and the operations run one by one."""
        ended = self._code_began or self._trace.now()
        name = f"{self._name}/xla_compile"
        self._trace.record(name, "_XlaCompile", inputs, self._began, (), ended)
        phases = [phase for each in self.compilations.compilations for phase in each.phases.items()]
        taken = [(phase, phase, 1e6 * ms) for phase, ms in phases]
        self._trace.record_parts(name, taken, max(self._began, ended - round(sum(ns for _, _, ns in taken))))

    def record_run(self, inputs: Sequence[str], results: Sequence[Array]) -> None:
        """Records that the code ran until now."""
        name, code = f"{self._name}/xla_run", self._code
        scratch = 0 if code is None else code.executable.scratch_bytes
        self._trace.record(name, "_XlaRun", inputs, self._code_began, results, scratch_bytes=scratch)
        if code is not None and self._before is not None:
            kernels = code.executable.kernel_profile().since(self._before).kernels
            taken = [(kernel.name, kernel.kind, kernel.time_ns) for kernel in kernels if kernel.calls]
            self._trace.record_parts(name, taken, self._code_began)
