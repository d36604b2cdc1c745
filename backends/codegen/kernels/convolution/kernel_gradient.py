"""The kernel for gradients of the kernels of convolutions in groups of few features, which come last.

Result, batch and kernel of such a convolution are a kernel's gradient, input features of the image and the gradient of
the image. Lanes run along the output features of several groups. Each position in a line of the image is loaded once
for all windows that see it, and its features are spread, one after another, over the lanes of their groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import ZERO, Affine, IndexMath, Position, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.dot import accumulator_dtype, multiply_add
from xlalite.backends.codegen.elements.elements import always
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel, shared_kernel
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.llvm import I8, Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import results_of

_SUMS = 24
"""Vectors of sums that leave registers for what is multiplied."""

_TOGETHER = 4
"""Neighbours along a line of the gradient that are multiplied together."""

_SPREAD = 2
"""Vectors of input features that are spread over the lanes of others in one instruction."""

_MANY_VECTORS = 8
"""Vectors of features that are enough tasks."""

_KEPT_BYTES, _VECTOR_BYTES = 16 << 10, 64
"""Sums that stay in the nearest cache beside lines of images, and the most that a vector takes."""

_Sums = tuple[Element, ...]


def kernel_gradient(request: KernelRequest, convolution: HloInstruction) -> KernelGradient:
    """The kernel of such a gradient, and of what follows it element by element."""
    labels, dims, (lhs, rhs) = convolution.attrs.dim_labels, convolution.shape.dims, convolution.operands
    groups = convolution.attrs.batch_group_count
    kept = accumulator_dtype(lhs.shape.dtype, rhs.shape.dtype, convolution.shape.dtype)
    lanes = request.target.lanes(max(8, kept.component.bits if kept.is_complex else kept.bits))
    *others, along = sorted(range(len(labels.output_spatial)), key=lambda number: labels.output_spatial[number])
    inputs, outputs = dims[labels.output_batch], dims[-1] // groups
    space = tuple(dims[dim] for dim in labels.output_spatial)
    across = others[-1] if others and space[others[-1]] * space[along] * inputs <= _SUMS else -1
    neighbours = space[along] * (1 if across < 0 else space[across])
    together = next(n for n in range(min(inputs, _SUMS // neighbours), 0, -1) if inputs % n == 0)
    return KernelGradient(request, convolution, lanes, inputs, outputs, together, along, across)


@dataclass(frozen=True, slots=True)
class KernelGradient(Kernel):
    """The gradient of the kernel of a convolution in groups.

    Attributes:
        convolution: The instruction.
        lanes: Lanes of a vector.
        inputs: Input features of a group.
        outputs: Output features of a group.
        together: Input features that are summed together.
        along: Number of the last spatial dimension, along which all results are summed together.
        across: Number of another one, likewise; -1 if there is none.
    """

    writes_once: ClassVar[bool] = True

    convolution: HloInstruction
    lanes: int
    inputs: int
    outputs: int
    together: int
    along: int
    across: int

    @property
    def per_vector(self) -> int:
        """How many groups a vector has: whose input features are few vectors."""
        return max(1, min(self.lanes // self.outputs, _SPREAD * self.lanes // self.inputs))

    @property
    def vectors(self) -> tuple[int, int]:
        """How many vectors of groups there are, and parts of the features of a group."""
        return -(-self.convolution.attrs.batch_group_count // self.per_vector), -(-self.outputs // self.lanes)

    @property
    def pieces(self) -> tuple[int, ...]:
        """What the results of a vector are divided into: input features, and places along other spatial dimensions."""
        space = self.convolution.attrs.dim_labels.output_spatial
        return (self.inputs // self.together, *(self.convolution.shape.dims[space[number]] for number in self.others))

    @property
    def is_whole(self) -> bool:
        """Whether a task has all pieces of a vector, so that lines of images come from memory once."""
        size = math.prod(self.pieces) * self.sums * _VECTOR_BYTES
        return math.prod(self.vectors) >= _MANY_VECTORS and size <= _KEPT_BYTES

    @property
    def sums(self) -> int:
        """Vectors of sums of a piece."""
        space = self.convolution.attrs.dim_labels.output_spatial
        dims: tuple[int, ...] = self.convolution.shape.dims
        neighbours: int = math.prod(dims[space[number]] for number in (self.along, self.across) if number >= 0)
        return neighbours * self.together * (2 if self.convolution.shape.dtype.is_complex else 1)

    @property
    def others(self) -> tuple[int, ...]:
        """Numbers of the other spatial dimensions."""
        rank = len(self.convolution.attrs.dim_labels.output_spatial)
        return tuple(number for number in range(rank) if number not in (self.along, self.across))

    @property
    def extent(self) -> int:
        """Vectors, or pieces of these."""
        return math.prod(self.vectors) * (1 if self.is_whole else math.prod(self.pieces))

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over tasks."""

        def write(entry: KernelEntry) -> None:
            fb, numbers, pieces = entry.fb, entry.numbers, math.prod(self.pieces)
            memory = fb.alloca(I8, (pieces if self.is_whole else 1) * self.sums * _VECTOR_BYTES, align=_VECTOR_BYTES)
            with fb.loop(entry.begin, entry.end) as number:
                vector = number if self.is_whole else fb.udiv(number, pieces)
                piece = None if self.is_whole else fb.urem(number, pieces)
                _Task(entry, self, places_of(fb, vector, self.vectors, numbers), piece, memory).emit()

        if results_of(self.request.body) == (self.convolution,):
            return shared_kernel(module, name, self.request, "kernel_gradient", write)
        entry = open_kernel(module, name, self.request)
        entry.fb.is_as_written = True
        write(entry)
        entry.close()
        return entry.function


