"""The pass that packs right operands of products once: constants now, what loops or several products reuse before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.numbers import why_no_numbers
from xlalite.backends.codegen.kernels.dot.packed_operand import PackedOperand
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.kernels.dot.tilings import FEW_ROWS, Form
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building import construct
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace as replace_instruction
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Literal
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.analysis.loop_state import LoopState, is_element_of, loop_state, with_state
from xlalite.passes.analysis.trip_count import known_trip_count
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.dce import remove_uncalled_computations

_LEAST_READERS = 3
"""Products of one right operand from which on it is packed in front of them.

f32[128,1024] by [1024,1024]: three take 1820 us instead of 2023, eight 4877 instead of 5308, two as long as before;
where the operand has to be turned, which its products do in a cache, four take 2841 instead of 2534, and where the
first tile of rows packs it for the others, nothing is gained: three of [64,1024] by it take 1446 and 1389.
"""

_LEAST_STEPS = 8
"""Steps of a loop from which on a matrix is packed for few rows, which panels only spare vectors across two lines.

f32[1,128] by [128,512], 256 KiB of the second cache: 3.9 us where lines of the matrix begin anywhere, 2.7 in panels.
"""

_PANEL_VECTORS = 2
"""Vectors of a row of a panel, at most, where tiles of several rows meet it."""


@dataclass(frozen=True, slots=True)
class _Packable:
    """A product, by itself or in a fusion, whose right operand can be packed before it runs; or a packing itself.

    Attributes:
        reader: The dot or the fusion.
        number: Which operand of the reader is the matrix.
        packing: How.
        is_packing: Whether the reader packs.
    """

    reader: HloInstruction
    number: int
    packing: PackedOperand
    is_packing: bool = False

    @property
    def matrix(self) -> HloInstruction:
        """The operand."""
        return self.reader.operand(self.number)


@dataclass(frozen=True, slots=True)
class DotOperandPacking(HloPass):
    """dot(x, w) -> dot(x, unpack(packed)), where packed is pack(w) in front of the loop that leaves w as it is.

    Constants are packed now, what several products read in front of them. The dot and what unpacks become one fusion,
    in which the kernel reads the panels; the dots that are fused with what follows them stay so. Requires that kernels
    have been chosen, and that each computation has one caller. Declines where tiles read the matrix as it lies just as
    well, see `plan_dot`.

    Attributes:
        target: What the code is for; its registers say how wide a panel is.
        max_constant_bytes: Larger constants are left alone: a module would hold them twice.
    """

    name: ClassVar[str] = "dot-operand-packing"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)
    max_constant_bytes: int = 16 << 20

    def run(self, module: HloModule) -> bool:
        """Packs constants, what loops, inner ones first, do not change, and what several products read."""
        changed = False
        packings: dict[HloComputation, PackedOperand] = {}
        for computation in module.computations():
            for one in list(self._packables(computation, packings)):
                changed |= self._pack_constant(module, one)
        for instruction in module.instructions():
            state = loop_state(instruction) if instruction.opcode == "while" else None
            if state is not None and not instruction.is_root:
                changed |= self._pack_before(module, state, packings)
        for computation in running_computations(module):
            changed |= self._pack_shared(module, computation, packings)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _pack_constant(self, module: HloModule, one: _Packable) -> bool:
        if one.matrix.opcode != "constant" or one.matrix.shape.size_bytes > self.max_constant_bytes:
            return False
        if not self.may_change():
            return False
        packed = Evaluator().run(_packing_computation(one), one.matrix.attrs.literal.value)
        assert one.reader.parent is not None, "an instruction of a computation"
        panels = one.reader.parent.add(construct.constant(Literal(packed)))
        module.record(self.name, (one.reader.name, one.matrix.name), "packed", "constant", _figures(one))
        _read_panels(module, one, panels)
        return True

    def _pack_before(self, module: HloModule, state: LoopState, packings: dict[HloComputation, PackedOperand]) -> bool:
        if any(user.opcode != "get-tuple-element" for user in state.loop.users):
            return False
        parameter, parent = state.body.parameters[0], state.loop.parent
        assert parent is not None, "a loop in a computation"
        steps = known_trip_count(state.loop)
        least_rows = 1 if steps is None or steps >= _LEAST_STEPS else FEW_ROWS + 1
        found = [
            one
            for one in self._packables(state.body, packings, least_rows)
            if is_element_of(one.matrix, parameter) and state.is_invariant(one.matrix.attrs.index) and self.may_change()
        ]
        if not found:
            return False
        outside: dict[tuple[int, PackedOperand], HloInstruction] = {}
        for one in found:
            key = one.matrix.attrs.index, one.packing
            if key in outside:
                continue
            computation = module.add(_packing_computation(one))
            packings[computation] = one.packing
            attrs, matrix = FusionAttrs(FusionKind.LOOP), state.initial[key[0]]
            outside[key] = parent.add(
                create("fusion", (matrix,), attrs, (computation,), shape=computation.root.shape, name="packed")
            )
        first = len(state.initial)
        loop, body = with_state(state, range(first), list(outside.values()))
        places = {key: first + number for number, key in enumerate(outside)}
        for one in found:
            key = one.matrix.attrs.index, one.packing
            panels = body.add(construct.element(body.parameters[0], places[key]))
            inside = replace(one, reader=body.find(one.reader.name))
            module.record(self.name, (loop.name, one.reader.name), "packed", "the loop reuses it", _figures(one))
            if one.is_packing:
                replace_instruction(inside.reader, panels)
            else:
                _read_panels(module, inside, panels)
        return True

    def _pack_shared(
        self, module: HloModule, computation: HloComputation, packings: dict[HloComputation, PackedOperand]
    ) -> bool:
        """Packs what several products of a computation read, in front of them."""
        groups: dict[tuple[HloInstruction, PackedOperand], list[_Packable]] = {}
        for one in self._packables(computation, packings, in_panels=False):
            if not one.is_packing and not one.packing.is_turned:
                groups.setdefault((one.matrix, one.packing), []).append(one)
        changed = False
        for (matrix, packing), readers in groups.items():
            if len(readers) < _LEAST_READERS or not self.may_change():
                continue
            body = module.add(_packing_computation(readers[0]))
            packings[body] = packing
            attrs, shape = FusionAttrs(FusionKind.LOOP), body.root.shape
            panels = computation.add(create("fusion", (matrix,), attrs, (body,), shape=shape, name="packed"))
            names = (matrix.name, *(one.reader.name for one in readers))
            module.record(self.name, names, "packed", "several products read it", _figures(readers[0]))
            for one in readers:
                _read_panels(module, one, panels)
            changed = True
        return changed

    def _packables(
        self,
        computation: HloComputation,
        packings: Mapping[HloComputation, PackedOperand],
        least_rows: int = FEW_ROWS + 1,
        *,
        in_panels: bool = True,
    ) -> Iterator[_Packable]:
        for instruction in computation.post_order():
            if instruction.opcode == "dot":
                packing = self._packing(instruction, least_rows, in_panels=in_panels)
                if packing is not None:
                    yield _Packable(instruction, 1, packing)
            if instruction.opcode != "fusion":
                continue
            (body,) = instruction.called_computations
            if body in packings:
                yield _Packable(instruction, 0, packings[body], is_packing=True)
            for dot in body.instructions:
                matrix = dot.operand(1) if dot.opcode == "dot" else None
                if (
                    matrix is None
                    or matrix.opcode != "parameter"
                    or matrix.user_count > 1
                    or matrix in dot.operands[:1]
                ):
                    continue
                packing = self._packing(dot, least_rows, in_panels=in_panels)
                if packing is not None:
                    yield _Packable(instruction, matrix.attrs.number, packing)

    def _packing(self, dot: HloInstruction, least_rows: int, *, in_panels: bool) -> PackedOperand | None:
        """How the right operand would be packed; None if tiles read it as it lies, or pack it, just as well."""
        if why_no_numbers(dot) or dot.operand(1).shape.rank != 2 or not dot.shape.element_count:
            return None
        plan = plan_dot(dot, self.target)
        numbers, view = plan.numbers, plan.view
        is_plain = plan.form is Form.COLUMNS and not plan.flipped and not dot.attrs.rhs_batch_dims
        if not is_plain or not numbers.is_direct(numbers.rhs) or plan.columns % plan.lanes or view.k < 2:
            return None
        size = view.k * view.n * numbers.kept.size_bytes
        if view.n <= plan.columns or view.m < least_rows or size <= self.target.cache_bytes[0]:
            return None
        if plan.shares_panels and not in_panels:
            return None
        width = min(plan.columns, _PANEL_VECTORS * plan.lanes) if plan.shares_panels else plan.columns
        return PackedOperand(view.k, view.n, width, dot.attrs.rhs_contracting_dims == (1,))


def _figures(one: _Packable) -> dict[str, int | float | str]:
    return {"bytes": one.matrix.shape.size_bytes, "panel": f"{one.packing.k}x{one.packing.width}"}


def _packing_computation(one: _Packable) -> HloComputation:
    computation = HloComputation("packing")
    parameter = create("parameter", (), ParameterAttrs(0), shape=one.matrix.shape, name="matrix")
    computation.set_root(_add(computation, one.packing.packed(computation.add(parameter))))
    return computation


def _read_panels(module: HloModule, one: _Packable, panels: HloInstruction) -> None:
    """Puts a fusion that reads the panels in the place of the reader."""
    reader = one.reader
    operands = [panels if number == one.number else operand for number, operand in enumerate(reader.operands)]
    is_fusion = reader.opcode == "fusion"
    old = reader.called_computations[0] if is_fusion else _computation_of(reader)
    attrs = reader.attrs if is_fusion else FusionAttrs(FusionKind.OUTPUT)
    name = reader.name if is_fusion else f"{reader.name}_fusion"
    body = module.add(_reading_panels(old, one, panels))
    replace_instruction(reader, create("fusion", operands, attrs, (body,), shape=reader.shape, name=name))


def _computation_of(dot: HloInstruction) -> HloComputation:
    computation = HloComputation(f"fused_{dot.name}")
    parameters = [
        computation.add(create("parameter", (), ParameterAttrs(number), shape=operand.shape, name=f"param_{number}"))
        for number, operand in enumerate(dot.operands)
    ]
    computation.set_root(computation.add(dot.clone(parameters)))
    return computation


def _reading_panels(old: HloComputation, one: _Packable, panels: HloInstruction) -> HloComputation:
    """A copy of a computation in which a parameter is the panels, and the dot reads what they unpack to."""
    twin = HloComputation(old.name)
    copies: dict[HloInstruction, HloInstruction] = {}
    for instruction in old.post_order():
        matrix = old.parameters[one.number]
        operands = [copies[operand] for operand in instruction.operands]
        if instruction is matrix:
            copy = instruction.clone((), shape=panels.shape)
        elif matrix in instruction.operands:
            unpacked = _add(twin, one.packing.unpacked(copies[matrix]))
            copy = instruction.clone(
                (operands[0], unpacked), attrs=replace(instruction.attrs, rhs_contracting_dims=(0,))
            )
        else:
            copy = instruction.clone(operands)
        copies[instruction] = twin.add(copy)
    twin.set_root(copies[old.root])
    return twin


def _add(computation: HloComputation, chain: HloInstruction) -> HloInstruction:
    """Adds a loose instruction after the loose ones that it depends on."""
    for operand in chain.operands:
        if operand.parent is None:
            _add(computation, operand)
    return computation.add(chain)
