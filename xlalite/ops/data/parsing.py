"""Operations that take serialized examples and raw bytes apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype, float32, int64, string
from xlalite.framework.graph.errors import InvalidArgumentError, UnimplementedError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.hlo.errors import BinaryParseError
from xlalite.hlo.records import dataclass
from xlalite.ops.data.features import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature
from xlalite.ops.declarations.string_ops import number_in
from xlalite.ops.functions.sparse import sparse_merge
from xlalite.ops.helpers.constant import as_array, convert_to_tensor
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import require_scalar, require_type

_WHY_HOST = "it takes text apart"
_LISTS = {float32: "float_list", int64: "int64_list", string: "bytes_list"}


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A feature to be read: its name, and how its values become an array."""

    name: str
    dtype: DType
    dims: tuple[int, ...]
    default: Array | None
    is_sequence: bool
    is_sparse: bool = False

    def read_sparse(self, given: Array) -> list[Array]:
        """Indices, values and shape of the values of examples in an array of them; None for examples without."""
        found = [(place, values) for place, values in np.ndenumerate(given) if values is not None]
        indices = [(*place, number) for place, values in found for number in range(values.size)]
        shape = (*given.shape, max((values.size for _, values in found), default=0))
        parts = [np.empty(0, self.dtype.numpy_dtype), *(values for _, values in found)]
        return [
            np.array(indices, np.int64).reshape(-1, len(shape)),
            np.concatenate(parts),
            np.array(shape, np.int64),
        ]

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
        if not count:
            return np.empty((len(rows), 0, *self.dims), self.dtype.numpy_dtype)
        whole = np.full((len(rows), most), filler, self.dtype.numpy_dtype)
        for number, row in enumerate(rows):
            whole[number, : row.size] = row
        return whole.reshape(len(rows), most // count, *self.dims)

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
        if wanted.is_sparse:
            result += _sparse_types(wanted, None if outer.rank is None else outer.rank + 1)
            continue
        inner = TensorShape([None, *wanted.dims] if wanted.is_sequence else list(wanted.dims))
        result.append((wanted.dtype, outer.concatenate(inner)))
    return result


def _parse(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    serialized = np.asarray(inputs[0])
    found = [_features_of(op, data) for data in serialized.ravel()]
    results: list[HostValue] = []
    for wanted in op.get_attr("features"):
        given = [_values(op, features.get(wanted.name), wanted) for features in found]
        if wanted.is_sparse:
            held = np.empty(len(given), object)
            held[:] = given
            results += wanted.read_sparse(held.reshape(serialized.shape))
            continue
        values = wanted.read(given)
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
) -> dict[str, Any]:
    """The features of serialized examples, by name.

    Args:
        serialized: A string or several.
        features: each a `FixedLenFeature`, `FixedLenSequenceFeature`, `VarLenFeature` or `SparseFeature`, by name.
        name: Name of the operation.
        unused: Accepted for compatibility.

    Raises:
        UnimplementedError: a feature of another sort.
    """
    merged = {key: each for key, each in features.items() if isinstance(each, SparseFeature)}
    read = {key: each for key, each in features.items() if key not in merged}
    for each in merged.values():
        for key, dtype in (*((key, int64) for key in each.index_keys), (each.value_key, each.dtype)):
            if vars(read.setdefault(key, VarLenFeature(dtype))) != {"dtype": dtype}:
                raise InvalidArgumentError(None, None, f"parse_example: feature {key!r} is wanted in two ways")
    wanted = tuple(_wanted(key, read[key]) for key in sorted(read))
    made = operation("ParseExample", [convert_to_tensor(serialized)], {"features": wanted}, name)
    found = _named(wanted, iter(made.outputs))
    for key, each in merged.items():
        ids, values = [found[index] for index in each.index_keys], found[each.value_key]
        sizes = [each.size] if isinstance(each.index_key, str) else list(each.size)
        found[key] = sparse_merge(ids, values, sizes, already_sorted=each.already_sorted)
    return {key: found[key] for key in sorted(features)}


def _named(wanted: Sequence[_Wanted], outputs: Iterator[Tensor]) -> dict[str, Any]:
    """The outputs of each feature under its name: one, or the three of a `SparseTensor`."""
    return {
        each.name: SparseTensor(next(outputs), next(outputs), next(outputs)) if each.is_sparse else next(outputs)
        for each in wanted
    }


parse_single_example = parse_example


def _wanted(name: str, feature: Any) -> _Wanted:
    if not isinstance(feature, FixedLenFeature | FixedLenSequenceFeature | VarLenFeature):
        raise UnimplementedError(None, None, f"parse_example: feature {name!r} is a {type(feature).__name__}")
    if feature.dtype not in _LISTS:
        raise InvalidArgumentError(
            None, None, f"feature {name!r}: {feature.dtype.name} is not float32, int64 or string"
        )
    if isinstance(feature, VarLenFeature):
        return _Wanted(name, feature.dtype, (), None, False, is_sparse=True)
    default = None if feature.default_value is None else as_array(feature.default_value, feature.dtype)
    return _Wanted(
        name,
        feature.dtype,
        as_shape(feature.shape).known_dims(),
        default,
        isinstance(feature, FixedLenSequenceFeature),
    )


# ParseSingleSequenceExample(serialized): the features of one example, and its lists of features.


def _sequence_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "serialized")
    require_scalar(op.inputs[0], "serialized")
    result: list[OutputType] = []
    for wanted in op.get_attr("features"):
        dense = [(wanted.dtype, TensorShape([None, *wanted.dims] if wanted.is_sequence else list(wanted.dims)))]
        result += _sparse_types(wanted, 1) if wanted.is_sparse else dense
    for wanted in op.get_attr("sequence_features"):
        result += _sparse_types(wanted, 2) if wanted.is_sparse else [(wanted.dtype, TensorShape([None, *wanted.dims]))]
    return result


