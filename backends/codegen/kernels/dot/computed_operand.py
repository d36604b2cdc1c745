"""Operands of a product that are in no memory: its kernel computes them part by part, where it would pack them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from xlalite.backends.codegen.arrays.index import ZERO, Affine, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation, to_memory
from xlalite.backends.codegen.elements.elements import ElementSource, always
from xlalite.backends.codegen.kernels.dot.finish import split_position
from xlalite.backends.codegen.kernels.dot.numbers import Numbers, numbers_of
from xlalite.backends.codegen.kernels.dot.packed_operand import memory_of
from xlalite.backends.codegen.kernels.dot.view import operand_dimensions
from xlalite.backends.codegen.kernels.estimate import bytes_read
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.throughput import (
    FLOPS_PER_NS,
    MULTIPLY_ADDS_PER_NS,
    TRANSCENDENTALS_PER_NS,
    bytes_per_ns,
)
from xlalite.backends.codegen.llvm import TargetInfo, Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.fusion.fusible import is_immediate, why_not_fusible

_FEW_VECTORS = 2
"""Vectors of a line that are spelt out."""

Range: TypeAlias = "tuple[Scalar, Scalar]"
"""The first one, and how many."""

ComputePart: TypeAlias = "Callable[[Range, Range, Value, int], None]"
"""Computes rows (or columns of a right operand) and terms into memory, whose lines are so many elements apart."""


def is_computed_operand(operand: HloInstruction) -> bool:
    """Whether an operand, as `memory_of` gives it, is computed in the kernel."""
    return operand.opcode != "parameter"


def computed_operands(product: HloInstruction) -> str:
    """Which operands are computed, in words."""
    named = zip(("lhs", "rhs"), memory_of(product), strict=True)
    return ", ".join(name for name, operand in named if is_computed_operand(operand))


def why_not_computed(product: HloInstruction) -> str | None:
    """Why a kernel cannot compute the operands that are no parameters; None if it can, or if there are none."""
    for number, operand in enumerate(memory_of(product)):
        if not is_computed_operand(operand):
            continue
        if product.opcode != "dot" or not operand.shape.element_count:
            return f"an operand of the {product.opcode} is computed in the kernel"
        for one in _computed(operand):
            if why_not_fusible(one) is not None or one.opcode in ("convolution", "reduce-window"):
                return f"{one.opcode} is not computed part by part"
        if _minor_axis(product, number) is None:
            return "neighbours in a computed operand are neighbours neither among its rows nor among its terms"
    return None


def computing_cycles(dot: HloInstruction, target: TargetInfo) -> tuple[float, float]:
    """Cycles to compute a vector of each operand; 0 for one in memory."""
    lhs, rhs = (
        _cycles(operand, target.lanes(numbers_of(dot).kept.bits), target) if is_computed_operand(operand) else 0.0
        for operand in memory_of(dot)
    )
    return lhs, rhs


def bytes_for_computing(dot: HloInstruction) -> int:
    """Bytes that computed operands are made of; to read them is in the cycles of computing."""
    return sum(_bytes_read(operand) for operand in memory_of(dot) if is_computed_operand(operand))


class ComputedOperand:
    """Emits the computation of an operand, vectors along the dimension in which its array would be contiguous."""

    def __init__(
        self, entry: KernelEntry, body: HloComputation, dot: HloInstruction, number: int, numbers: Numbers, lanes: int
    ) -> None:
        """Of operand `number` of a dot in a kernel's body; lines are a multiple of so many `lanes`."""
        self._entry = entry
        self._lanes = lanes
        self._body = body
        self._operand = dot.operand(number)
        self._dims = operand_dimensions(dot)[number]
        self._is_along_rows = _minor_axis(dot, number) == self._dims.outer
        self._numbers = numbers
        self._known: dict[HloInstruction, ElementSource] = {}
        for one in reversed(_computed(self._operand)):
            if one.shape.is_scalar and not is_immediate(one):
                self._known[one] = always(entry.emitter(1, known=self._known).element(one, ()))

    def compute(self, product: Scalar, rows: Range, terms: Range, target: Value, line: int) -> None:
        """Computes some rows and terms of a product's operand into memory.

        With words they are in the operand's type, as those who pack want it, else in the type of sums. Lines are
        written in whole vectors, of which the part beyond the last element has no meaning.
        """
        fb, math = self._entry.fb, Scalars(self._entry.fb)
        along, across = (rows, terms) if self._is_along_rows else (terms, rows)
        lanes = min(lane_count(fb.module, self._body, line), self._lanes)
        with math.steps(across[1], 1) as number:
            for start in self._starts(along[1], lanes):
                is_whole = isinstance(along[1], int) and along[1] % lanes == 0
                mask = None if is_whole or lanes == 1 else lanes_below(fb, start, along[1], lanes)
                places = (
                    Affine(math.add(along[0], start), 1 if lanes > 1 else 0),
                    Affine(math.add(across[0], number)),
                )
                row, term = places if self._is_along_rows else places[::-1]
                emitter = self._entry.emitter(lanes, mask, self._known)
                element = emitter.vector(self._operand, self._index(emitter.math, Affine(product), row, term))
                assert isinstance(element, Value), "products of complex numbers are others"
                stored = to_memory(fb, self._operand.shape.dtype, element)
                if self._numbers.word == 1:
                    stored = self._numbers.take(fb, self._operand.shape.dtype, stored)
                place = math.add(math.multiply(number, line), start)
                fb.store(stored, math.address(stored.type.scalar, target, place), stored.type.scalar.size_bytes)

    def _starts(self, extent: Scalar, lanes: int) -> Iterator[Scalar]:
        """Where vectors begin: a few are spelt out, others are a loop."""
        if isinstance(extent, int) and extent <= _FEW_VECTORS * lanes:
            yield from range(0, extent, lanes)
            return
        with Scalars(self._entry.fb).steps(extent, lanes) as start:
            yield start

    def _index(self, math: IndexMath, product: Position, row: Position, term: Position) -> tuple[Position, ...]:
        dims = self._operand.shape.dims
        index: list[Position] = [ZERO] * len(dims)
        for joint, numbers in ((product, self._dims.batch), (row, self._dims.outer), (term, self._dims.depth)):
            for number, position in zip(
                numbers, split_position(math, joint, tuple(dims[d] for d in numbers)), strict=True
            ):
                index[number] = position
        return tuple(index)


