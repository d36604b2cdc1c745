"""The plan of a run: what is needed to compute some fetches from some feeds, resolved once and run many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostValue
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.cluster_step import ClusterStep
from xlalite.runtime.deadline import Deadline
from xlalite.runtime.operation_step import PlanRegisters, PlanStep
from xlalite.runtime.placement import Placement
from xlalite.runtime.trace import StepTrace, tensor_label
from xlalite.runtime.variables import VariableStore

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Clustering


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a run gives and wants.

    Attributes:
        feeds: Tensors whose values are given.
        fetches: Tensors whose values are wanted.
        targets: Operations that must run.
    """

    feeds: tuple[Tensor, ...]
    fetches: tuple[Tensor, ...]
    targets: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanParts:
    """What a plan is made of.

    Attributes:
        request: What it computes from what.
        operations: The operations that run.
        placement: Where they run; None where there is only one device.
        clustering: How they were clustered.
        steps: The steps in order.
        registers: The registers at the start; the feeds come first.
        fetched: The registers of the fetches.
        copied: Registers whose arrays somebody else may hold, so that a fetch gives a copy.
    """

    request: PlanRequest
    operations: tuple[Operation, ...]
    placement: Placement | None
    clustering: Clustering | None
    steps: tuple[PlanStep, ...]
    registers: Sequence[HostValue | None]
    fetched: tuple[int, ...]
    copied: frozenset[int]


class Plan:
    """Steps over registers. Runs may overlap: each has registers of its own.

    Attributes:
        request: What it computes from what.
        operations: The operations it runs, in creation order.
        placement: Where they run; None where there is only one device.
        clustering: How they were clustered; None when nothing was to be.
        steps: The steps in order.
    """

    def __init__(self, made: PlanParts) -> None:
        """Takes what the builder made."""
        self.request = made.request
        self.operations = made.operations
        self.placement = made.placement
        self.clustering = made.clustering
        self.steps = made.steps
        self._registers = list(made.registers)
        self._fetched = made.fetched
        self._copied = tuple(position for position, number in enumerate(made.fetched) if number in made.copied)

    @property
    def cluster_steps(self) -> tuple[ClusterStep, ...]:
        """The steps that run clusters."""
        return tuple(step for step in self.steps if isinstance(step, ClusterStep))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What clustering and compilation decided so far."""
        placed = () if self.placement is None else self.placement.decisions
        clustered = () if self.clustering is None else self.clustering.decisions
        return (
            *placed,
            *clustered,
            *(decision for step in self.cluster_steps for decision in step.compiler.history.decisions),
        )

    def run(
        self,
        feeds: Sequence[Array],
        store: VariableStore,
        trace: StepTrace | None = None,
        deadline: Deadline | None = None,
    ) -> list[HostValue]:
        """The values of the fetches; each array may be kept and changed by the caller.

        Args:
            feeds: One array for each feed, of its element type and a shape that it allows.
            store: The session's variables.
            trace: Collects what ran.
            deadline: When to give up, between two steps.

        Raises:
            XlaliteError: An operation failed.
        """
        registers: PlanRegisters = self._registers.copy()
        registers[: len(feeds)] = feeds
        if trace is not None:
            self._trace_feeds(feeds, trace)
        for step in self.steps:
            step.run(registers, store, trace)
            if deadline is not None:
                deadline.check()
        results = [registers[number] for number in self._fetched]
        return self._results(results) if self._copied else results  # type: ignore[return-value]  # the steps set all

    def _trace_feeds(self, feeds: Sequence[Array], trace: StepTrace) -> None:
        for tensor, value in zip(self.request.feeds, feeds, strict=True):
            trace.record(tensor_label(tensor), "_Arg", (), trace.now(), (value,))

    def _results(self, results: list[HostValue | None]) -> list[HostValue]:
        """What was fetched, nothing of it shared with anybody."""
        for position in self._copied:
            results[position] = _private_copy(results[position])
        return results  # type: ignore[return-value]  # the steps have set all of them


def _private_copy(value: HostValue | None) -> HostValue | None:
    return np.array(value) if isinstance(value, np.ndarray) else value
