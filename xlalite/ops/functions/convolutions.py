"""Convolutions as users call them, under TensorFlow's names in `xlalite.nn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, expand_dims, squeeze
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import promote
from xlalite.ops.helpers.sizes import as_size_vector
from xlalite.ops.helpers.spatial import FORMATS

_FORMATS_1D = {"NWC": "NHWC", "NHWC": "NHWC", "NCW": "NCHW", "NCHW": "NCHW", None: "NHWC"}


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolution of `[batch, height, width, in]` with filters `[height, width, in, out]`.

    Args:
        input: Images.
        filter: Filters; `in` may be a divisor of the images' channels, for a convolution in groups.
        strides: One number, two, or one for each dimension.
        padding: `SAME`, `VALID` or pairs of sizes for each dimension.
        use_cudnn_on_gpu: Accepted for compatibility.
        data_format: `NHWC` or `NCHW`.
        dilations: As `strides`.
        name: Name of the operation.
        filters: Newer spelling of `filter`.
    """
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return node("Conv2D", promote(input, _either(filter, filters, "filter")), attrs, name)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to images of sizes `input_sizes`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return _backprop_input("Conv2DBackpropInput", input_sizes, _either(filter, filters), out_backprop, attrs, name)


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to filters of sizes `filter_sizes`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return _backprop_filter("Conv2DBackpropFilter", input, filter_sizes, out_backprop, attrs, name)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = "conv2d_transpose",
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv2d`: `[batch, h, w, in]` with filters `[height, width, out, in]` to `output_shape`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    images, kernel = _either(value, input, "value"), _either(filter, filters, "filter")
    return _backprop_input("Conv2DBackpropInput", output_shape, kernel, images, attrs, name)


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolution of `[batch, width, in]` with filters `[width, in, out]`; formats are `NWC` and `NCW`."""
    wide = _format_1d(data_format)
    axis = 1 if wide == "NHWC" else 2
    attrs = _attributes(4, wide, _one_row(stride), _row_padding(padding, axis), _one_row(dilations))
    images, kernel = promote(_either(value, input, "value"), filters)
    result = node("Conv2D", [expand_dims(images, axis), expand_dims(kernel, 0)], attrs, name)
    return squeeze(result, [axis])


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv1d`: `[batch, w, in]` with filters `[width, out, in]` to `output_shape`."""
    wide = _format_1d(data_format)
    axis = 1 if wide == "NHWC" else 2
    attrs = _attributes(4, wide, _one_row(strides), padding, _one_row(dilations))
    images, kernel = promote(input, filters)
    sizes = as_size_vector(output_shape)
    sizes = concat([sizes[:axis], [1], sizes[axis:]], 0)
    result = node("Conv2DBackpropInput", [sizes, expand_dims(kernel, 0), expand_dims(images, axis)], attrs, name)
    return squeeze(result, [axis])


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: str | None = None,
    data_format: str | None = "NDHWC",
    dilations: Any = 1,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolution of `[batch, depth, height, width, in]` with filters `[depth, height, width, in, out]`."""
    attrs = _attributes(5, data_format, strides, padding, dilations)
    return node("Conv3D", promote(input, _either(filter, filters, "filter")), attrs, name)


def conv3d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv3d`, with filters `[depth, height, width, out, in]`."""
    attrs = _attributes(5, data_format, strides, padding, dilations)
    volumes, kernel = _either(value, input, "value"), _either(filter, filters, "filter")
    return _backprop_input("Conv3DBackpropInputV2", output_shape, kernel, volumes, attrs, name or "conv3d_transpose")


def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to filters of sizes `filter_sizes`."""
    attrs = _attributes(5, data_format, strides, padding, dilations)
    return _backprop_filter("Conv3DBackpropFilterV2", input, filter_sizes, out_backprop, attrs, name)


conv3d_backprop_filter_v2 = conv3d_backprop_filter


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """Each channel of `[batch, height, width, in]` with its own filters `[height, width, in, multiplier]`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return node("DepthwiseConv2dNative", promote(input, filter), attrs, name)


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` with respect to images of sizes `input_sizes`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return _backprop_input("DepthwiseConv2dNativeBackpropInput", input_sizes, filter, out_backprop, attrs, name)


