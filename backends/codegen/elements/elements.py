"""Element generators: the code that computes the elements of an instruction at an index.

Each operation has one rule that builds its element out of its operands' elements, so fusion is composition: asking the
root of a fused computation for an element emits the whole expression. A rule is written once and serves one lane and a
vector of lanes. Elements that are the same in all lanes stay scalars until they meet a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from xlalite.backends.codegen.arrays.index import Index, IndexMath, Position, index_key
from xlalite.backends.codegen.arrays.ir_array import Rows
from xlalite.backends.codegen.arrays.types import Element, representation, round_result
from xlalite.backends.codegen.errors import UnsupportedOperationError
from xlalite.backends.codegen.llvm import FunctionBuilder, TargetInfo, Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import dependencies_first
from xlalite.hlo.types.dtype import DType

if TYPE_CHECKING:
    from xlalite.backends.codegen.elements.known_divisors import KnownDivisor

ElementSource: TypeAlias = "Callable[[ElementEmitter, Index], Element]"
"""Gives the elements of what the kernel does not compute: an operand in memory, a value in a register."""

ElementRule: TypeAlias = "Callable[[ElementEmitter, HloInstruction, Index], Element]"

_DEEP = 64
"""Instructions of a function from which on operands are emitted before rules ask for them: Python nests 1000 calls."""

_OF_F16 = frozenset(
    ("abs", "add", "clamp", "compare", "maximum", "minimum", "multiply", "negate", "select", "sign", "subtract")
)


def computes_f16(target: TargetInfo, instruction: HloInstruction) -> bool:
    """Whether the machine has an operation on f16 itself, which gives the very results that f32 has, rounded.

    f32 has two digits more than twice those of f16 (Figueroa, "When is double rounding innocuous?", 1995). Quotients
    and roots take longer so than in f32.
    """
    is_of_f16 = instruction.opcode in _OF_F16 and instruction.operands[-1].shape.dtype is DType.F16
    return is_of_f16 and target.has("avx512fp16") and target.has("avx512vl")


class ElementEmitter:
    """Emits elements of the instructions of one computation, for a fixed number of lanes.

    Attributes:
        fb: Where code goes.
        math: Index arithmetic for the lane count.
        lanes: Number of lanes; 1 emits scalar code.
        mask: Lanes that may touch memory; None for all.
        sources: Instructions whose elements come from elsewhere.
        leaves: The scalars in tuples that are known, or were emitted in this block.
        is_function: Whether the computation is applied to elements, so that its scalars differ from lane to lane.
        rows: What was read in this block in whole rows.
        starts: Where windows begin that were cut out in this block.
        divisors: Instructions of which each element is one number, and what divides by it.
    """

    def __init__(
        self,
        fb: FunctionBuilder,
        lanes: int,
        sources: Mapping[HloInstruction, ElementSource],
        rules: Mapping[str, ElementRule],
        mask: Value | None = None,
    ) -> None:
        self.fb = fb
        self.lanes = lanes
        self.math = IndexMath(fb, lanes)
        self.mask = mask
        self.is_function = False
        self.divisors: Mapping[HloInstruction, KnownDivisor] = {}
        self.sources = dict(sources)
        self.rules = rules
        self.leaves: dict[HloInstruction, tuple[Element, ...]] = {}
        self.rows: Rows = {}
        self.starts: dict[tuple[object, ...], Position] = {}
        self._emitted: dict[tuple[object, ...], Element] = {}
        # Most operands are asked for at the very index of their user.
        self._last_index: tuple[Index, tuple[object, ...]] = ((), ())

    def element(self, instruction: HloInstruction, index: Index) -> Element:
        """The elements of an instruction's value at an index; emitted once for each index in a block."""
        asked, spelt = self._last_index
        if asked is not index:
            spelt = index_key(index)
            self._last_index = index, spelt
        key = (instruction, spelt)
        found = self._emitted.get(key)
        if found is None:
            found = self._emit(instruction, index)
            self._emitted[key] = found
        return found

    def register(self, instruction: HloInstruction, index: Index) -> Value:
        """`element` for a type that takes one register."""
        element = self.element(instruction, index)
        assert isinstance(element, Value), f"%{instruction.name} is complex"
        return element

    def vector(self, instruction: HloInstruction, index: Index) -> Element:
        """`element`, spread over all lanes when it is the same in each."""
        element = self.element(instruction, index)
        return self.spread(element)

    def spread(self, element: Element) -> Element:
        """The element in every lane."""
        if self.lanes == 1:
            return element
        if isinstance(element, tuple):
            return (self._spread(element[0]), self._spread(element[1]))
        return self._spread(element)

    def rounds(self, dtype: DType) -> bool:
        """Whether results are brought back into a type at once; of narrow floats that may be left to stores."""
        return not (self.fb.module.excess_precision and representation(dtype).is_narrow_float)

    def rounded(self, dtype: DType, value: Value) -> Value:
        """The result of an operation brought back into its type, if that is not left to stores."""
        return round_result(self.fb, dtype, value) if self.rounds(dtype) else value

    def as_f16(self, instruction: HloInstruction, values: Sequence[Value]) -> tuple[Value, ...]:
        """Operands of f16 in 16 bits, if the machine has the operation and results are of their type; else none."""
        if not computes_f16(self.fb.module.target, instruction):
            return ()
        from xlalite.backends.codegen.arrays.narrow_floats import half_of

        return tuple(half_of(self.fb, value) for value in values)

    def value_of_half(self, half: Value) -> Value:
        """What was computed of such operands."""
        from xlalite.backends.codegen.arrays.narrow_floats import value_of_half

        return value_of_half(self.fb, half)

    def unify(self, elements: Sequence[Element]) -> tuple[Element, ...]:
        """The elements all as scalars, when they all are, or all spread over the lanes."""
        if self.lanes == 1 or not any(_is_vector(element) for element in elements):
            return tuple(elements)
        return tuple(self.spread(element) for element in elements)

    @contextmanager
    def masked(self, mask: Value) -> Iterator[ElementEmitter]:
        """A narrower emitter whose reads touch memory only in lanes of `mask` (and of this one's)."""
        both = mask if self.mask is None else self.fb.and_(self.mask, mask)
        yield self.fresh(both)

    def fresh(self, mask: Value | None = None) -> ElementEmitter:
        """An emitter for another block (or mask), which must not use values emitted in this one's block."""
        twin = self._twin(self.lanes, self.sources, self.mask if mask is None else mask)
        twin.leaves = {known: leaves for known, leaves in self.leaves.items() if known.opcode == "parameter"}
        return twin

    def inner(self) -> ElementEmitter:
        """An emitter for a block inside this one: it sees what was emitted here, and this one not what is inside."""
        twin = self.fresh()
        twin._emitted, twin.leaves = dict(self._emitted), dict(self.leaves)
        return twin

    def scalar(self) -> ElementEmitter:
        """An emitter of the same computation for one lane."""
        return self._twin(1, self.sources, None)

    def function(self, sources: Mapping[HloInstruction, ElementSource], mask: Value | None) -> ElementEmitter:
        """An emitter of a computation that is applied to elements; of masked lanes, if there is a mask."""
        twin = self._twin(self.lanes, sources, mask)
        twin.is_function = True
        return twin

    def apply(
        self,
        computation: HloComputation,
        arguments: Sequence[Element],
        *,
        results: Sequence[HloInstruction] | None = None,
    ) -> tuple[Element, ...]:
        """A scalar computation applied to elements: what its root gives (or a root tuple's parts), or other results."""
        sources = {
            parameter: always(argument) for parameter, argument in zip(computation.parameters, arguments, strict=True)
        }
        emitter = self.function(sources, self.mask)
        if results is None:
            results = computation.root.operands if computation.root.shape.is_tuple else (computation.root,)
        emitter.prepare(computation, results)
        return tuple(emitter.element(result, ()) for result in results)

    def prepare(self, computation: HloComputation, results: Sequence[HloInstruction]) -> None:
        """Emits the scalars that results need, operands first, if they are so many that rules would nest too deep."""
        if len(computation) > _DEEP:
            for each in dependencies_first(results):
                if each.shape.is_array and each.shape.rank == 0:
                    self.element(each, ())

    def _twin(self, lanes: int, sources: Mapping[HloInstruction, ElementSource], mask: Value | None) -> ElementEmitter:
        twin = ElementEmitter(self.fb, lanes, sources, self.rules, mask)
        twin.is_function, twin.divisors = self.is_function, self.divisors
        return twin

    def _emit(self, instruction: HloInstruction, index: Index) -> Element:
        source = self.sources.get(instruction)
        if source is not None:
            return source(self, index)
        rule = self.rules.get(instruction.opcode)
        if rule is None:
            raise UnsupportedOperationError(
                f"generating code for %{instruction.name}: the CPU backend cannot compute {instruction.opcode} "
                f"inside a kernel"
            )
        return rule(self, instruction, index)

    def _spread(self, value: Value) -> Value:
        return value if value.type.is_vector else self.fb.splat(value, self.lanes)


def always(element: Element) -> ElementSource:
    """A source that has one element at every index."""
    return lambda emitter, index: element


def _is_vector(element: Element) -> bool:
    return (element[0] if isinstance(element, tuple) else element).type.is_vector
