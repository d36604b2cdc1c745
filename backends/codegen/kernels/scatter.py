"""The scatter kernel: the operands are copied, and then the updates combined in, one after the other.

Tasks divide one dimension of the result among themselves. Each goes through all updates in order and applies what falls
into its part, so every element sees its updates in the order of the indices, however many threads there are. What lies
in the memory of its operand is not copied. Whose updates are whose cannot be foretold: a task notes its own, many at a
time and without a branch, and applies them then. Windows of few elements take no longer than that, so one task applies
them all unless much is copied.

Lanes are neighbours in a window, which are different elements. Windows of single elements are combined one by one; but
where as many as a vector has lanes go to the same element, known monoids join them first, as a tree like a reduction's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, Position
from xlalite.backends.codegen.elements.gathering import component_index
from xlalite.backends.codegen.elements.slicing import wide_index
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import Range, lanes_between, places_of
from xlalite.backends.codegen.kernels.throughput import bytes_per_ns
from xlalite.backends.codegen.llvm import I1, I64, Function, FunctionBuilder, ModuleBuilder, Value, constant
from xlalite.hlo.ir.monoid import recognise_monoids
from xlalite.hlo.ops.gathering import ScatterAttrs
from xlalite.passes.fusion.kernel_shape import KernelShape

_WIDE_WINDOW = 16
"""Elements of an update beyond which looking at the updates of other parts costs little."""
_PARTS, _PARTS_OF_WIDE_WINDOWS = 2, 4
_COPIED_BYTES_AN_UPDATE = 128
"""So much more is copied than updated where it pays that several tasks look at narrow updates."""
_NOTED = 1024
"""Updates that a task looks at before it applies its own of them."""
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
    return ScatterKernel(request, dims, window, offsets, lane_dim, _split_dim(dims, lane_dim))


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
        split_dim: The dimension that tasks divide; None for scalars.
    """

    dims: tuple[int, ...]
    window: tuple[int, ...]
    offsets: Mapping[int, int]
    lane_dim: int | None
    split_dim: int | None

    @property
    def extent(self) -> int:
        """In how many parts the dimension that tasks divide is cut at most."""
        if self.split_dim is None:
            return 1
        parts = _PARTS_OF_WIDE_WINDOWS
        if math.prod(self.window) < _WIDE_WINDOW:
            parts = _PARTS if self._copied_bytes > self._updates * _COPIED_BYTES_AN_UPDATE else 1
        return max(1, min(self.dims[self.split_dim], parts))

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
        body = self.request.body
        entry = open_kernel(module, name, self.request)
        part = self._part(entry)
        copied = self._copied
        if copied:
            minor = self.dims[-1] if self.dims else 1
            self._copy(entry, copied, part, lane_count(module, body, minor))
        if all(size <= dim for size, dim in zip(self.window, self.dims, strict=True)):
            lanes = 1 if self.lane_dim is None else lane_count(module, body, self.window[self.lane_dim])
            self._update(entry, part, lanes)
        entry.fb.ret()
        return entry.function

    def _part(self, entry: KernelEntry) -> Range:
        """The positions [begin, end) along the dimension that tasks divide."""
        if self.split_dim is None:
            return 0, 1
        fb, size = entry.fb, self.dims[self.split_dim]
        unit = -(-size // self.extent)
        return fb.smin(fb.mul(entry.begin, unit), size), fb.smin(fb.mul(entry.end, unit), size)

    def _copy(self, entry: KernelEntry, numbers: Sequence[int], part: Range, lanes: int) -> None:
        targets = self.request.body.root.operands

        def visit(index: Mapping[int, Position], width: int, mask: Value | None) -> None:
            emitter = entry.emitter(width, mask)
            place = tuple(index[dim] for dim in range(len(self.dims)))
            elements = [emitter.element(targets[number], place) for number in numbers]
            for number, element in zip(numbers, elements, strict=True):
                entry.outputs[number].write(emitter.math, place, element, mask)

        ranges: list[Range] = [(0, size) for size in self.dims]
        if self.split_dim is not None:
            ranges[self.split_dim] = part
        last = len(self.dims) - 1 if self.dims else None
        _nest(entry.fb, dict(enumerate(ranges)), last, lanes, visit)

    def _update(self, entry: KernelEntry, part: Range, lanes: int) -> None:
        fb, update = entry.fb, self.request.body.root.operands[-1]
        attrs: ScatterAttrs = self.request.body.root.attrs
        batch_dims = [dim for dim in range(update.shape.rank) if dim not in attrs.update_window_dims]
        sizes = [update.shape.dims[dim] for dim in batch_dims]

        def batch(number: Value) -> dict[int, Position]:
            places = places_of(fb, number, sizes) if len(sizes) > 1 else (Affine(number),) * len(sizes)
            return dict(zip(batch_dims, places, strict=True))

        def conditions(number: Value) -> Value:
            starts, inside = self._starts(entry, tuple(batch(number).values()))
            if self._is_split:
                inside.append(self._within(fb, starts, part)[1])
            return reduce(fb.and_, inside, constant(I1, 1))

        def apply(number: Value) -> None:
            index = batch(number)
            starts, _ = self._starts(entry, tuple(index.values()))
            ranges: dict[int, Range] = {dim: (0, size) for dim, size in enumerate(self.window) if size != 1}
            own = self._within(fb, starts, part)[0] if self._is_split else None
            if own is not None and self.split_dim is not None:
                ranges[self.split_dim] = own

            def combine(offsets: Mapping[int, Position], width: int, mask: Value | None) -> None:
                self._combine(entry, index, starts, offsets, width, mask)

            _nest(fb, ranges, self.lane_dim, lanes, combine)

        def one(number: Value) -> None:
            with fb.if_(conditions(number)):
                apply(number)

        count = math.prod(sizes)
        if self._is_split:
            self._note(fb, count, conditions, apply)
            return
        together = self._joined_updates if len(sizes) == 1 else 1
        whole = count - count % together if together > 1 else 0
        if whole:
            with fb.loop(0, whole, together) as first:
                self._join(entry, {batch_dims[0]: Affine(first, 1)}, together, one)
        with fb.loop(whole, count) as number:
            one(number)

    @property
    def _is_split(self) -> bool:
        return self.split_dim is not None and self.extent > 1

    def _note(
        self, fb: FunctionBuilder, count: int, conditions: Callable[[Value], Value], apply: Callable[[Value], None]
    ) -> None:
        """Applies the updates that meet conditions, which are noted before."""
        noted = fb.alloca(I64, _NOTED)
        with fb.loop(0, count, _NOTED) as begin:
            with fb.carried_loop(begin, fb.smin(fb.add(begin, _NOTED), count), 1, [constant(I64, 0)]) as notes:
                (place,) = notes.values
                fb.store(notes.index, fb.gep(I64, noted, place))
                notes.yield_(fb.add(place, fb.zext(conditions(notes.index), I64)))
            with fb.loop(0, notes.results[0]) as note:
                apply(fb.load(I64, fb.gep(I64, noted, note)))

    @property
    def _joined_updates(self) -> int:
        """Updates that are joined if all are for one element; 1 where updates are only combined one by one."""
        scatter, attrs = self.request.body.root, self.request.body.root.attrs
        dtype = scatter.operands[-1].shape.dtype
        is_alone = math.prod(self.window) == 1 and len(scatter.operands) == 3 and not attrs.input_batching_dims
        is_precise = dtype.is_integral or (dtype.is_floating and dtype.bits >= 32)
        is_known = is_alone and is_precise and recognise_monoids(scatter.called_computations[0]) is not None
        return self.request.target.lanes(max(dtype.bits, 32)) if is_known else 1

    def _join(
        self, entry: KernelEntry, batch: Mapping[int, Position], lanes: int, one: Callable[[Value], None]
    ) -> None:
        """Combines updates that follow one another, all in one if they are for one element."""
        fb, scatter = entry.fb, self.request.body.root
        first = batch[next(iter(batch))]
        assert isinstance(first, Affine), "updates follow one another"
        assert isinstance(first.base, Value), "updates are gone through by a loop"
        update, function = scatter.operand(2), scatter.called_computations[0]
        starts, conditions = self._starts(entry, tuple(batch.values()), lanes)

        def apply(a: Value, b: Value) -> Value:
            (result,) = entry.emitter(a.type.lanes).apply(function, [a, b])
            assert isinstance(result, Value), "complex numbers are not joined"
            return result

        choice = fb.if_else(reduce(fb.and_, conditions, constant(I1, 1)))
        with choice.then():
            at = tuple(batch.get(dim, ZERO) for dim in range(update.shape.rank))
            updates = entry.emitter(lanes).vector(update, at)
            assert isinstance(updates, Value), "complex numbers are not joined"
            scalar, view = entry.emitter(1), entry.outputs[0]
            current = view.read(scalar.math, tuple(starts))
            assert isinstance(current, Value), "complex numbers are not joined"
            view.write(scalar.math, tuple(starts), apply(current, fb.reduce(updates, apply)))
        with choice.otherwise(), fb.loop(first.base, fb.add(first.base, lanes)) as number:
            one(number)

    def _starts(self, entry: KernelEntry, batch: Index, lanes: int = 1) -> tuple[list[Position], list[Value]]:
        """Where a window begins, or windows do, and the conditions under which it lies inside, or all in one place."""
        attrs: ScatterAttrs = self.request.body.root.attrs
        indices = self.request.body.root.operand(len(entry.outputs))
        fb, emitter = entry.fb, entry.emitter(lanes)
        starts: list[Position] = [ZERO] * len(self.dims)
        inside = []
        for dim, along in zip(attrs.input_batching_dims, attrs.scatter_indices_batching_dims, strict=True):
            starts[dim] = batch[along - (along > attrs.index_vector_dim)]
        for component, dim in enumerate(attrs.scatter_dims_to_operand_dims):
            at = component_index(batch, component, attrs.index_vector_dim, indices.shape.rank)
            value = wide_index(emitter, indices, at)
            if value.type.is_vector:
                inside.append(fb.all_lanes(fb.icmp("eq", value, fb.shuffle(value, None, [0] * lanes))))
                value = fb.extract(value, 0)
            # Negative starts are larger than any size when they are read as unsigned.
            inside.append(fb.icmp("ule", value, self.dims[dim] - self.window[dim]))
            starts[dim] = Affine(value)
        return starts, inside

    def _within(self, fb: FunctionBuilder, starts: Sequence[Position], part: Range) -> tuple[Range | None, Value]:
        """The part of a window that a task has to do along the dimension that is divided, and whether there is any."""
        assert self.split_dim is not None, "scalars are not divided"
        start = starts[self.split_dim]
        assert isinstance(start, Affine), "a window begins at one place"
        base = constant(I64, start.base) if isinstance(start.base, int) else start.base
        (begin, end), size = part, self.window[self.split_dim]
        assert isinstance(begin, Value), "what is divided has more than one part"
        assert isinstance(end, Value), "what is divided has more than one part"
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
        place = tuple(emitter.math.add(start, offsets.get(dim, ZERO)) for dim, start in enumerate(starts))
        source = {**batch, **{at: offsets.get(dim, ZERO) for dim, at in self.offsets.items()}}
        at = tuple(source[dim] for dim in range(updates[0].shape.rank))
        current = [view.read(emitter.math, place, mask) for view in entry.outputs]
        new = [emitter.element(update, at) for update in updates]
        results = emitter.apply(scatter.called_computations[0], [*current, *new])
        for view, result in zip(entry.outputs, results, strict=True):
            view.write(emitter.math, place, result, mask)


_Visit = Callable[[Mapping[int, Position], int, "Value | None"], None]
"""(position along each dimension, lanes, mask) -> emits the work for these lanes."""


def _nest(fb: FunctionBuilder, ranges: Mapping[int, Range], lane_dim: int | None, lanes: int, visit: _Visit) -> None:
    """Loops over ranges of some dimensions, that of the lanes innermost."""

    def level(dims: Sequence[int], index: Mapping[int, Position]) -> None:
        if dims:
            with fb.loop(*ranges[dims[0]]) as position:
                level(dims[1:], {**index, dims[0]: Affine(position)})
        elif lane_dim is None:
            visit(index, 1, None)
        else:
            lanes_between(
                fb, ranges[lane_dim], lanes, lambda at, width, mask: visit({**index, lane_dim: at}, width, mask)
            )

    level([dim for dim in ranges if dim != lane_dim], {})
