"""The sums of some neighbouring results of a convolution, in registers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.dot import accumulator_dtype, multiply_add
from xlalite.backends.codegen.elements.elements import ElementEmitter, always
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.convolution.plan import (
    SPELT_OUT,
    ConvolutionPlan,
    WindowLine,
    middle_of,
    spread_size,
)
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import I64, Operand, Value, constant
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import WindowDimension

Totals = tuple[Element, ...]

_FEW_ZEROS = 4
"""Features of a group up to which what padding gives is spelt out; few tiles see any."""


class Tile:
    """Emits the sums of some neighbours, a vector each.

    With vectors along the features each neighbour has one vector of them, of a number; with vectors along space each
    is a vector, and has all features that are summed together; with vectors along the window each is one result.
    """

    def __init__(
        self,
        entry: KernelEntry,
        results: Sequence[HloInstruction],
        convolution: HloInstruction,
        plan: ConvolutionPlan,
        outer: Mapping[int, Position],
        base: Affine,
        masks: Sequence[Value | None],
        first: Affine,
        vector: Affine,
    ) -> None:
        self._entry = entry
        self._results = results
        self._plan = plan
        self._convolution = convolution
        self._attrs: ConvolutionAttrs = convolution.attrs
        self._lhs, self._rhs = convolution.operands
        self._base = base
        self._count = len(masks)
        if plan.across >= 0 and not plan.in_order:
            masks = [*masks] * plan.lines
        self._masks = masks
        self._window_mask: Value | None = None
        self._first, self._vector = first, vector
        self._labels = labels = self._attrs.dim_labels
        self._kept = accumulator_dtype(self._lhs.shape.dtype, self._rhs.shape.dtype, convolution.shape.dtype)
        self._math = math_ = IndexMath(entry.fb, plan.lanes)
        self._index = dict(outer)
        self._index[labels.output_spatial[plan.along]] = base
        features = math_.add(first, Affine(0, 1)) if plan.per_vector else ZERO
        self._features = features if plan.per_vector else outer[labels.output_feature]
        self._index[labels.output_feature] = self._features

    def emit(self) -> None:
        """Sums, and all that follows from them."""
        zeros = (zero_element(self._kept, self._plan.lanes),) * (len(self._masks) * self._plan.together)
        self._finish(self._feature_loop(zeros))

    def _finish(self, totals: Totals) -> None:
        """Results from the sums of neighbours."""
        entry, plan, shape, sums = self._entry, self._plan, self._convolution.shape, iter(totals)
        math = IndexMath(entry.fb, 1 if plan.folds else plan.lanes)
        writes: list[tuple[Index, list[Element], Value | None]] = []
        for number, mask in enumerate(self._masks):
            for together in range(self._plan.together):
                total = convert_element(entry.fb, self._folded(next(sums)), self._kept, shape.dtype)
                index = self._index_of(number)
                index[self._labels.output_feature] = self._math.add_constant(self._features, together)
                place = tuple(index[dim] for dim in range(shape.rank))
                emitter = entry.emitter(math.lanes, mask, {self._convolution: always(total)})
                writes.append((place, [emitter.element(result, place) for result in self._results], mask))
        for number, view in enumerate(entry.outputs):
            view.write_together(math, [(place, elements[number], mask) for place, elements, mask in writes])

    def _folded(self, total: Element) -> Element:
        """The sum of all lanes, where these run along the window."""
        fb = self._entry.fb
        if not self._plan.folds:
            return total
        if isinstance(total, tuple):
            return fb.reduce(total[0], fb.fadd), fb.reduce(total[1], fb.fadd)
        if self._kept is DType.PRED:
            return fb.reduce(total, fb.or_)
        return fb.reduce(total, fb.fadd if self._kept.is_floating else fb.add)

    def _neighbour(self, number: int) -> Position:
        """Where along the last spatial dimension a neighbour lies."""
        if self._plan.per_vector or self._plan.folds:
            return self._math.add_constant(self._base, number % self._count)
        return self._math.add(self._base, Affine(number % self._count * self._plan.lanes, 1))

    def _index_of(self, number: int) -> dict[int, Position]:
        """The index of a neighbour's result, but for its features."""
        space = self._labels.output_spatial
        index = {**self._index, space[self._plan.along]: self._neighbour(number)}
        if self._plan.across >= 0:
            line = space[self._plan.across]
            index[line] = self._math.add_constant(index.get(line, ZERO), number // self._count)
        return index

    def _feature_loop(self, totals: Totals) -> Totals:
        """The sums over all input features, where these are far from one another."""
        inner = (self._plan.along, self._plan.across)
        others = [number for number in range(self._attrs.window.rank) if number not in inner]
        others.sort(key=lambda number: self._labels.input_spatial[number])
        if not self._plan.features_first or self._plan.inputs == 1:
            return self._windows(others, {}, ZERO if self._plan.features_first else None, totals)
        with self._entry.fb.carried_loop(0, self._plan.inputs, 1, flatten(totals)) as loop:
            loop.yield_(*flatten(self._windows(others, {}, Affine(loop.index), unflatten(loop.values, totals))))
        return unflatten(loop.results, totals)

    def _windows(
        self,
        others: Sequence[int],
        offsets: Mapping[int, Affine],
        feature: Affine | None,
        totals: Totals,
        *,
        is_padding: bool = False,
    ) -> Totals:
        """The sums with the products of the window; along all dimensions but the last a tile is in the padding or not.

        Padding is multiplied, too: it is zero, but an infinite weight makes it something else.
        """
        if not others:
            return self._along(offsets, feature, totals, is_padding=is_padding)
        fb, number = self._entry.fb, others[0]
        one = self._attrs.window.dimensions[number]
        size = spread_size(one, self._lhs.shape.dims[self._labels.input_spatial[number]])
        position = self._index[self._labels.output_spatial[number]]
        last = (self._convolution.shape.dims[self._labels.output_spatial[number]] - 1) * one.stride + one.dilated_size
        asks = not is_padding and (one.pad_low > 0 or last - one.pad_low > size)

        def inside(offset: Affine, sums: Totals, *, is_padding: bool) -> Totals:
            return self._windows(others[1:], {**offsets, number: offset}, feature, sums, is_padding=is_padding)

        def summed(offset: Affine, sums: Totals) -> Totals:
            if not asks:
                return inside(offset, sums, is_padding=is_padding)
            place = self._place(one, position, offset)
            assert isinstance(place, Affine), "rows are the same for all lanes"
            is_inside = fb.icmp("ult", self._math.scalar(place.base), self._entry.numbers.value(size))
            choice = fb.if_else(is_inside, likely=True)
            with choice.then():
                choice.yield_(*flatten(inside(offset, sums, is_padding=False)))
            with choice.otherwise():
                choice.yield_(*flatten(self._with_padding(others[1:], {**offsets, number: offset}, feature, sums)))
            return unflatten(choice.results, sums)

        if one.size == 1 and one.lhs_dilate == 1:
            return summed(ZERO, totals)
        # The first element of the window that does not see a hole, from which every so many do not.
        begin: Value | int = 0
        if one.lhs_dilate > 1:
            assert isinstance(position, Affine), "rows are the same for all lanes"
            behind = fb.urem(self._math.scalar(position.base), one.lhs_dilate)
            ahead = constant(I64, one.lhs_dilate + one.pad_low % one.lhs_dilate)
            begin = fb.urem(fb.sub(ahead, behind), one.lhs_dilate)
        with fb.carried_loop(begin, one.size, one.lhs_dilate, flatten(totals)) as loop:
            loop.yield_(*flatten(summed(Affine(loop.index), unflatten(loop.values, totals))))
        return unflatten(loop.results, totals)

    def _with_padding(
        self, others: Sequence[int], offsets: Mapping[int, Affine], feature: Affine | None, totals: Totals
    ) -> Totals:
        """The sums with what zeros contribute, which is the same for all neighbours that see the same of the window."""
        if self._kept.is_integral or self._kept is DType.PRED:
            return totals
        if self._attrs.window.dimensions[self._plan.along].lhs_dilate > 1:
            return self._windows(others, offsets, feature, totals, is_padding=True)
        alone = copy(self)
        alone._masks, alone._count = self._masks[:1], 1
        together = self._plan.together
        zeros = (zero_element(self._kept, self._plan.lanes),) * together
        found = alone._windows(others, offsets, feature, zeros, is_padding=True)
        pairs = zip(flatten(totals), flatten(found) * len(self._masks), strict=True)
        return unflatten(tuple(self._entry.fb.fadd(total, nothing) for total, nothing in pairs), totals)

    def _place(self, one: WindowDimension, position: Position, offset: Position) -> Position:
        """Where along a dimension of the input, holes included, an offset in the window at a position lies."""
        place = self._math.add(self._math.scale(position, one.stride), self._math.scale(offset, one.rhs_dilate))
        return self._math.add_constant(place, -one.pad_low)

    def _without_holes(self, one: WindowDimension, place: Position) -> Position:
        """Which element lies at a place that is no hole."""
        holes = one.lhs_dilate
        if holes == 1:
            return place
        assert isinstance(place, Affine), "only vectors along features see holes"
        if isinstance(place.base, int):
            return Affine(place.base // holes)
        bounds = None if place.bounds is None else (place.bounds[0] // holes, place.bounds[1] // holes)
        return Affine(self._entry.fb.udiv(self._math.scalar(place.base), holes), 0, bounds)

    def _is_hole(self, number: int, offset: Affine) -> bool:
        """Whether a neighbour sees a hole at an offset, which is known along the last spatial dimension."""
        one = self._attrs.window.dimensions[self._plan.along]
        if one.lhs_dilate == 1:
            return False
        place = self._place(one, self._neighbour(number), offset)
        assert isinstance(place, Affine), "only vectors along features see holes"
        remainder = self._math.remainder_of_base(place, one.lhs_dilate)
        assert remainder is not None, "tiles are whole numbers of holes apart"
        return remainder != 0

    def _along(
        self, offsets: Mapping[int, Affine], feature: Affine | None, totals: Totals, *, is_padding: bool
    ) -> Totals:
        """The sums with the products along the last spatial dimension, and across it if these are together."""
        fb, across = self._entry.fb, self._plan.across
        lines = self._attrs.window.dimensions[across].size
        if not self._plan.is_long:
            if across < 0:
                return self._spelt_out(offsets, feature, totals, is_padding=is_padding)
            with fb.carried_loop(0, lines, 1, flatten(totals)) as loop:
                here = {**offsets, across: Affine(loop.index, 0, (0, lines - 1))}
                sums = unflatten(loop.values, totals)
                loop.yield_(*flatten(self._spelt_out(here, feature, sums, is_padding=is_padding)))
            return unflatten(loop.results, totals)
        if self._plan.folds:
            return self._folding(offsets, feature, totals, is_padding=is_padding)
        if across < 0:
            return self._line(WindowLine(offsets, offsets, None, feature), totals, is_padding=is_padding)
        begin, end = (0, lines) if is_padding else self._middle(across)
        with fb.carried_loop(0, lines, 1, flatten(totals)) as loop:
            inside = None if end - begin == lines else fb.icmp("ult", fb.sub(loop.index, begin), end - begin)
            middle, anywhere = Affine(loop.index, 0, (begin, end - 1)), Affine(loop.index, 0, (0, lines - 1))
            line = WindowLine({**offsets, across: middle}, {**offsets, across: anywhere}, inside, feature)
            loop.yield_(*flatten(self._line(line, unflatten(loop.values, totals), is_padding=is_padding)))
        return unflatten(loop.results, totals)

    def _spelt_out(
        self, offsets: Mapping[int, Affine], feature: Affine | None, totals: Totals, *, is_padding: bool
    ) -> Totals:
        """The sums with the products along the last spatial dimension, offset after offset."""
        known: dict[object, Element] = {}
        for offset in range(self._attrs.window.dimensions[self._plan.along].size):
            here = {**offsets, self._plan.along: Affine(offset)}
            totals = self._features_of(here, feature, totals, known, is_padding=is_padding)
        return totals

    def _line(self, line: WindowLine, totals: Totals, *, is_padding: bool) -> Totals:
        """The sums with the products of a line of a long window, in order.

        They are written twice: for the middle, where no neighbour sees padding, and for elsewhere, where they ask.
        """
        fb, along = self._entry.fb, self._plan.along
        size = self._attrs.window.dimensions[along].size
        begin, end = (0, size) if is_padding else self._middle(along)

        def summed(first: Operand, last: Operand, sums: Totals, *, asks: bool) -> Totals:
            with fb.carried_loop(first, last, 1, flatten(sums)) as loop:
                offset = Affine(loop.index, 0, (0, size - 1) if asks else (begin, end - 1))
                offsets = {**(line.anywhere if asks else line.middle), along: offset}
                sums = unflatten(loop.values, sums)
                loop.yield_(*flatten(self._features_of(offsets, line.feature, sums, {}, is_padding=is_padding)))
            return unflatten(loop.results, sums)

        def chosen(condition: Value | None, then: Operand, otherwise: Operand) -> Operand:
            values = (one if isinstance(one, Value) else constant(I64, one) for one in (then, otherwise))
            return then if condition is None else fb.select(condition, *values)

        if begin == 0:
            behind = chosen(line.inside, end, 0)
            totals = summed(0, behind, totals, asks=False)
            return totals if behind == size else summed(behind, size, totals, asks=True)
        # First what is before the middle, then the middle and what is behind it.
        with fb.carried_loop(0, chosen(line.inside, 2, 1), 1, flatten(totals), nonempty=True) as loop:
            again = fb.icmp("ne", loop.index, 0)
            behind = chosen(again, end, 0)
            sums = summed(chosen(again, begin, 0), behind, unflatten(loop.values, totals), asks=False)
            last = chosen(again, size, chosen(line.inside, begin, size))
            loop.yield_(*flatten(summed(behind, last, sums, asks=True)))
        return unflatten(loop.results, totals)

    def _folding(
        self, offsets: Mapping[int, Affine], feature: Affine | None, totals: Totals, *, is_padding: bool
    ) -> Totals:
        """The sums with the products along the last spatial dimension, a vector of the window at a time."""
        fb, along, lanes = self._entry.fb, self._plan.along, self._plan.lanes
        size = self._attrs.window.dimensions[along].size

        def products(start: Value | int, bounds: tuple[int, int], sums: Totals) -> Totals:
            here = {**offsets, along: Affine(start, 1, bounds)}
            return self._features_of(here, feature, sums, {}, is_padding=is_padding)

        full = size - size % lanes
        for begin, end in self._vectors_along():
            if end - begin == lanes:
                totals = products(begin, (begin, end - 1), totals)
            elif begin < end:
                with fb.carried_loop(begin, end, lanes, flatten(totals)) as loop:
                    sums = products(loop.index, (begin, end - 1), unflatten(loop.values, totals))
                    loop.yield_(*flatten(sums))
                totals = unflatten(loop.results, totals)
        if full < size:
            self._window_mask = lanes_below(fb, full, size, lanes)
            totals = products(full, (full, size - 1), totals)
            self._window_mask = None
        return totals

    def _middle(self, dimension: int) -> tuple[int, int]:
        """The part of a window along a dimension where no neighbour needs padding; all of it if they are not known."""
        one = self._attrs.window.dimensions[dimension]
        if not isinstance(self._base.base, int):
            return 0, one.size
        size = self._lhs.shape.dims[self._labels.input_spatial[dimension]]
        dim = self._labels.output_spatial[dimension]
        ends = [self._math.bounds(self._index_of(number)[dim]) for number in range(len(self._masks))]
        first, last = min(low for low, _ in filter(None, ends)), max(high for _, high in filter(None, ends))
        return middle_of(one, size, first, last)

    def _vectors_along(self) -> list[tuple[int, int]]:
        """The parts of a window before, in and behind its middle, but for what is left behind its last whole vector."""
        lanes, (begin, end) = self._plan.lanes, self._middle(self._plan.along)
        full = self._attrs.window.dimensions[self._plan.along].size // lanes * lanes
        begin = min(-(-begin // lanes) * lanes, full)
        end = min(max(begin, end // lanes * lanes), full)
        return [(a, b) for a, b in ((0, begin), (begin, end), (end, full)) if a < b]

    def _features_of(
        self,
        offsets: Mapping[int, Affine],
        feature: Affine | None,
        totals: Totals,
        known: dict[object, Element],
        *,
        is_padding: bool,
    ) -> Totals:
        """The sums with the products at an offset in the window, of one input feature or of all of a group."""

        def products(feature: Affine, sums: Totals, known: dict[object, Element]) -> Totals:
            weights = [self._weight(offsets, feature, together) for together in range(self._plan.together)]
            emitter = self._emitter(0)
            after: list[Element] = []
            for number in range(len(self._masks)):
                if self._is_hole(number, offsets[self._plan.along]):
                    after.extend(sums[len(after) : len(after) + len(weights)])
                    continue
                element = self._input(number, offsets, feature, known, is_padding=is_padding)
                for weight in weights:
                    after.append(multiply_add(emitter, self._kept, sums[len(after)], element, weight))
            return tuple(after)

        if feature is not None:
            return products(feature, totals, known)
        if self._plan.inputs > (_FEW_ZEROS if is_padding else 2 * SPELT_OUT):
            with self._entry.fb.carried_loop(0, self._plan.inputs, 1, flatten(totals)) as loop:
                loop.yield_(*flatten(products(Affine(loop.index), unflatten(loop.values, totals), {})))
            return unflatten(loop.results, totals)
        for number in range(self._plan.inputs):
            totals = products(Affine(number), totals, known)
        return totals

    def _emitter(self, number: int) -> ElementEmitter:
        return self._entry.emitter(self._plan.lanes, self._window_mask or self._masks[number])

    def _weight(self, offsets: Mapping[int, Affine], feature: Affine, together: int) -> Element:
        """The element of the kernel at an offset, for one of the output features that are summed together."""
        labels, emitter = self._labels, self._emitter(0)
        index: dict[int, Position] = {
            labels.kernel_input_feature: feature,
            labels.kernel_output_feature: self._math.add_constant(self._features, together),
        }
        for number, one in enumerate(self._attrs.window.dimensions):
            place: Position = offsets[number]
            if one.reversal:
                place = self._math.add_constant(self._math.scale(place, -1), one.size - 1)
            index[labels.kernel_spatial[number]] = place
        element = emitter.element(self._rhs, tuple(index[dim] for dim in range(self._rhs.shape.rank)))
        return emitter.spread(convert_element(emitter.fb, element, self._rhs.shape.dtype, self._kept))

    def _input(
        self,
        number: int,
        offsets: Mapping[int, Affine],
        feature: Affine,
        known: dict[object, Element],
        *,
        is_padding: bool,
    ) -> Element:
        """The element of the input that a neighbour sees at an offset."""
        plan, dtype = self._plan, self._lhs.shape.dtype
        one, offset = self._attrs.window.dimensions[plan.along], offsets[plan.along]
        if is_padding:
            emitter = self._emitter(number)
            zero = zero_element(dtype, plan.lanes)
            return emitter.spread(convert_element(emitter.fb, zero, dtype, self._kept))
        seen: object = (number, offset)
        if plan.per_vector and isinstance(offset.base, int):
            seen = number * one.stride + offset.base * one.rhs_dilate
        if (seen, feature) not in known:
            known[seen, feature] = self._read(number, seen, offsets, feature, known)
        return known[seen, feature]

    def _read(
        self,
        neighbour: int,
        seen: object,
        offsets: Mapping[int, Affine],
        feature: Affine,
        known: dict[object, Element],
    ) -> Element:
        plan, labels = self._plan, self._labels
        batch = self._index[labels.output_batch]
        # Groups divide the features of the input, or its batch, each group having so many of them.
        by_batch = self._attrs.batch_group_count > 1
        grouped, other = labels.input_feature, labels.input_batch
        within: Position = feature
        rest, size = batch, plan.inputs
        if by_batch:
            grouped, other = other, grouped
            within, rest, size = batch, feature, self._convolution.shape.dims[labels.output_batch]
        has_few = plan.has_few_inputs and not by_batch and isinstance(feature.base, int)
        if plan.per_vector and (plan.outputs > 1 or has_few):
            key = seen, "groups", rest.base if isinstance(rest, Affine) and by_batch else None
            if key not in known:
                known[key] = self._read_groups(self._pixel(neighbour, offsets) | {other: rest}, grouped, size)
            return self._of_groups(known[key], within, size)
        group = self._math.divide(self._features, plan.outputs) if not plan.per_vector else self._features
        place = self._math.add(self._math.scale(group, size), within)
        return self._inside(self._emitter(neighbour), self._pixel(neighbour, offsets) | {other: rest, grouped: place})

    def _pixel(self, neighbour: int, offsets: Mapping[int, Affine]) -> dict[int, Position]:
        """Where along each dimension of space what a neighbour sees at an offset lies."""
        labels, result = self._labels, self._index_of(neighbour)
        pixel: dict[int, Position] = {}
        for number, one in enumerate(self._attrs.window.dimensions):
            position = result[labels.output_spatial[number]]
            position = self._neighbour(neighbour) if number == self._plan.along else position
            place = self._place(one, position, offsets[number])
            pixel[labels.input_spatial[number]] = self._without_holes(one, place)
        return pixel

    def _inside(self, emitter: ElementEmitter, index: Mapping[int, Position]) -> Element:
        """An element of the input in the type of sums, zero in the padding along dimensions of neighbours."""
        entry, lhs, space = self._entry, self._lhs, self._labels.input_spatial
        source = tuple(index[dim] for dim in range(lhs.shape.rank))
        # All lanes see one element of a line that has no other.
        masks = self._plan.masks and isinstance(source[-1], Affine) and source[-1].step == 1 < lhs.shape.dims[-1]
        region = Region(emitter)
        if emitter.mask is not None and not self._plan.folds:
            # One condition for what is read and what is chosen, which a masked load fulfils by itself.
            region = Region(entry.emitter(emitter.lanes))
            region.require_lanes(emitter.mask)
        for number in (self._plan.along, self._plan.across):
            if number >= 0:
                size = lhs.shape.dims[space[number]]
                bound = entry.numbers.held(size, ("input", number))
                region.require_range(index[space[number]], size, bound, masks=masks)
        choose = region.choose_or_zero if masks else region.choose
        element = choose(lhs, source, lambda: zero_element(lhs.shape.dtype, emitter.lanes))
        return emitter.spread(convert_element(emitter.fb, element, lhs.shape.dtype, self._kept))

    def _read_groups(self, index: dict[int, Position], grouped: int, size: int) -> Element:
        """All elements of a vector of groups, whose number is that of a dimension."""
        used = self._plan.per_vector * size
        lanes = 1 << max(used - 1, 0).bit_length()
        first = self._math.scale(self._vector, used) if self._plan.outputs > 1 else self._math.scale(self._first, size)
        assert isinstance(first, Affine), "a vector's number is a scalar"
        mask = None
        if self._masks[0] is not None or lanes > used:
            mask = lanes_below(self._entry.fb, first.base, self._lhs.shape.dims[grouped], lanes)
        return self._inside(self._entry.emitter(lanes, mask), index | {grouped: Affine(first.base, 1)})

    def _of_groups(self, element: Element, within: Position, size: int) -> Element:
        """An element of each group of a vector, as often as the group has output features."""
        plan, fb = self._plan, self._entry.fb
        assert isinstance(within, Affine), "features of a group are spelt out"
        assert isinstance(within.base, int) or size == 1, "features of a group are spelt out"
        at = within.base if isinstance(within.base, int) and size > 1 else 0
        order = [min(lane // plan.outputs, plan.per_vector - 1) * size + at for lane in range(plan.lanes)]
        if plan.per_vector * size == 1:
            return self._emitter(0).spread(element)
        if isinstance(element, tuple):
            return fb.shuffle(element[0], None, order), fb.shuffle(element[1], None, order)
        return fb.shuffle(element, None, order)
