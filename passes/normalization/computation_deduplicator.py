"""Lets all instructions that apply equal functions to elements apply the same one."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import Fingerprints
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class ComputationDeduplicator(HloPass):
    """Calls one computation where equal ones are applied to elements, and removes the others.

    Front ends write a reducer for each reduction; every later pass then looks at the few that differ.
    """

    name: ClassVar[str] = "computation-deduplicator"
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Changes the calls; says whether there were equal computations."""
        fingerprints = Fingerprints()
        first: dict[str, HloComputation] = {}
        merged: Counter[str] = Counter()
        for instruction in module.instructions():
            if not instruction.called_computations or not instruction.op.calls.applies_to_elements:
                continue
            called = instruction.called_computations
            kept = tuple(first.setdefault(fingerprints.of_computation(one), one) for one in called)
            if kept != called and self.may_change():
                instruction.called_computations = kept
                merged.update(one.name for one, old in zip(kept, called, strict=True) if one is not old)
        for name, count in merged.items():
            module.record(self.name, (name,), "kept", "others are equal", {"calls": count})
        if merged:
            remove_uncalled_computations(module)
        return bool(merged)
