"""Functions of strings and whole files, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.dtypes import as_dtype, float32, int32
from xlalite.framework.graph.errors import GraphError, UnimplementedError
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Strings one behind the other, with a separator between them; scalars broadcast."""
    return node("StringJoin", [convert_to_tensor(each) for each in inputs], {"separator": separator}, name)


def reduce_join(
    inputs: Any = None,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings along some dimensions, or all, as one."""
    given = convert_to_tensor(inputs)
    axes = axis if axis is not None else reduction_indices
    if axes is None:
        if given.shape.rank is None:
            raise GraphError("reduce_join: say along which axis; the number of dimensions is not known")
        axes = list(range(given.shape.rank))
    attrs = {"separator": separator, "keep_dims": bool(keepdims or keep_dims)}
    return node("ReduceJoin", [given, convert_to_tensor(axes, int32)], attrs, name)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Strings with what fits a regular expression replaced: everywhere, or once."""
    inputs = [convert_to_tensor(each) for each in (input, pattern, rewrite)]
    return node("RegexReplace", inputs, {"replace_global": replace_global}, name)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether all of a string fits a regular expression."""
    return node("RegexFullMatch", [convert_to_tensor(input), convert_to_tensor(pattern)], None, name)


def string_split(
    source: Any = None,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """The parts of strings between any of the delimiter's characters, by default blanks; a row for each string."""
    between = sep if sep is not None else delimiter
    return _split("StringSplit", source, " " if between is None else between, result_type, name, skip_empty=skip_empty)


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> SparseTensor:
    """The parts of strings between separators, by default blanks of any length; a row for each string."""
    given = input if input is not None else source
    return _split("StringSplitV2", given, "" if sep is None else sep, result_type, name, maxsplit=maxsplit)


def _split(op: str, source: Any, sep: Any, result_type: str, name: str | None, **attrs: Any) -> SparseTensor:
    if result_type != "SparseTensor":
        raise UnimplementedError(None, None, f"string_split: result_type {result_type!r}; there are no ragged tensors")
    return SparseTensor(*operation(op, [convert_to_tensor(source), convert_to_tensor(sep)], attrs, name).outputs)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """How long strings are, in bytes or in characters (`UTF8_CHAR`)."""
    return node("StringLength", [convert_to_tensor(input)], {"unit": unit}, name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Parts of strings, by where they begin and how long they are; broadcasts."""
    return node("Substr", [convert_to_tensor(each) for each in (input, pos, len)], {"unit": unit}, name)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case: ASCII letters, or all of `utf-8`."""
    return node("StringLower", [convert_to_tensor(input)], {"encoding": encoding}, name)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case: ASCII letters, or all of `utf-8`."""
    return node("StringUpper", [convert_to_tensor(input)], {"encoding": encoding}, name)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Strings without blanks at either end."""
    return node("StringStrip", [convert_to_tensor(input)], None, name)


def string_to_number(
    string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None
) -> Tensor:
    """The numbers that strings spell."""
    given = convert_to_tensor(string_tensor if string_tensor is not None else input)
    return node("StringToNumber", [given], {"out_type": as_dtype(out_type)}, name)


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as text."""
    attrs = {"precision": precision, "scientific": scientific, "shortest": shortest, "width": width, "fill": fill}
    return node("AsString", [convert_to_tensor(input)], attrs, name)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the web-safe form of base64."""
    return node("EncodeBase64", [convert_to_tensor(input)], {"pad": pad}, name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """What strings in the web-safe form of base64 hold."""
    return node("DecodeBase64", [convert_to_tensor(input)], None, name)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of a file."""
    return node("ReadFile", [convert_to_tensor(filename)], None, name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """An operation that writes a file, and the directories it lies in."""
    return operation("WriteFile", [convert_to_tensor(filename), convert_to_tensor(contents)], None, name)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The files whose names fit a pattern, or one of several, in order."""
    return node("MatchingFiles", [convert_to_tensor(pattern)], None, name)
