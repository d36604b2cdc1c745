"""Clustering from end to end: candidates, constants, joining, taking out, choosing, encapsulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xlalite.clustering.candidates import LeftOut, Refusal, find_refusals, is_marked
from xlalite.clustering.clusters import Clustering
from xlalite.clustering.constants import find_constant_needs
from xlalite.clustering.decisions import groups_chosen, left_out, not_joined, refusals_of_dissolved, unused_constants
from xlalite.clustering.dependencies import find_dependencies
from xlalite.clustering.encapsulation import make_clusters, order_parts
from xlalite.clustering.merging import merge_candidates
from xlalite.clustering.options import ClusteringOptions
from xlalite.clustering.selection import choose
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor


def cluster_operations(
    operations: Sequence[Operation],
    fetched: Iterable[Tensor] = (),
    fed: Iterable[Tensor] = (),
    options: ClusteringOptions | None = None,
    devices: Mapping[Operation, str] | None = None,
) -> Clustering:
    """Divides operations into clusters to compile and operations to run by themselves.

    Args:
        operations: What a run needs, in an order in which it could run one by one.
        fetched: Tensors that are wanted after the run.
        fed: Tensors whose values are given, whoever produces them.
        options: Sizes, lists and whether to cluster without being asked; the defaults cluster what is marked.
        devices: Where the operations lie; by default they lie where they ask for.

    Raises:
        ClusteringError: the options name an operation type that does not exist.
    """
    settled = options or ClusteringOptions()
    given, wanted = frozenset(fed), frozenset(fetched)
    refusals = find_refusals(operations, given, settled)
    if not settled.global_jit and not any(is_marked(each) for each in operations if each not in refusals):
        refusals.update((each, Refusal(LeftOut.NOT_REQUESTED)) for each in operations if each not in refusals)
        return Clustering(tuple(operations), tuple(left_out(operations, refusals)))
    needs = find_constant_needs(operations, given, refusals.keys())
    refusals.update(needs.refusals)
    dependencies = find_dependencies(operations, given, refusals.keys())
    merging = merge_candidates(dependencies, refusals.keys(), needs.separated, settled, devices)
    choices = sorted(
        (choose(dependencies, group.members, settled) for group in merging.groups), key=lambda choice: choice.members
    )
    chosen = [choice.members for choice in choices if not isinstance(choice.verdict, LeftOut)]
    clusters = make_clusters(dependencies, chosen, wanted)
    for choice in choices:
        refusals.update(choice.leavers)
    refusals.update(refusals_of_dissolved(dependencies, choices, settled.min_cluster_size))
    refusals.update(unused_constants(dependencies, clusters))
    decisions = (
        *groups_chosen(dependencies, choices, clusters, settled.min_cluster_size),
        *left_out(operations, refusals),
        *not_joined(dependencies, merging.separations, clusters),
    )
    return Clustering(order_parts(dependencies, chosen, clusters, wanted), decisions)
