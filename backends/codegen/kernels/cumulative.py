"""The cumulative kernel: window reductions whose window grows with the position, such as running sums.

Each element takes up what was accumulated before it, so the work is linear where a window as long as the array would
make it quadratic. Along the minor dimension known monoids are accumulated within a vector in log2(lanes) steps and
then joined with what came before; along others lanes are neighbours that do not meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine, Index, Position, sum_of
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.combiner import Combiner
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.llvm import I64, Function, FunctionBuilder, ModuleBuilder, Value, integer
from xlalite.hlo.ir.monoid import MonoidKind
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.fusion.kernel_shape import KernelShape

_STRIP = 64
"""Neighbouring lines that are accumulated together."""

IndexOf = Callable[[Position, Position], Index]
"""(position along the line, which of neighbouring lines) -> the index of an element."""


def plan_cumulative(request: KernelRequest, shape: KernelShape) -> CumulativeKernel | Declined:
    """The kernel of a window reduction that accumulates along one dimension."""
    root, dims = request.body.root, shape.domain.dims
    dimension = accumulated_dimension(root)
    assert dimension is not None, "kernels of this kind are asked for accumulations"
    if not root.attrs.window.dimensions[dimension].pad_high:
        return CumulativeKernel(request, dims, dimension, is_backward=False)
    if Combiner.of(root).monoids is None:
        return Declined("it begins at the end, and order matters")
    return CumulativeKernel(request, dims, dimension, is_backward=True)


@dataclass(frozen=True, slots=True)
class CumulativeKernel(Kernel):
    """An accumulation along a dimension.

    Attributes:
        dims: Sizes of the arrays and of the results.
        dimension: Along which it accumulates.
        is_backward: Whether it begins at the end.
    """

    dims: tuple[int, ...]
    dimension: int
    is_backward: bool

    @property
    def extent(self) -> int:
        """Lines along the dimension, where they are neighbours strips of them."""
        return math.prod(self.dims[dim] for dim in self._outer) * self._strips

    def estimate_ns(self, work: Work) -> float:
        """Each element is combined twice, however long the windows are."""
        return replace(work, flops=2.0 * math.prod(self.dims)).nanoseconds(self.request.target.cache_bytes)

    @property
    def _length(self) -> int:
        return self.dims[self.dimension]

    @property
    def _has_neighbours(self) -> bool:
        """Whether the minor dimension is another one."""
        return self.dimension != len(self.dims) - 1

    @property
    def _outer(self) -> list[int]:
        """The dimensions along which lines are neither accumulated nor neighbours."""
        last = len(self.dims) - 1
        return [dim for dim in range(len(self.dims)) if dim not in (self.dimension, last)]

    @property
    def _strips(self) -> int:
        return -(-self.dims[-1] // _STRIP) if self._has_neighbours else 1

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Accumulates along the task's lines."""
        entry = open_kernel(module, name, self.request)
        if math.prod(self.dims):
            with entry.fb.loop(entry.begin, entry.end) as unit:
                self._unit(module, entry, Combiner.of(self.request.body.root), unit)
        entry.fb.ret()
        return entry.function

    def _unit(self, module: ModuleBuilder, entry: KernelEntry, combiner: Combiner, unit: Value) -> None:
        fb, body = entry.fb, self.request.body
        index_of = self._index_of(entry, fb.udiv(unit, self._strips))
        if not self._has_neighbours:
            if combiner.monoids is None:
                self._lines(entry, combiner, index_of, [(Affine(0), 1, None)])
            else:
                self._line_in_vectors(entry, combiner, index_of, lane_count(module, body, self._length))
            return
        size = self.dims[-1]
        left, lanes = size % _STRIP, lane_count(module, body, size)
        rest: list[_Neighbours] = [
            (Affine(at, 1), lanes, lanes_below(fb, at, size, lanes) if at + lanes > size else None)
            for at in range(size - left, size, lanes)
        ]
        if size < _STRIP:
            self._lines(entry, combiner, index_of, rest)
            return
        strip = fb.mul(fb.urem(unit, self._strips), _STRIP)
        whole: list[_Neighbours] = [(Affine(sum_of(strip, at), 1), lanes, None) for at in range(0, _STRIP, lanes)]
        if not left:
            self._lines(entry, combiner, index_of, whole)
            return
        choice = fb.if_else(fb.icmp("sle", strip, size - _STRIP))
        with choice.then():
            self._lines(entry, combiner, index_of, whole)
        with choice.otherwise():
            self._lines(entry, combiner, index_of, rest)

    def _index_of(self, entry: KernelEntry, line: Value) -> IndexOf:
        numbers = places_of(entry.fb, line, [self.dims[dim] for dim in self._outer])
        outer = dict(zip(self._outer, numbers, strict=True))

        def index_of(at: Position, neighbour: Position) -> Index:
            places = {len(self.dims) - 1: neighbour, self.dimension: at, **outer}
            return tuple(places[dim] for dim in range(len(self.dims)))

        return index_of

    def _lines(
        self, entry: KernelEntry, combiner: Combiner, index_of: IndexOf, neighbours: Sequence[_Neighbours]
    ) -> None:
        """Accumulates along several lines at once, element by element."""
        fb = entry.fb
        kinds = [combiner.starts(entry.emitter(lanes, mask)) for _, lanes, mask in neighbours]
        starts = [flatten(kind) for kind in kinds]
        with fb.carried_loop(0, self._length, 1, [register for one in starts for register in one]) as loop:
            at = Affine(
                fb.sub(fb.constant(loop.index.type, self._length - 1), loop.index) if self.is_backward else loop.index
            )
            held, after = iter(loop.values), list[Value]()
            for kind, start, (neighbour, lanes, mask) in zip(kinds, starts, neighbours, strict=True):
                carried = unflatten(tuple(next(held) for _ in start), kind)
                emitter, index = entry.emitter(lanes, mask), index_of(at, neighbour)
                taken = combiner.combine(emitter, carried, combiner.elements(emitter, index))
                for view, element in zip(entry.outputs, combiner.rounded(emitter, taken), strict=True):
                    view.write(emitter.math, index, element, mask)
                after += flatten(taken)
            loop.yield_(*after)

    def _line_in_vectors(self, entry: KernelEntry, combiner: Combiner, index_of: IndexOf, lanes: int) -> None:
        fb, length = entry.fb, self._length
        kinds = combiner.starts(entry.emitter(lanes))
        full = length - length % lanes

        def block(at: Value | int, mask: Value | None, carried: Registers) -> Registers:
            emitter, index = entry.emitter(lanes, mask), index_of(Affine(at, 1), Affine(0))
            join = _Join.of(combiner, emitter, kinds)
            identities = join.held(flatten(emitter.spread(identity) for identity in combiner.identities))
            registers = join.held(flatten(combiner.elements(emitter, index)))
            if mask is not None:
                registers = tuple(fb.select(mask, a, b) for a, b in zip(registers, identities, strict=True))
            shift = 1
            while shift < lanes:
                moved = tuple(
                    fb.shuffle(a, b, self._moved(lanes, shift)) for a, b in zip(registers, identities, strict=True)
                )
                registers = join(moved, registers)
                shift *= 2
            taken = unflatten(join.found(join(carried, registers)), kinds)
            for view, element in zip(entry.outputs, combiner.rounded(emitter, taken), strict=True):
                view.write(emitter.math, index, element, mask)
            # What is carried on is combined anew, so that the next vector does not wait for lanes to move.
            last = [0 if self.is_backward else lanes - 1] * lanes
            return join(carried, tuple(fb.shuffle(register, None, last) for register in registers))

        carried = _Join.of(combiner, entry.emitter(lanes), kinds).held(flatten(kinds))
        rest = lanes_below(fb, full, length, lanes) if full < length else None
        if rest is not None and self.is_backward:
            carried = block(full, rest, carried)
        with fb.carried_loop(0, full, lanes, carried) as loop:
            loop.yield_(*block(self._from_the_start(fb, loop.index, full - lanes), None, loop.values))
        if rest is not None and not self.is_backward:
            block(full, rest, loop.results)

    def _from_the_start(self, fb: FunctionBuilder, number: Value, last: int) -> Value:
        """The position of a step of the accumulation."""
        return fb.sub(fb.constant(I64, last), number) if self.is_backward else number

    def _moved(self, lanes: int, shift: int) -> list[int]:
        """Lanes moved away from where accumulation begins; what moves in is the second operand's."""
        if self.is_backward:
            return [lane + shift if lane + shift < lanes else lanes for lane in range(lanes)]
        return [lane - shift if lane >= shift else lanes for lane in range(lanes)]


