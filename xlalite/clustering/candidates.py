"""Which operations may be clustered at all, and for each of the others the first reason that keeps it out."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import field

from xlalite.clustering.op_groups import expand_names
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph.jit_scope import XLA_COMPILE
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.framework.meaning.variable_use import function_attributes
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number


class LeftOut(enum.Enum):
    """Why an operation is in no cluster."""

    FUEL = "the fuel for clustering is used up"
    MARKED = "marked with _XlaCompile=false"
    NOT_COMPILABLE = "cannot be compiled"
    FED = "an output of it is fed"
    NOT_ALLOWED = "not among the operations to cluster"
    EXCLUDED = "among the operations excluded from clusters"
    NEEDED_AS_CONSTANT = "its value must be known before a cluster that uses it is compiled"
    NOT_REQUESTED = "the JIT is off and no operation of its cluster is marked"
    TOO_SMALL = "its cluster is smaller than the minimum"
    UNUSED_CONSTANT = "no cluster uses this constant"
    SHAPE_OF_OUTSIDE = "it asks for the shape of a tensor that its cluster does not use otherwise"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one operation is left out.

    Attributes:
        rule: The rule that keeps it out.
        because: Why the rule applies, where that is not plain.
        facts: Names and sizes that the rule looked at.
    """

    rule: LeftOut
    because: str = ""
    facts: Mapping[str, Number] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.rule.value}: {self.because}" if self.because else self.rule.value


def find_refusals(
    operations: Sequence[Operation], fed: AbstractSet[Tensor], options: ClusteringOptions
) -> dict[Operation, Refusal]:
    """The operations that are no candidates, in order; all others may be clustered.

    Raises:
        ClusteringError: the options name an operation type or group that does not exist.
    """
    allowed = expand_names(options.ops_to_cluster, "ops_to_cluster")
    excluded = expand_names(options.cluster_exclude_ops, "cluster_exclude_ops")
    refusals: dict[Operation, Refusal] = {}
    fuel = options.fuel
    for operation in operations:
        refusal = Refusal(LeftOut.FUEL) if fuel <= 0 else _why_not(operation, fed, allowed, excluded)
        if refusal is None:
            fuel -= 1
        else:
            refusals[operation] = refusal
    return refusals


def is_marked(operation: Operation) -> bool:
    """Whether the user asked for the operation to be compiled."""
    return operation.attrs.get(XLA_COMPILE) is True


def is_free(operation: Operation) -> bool:
    """Whether it computes nothing once it is compiled, so that it does not make a cluster worth compiling."""
    return operation.spec.is_constant or operation.spec.passes_on


def has_functions(operation: Operation) -> bool:
    """Whether it is a loop or a branch."""
    return bool(function_attributes(operation))


def _why_not(
    operation: Operation, fed: AbstractSet[Tensor], allowed: AbstractSet[str], excluded: AbstractSet[str]
) -> Refusal | None:
    if operation.attrs.get(XLA_COMPILE) is False:
        return Refusal(LeftOut.MARKED)
    why = why_not_compilable(operation)
    if why is not None:
        return Refusal(LeftOut.NOT_COMPILABLE, why.removeprefix(f"{operation.type}: "))
    if allowed and operation.type not in allowed:
        return Refusal(LeftOut.NOT_ALLOWED)
    if operation.type in excluded:
        return Refusal(LeftOut.EXCLUDED)
    if fed and any(output in fed for output in operation.outputs):
        return Refusal(LeftOut.FED, facts={"tensor": next(each.name for each in operation.outputs if each in fed)})
    return None
