"""Pooling as users call it, under TensorFlow's names in `xlalite.nn`."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import as_dtype, int64
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import expand_dims, squeeze
from xlalite.ops.functions.convolutions import for_each_dimension, padding_and_sizes
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.spatial import FORMATS

_CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW")


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: str | None = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The average below each position of a window over `[batch, height, width, channels]`; padding does not count."""
    return _pool("AvgPool", _image(value, input), ksize, strides, padding, data_format, name)


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The largest value below each position of a window over `[batch, height, width, channels]`."""
    return _pool("MaxPool", _image(value, input), ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """As `avg_pool`, over `[batch, width, channels]`."""
    return _pool_rows("AvgPool", input, ksize, strides, padding, data_format, name)


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """As `max_pool`, over `[batch, width, channels]`."""
    return _pool_rows("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """As `avg_pool`."""
    return _pool("AvgPool", input, ksize, strides, padding, data_format, name)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """As `max_pool`."""
    return _pool("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NDHWC", name: str | None = None
) -> Tensor:
    """As `avg_pool`, over `[batch, depth, height, width, channels]`."""
    return _pool("AvgPool3D", input, ksize, strides, padding, data_format, name)


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = "NDHWC", name: str | None = None
) -> Tensor:
    """As `max_pool`, over `[batch, depth, height, width, channels]`."""
    return _pool("MaxPool3D", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """`avg_pool1d`, `avg_pool2d` or `avg_pool3d`, by the rank of the input."""
    return _pool_of_any_rank("AVG", input, ksize, strides, padding, data_format, name)


def max_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """`max_pool1d`, `max_pool2d` or `max_pool3d`, by the rank of the input."""
    return _pool_of_any_rank("MAX", input, ksize, strides, padding, data_format, name)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling of type `AVG` or `MAX` over one, two or three spatial dimensions.

    Raises:
        GraphError: the type is another one, or the window has holes.
    """
    rate = dilation_rate if dilations is None else dilations
    if rate is not None and any(each != 1 for each in ([rate] if isinstance(rate, int) else rate)):
        raise GraphError("pool: windows with holes (dilation_rate) are not supported")
    return _pool_of_any_rank(pooling_type, input, window_shape, strides, padding, data_format, name)


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool`, and `(y * width + x) * channels + channel` of each largest element."""
    if data_format not in (None, "NHWC"):
        raise GraphError(f"max_pool_with_argmax: data_format must be NHWC, found {data_format!r}")
    attrs = {
        "ksize": for_each_dimension(ksize, 4, "NHWC", "ksize"),
        "strides": for_each_dimension(strides, 4, "NHWC", "strides"),
        "padding": padding,
        "Targmax": as_dtype(Targmax or output_dtype or int64),
        "include_batch_in_index": include_batch_in_index,
    }
    largest, places = operation("MaxPoolWithArgmax", [convert_to_tensor(input)], attrs, name).outputs
    return largest, places


def _image(value: Any, other: Any) -> Any:
    if (value is None) == (other is None):
        raise GraphError("exactly one spelling of value is needed")
    return other if value is None else value


def _pool(
    op_type: str, x: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: str | None
) -> Tensor:
    rank = 5 if op_type.endswith("3D") else 4
    order = data_format or FORMATS[rank][0]
    kind, explicit = padding_and_sizes(padding)
    attrs: dict[str, Any] = {
        "ksize": for_each_dimension(ksize, rank, order, "ksize"),
        "strides": for_each_dimension(strides, rank, order, "strides"),
        "padding": kind,
        "data_format": order,
    }
    if op_type == "MaxPool" or explicit:
        attrs["explicit_paddings"] = explicit
    return node(op_type, [convert_to_tensor(x)], attrs, name)


def _pool_rows(
    op_type: str, x: Any, ksize: Any, strides: Any, padding: str, data_format: str | None, name: str | None
) -> Tensor:
    first = data_format in _CHANNELS_FIRST
    axis = 2 if first else 1
    window, step = ((1, _along_row(each, 1 + first)) for each in (ksize, strides))
    wide = expand_dims(convert_to_tensor(x), axis)
    return squeeze(_pool(op_type, wide, window, step, padding, "NCHW" if first else "NHWC", name), [axis])


def _along_row(value: Any, axis: int) -> int:
    values = [1] if value is None else [value] if isinstance(value, int) else [int(each) for each in value]
    return values[axis] if len(values) == 3 else values[0]


def _pool_of_any_rank(
    kind: str, x: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: str | None
) -> Tensor:
    types = {"AVG": "AvgPool", "MAX": "MaxPool"}
    if kind not in types:
        raise GraphError(f"pooling_type {kind!r} is not one of AVG, MAX")
    tensor = convert_to_tensor(x)
    match tensor.shape.rank:
        case 3:
            return _pool_rows(types[kind], tensor, ksize, strides, padding, data_format, name)
        case 4:
            return _pool(types[kind], tensor, ksize, strides, padding, data_format, name)
        case 5:
            return _pool(f"{types[kind]}3D", tensor, ksize, strides, padding, data_format, name)
    raise ShapeError(f"pooling: an input of shape {tensor.shape} must have rank 3, 4 or 5")
