"""A dot or a convolution seen as a batch of matrix products, without moving data.

[batch][m][k] x [batch][k][n] -> [batch][m][n], where m, n and k may each stand for several dimensions of the operands
(`Walk`). The result is row-major.

In a convolution the pixels of the result are rows, the elements of the window with the input features are terms, and
the output features are columns; which pixels a window sees is a matter of strides. With the features before the pixels,
as in NCHW, the product is the transposed one.
"""

from __future__ import annotations

import math
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.kernels.dot.packed_operand import packed_rhs
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.hlo.records import dataclass

_MOST_PLACES = 512
"""Terms whose places stay in the nearest cache beside what lies there."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """One operand.

    Attributes:
        outer: The dimension that the result keeps.
        depth: The contracted dimension.
        batch: Strides of the batch dimensions, in elements.
        origin: Place of the first element that is read.
        looked_up: How many terms follow one another from each place that tiles look up; 0 if they look up none.
        panel: How many positions along the outer dimension make up a panel that tiles read as they read one that they
            packed themselves; 0 if the operand is not in panels.
        computing: Cycles to compute a vector of it, if it is in no memory before it is packed; else 0.
    """

    outer: Walk
    depth: Walk
    batch: tuple[int, ...]
    origin: int = 0
    looked_up: int = 0
    panel: int = 0
    computing: float = 0.0

    @property
    def is_strided(self) -> bool:
        """Whether one stride walks through each dimension, or through each panel, so that tiles can read it."""
        return (self.depth.is_single or self.looked_up > 0) and (self.outer.is_single or self.panel > 0)

    @property
    def is_computed_in_rows(self) -> bool:
        """Whether it is computed, and neighbours are terms, as tiles read a left operand just as well."""
        return self.computing > 0 and self.outer.stride != 1

    @property
    def has_runs(self) -> bool:
        """Whether it is in memory and neighbours are terms, as tiles with vectors of terms read it."""
        return self.depth.stride == 1 and not self.computing

    def in_runs(self, run: int) -> Matrix:
        """The same, of which tiles look up where each run of so many terms lies."""
        return replace(self, depth=self.depth.in_runs(run), looked_up=run)

    @property
    def spacing(self) -> int:
        """Distance of positions that are whole panels apart, for each position between them."""
        return self.outer.steps[0][1] // self.panel if self.panel else self.outer.stride


@dataclass(frozen=True, slots=True)
class DotView:
    """A batch of matrix products.

    Attributes:
        batch: Sizes of the batch dimensions.
        m: Rows of the result.
        n: Columns of the result.
        k: Terms of a sum.
        lhs: The left operand; `outer` walks over m.
        rhs: The right operand; `outer` walks over n.
        left_rank: How many dimensions of the result are batch dimensions or rows.
        products: Where in the result each product begins.
        line: Elements from one row of the result to the next.
        exchanged: Whether the left operand is the instruction's second.
        groups: Size of the last batch dimension, if it is not one of the result but a part of that of its features.
        seen: Which columns are the result's, if there are others between them.
        rows: Where each row of the result begins, if lines are not one after another; they are within its runs.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix
    left_rank: int
    products: Walk
    line: int
    exchanged: bool = False
    groups: int = 1
    seen: Walk | None = None
    rows: Walk | None = None

    @property
    def batch_count(self) -> int:
        """Number of products."""
        return math.prod(self.batch)

    def swapped(self) -> DotView:
        """The product of the transposed operands, which gives the transposed result in the same place."""
        return replace(self, m=self.n, n=self.m, lhs=self.rhs, rhs=self.lhs, exchanged=not self.exchanged)

    def looked_up(self) -> DotView | None:
        """The product whose right operand is read in vectors where it lies, term by term; None if it cannot be.

        Of an image these are all pixels between the first and the last one: what a window sees from a place in the
        padding is computed, too, and dropped. A kernel that is read backwards is better packed: columns are many.
        """
        outer, depth = self.rhs.outer, self.rhs.depth
        bridged = outer.bridged
        if (
            bridged is None
            or self.rhs.panel
            or self.rhs.computing
            or self.n < 2
            or (outer.is_single and (depth.is_single or depth.is_backwards))
        ):
            return None
        rhs = replace(self.rhs, outer=bridged, looked_up=1)
        return replace(self, n=bridged.run, rhs=rhs, seen=None if outer.is_single else outer)

    def with_rows_looked_up(self) -> DotView | None:
        """The product in which pixels of an image are rows, read where they lie, term by term; None if it is no such.

        There are few terms, in short runs.
        """
        outer, depth = self.lhs.outer, self.lhs.depth
        if self.exchanged or self.lhs.computing or self.rhs.panel or depth.is_single or self.k > _MOST_PLACES:
            return None
        return replace(self, lhs=replace(self.lhs, looked_up=1)) if outer.is_forward else None

    def in_runs(self, least: int, most: int) -> DotView | None:
        """The product whose operands, or one of them, are read in vectors of terms, run by run where they lie.

        Runs of both are the same, of so many terms or all of them; None if there are no such, or each operand is one.
        """
        sides = [one for one in (self.lhs, self.rhs) if one.has_runs]
        if all(one.is_strided for one in sides):
            return None
        longest = math.gcd(*(one.depth.run for one in sides))
        run = next(longest // parts for parts in range(-(-longest // most), longest + 1) if longest % parts == 0)
        if run < min(least, self.k):
            return None
        lhs, rhs = (one.in_runs(run) if one.has_runs and not one.is_strided else one for one in (self.lhs, self.rhs))
        return replace(self, lhs=lhs, rhs=rhs)

    def turned(self) -> DotView | None:
        """The transposed product, in which pixels of an image are rows, read where they lie; None if it is no image.

        No row is computed that is not the result's; what is computed has to be turned.
        """
        outer, depth = self.rhs.outer, self.rhs.depth
        if not self.exchanged or outer.is_single or not outer.is_forward:
            return None
        swapped = self.swapped()
        return swapped if depth.is_single else replace(swapped, lhs=replace(swapped.lhs, looked_up=1))


def view_of(product: HloInstruction) -> DotView:
    """The view of a dot, or of a convolution that sees neither padding nor holes."""
    if product.opcode == "convolution":
        return view_of_convolution(product, product.operand(0).shape.dims)
    return _view_of_dot(product)


@dataclass(frozen=True, slots=True)
class OperandDimensions:
    """Which dimensions of an operand of a dot are what, in the order in which they are walked through."""

    batch: tuple[int, ...]
    outer: tuple[int, ...]
    depth: tuple[int, ...]

    def matrix(self, operand: HloInstruction) -> Matrix:
        """The operand where it lies."""
        dims, strides = operand.shape.dims, row_major_strides(operand.shape.dims)
        outer, depth = (Walk.through((dims[d], strides[d]) for d in each) for each in (self.outer, self.depth))
        return Matrix(outer, depth, tuple(strides[d] for d in self.batch))


def operand_dimensions(dot: HloInstruction) -> tuple[OperandDimensions, OperandDimensions]:
    """Those of the left operand and of the right one."""
    attrs: DotAttrs = dot.attrs
    lhs, rhs = (operand.shape for operand in dot.operands)
    # The order of the terms is free: such that the operand with more elements is walked through in order.
    contracted = list(zip(attrs.lhs_contracting_dims, attrs.rhs_contracting_dims, strict=True))
    is_left_larger = lhs.element_count >= rhs.element_count
    contracted.sort(key=lambda pair: pair[0] if is_left_larger else pair[1])
    return (
        OperandDimensions(
            attrs.lhs_batch_dims,
            tuple(free_dimensions(lhs.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)),
            tuple(d for d, _ in contracted),
        ),
        OperandDimensions(
            attrs.rhs_batch_dims,
            tuple(free_dimensions(rhs.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)),
            tuple(d for _, d in contracted),
        ),
    )


def _view_of_dot(dot: HloInstruction) -> DotView:
    left, right = operand_dimensions(dot)
    dims, columns = dot.operand(0).shape.dims, dot.operand(1).shape.dims
    packed = packed_rhs(dot)
    if packed is None:
        rhs = right.matrix(dot.operand(1))
    else:
        k, panels, width = packed[0].k, packed[0].panels, packed[0].width
        rhs = Matrix(Walk(((panels, k * width), (width, 1))), Walk(((k, width),)), (), panel=width)
    batch = tuple(dims[d] for d in left.batch)
    n = math.prod(columns[d] for d in right.outer)
    return DotView(
        batch,
        math.prod(dims[d] for d in left.outer),
        n,
        math.prod(dims[d] for d in left.depth),
        left.matrix(dot.operand(0)),
        rhs,
        len(left.batch) + len(left.outer),
        Walk.through(zip(batch, row_major_strides(dot.shape.dims), strict=False)),
        n,
    )


def view_of_convolution(
    convolution: HloInstruction, lhs: tuple[int, ...], apart: int = 0, spread: tuple[int, ...] = ()
) -> DotView:
    """The view of a convolution whose input lies in memory as one of such sizes does, and its kernel may be a slice.

    With features last, some of the result's first dimensions may count products, and `spread` may be its strides.
    """
    attrs: ConvolutionAttrs = convolution.attrs
    labels, window = attrs.dim_labels, attrs.window.dimensions
    rhs = convolution.operand(1).shape.dims
    strides, (kernel_strides, first) = row_major_strides(lhs), _strides_of_kernel(convolution.operand(1))
    space = [strides[d] for d in labels.input_spatial]
    moves = {labels.output_batch: strides[labels.input_batch]}
    moves |= {d: space[i] * window[i].stride for i, d in enumerate(labels.output_spatial)}
    dims, outputs = convolution.shape.dims, labels.kernel_output_feature
    is_last = labels.output_feature == len(dims) - 1
    kernel_space = [
        kernel_strides[dim] * (-1 if one.reversal else 1)
        for dim, one in zip(labels.kernel_spatial, window, strict=True)
    ]
    terms = [
        (one.size, stride * one.rhs_dilate, across)
        for one, stride, across in zip(window, space, kernel_space, strict=True)
    ]
    features = labels.kernel_input_feature
    terms.append((rhs[features], strides[labels.input_feature], kernel_strides[features]))
    terms.sort(key=lambda term: -term[1])
    batch = range(apart if is_last else labels.output_feature)
    pixels = [d for d in range(len(dims)) if d not in (*batch, labels.output_feature)]
    groups = max(attrs.feature_group_count, attrs.batch_group_count)
    count = rhs[outputs] // groups
    places = row_major_strides(dims)
    # Of each: size, and strides in the input, in the kernel and in the result.
    products = [(dims[d], moves[d], 0, places[d]) for d in batch]
    if groups > 1:
        part = (
            rhs[features] * strides[labels.input_feature]
            if attrs.feature_group_count > 1
            else dims[labels.output_batch] * strides[labels.input_batch]
        )
        products.append((groups, part, count * kernel_strides[outputs], count * places[labels.output_feature]))
    image = Matrix(
        Walk.through((dims[d], moves[d]) for d in pixels),
        Walk.through((size, stride) for size, stride, _ in terms),
        tuple(stride for _, stride, _, _ in products),
        sum(-one.pad_low * stride for one, stride in zip(window, space, strict=True)),
    )
    kernel = Matrix(
        Walk.through([(count, kernel_strides[outputs])]),
        Walk.through((size, stride) for size, _, stride in terms),
        tuple(stride for _, _, stride, _ in products),
        first + sum((one.size - 1) * max(0, -across) for one, across in zip(window, kernel_space, strict=True)),
    )
    outer, rows = Walk.pair((dims[d], moves[d], spread[d]) for d in pixels) if spread else (image.outer, None)
    view = DotView(
        tuple(size for size, _, _, _ in products),
        math.prod(dims[d] for d in pixels),
        count,
        math.prod(size for size, _, _ in terms),
        replace(image, outer=outer),
        kernel,
        len(dims) - 1 if is_last else len(batch) + 1,
        Walk.through((size, stride) for size, _, _, stride in products),
        rows.stride if rows is not None else rhs[outputs] if is_last else math.prod(dims[d] for d in pixels),
        groups=groups,
        rows=rows,
    )
    return view if is_last else view.swapped()


def _strides_of_kernel(kernel: HloInstruction) -> tuple[tuple[int, ...], int]:
    """Strides of the kernel of a convolution, and where it begins in what it is a slice of."""
    if kernel.opcode != "slice":
        return row_major_strides(kernel.shape.dims), 0
    strides, ranges = row_major_strides(kernel.operand(0).shape.dims), kernel.attrs.slice
    first = sum(start * stride for (start, _, _), stride in zip(ranges, strides, strict=True))
    return tuple(step * stride for (_, _, step), stride in zip(ranges, strides, strict=True)), first
