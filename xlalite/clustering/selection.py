"""Which of the joined groups become clusters: those that are asked for and large enough."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from xlalite.clustering.candidates import LeftOut, Refusal, has_functions, is_free, is_marked
from xlalite.clustering.declustering import find_leavers
from xlalite.clustering.dependencies import Dependencies
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph.operation import Operation
from xlalite.hlo.records import dataclass


class Kept(enum.Enum):
    """Why a group becomes a cluster."""

    MARKED = "an operation of it is marked with _XlaCompile=true"
    LOOP = "it contains a loop or a branch"
    SIZE = "it reaches the minimum size"


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of one group.

    Attributes:
        members: Positions of the operations that stay in it, ascending.
        effective_size: How many of them compute something.
        verdict: Why it becomes a cluster, or the rule that dissolves it.
        leavers: Operations that it does without.
    """

    members: tuple[int, ...]
    effective_size: int
    verdict: Kept | LeftOut
    leavers: dict[Operation, Refusal]


def choose(dependencies: Dependencies, members: Sequence[int], options: ClusteringOptions) -> Choice:
    """Decides about one group, after those have left that are better off outside."""
    if isinstance(_verdict(dependencies, members, options), LeftOut):
        return _choice(dependencies, members, options, {})
    leavers = find_leavers(dependencies, members)
    remaining = [i for i in members if dependencies.operations[i] not in leavers]
    return _choice(dependencies, remaining, options, leavers)


def _choice(
    dependencies: Dependencies, members: Sequence[int], options: ClusteringOptions, leavers: dict[Operation, Refusal]
) -> Choice:
    verdict = _verdict(dependencies, members, options)
    return Choice(tuple(members), _effective_size(dependencies, members), verdict, leavers)


def _verdict(dependencies: Dependencies, members: Sequence[int], options: ClusteringOptions) -> Kept | LeftOut:
    operations = [dependencies.operations[i] for i in members]
    if any(map(is_marked, operations)):
        return Kept.MARKED
    if not options.global_jit:
        return LeftOut.NOT_REQUESTED
    if any(map(has_functions, operations)):
        return Kept.LOOP
    is_large = members and _effective_size(dependencies, members) >= options.min_cluster_size
    return Kept.SIZE if is_large else LeftOut.TOO_SMALL


def _effective_size(dependencies: Dependencies, members: Sequence[int]) -> int:
    return sum(not is_free(dependencies.operations[i]) for i in members)
