"""Convolutions by windows of three elements with fewer multiplications, as Winograd found.

Along a dimension, m results see m + 2 elements of the input and take as many multiplications instead of 3 m:
y = A' [(G g) * (B' d)] (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, section 4). Over all
dimensions, features and tiles the multiplications are a batch of matrix products.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.rewriting.expander import OpExpander

Matrix = tuple[tuple[float, ...], ...]

_FLOPS_OF_MOVING = 200
"""Arithmetic of a product that takes as long as making an element of what is multiplied, or taking one apart.

On two cores with AVX-512, 8 images of 28x28 by 128 features take 2.1 ms in tiles of 4, 3.6 in tiles of 2 and 4.0 as
they are, 14x14 by 256 take 3.5, 3.1 and 4.1, and 56x56 by 64, which stay as they are, 4.7, 6.9 and 4.0.
"""


@dataclass(frozen=True, slots=True)
class _Tile:
    """How so many neighbouring results are computed.

    Attributes:
        side: Number of results.
        of_input: B'.
        of_kernel: G.
        of_result: A'.
    """

    side: int
    of_input: Matrix
    of_kernel: Matrix
    of_result: Matrix

    @property
    def products(self) -> int:
        """Multiplications."""
        return len(self.of_input)


_TILES = (
    _Tile(
        2,
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
    _Tile(
        4,
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A convolution in tiles, and its price.

    Attributes:
        tile: Of each dimension.
        tiles: How many along each dimension.
        flops: Arithmetic of the products.
        moved: Elements that are made for the products, or taken out of them.
    """

    tile: _Tile
    tiles: tuple[int, ...]
    flops: int
    moved: int

    @property
    def cost(self) -> int:
        """In arithmetic of products."""
        return self.flops + _FLOPS_OF_MOVING * self.moved


@dataclass(frozen=True, slots=True)
class ConvolutionWinograd(OpExpander):
    """convolution -> pad, dot and sums around it, for windows of three real numbers in each dimension, one apart.

    Only where it takes less time, and only when asked, since results are less exact: of normally distributed numbers
    the largest error is up to twice the usual one with tiles of 2, and 15 to 35 times that with tiles of 4. An infinity
    or NaN spreads over its tile.

    Attributes:
        side: Results of a tile along a dimension at most, 2 or 4.
    """

    name: ClassVar[str] = "convolution-winograd"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})

    side: int = 4

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether it is worth while."""
        return _fits(instruction) and self._plan(instruction).cost < _direct_flops(instruction)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the tiles, the products, and the result."""
        attrs: ConvolutionAttrs = instruction.attrs
        labels, window = attrs.dim_labels, attrs.window.dimensions
        plan, rank = self._plan(instruction), len(window)
        lhs, rhs = operands
        image = builder.transpose(lhs, (labels.input_batch, *labels.input_spatial, labels.input_feature))
        kernel = builder.transpose(
            rhs, (*labels.kernel_spatial, labels.kernel_input_feature, labels.kernel_output_feature)
        )
        turned = [number for number, one in enumerate(window) if one.reversal]
        kernel = builder.reverse(kernel, turned) if turned else kernel
        image = builder.pad(
            image, builder.constant(0, image.dtype), [(0, 0, 0), *_padding(image, window, plan), (0, 0, 0)]
        )
        # The last dimension first, so that those of products stand in the order of the spatial ones.
        for number in reversed(range(rank)):
            done = rank - 1 - number
            kernel = _multiplied(builder, kernel, done + number, 1, 1, plan.tile.of_kernel)
            image = _multiplied(
                builder, image, done + 1 + number, plan.tile.side, plan.tiles[number], plan.tile.of_input
            )
        products, (batch, *_, inputs), outputs = image.dims[:rank], image.dims[rank:], kernel.dims[-1]
        count = math.prod(products)
        found = builder.op(
            "dot",
            (
                builder.reshape(image, (count, batch * math.prod(plan.tiles), inputs)),
                builder.reshape(kernel, (count, inputs, outputs)),
            ),
            DotAttrs((0,), (2,), (0,), (1,), operand_precision=attrs.operand_precision),
        )
        found = builder.reshape(found, (*products, batch, *plan.tiles, outputs))
        for _ in range(rank):
            found = _joined(builder, found, rank, plan.tile.of_result)
        sizes = [instruction.shape.dims[dim] for dim in labels.output_spatial]
        found = builder.slice(found, (0,) * found.shape.rank, (batch, *sizes, outputs))
        order = [0] * found.shape.rank
        for place, dim in enumerate((labels.output_batch, *labels.output_spatial, labels.output_feature)):
            order[dim] = place
        return builder.transpose(found, order)

    def run(self, module: HloModule) -> bool:
        """Expands what is worth while, and says of the others of the form why it is not."""
        for instruction in module.instructions():
            if instruction.opcode == "convolution" and _fits(instruction) and not self.may_expand(instruction):
                reason = "more is moved than multiplications are saved"
                module.record(self.name, (instruction.name,), "not expanded", reason, self._figures(instruction))
        return OpExpander.run(self, module)

    def _replace(self, instruction: HloInstruction, module: HloModule) -> None:
        figures = self._figures(instruction)
        module.record(self.name, (instruction.name,), "expanded", "fewer multiplications", figures)
        OpExpander._replace(self, instruction, module)

    def _figures(self, convolution: HloInstruction) -> dict[str, int | float | str]:
        plan = self._plan(convolution)
        return {
            "tile": plan.tile.side,
            "flops": plan.flops,
            "flops_before": _direct_flops(convolution),
            "elements_moved": plan.moved,
        }

    def _plan(self, convolution: HloInstruction) -> _Plan:
        """The cheapest one."""
        return min((_plan(convolution, tile) for tile in _TILES if tile.side <= self.side), key=lambda plan: plan.cost)