def _sparse_types(wanted: _Wanted, rank: int | None) -> list[OutputType]:
    return [(int64, TensorShape([None, rank])), (wanted.dtype, TensorShape([None])), (int64, TensorShape([rank]))]


def _sequence(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.hlo.proto.wire import decode
    from xlalite.messages import tables

    assert tables.NAMES, "the tables are declared when they are imported"
    try:
        message = decode(bytes(np.asarray(inputs[0]).item()), "SequenceExample")
        found = {each.text("key"): each.message("value") for each in message.message("context").messages("feature")}
        lists = message.message("feature_lists").messages("feature_list")
        rows = {each.text("key"): each.message("value").messages("feature") for each in lists}
    except BinaryParseError as error:
        raise InvalidArgumentError(None, op, f"Could not parse example input: {error}") from None
    results: list[HostValue] = []
    for wanted in op.get_attr("features"):
        values = _values(op, found.get(wanted.name), wanted)
        if wanted.is_sparse:
            one: Array = np.empty((), object)
            one[()] = values
            results += wanted.read_sparse(one)
        else:
            row = wanted.read([values])
            results.append(row.reshape(row.shape[1:]))
    for wanted in op.get_attr("sequence_features"):
        listed = [_values(op, each, wanted) for each in rows.get(wanted.name, ())]
        if wanted.is_sparse:
            held = np.empty(len(listed), object)
            held[:] = listed
            results += wanted.read_sparse(held)
        elif wanted.name not in rows and not wanted.is_sequence:
            raise InvalidArgumentError(None, op, f"Feature list '{wanted.name}' is required but could not be found.")
        else:
            steps = replace(wanted, default=None, is_sequence=False)
            results.append(steps.read(listed))
    return results


declare_on_host(
    "ParseSingleSequenceExample",
    ("serialized",),
    _sequence_infer,
    _sequence,
    _WHY_HOST,
    attrs=("features", "sequence_features"),
)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a serialized `SequenceExample`, and its lists of features, by name.

    Args:
        serialized: A string.
        context_features: Those of the whole, as for `parse_example`.
        sequence_features: Those of each step, each a `FixedLenSequenceFeature` or `VarLenFeature`.
        example_name: Accepted for compatibility.
        name: Name of the operation.
    """
    features = tuple(_wanted(key, each) for key, each in sorted((context_features or {}).items()))
    steps = tuple(_step(key, each) for key, each in sorted((sequence_features or {}).items()))
    attrs = {"features": features, "sequence_features": steps}
    outputs = iter(operation("ParseSingleSequenceExample", [convert_to_tensor(serialized)], attrs, name).outputs)
    return _named(features, outputs), _named(steps, outputs)


def _step(name: str, feature: Any) -> _Wanted:
    if isinstance(feature, FixedLenFeature):
        raise UnimplementedError(None, None, f"sequence feature {name!r} must be a FixedLenSequenceFeature")
    wanted = _wanted(name, feature)
    # Whether it may be missing; steps have one shape.
    return wanted if wanted.is_sparse else replace(wanted, is_sequence=feature.allow_missing)


# DecodeCSV(records, record_defaults...): fields of lines.


def _csv_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "records")
    return [(default.dtype, op.inputs[0].shape) for default in op.inputs[1:]]


def _csv(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    import csv  # few programs read such lines

    records, defaults = np.asarray(inputs[0]), [np.asarray(value).ravel() for value in inputs[1:]]
    columns = op.get_attr("select_cols")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if op.get_attr("use_quote_delim") else csv.QUOTE_NONE
    rows = []
    for number, record in enumerate(records.ravel()):
        text = record.decode("utf-8", "surrogateescape")
        fields = _fields(op, number, text, quoting) if text else [""]
        if columns and not all(0 <= column < len(fields) for column in columns):
            raise InvalidArgumentError(None, op, f"columns {columns} of the {len(fields)} fields of record {number}")
        fields = [fields[column] for column in columns] if columns else fields
        if len(fields) != len(defaults):
            message = f"Expect {len(defaults)} fields but have {len(fields)} in record {number}"
            raise InvalidArgumentError(None, op, message)
        rows.append(fields)
    found: list[HostValue] = []
    for place, (default, output) in enumerate(zip(defaults, op.outputs, strict=True)):
        values = [_field(op, number, place, row[place], default, output.dtype) for number, row in enumerate(rows)]
        column = np.empty(len(values), output.dtype.numpy_dtype)
        column[:] = values
        found.append(column.reshape(records.shape))
    return found


def _fields(op: Operation, number: int, text: str, quoting: Literal[0, 3]) -> list[str]:
    import csv  # few programs read such lines

    # One field may be as long as the whole; others only ever raise the limit, too.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        (fields,) = csv.reader([text], delimiter=op.get_attr("field_delim"), quoting=quoting)
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidArgumentError(None, op, f"record {number} is no line of fields: {error}") from None
    return fields


def _field(op: Operation, number: int, place: int, text: str, default: Array, dtype: DType) -> Any:
    if text in ("", op.get_attr("na_value")):
        if not default.size:
            raise InvalidArgumentError(None, op, f"Field {place} is required but missing in record {number}!")
        return default[0]
    data = text.encode("utf-8", "surrogateescape")
    return data if dtype is string else number_in(op, data, dtype)


declare_on_host(
    "DecodeCSV",
    ("records", "record_defaults*"),
    _csv_infer,
    _csv,
    _WHY_HOST,
    attrs=("field_delim", "use_quote_delim", "na_value", "select_cols"),
    defaults={"field_delim": ",", "use_quote_delim": True, "na_value": "", "select_cols": ()},
)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of lines, a tensor for each column.

    Args:
        records: The lines.
        record_defaults: For each column a tensor of its type with what stands for an empty field, or none.
        field_delim: What stands between fields.
        use_quote_delim: Whether fields may be quoted.
        name: Name of the operation.
        na_value: What stands for an empty field too.
        select_cols: The columns, all by default.
    """
    defaults = [each if isinstance(each, Tensor) else _default(each) for each in record_defaults]
    attrs = {
        "field_delim": field_delim,
        "use_quote_delim": use_quote_delim,
        "na_value": na_value,
        "select_cols": tuple(select_cols or ()),
    }
    return list(operation("DecodeCSV", [convert_to_tensor(records), *defaults], attrs, name).outputs)


def _default(given: Any) -> Tensor:
    if isinstance(given, DType):
        return convert_to_tensor(np.empty(0, given.numpy_dtype), given)
    return convert_to_tensor(given)


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
