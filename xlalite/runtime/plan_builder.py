"""Makes plans: prunes the graph, has it clustered, and gives every tensor a register."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import HostValue
from xlalite.framework.meaning.op_execution import run_operation_on_host
from xlalite.framework.meaning.variable_use import begin_states
from xlalite.runtime.cluster_step import ClusterStep
from xlalite.runtime.compilation import CompilationCache
from xlalite.runtime.device_plan import DevicePlan, Division
from xlalite.runtime.measured_step import MeasuredClusterStep
from xlalite.runtime.operation_step import OperationStep, PlanRegisters, PlanStep, ReleaseStep
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.placement import Placement, Placer
from xlalite.runtime.plan import Plan, PlanParts, PlanRequest
from xlalite.runtime.pruning import needed_operations
from xlalite.runtime.variables import VariableStore

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Cluster, Clustering


class Partition(Protocol):
    """Divides pruned operations into clusters and operations that run by themselves."""

    def __call__(
        self,
        operations: Sequence[Operation],
        fetched: Sequence[Tensor],
        fed: Sequence[Tensor],
        devices: Mapping[Operation, str] | None,
    ) -> Clustering | None:
        """The division, clusters on one of the given devices each; None when every operation runs by itself."""
        ...


class PlanBuilder:
    """Makes the plans of one session."""

    def __init__(
        self,
        partition: Partition,
        cache: CompilationCache,
        options: RuntimeOptions,
        store: VariableStore,
        placer: Placer | None = None,
    ) -> None:
        """Plans for one device, or for those of `placer`."""
        self._placer = placer
        self._partition = partition
        self._cache = cache
        self._options = options
        self._store = store
        self._cluster_numbers = itertools.count()

    def build(self, request: PlanRequest) -> Plan:
        """The plan for a request."""
        operations = needed_operations(request.fetches, request.targets, request.feeds)
        begin_states(operations, self._store)
        fetched = [tensor for tensor in request.fetches if tensor not in request.feeds]
        placement = None if self._placer is None else self._placer.place(operations)
        clustering = self._partition(
            operations, fetched, request.feeds, None if placement is None else placement.device
        )
        parts = operations if clustering is None else clustering.parts
        registers = _RegisterFile(request.feeds, self._store)
        pieces: list[tuple[Operation | Cluster, PlanStep]] = []
        for part in parts:
            if isinstance(part, Operation):
                step: PlanStep | None = None if registers.fill(part) else registers.operation_step(part)
            else:
                step = self._cluster(part, registers)
            if step is not None:
                pieces.append((part, step))
        fetched_numbers = [registers.number(tensor) for tensor in request.fetches]
        own = {registers.number(t) for part in parts if not isinstance(part, Operation) for t in part.outputs}
        fed_numbers = range(len(request.feeds))
        copied = frozenset(number for number in fetched_numbers if number not in own and number not in fed_numbers)
        kept = {*fetched_numbers, *registers.known}
        division = None if placement is None else _divided(pieces, placement, request, operations, registers, kept)
        if division is None:
            used = [tuple(map(registers.number, (*part.inputs, *part.outputs))) for part, _ in pieces]
            steps = _with_releases([step for _, step in pieces], used, kept)
        else:
            steps = [step for its_own in division.steps.values() for step in its_own]
        made = PlanParts(
            request,
            tuple(operations),
            placement,
            clustering,
            tuple(steps),
            registers.values,
            tuple(fetched_numbers),
            copied,
        )
        return Plan(made) if division is None else DevicePlan(made, division)

    def _cluster(self, cluster: Cluster, registers: _RegisterFile) -> ClusterStep:
        def make_fallback() -> Sequence[PlanStep]:
            inner = registers.extended()
            steps = [inner.operation_step(each) for each in cluster.operations]
            begin = len(registers.values)
            return [_ExtendStep(begin, inner.values[begin:]), *steps]

        numbers = {tensor: registers.number(tensor) for tensor in (*cluster.inputs, *cluster.outputs)}
        number = next(self._cluster_numbers)
        kind = MeasuredClusterStep if self._options.keep_faster else ClusterStep
        return kind(cluster, number, numbers, make_fallback, self._cache, self._options)


def _divided(
    pieces: Sequence[tuple[Operation | Cluster, PlanStep]],
    placement: Placement,
    request: PlanRequest,
    operations: Sequence[Operation],
    registers: _RegisterFile,
    kept: set[int],
) -> Division | None:
    """The steps of each device; None if only one has any."""
    from xlalite.clustering.dependencies import find_dependencies  # only sessions of several devices need it
    from xlalite.runtime.device_parts import divide

    dependencies = find_dependencies(operations, frozenset(request.feeds), frozenset())
    meeting = registers.added()
    parts = divide(pieces, placement.device, registers.number, dependencies, meeting)
    if len(parts.steps) < 2:
        return None
    steps = {device: tuple(_with_releases(steps, parts.used[device], kept)) for device, steps in parts.steps.items()}
    return Division(steps, parts.homes, meeting)


class _RegisterFile:
    """Registers of tensors, with the values that never change already in them.

    Attributes:
        values: The registers at the start of a run.
        known: Registers whose values never change.
    """

    def __init__(self, feeds: Iterable[Tensor], store: VariableStore) -> None:
        self._numbers = {tensor: number for number, tensor in enumerate(feeds)}
        self._fed = frozenset(self._numbers)
        self._store = store
        self.values: PlanRegisters = [None] * len(self._numbers)
        self.known: set[int] = set()
        self._discarded: int | None = None

    def number(self, tensor: Tensor) -> int:
        """The register of a tensor."""
        found = self._numbers.get(tensor)
        if found is None:
            found = self._numbers[tensor] = len(self.values)
            # A variable's handle is known however it is passed on.
            self.values.append(tensor.handle_data)
            if tensor.handle_data is not None:
                self.known.add(found)
        return found

    def added(self) -> int:
        """One more register, of no tensor."""
        self.values.append(None)
        return len(self.values) - 1

    def fill(self, operation: Operation) -> bool:
        """Puts the outputs of a constant into their registers; whether the operation need not run."""
        if operation.spec.is_constant:
            values: Sequence[HostValue] = run_operation_on_host(operation, (), self._store)
            for output, value in zip(operation.outputs, values, strict=True):
                if output not in self._fed:
                    number = self.number(output)
                    self.values[number] = value
                    self.known.add(number)
            return True
        return bool(operation.outputs) and all(output.handle_data is not None for output in operation.outputs)

    def operation_step(self, operation: Operation) -> OperationStep:
        """The step that runs an operation by itself; what is fed keeps the value that was fed."""
        outputs = [self._discard() if t in self._fed else self.number(t) for t in operation.outputs]
        return OperationStep(operation, [self.number(tensor) for tensor in operation.inputs], outputs)

    def extended(self) -> _RegisterFile:
        """A copy that can grow by itself."""
        copy = _RegisterFile((), self._store)
        copy._numbers = dict(self._numbers)
        copy._fed = self._fed
        copy.values = list(self.values)
        return copy

    def _discard(self) -> int:
        if self._discarded is None:
            self._discarded = self.added()
        return self._discarded


class _ExtendStep:
    """Adds registers behind those of the plan, for the operations of a cluster that run by themselves."""

    def __init__(self, begin: int, values: Sequence[HostValue | None]) -> None:
        self._begin = begin
        self._values = tuple(values)

    def run(self, registers: PlanRegisters, store: VariableStore, trace: object) -> None:
        """Adds the registers as they are at the start, in place of another cluster's."""
        registers[self._begin :] = self._values


def _with_releases(steps: Sequence[PlanStep], used: Sequence[tuple[int, ...]], kept: set[int]) -> list[PlanStep]:
    """The steps, with others between them that empty registers after their last use."""
    last_use: dict[int, int] = {}
    for position, numbers in enumerate(used):
        last_use.update(dict.fromkeys(numbers, position))
    dying: dict[int, list[int]] = {}
    for number, position in last_use.items():
        if number not in kept and position < len(steps) - 1:
            dying.setdefault(position, []).append(number)
    result: list[PlanStep] = []
    for position, step in enumerate(steps):
        result.append(step)
        if position in dying:
            result.append(ReleaseStep(dying[position]))
    return result
