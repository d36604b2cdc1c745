"""A clustering as text for people, 80 columns wide: the whole graph, or one operation."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from xlalite.clustering.decision_words import KEPT, LEFT_OUT, NOT_JOINED
from xlalite.framework.graph.operation import Operation
from xlalite.hlo.errors import ClusteringError
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.wording import counted, did_you_mean

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Cluster, Clustering

_WIDTH = 80
_PAIRS_SHOWN = 3


def report_text(clustering: Clustering) -> str:
    """How much was clustered, what is in each cluster, and why the rest is outside."""
    operations = clustering.operations
    members = {operation for cluster in clustering.clusters for operation in cluster.operations}
    outside = [operation for operation in operations if operation not in members]
    lines = [
        f"{counted(len(operations), 'operation')}: {_share(len(members), len(operations))} in "
        f"{counted(len(clustering.clusters), 'cluster')}, {_share(len(outside), len(operations))} outside"
    ]
    reasons = {each.subject[0]: each.reason for each in clustering.decisions if each.verdict == KEPT}
    for cluster in clustering.clusters:
        lines += _cluster_lines(cluster, reasons[cluster.name])
    if outside:
        lines += ["outside:", *_outside_lines(clustering, outside)]
    lines += _pair_lines([each for each in clustering.decisions if each.verdict == NOT_JOINED])
    return "\n".join(lines)


def explanation(clustering: Clustering, name: str) -> str:
    """Where the operation called `name` runs and why, and which neighbours it was not joined with.

    Raises:
        ClusteringError: there is no such operation.
    """
    by_name = {operation.name: operation for operation in clustering.operations}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        raise ClusteringError(f"explaining {name!r}: no operation that was clustered has that name{hint}")
    homes = [cluster for cluster in clustering.clusters if by_name[name] in cluster.operations]
    lines = list(_wrapped(by_name[name].describe(), ""))
    for cluster in homes:
        lines.append(f"in {cluster.name} with {counted(len(cluster.operations) - 1, 'other operation')}")
    about = {name, *(cluster.name for cluster in homes)}
    for decision in clustering.decisions:
        if about & {*decision.subject}:
            lines += _wrapped(_told(decision, name), "")
    return "\n".join(lines)


def _cluster_lines(cluster: Cluster, reason: str) -> Iterator[str]:
    parts = [
        counted(len(cluster.operations), "operation"),
        counted(len(cluster.inputs), "input"),
        counted(len(cluster.outputs), "output"),
    ]
    if cluster.variables:
        parts += [f"{counted(len(cluster.reads), 'variable')} read", f"{len(cluster.updates)} updated"]
    yield from _wrapped(f"{cluster.name}: {', '.join(parts)}; {reason}", "")
    yield from _wrapped(_histogram(cluster.operations), "  ")


def _outside_lines(clustering: Clustering, outside: Iterable[Operation]) -> Iterator[str]:
    reasons = {each.subject[0]: each.reason for each in clustering.decisions if each.verdict == LEFT_OUT}
    by_reason: dict[str, list[Operation]] = {}
    for operation in outside:
        by_reason.setdefault(reasons[operation.name], []).append(operation)
    for reason, operations in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        yield from _wrapped(f"{_histogram(operations)}: {reason}", "  ")


def _pair_lines(pairs: Iterable[Decision]) -> Iterator[str]:
    by_reason: dict[str, list[Decision]] = {}
    for decision in pairs:
        by_reason.setdefault(decision.reason, []).append(decision)
    if by_reason:
        yield "neighbours that were not joined:"
    for reason, decisions in by_reason.items():
        yield from _wrapped(f"{counted(len(decisions), 'pair')}: {reason}", "  ")
        for decision in decisions[:_PAIRS_SHOWN]:
            yield from _wrapped(decision.numbers.get("path", " -> ".join(decision.subject)), "    ")
        if len(decisions) > _PAIRS_SHOWN:
            yield f"    and {len(decisions) - _PAIRS_SHOWN} more"


def _told(decision: Decision, name: str) -> str:
    others = ", ".join(each for each in decision.subject if each != name)
    facts = ", ".join(f"{key}: {value}" for key, value in decision.numbers.items())
    about = f" ({others})" if others else ""
    return f"{decision.verdict}{about}: {decision.reason}" + (f" ({facts})" if facts else "")


def _histogram(operations: Iterable[Operation]) -> str:
    counts = Counter(operation.type for operation in operations)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _share(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})" if total else "0"


def _wrapped(text: object, indent: str) -> list[str]:
    return textwrap.wrap(
        str(text), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )
