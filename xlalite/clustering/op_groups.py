"""Names for sets of operation types, as lists of operations to cluster or to leave out may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import xlalite.ops  # noqa: F401 (declares every operation, so that groups do not depend on who asks first)
from xlalite.framework.graph.op_spec import OP_SPECS, OpGroup
from xlalite.hlo.errors import ClusteringError
from xlalite.hlo.wording import did_you_mean


def _members(groups: Iterable[OpGroup]) -> frozenset[str]:
    wanted = set(groups)
    return frozenset(name for name, spec in OP_SPECS.items() if spec.group in wanted)


GROUPS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **{group.value: _members([group]) for group in OpGroup},
        "REDUCEWINDOW": _members([OpGroup.ELEMENTWISE_WITH_REDUCTION]),
        "FUSIBLE": _members(OpGroup),
    }
)
"""Groups by name, TensorFlow's in `mark_for_compilation_pass.cc`.

PW works element by element, RED reduces, PWRED does both, MISC moves data and asks for shapes, BN is batch
normalisation, SORT finds the largest, REDUCEWINDOWPW has the local response and the gradient of biases. REDUCEWINDOW is
PWRED once more, as there; convolutions and pooling are in no group.
"""


def expand_names(names: Iterable[str], where: str) -> frozenset[str]:
    """The operation types that a list of types and groups stands for.

    Raises:
        ClusteringError: a name is neither; the nearest one is suggested.
    """
    found: set[str] = set()
    for name in names:
        if name not in GROUPS and name not in OP_SPECS:
            hint = did_you_mean(name, [*GROUPS, *OP_SPECS], f"the groups are {', '.join(GROUPS)}")
            raise ClusteringError(f"{where}: {name!r} is neither an operation type nor a group of them{hint}")
        found |= GROUPS.get(name, {name})
    return frozenset(found)
