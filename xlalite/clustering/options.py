"""What decides how a graph is clustered; set for each session, never for the process."""

from __future__ import annotations

from typing import Final

from xlalite.hlo.records import dataclass

UNLIMITED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ClusteringOptions:
    """How operations are chosen and joined.

    Attributes:
        global_jit: Whether whatever can be compiled is clustered. When false only clusters in which an operation is
            marked with `_XlaCompile` are kept, and then `_XlaScope` keeps scopes apart.
        min_cluster_size: Clusters with fewer operations that compute something are dissolved.
        max_cluster_size: Clusters do not grow beyond this many operations, small constants not counted.
        fuel: How many operations, in execution order, may become candidates.
        ops_to_cluster: The only operation types, or groups of them such as `FUSIBLE`, that are clustered; none for all.
        cluster_exclude_ops: Operation types, or groups of them, that are never clustered.
    """

    global_jit: bool = False
    min_cluster_size: int = 4
    max_cluster_size: int = 2**31 - 1
    fuel: int = UNLIMITED
    ops_to_cluster: tuple[str, ...] = ()
    cluster_exclude_ops: tuple[str, ...] = ()
