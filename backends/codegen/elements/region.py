"""The condition under which an element lies in some region of an array, and the choice that follows from it.

A condition that is known now, because the position's bounds are, costs nothing. One that is the same for all lanes
clamps the position, so the read stays a plain one where it can; one that differs among lanes masks the read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, Lanes, Position
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.llvm import I1, I64, Value, constant, lanes_of_mask, vector, vector_constant
from xlalite.hlo.ir.instruction import HloInstruction


class Region:
    """Conditions on positions, all of which must hold.

    Attributes:
        emitter: Where their code goes.
        is_nowhere: Whether one is known not to hold; the others then need not be asked.
    """

    def __init__(self, emitter: ElementEmitter) -> None:
        self.emitter = emitter
        self.is_nowhere = False
        self._uniform: Value | None = None
        self._lanes: Value | None = None

    def require_range(
        self, position: Position, size: int, bound: Value | int | None = None, *, masks: bool = False
    ) -> None:
        """Adds 0 <= position < size; if all lanes have one position, a read is moved or, with `masks`, masked.

        The bound is the size, where code is to find it in a register.
        """
        fb, bounds = self.emitter.fb, self.emitter.math.bounds(position)
        if bounds is not None and (bounds[1] < 0 or bounds[0] >= size):
            self.is_nowhere = True
        if bounds is not None and bounds[0] >= 0 and bounds[1] < size:
            return
        bound = bound if isinstance(bound, Value) else constant(I64, size)
        if isinstance(position, Affine) and (position.step == 0 or self.emitter.lanes == 1):
            base = self.emitter.math.scalar(position.base)
            if masks and self.emitter.lanes > 1 and not base.is_constant:
                # It changes in few of the loops around.
                holds = fb.placed(I1, f"icmp ult i64 {base.text}, {bound.text}", base, bound)
                wide = vector(I1, self.emitter.lanes)
                first = fb.placed(wide, f"insertelement {wide.text} poison, i1 {holds.text}, i64 0", holds)
                order = f"<{self.emitter.lanes} x i32> zeroinitializer"
                self._add_lanes(fb.placed(wide, f"shufflevector {first!r}, {wide.text} poison, {order}", first))
            else:
                self._add_uniform(fb.icmp("ult", base, bound))
        elif isinstance(position, Affine) and isinstance(position.base, int):
            places = [position.base + lane * position.step for lane in range(self.emitter.lanes)]
            self._add_lanes(vector_constant(vector(I1, len(places)), [int(0 <= place < size) for place in places]))
        else:
            self._add_lanes(fb.icmp("ult", self.emitter.math.vector(position), fb.splat(bound, self.emitter.lanes)))

    def require_lanes(self, lanes: Value) -> None:
        """Adds that a lane is one of some."""
        self._add_lanes(lanes)

    def require_zero(self, position: Position) -> None:
        """Adds position == 0."""
        fb = self.emitter.fb
        if isinstance(position, Affine) and (position.step == 0 or self.emitter.lanes == 1):
            self._add_uniform(fb.icmp("eq", self.emitter.math.scalar(position.base), 0))
        else:
            self._add_lanes(fb.icmp("eq", self.emitter.math.vector(position), 0))

    def require_multiple(self, position: Position, step: int) -> Position:
        """Adds that a step divides a position; the quotient."""
        math = self.emitter.math
        remainder = None
        if isinstance(position, Affine) and position.step == 0:
            remainder = math.remainder_of_base(position, step)
        if remainder is None:
            self.require_zero(math.modulo(self.non_negative(position), step))
        elif remainder:
            self.is_nowhere = True
        return math.divide(self.non_negative(position), step)

    def non_negative(self, position: Position) -> Position:
        """The position with negative ones made 0, so that it can be divided."""
        fb = self.emitter.fb
        if isinstance(position, Affine) and (position.step == 0 or self.emitter.lanes == 1):
            return Affine(fb.smax(self.emitter.math.scalar(position.base), 0), position.step)
        return Lanes(fb.smax(self.emitter.math.vector(position), 0))

    def choose(self, inside: HloInstruction, source: Index, outside: Callable[[], Element]) -> Element:
        """The element of `inside` at `source` where all conditions hold, else the other one."""
        if self.is_nowhere or (inside.shape.element_count == 0 and not self.is_everywhere):
            return outside()
        (found,) = self.read((inside,), source)
        return found if self.is_everywhere else self.select(found, outside())

    def choose_or_zero(self, inside: HloInstruction, source: Index, zero: Callable[[], Element]) -> Element:
        """`choose` of elements that are zero outside, as masked reads of memory give them by themselves."""
        if self._uniform is not None or self.is_nowhere or inside.opcode != "parameter":
            return self.choose(inside, source, zero)
        return self.read((inside,), source)[0]

    def within(self, emitter: ElementEmitter, order: Sequence[int] | None = None) -> Region:
        """The same conditions for what is emitted in an inner block, or for lanes in another order."""
        inner = Region(emitter)
        inner.is_nowhere, inner._uniform, inner._lanes = self.is_nowhere, self._uniform, self._lanes
        if order is not None and self._lanes is not None:
            inner._lanes = emitter.fb.shuffle(self._lanes, None, order)
        return inner

    @property
    def is_everywhere(self) -> bool:
        """Whether there is no condition."""
        return self._uniform is None and self._lanes is None

    def read(self, arrays: Sequence[HloInstruction], source: Index) -> list[Element]:
        """Elements of arrays that have some, at `source` where all conditions hold, else of no meaning."""
        emitter, uniform, lanes = self.emitter, self._uniform, self._lanes
        if uniform is not None:
            if not self._may_move(source):
                spread = emitter.fb.splat(uniform, emitter.lanes)
                lanes = spread if lanes is None else emitter.fb.and_(spread, lanes)
            source = tuple(self._clamp(position, uniform) for position in source)
        if lanes is None:
            return [emitter.element(array, source) for array in arrays]
        with emitter.masked(lanes) as narrower:
            return [narrower.element(array, source) for array in arrays]

    def _may_move(self, source: Index) -> bool:
        """Whether all lanes that count are in bounds if the first one is at 0: they are the first, and go forward.

        Where it is known which ones count, so is where these lie along a dimension, and others are one for all.
        """
        if self.emitter.lanes == 1:
            return True
        if self.emitter.mask is None and self._lanes is not None and lanes_of_mask(self._lanes) is not None:
            return all(isinstance(one, Affine) and (one.step == 0 or isinstance(one.base, int)) for one in source)
        goes_back = any(isinstance(position, Affine) and position.step < 0 for position in source)
        return self._lanes is None and self.emitter.mask is None and not goes_back

    def select(self, inside: Element, outside: Element) -> Element:
        """The first where all conditions hold, else the second."""
        for condition in (self._uniform, self._lanes):
            if condition is not None:
                inside = _select(self.emitter, condition, inside, outside)
        return inside

    def _clamp(self, position: Position, holds: Value) -> Position:
        """A position that is in bounds whenever the condition does not hold: its first lane moves to 0."""
        fb = self.emitter.fb
        if isinstance(position, Affine):
            if isinstance(position.base, int) and (position.base >= 0 or position.step):
                return position
            return Affine(fb.select(holds, self.emitter.math.scalar(position.base), constant(I64, 0)), position.step)
        places = self.emitter.math.vector(position)
        return Lanes(fb.select(holds, places, constant(places.type, 0)))

    def _add_uniform(self, condition: Value) -> None:
        self._uniform = condition if self._uniform is None else self.emitter.fb.and_(self._uniform, condition)

    def _add_lanes(self, condition: Value) -> None:
        known = [None if one is None else lanes_of_mask(one) for one in (self._lanes, condition)]
        if known[0] is not None and known[1] is not None:
            both = [int(lane in known[0] and lane in known[1]) for lane in range(condition.type.lanes)]
            self._lanes = vector_constant(condition.type, both)
        else:
            self._lanes = condition if self._lanes is None else self.emitter.fb.and_(self._lanes, condition)


def _select(emitter: ElementEmitter, condition: Value, on_true: Element, on_false: Element) -> Element:
    fb = emitter.fb
    if condition.type.is_vector:
        on_true, on_false = emitter.spread(on_true), emitter.spread(on_false)
    else:
        on_true, on_false = emitter.unify((on_true, on_false))
    if isinstance(on_true, tuple) and isinstance(on_false, tuple):
        return fb.select(condition, on_true[0], on_false[0]), fb.select(condition, on_true[1], on_false[1])
    assert isinstance(on_true, Value), "both sides have one element type"
    assert isinstance(on_false, Value), "both sides have one element type"
    return fb.select(condition, on_true, on_false)
