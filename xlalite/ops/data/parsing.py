"""Operations that take serialized examples and raw bytes apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype, float32, int64, string
from xlalite.framework.graph.errors import InvalidArgumentError, UnimplementedError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.hlo.errors import BinaryParseError
from xlalite.ops.helpers.constant import as_array, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import require_type

_WHY_HOST = "it takes text apart"
_LISTS = {float32: "float_list", int64: "int64_list", string: "bytes_list"}


class FixedLenFeature:
    """A feature of known shape; without a default, every example must have it."""

    def __init__(self, shape: Any, dtype: Any, default_value: Any = None) -> None:
        self.shape = shape
        self.dtype = as_dtype(dtype)
        self.default_value = default_value


class FixedLenSequenceFeature:
    """A feature of rows of known shape, of which there may be any number; shorter ones are padded."""

    def __init__(self, shape: Any, dtype: Any, allow_missing: bool = False, default_value: Any = None) -> None:
        self.shape = shape
        self.dtype = as_dtype(dtype)
        self.allow_missing = allow_missing
        self.default_value = default_value


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A feature to be read: its name, and how its values become an array."""

    name: str
    dtype: DType
    dims: tuple[int, ...]
    default: Array | None
    is_sequence: bool

    def read(self, given: list[Array | None]) -> Array:
        """The values of all examples as one array."""
        count = int(np.prod(self.dims, dtype=np.int64))
        rows = [self._row(values, number, count) for number, values in enumerate(given)]
        if not self.is_sequence:
            return _stacked(rows, self.dtype).reshape(len(rows), *self.dims)
        most = max((row.size for row in rows), default=0)
        filler: Any = b"" if self.dtype is string else 0
        if self.default is not None:
            filler = self.default.item()
        whole = np.full((len(rows), most), filler, self.dtype.numpy_dtype)
        for number, row in enumerate(rows):
            whole[number, : row.size] = row
        return whole.reshape(len(rows), most // count if count else 0, *self.dims)

    def _row(self, values: Array | None, number: int, count: int) -> Array:
        if values is None and self.is_sequence:
            return np.empty(0, self.dtype.numpy_dtype)
        if values is None and self.default is not None:
            return np.broadcast_to(self.default, self.dims).ravel() if self.default.size == 1 else self.default.ravel()
        where = f"Key: {self.name}. example {number}"
        if values is None:
            raise InvalidArgumentError(None, None, f"{where}: Feature: {self.name} is required but could not be found.")
        if values.size != count if not self.is_sequence else values.size % max(count, 1):
            raise InvalidArgumentError(
                None,
                None,
                f"{where}: number of values != expected. Values size: {values.size} but output shape: {self.dims}",
            )
        return values


def _stacked(rows: Sequence[Array], dtype: DType) -> Array:
    return np.stack(rows) if rows else np.empty((0,), dtype.numpy_dtype)


def _parse_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "serialized")
    outer = op.inputs[0].shape
    result = []
    for wanted in op.get_attr("features"):
        inner = TensorShape([None, *wanted.dims] if wanted.is_sequence else list(wanted.dims))
        result.append((wanted.dtype, outer.concatenate(inner)))
    return result


def _parse(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    serialized = np.asarray(inputs[0])
    found = [_features_of(op, data) for data in serialized.ravel()]
    results: list[HostValue] = []
    for wanted in op.get_attr("features"):
        values = wanted.read([_values(op, features.get(wanted.name), wanted) for features in found])
        results.append(values.reshape((*serialized.shape, *values.shape[1:])))
    return results


def _features_of(op: Operation, data: bytes) -> dict[str, Any]:
    from xlalite.hlo.proto.wire import decode
    from xlalite.messages import tables

    assert tables.NAMES, "the tables are declared when they are imported"
    try:
        entries = decode(data, "Example").message("features").messages("feature")
    except BinaryParseError as error:
        raise InvalidArgumentError(None, op, f"Could not parse example input: {error}") from None
    return {entry.text("key"): entry.message("value") for entry in entries}


def _values(op: Operation, feature: Any, wanted: _Wanted) -> Array | None:
    """The values of a feature; None when it is not there, or holds nothing at all."""
    if feature is None or not feature.values:
        return None
    (kind,) = list(feature.values)[-1:]
    if kind != _LISTS[wanted.dtype]:
        raise InvalidArgumentError(
            None, op, f"Key: {wanted.name}. Data types don't match. Expected type: {wanted.dtype.name}, found {kind}"
        )
    values = feature.message(kind)
    if wanted.dtype is not string:
        return np.asarray(values.array("value"), wanted.dtype.numpy_dtype)
    listed = np.empty(len(values.values.get("value", ())), object)
    listed[:] = values.values.get("value", ())
    return listed


register(
    OpSpec(
        "ParseExample",
        _parse_infer,
        inputs=("serialized",),
        attrs=("features",),
        host_kernel=_parse,
        gradient=None,
        group=None,
        why_host=_WHY_HOST,
    )
)


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, **unused: Any
) -> dict[str, Tensor]:
    """The features of serialized examples, by name.

    Args:
        serialized: A string or several.
        features: `FixedLenFeature`s and `FixedLenSequenceFeature`s by name.
        name: Name of the operation.
        unused: Accepted for compatibility.

    Raises:
        UnimplementedError: a feature of another sort.
    """
    wanted = tuple(_wanted(key, features[key]) for key in sorted(features))
    made = operation("ParseExample", [convert_to_tensor(serialized)], {"features": wanted}, name)
    return {each.name: output for each, output in zip(wanted, made.outputs, strict=True)}


parse_single_example = parse_example


def _wanted(name: str, feature: Any) -> _Wanted:
    if not isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
        raise UnimplementedError(None, None, f"parse_example: feature {name!r} is a {type(feature).__name__}")
    if feature.dtype not in _LISTS:
        raise InvalidArgumentError(
            None, None, f"feature {name!r}: {feature.dtype.name} is not float32, int64 or string"
        )
    default = None if feature.default_value is None else as_array(feature.default_value, feature.dtype)
    return _Wanted(
        name,
        feature.dtype,
        as_shape(feature.shape).known_dims(),
        default,
        isinstance(feature, FixedLenSequenceFeature),
    )


# DecodeRaw(bytes): numbers as they lie in memory.


def _raw_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "bytes")
    return [(op.get_attr("out_type"), op.inputs[0].shape.concatenate(TensorShape([None])))]


def _raw(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, dtype = np.asarray(inputs[0]), op.get_attr("out_type").numpy_dtype
    sizes = {len(each) for each in texts.ravel()}
    if len(sizes) > 1:
        raise InvalidArgumentError(None, op, f"DecodeRaw requires strings of one length, found {sorted(sizes)}")
    size = sizes.pop() if sizes else 0
    if size % dtype.itemsize:
        raise InvalidArgumentError(
            None, op, f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.itemsize}"
        )
    numbers = np.frombuffer(b"".join(texts.ravel()), dtype)
    if not op.get_attr("little_endian"):
        numbers = numbers.byteswap()
    return [numbers.reshape(*texts.shape, size // dtype.itemsize).copy()]


register(
    OpSpec(
        "DecodeRaw",
        _raw_infer,
        inputs=("bytes",),
        attrs=("out_type", "little_endian"),
        host_kernel=_raw,
        gradient=None,
        group=None,
        why_host=_WHY_HOST,
    )
)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The numbers that strings hold as they lie in memory, along a new last dimension."""
    given = convert_to_tensor(input_bytes if bytes is None else bytes)
    return node("DecodeRaw", [given], {"out_type": as_dtype(out_type), "little_endian": little_endian}, name)