def _fits(convolution: HloInstruction) -> bool:
    attrs: ConvolutionAttrs = convolution.attrs
    types = {*(operand.shape.dtype for operand in convolution.operands), convolution.shape.dtype}
    return (
        types in ({DType.F32}, {DType.F64})
        and convolution.shape.element_count > 0
        and attrs.feature_group_count == attrs.batch_group_count == 1
        and len(attrs.window.dimensions) > 0
        and all(
            one.size == 3 and one.stride == one.lhs_dilate == one.rhs_dilate == 1 for one in attrs.window.dimensions
        )
    )


def _direct_flops(convolution: HloInstruction) -> int:
    attrs: ConvolutionAttrs = convolution.attrs
    labels, kernel = attrs.dim_labels, convolution.operand(1).shape
    return 2 * convolution.shape.element_count * kernel.element_count // kernel.dims[labels.kernel_output_feature]


def _plan(convolution: HloInstruction, tile: _Tile) -> _Plan:
    labels, dims, kernel = convolution.attrs.dim_labels, convolution.shape.dims, convolution.operand(1).shape.dims
    inputs, outputs = kernel[labels.kernel_input_feature], kernel[labels.kernel_output_feature]
    tiles = tuple(-(-dims[dim] // tile.side) for dim in labels.output_spatial)
    products, count = tile.products ** len(tiles), dims[labels.output_batch] * math.prod(tiles)
    moved = products * (count * (inputs + outputs) + inputs * outputs)
    if max(labels.input_feature, labels.output_feature) < len(dims) - 1:
        moved += convolution.operand(0).shape.element_count + convolution.shape.element_count
    return _Plan(tile, tiles, 2 * products * count * inputs * outputs, moved)


def _padding(image: Handle, window: Sequence[WindowDimension], plan: _Plan) -> list[tuple[int, int, int]]:
    """What brings an image to whole tiles."""
    wanted = (count * plan.tile.side + 2 for count in plan.tiles)
    sizes = zip(wanted, image.dims[1:], window, strict=False)
    return [(one.pad_low, size - found - one.pad_low, 0) for size, found, one in sizes]


def _multiplied(builder: Builder, array: Handle, axis: int, step: int, count: int, rows: Matrix) -> Handle:
    """Products of a matrix with tiles along an axis, which begin so far apart; a new first dimension has the rows."""
    parts = []
    for start in range(len(rows[0])):
        starts, limits, steps = [0] * array.shape.rank, [*array.dims], [1] * array.shape.rank
        starts[axis], limits[axis], steps[axis] = start, start + step * (count - 1) + 1, step
        parts.append(builder.slice(array, starts, limits, steps))
    found = [_sum(parts, row) for row in rows]
    return builder.concatenate([builder.reshape(one, (1, *one.dims)) for one in found], 0)


def _joined(builder: Builder, array: Handle, axis: int, rows: Matrix) -> Handle:
    """Products of a matrix with the first dimension, the rows of which are neighbours along an axis."""
    parts = []
    for number in range(array.dims[0]):
        limits = (number + 1, *array.dims[1:])
        part = builder.slice(array, (number, *(0,) * (array.shape.rank - 1)), limits)
        parts.append(builder.reshape(part, array.dims[1:]))
    dims = parts[0].dims
    found = [builder.reshape(_sum(parts, row), (*dims[: axis + 1], 1, *dims[axis + 1 :])) for row in rows]
    joined = builder.concatenate(found, axis + 1)
    return builder.reshape(joined, (*dims[:axis], dims[axis] * len(rows), *dims[axis + 1 :]))


def _sum(parts: Sequence[Handle], factors: Sequence[float]) -> Handle:
    """The sum of arrays by factors, some of which are not 0."""
    terms = [part if factor == 1 else part * factor for part, factor in zip(parts, factors, strict=True) if factor]
    return reduce(operator.add, terms)
