"""The kernel for convolutions in groups of few features, as in depthwise ones, and for their gradients.

Such a convolution has no product of matrices that fills vectors: lanes run along the output features, or along space
where that is the minor dimension. Sums of neighbours along the last spatial dimension are in registers together, so
that an element of the input that several of them need is loaded once. At the borders, where what a neighbour needs lies
in the padding is known now; along all other dimensions a loop over the window asks once for all of a tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import ZERO, Affine, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.convolution.in_order import TileInOrder
from xlalite.backends.codegen.kernels.convolution.kernel_gradient import KernelGradient, kernel_gradient
from xlalite.backends.codegen.kernels.convolution.plan import SPELT_OUT, ConvolutionPlan, spread_size, walk_of
from xlalite.backends.codegen.kernels.convolution.tile import Tile
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel, shared_kernel
from xlalite.backends.codegen.kernels.loop_nest import each_place
from xlalite.backends.codegen.kernels.plain_body import is_plain_behind_product
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.analysis.matrix_products import is_kernel_gradient, skips_holes
from xlalite.passes.fusion.domain import Place
from xlalite.passes.fusion.kernel_shape import KernelShape, results_of

_NEIGHBOURS = (6, 5, 7, 4, 8)
"""How many neighbours may be summed together, the best first, where each reads what it sees by itself."""

_MOST_PRODUCTS = 100
"""How many vectors a tile may multiply in a row of the window, if it may have fewer neighbours instead."""

_FEW_ROWS = 64
"""With fewer rows, vectors of features are tasks, too."""


def plan_convolution(request: KernelRequest, shape: KernelShape) -> ConvolutionKernel | KernelGradient | Declined:
    """The kernel of a convolution in groups, and of what follows it element by element."""
    convolution, *others = (one for one in request.body.instructions if one.opcode == "convolution")
    attrs: ConvolutionAttrs = convolution.attrs
    labels, dims = attrs.dim_labels, convolution.shape.dims
    if others:
        return Declined("there are several convolutions")
    if shape.places.get(convolution) is not Place.FULL or any(r.shape.dims != dims for r in results_of(request.body)):
        return Declined("it is read at another index")
    if any(0 in one.shape.dims for one in (convolution, *convolution.operands)):
        return Declined("there is nothing to sum")
    if any(one.lhs_dilate > 1 for one in attrs.window.dimensions) and not skips_holes(convolution):
        return Declined("there are holes in its input")
    if labels.output_batch == len(dims) - 1 or not labels.output_spatial:
        return Declined("its minor dimension is neither features nor space")
    if is_kernel_gradient(convolution):
        return kernel_gradient(request, convolution)
    plan = walk_of(convolution, request.target)
    if plan.across >= 0 and request.in_place and dims[labels.output_spatial[plan.across]] % plan.lines:
        plan = replace(plan, across=-1, lines=1, in_order=0)
    if plan.per_vector and attrs.batch_group_count > 1 and plan.outputs > 1 and dims[labels.output_batch] > 1:
        return Declined("groups of several features have several batches")
    if plan.per_vector and plan.outputs > 1 and (plan.outputs > plan.lanes or plan.inputs > 2 * SPELT_OUT):
        return Declined("a group has many features")
    return ConvolutionKernel(request, convolution, plan)


@dataclass(frozen=True, slots=True)
class ConvolutionKernel(Kernel):
    """A convolution in groups of few features.

    Attributes:
        convolution: The instruction.
        plan: How it is walked.
    """

    writes_once: ClassVar[bool] = True

    convolution: HloInstruction
    plan: ConvolutionPlan

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions of the result that tasks divide: all but the minor one and those of neighbours."""
        inner = {self.convolution.shape.rank - 1, self.convolution.attrs.dim_labels.output_spatial[self.plan.along]}
        return tuple(dim for dim in range(self.convolution.shape.rank) if dim not in inner)

    @property
    def outer_sizes(self) -> tuple[int, ...]:
        """Sizes of these; how many groups of those that are summed together."""
        labels, dims, plan = self.convolution.attrs.dim_labels, self.convolution.shape.dims, self.plan
        together = {labels.output_feature: plan.together}
        if plan.across >= 0:
            together[labels.output_spatial[plan.across]] = plan.lines
        return tuple(-(-dims[dim] // together.get(dim, 1)) for dim in self.outer)

    @property
    def vectors(self) -> int:
        """Vectors of features, if these are tasks, too."""
        is_few = self.plan.per_vector and math.prod(self.outer_sizes) < _FEW_ROWS
        return -(-self.convolution.shape.dims[-1] // self.plan.step) if is_few else 1

    @property
    def extent(self) -> int:
        """Rows of the result, or vectors of features of rows."""
        return math.prod(self.outer_sizes) * self.vectors

    @property
    def is_shared(self) -> bool:
        """Whether programs share its loops, which read sizes from a table: where that takes no longer.

        Others do: depthwise, 240 features last of [8,28,28] by 5x5 take 520 us of one core, and 590 so; 64 first of
        [8,112,112] by 3x3 1,350 and 1,700.
        """
        plan = self.plan
        has_long_tiles = plan.is_long or min(plan.inputs, plan.outputs) > 1
        has_holes = any(one.lhs_dilate > 1 for one in self.convolution.attrs.window.dimensions)
        is_long = plan.in_order > 0 or (plan.per_vector > 0 and has_long_tiles and not has_holes)
        return is_long and results_of(self.request.body) == (self.convolution,)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over rows, tiles of neighbours and vectors."""

        def write(entry: KernelEntry) -> None:
            with each_place(entry, (*self.outer_sizes, self.vectors)) as places:
                _Row(entry, self, places).emit()

        if self.is_shared:
            return shared_kernel(module, name, self.request, "convolution", write)
        entry = open_kernel(module, name, self.request)
        # Along space the passes over IR save an eighth: depthwise, 64 features first of [8,112,112] by 3x3.
        entry.fb.is_as_written = self.plan.per_vector > 0 and is_plain_behind_product(self.request.body)
        write(entry)
        entry.close()
        return entry.function


class _Row:
    """Emits the results of one row."""

    def __init__(self, entry: KernelEntry, kernel: ConvolutionKernel, places: Sequence[Affine]) -> None:
        self._entry = entry
        self._kernel = kernel
        self._plan = kernel.plan
        self._results = results_of(kernel.request.body)
        self._dims = kernel.convolution.shape.dims
        labels = kernel.convolution.attrs.dim_labels
        self._size = self._dims[labels.output_spatial[kernel.plan.along]]
        self._unit = 1 if kernel.plan.per_vector or kernel.plan.folds else kernel.plan.lanes
        self._window: WindowDimension = kernel.convolution.attrs.window.dimensions[kernel.plan.along]
        *outer, vector = places
        self._vector = vector.base if isinstance(vector.base, Value) else None
        self._outer: dict[int, Position] = dict(zip(kernel.outer, outer, strict=True))
        math_ = IndexMath(entry.fb, 1)
        if not kernel.plan.per_vector:
            feature = self._outer[labels.output_feature]
            self._outer[labels.output_feature] = math_.scale(feature, kernel.plan.together)
        if kernel.plan.across >= 0:
            # The last lines begin in those before.
            dim, lines = labels.output_spatial[kernel.plan.across], kernel.plan.lines
            first, last = math_.scale(self._outer[dim], lines), self._dims[dim] - lines
            assert isinstance(first, Affine), "tasks are counted"
            self._outer[dim] = ZERO
            if last:
                place = entry.fb.smin(math_.scalar(first.base), entry.numbers.value(last))
                self._outer[dim] = Affine(place, 0, (0, last))

    def emit(self) -> None:
        """Tiles of neighbours, in one loop or spelt out; else those at the borders apart from those between them."""
        fb, number, unit, holes = self._entry.fb, self._entry.numbers.value, self._unit, self._window.lhs_dilate
        count = -(-self._size // unit)
        most = self._plan.in_order if self._plan.in_order and self._plan.masks else SPELT_OUT
        if count <= most and (self._plan.is_long or holes == 1):
            self._border(0, count)
            return
        size = self._tile_size(count)
        if size:
            # What the padding hides is asked for at the ends of each tile; the last one begins in the one before.
            last = self._size - size * unit
            with fb.loop(0, number(self._size), size * unit, nonempty=True) as start:
                base = fb.smin(start, number(last)) if self._size % (size * unit) else start
                self._tile(Affine(base, 0, (0, last)), range(size))
            return
        begin, end = self._inside()
        sizes = [n for n in self._counts if n <= end - begin and n % holes == 0] or [holes]
        size = next((n for n in sizes if (end - begin) % n == 0), sizes[0])
        tiles = (end - begin) // size
        front = begin + (end - begin - tiles * size) // 2
        back = front + tiles * size
        self._border(0, front)
        if tiles:
            with fb.loop(front * unit, number(back * unit), size * unit, nonempty=True) as base:
                self._tile(Affine(base, 0, (front * unit, (back - size) * unit), size * unit), range(size))
        self._border(back, count)

    @property
    def _counts(self) -> Sequence[int]:
        """How many neighbours may be summed together, the best first."""
        return (self._plan.in_order,) if self._plan.in_order else _NEIGHBOURS

    def _tile_size(self, count: int) -> int:
        """Neighbours of tiles that are all alike and may begin in the one before; 0 if there cannot be such."""
        plan = self._plan
        if plan.is_long or self._window.lhs_dilate > 1 or not plan.masks:
            return 0
        # A vector of several groups has all products of their features, spelt out.
        products = self._window.size * (plan.inputs if plan.per_vector and plan.outputs > 1 else 1)
        sizes = [size for size in self._counts if plan.in_order or size * products <= _MOST_PRODUCTS]
        sizes = sizes or [min(_NEIGHBOURS)]
        if self._kernel.request.in_place:
            sizes = [size for size in sizes if self._size % (size * self._unit) == 0]
        return min(sizes, key=lambda size: -(-count // size) * size, default=0)

    @property
    def _takes_again(self) -> bool:
        """Whether a result may be computed twice: a feature is a group of its own, and nothing is overwritten."""
        return self._plan.outputs == 1 and self._plan.step == self._plan.lanes and not self._kernel.request.in_place

    def _inside(self) -> tuple[int, int]:
        """The range of neighbours that need no padding and fill their vectors."""
        convolution, one = self._kernel.convolution, self._window
        dim = convolution.attrs.dim_labels.input_spatial[self._plan.along]
        size = spread_size(one, convolution.operand(0).shape.dims[dim])
        begin = -(-max(0, one.pad_low) // (one.stride * self._unit))
        end = min((size - one.dilated_size + one.pad_low) // one.stride + 1, self._size) // self._unit
        begin = min(begin, self._size // self._unit)
        return begin, max(begin, end)

    def _border(self, begin: int, end: int) -> None:
        """Neighbours that may need padding or have no full vectors; of many, the full ones are a loop that asks."""
        unit = self._unit
        full = min(end, self._size // unit)
        if full - begin > 2 * SPELT_OUT and self._window.lhs_dilate == 1:
            with self._entry.fb.loop(begin * unit, self._entry.numbers.value(full * unit), unit, nonempty=True) as base:
                self._tile(Affine(base, 0, (begin * unit, (full - 1) * unit)), range(1))
            begin = full
        most = self._plan.in_order or SPELT_OUT
        for start in range(begin, end, most):
            self._tile(Affine(start * unit), range(min(most, end - start)))

    def _tile(self, base: Affine, neighbours: range) -> None:
        """All features of some neighbours, or the one vector of each that lies along space."""
        fb, plan, width, number = self._entry.fb, self._plan, self._dims[-1], self._entry.numbers.value
        if not plan.per_vector:
            starts = [base.base + n * plan.lanes if isinstance(base.base, int) else None for n in neighbours]
            masks = [
                None
                if plan.folds or start is None or start + plan.lanes <= width
                else lanes_below(fb, start, width, plan.lanes)
                for start in starts
            ]
            tile, convolution = TileInOrder if plan.in_order else Tile, self._kernel.convolution
            tile(self._entry, self._results, convolution, plan, self._outer, base, masks, ZERO, ZERO).emit()
            return

        def vector(place: Affine, mask: Value | None, first: Affine | None = None) -> None:
            begin = IndexMath(fb, plan.lanes).scale(place, plan.step) if first is None else first
            assert isinstance(begin, Affine), "a vector's number is a scalar"
            Tile(
                self._entry,
                self._results,
                self._kernel.convolution,
                self._plan,
                self._outer,
                base,
                [mask] * len(neighbours),
                begin,
                place,
            ).emit()

        whole, rest = divmod(width, plan.step)
        part = lanes_below(fb, 0, plan.step, plan.lanes) if plan.step < plan.lanes else None
        if whole and rest and self._takes_again:
            # The last vector begins so much earlier that it is a whole one.
            with (
                fb.loop(0, number(width), plan.step, nonempty=True)
                if self._vector is None
                else nullcontext(fb.mul(self._vector, plan.step)) as start
            ):
                vector(ZERO, None, Affine(fb.smin(start, number(width - plan.step))))
            return
        if self._vector is not None:
            if rest:
                left = fb.sub(number(width), fb.mul(self._vector, plan.step))
                part = lanes_below(fb, 0, fb.smin(left, plan.step), plan.lanes)
            vector(Affine(self._vector), part)
            return
        if whole > 1:
            with fb.loop(0, number(whole), nonempty=True) as place:
                vector(Affine(place), part)
        elif whole:
            vector(ZERO, part)
        if rest:
            vector(Affine(whole), lanes_below(fb, 0, rest, plan.lanes))
