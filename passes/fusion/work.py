"""How often a kernel evaluates each of its instructions, and how much of that is work done before.

A kernel evaluates what is read at its own index once a point, what is read once a row once a row; what is read at
another index is evaluated for each read. Producer and consumer may share a kernel only if little is computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.window import Window
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.fusion.domain import Domain, Place
from xlalite.passes.fusion.fusible import is_expensive, only_adds_ones, only_moves

if TYPE_CHECKING:
    from xlalite.hlo.ops.dot import DotAttrs
    from xlalite.hlo.ops.gathering import GatherAttrs

EXPENSIVE_FLOPS = 16
"""Simple operations that take about as long as an expensive one."""

RECOMPUTED_FLOPS = 8
"""Simple operations that a kernel may do again for each of its points: they hide behind its loads and stores."""

MAX_INDICES = 64
"""Different indices at which a kernel may read one instruction: each has code of its own."""

PARTS_OF_SCATTER = 4
"""Parts of what a scatter updates, about: each looks at all indices."""


class Evaluations:
    """How often a kernel evaluates its instructions: at how many indices, each so many times.

    What several instructions read at one index is evaluated once for all of them.
    """

    __slots__ = ("_batches", "_by_index", "_domain", "_indices")

    def __init__(self, domain: Domain) -> None:
        """Nothing is evaluated yet.

        Args:
            domain: What the kernel walks over.
        """
        self._domain = domain
        self._by_index: dict[HloInstruction, dict[int, int]] = {}
        self._indices: dict[object, int] = {}
        self._batches: dict[int, tuple[int, int]] = {}

    def add(self, instruction: HloInstruction, place: Place, users: Iterable[HloInstruction]) -> None:
        """Counts the evaluations of an instruction that users, which were added, read at a place."""
        self._by_index[instruction] = self.by_index(instruction, place, users)

    def of(self, instruction: HloInstruction) -> int:
        """How often an instruction that was added is evaluated; 0 for others."""
        return sum(self._by_index.get(instruction, {}).values())

    def by_index(self, instruction: HloInstruction, place: Place, users: Iterable[HloInstruction]) -> dict[int, int]:
        """How often an instruction that is read at a place would be evaluated at each index."""
        if place is not Place.OTHER:
            return {self._index(place): self._points(place)}
        found: dict[int, int] = {}
        for user in users:
            for index, count in self._by_index.get(user, {}).items():
                for number in user.operand_positions(instruction):
                    if user.op.is_elementwise or user.opcode == "copy" or only_adds_ones(user):
                        found[index] = count
                    elif (batch := self._batch(user, number, index)) is not None:
                        found[batch] = _reads(user, number, count)
                    else:
                        for part in range(_parts_joined(user)):
                            found[self._index((user, number, index, part))] = _reads(user, number, count)
        return found

    def _batch(self, user: HloInstruction, number: int, index: int) -> int | None:
        """At which index a gather reads its index vectors, and they what their components are put together of.

        Components are read at the place in the batch that the vector has: all gathers at it share them.
        """
        if user.opcode == "gather" and number == 1:
            attrs: GatherAttrs = user.attrs
            batch = self._index((attrs.offset_dims, index)) if attrs.offset_dims else index
            vector = self._index((attrs.index_vector_dim, batch))
            self._batches[vector] = batch, attrs.index_vector_dim
            return vector
        if user.opcode == "concatenate" and index in self._batches:
            batch, dimension = self._batches[index]
            if user.attrs.dimension == dimension and user.operand(number).shape.dims[dimension] == 1:
                return batch
        return None

    def _index(self, what: object) -> int:
        return self._indices.setdefault(what, len(self._indices))

    def _points(self, place: Place) -> int:
        if place is Place.SCALAR:
            return 1
        return self._domain.element_count if place is Place.FULL else math.prod(self._domain.row_dims)


def evaluations(
    users_first: Iterable[HloInstruction], places: Mapping[HloInstruction, Place], domain: Domain
) -> Evaluations:
    """How often a kernel evaluates instructions; those without a place are not evaluated."""
    counted = Evaluations(domain)
    for instruction in users_first:
        if instruction in places:
            counted.add(instruction, places[instruction], instruction.users)
    return counted


def recomputed_flops(instruction: HloInstruction, count: int) -> int:
    """Operations spent on elements that were computed before, when an instruction is evaluated `count` times."""
    if only_moves(instruction) or not instruction.shape.is_array:
        return 0
    work = EXPENSIVE_FLOPS if is_expensive(instruction) else 1
    return max(0, count - instruction.shape.element_count) * work


def _parts_joined(user: HloInstruction) -> int:
    """At how many indices of its operand an instruction reads for one index of its own, each with code of its own."""
    if user.opcode != "bitcast-convert":
        return 1
    return max(1, user.shape.dtype.bits // user.operand(0).shape.dtype.bits)


def _reads(user: HloInstruction, number: int, count: int) -> int:
    """How many elements of an operand an instruction reads that is evaluated so often."""
    dims = user.operand(number).shape.dims
    if user.opcode == "concatenate" or (user.opcode == "dynamic-update-slice" and number == 1):
        return -(-count * math.prod(dims) // max(user.shape.element_count, 1))
    if user.opcode == "scatter" and number >= len(user.operands) // 2:
        return math.prod(dims) * (PARTS_OF_SCATTER if number == len(user.operands) // 2 else 1)
    summed: tuple[int, ...] = ()
    if user.opcode == "reduce" and number < len(user.operands) // 2:
        summed = user.attrs.dimensions
    elif user.opcode == "dot":
        attrs: DotAttrs = user.attrs
        summed = attrs.rhs_contracting_dims if number else attrs.lhs_contracting_dims
    elif user.opcode == "reduce-window" and number < len(user.operands) // 2:
        window: Window = user.attrs.window
        return count if accumulated_dimension(user) is not None else count * math.prod(window.sizes)
    elif user.opcode == "convolution":
        kernel, labels = user.operand(1).shape.dims, user.attrs.dim_labels
        return count * math.prod(size for dim, size in enumerate(kernel) if dim != labels.kernel_output_feature)
    elif user.opcode == "gather" and number == 1:
        summed = tuple(range(len(dims)))[user.attrs.index_vector_dim :][:1]
    return count * math.prod(dims[d] for d in summed)
