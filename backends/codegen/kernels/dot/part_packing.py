"""Packs parts of operands, tile by tile: out of memory, or as they are computed."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.kernels.dot.computed_operand import ComputePart, Range
from xlalite.backends.codegen.kernels.dot.layout import OperandLayout
from xlalite.backends.codegen.kernels.dot.packers import packer
from xlalite.backends.codegen.kernels.dot.packing import TERMS_AT_ONCE
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I32, Function, FunctionBuilder, ModuleBuilder, Value, constant


class PartPacker:
    """Emits the packing of parts of operands into the scratch memory of a piece of work."""

    def __init__(
        self,
        module: ModuleBuilder,
        fb: FunctionBuilder,
        math: Scalars,
        callee: Callable[[Function], Value],
        plan: DotPlan,
        place: Callable[[int], Value],
    ) -> None:
        """As a driver does; `place` gives the address of an offset in the scratch memory."""
        self._module = module
        self._fb = fb
        self._math = math
        self._callee = callee
        self._plan = plan
        self._place = place

    def pack(self, operand: OperandLayout, source: Value | ComputePart, outer: Range, depth: Range) -> None:
        """Packs a part of an operand, whose product begins at an address or which is computed, into its place."""
        fb, math, packing = self._fb, self._math, operand.packing
        assert packing is not None, "the caller asked"
        target = self._place(operand.offset)
        (first, extent), (term, terms) = outer, depth
        least = None if operand.least_offset is None else self._place(operand.least_offset)
        if least is not None:
            fb.store(constant(I32, -1), least, 4)
        if not operand.tile_extent:
            if isinstance(source, Value):
                self._call(operand, source, target, (term, first, terms, extent))
            else:
                source(outer, depth, target, packing.target_line)
            return
        # Lines that several tiles share are copied for all of them while they are in the nearest cache.
        step, most = operand.tile_extent, max(1, self._plan.unit_depth)
        if operand.stage is not None:
            most = operand.stage.terms
        elif packing.source_x.is_contiguous:
            most = TERMS_AT_ONCE
        with math.steps(terms, most) as begin, math.steps(extent, step) as start:
            place = math.add(
                math.multiply(math.divide(start, step), operand.tile),
                math.multiply(math.divide(begin, packing.word), packing.depth_line),
            )
            place_of_part = math.address(self._plan.numbers.kept, target, place)
            width, height = math.piece(start, step, extent), math.piece(begin, most, terms)
            x, y = math.add(first, start), math.add(term, begin)
            if isinstance(source, Value):
                found = self._call(operand, source, place_of_part, (x, y, width, height))
            elif operand.stage is None:
                source((x, width), (y, height), place_of_part, packing.target_line)
                found = None
            else:
                stage = self._place(operand.stage.offset)
                source((x, width), (y, height), stage, operand.stage.line)
                found = self._call(operand, stage, place_of_part, (0, 0, width, height))
            if least is not None:
                assert found is not None, "packing bf16 gives an exponent"
                fb.store(fb.umin(fb.load(I32, least, 4), found), least, 4)

    def _call(
        self, operand: OperandLayout, source: Value, target: Value, part: tuple[Scalar, Scalar, Scalar, Scalar]
    ) -> Value | None:
        assert operand.packing is not None, "the caller asked"
        pack = packer(self._module, self._plan.numbers, operand.packing)
        given = map(self._math.value, (*part, *operand.packing.strides))
        return self._fb.call_pointer(self._callee(pack), pack.return_type, (source, target, *given))
