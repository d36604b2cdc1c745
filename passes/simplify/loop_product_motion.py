"""Takes products of slices that a loop reads one by one out of it: all of them are one product in front of the loop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace as replace_fields
from typing import Any, ClassVar

from xlalite.hlo.building.construct import dynamic_slice, element, reshape, scalar
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape
from xlalite.passes.analysis.loop_state import LoopState, is_element_of, loop_state, with_state
from xlalite.passes.analysis.trip_count import trip_count
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.dce import remove_uncalled_computations

_MOST_MORE = 8
"""Slices that a loop leaves out may be this part of those that it reads."""


@dataclass(frozen=True, slots=True)
class _SlicedProduct:
    """A dot in a loop's body of which one operand is a slice of what the loop leaves as it is, and the other is, too.

    Attributes:
        dot: The instruction.
        side: Which operand is the slice, its dimension of size 1 perhaps dropped.
        window: The dynamic slice.
        dimension: The only dimension of the array that is not whole in the slice.
        is_dropped: Whether the slice has lost the dimension before it is multiplied.
    """

    dot: HloInstruction
    side: int
    window: HloInstruction
    dimension: int
    is_dropped: bool

    @property
    def array(self) -> HloInstruction:
        """What is sliced, as the body reads it."""
        return self.window.operand(0)

    @property
    def other(self) -> HloInstruction:
        """The operand that is the same in every iteration, as the body reads it."""
        return self.dot.operand(1 - self.side)

    @property
    def place(self) -> int:
        """The sliced dimension in the result for all slices."""
        attrs: DotAttrs = self.attrs
        batch = (attrs.lhs_batch_dims, attrs.rhs_batch_dims)[self.side]
        contracting = (attrs.lhs_contracting_dims, attrs.rhs_contracting_dims)[self.side]
        free = free_dimensions(self.array.shape.rank, batch, contracting)
        others = self.dot.shape.rank + self.is_dropped - len(batch) - len(free)
        return len(batch) + others * self.side + free.index(self.dimension)

    @property
    def attrs(self) -> DotAttrs:
        """Which dimensions of the arrays are paired, when the slice is the whole array."""
        attrs: DotAttrs = self.dot.attrs
        if not self.is_dropped:
            return attrs
        side = ("lhs", "rhs")[self.side]
        names = (f"{side}_batch_dims", f"{side}_contracting_dims")
        moved: dict[str, Any] = {n: tuple(d + (d >= self.dimension) for d in getattr(attrs, n)) for n in names}
        return replace_fields(attrs, **moved)

    @property
    def all_dims(self) -> tuple[int, ...]:
        """Sizes of the result for all slices."""
        dims, size = self.dot.shape.dims, self.array.shape.dims[self.dimension]
        return (*dims[: self.place], size, *dims[self.place + (not self.is_dropped) :])


@dataclass(frozen=True, slots=True)
class LoopProductMotion(HloPass):
    """dot(dynamic-slice(xs, i), w) in a loop that leaves xs and w as they are -> dynamic-slice(dot(xs, w), i).

    The product of all slices, before the loop, reads w once, where products of few rows wait for it each time: the
    inputs of a recurrent cell for one sequence. Any index will do, since both slices clamp it alike. Declines where the
    loop is not known to read about as many slices as there are, where the result would be large, and for more rows: of
    8 the loop's products are as fast, and what is computed before has to come from memory. Sums may be taken in another
    order.

    Attributes:
        max_bytes: Of the result.
        max_rows: Rows of one product.
    """

    name: ClassVar[str] = "while-loop-product-motion"
    opcodes: ClassVar[frozenset[str]] = frozenset({"while"})
    counts_changes: ClassVar[bool] = True

    max_bytes: int = 32 << 20
    max_rows: int = 4

    def run(self, module: HloModule) -> bool:
        """Moves products out of every loop; says whether there was any."""
        changed = False
        for instruction in module.instructions():
            state = loop_state(instruction) if instruction.opcode == "while" else None
            if state is None or instruction.is_root or any(u.opcode != "get-tuple-element" for u in instruction.users):
                continue
            changed |= self._move(module, state)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _move(self, module: HloModule, state: LoopState) -> bool:
        found = [one for one in _sliced_products(state) if self._pays(module, state, one) and self.may_change()]
        if not found:
            return False
        parent = state.loop.parent
        assert parent is not None, "a loop in a computation"
        products = []
        for one in found:
            operands = [state.initial[operand.attrs.index] for operand in (one.array, one.other)]
            shape = Shape.array(one.dot.shape.dtype, one.all_dims)
            products.append(parent.add(create("dot", operands[:: 1 - 2 * one.side], one.attrs, shape=shape)))
        first = len(state.initial)
        loop, body = with_state(state, range(first), products)
        for number, one in enumerate(found):
            dot, window = body.find(one.dot.name), body.find(one.window.name)
            start = window.operand(1 + one.dimension)
            zero = scalar(0, start.shape.dtype)
            starts = [start if d == one.place else zero for d in range(len(one.all_dims))]
            sizes = list(one.all_dims)
            sizes[one.place] = window.shape.dims[one.dimension]
            chosen = dynamic_slice(element(body.parameters[0], first + number), starts, sizes)
            replace(dot, reshape(chosen, dot.shape.dims))
            figures = {"bytes": products[number].shape.size_bytes}
            module.record(self.name, (loop.name, one.dot.name), "moved", "one product for all slices", figures)
        return True

    def _pays(self, module: HloModule, state: LoopState, one: _SlicedProduct) -> bool:
        reason = self._why_not(state, one)
        if reason is not None:
            module.record(self.name, (state.loop.name, one.dot.name), "not moved", reason)
        return reason is None

    def _why_not(self, state: LoopState, one: _SlicedProduct) -> str | None:
        count, size = trip_count(state.loop), one.array.shape.dims[one.dimension]
        if count is None:
            return "how often the loop runs is not known"
        read = count * one.window.shape.dims[one.dimension]
        if read < 2 or size > read + read // _MOST_MORE:
            return "the loop reads only some of the slices"
        if one.dot.shape.element_count * _terms(one) > self.max_rows * one.other.shape.element_count:
            return "each product has rows enough to be fast by itself"
        if one.dot.shape.element_count * size * one.dot.shape.dtype.bits > 8 * self.max_bytes:
            return "the products of all slices would take too much memory"
        return None


def _terms(one: _SlicedProduct) -> int:
    """Terms of a sum."""
    return math.prod(one.dot.operand(0).shape.dims[d] for d in one.dot.attrs.lhs_contracting_dims)


def _sliced_products(state: LoopState) -> Iterator[_SlicedProduct]:
    for dot in state.body.post_order():
        if dot.opcode != "dot" or dot.is_controlled or dot is state.body.root:
            continue
        for side in (0, 1):
            one = _sliced_product(dot, side)
            if one is not None and _is_invariant(state, one.array) and _is_invariant(state, one.other):
                yield one
                break


def _sliced_product(dot: HloInstruction, side: int) -> _SlicedProduct | None:
    window = dot.operand(side)
    is_reshaped = window.opcode == "reshape"
    if is_reshaped:
        window = window.operand(0)
    if window.opcode != "dynamic-slice" or len(window.operands) != 1 + window.shape.rank or dot.shape.is_dynamic:
        return None
    whole, dims = window.operand(0).shape.dims, window.shape.dims
    cut = [dimension for dimension, size in enumerate(dims) if size != whole[dimension]]
    if len(cut) != 1:
        return None
    (dimension,) = cut
    if is_reshaped and (
        dims[dimension] != 1 or (*dims[:dimension], *dims[dimension + 1 :]) != dot.operand(side).shape.dims
    ):
        return None
    attrs: DotAttrs = dot.attrs
    paired = (
        (*attrs.lhs_batch_dims, *attrs.lhs_contracting_dims),
        (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims),
    )
    if not is_reshaped and dimension in paired[side]:
        return None
    return _SlicedProduct(dot, side, window, dimension, is_reshaped)


def _is_invariant(state: LoopState, instruction: HloInstruction) -> bool:
    return is_element_of(instruction, state.body.parameters[0]) and state.is_invariant(instruction.attrs.index)
