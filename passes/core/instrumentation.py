"""Everything that happens around a pass: restriction, timing, verification, checks and the observers' callbacks.

Pipelines say which passes run in which order; this file says what running one means. It writes no files: observers do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from xlalite.hlo.errors import PassError, XlaliteError
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.instruction import tick
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.base import Fuel, HloPass
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.late_pass import LatePass
from xlalite.passes.core.pass_record import PassRecord
from xlalite.passes.core.progress import Progress

PIPELINE_START = "pipeline-start"
PIPELINE_END = "pipeline-end"


class PassObserver(Protocol):
    """Sees the module before and after each pass; must not change it."""

    def before_pass(self, module: HloModule, record: PassRecord) -> None:
        """Called before the pass runs."""

    def after_pass(self, module: HloModule, record: PassRecord) -> None:
        """Called after the pass ran and, if it is verified by itself, the module was valid."""

    def failed_pass(self, module: HloModule, record: PassRecord) -> str | None:
        """Called when the pass raised or broke the module; returns where it left a dump, if it did."""


class Instrumentation:
    """The state of one compilation's pass runs: options, observers, fuel, and the records.

    Attributes:
        options: What restricts and checks the passes.
        records: One record for each run so far, in order.
        progress: What says now and then how far the compilation is.
    """

    def __init__(self, options: DebugOptions | None = None, observers: Sequence[PassObserver] = ()) -> None:
        self.options = options if options is not None else DebugOptions()
        self.records: list[PassRecord] = []
        self.progress = Progress()
        self._observers = tuple(observers)
        self._fuel = {name: Fuel(limit) for name, limit in self.options.fuel}
        self._runs = 0
        self._sized: HloModule | None = None
        # Its computations and instructions, and their operations, looked at once a change.
        self._sizes, self._opcodes = (0, 0), frozenset[str]()
        # How often it was looked at; of passes that had nothing to change, which look that was, and when.
        self._looks = 0
        self._settled: dict[HloPass, tuple[int, int]] = {}

    def fuel_taken(self, pass_name: str) -> int:
        """How many changes a pass with fuel has made."""
        return self._fuel[pass_name].taken if pass_name in self._fuel else 0

    def verify_input(self, module: HloModule, pipeline: str) -> None:
        """Verifies the module that enters a pipeline, so that no pass is blamed for what it was given."""
        self._sized = None
        self._settled.clear()
        try:
            verify(module)
        except XlaliteError as error:
            error.add_note(f"the module was invalid before the first pass of pipeline {pipeline}")
            raise

    def verify_output(self, module: HloModule, pipeline: str) -> None:
        """Verifies the module that a pipeline has changed, unless that was done after each pass.

        Raises:
            PassError: Some pass broke it; `verify_passes` would say which.
        """
        if self.options.verifies_passes:
            return
        try:
            verify(module)
        except XlaliteError as error:
            raise PassError(f"pipeline {pipeline} on module {module.name}: a pass broke the module: {error}") from error

    def run_pass(self, given: HloPass | LatePass, module: HloModule, pipeline: str, following: str) -> bool:
        """Runs one pass with everything around it; says whether the module changed.

        A pass that found nothing to change, or reached its fixpoint, does not look again until another one has changed
        something, and one that is about operations that the module does not have does not look at all.

        Raises:
            PassError: The pass failed, broke the module, or lied about whether it changed it.
        """
        if self._sized is not module:
            self._look_at(module)
        about = given.opcodes
        is_concerned = about is None or not self._opcodes.isdisjoint(about)
        if not is_concerned and not self.options.check_passes:
            return False
        hlo_pass = given.loaded() if isinstance(given, LatePass) else given
        if not is_concerned:
            if hlo_pass.run(module):
                raise PassError(f"pass {hlo_pass.name} changed module {module.name}, which has none of its operations")
            return False
        look, since = self._settled.get(hlo_pass, (0, 0))
        if look == self._looks or not self.options.runs(hlo_pass.name):
            return False
        fuel = self._fuel.get(hlo_pass.name)
        if fuel is not None and fuel.left <= 0:
            return False
        self._runs += 1
        known = self._runs, pipeline, hlo_pass.name, following
        for observer in self._observers:
            observer.before_pass(module, PassRecord(*known))
        before = module_fingerprint(module) if self.options.check_passes else None
        sizes_before = self._sizes
        self.progress.note(module.name, hlo_pass.name, sizes_before[1])

        start = time.perf_counter()
        try:
            changed = (hlo_pass if fuel is None else replace(hlo_pass, fuel=fuel)).run_on_changes(module, since)
            ran = time.perf_counter()
            if changed and module.config.is_scheduled:
                _keep_schedule(module)
            if before is not None:
                _check_truth(changed, changed_in_fact=module_fingerprint(module) != before)
                if changed and hlo_pass.reaches_fixpoint and fuel is None and hlo_pass.run(module):
                    raise PassError("it reaches a fixpoint, but a second run changed the module again")
                if since and not changed and fuel is None and hlo_pass.run(module):
                    raise PassError("it looked only at what had changed, and missed what it would have changed")
            if self.options.check_passes or (changed and self.options.verifies_passes):
                verify(module)
        except BaseException as error:
            blaming = self._blame(error, module, PassRecord(*known))
            if blaming is error:
                raise
            raise blaming from error
        verified = time.perf_counter()

        if changed and fuel is not None and not hlo_pass.counts_changes:
            fuel.take()
        if changed:
            self._look_at(module)
        if not changed or hlo_pass.reaches_fixpoint:
            self._settled[hlo_pass] = self._looks, tick()
        record = PassRecord(
            *known,
            changed=changed,
            time_ms=round((ran - start) * 1e3, 4),
            verification_ms=round((verified - ran) * 1e3, 4),
            instructions=(sizes_before[1], self._sizes[1]),
            computations=(sizes_before[0], self._sizes[0]),
        )
        self.records.append(record)
        for observer in self._observers:
            observer.after_pass(module, record)
        return changed

    def _look_at(self, module: HloModule) -> None:
        """Takes notice of what the module has become."""
        computations = module.computations()
        self._sized, self._sizes = module, (len(computations), sum(map(len, computations)))
        self._opcodes = frozenset({instruction.opcode for each in computations for instruction in each.instructions})
        self._looks += 1

    def _blame(self, error: BaseException, module: HloModule, record: PassRecord) -> BaseException:
        """What is to be raised: for an error of xlalite a `PassError` that names the pass, which any other notes."""
        where = f"pass {record.name} (number {record.number}, pipeline {record.pipeline}) on module {module.name}"
        blaming = PassError(f"{where}: {error}") if isinstance(error, XlaliteError) else error
        if blaming is error:
            error.add_note(f"in {where}")
        self._note_dump(blaming, module, record)
        return blaming

    def _note_dump(self, error: BaseException, module: HloModule, record: PassRecord) -> None:
        for observer in self._observers:
            path = observer.failed_pass(module, record)
            if path is not None:
                error.add_note(f"the module as the pass left it: {path}")


def _keep_schedule(module: HloModule) -> None:
    """New instructions stand at the end: each goes before its first user, all others keep their order."""
    for computation in module.computations():
        computation.set_order(computation.post_order())


def _check_truth(changed: bool, *, changed_in_fact: bool) -> None:
    if changed and not changed_in_fact:
        raise PassError("it says that it changed the module, but the fingerprint is the same")
    if changed_in_fact and not changed:
        raise PassError("it says that it did not change the module, but the fingerprint differs")
