"""How a reduction accumulates: what its lanes start from, how they take an element, and how they come together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.cpu.elements import ElementEmitter
from xlalite.backends.cpu.llvm import FunctionBuilder, Value
from xlalite.backends.cpu.reduction import Registers, flatten, round_element, unflatten
from xlalite.backends.cpu.reshaping import immediate
from xlalite.backends.cpu.types import Element
from xlalite.hlo.instruction import HloInstruction
from xlalite.hlo.monoid import recognise_monoid


@dataclass(frozen=True, slots=True)
class Accumulation:
    """One reduce instruction.

    Attributes:
        reduce: The instruction.
        identity: What changes nothing, if its computation is a known monoid.
    """

    reduce: HloInstruction
    identity: Element | None

    @staticmethod
    def of(reduce: HloInstruction) -> Accumulation:
        """How an instruction accumulates."""
        monoid = recognise_monoid(reduce.called_computations[0]) if reduce.shape.is_array else None
        if monoid is None:
            return Accumulation(reduce, None)
        return Accumulation(reduce, immediate(monoid.identity, reduce.shape.dtype))

    @property
    def arrays(self) -> tuple[HloInstruction, ...]:
        """What is reduced."""
        return self.reduce.operands[: len(self.reduce.operands) // 2]

    @property
    def starts(self) -> tuple[HloInstruction, ...]:
        """The initial values."""
        return self.reduce.operands[len(self.reduce.operands) // 2 :]

    def take(
        self, emitter: ElementEmitter, registers: Registers, elements: list[Element], mask: Value | None
    ) -> Registers:
        """The accumulators after they took one element in each lane (of the mask)."""
        carried = unflatten(registers, elements)
        combined = emitter.apply(self.reduce.called_computations[0], [*carried, *elements], rounds=False)
        taken = flatten([emitter.spread(element) for element in combined])
        if mask is None:
            return taken
        return tuple(emitter.fb.select(mask, new, old) for new, old in zip(taken, registers, strict=True))

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
        joined = list(sets)
        while len(joined) > 1:
            pairs = zip(joined[::2], joined[1::2], strict=False)
            odd = joined[-1:] if len(joined) % 2 else []
            joined = [*(self._combine(scalar, a, b, like) for a, b in pairs), *odd]
        (registers,) = joined
        if in_order and registers[0].type.is_vector:
            order = _bits_reversed(registers[0].type.lanes)
            registers = tuple(scalar.fb.shuffle(register, None, order) for register in registers)
        while registers[0].type.is_vector:
            registers = self._combine(scalar, *_halves(scalar.fb, registers), like)
        return registers

    def with_starts(self, scalar: ElementEmitter, registers: Registers, like: Sequence[Element]) -> Registers:
        """The initial values combined with what was accumulated without them."""
        starts = flatten([scalar.element(start, ()) for start in self.starts])
        return self._combine(scalar, starts, registers, like)

    def results(self, scalar: ElementEmitter, registers: Registers, like: Sequence[Element]) -> tuple[Element, ...]:
        """The results, rounded to their types."""
        total = unflatten(registers, like)
        return tuple(round_element(scalar, array, element) for array, element in zip(self.arrays, total, strict=True))

    def _combine(self, emitter: ElementEmitter, a: Registers, b: Registers, like: Sequence[Element]) -> Registers:
        wide = ElementEmitter(emitter.fb, a[0].type.lanes if a[0].type.is_vector else 1, {}, emitter.rules)
        arguments = [*unflatten(a, like), *unflatten(b, like)]
        combined = wide.apply(self.reduce.called_computations[0], arguments, rounds=False)
        return flatten([wide.spread(element) for element in combined])


def _halves(fb: FunctionBuilder, registers: Registers) -> tuple[Registers, Registers]:
    if registers[0].type.lanes == 2:
        return tuple(fb.extract(r, 0) for r in registers), tuple(fb.extract(r, 1) for r in registers)
    pairs = [fb.split(register) for register in registers]
    return tuple(low for low, _ in pairs), tuple(high for _, high in pairs)


def _bits_reversed(lanes: int) -> list[int]:
    """The order of lanes in which halves of halves are neighbours: 0 4 2 6 1 5 3 7."""
    order = [0]
    while len(order) < lanes:
        order = [*(2 * lane for lane in order), *(2 * lane + 1 for lane in order)]
    return order
