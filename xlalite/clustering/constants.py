"""Values that must be known when a cluster is compiled, and where they can come from.

Some inputs (the shape of a reshape, the axes of a reduction) must be known at compile time. Working backwards from
them, a value is one of these:

- *known*: it follows from constants and from shapes, which are known whenever their tensor is in the same cluster;
- *foldable*: it follows from known values and from tensors that no cluster computes; those become constant arguments;
- computed at run time: the one who needs it must be in another cluster, and gets it as a constant argument.

Shape arithmetic on nothing but outside values is kept out of clusters: done by itself it is cheap, and the cluster is
compiled again only when its result changes, not whenever its inputs do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet

from xlalite.clustering.candidates import LeftOut, Refusal
from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass

# Beyond this many elements a value is not folded into the program; constant_resolver.py has the same limit.
_MAX_FOLDED_ELEMENTS = 1 << 20


@dataclass(frozen=True, slots=True)
class ConstantNeeds:
    """What must be known at compile time means for clustering.

    Attributes:
        refusals: Operations that leave the candidates.
        separated: (producer, consumer) pairs that can never share a cluster.
    """

    refusals: Mapping[Operation, Refusal]
    separated: frozenset[tuple[Operation, Operation]]


def find_constant_needs(
    operations: Sequence[Operation], fed: AbstractSet[Tensor], refused: AbstractSet[Operation]
) -> ConstantNeeds:
    """What follows from compile-time-constant inputs, before anything is joined.

    Args:
        operations: In execution order.
        fed: Tensors whose values are given.
        refused: Operations that no cluster can hold.
    """
    known = _known_operations(operations, fed, refused)
    arithmetic, refusals = _shape_arithmetic(operations, fed, refused, known)
    outside = {*refused, *refusals}
    foldable: set[Operation] = set()
    for operation in operations:
        if operation not in arithmetic:
            continue
        producers = [None if tensor in fed else tensor.op for tensor in operation.inputs]
        if all(p is None or p in outside or p.spec.is_constant for p in producers) and all(
            control in outside for control in operation.control_inputs
        ):
            refusals[operation] = Refusal(LeftOut.NEEDED_AS_CONSTANT, facts={"needed by": arithmetic[operation]})
            outside.add(operation)
        elif all(p is None or p in outside or p in known or p in foldable for p in producers):
            foldable.add(operation)
    separated = frozenset(
        (tensor.op, operation)
        for operation in operations
        if operation not in outside
        for tensor in constant_operands(operation)
        if not (tensor in fed or tensor.op in outside or tensor.op in known or tensor.op in foldable)
    )
    return ConstantNeeds(refusals, separated)


def constant_operands(operation: Operation) -> Iterator[Tensor]:
    """The inputs of `operation` that must be known when it is compiled."""
    return (operation.inputs[i] for i in operation.spec.constant_input_positions(operation))


def needed_as_constants(operations: Sequence[Operation], fed: AbstractSet[Tensor]) -> dict[Tensor, None]:
    """The tensors whose values must be known when the cluster of `operations` is compiled, its inputs included.

    Args:
        operations: The members of the cluster in execution order.
        fed: Tensors that come from outside whoever produces them.
    """
    needed: dict[Tensor, None] = {}
    for operation in reversed(operations):
        needed.update((tensor, None) for tensor in constant_operands(operation))
        if not operation.spec.is_metadata and any(
            output in needed and output not in fed for output in operation.outputs
        ):
            needed.update((tensor, None) for tensor in operation.inputs)
    return needed


def has_known_shape(tensor: Tensor) -> bool:
    """Whether the graph alone says the whole shape of `tensor`, or of the variable behind it."""
    shape = tensor.shape if tensor.handle_data is None else tensor.handle_data.shape
    return shape.is_fully_defined()


def _known_operations(
    operations: Sequence[Operation], fed: AbstractSet[Tensor], refused: AbstractSet[Operation]
) -> set[Operation]:
    known: set[Operation] = set()
    for operation in operations:
        spec = operation.spec
        if operation in refused:
            continue
        if spec.is_constant:
            known.add(operation)
        elif spec.is_metadata:
            if all(tensor.handle_data is None or has_known_shape(tensor) for tensor in operation.inputs):
                known.add(operation)
        elif (
            operation.inputs
            and _is_pure(operation)
            and all(tensor.op in known and tensor not in fed for tensor in operation.inputs)
            and not any(_is_too_large(output) for output in operation.outputs)
        ):
            known.add(operation)
    return known


def _shape_arithmetic(
    operations: Sequence[Operation],
    fed: AbstractSet[Tensor],
    refused: AbstractSet[Operation],
    known: AbstractSet[Operation],
) -> tuple[dict[Operation, str], dict[Operation, Refusal]]:
    """Operations on sizes whose results must be known, each with who needs it; and reads that must be made first."""
    wanted: dict[Tensor, str] = {}
    arithmetic: dict[Operation, str] = {}
    refusals: dict[Operation, Refusal] = {}
    for operation in reversed(operations):
        if operation in refused:
            continue
        wanted.update((tensor, operation.name) for tensor in constant_operands(operation))
        wanted_by = next((wanted[each] for each in operation.outputs if each in wanted and each not in fed), None)
        if wanted_by is None or operation in known:
            continue
        if not _is_pure(operation):
            refusals[operation] = Refusal(LeftOut.NEEDED_AS_CONSTANT, facts={"needed by": wanted_by})
        elif operation.inputs and all(map(_looks_like_sizes, (*operation.inputs, *operation.outputs))):
            arithmetic[operation] = wanted_by
            wanted.update((tensor, wanted_by) for tensor in operation.inputs)
    return arithmetic, refusals


def _is_pure(operation: Operation) -> bool:
    spec = operation.spec
    return (
        not spec.is_stateful
        and spec.variable_access is VariableAccess.NONE
        and all(tensor.handle_data is None for tensor in operation.inputs)
    )


def _looks_like_sizes(tensor: Tensor) -> bool:
    rank = tensor.shape.rank
    return tensor.dtype.is_integer and rank is not None and rank <= 1


def _is_too_large(tensor: Tensor) -> bool:
    return tensor.shape.is_fully_defined() and math.prod(tensor.shape.known_dims()) > _MAX_FOLDED_ELEMENTS
