"""Lists of passes that run in order, once or until nothing changes any more."""

from __future__ import annotations

from typing import TypeAlias

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.instrumentation import PIPELINE_END, Instrumentation
from xlalite.passes.core.late_pass import LatePass

# Rounds of a fixpoint without suspicion: nearly every module settles within these.
_TRUSTED_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages in order, each once.

    Attributes:
        name: Name in dumps and records.
        stages: Passes, or pipelines and fixpoints inside this one.
    """

    name: str
    stages: tuple[Stage, ...]

    def run(self, module: HloModule, instrumentation: Instrumentation | None = None) -> bool:
        """Runs all stages; says whether any changed the module.

        Raises:
            PassError: A pass failed, broke the module or lied.
            VerificationError: The module was invalid to begin with.
        """
        instrumentation = instrumentation or Instrumentation()
        instrumentation.verify_input(module, self.name)
        changed = self.run_stages(module, instrumentation)
        if changed:
            instrumentation.verify_output(module, self.name)
        return changed

    def run_stages(self, module: HloModule, instrumentation: Instrumentation) -> bool:
        """Runs all stages on a module that is known to be valid."""
        changed = False
        for position, stage in enumerate(self.stages):
            changed |= _run_stage(stage, module, instrumentation, self.name, _name_at(self.stages, position + 1))
        return changed


@dataclass(frozen=True, slots=True)
class FixPoint:
    """Stages in order, over and over, until each of them ran without a change.

    A module that comes back to an earlier state is oscillating between passes that undo each other; the fixpoint then
    stops and records which ones. The round limit only bounds the time: the module is valid after every round.

    Attributes:
        name: Name in dumps and records.
        stages: Passes, or pipelines inside this one.
        max_rounds: Rounds after which the module stays as it is.
    """

    name: str
    stages: tuple[Stage, ...]
    max_rounds: int = 25

    def run(self, module: HloModule, instrumentation: Instrumentation | None = None) -> bool:
        """Runs the stages to a fixpoint; says whether any changed the module.

        Raises:
            PassError: A pass failed, broke the module or lied; or passes undo each other and `check_passes` is set.
            VerificationError: The module was invalid to begin with.
        """
        instrumentation = instrumentation or Instrumentation()
        instrumentation.verify_input(module, self.name)
        changed = self.run_stages(module, instrumentation)
        if changed:
            instrumentation.verify_output(module, self.name)
        return changed

    def run_stages(self, module: HloModule, instrumentation: Instrumentation) -> bool:
        """Runs the stages on a module that is known to be valid."""
        first_decision = len(module.decisions)
        changed = self._run_rounds(module, instrumentation)
        _drop_repeated_decisions(module, first_decision)
        return changed

    def _run_rounds(self, module: HloModule, instrumentation: Instrumentation) -> bool:
        changed = False
        unchanged_stages = 0
        seen: dict[str, int] = {}
        for round_number in range(self.max_rounds):
            changed_here: list[str] = []
            for position, stage in enumerate(self.stages):
                following = _name_at(self.stages, (position + 1) % len(self.stages))
                if _run_stage(stage, module, instrumentation, self.name, following):
                    changed, unchanged_stages = True, 0
                    changed_here.append(stage.name)
                else:
                    unchanged_stages += 1
                if unchanged_stages == len(self.stages):
                    return changed
            if round_number >= _TRUSTED_ROUNDS and self._oscillates(module, instrumentation, seen, changed_here):
                return changed
        module.record(self.name, (module.name,), "stopped", "round limit reached", {"rounds": self.max_rounds})
        return changed

    def _oscillates(
        self, module: HloModule, instrumentation: Instrumentation, seen: dict[str, int], changed_here: list[str]
    ) -> bool:
        state = module_fingerprint(module)
        if state not in seen:
            seen[state] = len(seen)
            return False
        culprits = ", ".join(dict.fromkeys(changed_here))
        module.record(
            self.name, tuple(changed_here), "stopped", "passes undo each other", {"period": len(seen) - seen[state]}
        )
        if instrumentation.options.check_passes:
            raise PassError(f"fixpoint {self.name} on module {module.name}: passes undo each other: {culprits}")
        return True


Stage: TypeAlias = HloPass | LatePass | Pipeline | FixPoint

_LISTS = (Pipeline, FixPoint)


def pass_names(stage: Stage) -> tuple[str, ...]:
    """Names of all passes in a stage, in order, each once."""
    if isinstance(stage, _LISTS):
        return tuple(dict.fromkeys(name for inner in stage.stages for name in pass_names(inner)))
    return (stage.name,)


def _drop_repeated_decisions(module: HloModule, first: int) -> None:
    """Keeps one of equal records: what is refused in one round is refused in the next."""
    kept = {str(decision): decision for decision in reversed(module.decisions[first:])}
    module.decisions[first:] = reversed(kept.values())


def _run_stage(
    stage: Stage, module: HloModule, instrumentation: Instrumentation, pipeline: str, following: str
) -> bool:
    if isinstance(stage, _LISTS):
        return stage.run_stages(module, instrumentation)
    return instrumentation.run_pass(stage, module, pipeline, following)


def _name_at(stages: tuple[Stage, ...], position: int) -> str:
    return stages[position].name if position < len(stages) else PIPELINE_END