class _Task:
    """Emits the sums of a vector of output features: of one piece, or of all."""

    def __init__(
        self, entry: KernelEntry, kernel: KernelGradient, place: Sequence[Position], piece: Value | None, memory: Value
    ) -> None:
        self._entry, self._kernel, self._convolution = entry, kernel, kernel.convolution
        self._only_piece, self._memory = piece, memory
        self._attrs: ConvolutionAttrs = kernel.convolution.attrs
        self._labels = self._attrs.dim_labels
        self._lhs, self._rhs = kernel.convolution.operands
        self._kept = accumulator_dtype(self._lhs.shape.dtype, self._rhs.shape.dtype, kernel.convolution.shape.dtype)
        self._math = math_ = IndexMath(entry.fb, kernel.lanes)
        vector, part = place
        self._group = math_.scale(vector, kernel.per_vector)
        self._first_output = math_.add(math_.scale(self._group, kernel.outputs), math_.scale(part, kernel.lanes))
        space, dims = self._labels.output_spatial, kernel.convolution.shape.dims
        lines = range(1 if kernel.across < 0 else dims[space[kernel.across]])
        self._neighbours = [(line, number) for line in lines for number in range(dims[space[kernel.along]])]
        self._mask = self._mask_of_outputs(part)
        self._inputs: Position = ZERO
        self._place: dict[int, Position] = {}

    def _scalar(self, position: Position) -> Value:
        assert isinstance(position, Affine), "places of tasks are scalars"
        return self._math.scalar(position.base)

    def _mask_of_outputs(self, part: Position) -> Value | None:
        """Which lanes have features of the vector's groups."""
        kernel, fb, width = self._kernel, self._entry.fb, self._convolution.shape.dims[-1]
        if kernel.outputs > kernel.lanes:
            begin, end = self._scalar(self._math.scale(part, kernel.lanes)), kernel.outputs
            return None if kernel.outputs % kernel.lanes == 0 else lanes_below(fb, begin, end, kernel.lanes)
        step = kernel.per_vector * kernel.outputs
        if width % step == 0:
            return None if step == kernel.lanes else lanes_below(fb, 0, step, kernel.lanes)
        left = fb.sub(self._entry.numbers.value(width), self._scalar(self._first_output))
        return lanes_below(fb, 0, fb.smin(left, step), kernel.lanes)

    def emit(self) -> None:
        """Sums in memory, line after line of each image, and all that follows from them."""
        kernel, fb = self._kernel, self._entry.fb
        zeros = (zero_element(self._kept, kernel.lanes),) * (len(self._neighbours) * kernel.together)
        with self._pieces() as memory:
            self._store(memory, zeros)
        images = self._entry.numbers.value(self._rhs.shape.dims[self._labels.kernel_input_feature])
        with fb.loop(0, images, nonempty=True) as image, ExitStack() as loops:
            offsets: dict[int, Affine] = {}
            for number, one in enumerate(self._attrs.window.dimensions):
                if number != kernel.along:
                    size = self._entry.numbers.value(one.size)
                    offset = loops.enter_context(fb.loop(0, size, nonempty=True))
                    offsets[number] = Affine(offset, 0, (0, one.size - 1))
            with self._pieces() as memory:
                self._store(memory, self._line(offsets, Affine(image), self._load(memory, zeros)))
        with self._pieces() as memory:
            self._finish(memory, zeros[0])

    @contextmanager
    def _pieces(self) -> Iterator[Value]:
        """A loop over all pieces of the task; where their sums are."""
        kernel, fb = self._kernel, self._entry.fb
        count = math.prod(kernel.pieces)
        whole = nullcontext(self._only_piece) if self._only_piece is not None else fb.loop(0, count)
        with whole as piece:
            batch, *others = places_of(fb, piece, kernel.pieces)
            self._inputs = self._math.scale(batch, kernel.together)
            self._place = dict(zip(kernel.others, others, strict=True))
            yield (
                self._memory
                if self._only_piece is not None
                else fb.gep(I8, self._memory, fb.mul(piece, kernel.sums * _VECTOR_BYTES))
            )

    def _load(self, memory: Value, like: _Sums) -> _Sums:
        fb = self._entry.fb
        kinds = enumerate(flatten(like))
        places = [(fb.gep(I8, memory, number * _VECTOR_BYTES), one.type) for number, one in kinds]
        return unflatten(tuple(fb.load(kind, place, _VECTOR_BYTES) for place, kind in places), like)

    def _store(self, memory: Value, sums: _Sums) -> None:
        fb = self._entry.fb
        for number, one in enumerate(flatten(sums)):
            fb.store(one, fb.gep(I8, memory, number * _VECTOR_BYTES), _VECTOR_BYTES)

    def _finish(self, memory: Value, like: Element) -> None:
        """Results from the sums of a piece.

        Sums that are stored as they are take a load and a store each, and are spelt out; what follows from others is
        many instructions where they are rounded, and a loop has them once.
        """
        fb, kernel, dims = self._entry.fb, self._kernel, self._convolution.shape.dims
        across, along = (dims[self._labels.output_spatial[number]] for number in (kernel.across, kernel.along))
        sizes = 1 if kernel.across < 0 else across, along, kernel.together
        if results_of(kernel.request.body) == (self._convolution,) and self._kept is self._convolution.shape.dtype:
            known = [tuple(map(Affine, place)) for place in product(*map(range, sizes))]
            for places, total in zip(known, self._load(memory, (like,) * len(known)), strict=True):
                self._write(places, total)
            return
        numbers = IndexMath(fb, 1)
        with ExitStack() as loops:
            places = tuple(Affine(loops.enter_context(fb.loop(0, size, nonempty=True))) for size in sizes)
            number = numbers.vector(numbers.linear(places, row_major_strides(sizes)))
            register = fb.mul(number, len(flatten([like])) * _VECTOR_BYTES)
            self._write(places, *self._load(fb.gep(I8, memory, register), (like,)))

    def _write(self, places: tuple[Affine, ...], total: Element) -> None:
        """The results that follow from the sum of a line, a neighbour in it and a feature."""
        entry, kernel, labels, shape = self._entry, self._kernel, self._labels, self._convolution.shape
        line, neighbour, feature = places
        index: dict[int, Position] = {labels.output_spatial[k]: place for k, place in self._place.items()}
        if kernel.across >= 0:
            index[labels.output_spatial[kernel.across]] = line
        index[labels.output_spatial[kernel.along]] = neighbour
        index[labels.output_batch] = self._math.add(self._inputs, feature)
        index[labels.output_feature] = self._math.add(self._first_output, Affine(0, 1))
        place = tuple(index[dim] for dim in range(shape.rank))
        total = convert_element(entry.fb, total, self._kept, shape.dtype)
        emitter = entry.emitter(kernel.lanes, self._mask, {self._convolution: always(total)})
        elements = [emitter.element(result, place) for result in results_of(kernel.request.body)]
        for view, element in zip(entry.outputs, elements, strict=True):
            view.write(emitter.math, place, element, self._mask)

    def _line(self, offsets: Mapping[int, Affine], image: Affine, sums: _Sums) -> _Sums:
        """The sums with the products of a line of an image, some neighbours at a time."""
        fb, size = self._entry.fb, self._attrs.window.dimensions[self._kernel.along].size
        whole = size - size % _TOGETHER
        for begin, end, count in ((0, whole, _TOGETHER), (whole, size, 1)):
            if begin < end:
                first, last = self._entry.numbers.value(begin), self._entry.numbers.value(end)
                with fb.carried_loop(first, last, count, flatten(sums), nonempty=True) as loop:
                    inner = {**offsets, self._kernel.along: Affine(loop.index, 0, (begin, end - count))}
                    loop.yield_(*flatten(self._products(inner, count, image, unflatten(loop.values, sums))))
                sums = unflatten(loop.results, sums)
        return sums

    def _products(self, offsets: Mapping[int, Affine], count: int, image: Affine, sums: _Sums) -> _Sums:
        """The sums with the products of some neighbours of the gradient, position after position of the image."""
        kernel, one = self._kernel, self._attrs.window.dimensions[self._kernel.along]
        gradients = [self._gradient(offsets, number, image) for number in range(count)]
        seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place, (line, number) in enumerate(self._neighbours):
            for after in range(count):
                seen.setdefault((line, number * one.stride + after * one.rhs_dilate), []).append((place, after))
        emitter, later = self._entry.emitter(kernel.lanes, self._mask), list(sums)
        for (line, position), pairs in sorted(seen.items()):
            elements = self._image(offsets, line, position, image)
            for feature in range(kernel.together):
                element = self._spread(elements, feature)
                for place, after in pairs:
                    at = place * kernel.together + feature
                    later[at] = multiply_add(emitter, self._kept, later[at], element, gradients[after])
        return tuple(later)

    def _gradient(self, offsets: Mapping[int, Affine], after: int, image: Affine) -> Element:
        """A vector of the gradient of the image."""
        labels, kernel = self._labels, self._kernel
        index: dict[int, Position] = {labels.kernel_spatial[number]: place for number, place in offsets.items()}
        along = labels.kernel_spatial[kernel.along]
        index[along] = self._math.add_constant(index[along], after)
        index[labels.kernel_input_feature] = image
        index[labels.kernel_output_feature] = self._math.add(self._first_output, Affine(0, 1))
        emitter = self._entry.emitter(kernel.lanes, self._mask)
        element = emitter.element(self._rhs, tuple(index[dim] for dim in range(self._rhs.shape.rank)))
        return emitter.spread(convert_element(emitter.fb, element, self._rhs.shape.dtype, self._kept))

    def _image(self, offsets: Mapping[int, Affine], line: int, position: int, image: Affine) -> Element:
        """The features of a vector's groups at a position, in the type of sums: zero in the padding."""
        labels, kernel, lhs = self._labels, self._kernel, self._lhs
        used = (kernel.per_vector - 1) * kernel.inputs + kernel.together
        lanes = max(2, 1 << (used - 1).bit_length())
        first = self._math.add(self._math.scale(self._group, kernel.inputs), self._inputs)
        mask = None
        if lanes > used or lhs.shape.dims[-1] % (kernel.per_vector * kernel.inputs):
            features = self._entry.numbers.held(lhs.shape.dims[-1], "input features")
            mask = lanes_below(self._entry.fb, self._scalar(first), features, lanes)
        emitter = self._entry.emitter(lanes, mask)
        region, masks = Region(emitter), kernel.request.target.has("avx512bw")
        index: dict[int, Position] = {labels.input_feature: image}
        for number, one in enumerate(self._attrs.window.dimensions):
            place: Position = self._math.scale(offsets[number], one.rhs_dilate)
            if number in self._place:
                place = self._math.add(place, self._math.scale(self._place[number], one.stride))
            known = position if number == kernel.along else line * one.stride if number == kernel.across else 0
            place = self._math.add_constant(place, known - one.pad_low)
            size = lhs.shape.dims[labels.input_spatial[number]]
            region.require_range(place, size, self._entry.numbers.held(size, ("input", number)), masks=masks)
            index[labels.input_spatial[number]] = place
        index[labels.input_batch] = self._math.add(first, Affine(0, 1))
        source = tuple(index[dim] for dim in range(lhs.shape.rank))
        choose = region.choose_or_zero if masks and lhs.shape.dims[-1] > 1 else region.choose
        element = choose(lhs, source, lambda: zero_element(lhs.shape.dtype, lanes))
        return emitter.spread(convert_element(emitter.fb, element, lhs.shape.dtype, self._kept))

    def _spread(self, elements: Element, feature: int) -> Element:
        """One feature of each group, in all lanes of the group."""
        kernel, fb = self._kernel, self._entry.fb
        groups = (min(lane // kernel.outputs, kernel.per_vector - 1) for lane in range(kernel.lanes))
        order = [group * kernel.inputs + feature for group in groups]
        if isinstance(elements, tuple):
            return fb.shuffle(elements[0], None, order), fb.shuffle(elements[1], None, order)
        return fb.shuffle(elements, None, order)
