"""Tables of keys and values, which a session keeps: filled once from tensors or a file, or changed at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlalite.files.gfile import translated_errors
from xlalite.framework.graph.dtypes import DType, int64, string
from xlalite.framework.graph.errors import FailedPreconditionError, InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.declarations.string_ops import file_name, texts_array
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.handles import handle_of, object_of, one_handle
from xlalite.ops.helpers.shape_rules import no_outputs

_WHY_HOST: Final = "it uses a table"
_LINE_NUMBER: Final = -1
_WHOLE_LINE: Final = -2


class Table:
    """Keys and values in one session.

    Attributes:
        entries: What is held; None before a table that is filled once is filled.
        value_type: The element type of values.
    """

    def __init__(self, op: Operation) -> None:
        self.entries: dict[Any, Any] | None = {} if op.type.startswith("Mutable") else None
        self.key_type: DType = op.get_attr("key_dtype")
        self.value_type: DType = op.get_attr("value_dtype")
        self._name = op.name

    def filled(self, op: Operation) -> dict[Any, Any]:
        """What is held.

        Raises:
            FailedPreconditionError: it has not been filled.
        """
        if self.entries is None:
            raise FailedPreconditionError(None, op, f"Table not initialized: {self._name!r}; run tables_initializer()")
        return self.entries

    def fill(self, op: Operation, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Fills a table, if nobody has.

        Raises:
            InvalidArgumentError: one key has two values.
        """
        if self.entries is not None:
            return
        found: dict[Any, Any] = {}
        for key, value in pairs:
            if found.setdefault(key, value) != value:
                text = f"HashTable has different value for same key. Key {key!r} has {found[key]!r} and {value!r}"
                raise InvalidArgumentError(None, op, text)
        self.entries = found


def _table(op: Operation, handle: HostValue) -> Table:
    return object_of(op, handle, Table, "table")


def _array(values: Sequence[Any], dtype: DType, shape: Sequence[int]) -> Array:
    if dtype is string:
        return texts_array(values, shape)
    return np.array(values, dtype.numpy_dtype).reshape(shape)


def _made(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [handle_of(context.state(op, lambda: Table(op)))]


def _fill(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    keys, values = (np.asarray(each).ravel().tolist() for each in inputs[1:])
    if len(keys) != len(values):
        raise InvalidArgumentError(None, op, f"{len(keys)} keys and {len(values)} values")
    _table(op, inputs[0]).fill(op, list(zip(keys, values, strict=True)))
    return ()


def _fill_from_file(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    table = _table(op, inputs[0])
    name = file_name(op, np.asarray(inputs[1]).item())
    limit, columns = op.get_attr("vocab_size"), (op.get_attr("key_index"), op.get_attr("value_index"))
    with translated_errors(name), open(name, "rb") as file:
        lines = [line.removesuffix(b"\n").removesuffix(b"\r") for line in file]
    if limit != -1 and len(lines) < limit:
        raise InvalidArgumentError(
            None, op, f"Invalid vocab_size in {name}: expected {limit} lines, found {len(lines)}"
        )
    delimiter = op.get_attr("delimiter").encode()
    pairs = []
    for number, line in enumerate(lines if limit == -1 else lines[:limit]):
        parts = line.split(delimiter) if max(columns) >= 0 else []
        if max(columns) >= len(parts) > 0:
            raise InvalidArgumentError(None, op, f"{os.path.basename(name)}:{number + 1} has {len(parts)} columns")
        types = table.key_type, table.value_type
        pairs.append(tuple(_cell(op, number, line, parts, *each) for each in zip(columns, types, strict=True)))
    table.fill(op, pairs)
    return ()


def _cell(op: Operation, number: int, line: bytes, parts: Sequence[bytes], column: int, dtype: DType) -> Any:
    if column == _LINE_NUMBER:
        return number
    text = line if column == _WHOLE_LINE else parts[column]
    try:
        return text if dtype is string else dtype.numpy_dtype.type(text.decode()).item()
    except ValueError:
        raise InvalidArgumentError(None, op, f"line {number + 1}: {text!r} is no {dtype.name}") from None


def _find(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    table, keys, default = _table(op, inputs[0]), np.asarray(inputs[1]), np.asarray(inputs[2])
    entries = table.filled(op)
    if default.dtype.kind == "O" and table.value_type is not string:
        raise InvalidArgumentError(None, op, f"the default is a string; values are {table.value_type.name}")
    missing = default.item() if not default.ndim else default.ravel().tolist()
    found = [entries.get(key, missing) for key in keys.ravel().tolist()]
    return [_array(found, table.value_type, keys.shape)]


def _insert(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    keys, values = (np.asarray(each).ravel().tolist() for each in inputs[1:])
    if len(keys) != len(values):
        raise InvalidArgumentError(None, op, f"{len(keys)} keys and {len(values)} values")
    _table(op, inputs[0]).filled(op).update(zip(keys, values, strict=True))
    return ()


def _size(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [np.asarray(len(_table(op, inputs[0]).entries or ()), np.int64)]


def _export(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    table = _table(op, inputs[0])
    entries = dict(table.filled(op))
    count = [len(entries)]
    return [_array([*entries], table.key_type, count), _array([*entries.values()], table.value_type, count)]


def _as_keys(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[2].dtype, op.inputs[1].shape)]


def _exported(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("Tkeys"), unknown_shape(1)), (op.get_attr("Tvalues"), unknown_shape(1))]


_TYPES: Final[Mapping[str, object]] = {"key_dtype": string, "value_dtype": int64}
for _kind in ("HashTableV2", "MutableHashTableV2"):
    declare_on_host(_kind, (), one_handle, _made, _WHY_HOST, attrs=tuple(_TYPES), defaults=_TYPES, is_stateful=True)
_OF_TABLE: Final = ("table_handle",)
_PAIRS: Final = (*_OF_TABLE, "keys", "values")
_FILE: Final[Mapping[str, object]] = {"key_index": _WHOLE_LINE, "value_index": _LINE_NUMBER, "vocab_size": -1}
_COLUMNS: Final = {**_FILE, "delimiter": "\t"}
declare_on_host("InitializeTableV2", _PAIRS, no_outputs, _fill, _WHY_HOST, is_stateful=True)
declare_on_host(
    "InitializeTableFromTextFileV2",
    (*_OF_TABLE, "filename"),
    no_outputs,
    _fill_from_file,
    _WHY_HOST,
    attrs=tuple(_COLUMNS),
    defaults=_COLUMNS,
    is_stateful=True,
)
declare_on_host(
    "LookupTableFindV2", (*_OF_TABLE, "keys", "default_value"), _as_keys, _find, _WHY_HOST, is_stateful=True
)
declare_on_host("LookupTableInsertV2", _PAIRS, no_outputs, _insert, _WHY_HOST, is_stateful=True)
declare_on_host(
    "LookupTableSizeV2", _OF_TABLE, lambda op: [(int64, TensorShape(()))], _size, _WHY_HOST, is_stateful=True
)
declare_on_host(
    "LookupTableExportV2", _OF_TABLE, _exported, _export, _WHY_HOST, attrs=("Tkeys", "Tvalues"), is_stateful=True
)