def _computed(operand: HloInstruction) -> list[HloInstruction]:
    """What is computed for an operand, users before operands."""
    return [one for one in reachable((operand,), lambda one: one.operands) if one.opcode != "parameter"]


def _minor_axis(dot: HloInstruction, number: int) -> tuple[int, ...] | None:
    """The rows or the terms of an operand, if its neighbours are neighbours among them."""
    dims, found = dot.operand(number).shape.dims, operand_dimensions(dot)[number]
    minor = max((d for d, size in enumerate(dims) if size > 1), default=None)
    for axis in (found.outer, found.depth):
        if [d for d in axis if dims[d] > 1] == [minor]:
            return axis
    return found.outer if minor is None else None


def _bytes_read(operand: HloInstruction) -> int:
    read = {source for one in _computed(operand) for source in one.operands if source.opcode == "parameter"}
    return sum(map(bytes_read, read))


def _cycles(operand: HloInstruction, lanes: int, target: TargetInfo) -> float:
    costs = [CostAnalysis().of_instruction(one) for one in _computed(operand)]
    # What is narrower than the registers it is computed in is rounded and widened again each time.
    roundings = 2 if representation(operand.shape.dtype).is_narrow_float else 1
    size = _bytes_read(operand)
    time_ns = size / bytes_per_ns(size, target.cache_bytes)
    time_ns += sum(roundings * one.flops / FLOPS_PER_NS + one.transcendentals / TRANSCENDENTALS_PER_NS for one in costs)
    return 1.0 + time_ns * MULTIPLY_ADDS_PER_NS * lanes / operand.shape.element_count
