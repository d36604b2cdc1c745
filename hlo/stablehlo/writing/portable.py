"""Operations of StableHLO under names and attributes of the dialect vhlo: the way back of `bytecode/portable.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from xlalite.hlo.stablehlo.bytecode.attribute_names import ATTRIBUTE_NAMES
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, Operation
from xlalite.hlo.stablehlo.writing.exporter import Attributes
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

# Operations whose first version cannot say all.
_SECOND = frozenset({"all_gather", "all_reduce", "all_to_all", "gather", "scatter"})
# What stands for an attribute that is not there.
_DEFAULTS: Attributes = {
    "backend_config": "",
    "called_computations": (),
    "channel_id": 0,
    "channel_type": 0,
    "composite_attributes": {},
    "layout": (),
    "operand_layouts": (),
    "output_operand_aliases": (),
    "precision_config": (),
    "result_layouts": (),
    "use_global_device_ids": False,
}
_LISTS_OF_ATTRIBUTES = frozenset(key for key, value in _DEFAULTS.items() if value == ()) | {"arg_attrs", "res_attrs"}


def as_portable(operation: Operation) -> tuple[str, Attributes, Attributes]:
    """Name of an operation in vhlo, the attributes of its definition in their order, and all others."""
    if operation.name.startswith("chlo."):
        operation = _custom_call(operation)
    short = operation.name.partition(".")[2]
    found = dict(operation.attributes)
    if short in _PARTS:
        _PARTS[short](found)
    channel = found.pop("channel_handle", None)
    if isinstance(channel, dict):
        found |= {"channel_id": channel["handle"], "channel_type": channel["type"]}
    has_two = short in _SECOND or (short == "dot_general" and "accumulation_type" in found)
    name = f"vhlo.{short}_v{2 if has_two else 1}"
    keys = ATTRIBUTE_NAMES.get(name, ())
    known: Attributes = {key: _flat(key, found[key] if key in found else _DEFAULTS[key]) for key in keys}
    others = {
        key: value for key, value in found.items() if key not in keys and key not in ("channel_id", "channel_type")
    }
    return name, known, others


def _flat(key: str, value: Attribute) -> Attribute:
    """Integers of a list as one constant."""
    if not isinstance(value, tuple) or key in _LISTS_OF_ATTRIBUTES:
        return value
    dtype = DType.PRED if key == "window_reversal" else DType.S64
    return Dense(np.array(value, dtype.numpy).tobytes(), Shape.array(dtype, (len(value),)), 0)


def _custom_call(operation: Operation) -> Operation:
    """What CHLO has is a call by the name under which XLA knows it."""
    short = operation.name.partition(".")[2]
    fields: Attributes = {"mhlo.attributes": dict(operation.attributes), "mhlo.version": 1}
    call: Attributes = {"call_target_name": f"mhlo.{short}".replace("top_k", "topk"), "api_version": 1}
    return replace(operation, name="stablehlo.custom_call", attributes={**call, "has_side_effect": False, **fields})


def _taken(key: str) -> Callable[[Attributes], None]:
    """Puts the fields of a structure in its place."""

    def parts(found: Attributes) -> None:
        fields = found.pop(key)
        assert isinstance(fields, dict), "the exporter makes it"
        found.update(fields)

    return parts


def _dot_general(found: Attributes) -> None:
    _taken("dot_dimension_numbers")(found)
    if "algorithm" in found:
        _taken("algorithm")(found)


def _convolution(found: Attributes) -> None:
    numbers = found.pop("dimension_numbers")
    assert isinstance(numbers, dict), "the exporter makes it"
    lhs, kernel, output = re.split("_|->", str(numbers["dim_numbers"]))
    dims = ConvolutionDims(lhs, kernel, output)
    for place in ("input", "output"):
        found |= {f"{place}_{what}_dimension": getattr(dims, f"{place}_{what}") for what in ("batch", "feature")}
    for what in ("input_feature", "output_feature"):
        found[f"kernel_{what}_dimension"] = getattr(dims, f"kernel_{what}")
    for place in ("input", "kernel", "output"):
        found[f"{place}_spatial_dimensions"] = getattr(dims, f"{place}_spatial")


_PARTS: dict[str, Callable[[Attributes], None]] = {
    "dot_general": _dot_general,
    "gather": _taken("dimension_numbers"),
    "scatter": _taken("scatter_dimension_numbers"),
    "convolution": _convolution,
}