_Neighbours = tuple[Affine, int, "Value | None"]
"""Some of neighbouring lines: the first, how many, and which of them there are."""


@dataclass(frozen=True, slots=True)
class _Join:
    """How accumulators in registers are combined: the extremes of floats as integers in the same order.

    Attributes:
        combiner: How elements are.
        emitter: Where code goes.
        kinds: Elements of the kinds that registers hold.
        extremes: For each accumulator, which extreme of floats it is; empty where not all are.
    """

    combiner: Combiner
    emitter: ElementEmitter
    kinds: Sequence[Element]
    extremes: tuple[MonoidKind, ...]

    @classmethod
    def of(cls, combiner: Combiner, emitter: ElementEmitter, kinds: Sequence[Element]) -> _Join:
        monoids = combiner.monoids or ()
        are_extremes = all(
            one.kind in (MonoidKind.MAXIMUM, MonoidKind.MINIMUM) and one.dtype.is_floating for one in monoids
        )
        return cls(combiner, emitter, kinds, tuple(one.kind for one in monoids) if are_extremes else ())

    def __call__(self, a: Registers, b: Registers) -> Registers:
        """Two sets of accumulators combined."""
        fb = self.emitter.fb
        if not self.extremes:
            return flatten(self.combiner.combine(self.emitter, unflatten(a, self.kinds), unflatten(b, self.kinds)))
        choose = {MonoidKind.MAXIMUM: fb.smax, MonoidKind.MINIMUM: fb.smin}
        return tuple(choose[kind](x, y) for kind, x, y in zip(self.extremes, a, b, strict=True))

    def held(self, registers: Registers) -> Registers:
        """Elements as they are accumulated; a NaN lies beyond the extreme that is looked for."""
        fb = self.emitter.fb
        if not self.extremes:
            return registers
        nans = [math.copysign(math.nan, 1 if kind is MonoidKind.MAXIMUM else -1) for kind in self.extremes]
        pairs = zip(registers, nans, strict=True)
        numbers = [fb.select(fb.fcmp("uno", one, one), fb.constant(one.type, nan), one) for one, nan in pairs]
        return tuple(self._turned(fb.bitcast(one, one.type.with_scalar(integer(one.type.bits)))) for one in numbers)

    def found(self, registers: Registers) -> Registers:
        """What was accumulated, as elements."""
        if not self.extremes:
            return registers
        likes = flatten(self.kinds)
        return tuple(
            self.emitter.fb.bitcast(self._turned(one), like.type) for one, like in zip(registers, likes, strict=True)
        )

    def _turned(self, bits: Value) -> Value:
        """The bits of floats as integers in the same order, and back."""
        fb = self.emitter.fb
        return fb.xor(bits, fb.lshr(fb.ashr(bits, bits.type.bits - 1), 1))
