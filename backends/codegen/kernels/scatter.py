"""The scatter kernel: the operands are copied, and then the updates combined in, one after the other.

Tasks divide one dimension of the result among themselves. Each goes through all updates in order and applies what falls
into its part, so every element sees its updates in the order of the indices, however many threads there are. Where
windows take all of the dimensions in front, or batches lie there, tasks divide these, and each has a part of every
update. What lies in the memory of its operand is not copied. Whose updates are whose cannot be foretold: a task notes
its own, many at a time and without a branch, and applies them then. Windows of few elements take no longer than that,
so one task applies them all unless much is copied. A window of a few registers stays in them as long as updates go to
it.

Lanes are neighbours in a window, which are different elements; windows of single elements are combined one by one
(`single_updates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import takewhile

import numpy as np

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Lanes, Position, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.elements.gathering import component_index
from xlalite.backends.codegen.elements.reshaping import immediate
from xlalite.backends.codegen.elements.slicing import wide_index
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import Range, lanes_between, places_of
from xlalite.backends.codegen.kernels.single_updates import join_updates, joined_updates
from xlalite.backends.codegen.kernels.sort.network import lanes_set
from xlalite.backends.codegen.kernels.sort.quicksort import can_part
from xlalite.backends.codegen.kernels.throughput import bytes_per_ns
from xlalite.backends.codegen.llvm import (
    I1,
    I8,
    I32,
    I64,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
    widened,
)
from xlalite.hlo.ops.gathering import ScatterAttrs
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_WIDE_WINDOW = 16
"""Elements of an update beyond which looking at the updates of other parts costs little."""
_PARTS, _PARTS_OF_WIDE_WINDOWS = 2, 4
_COPIED_BYTES_AN_UPDATE = 128
"""So much more is copied than updated where it pays that several tasks look at narrow updates."""
_MOST_KEPT = 8
"""Registers for a window that is kept while updates go to it."""
_NOTED = 1024
"""Updates that a task looks at before it applies its own of them."""
_MANY_UPDATES = 16
"""Updates that pay for being gone through for each part of theirs."""
_AHEAD = 8
"""Updates that are asked for before they are applied."""
_MOST_FETCHED, _LINE_BYTES = 512, 64
_SHORTEST_DIVIDED = 4
_NS_AN_UPDATE = 2.0
"""What it costs to read an index vector and to see where it points."""


def plan_scatter(request: KernelRequest, shape: KernelShape) -> ScatterKernel | Declined:
    """The kernel that scatters updates."""
    scatter = request.body.root
    count = len(scatter.operands) // 2
    pairs = zip(scatter.operands[:count], scatter.operands[count + 1 :], strict=True)
    if any(target.shape.dtype is not update.shape.dtype for target, update in pairs):
        return Declined("its updates have another type than what they update")
    attrs: ScatterAttrs = scatter.attrs
    dims, update = shape.domain.dims, scatter.operands[-1].shape.dims
    kept = (dim for dim in range(len(dims)) if dim not in attrs.dropped_dims)
    offsets = dict(zip(kept, attrs.update_window_dims, strict=True))
    window = tuple(update[offsets[dim]] if dim in offsets else 1 for dim in range(len(dims)))
    minor = max((dim for dim, size in enumerate(dims) if size > 1), default=None)
    lane_dim = minor if minor is not None and window[minor] > 1 else None
    outer = tuple(takewhile(lambda dim: dim != lane_dim and _is_whole(attrs, dims, window, dim), range(len(dims))))
    is_worth_it = math.prod(dims[dim] for dim in outer) > 1 and math.prod(update) >= _MANY_UPDATES * math.prod(window)
    outer = outer if is_worth_it else ()
    return ScatterKernel(request, dims, window, offsets, lane_dim, _split_dim(dims, lane_dim), outer)


def _is_whole(attrs: ScatterAttrs, dims: Sequence[int], window: Sequence[int], dim: int) -> bool:
    return dim in attrs.input_batching_dims or window[dim] == dims[dim]


def _split_dim(dims: Sequence[int], lane_dim: int | None) -> int | None:
    """The first dimension that is long enough to be divided, better not that of the lanes; else the longest."""
    candidates = [dim for dim in range(len(dims)) if dim != lane_dim] or list(range(len(dims)))
    long_ones = [dim for dim in candidates if dims[dim] >= _SHORTEST_DIVIDED]
    return long_ones[0] if long_ones else max(candidates, key=dims.__getitem__, default=None)


@dataclass(frozen=True, slots=True)
class ScatterKernel(Kernel):
    """Copies and updates.

    Attributes:
        dims: Sizes of the operands.
        window: Sizes of an update's window, with an entry for each operand dimension.
        offsets: Where the position in the window along an operand dimension stands in the index of an update.
        lane_dim: The dimension along which elements of a window are neighbours in memory; None where none are.
        split_dim: The dimension that tasks divide if there is none in front; None for scalars.
        outer: Dimensions in front, along which each update has a part for every place; tasks divide their places.
    """

    dims: tuple[int, ...]
    window: tuple[int, ...]
    offsets: Mapping[int, int]
    lane_dim: int | None
    split_dim: int | None
    outer: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The places along the dimensions in front, or in how many parts the one that tasks divide is cut at most."""
        return math.prod(self.dims[dim] for dim in self.outer) if self.outer else self._parts

    @property
    def _parts(self) -> int:
        if self.split_dim is None or self.outer:
            return 1
        parts = _PARTS_OF_WIDE_WINDOWS
        if not self._are_wide:
            parts = _PARTS if self._copied_bytes > self._updates * _COPIED_BYTES_AN_UPDATE else 1
        return max(1, min(self.dims[self.split_dim], parts))

    @property
    def _are_wide(self) -> bool:
        return math.prod(size for dim, size in enumerate(self.window) if dim not in self.outer) >= _WIDE_WINDOW

    @property
    def _updates(self) -> int:
        return self.request.body.root.operands[-1].shape.element_count // max(1, math.prod(self.window))

    @property
    def _copied_bytes(self) -> int:
        """Bytes read and written before anything is updated."""
        return sum(2 * self.request.body.root.operand(number).shape.size_bytes for number in self._copied)

    @property
    def _copied(self) -> list[int]:
        """The operands that do not lie in the memory of their results."""
        targets = self.request.body.root.operands[: len(self.request.body.root.operands) // 2]
        return [
            number
            for number, target in enumerate(targets)
            if target.opcode != "parameter" or (number, target.attrs.number) not in self.request.in_place
        ]

    def estimate_ns(self, work: Work) -> float:
        """By what is copied and what is updated, however large the operands."""
        operands = self.request.body.root.operands
        moved = self._copied_bytes + sum(3 * update.shape.size_bytes for update in operands[len(operands) // 2 + 1 :])
        return moved / bytes_per_ns(moved, self.request.target.cache_bytes) + self._updates * _NS_AN_UPDATE

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Copies the task's part of what does not lie in its operand's memory, and updates it."""
        entry = open_kernel(module, name, self.request)
        if not self.outer:
            self._emit_part(module, entry, {}, self._part(entry))
        else:
            with entry.fb.loop(entry.begin, entry.end) as number:
                places = places_of(entry.fb, number, [self.dims[dim] for dim in self.outer])
                self._emit_part(module, entry, dict(zip(self.outer, places, strict=True)), (0, 1))
        entry.fb.ret()
        return entry.function

    def _emit_part(self, module: ModuleBuilder, entry: KernelEntry, at: _Places, part: Range) -> None:
        """Copies and updates what lies at places in front, and in a part of the dimension that is divided."""
        body, copied = self.request.body, self._copied
        if copied:
            minor = self.dims[-1] if self.dims else 1
            self._copy(entry, copied, at, part, lane_count(module, body, minor))
        if all(size <= dim for size, dim in zip(self.window, self.dims, strict=True)):
            lanes = 1 if self.lane_dim is None else lane_count(module, body, self.window[self.lane_dim])
            self._update(entry, at, part, lanes)

    def _part(self, entry: KernelEntry) -> Range:
        """The positions [begin, end) along the dimension that tasks divide."""
        if self.split_dim is None:
            return 0, 1
        fb, size = entry.fb, self.dims[self.split_dim]
        unit = -(-size // self._parts)
        return fb.smin(fb.mul(entry.begin, unit), size), fb.smin(fb.mul(entry.end, unit), size)

    def _copy(self, entry: KernelEntry, numbers: Sequence[int], at: _Places, part: Range, lanes: int) -> None:
        targets = self.request.body.root.operands

        def visit(index: Mapping[int, Position], width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            place = tuple(index[dim] for dim in range(len(self.dims)))
            elements = [emitter.element(targets[number], place) for number in numbers]
            for number, element in zip(numbers, elements, strict=True):
                entry.outputs[number].write(emitter.math, place, element, mask)

        ranges: list[Range] = [(0, size) for size in self.dims]
        if self.split_dim is not None and not self.outer:
            ranges[self.split_dim] = part
        last = len(self.dims) - 1 if self.dims else None
        _nest(entry.fb, {d: each for d, each in enumerate(ranges) if d not in at}, last, lanes, visit, at)

    def _update(self, entry: KernelEntry, front: _Places, part: Range, lanes: int) -> None:
        fb, update = entry.fb, self.request.body.root.operands[-1]
        attrs: ScatterAttrs = self.request.body.root.attrs
        batch_dims = [dim for dim in range(update.shape.rank) if dim not in attrs.update_window_dims]
        given = self._given(batch_dims, front)
        counted = [dim for dim in batch_dims if dim not in given]
        sizes = [update.shape.dims[dim] for dim in counted]

        def batch(number: Value, step: int = 0) -> dict[int, Position]:
            places = places_of(fb, number, sizes) if len(sizes) > 1 else (Affine(number, step),) * len(sizes)
            own = {**given, **dict(zip(counted, places, strict=True))}
            return {dim: own[dim] for dim in batch_dims}

        def conditions(number: Value, lanes: int = 1, mask: Value | None = None) -> Value:
            index = batch(number, int(lanes > 1))
            starts, inside = self._starts(entry, tuple(index.values()), lanes, mask)
            if self._parts > 1:
                inside.append(self._within(IndexMath(fb, lanes), starts, part)[1])
            return reduce(fb.and_, inside, constant(widened(I1, lanes), 1))

        def apply(number: Value) -> None:
            index = batch(number)
            starts, _ = self._starts(entry, tuple(index.values()))
            ranges: dict[int, Range] = {
                dim: (0, size) for dim, size in enumerate(self.window) if size != 1 and dim not in front
            }
            own = self._within(IndexMath(fb, 1), starts, part)[0] if self._parts > 1 else None
            if own is not None and self.split_dim is not None:
                ranges[self.split_dim] = own

            def combine(offsets: Mapping[int, Position], width: int, mask: Value | None) -> None:
                self._combine(entry, index, starts, offsets, width, mask)

            _nest(fb, ranges, self.lane_dim, lanes, combine, front)

        def one(number: Value) -> None:
            with fb.if_(conditions(number)):
                apply(number)

        count = math.prod(sizes)
        if self._parts > 1 or (self.outer and self._are_wide):
            at_once = self.request.target.lanes(32) if len(sizes) == 1 and can_part(self.request.target) else 1

            def each(noted: Callable[[Value], Value], count: Value) -> None:
                last = fb.sub(count, 1)

                def fetched(note: Value) -> Value:
                    self._fetch(entry, batch(noted(fb.smin(fb.add(note, _AHEAD), last))))
                    return noted(note)

                if self._keeps_windows(lanes):
                    self._apply_kept(entry, count, front, lanes, lambda note: batch(fetched(note)))
                    return
                with fb.loop(0, count) as note:
                    apply(fetched(note))

            self._note(fb, count, at_once, conditions, each)
            return
        together = joined_updates(self.request, self.window, front) if len(sizes) == 1 else 1
        whole = count - count % together if together > 1 else 0
        if whole:

            def several(number: Value) -> tuple[list[Position], list[Value], Index]:
                index = batch(number, 1)
                starts, inside = self._starts(entry, tuple(index.values()), together)
                at = {**index, **self._in_window(front)}
                return self._moved(IndexMath(fb, together), starts, front), inside, tuple(at[dim] for dim in sorted(at))

            join_updates(entry, self.request, whole, together, several, one)
        with fb.loop(whole, count) as number:
            one(number)

    def _given(self, batch_dims: Sequence[int], front: _Places) -> dict[int, Position]:
        """The positions along dimensions of the updates that are those in front, but for their windows."""
        attrs: ScatterAttrs = self.request.body.root.attrs
        pairs = zip(attrs.input_batching_dims, attrs.scatter_indices_batching_dims, strict=True)
        return {
            batch_dims[along - (along > attrs.index_vector_dim)]: front[dim] for dim, along in pairs if dim in front
        }

    def _in_window(self, offsets: _Places) -> dict[int, Position]:
        """The positions along dimensions of the updates that are offsets in their windows."""
        return {at: offsets.get(dim, ZERO) for dim, at in self.offsets.items()}

    def _moved(self, math_: IndexMath, starts: Sequence[Position], offsets: _Places) -> list[Position]:
        """The positions at offsets in a window that begins somewhere."""
        moving = {dim: at for dim, at in offsets.items() if dim in self.offsets}
        return [math_.add(start, moving[dim]) if dim in moving else start for dim, start in enumerate(starts)]

    def _note(
        self,
        fb: FunctionBuilder,
        count: int,
        lanes: int,
        conditions: Callable[[Value, int, Value | None], Value],
        apply: Callable[[Callable[[Value], Value], Value], None],
    ) -> None:
        """Applies the updates that meet conditions, which are noted before; those to come are asked for."""
        noted = fb.alloca(I32, _NOTED + lanes)
        with fb.loop(0, count, _NOTED) as begin:
            end = fb.smin(fb.add(begin, _NOTED), count)
            with fb.carried_loop(begin, end, lanes, [constant(I64, 0)]) as notes:
                at, (place,) = notes.index, notes.values
                own, to = fb.trunc(fb.sub(at, begin), I32), fb.gep(I32, noted, place)
                if lanes == 1:
                    fb.store(own, to)
                    notes.yield_(fb.add(place, fb.zext(conditions(at, 1, None), I64)))
                else:
                    mask = lanes_below(fb, at, count, lanes) if count % lanes else None
                    holds = conditions(at, lanes, mask)
                    holds = holds if mask is None else fb.and_(holds, mask)
                    numbers = fb.add(fb.splat(own, lanes), fb.lane_numbers(I32, lanes))
                    fb.store(fb.compress(numbers, holds), to, 4)
                    notes.yield_(fb.add(place, lanes_set(fb, holds)))
            first = begin
            apply(lambda note: fb.add(first, fb.zext(fb.load(I32, fb.gep(I32, noted, note)), I64)), notes.results[0])

    def _keeps_windows(self, lanes: int) -> bool:
        """Whether a window lies in a few registers as long as updates go to it."""
        dtype = self.request.body.root.operands[-1].shape.dtype
        size = math.prod(size for dim, size in enumerate(self.window) if dim not in self.outer)
        is_row = self.lane_dim is not None and self.lane_dim != self.split_dim and self.window[self.lane_dim] == size
        is_single = len(self.request.body.root.operands) == 3 and not dtype.is_complex
        return is_row and is_single and size <= _MOST_KEPT * lanes

    def _apply_kept(self, entry: KernelEntry, count: Value, front: _Places, lanes: int, batch: _Batch) -> None:
        """Combines updates with a window in registers, which goes to memory when the next one is for another."""
        assert self.lane_dim is not None, "windows are rows"
        fb, scatter, size = entry.fb, self.request.body.root, self.window[self.lane_dim]
        view = ArrayView.row_major(entry.outputs[0].pointer, scatter.operand(2).shape.dtype, (math.prod(self.dims),))
        begins = range(0, size, lanes)
        masks = [None if at + lanes <= size else lanes_below(fb, at, size, lanes) for at in begins]
        emitters = [entry.emitter(lanes, mask) for mask in masks]

        def keep(place: Value, held: Sequence[Value]) -> None:
            with fb.if_(fb.icmp("sge", place, 0)):
                for emitter, at, mask, each in zip(emitters, begins, masks, held, strict=True):
                    view.write(emitter.math, (Affine(fb.add(place, at), 1),), each, mask)

        zero = emitters[0].spread(immediate(np.zeros(()), view.dtype))
        assert isinstance(zero, Value), "complex numbers are not kept"
        with fb.carried_loop(0, count, 1, [constant(I64, -1), *[zero] * len(begins)]) as loop:
            before, *held = loop.values
            index = batch(loop.index)
            starts, _ = self._starts(entry, tuple(index.values()))
            scalar = IndexMath(fb, 1)
            begin = scalar.linear(tuple(self._moved(scalar, starts, front)), row_major_strides(self.dims))
            assert isinstance(begin, Affine), "one update is one place"
            place = scalar.scalar(begin.base)
            is_same = fb.if_else(fb.icmp("eq", place, before))
            with is_same.then():
                is_same.yield_(*held)
            with is_same.otherwise():
                keep(before, held)
                own: list[Value] = []
                for emitter, at, mask in zip(emitters, begins, masks, strict=True):
                    element = view.read(emitter.math, (Affine(fb.add(place, at), 1),), mask)
                    assert isinstance(element, Value), "complex numbers are not kept"
                    own.append(element)
                is_same.yield_(*own)
            combined: list[Value] = []
            for emitter, at, each in zip(emitters, begins, is_same.results, strict=True):
                source = {**index, **self._in_window(front)}
                source[self.offsets[self.lane_dim]] = Affine(constant(I64, at), 1)
                new = emitter.element(scatter.operand(2), tuple(source[axis] for axis in sorted(source)))
                (result,) = map(emitter.spread, emitter.apply(scatter.called_computations[0], [each, new]))
                assert isinstance(result, Value), "complex numbers are not kept"
                combined.append(result)
            loop.yield_(place, *combined)
        keep(loop.results[0], loop.results[1:])

    def _fetch(self, entry: KernelEntry, batch: Mapping[int, Position]) -> None:
        """Asks for the beginning of a window of each array of updates."""
        if self.lane_dim is None:
            return
        fb, math_ = entry.fb, IndexMath(entry.fb, 1)
        for update in self.request.body.root.operands[len(entry.outputs) + 1 :]:
            if update.opcode != "parameter":
                continue
            view = entry.inputs[update.attrs.number]
            place = math_.linear(tuple(batch.get(d, ZERO) for d in range(update.shape.rank)), view.strides)
            assert isinstance(place, Affine), "one update is one place"
            element = representation(view.dtype).size_bytes
            first = fb.gep(I8, view.pointer, fb.mul(math_.scalar(place.base), element))
            for line in range(0, min(self.window[self.lane_dim] * element, _MOST_FETCHED), _LINE_BYTES):
                fb.prefetch(fb.gep(I8, first, line))

    def _starts(
        self, entry: KernelEntry, batch: Index, lanes: int = 1, mask: Value | None = None
    ) -> tuple[list[Position], list[Value]]:
        """Where a window begins, or windows do, and the conditions under which it lies inside."""
        attrs: ScatterAttrs = self.request.body.root.attrs
        indices = self.request.body.root.operand(len(entry.outputs))
        fb, emitter = entry.fb, entry.emitter(lanes, mask)
        starts: list[Position] = [ZERO] * len(self.dims)
        inside = []
        for dim, along in zip(attrs.input_batching_dims, attrs.scatter_indices_batching_dims, strict=True):
            starts[dim] = batch[along - (along > attrs.index_vector_dim)]
        for component, dim in enumerate(attrs.scatter_dims_to_operand_dims):
            at = component_index(batch, component, attrs.index_vector_dim, indices.shape.rank)
            value = emitter.spread(wide_index(emitter, indices, at))
            assert isinstance(value, Value), "an index is one register"
            # Negative starts are larger than any size when they are read as unsigned.
            inside.append(fb.icmp("ule", value, self.dims[dim] - self.window[dim]))
            starts[dim] = Affine(value) if lanes == 1 else Lanes(value)
        return starts, inside

    def _within(self, math: IndexMath, starts: Sequence[Position], part: Range) -> tuple[Range | None, Value]:
        """The part of a window that a task has to do along the dimension that is divided, and whether there is any."""
        assert self.split_dim is not None, "scalars are not divided"
        fb, base, size = math.fb, math.vector(starts[self.split_dim]), self.window[self.split_dim]
        begin, end = (fb.splat(math.scalar(each), math.lanes) for each in part)
        if size == 1:
            return None, fb.icmp("ult", fb.sub(base, begin), fb.sub(end, begin))
        first, last = fb.smax(fb.sub(begin, base), 0), fb.smin(fb.sub(end, base), size)
        return (first, last), fb.icmp("slt", first, last)

    def _combine(
        self,
        entry: KernelEntry,
        batch: Mapping[int, Position],
        starts: Sequence[Position],
        offsets: Mapping[int, Position],
        width: int,
        mask: Value | None,
    ) -> None:
        scatter, emitter = self.request.body.root, entry.emitter(width, mask)
        updates = scatter.operands[len(entry.outputs) + 1 :]
        place = tuple(self._moved(emitter.math, starts, offsets))
        source = {**batch, **self._in_window(offsets)}
        at = tuple(source[dim] for dim in range(updates[0].shape.rank))
        current = [view.read(emitter.math, place, mask) for view in entry.outputs]
        new = [emitter.element(update, at) for update in updates]
        results = emitter.apply(scatter.called_computations[0], [*current, *new])
        for view, result in zip(entry.outputs, results, strict=True):
            view.write(emitter.math, place, result, mask)


_Places = Mapping[int, Position]
"""Positions along some dimensions of the operands."""
_Batch = Callable[[Value], "dict[int, Position]"]
"""The position of a noted update along the dimensions of the updates that are not in the window."""
_Visit = Callable[[Mapping[int, Position], int, "Value | None"], None]
"""(position along each dimension, lanes, mask) -> emits the work for these lanes."""


def _nest(
    fb: FunctionBuilder,
    ranges: Mapping[int, Range],
    lane_dim: int | None,
    lanes: int,
    visit: _Visit,
    given: _Places,
) -> None:
    """Loops over ranges of some dimensions, that of the lanes innermost, at given places along others."""

    def level(dims: Sequence[int], index: Mapping[int, Position]) -> None:
        if dims:
            with fb.loop(*ranges[dims[0]]) as position:
                level(dims[1:], {**index, dims[0]: Affine(position)})
        elif lane_dim is None or lane_dim not in ranges:
            visit(index, 1, None)
        else:
            lanes_between(
                fb, ranges[lane_dim], lanes, lambda at, width, mask: visit({**index, lane_dim: at}, width, mask)
            )

    level([dim for dim in ranges if dim != lane_dim], given)
