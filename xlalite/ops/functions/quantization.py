"""Rounding to quantised numbers in floating point: what users reach as `xlalite.quantization`."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import as_dtype, float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import promote


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounded to `2^num_bits` numbers between `min` and `max`, one of which is 0."""
    attrs = {"min": float(min), "max": float(max), "num_bits": num_bits, "narrow_range": narrow_range}
    return node("FakeQuantWithMinMaxArgs", [convert_to_tensor(inputs)], attrs, name)


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """`gradients` where `inputs` are in the range, otherwise 0."""
    attrs = {"min": float(min), "max": float(max), "num_bits": num_bits, "narrow_range": narrow_range}
    return node("FakeQuantWithMinMaxArgsGradient", promote(gradients, inputs), attrs, name)


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """As `fake_quant_with_min_max_args`, with a range that can be trained."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return node("FakeQuantWithMinMaxVars", promote(inputs, min, max), attrs, name)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """The gradients for `inputs`, `min` and `max`."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return operation("FakeQuantWithMinMaxVarsGradient", promote(gradients, inputs, min, max), attrs, name).outputs


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with one range for each channel, the last dimension."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    return node("FakeQuantWithMinMaxVarsPerChannel", promote(inputs, min, max), attrs, name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """The gradients for `inputs`, `min` and `max`."""
    attrs = {"num_bits": num_bits, "narrow_range": narrow_range}
    operands = promote(gradients, inputs, min, max)
    return operation("FakeQuantWithMinMaxVarsPerChannelGradient", operands, attrs, name).outputs


def quantize_and_dequantize(
    input: Any,
    input_min: Any = 0.0,
    input_max: Any = 0.0,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Rounded to the numbers of an integer type that covers the range, which is given or that of the data."""
    attrs = _quantize_attrs(signed_input, range_given, narrow_range, axis)
    attrs = {**attrs, "num_bits": num_bits, "round_mode": round_mode}
    return node("QuantizeAndDequantizeV2", promote(input, input_min, input_max), attrs, name)


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """As `quantize_and_dequantize`, but nothing flows back to what lies outside the range."""
    attrs = _quantize_attrs(signed_input, range_given, narrow_range, axis)
    attrs = {**attrs, "num_bits": num_bits, "round_mode": round_mode}
    return node("QuantizeAndDequantizeV4", promote(input, input_min, input_max), attrs, name)


def quantize_and_dequantize_v3(
    input: Any,
    input_min: Any,
    input_max: Any,
    num_bits: Any,
    signed_input: bool = True,
    range_given: bool = True,
    narrow_range: bool = False,
    axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """As `quantize_and_dequantize`, with the number of bits as a tensor."""
    attrs = _quantize_attrs(signed_input, range_given, narrow_range, axis)
    operands = [*promote(input, input_min, input_max), convert_to_tensor(num_bits)]
    return node("QuantizeAndDequantizeV3", operands, attrs, name)


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,  # TensorFlow's name
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> tuple[Tensor, ...]:
    """Numbers as integers of a quantised type, and the range that these stand for.

    Args:
        input: Numbers, float32.
        min_range: The lower end of the range, a scalar, or with `axis` a vector along that dimension.
        max_range: The upper end.
        T: `qint8`, `quint8`, `qint16`, `quint16` or `qint32`.
        mode: How integers stand for numbers: MIN_COMBINED, MIN_FIRST or SCALED.
        round_mode: HALF_AWAY_FROM_ZERO or, in mode SCALED, HALF_TO_EVEN.
        name: Name of the operation.
        narrow_range: In mode SCALED, whether the least integer is not used.
        axis: The dimension with a range for each place.
        ensure_minimum_range: How far apart the ends are at least, relative to the larger of them and to 1.

    Returns:
        The integers, and the ends of the range.
    """
    attrs = {"T": as_dtype(T), "mode": mode, "round_mode": round_mode, "narrow_range": narrow_range}
    attrs = {**attrs, "axis": -1 if axis is None else axis, "ensure_minimum_range": float(ensure_minimum_range)}
    return operation("QuantizeV2", _as_float32(input, min_range, max_range), attrs, name).outputs


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = float32,
) -> Tensor:
    """The numbers, float32 or bfloat16, that integers of a quantised type stand for; the arguments of `quantize`."""
    attrs = {"mode": mode, "axis": -1 if axis is None else axis, "narrow_range": narrow_range, "dtype": as_dtype(dtype)}
    return node("Dequantize", [convert_to_tensor(input), *_as_float32(min_range, max_range)], attrs, name)


def _as_float32(*values: Any) -> list[Tensor]:
    return [convert_to_tensor(each, float32) for each in values]


def _quantize_attrs(signed: bool, given: bool, narrow: bool, axis: int | None) -> dict[str, Any]:
    whole = -1 if axis is None else axis
    return {"signed_input": signed, "range_given": given, "narrow_range": narrow, "axis": whole}
