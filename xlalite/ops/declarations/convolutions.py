"""Convolutions over images and volumes, and their derivatives with respect to image and filter.

All are one HLO convolution with other windows and labels, as are the depthwise ones: a filter `[space, in, multiplier]`
is one `[space, 1, in * multiplier]` for as many groups of features as there are channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, DType, int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dims, TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value_as_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.convolutions import Convolution
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type
from xlalite.ops.helpers.spatial import FORMATS, SpatialLayout, Steps, sizes_or_unknown, spatial_layout, steps_of

_TYPES = FLOATING_TYPES | {int32}


@dataclass(frozen=True, slots=True)
class _Family:
    """A convolution and its two derivatives.

    Attributes:
        forward: Type of the convolution, `(input, filter)`.
        to_input: Type of the derivative, `(input_sizes, filter, out_backprop)`.
        to_filter: Type of the derivative, `(input, filter_sizes, out_backprop)`.
        rank: Number of dimensions of the image, batch and channels included.
        depthwise: Whether each channel has filters of its own.
        explicit: Whether it may have padding that the attributes spell out.
        types: Element types.
    """

    forward: str
    to_input: str
    to_filter: str
    rank: int
    depthwise: bool
    explicit: bool
    types: frozenset[DType]

    @property
    def attrs(self) -> tuple[str, ...]:
        """Names of the attributes of all three."""
        optional = ("explicit_paddings",) if self.explicit else ()
        return ("strides", "padding", *optional, "data_format", "dilations")

    @property
    def defaults(self) -> dict[str, object]:
        """Values of the attributes that may be left out."""
        optional: dict[str, object] = {"explicit_paddings": ()} if self.explicit else {}
        return {**optional, "data_format": FORMATS[self.rank][0], "dilations": (1,) * self.rank}

    def layout(self, op: Operation) -> SpatialLayout:
        """The order of dimensions; the window must stand still in batch and channels."""
        layout = spatial_layout(op.get_attr("data_format"), self.rank)
        steps = steps_of(op, layout)
        if any(steps[i] != Steps(padding=steps[i].padding) for i in (0, layout.channel)):
            raise ShapeError("strides, dilations and paddings of batch and channels must be 1, 1 and 0")
        return layout

    def node(self, op_type: str, inputs: Sequence[Tensor], op: Operation) -> Tensor:
        """Another of the three with the attributes of `op`."""
        return node(op_type, inputs, {name: op.get_attr(name) for name in self.attrs})


def _output_shape(family: _Family, op: Operation, image: Dims, filters: Dims) -> TensorShape:
    layout = family.layout(op)
    steps = steps_of(op, layout)
    channels, inputs, outputs = image[layout.channel], filters[-2], filters[-1]
    _groups(family, channels, inputs, outputs)
    space = [steps[i].positions(image[i], k) for i, k in zip(layout.spatial, filters[:-2], strict=True)]
    if family.depthwise:
        many = channels if inputs is None else inputs
        outputs = None if many is None or outputs is None else many * outputs
    return TensorShape(layout.dims(image[0], space, outputs))


def _groups(family: _Family, channels: int | None, inputs: int | None, outputs: int | None) -> int:
    """Number of groups of features; 1 when it is not known."""
    if channels is None or inputs is None:
        return 1
    if family.depthwise:
        if channels != inputs:
            raise ShapeError(f"an image of {channels} channels does not fit a filter for {inputs}")
        return channels
    if inputs == 0 or channels == inputs:
        return 1
    groups = channels // inputs
    if channels % inputs or (outputs is not None and outputs % groups):
        raise ShapeError(
            f"an image of {channels} channels does not fit a filter from {inputs} to {outputs} channels; the filter's "
            f"must divide the image's, and so must the groups the {outputs}"
        )
    return groups


def _geometry(family: _Family, op: Operation, image: Sequence[int], filters: Sequence[int]) -> Convolution:
    image, filters = tuple(image), tuple(filters)
    if len(image) != family.rank or len(filters) != family.rank:
        raise ShapeError(f"image {image} and filter {filters} must have rank {family.rank}")
    layout = family.layout(op)
    steps = steps_of(op, layout)
    output = _output_shape(family, op, image, filters).known_dims()
    window = [steps[i].window(image[i], k) for i, k in zip(layout.spatial, filters[:-2], strict=True)]
    groups = _groups(family, image[layout.channel], filters[-2], filters[-1])
    if family.depthwise:
        filters = (*filters[:-2], 1, filters[-2] * filters[-1])
    filter_labels = "".join(str(i) for i in range(len(window))) + "io"
    return Convolution(layout.labels(), filter_labels, tuple(window), image, filters, output, groups)


def _declare_family(family: _Family) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        dtype = require_same_type(op.inputs)
        require_type(op.inputs[0], family.types)
        sizes = (sizes_or_unknown(tensor.shape, family.rank) for tensor in op.inputs)
        return [(dtype, _output_shape(family, op, *sizes))]

    def infer_backprop(position: int) -> Callable[[Operation], Sequence[OutputType]]:
        def infer(op: Operation) -> Sequence[OutputType]:
            sizes, others = op.inputs[position], [t for i, t in enumerate(op.inputs) if i != position]
            dtype = require_same_type(others)
            require_type(others[0], family.types)
            require_type(sizes, INTEGER_TYPES, op.spec.inputs[position])
            for tensor in others:
                tensor.shape.with_rank(family.rank)
            shapes = [tensor.shape for tensor in op.inputs[:2]]
            shapes[position] = constant_value_as_shape(sizes)
            image, filters = (sizes_or_unknown(shape, family.rank) for shape in shapes)
            if None not in (*image, *filters):
                _check_gradient(_output_shape(family, op, image, filters), op.inputs[2].shape)
            return [(dtype, TensorShape((image, filters)[position]))]

        return infer

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        image, filters = inputs
        at = _geometry(family, op, image.dims, filters.dims)
        return [at.forward(image, ctx.builder.reshape(filters, at.filters))]

    def lower_to_input(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        filters, grad = inputs
        at = _geometry(family, op, _sizes(ctx, op, "input_sizes"), filters.dims)
        _check_gradient(TensorShape(at.output), TensorShape(grad.dims))
        return [at.to_image(ctx.builder.reshape(filters, at.filters), grad)]

    def lower_to_filter(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        image, grad = inputs
        sizes = _sizes(ctx, op, "filter_sizes")
        at = _geometry(family, op, image.dims, sizes)
        _check_gradient(TensorShape(at.output), TensorShape(grad.dims))
        return [ctx.builder.reshape(at.to_filters(image, grad), sizes)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        image, filters = op.inputs
        return [
            family.node(family.to_input, [shape_tensor(image), filters, grad], op),
            family.node(family.to_filter, [image, shape_tensor(filters), grad], op),
        ]

    def gradient_to_input(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        _, filters, back = op.inputs
        return [
            None,
            family.node(family.to_filter, [grad, shape_tensor(filters), back], op),
            family.node(family.forward, [grad, filters], op),
        ]

    def gradient_to_filter(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        image, _, back = op.inputs
        return [
            family.node(family.to_input, [shape_tensor(image), grad, back], op),
            None,
            family.node(family.forward, [image, grad], op),
        ]

    declare(
        family.forward, ("input", "filter"), infer, lower, gradient, None, attrs=family.attrs, defaults=family.defaults
    )
    declare(
        family.to_input,
        ("input_sizes", "filter", "out_backprop"),
        infer_backprop(0),
        lower_to_input,
        gradient_to_input,
        None,
        attrs=family.attrs,
        defaults=family.defaults,
        constant_inputs=("input_sizes",),
    )
    declare(
        family.to_filter,
        ("input", "filter_sizes", "out_backprop"),
        infer_backprop(1),
        lower_to_filter,
        gradient_to_filter,
        None,
        attrs=family.attrs,
        defaults=family.defaults,
        constant_inputs=("filter_sizes",),
    )


def _sizes(ctx: LoweringContext, op: Operation, name: str) -> tuple[int, ...]:
    return tuple(int(size) for size in np.asarray(ctx.constant(op, name)).ravel())


def _check_gradient(expected: TensorShape, found: TensorShape) -> None:
    if not expected.is_compatible_with(found):
        raise ShapeError(f"out_backprop has shape {found}; expected {expected}")


_declare_family(_Family("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", 4, False, True, _TYPES))
_declare_family(_Family("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", 5, False, False, FLOATING_TYPES))
_declare_family(
    _Family(
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
        4,
        True,
        True,
        FLOATING_TYPES,
    )
)
