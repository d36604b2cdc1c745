"""Graphs to cluster, and a way to run what came out: each cluster lowered and evaluated, the rest one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from graphs import needed

import xlalite.ops
from xlalite.clustering.cluster_operations import cluster_operations
from xlalite.clustering.clusters import Cluster, Clustering
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import LocalContext
from xlalite.framework.meaning.lowering import (
    Argument,
    ConstantArgument,
    ParameterArgument,
    VariableArgument,
    lower_operations,
)
from xlalite.framework.meaning.op_execution import run_operation_on_host
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify

assert xlalite.ops.functions.operators is not None


@dataclass(frozen=True)
class Clustered:
    """A clustering and what it was made from."""

    result: Clustering
    operations: tuple[Operation, ...]
    fetches: tuple[Tensor, ...]
    fed: tuple[Tensor, ...]

    @property
    def names(self) -> list[set[str]]:
        """The names of the operations of each cluster but for constants, in the order of their numbers."""
        clusters = sorted(self.result.clusters, key=lambda cluster: int(cluster.name.split("_")[1]))
        return [{op.name for op in cluster.operations if not op.spec.is_constant} for cluster in clusters]

    def reason(self, element: Any) -> str:
        """Why an operation is left out."""
        name = getattr(element, "op", element).name
        (found,) = (d.reason for d in self.result.decisions if d.verdict == "left out" and d.subject == (name,))
        return found

    def run(self, feeds: Mapping[Tensor, Any], context: LocalContext) -> list[np.ndarray]:
        """The fetches, cluster by cluster; variables live in `context`."""
        values: dict[Tensor, Any] = _arrays(feeds)
        for part in self.result.parts:
            if isinstance(part, Cluster):
                _run_cluster(part, values, context)
            else:
                _run_operation(part, values, context, self.fed)
        return [values[fetch] for fetch in self.fetches]

    def run_one_by_one(self, feeds: Mapping[Tensor, Any], context: LocalContext) -> list[np.ndarray]:
        """The fetches, operation by operation."""
        values: dict[Tensor, Any] = _arrays(feeds)
        for operation in self.operations:
            _run_operation(operation, values, context, self.fed)
        return [values[fetch] for fetch in self.fetches]


def _arrays(feeds: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
    return {tensor: np.asarray(value, tensor.dtype.numpy_dtype) for tensor, value in feeds.items()}


def _run_operation(
    operation: Operation, values: dict[Tensor, Any], context: LocalContext, fed: Sequence[Tensor]
) -> None:
    results = run_operation_on_host(operation, [values[tensor] for tensor in operation.inputs], context)
    values.update((o, r) for o, r in zip(operation.outputs, results, strict=True) if o not in fed)


def _run_cluster(cluster: Cluster, values: dict[Tensor, Any], context: LocalContext) -> None:
    arguments: list[Argument] = []
    for position, tensor in enumerate(cluster.inputs):
        value = np.asarray(values[tensor])
        if position in cluster.constant_inputs:
            arguments.append(ConstantArgument(tensor, value))
        else:
            arguments.append(ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, value.shape)))
    for data in cluster.variables:
        value_now = context.read_variable(data.name)
        shape = None if value_now is None else Shape.array(data.dtype.hlo, value_now.shape)
        arguments.append(VariableArgument(data, shape))
    lowered = lower_operations(cluster.operations, arguments, cluster.outputs, cluster.name)
    verify(lowered.module)
    parameters = [
        values[p.tensor] if isinstance(p, ParameterArgument) else context.read_variable(p.data.name)
        for p in lowered.parameters
    ]
    results = evaluate(lowered.module, *parameters)
    assert {update.data.name for update in lowered.updates} == {data.name for data in cluster.updates}
    for update in lowered.updates:
        context.assign_variable(update.data.name, np.asarray(results[update.output_index]))
    values.update(zip(cluster.outputs, results[: lowered.output_count], strict=True))


@pytest.fixture
def cluster() -> Callable[..., Clustered]:
    """`cluster(fetches, feeds, **options)`: what a run of the fetches is divided into; the JIT is on by default."""

    def make(fetches: Sequence[Any], feeds: Sequence[Tensor] = (), **options: Any) -> Clustered:
        elements = [getattr(fetch, "_as_graph_element", lambda fetch=fetch: fetch)() for fetch in fetches]
        tensors = tuple(element for element in elements if isinstance(element, Tensor))
        operations = tuple(needed(elements, feeds))
        settled = ClusteringOptions(**{"global_jit": True, **options})
        result = cluster_operations(operations, tensors, feeds, settled)
        return Clustered(result, operations, tensors, tuple(feeds))

    return make
