"""Grey-scale dilation: the largest sum of an image and a window that moves over it, and where each came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dims, TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.helpers.declare import REAL_TYPES, declare
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type
from xlalite.ops.helpers.spatial import Steps, one_of_each, sizes_or_unknown, steps_along

_ATTRS = ("strides", "rates", "padding")


def _steps(op: Operation) -> list[Steps]:
    """How the window moves along height and width."""
    rates = one_of_each(op.get_attr("rates"), "rates", 4)
    strides = one_of_each(op.get_attr("strides"), "strides", 4)
    if any(values[i] != 1 for values in (rates, strides) for i in (0, 3)):
        raise ShapeError("strides and rates of batch and channels must be 1")
    along = steps_along(op, 4, strides)
    return [Steps(along[i].stride, rates[i], along[i].padding) for i in (1, 2)]


def _output(op: Operation, image: Dims, window: Dims) -> list[int | None]:
    if None not in (image[3], window[2]) and image[3] != window[2]:
        raise ShapeError(f"an image of {image[3]} channels does not fit a filter for {window[2]}")
    space = [step.positions(image[i + 1], window[i]) for i, step in enumerate(_steps(op))]
    return [image[0], *space, window[2] if image[3] is None else image[3]]


def _infer(op: Operation) -> Sequence[OutputType]:
    image, window = op.inputs[:2]
    dtype = require_same_type(op.inputs)
    require_type(image, REAL_TYPES)
    output = TensorShape(_output(op, sizes_or_unknown(image.shape, 4), sizes_or_unknown(window.shape, 3)))
    if op.type == "Dilation2D":
        return [(dtype, output)]
    output.assert_is_compatible_with(op.inputs[2].shape)
    return [(dtype, op.inputs[0 if op.type.endswith("Input") else 1].shape)]


class _Window:
    """The window over one batch of images."""

    def __init__(self, b: Builder, op: Operation, image: Handle, window: Handle) -> None:
        self._b, self._image, self._window = b, image, window
        self.sizes = [size or 0 for size in _output(op, image.dims, window.dims)]
        self._dims = [step.window(*each) for step, *each in zip(_steps(op), image.dims[1:3], window.dims, strict=False)]

    def places(self) -> Iterator[tuple[tuple[int, int], list[tuple[int, int, int]]]]:
        """Each element of the window, and how far in the padded image it starts and ends."""
        for i, j in np.ndindex(*self._window.dims[:2]):
            ranges = []
            for offset, dim, count in zip((i, j), self._dims, self.sizes[1:3], strict=True):
                start = offset * dim.rhs_dilate
                ranges.append((start, start + (count - 1) * dim.stride + 1, dim.stride))
            yield (i, j), ranges

    def best(self) -> tuple[Handle, Handle]:
        """The largest sums, and the number of the window's first element that gives each."""
        b = self._b
        lowest = b.constant(monoid_identity(MonoidKind.MAXIMUM, self._image.dtype), self._image.dtype)
        margins = [(0, 0, 0), *((dim.pad_low, dim.pad_high, 0) for dim in self._dims), (0, 0, 0)]
        padded = b.pad(self._image, lowest, margins)
        # Integers wrap, so that the lowest plus something would not stay the lowest.
        exists = b.pad(b.full(True, HloDType.PRED, self._image.dims), b.constant(False, HloDType.PRED), margins)
        largest = number = None
        for count, ((i, j), ranges) in enumerate(self.places()):
            starts, ends, strides = zip((0, padded.dims[0], 1), *ranges, (0, padded.dims[3], 1), strict=True)
            own = b.reshape(b.slice(self._window, [i, j, 0], [i + 1, j + 1, padded.dims[3]]), [padded.dims[3]])
            total = b.slice(padded, starts, ends, strides) + b.broadcast(own, self.sizes, [3])
            total = b.select(b.slice(exists, starts, ends, strides), total, b.broadcast(lowest, self.sizes))
            here = b.full(count, int32.hlo, self.sizes)
            if largest is None or number is None:
                largest, number = total, here
                continue
            stays = b.compare(largest, total, "GE")
            largest, number = b.op("maximum", (largest, total)), b.select(stays, number, here)
        assert largest is not None, "a window has elements"
        assert number is not None, "a window has elements"
        return largest, number

    def to_image(self, grad: Handle, number: Handle) -> Handle:
        """Gradients where the largest sums came from."""
        b, total = self._b, None
        padded = [
            size + dim.pad_low + dim.pad_high for size, dim in zip(self._image.dims[1:3], self._dims, strict=True)
        ]
        for count, (_, ranges) in enumerate(self.places()):
            own = self._chosen(grad, number, count)
            margins = [
                (start, size - end, stride - 1) for size, (start, end, stride) in zip(padded, ranges, strict=True)
            ]
            spread = b.pad(own, b.constant(0, own.dtype), [(0, 0, 0), *margins, (0, 0, 0)])
            total = spread if total is None else total + spread
        assert total is not None, "a window has elements"
        starts = [0, *(dim.pad_low for dim in self._dims), 0]
        return b.slice(total, starts, [start + size for start, size in zip(starts, self._image.dims, strict=True)])

    def to_window(self, grad: Handle, number: Handle) -> Handle:
        """The gradients of each element of the window, summed."""
        rows = [
            sum_axes(self._b, self._chosen(grad, number, count), [0, 1, 2]) for count, _ in enumerate(self.places())
        ]
        joined = self._b.concatenate([self._b.reshape(row, [1, row.dims[0]]) for row in rows], 0)
        return self._b.reshape(joined, self._window.dims)

    def _chosen(self, grad: Handle, number: Handle, count: int) -> Handle:
        chosen = self._b.compare(number, count, "EQ")
        return self._b.select(chosen, grad, self._b.full(0, grad.dtype, grad.dims))


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (image, window, *grads) = ctx.builder, inputs
    over = _Window(b, op, image, window)
    if 0 in (*window.dims, *over.sizes):
        sizes = {"Dilation2D": over.sizes, "Dilation2DBackpropFilter": window.dims}.get(op.type, image.dims)
        return [b.full(0, image.dtype, sizes)]
    largest, number = over.best()
    if not grads:
        return [largest]
    return [(over.to_image if op.type.endswith("Input") else over.to_window)(grads[0], number)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {name: op.get_attr(name) for name in _ATTRS}
    return [node(f"Dilation2DBackprop{which}", [*op.inputs, grad], attrs) for which in ("Input", "Filter")]


declare("Dilation2D", ("input", "filter"), _infer, _lower, _gradient, None, attrs=_ATTRS)
for _which in ("Input", "Filter"):
    _inputs = ("input", "filter", "out_backprop")
    declare(f"Dilation2DBackprop{_which}", _inputs, _infer, _lower, None, None, attrs=_ATTRS)
