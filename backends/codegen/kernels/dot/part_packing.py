"""Packs parts of operands, tile by tile: out of memory, or as they are computed."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.computed_operand import ComputePart, Range
from xlalite.backends.codegen.kernels.dot.driver_part import DriverPart
from xlalite.backends.codegen.kernels.dot.layout import OperandLayout
from xlalite.backends.codegen.kernels.dot.packers import pack
from xlalite.backends.codegen.kernels.dot.packing import TERMS_AT_ONCE, WORDS_AT_ONCE
from xlalite.backends.codegen.kernels.scalars import Scalar
from xlalite.backends.codegen.llvm import I32, VOID, Function, Value, constant
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class PartPacker(DriverPart):
    """Emits the packing of parts of operands into the scratch memory of a piece of work.

    Attributes:
        place: Gives the address of an offset in the scratch memory.
        computing: The function that computes parts instead, if there is one.
    """

    place: Callable[[int], Value]
    computing: Function | None = None

    def pack(
        self, operand: OperandLayout, source: Value | ComputePart, outer: Range, depth: Range, product: Scalar = 0
    ) -> None:
        """Packs a part of an operand, whose product begins at an address or which is computed, into its place."""
        fb, math, packing = self.fb, self.math, operand.packing
        assert packing is not None, "the caller asked"
        if self.computing is not None:
            given = map(math.value, (product, *outer, *depth))
            fb.call_pointer(self.callee(self.computing), VOID, (fb.parameters[0], *given, self.place(0)))
            return
        target = self.place(operand.offset)
        (first, extent), (term, terms) = outer, depth
        if operand.least_offset is not None:
            fb.store(constant(I32, -1), self.place(operand.least_offset), 4)
        if not operand.tile_extent:
            if isinstance(source, Value):
                self._call(operand, source, target, (term, first, terms, extent))
            else:
                source(outer, depth, target, packing.target_line)
            return
        # Lines that several tiles share are copied for all of them while they are in the nearest cache.
        step, most = operand.tile_extent, max(1, self.plan.unit_depth)
        if operand.stage is not None:
            most = operand.stage.terms
        elif packing.source_x.is_contiguous:
            most = TERMS_AT_ONCE if packing.word == 1 else WORDS_AT_ONCE
        with math.steps(terms, most) as begin, math.steps(extent, step) as start:
            place = math.add(
                math.multiply(math.divide(start, step), operand.tile),
                math.multiply(math.divide(begin, packing.word), packing.depth_line),
            )
            place_of_part = math.address(self.plan.numbers.kept, target, place)
            width, height = math.piece(start, step, extent), math.piece(begin, most, terms)
            x, y = math.add(first, start), math.add(term, begin)
            if isinstance(source, Value):
                self._pack_lines(operand, source, place_of_part, (x, width), (y, height))
            elif operand.stage is None:
                source((x, width), (y, height), place_of_part, packing.target_line)
            else:
                stage = self.place(operand.stage.offset)
                source((x, width), (y, height), stage, operand.stage.line)
                self._call(operand, stage, place_of_part, (0, 0, width, height))

    def _pack_lines(self, operand: OperandLayout, source: Value, target: Value, outer: Range, depth: Range) -> None:
        """Packs a part of an operand in memory; where each x has a line of its own, one run of x after the other."""
        fb, math, walk = self.fb, self.math, self.plan.view.lhs.outer
        assert operand.packing is not None, "the caller asked"
        (x, width), (y, height), packing = outer, depth, operand.packing
        if not packing.in_lines or walk.is_single:
            self._call(operand, source, target, (x, y, width, height))
            return
        assert packing.dtype is not None, "operands are packed from their own type"
        end, memory = math.add(x, width), representation(packing.dtype).memory
        runs = math.divide(x, walk.run), math.divide(math.add(end, walk.run - 1), walk.run)
        with fb.loop(*map(math.value, runs), nonempty=True) as number:
            begin = math.multiply(number, walk.run)
            first = fb.smax(math.value(begin), math.value(x))
            line = math.address(memory, source, walk.place(math, first))
            place = math.address(I32, target, math.multiply(math.subtract(first, x), packing.target_line))
            count = math.subtract(math.least(math.add(begin, walk.run), end), first)
            self._call(operand, line, place, (0, y, count, height))

    def _call(
        self, operand: OperandLayout, source: Value, target: Value, part: tuple[Scalar, Scalar, Scalar, Scalar]
    ) -> None:
        """Calls the function that packs, which may say how small exponents are."""
        fb = self.fb
        assert operand.packing is not None, "the caller asked"
        given = map(self.math.value, (*part, *operand.packing.strides))
        numbers, arguments = self.plan.numbers, (source, target, *given)
        found = pack(self.module, fb, self.callee, numbers, operand.packing, arguments)
        if operand.least_offset is not None:
            assert found is not None, "packing bf16 gives an exponent"
            least = self.place(operand.least_offset)
            fb.store(fb.umin(fb.load(I32, least, 4), found), least, 4)
