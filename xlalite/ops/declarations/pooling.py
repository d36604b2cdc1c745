"""Average and largest values below a window, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, int64
from xlalite.framework.graph.op_spec import GradientFunction, OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.indexing import gather_slices, scatter_slices
from xlalite.hlo.building.pooling import (
    averages_to_array,
    largest_to_array,
    window_averages,
    window_counts,
    window_largest,
    window_largest_with,
)
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.ops.helpers.declare import REAL_TYPES, declare, declare_outputs
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output, shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type
from xlalite.ops.helpers.spatial import FORMATS, one_of_each, spatial_layout, steps_along

_ATTRS = ("ksize", "strides", "padding", "data_format")
_MAX_ATTRS = (*_ATTRS[:3], "explicit_paddings", "data_format")


def _defaults(rank: int, attrs: Sequence[str]) -> dict[str, object]:
    """Values of the attributes that may be left out."""
    return {
        name: value for name, value in (("explicit_paddings", ()), ("data_format", FORMATS[rank][0])) if name in attrs
    }


def _attributes_of(op: Operation) -> dict[str, object]:
    return {name: op.get_attr(name) for name in op.spec.attrs}


def _numbers(op: Operation, name: str, ctx: LoweringContext | None = None) -> Sequence[int] | None:
    """The window's sizes or strides: an attribute, or an input, whose value may not be known yet."""
    if name in op.spec.attrs:
        found: Sequence[int] = op.get_attr(name)
        return found
    position = op.spec.inputs.index(name)
    value = constant_value(op.inputs[position]) if ctx is None else ctx.constant(op, name)
    return None if value is None else [int(each) for each in value]


def _pooled_shape(op: Operation, shape: TensorShape, rank: int) -> TensorShape:
    layout = spatial_layout(op.get_attr("data_format"), rank)
    ksize, strides = _numbers(op, "ksize"), _numbers(op, "strides")
    if ksize is None or strides is None:
        return unknown_shape(rank)
    windows = one_of_each(ksize, "ksize", layout.rank)
    steps = steps_along(op, rank, strides)
    dims = shape.with_rank(rank).dims or (None,) * rank
    return TensorShape([step.positions(*each) for step, *each in zip(steps, dims, windows, strict=True)])


def _window(op: Operation, dims: Sequence[int], ctx: LoweringContext | None = None) -> tuple[WindowDimension, ...]:
    ksize, strides = _numbers(op, "ksize", ctx), _numbers(op, "strides", ctx)
    assert ksize is not None, "known when the operation is lowered"
    assert strides is not None, "known when the operation is lowered"
    steps = steps_along(op, len(dims), strides)
    return tuple(step.window(*each) for step, *each in zip(steps, dims, ksize, strict=True))


def _check_gradient(found: TensorShape, expected: TensorShape, what: str = "grad") -> None:
    if not found.is_compatible_with(expected):
        raise ShapeError(f"{what} has shape {found}; expected {expected}")


# Averages count only elements of the array, not of the padding.


