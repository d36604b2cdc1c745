"""Expresses scan by a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.rules.shapes import elements_of
from xlalite.hlo.ops.scanning import ScanAttrs, carry_count
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class ScanExpander(OpExpander):
    """scan -> while over (step, inputs, outputs, carries), which takes slices of inputs and updates slices of outputs.

    An input of no steps leaves the carries as they are.
    """

    name: ClassVar[str] = "scan-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"scan"})

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the loop."""
        scan = _Scan(instruction)
        results = scan.loop(builder, operands) if scan.steps else operands[scan.inputs :]
        if not scan.steps:
            empty = elements_of(instruction.shape)[: scan.outputs]
            results = (*(builder.zeros(shape) for shape in empty), *results)
        return builder.tuple(results) if instruction.shape.is_tuple else results[0]


class _Scan:
    """One scan: how many operands and results are what, and the loop for it."""

    def __init__(self, instruction: HloInstruction) -> None:
        attrs: ScanAttrs = instruction.attrs
        (self.function,) = instruction.called_computations
        self.attrs, self.name = attrs, instruction.name
        self.results = elements_of(instruction.shape)
        shapes = [operand.shape for operand in instruction.operands]
        carries = carry_count(shapes, self.function.program_shape, attrs)
        self.inputs, self.outputs = len(shapes) - carries, len(self.results) - carries
        self.steps = shapes[0].dims[attrs.dimension]

    def loop(self, builder: Builder, operands: Sequence[Handle]) -> tuple[Handle, ...]:
        """The outputs and the carries after the last step."""
        outputs = [builder.zeros(shape) for shape in self.results[: self.outputs]]
        counter = builder.constant(0, DType.S32 if self.steps < 2**31 else DType.S64)
        start = builder.tuple([counter, *operands[: self.inputs], *outputs, *operands[self.inputs :]])
        condition = builder.subcomputation(
            f"{self.name}.condition",
            (start.shape,),
            lambda b, p: b.compare(b.element(p[0], 0), self.steps, "LT"),
        )
        body = builder.subcomputation(f"{self.name}.body", (start.shape,), lambda b, p: self._step(b, p[0]))
        end = builder.op("while", (start,), called=(condition, body))
        first = 1 + self.inputs
        return tuple(builder.element(end, first + number) for number in range(len(self.results)))

    def _step(self, builder: Builder, state: Handle) -> Handle:
        counter, *rest = (builder.element(state, number) for number in range(len(state.shape.elements)))
        inputs, outputs = rest[: self.inputs], rest[self.inputs : self.inputs + self.outputs]
        place = builder.match(counter, self.steps - 1)[1] - counter if self.attrs.is_reverse else counter
        taken = [self._slice(builder, array, place) for array in inputs]
        given = builder.op("call", (*taken, *rest[self.inputs + self.outputs :]), called=(self.function,))
        count = len(self.results)
        results = [builder.element(given, number) for number in range(count)] if given.shape.is_tuple else [given]
        updated = [
            self._updated(builder, array, result, place) for array, result in zip(outputs, results, strict=False)
        ]
        return builder.tuple([counter + 1, *inputs, *updated, *results[self.outputs :]])

    def _slice(self, builder: Builder, array: Handle, place: Handle) -> Handle:
        along = self.attrs.dimension
        sizes = (*array.dims[:along], 1, *array.dims[along + 1 :])
        piece = builder.dynamic_slice(array, self._starts(builder, len(sizes), place), sizes)
        return builder.reshape(piece, (*sizes[:along], *sizes[along + 1 :]))

    def _updated(self, builder: Builder, array: Handle, result: Handle, place: Handle) -> Handle:
        along = self.attrs.dimension
        piece = builder.reshape(result, (*result.dims[:along], 1, *result.dims[along:]))
        return builder.op("dynamic-update-slice", (array, piece, *self._starts(builder, len(array.dims), place)))

    def _starts(self, builder: Builder, rank: int, place: Handle) -> list[Handle]:
        zero = builder.constant(0, place.dtype)
        return [place if dimension == self.attrs.dimension else zero for dimension in range(rank)]
