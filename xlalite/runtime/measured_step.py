"""Steps that run a cluster both ways in turn, and keep to the faster: its code, or its operations one by one."""

from __future__ import annotations

import enum
import functools
import time
from dataclasses import field

from xlalite.framework.meaning.signatures import SignatureCache
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.cluster_step import ClusterStep
from xlalite.runtime.operation_step import PlanRegisters
from xlalite.runtime.recompilation import STAGE
from xlalite.runtime.trace import StepTrace
from xlalite.runtime.variables import VariableStore

RUNS_EACH_WAY = 3
_REMEMBERED_TRIALS = 1024


class _Way(enum.Enum):
    """How a cluster runs; the value is the verdict for it."""

    COMPILED = "its code runs"
    OP_BY_OP = "runs op by op"


@dataclass(slots=True)
class _Trial:
    """The runs so far on arrays of some shapes.

    Attributes:
        seconds: How long they took, for each way.
        chosen: The way that was faster.
    """

    seconds: dict[_Way, list[float]] = field(default_factory=lambda: {way: [] for way in _Way})
    chosen: _Way | None = None


class MeasuredClusterStep(ClusterStep):
    """Both ways have the same meaning, so each run in turn takes one; a run that compiles is not counted."""

    @functools.cached_property
    def _trials(self) -> SignatureCache[_Trial]:
        return SignatureCache(_REMEMBERED_TRIALS)

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Computes the outputs and updates the variables."""
        shapes = tuple(registers[number].shape for number in self._arrays)  # type: ignore[union-attr]  # not host-only
        trial = self._trials.obtain(shapes, _Trial)
        way = trial.chosen or min(_Way, key=lambda each: len(trial.seconds[each]))
        compilations, host_runs = self._policy.compilations, self.host_runs
        began = time.perf_counter()
        if way is _Way.OP_BY_OP:
            self._policy.runs += 1
            self._run_fallback(registers, store, trace)
        else:
            super().run(registers, store, trace)
            if (self._policy.compilations, self.host_runs) != (compilations, host_runs):
                return
        if trial.chosen is None:
            trial.seconds[way].append(time.perf_counter() - began)
            if min(map(len, trial.seconds.values())) == RUNS_EACH_WAY:
                self._choose(trial)

    def _choose(self, trial: _Trial) -> None:
        best = {way: min(seconds) for way, seconds in trial.seconds.items()}
        trial.chosen = min(best, key=lambda way: best[way])
        numbers = {
            "µs compiled": round(1e6 * best[_Way.COMPILED], 1),
            "µs op by op": round(1e6 * best[_Way.OP_BY_OP], 1),
            "ms to compile": round(1e3 * self.compiler.history.seconds, 1),
        }
        decision = Decision(STAGE, (self.cluster.name,), trial.chosen.value, "that was faster", numbers)
        self.compiler.history.decisions.append(decision)