def _declare_average(name: str, rank: int) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], FLOATING_TYPES)
        return [(op.inputs[0].dtype, _pooled_shape(op, op.inputs[0].shape, rank))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        (x,) = inputs
        window = _window(op, x.dims)
        return [window_averages(x, window, window_counts(window, x.dims))]

    def infer_grad(op: Operation) -> Sequence[OutputType]:
        sizes, grad = op.inputs
        require_type(sizes, INTEGER_TYPES, "orig_input_shape")
        require_type(grad, FLOATING_TYPES, "grad")
        shape = constant_value_as_shape(sizes).with_rank(rank)
        _check_gradient(grad.shape, _pooled_shape(op, shape, rank))
        return [(grad.dtype, shape)]

    def lower_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        (grad,) = inputs
        dims = [int(size) for size in ctx.constant(op, "orig_input_shape")]
        window = _window(op, dims)
        _check_gradient(TensorShape(grad.dims), TensorShape(Window(window).output_sizes(dims)))
        return [averages_to_array(grad, window, window_counts(window, dims), dims)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        return [node(f"{name}Grad", [shape_tensor(op.inputs[0]), grad], _attributes_of(op))]

    def gradient_of_grad(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        return [None, node(name, [grad], _attributes_of(op))]

    declare(name, ("value",), infer, lower, gradient, None, attrs=_ATTRS, defaults=_defaults(rank, _ATTRS))
    declare(
        f"{name}Grad",
        ("orig_input_shape", "grad"),
        infer_grad,
        lower_grad,
        gradient_of_grad,
        None,
        attrs=_ATTRS,
        defaults=_defaults(rank, _ATTRS),
        constant_inputs=("orig_input_shape",),
    )


_declare_average("AvgPool", 4)
_declare_average("AvgPool3D", 5)


# Largest values. A gradient goes to the first of the largest elements of a window.


def _of_largest(
    b: Builder, x: Handle, window: Sequence[WindowDimension], include_batch: bool, *others: Handle
) -> list[Handle]:
    """For each window its largest element, where that lies in its example (or in all), and what `others` have there."""
    sizes = x.dims if include_batch else (1, *x.dims[1:])
    numbers = b.reshape(b.iota(int64.hlo, [math.prod(sizes)], 0), sizes)
    return window_largest_with(x, b.broadcast_in_dim(numbers, x.dims, range(len(x.dims))), window, *others)


def _infer_largest(rank: int) -> Callable[[Operation], Sequence[OutputType]]:
    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], REAL_TYPES)
        return [(op.inputs[0].dtype, _pooled_shape(op, op.inputs[0].shape, rank))]

    return infer


def _largest_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [window_largest(inputs[0], _window(op, inputs[0].dims, ctx))]


def _infer_largest_grad(rank: int, of_gradient: bool) -> Callable[[Operation], Sequence[OutputType]]:
    """Of the gradient for the image, or of the gradient of that for the gradient that came in."""

    def infer(op: Operation) -> Sequence[OutputType]:
        image, pooled, grad = op.inputs[:3]
        dtype = require_same_type(op.inputs[:3])
        require_type(image, REAL_TYPES)
        shape = pooled.shape.merge_with(_pooled_shape(op, image.shape, rank))
        image_shape = image.shape.with_rank(rank)
        _check_gradient(grad.shape, image_shape if of_gradient else shape)
        return [(dtype, shape if of_gradient else image_shape)]

    return infer


def _largest_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    image, _, grad = inputs
    window = _window(op, image.dims, ctx)
    _check_gradient(TensorShape(grad.dims), TensorShape(Window(window).output_sizes(image.dims)))
    return [largest_to_array(image, grad, window)]


def _largest_grad_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (image, _, grad) = ctx.builder, inputs
    _check_gradient(TensorShape(grad.dims), TensorShape(image.dims))
    return [_of_largest(b, image, _window(op, image.dims, ctx), False, grad)[2]]


def _declare_largest(
    name: str, grad_name: str, grad_grad_name: str, rank: int, attrs: tuple[str, ...], sizes: tuple[str, ...] = ()
) -> None:
    def step(op_type: str, op: Operation, grad: Tensor) -> Tensor:
        pooled = op.outputs[0] if op.type == name else op.inputs[1]
        return node(op_type, [op.inputs[0], pooled, grad, *op.inputs[-2:][: len(sizes)]], _attributes_of(op))

    def back_and_forth(op_type: str) -> OneOutputGradient:
        return lambda op, grad: [
            node("ZerosLike", [op.inputs[0]]),
            node("ZerosLike", [op.inputs[1]]),
            step(op_type, op, grad),
            *(None for _ in sizes),
        ]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        return [step(grad_name, op, grad), *(None for _ in sizes)]

    defaults = _defaults(rank, attrs)
    three = ("orig_input", "orig_output", "grad", *sizes)
    declare(
        name,
        ("input", *sizes),
        _infer_largest(rank),
        _largest_lower,
        gradient,
        None,
        attrs=attrs,
        defaults=defaults,
        constant_inputs=sizes,
    )
    for own, other, of_gradient, lower in (
        (grad_name, grad_grad_name, False, _largest_grad_lower),
        (grad_grad_name, grad_name, True, _largest_grad_grad_lower),
    ):
        infer, onward = _infer_largest_grad(rank, of_gradient), back_and_forth(other)
        declare(own, three, infer, lower, onward, None, attrs=attrs, defaults=defaults, constant_inputs=sizes)


_declare_largest("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad", 4, _MAX_ATTRS)
_declare_largest("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", 5, _ATTRS)
_declare_largest("MaxPoolV2", "MaxPoolGradV2", "MaxPoolGradGradV2", 4, _ATTRS[2:], _ATTRS[:2])


# MaxPoolWithArgmax(input): also where in its example (or among all) each largest element lies, channels last.

_ARG_ATTRS = ("ksize", "strides", "padding", "Targmax", "include_batch_in_index")
_ARG_DEFAULTS = {"Targmax": int64, "include_batch_in_index": False}


def _arg_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], REAL_TYPES)
    shape = _arg_shape(op)
    return [(op.inputs[0].dtype, shape), (op.get_attr("Targmax"), shape)]


