"""How a reduction accumulates: what its lanes start from, how they take an element, and how they come together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.combiner import Combiner
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass


class Accumulation(Combiner):
    """How one reduce instruction accumulates in the registers of a kernel."""

    __slots__ = ()

    @property
    def is_any_order(self) -> bool:
        """Whether elements may be combined in any order."""
        return self.monoids is not None

    def take(
        self, emitter: ElementEmitter, registers: Registers, elements: list[Element], mask: Value | None
    ) -> Registers:
        """The accumulators after they took one element in each lane (of the mask)."""
        taken = flatten(self.follow(emitter, unflatten(registers, elements), elements))
        if mask is None:
            return taken
        return tuple(emitter.fb.select(mask, new, old) for new, old in zip(taken, registers, strict=True))

    def follow(self, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]) -> list[Element]:
        """Accumulators and elements of later columns combined."""
        return self.combine(emitter, a, b)

    def merge(self, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]) -> list[Element]:
        """Two sets of accumulators combined."""
        return self.combine(emitter, a, b)

    def join(
        self, scalar: ElementEmitter, sets: Sequence[Registers], like: Sequence[Element], *, in_order: bool
    ) -> Registers:
        """Brings sets, then lanes together, as a tree.

        Args:
            scalar: An emitter for one lane of the same kernel.
            sets: The accumulators.
            like: Elements of the kinds that the accumulators hold.
            in_order: Whether only what follows one another may be combined.
        """
        registers = self.join_sets(scalar, sets, like)
        if in_order and registers[0].type.is_vector:
            order = _bits_reversed(registers[0].type.lanes)
            registers = tuple(scalar.fb.shuffle(register, None, order) for register in registers)
        if not registers[0].type.is_vector:
            return registers
        whole = _VECTOR_BYTES // min(register.type.scalar.size_bytes for register in registers)
        while registers[0].type.lanes > max(whole, 2):
            registers = self._combine(scalar, *_halves(scalar.fb, registers), like)
        # The last lanes stay in vector registers: scalar comparisons would go through flags. They stay in whole ones:
        # on sums below 256 in narrower ones LLVM 22.1 aborts (it makes PSADBW of them when their types are settled).
        lanes = registers[0].type.lanes
        for distance in (1 << bit for bit in reversed(range(lanes.bit_length() - 1))):
            others = tuple(
                scalar.fb.shuffle(register, None, [i ^ distance for i in range(lanes)]) for register in registers
            )
            registers = self._combine(scalar, registers, others, like)
        return tuple(scalar.fb.extract(register, 0) for register in registers)

    def join_sets(self, emitter: ElementEmitter, sets: Sequence[Registers], like: Sequence[Element]) -> Registers:
        """Brings sets together, lane by lane, as a tree."""
        joined = list(sets)
        while len(joined) > 1:
            pairs = zip(joined[::2], joined[1::2], strict=False)
            odd = joined[-1:] if len(joined) % 2 else []
            joined = [*(self._combine(emitter, a, b, like) for a, b in pairs), *odd]
        (registers,) = joined
        return registers

    def join_lines(
        self, emitter: ElementEmitter, registers: Registers, like: Sequence[Element], count: int
    ) -> Registers:
        """Brings the lanes together that are a multiple of a power of two apart; as many lanes are left."""
        fb, lanes = emitter.fb, registers[0].type.lanes
        distance = lanes // 2
        while distance >= count:
            others = tuple(fb.shuffle(one, None, [lane ^ distance for lane in range(lanes)]) for one in registers)
            registers, distance = self._combine(emitter, registers, others, like), distance // 2
        return tuple(fb.shuffle(register, None, range(count)) for register in registers)

    def results(self, scalar: ElementEmitter, registers: Registers, like: Sequence[Element]) -> tuple[Element, ...]:
        """The results out of initial values and of what was accumulated without them."""
        starts, accumulated = self.starts(scalar), unflatten(registers, like)
        if self.monoids is not None and starts == self.identities:
            return self.rounded(scalar, accumulated)
        return self.rounded(scalar, self.combine(scalar, starts, accumulated))

    def sources(
        self, results: Sequence[Element], source: Callable[[Element], ElementSource]
    ) -> dict[HloInstruction, ElementSource]:
        """Where those that read the reduction find its results."""
        if not self.reduce.shape.is_tuple:
            return {self.reduce: source(results[0])}
        readers = [user for user in self.reduce.users if user.opcode == "get-tuple-element"]
        return {reader: source(results[reader.attrs.index]) for reader in readers}

    def _combine(self, emitter: ElementEmitter, a: Registers, b: Registers, like: Sequence[Element]) -> Registers:
        wide = ElementEmitter(emitter.fb, a[0].type.lanes if a[0].type.is_vector else 1, {}, emitter.rules)
        return flatten(self.merge(wide, unflatten(a, like), unflatten(b, like)))


@dataclass(frozen=True, slots=True)
class Accumulations:
    """How reductions accumulate side by side, the registers of one behind those of the one before.

    Attributes:
        each: The reductions.
    """

    each: tuple[Accumulation, ...]

    @property
    def arrays(self) -> list[HloInstruction]:
        """What is reduced."""
        return [array for accumulation in self.each for array in accumulation.arrays]

    @property
    def have_identities(self) -> bool:
        """Whether lanes may start from something that changes nothing."""
        return all(accumulation.monoids is not None for accumulation in self.each)

    @property
    def are_any_order(self) -> bool:
        """Whether elements may be combined in any order."""
        return all(accumulation.is_any_order for accumulation in self.each)

    def starts(self, emitter: ElementEmitter) -> list[list[Element]]:
        """The initial values of each, in every lane."""
        return [accumulation.starts(emitter) for accumulation in self.each]

    def elements(self, emitter: ElementEmitter, index: Index) -> list[list[Element]]:
        """The elements of each at an index, in every lane."""
        return [accumulation.elements(emitter, index) for accumulation in self.each]

    def take(self, emitter: ElementEmitter, registers: Registers, index: Index, mask: Value | None) -> Registers:
        """The accumulators after they took the elements at an index in each lane (of the mask)."""
        after: list[Value] = []
        for accumulation in self.each:
            elements = accumulation.elements(emitter, index)
            mine = registers[len(after) : len(after) + len(flatten(elements))]
            after += accumulation.take(emitter, mine, elements, mask)
        return tuple(after)

    def parts(
        self, like: Sequence[Sequence[Element]], sets: Sequence[Registers]
    ) -> Iterator[tuple[Accumulation, Sequence[Element], list[Registers]]]:
        """Each reduction with elements of the kinds that it holds, and its part of each set of accumulators."""
        offset = 0
        for accumulation, kinds in zip(self.each, like, strict=True):
            width = len(flatten(kinds))
            yield accumulation, kinds, [registers[offset : offset + width] for registers in sets]
            offset += width


_VECTOR_BYTES = 16
"""What the smallest vector registers hold."""


def _halves(fb: FunctionBuilder, registers: Registers) -> tuple[Registers, Registers]:
    pairs = [fb.split(register) for register in registers]
    return tuple(low for low, _ in pairs), tuple(high for _, high in pairs)


def _bits_reversed(lanes: int) -> list[int]:
    """The order of lanes in which halves of halves are neighbours: 0 4 2 6 1 5 3 7."""
    order = [0]
    while len(order) < lanes:
        order = [*(2 * lane for lane in order), *(2 * lane + 1 for lane in order)]
    return order
