"""Rounding to quantised numbers in floating point: what users reach as `xlalite.quantization`."""

from __future__ import annotations

from typing import Any

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


def _quantize_attrs(signed: bool, given: bool, narrow: bool, axis: int | None) -> dict[str, Any]:
    whole = -1 if axis is None else axis
    return {"signed_input": signed, "range_given": given, "narrow_range": narrow, "axis": whole}
