"""Joins candidates to clusters: producer with consumer, as long as nothing forbids it.

Edges are visited from the end of the graph to its beginning, in three rounds as in TensorFlow: first questions about
shapes join whom they ask about; then everything but edges that would get in the way of better ones; then the rest,
until nothing is left that could be joined.

There is no control flow inside a graph but functional loops and branches, so every operation runs whenever the step
runs, and TensorFlow's deadness analysis has no counterpart.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet

from xlalite.clustering.contractible_graph import ContractibleGraph
from xlalite.clustering.dependencies import Dependencies
from xlalite.clustering.devices import are_compatible, requests
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph.jit_scope import XLA_SCOPE
from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.variable_use import variable_access, variables_of
from xlalite.hlo.records import dataclass


class NotMerged(enum.Enum):
    """Why a producer and a consumer are in different clusters."""

    DEVICES = "no device meets the requests of both"
    SCOPES = "they belong to different JIT scopes"
    SIZE = "together they exceed the maximum size"
    WAITS_FOR_OTHER_DEVICE = "the producer would have to wait for another device"
    CYCLE = "another path connects them, so that joining them would close a cycle"
    COMPILE_TIME_CONSTANT = "the consumer must know the value when it is compiled"


@dataclass(slots=True)
class ClusterCandidate:
    """A growing cluster.

    Attributes:
        members: Positions of its operations.
        scope: The JIT scope, None while any will do.
        devices: What devices its operations request.
        devices_before: What devices the producers of its inputs request.
    """

    members: list[int]
    scope: str | None
    devices: frozenset[str]
    devices_before: frozenset[str]

    def absorb(self, other: ClusterCandidate) -> None:
        """Takes over the members of `other`."""
        self.members += other.members
        self.scope = self.scope or other.scope
        self.devices |= other.devices
        self.devices_before |= other.devices_before


@dataclass(frozen=True, slots=True)
class Separation:
    """Two neighbours that were not joined.

    Attributes:
        producer: Position of the operation that comes first.
        consumer: Position of the operation that depends on it.
        reason: The rule that forbids it.
        path: For a cycle, positions along the other path, ends included.
    """

    producer: int
    consumer: int
    reason: NotMerged
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Merging:
    """The result.

    Attributes:
        groups: Clusters in the order of their first members, members ascending; single candidates included.
        separations: One for each pair of neighbouring groups that were not joined.
        work: Steps that the graph took, for tests of the running time.
    """

    groups: tuple[ClusterCandidate, ...]
    separations: tuple[Separation, ...]
    work: int


def merge_candidates(
    dependencies: Dependencies,
    refused: AbstractSet[Operation],
    separated: AbstractSet[tuple[Operation, Operation]],
    options: ClusteringOptions,
    devices: Mapping[Operation, str] | None = None,
) -> Merging:
    """Joins the candidates.

    Args:
        dependencies: The graph.
        refused: Operations that stay outside.
        separated: (producer, consumer) pairs that can never share a cluster.
        options: Sizes, and whether scopes count.
        devices: Where the operations lie; by default they lie where they ask for.
    """
    return _Merger(dependencies, refused, separated, options, devices).run()


@dataclass(slots=True)
class _Edges:
    """Edges of the graph, from the end of it to its beginning."""

    successors: Sequence[Sequence[int]]
    candidates: AbstractSet[int]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for producer in reversed(range(len(self.successors))):
            if producer in self.candidates:
                for consumer in self.successors[producer]:
                    if consumer in self.candidates:
                        yield producer, consumer


class _Merger:
    def __init__(
        self,
        dependencies: Dependencies,
        refused: AbstractSet[Operation],
        separated: AbstractSet[tuple[Operation, Operation]],
        options: ClusteringOptions,
        devices: Mapping[Operation, str] | None,
    ) -> None:
        self._dependencies = dependencies
        self._devices = {op: op.device for op in dependencies.operations} if devices is None else devices
        self._options = options
        operations = dependencies.operations
        outside = {*refused, *dependencies.copied}
        self._candidates = {i for i, operation in enumerate(operations) if operation not in outside}
        position = dependencies.position
        self._graph = _graph_with_barriers(
            dependencies, {(position[producer], position[consumer]) for producer, consumer in separated}
        )
        self._groups = {i: self._single(i) for i in self._candidates}

    def run(self) -> Merging:
        edges = _Edges(self._dependencies.successors, self._candidates)
        for wanted in (self._asks_for_shape, self._is_unhindering):
            for producer, consumer in edges:
                if wanted(producer, consumer):
                    self._join(producer, consumer)
        # A join can open the way for one that was refused before, so the last round is repeated while it finds any.
        while any([self._join(producer, consumer) for producer, consumer in edges]):
            pass
        separations = tuple(self._separations(edges))
        for group in self._groups.values():
            group.members.sort()
        groups = tuple(sorted(self._groups.values(), key=lambda group: group.members[0]))
        return Merging(groups, separations, self._graph.work)

    def _single(self, position: int) -> ClusterCandidate:
        dependencies = self._dependencies
        operation = dependencies.operations[position]
        scope = None if self._options.global_jit else operation.attrs.get(XLA_SCOPE)
        producers = [self._devices[dependencies.operations[i]] for i in dependencies.predecessors[position]]
        return ClusterCandidate([position], scope, requests([self._devices[operation]]), requests(producers))

    def _asks_for_shape(self, producer: int, consumer: int) -> bool:
        """Whether the edge leads to a question about a shape that is still alone."""
        operation = self._dependencies.operations[consumer]
        return operation.spec.is_metadata and len(self._groups[self._graph.find(consumer)].members) == 1

    def _is_unhindering(self, producer: int, consumer: int) -> bool:
        """Whether joining the ends cannot keep the updates of different variables apart.

        An operation that only gathers others by control dependencies, or a counter that they wait for, would draw one
        update after another into clusters that then cannot be joined.
        """
        operations = self._dependencies.operations
        gathers = not operations[consumer].inputs and not self._dependencies.successors[consumer]
        return not gathers and not _is_counter(operations[producer])

    def _join(self, producer: int, consumer: int) -> bool:
        graph = self._graph
        start, end = graph.find(producer), graph.find(consumer)
        if start == end or self._why_apart(start, end) is not None or graph.contract(start, end):
            return False
        first, second = self._groups.pop(start), self._groups.pop(end)
        if len(first.members) < len(second.members):
            first, second = second, first
        first.absorb(second)
        self._groups[graph.find(start)] = first
        return True

    def _why_apart(self, start: int, end: int) -> NotMerged | None:
        first, second = self._groups[start], self._groups[end]
        if not are_compatible(first.devices, second.devices):
            return NotMerged.DEVICES
        if first.scope is not None and second.scope is not None and first.scope != second.scope:
            return NotMerged.SCOPES
        if len(first.members) + len(second.members) > self._options.max_cluster_size:
            return NotMerged.SIZE
        if not all(are_compatible(first.devices, requests([device])) for device in second.devices_before):
            return NotMerged.WAITS_FOR_OTHER_DEVICE
        return None

    def _separations(self, edges: _Edges) -> Iterator[Separation]:
        seen: set[tuple[int, int]] = set()
        graph, count = self._graph, len(self._dependencies.operations)
        for producer, consumer in edges:
            start, end = graph.find(producer), graph.find(consumer)
            if start == end or (start, end) in seen:
                continue
            seen.add((start, end))
            reason = self._why_apart(start, end)
            if reason is not None:
                yield Separation(producer, consumer, reason)
                continue
            path = graph.other_path(start, end)
            assert path, "two groups could still have been joined"
            operations_on_path = tuple(node for node in path if node < count)
            if len(operations_on_path) == 2:
                yield Separation(producer, consumer, NotMerged.COMPILE_TIME_CONSTANT)
            else:
                yield Separation(producer, consumer, NotMerged.CYCLE, operations_on_path)


def _graph_with_barriers(dependencies: Dependencies, separated: AbstractSet[tuple[int, int]]) -> ContractibleGraph:
    """The graph; between operations that must stay apart stands a node that can be joined with nothing.

    So they could only be joined by closing a cycle, whatever else they are joined with.
    """
    count = len(dependencies.operations)
    successors = [list(each) for each in dependencies.successors]
    barriers: dict[int, list[int]] = {}
    for producer, consumer in sorted(separated):
        barrier = len(successors)
        successors.append([consumer])
        successors[producer].append(barrier)
        barriers.setdefault(consumer, []).append(barrier)
    order = [node for i in range(count) for node in (*barriers.get(i, ()), i)]
    return ContractibleGraph(successors, order)


def _is_counter(operation: Operation) -> bool:
    """Whether it changes a whole number by a constant, as counters of steps do."""
    if variable_access(operation) is not VariableAccess.MODIFY:
        return False
    values = [tensor for tensor in operation.inputs if tensor.handle_data is None]
    return all(data.dtype.is_integer for data in variables_of(operation)) and all(
        tensor.op.spec.is_constant for tensor in values
    )
