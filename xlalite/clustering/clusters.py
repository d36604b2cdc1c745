"""What clustering gives: clusters and single operations in an order in which they can run, and why it came so."""

from __future__ import annotations

from typing import TypeAlias

from xlalite.clustering.explanation import explanation, report_text
from xlalite.framework.graph.jit_scope import XLA_COMPILE
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision

_ELEMENTS_PER_OPERATION = 2**17
"""How many elements, of 23 to 77 ns each, are made one operation at a time while an operation is compiled, 3 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Operations that are compiled together; has identity.

    It reads its variables when it begins and assigns them when it ends.

    Attributes:
        name: `cluster_0_loss`, `cluster_1_train`, ...: its number in the order of the clusters' first operations, and
            what it is for: the outermost scope of its last update, or that variable, or its last output.
        operations: In execution order. A small constant is a member of every cluster that uses it.
        inputs: Tensors that come from outside, in the order of their first use; no variable handles.
        outputs: Tensors of members that are needed outside, in the order of their producers.
        constant_inputs: Positions in `inputs` of those whose values must be known when the cluster is compiled.
        reads: The variables whose value at entry may matter, in the order of first use.
        updates: The variables that are assigned, in the order of first use.
    """

    name: str
    operations: tuple[Operation, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constant_inputs: tuple[int, ...]
    reads: tuple[HandleData, ...]
    updates: tuple[HandleData, ...]

    @property
    def variables(self) -> tuple[HandleData, ...]:
        """All variables that the cluster touches: those it reads, then those it only assigns."""
        return tuple({data.name: data for data in (*self.reads, *self.updates)}.values())

    @property
    def only_initializes(self) -> bool:
        """Whether it does nothing but give variables first values, which are made sooner than it is compiled.

        What the user marked is none of those.
        """
        reads = any(not data.is_state for data in self.reads)
        many = _ELEMENTS_PER_OPERATION * len(self.operations)
        counts = [data.shape.num_elements() for data in self.updates]
        if self.inputs or self.outputs or reads or sum(many if one is None else one for one in counts) >= many:
            return False
        return not any(operation.attrs.get(XLA_COMPILE) for operation in self.operations)

    def __repr__(self) -> str:
        return f"<{self.name} of {len(self.operations)} operations>"


Part: TypeAlias = Cluster | Operation


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """A graph as parts.

    Attributes:
        parts: Clusters and single operations, in an order that honours data, control dependencies and the order in
            which the operations touch each variable.
        decisions: One for each operation left out, each pair of neighbours that was not joined, and each cluster.
    """

    parts: tuple[Part, ...]
    decisions: tuple[Decision, ...]

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters, in the order of the parts."""
        return tuple(part for part in self.parts if isinstance(part, Cluster))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, each once, in the order of the parts."""
        members = (part.operations if isinstance(part, Cluster) else (part,) for part in self.parts)
        return tuple(dict.fromkeys(operation for each in members for operation in each))

    def report(self) -> str:
        """The whole as text, 80 columns wide: shares, each cluster's operations, and why the others are outside."""
        return report_text(self)

    def explain(self, operation: Operation | str) -> str:
        """Where one operation runs and why, and which neighbours it was not joined with.

        Raises:
            ClusteringError: it is not among the operations.
        """
        return explanation(self, operation if isinstance(operation, str) else operation.name)