def _arg_shape(op: Operation) -> TensorShape:
    steps = steps_along(op, 4, op.get_attr("strides"))
    dims = op.inputs[0].shape.with_rank(4).dims or (None,) * 4
    windows = one_of_each(op.get_attr("ksize"), "ksize", 4)
    return TensorShape([step.positions(*each) for step, *each in zip(steps, dims, windows, strict=True)])


def _arg_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    largest, place = _of_largest(b, x, _window(op, x.dims), op.get_attr("include_batch_in_index"))
    return [largest, b.convert(place, op.outputs[1].dtype.hlo)]


def _arg_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    if grads[0] is None:
        return [None]
    return [node("MaxPoolGradWithArgmax", [op.inputs[0], grads[0], op.outputs[1]], _attributes_of(op))]


def _arg_grad_infer(op: Operation) -> Sequence[OutputType]:
    image, grad, argmax = op.inputs
    dtype = require_same_type([image, grad])
    require_type(argmax, INTEGER_TYPES, "argmax")
    _check_gradient(argmax.shape, _arg_shape(op), "argmax")
    _check_gradient(grad.shape, _arg_shape(op))
    return [(dtype, image.shape.with_rank(4))]


def _arg_grad_grad_infer(op: Operation) -> Sequence[OutputType]:
    image, grad, argmax = op.inputs
    dtype = require_same_type([image, grad])
    require_type(argmax, INTEGER_TYPES, "argmax")
    _check_gradient(argmax.shape, _arg_shape(op), "argmax")
    _check_gradient(grad.shape, image.shape)
    return [(dtype, _arg_shape(op))]


def _places(b: Builder, op: Operation, argmax: Handle, dims: Sequence[int]) -> Handle:
    """Where in all of the flat image each largest element lies, as `[n, 1]`."""
    places = b.convert(argmax, int64.hlo)
    if not op.get_attr("include_batch_in_index"):
        places = places + b.iota(int64.hlo, argmax.dims, 0) * math.prod(dims[1:])
    return b.reshape(places, [argmax.shape.element_count, 1])


def _arg_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (image, grad, argmax) = ctx.builder, inputs
    zeros = b.full(0, grad.dtype, [math.prod(image.dims)])
    flat = b.reshape(grad, [grad.shape.element_count])
    return [b.reshape(scatter_slices(b, zeros, _places(b, op, argmax, image.dims), flat, "add"), image.dims)]


def _arg_grad_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (image, grad, argmax) = ctx.builder, inputs
    if 0 in image.dims:
        return [b.full(0, grad.dtype, argmax.dims)]
    flat = b.reshape(grad, [math.prod(image.dims)])
    return [b.reshape(gather_slices(b, flat, _places(b, op, argmax, image.dims)), argmax.dims)]


def _arg_back_and_forth(op_type: str) -> GradientFunction:
    return of_one_output(
        lambda op, grad: [
            node("ZerosLike", [op.inputs[0]]),
            node(op_type, [op.inputs[0], grad, op.inputs[2]], _attributes_of(op)),
            None,
        ]
    )


declare_outputs(
    "MaxPoolWithArgmax",
    ("input",),
    _arg_infer,
    _arg_lower,
    _arg_gradient,
    None,
    attrs=_ARG_ATTRS,
    defaults=_ARG_DEFAULTS,
)
for _name, _other, _infer, _lower in (
    ("MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax", _arg_grad_infer, _arg_grad_lower),
    ("MaxPoolGradGradWithArgmax", "MaxPoolGradWithArgmax", _arg_grad_grad_infer, _arg_grad_grad_lower),
):
    declare_outputs(
        _name,
        ("input", "grad", "argmax"),
        _infer,
        _lower,
        _arg_back_and_forth(_other),
        None,
        attrs=_ARG_ATTRS,
        defaults=_ARG_DEFAULTS,
    )