def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` with respect to filters of sizes `filter_sizes`."""
    attrs = _attributes(4, data_format, strides, padding, dilations)
    return _backprop_filter("DepthwiseConv2dNativeBackpropFilter", input, filter_sizes, out_backprop, attrs, name)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """As `depthwise_conv2d_native`, with two dilations in `rate`."""
    dilation = rate if dilations is None else dilations
    return depthwise_conv2d_native(input, filter, strides, padding, data_format, dilation, name or "depthwise")


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution, then one with filters `[1, 1, in * multiplier, out]`."""
    between = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, None, data_format, dilations)
    return conv2d(between, pointwise_filter, 1, "VALID", data_format=data_format, name=name or "separable_conv2d")


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """`conv2d` with holes: `rate` is the distance of neighbouring elements of the filters."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: Any, padding: Any, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, name=name, dilations=rate)


def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolution over one, two or three spatial dimensions, as many as the input has beside batch and channels."""
    kernel = convert_to_tensor(_either(filter, filters, "filter"))
    dilation = dilation_rate if dilations is None else dilations
    rank = kernel.shape.rank
    match rank:
        case 3:
            return conv1d(input, kernel, strides, padding, data_format=data_format, name=name, dilations=dilation)
        case 4:
            return conv2d(input, kernel, strides, padding, True, data_format, dilation, name)
        case 5:
            return conv3d(input, kernel, strides, padding, data_format, dilation, name)
    raise ShapeError(f"convolution: a filter of shape {kernel.shape} must have rank 3, 4 or 5")


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `convolution`, over as many dimensions."""
    kernel = convert_to_tensor(filters)
    match kernel.shape.rank:
        case 3:
            order = data_format or "NWC"
            return conv1d_transpose(input, kernel, output_shape, strides, padding, order, dilations, name)
        case 4:
            return conv2d_transpose(
                input, kernel, output_shape, strides, padding, data_format, name, dilations=dilations
            )
        case 5:
            return conv3d_transpose(
                input, kernel, output_shape, strides, padding, data_format, name, dilations=dilations
            )
    raise ShapeError(f"conv_transpose: a filter of shape {kernel.shape} must have rank 3, 4 or 5")


def _either(value: Any, other: Any, what: str = "filter") -> Any:
    if (value is None) == (other is None):
        raise GraphError(f"exactly one spelling of {what} is needed")
    return other if value is None else value


def _backprop_input(
    op_type: str, sizes: Any, filters: Any, grad: Any, attrs: dict[str, Any], name: str | None
) -> Tensor:
    kernel, back = promote(filters, grad)
    return node(op_type, [as_size_vector(sizes), kernel, back], attrs, name)


def _backprop_filter(
    op_type: str, image: Any, sizes: Any, grad: Any, attrs: dict[str, Any], name: str | None
) -> Tensor:
    images, back = promote(image, grad)
    return node(op_type, [images, as_size_vector(sizes), back], attrs, name)


def _attributes(rank: int, data_format: str | None, strides: Any, padding: Any, dilations: Any) -> dict[str, Any]:
    """The attributes of convolutions in full, from what users may leave out."""
    order = data_format or FORMATS[rank][0]
    kind, explicit = padding_and_sizes(padding)
    attrs: dict[str, Any] = {
        "strides": for_each_dimension(strides, rank, order, "strides"),
        "padding": kind,
        "data_format": order,
        "dilations": for_each_dimension(dilations, rank, order, "dilations"),
    }
    return {**attrs, "explicit_paddings": explicit} if rank == 4 else attrs


def padding_and_sizes(padding: Any) -> tuple[Any, tuple[int, ...]]:
    """What users pass as padding: its name, and the sizes that they spell out."""
    if isinstance(padding, str) or padding is None:
        return padding, ()
    return "EXPLICIT", tuple(int(size) for pair in padding for size in pair)


def for_each_dimension(value: Any, rank: int, data_format: str, what: str) -> tuple[int, ...]:
    """One number for each dimension: 1 in batch and channels where only those of space are given.

    Raises:
        ShapeError: neither one number, nor one for each dimension, spatial or not.
    """
    values = [1] if value is None else [value] if isinstance(value, int) else [int(each) for each in value]
    if len(values) == rank:
        return tuple(values)
    if len(values) not in (1, rank - 2):
        raise ShapeError(f"{what} are {values}; expected 1, {rank - 2} or {rank} numbers")
    spatial = values * (rank - 2) if len(values) == 1 else values
    return (1, 1, *spatial) if data_format.startswith("NC") else (1, *spatial, 1)


def _format_1d(data_format: str | None) -> str:
    if data_format not in _FORMATS_1D:
        raise ShapeError(f"data_format {data_format!r} is not one of NWC, NCW")
    return _FORMATS_1D[data_format]


def _one_row(value: Any) -> Sequence[int]:
    """A step along the width as one for images of a single row; one for each dimension loses batch and channels."""
    values = [1] if value is None else [value] if isinstance(value, int) else [int(each) for each in value]
    return (1, values[0] if len(values) == 1 else next((each for each in values if each != 1), 1))


def _row_padding(padding: Any, axis: int) -> Any:
    return padding if isinstance(padding, str) or padding is None else [*padding[:axis], [0, 0], *padding[axis:]]
