"""Combines updates into arrays at places that may repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.monoid import Monoid, recognise_monoid
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.ops.evaluation.accumulation import narrow, widen
from xlalite.hlo.ops.evaluation.monoid_arrays import combine_at_places
from xlalite.hlo.ops.evaluation.scalar_function import array_function
from xlalite.hlo.types.literal import Array

Places = npt.NDArray[np.int64]


def combine_at(
    computation: HloComputation, targets: Sequence[Array], places: Places, updates: Sequence[Array], call: Caller
) -> list[Array]:
    """target[place] = computation(targets..., updates...) for one update after the other.

    Args:
        computation: (current values..., updates...) -> new values.
        targets: Vectors of one length; they are not changed.
        places: An index into the targets for each update.
        updates: Vectors as long as `places`.
        call: Evaluates a computation.
    """
    if _is_assignment(computation, len(targets)):
        results = [target.copy() for target in targets]
        for result, update in zip(results, updates, strict=True):
            result[places] = update
        return results
    monoid = recognise_monoid(computation) if len(targets) == 1 else None
    if monoid is not None:
        return [_combine_monoid_at(monoid, targets[0], places, updates[0])]
    return _combine_in_rounds(computation, targets, places, updates, call)


def _is_assignment(computation: HloComputation, count: int) -> bool:
    """Whether the computation gives the updates as they are."""
    root = computation.root
    values = root.operands if root.opcode == "tuple" else (root,)
    return len(values) == count and all(
        value.opcode == "parameter" and value.attrs.number == count + position for position, value in enumerate(values)
    )


def _combine_monoid_at(monoid: Monoid, target: Array, places: Places, updates: Array) -> Array:
    with np.errstate(all="ignore"):
        wide = combine_at_places(monoid.kind, widen(target, monoid.dtype), places, widen(updates, monoid.dtype))
    result = target.copy()
    touched = np.zeros(target.shape, np.bool_)
    touched[places] = True
    result[touched] = narrow(wide[touched], monoid.dtype)
    return result


def _combine_in_rounds(
    computation: HloComputation, targets: Sequence[Array], places: Places, updates: Sequence[Array], call: Caller
) -> list[Array]:
    """Round r applies the r-th update of every place, so each place sees its updates in order."""
    function = array_function(computation, call)
    results = [target.copy() for target in targets]
    if not places.size:
        return results
    by_place = np.argsort(places, kind="stable")
    in_order = places[by_place]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    positions = np.arange(len(places))
    round_number = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    by_round = by_place[np.argsort(round_number, kind="stable")]
    ends = np.cumsum(np.bincount(round_number))
    start = 0
    for end in ends:
        chosen = by_round[start:end]
        where = places[chosen]
        combined = function([*(result[where] for result in results), *(update[chosen] for update in updates)])
        for result, new in zip(results, combined, strict=True):
            result[where] = new
        start = end
    return results
