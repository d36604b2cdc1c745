"""Operations of portable artifacts (dialect vhlo) under the names and attributes of StableHLO's generic spelling.

The dialect has the same operations with a version behind the name; structures of attributes lie flat in it, and what
is absent stands there as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.values import (
    ABSENT,
    DOT_DIMENSIONS,
    GATHER_DIMENSIONS,
    SCATTER_DIMENSIONS,
    convolution_dims,
    dot_algorithm,
)
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, Symbol

Attributes: TypeAlias = dict[str, Attribute]
_DIALECT = "vhlo."
_FUNCTIONS = ("func", "call")


def as_stablehlo(name: str, attributes: Attributes, cursor: ByteCursor) -> tuple[str, Attributes]:
    """Name and attributes of an operation as StableHLO's generic spelling has them.

    Args:
        name: Name of the operation; those of other dialects are left as they are.
        attributes: What its bytes say.
        cursor: Where it stands, for errors.

    Raises:
        BinaryParseError: The attributes do not fit together.
    """
    if not name.startswith(_DIALECT):
        return name, attributes
    short = name.removeprefix(_DIALECT).rpartition("_v")[0]
    found = {key: value for key, value in attributes.items() if value != ABSENT}
    if short in _GROUPINGS:
        _GROUPINGS[short](found, cursor)
    if "channel_id" in found:
        found["channel_handle"] = {"handle": found.pop("channel_id")}
    for key in ("callee", "decomposition"):
        value = found.get(key)
        if isinstance(value, str):
            found[key] = Symbol(value)
    return f"{'func' if short in _FUNCTIONS else 'stablehlo'}.{short}", found


def _gathered(found: Attributes, keys: Sequence[str]) -> Attribute:
    """Takes attributes out that are parts of one."""
    return {key: found.pop(key) for key in (*keys, "index_vector_dim") if key in found}


def _dot_general(found: Attributes, cursor: ByteCursor) -> None:
    found["dot_dimension_numbers"] = _gathered(found, DOT_DIMENSIONS)
    if "accumulation_type" in found:
        types = [found.get(key, ABSENT) for key in ("lhs_precision_type", "rhs_precision_type", "accumulation_type")]
        counts = [found.get(key, 1) for key in ("lhs_component_count", "rhs_component_count")]
        counts.append(found.get("num_primitive_operations", 1))
        found["algorithm"] = dot_algorithm(types, counts, found.get("allow_imprecise_accumulation", False))


def _gather(found: Attributes, cursor: ByteCursor) -> None:
    found["dimension_numbers"] = _gathered(found, GATHER_DIMENSIONS)


def _scatter(found: Attributes, cursor: ByteCursor) -> None:
    found["scatter_dimension_numbers"] = _gathered(found, SCATTER_DIMENSIONS)


def _convolution(found: Attributes, cursor: ByteCursor) -> None:
    parts = []
    for place, one, other in (
        ("input", "batch", "feature"),
        ("kernel", "input_feature", "output_feature"),
        ("output", "batch", "feature"),
    ):
        first, second = (found.pop(f"{place}_{which}_dimension", None) for which in (one, other))
        spatial = found.pop(f"{place}_spatial_dimensions", None)
        if not (isinstance(first, int) and isinstance(second, int) and isinstance(spatial, Dense)):
            raise cursor.error("the dimensions of a convolution are missing")
        numbers = np.frombuffer(spatial.payload if isinstance(spatial.payload, bytes) else b"", np.int64)
        parts.append((first, second, numbers.tolist()))
    found["dimension_numbers"] = convolution_dims(cursor, parts)


def _custom_call(found: Attributes, cursor: ByteCursor) -> None:
    for key in ("operand_layouts", "result_layouts"):
        if found.get(key) == ():  # an artifact cannot say that there are none
            del found[key]


_GROUPINGS: dict[str, Callable[[Attributes, ByteCursor], None]] = {
    "dot_general": _dot_general,
    "gather": _gather,
    "scatter": _scatter,
    "convolution": _convolution,
    "custom_call": _custom_call,
}
