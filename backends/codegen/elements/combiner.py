"""How a reduction combines elements: what it starts from, what it applies, and in which precision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Self

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.reshaping import immediate
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import Monoid, recognise_monoids
from xlalite.hlo.ir.wide_function import wide_function
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class Combiner:
    """What a reduce instruction does to accumulators and elements.

    Known monoids are applied as such, however the computation spells them: they have an identity, and take elements in
    any order. Narrow floats are kept in f32 meanwhile, unless a computation rounds them on purpose.

    Attributes:
        reduce: The instruction.
        function: (accumulators..., elements...) -> accumulators, on what is kept meanwhile.
        monoids: One for each array, if they are known.
    """

    reduce: HloInstruction
    function: HloComputation
    monoids: tuple[Monoid, ...] | None

    @classmethod
    def of(cls, reduce: HloInstruction) -> Self:
        """How an instruction combines."""
        function = reduce.called_computations[0]
        monoids = recognise_monoids(function)
        if monoids is not None:
            return cls(reduce, _spelt_out(monoids), monoids)
        return cls(reduce, wide_function(function) or function, None)

    @property
    def arrays(self) -> tuple[HloInstruction, ...]:
        """What is reduced."""
        return self.reduce.operands[: len(self.reduce.operands) // 2]

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Types of the accumulators, which are those of the results."""
        return tuple(leaf.dtype for _, leaf in self.reduce.shape.leaves())

    @property
    def identities(self) -> list[Element]:
        """What changes nothing; only of known monoids."""
        assert self.monoids is not None, "the caller asked"
        return [immediate(monoid.identity, monoid.dtype) for monoid in self.monoids]

    def starts(self, emitter: ElementEmitter) -> list[Element]:
        """The initial values, in every lane."""
        return self._read(emitter, self.reduce.operands[len(self.arrays) :], ())

    def elements(self, emitter: ElementEmitter, index: Index) -> list[Element]:
        """The elements at an index, in every lane, in the accumulators' types."""
        return self._read(emitter, self.arrays, index)

    def converted(self, emitter: ElementEmitter, elements: Sequence[Element]) -> list[Element]:
        """Elements of the arrays, in every lane, in the accumulators' types."""
        return self._convert(emitter, self.arrays, elements)

    def combine(self, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]) -> list[Element]:
        """Two sets of accumulators, or accumulators and elements, combined."""
        combined = emitter.apply(self.function, [*a, *b])
        return [emitter.spread(element) for element in combined]

    def rounded(self, emitter: ElementEmitter, accumulators: Sequence[Element]) -> tuple[Element, ...]:
        """Results accumulated in more precision than their types have, brought back into them."""
        return tuple(
            element if isinstance(element, tuple) else emitter.rounded(dtype, element)
            for dtype, element in zip(self.dtypes, accumulators, strict=True)
        )

    def _read(self, emitter: ElementEmitter, operands: Sequence[HloInstruction], index: Index) -> list[Element]:
        return self._convert(emitter, operands, [emitter.element(operand, index) for operand in operands])

    def _convert(
        self, emitter: ElementEmitter, operands: Sequence[HloInstruction], elements: Sequence[Element]
    ) -> list[Element]:
        return [
            emitter.spread(convert_element(emitter.fb, element, operand.shape.dtype, dtype))
            for operand, element, dtype in zip(operands, elements, self.dtypes, strict=True)
        ]


@lru_cache(maxsize=256)
def _spelt_out(monoids: tuple[Monoid, ...]) -> HloComputation:
    """The plainest computation that applies monoids, to f32 in place of narrower floats."""
    function = HloComputation("combine")
    parameters = [
        function.add(create("parameter", (), ParameterAttrs(number), shape=Shape.array(monoid.dtype)))
        for number, monoid in enumerate((*monoids, *monoids))
    ]
    results = [
        function.add(create(monoid.kind.value, (parameters[number], parameters[len(monoids) + number])))
        for number, monoid in enumerate(monoids)
    ]
    function.set_root(results[0] if len(results) == 1 else function.add(create("tuple", results)))
    return wide_function(function) or function
