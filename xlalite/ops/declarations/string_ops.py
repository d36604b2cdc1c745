"""Operations on strings, and those that read and write whole files. They run on the host."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xlalite.files.gfile import translated_errors
from xlalite.framework.graph.dtypes import bool_, float32, int32, int64, string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.shape_rules import broadcast_shapes, no_outputs, require_type

_WHY_HOST = "it works on text"
_WHY_FILE = "it reads or writes files"


def texts_array(values: Sequence[bytes], shape: Sequence[int] | None = None) -> Array:
    """Strings as an array."""
    array = np.empty(len(values), object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def _text_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, op.spec.inputs[0])
    return [(string, op.inputs[0].shape)]


def _each(name: str, inputs: tuple[str, ...], change: Callable[..., Any], **attrs: object) -> None:
    """Declares a function of single strings; it also takes the other inputs, scalars, and the attributes.

    Attributes are given with their defaults; those of which `...` is said have none.
    """

    def kernel(context: HostContext, op: Operation, given: tuple[HostValue, ...]) -> Sequence[HostValue]:
        texts, *others = map(np.asarray, given)
        rest = [each.item() for each in others] + [op.get_attr(each) for each in attrs]
        return [texts_array([change(text, *rest) for text in texts.ravel()], texts.shape)]

    defaults = {key: value for key, value in attrs.items() if value is not ...}
    declare_on_host(name, inputs, _text_infer, kernel, _WHY_HOST, attrs=tuple(attrs), defaults=defaults)


def _case(change: Callable[[str], str], bytewise: Callable[[bytes], bytes]) -> Callable[[bytes, str], bytes]:
    return lambda text, encoding: change(_as_text(text)).encode() if encoding == "utf-8" else bytewise(text)


def _as_text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(None, None, f"{text!r:.80} is not UTF-8: {error}") from None


_each("StringStrip", ("input",), bytes.strip)
_each("StringLower", ("input",), _case(str.lower, bytes.lower), encoding="")
_each("StringUpper", ("input",), _case(str.upper, bytes.upper), encoding="")


@lru_cache(256)
def _pattern(text: bytes) -> re.Pattern[bytes]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidArgumentError(None, None, f"Invalid pattern: {text!r}, error: {error}") from None


def _replaced(text: bytes, pattern: Any, rewrite: Any, replaces_all: bool) -> bytes:
    # A pattern's whole match is `\\0` there.
    new = _bytes(rewrite).replace(b"\\0", b"\\g<0>")
    try:
        return _pattern(_bytes(pattern)).sub(new, text, 0 if replaces_all else 1)
    except (re.error, IndexError) as error:
        raise InvalidArgumentError(None, None, f"Invalid rewrite pattern: {rewrite!r}, error: {error}") from None


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


_each("RegexReplace", ("input", "pattern", "rewrite"), _replaced, replace_global=True)
_each("StaticRegexReplace", ("input",), _replaced, pattern=..., rewrite=..., replace_global=True)


def _encoded(text: bytes, pad: bool) -> bytes:
    import base64  # few programs have such texts

    found = base64.urlsafe_b64encode(text)
    return found if pad else found.rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    import base64  # few programs have such texts

    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", validate=True)
    except ValueError as error:
        raise InvalidArgumentError(None, None, f"Invalid base64 text {text!r:.80}: {error}") from None


_each("EncodeBase64", ("input",), _encoded, pad=False)
_each("DecodeBase64", ("input",), _decoded)


# RegexFullMatch(input, pattern), StaticRegexFullMatch(input): whether all of a string fits.


def _match_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "input")
    return [(bool_, op.inputs[0].shape)]


def _match(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts = np.asarray(inputs[0])
    pattern = _pattern(_bytes(np.asarray(inputs[1]).item() if len(inputs) > 1 else op.get_attr("pattern")))
    found = [pattern.fullmatch(text) is not None for text in texts.ravel()]
    return [np.array(found, bool).reshape(texts.shape)]


declare_on_host("RegexFullMatch", ("input", "pattern"), _match_infer, _match, _WHY_HOST)
declare_on_host("StaticRegexFullMatch", ("input",), _match_infer, _match, _WHY_HOST, attrs=("pattern",))


# StringJoin(input...), ReduceJoin(inputs, reduction_indices).


def _join_infer(op: Operation) -> Sequence[OutputType]:
    shape = TensorShape(())
    for tensor in op.inputs:
        require_type(tensor, {string}, "inputs")
        shape = broadcast_shapes(shape, tensor.shape)
    return [(string, shape)]


def _join(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    separator = _bytes(op.get_attr("separator"))
    parts = np.broadcast_arrays(*map(np.asarray, inputs))
    texts = [separator.join(each) for each in zip(*(part.ravel() for part in parts), strict=True)]
    return [texts_array(texts, parts[0].shape)]


declare_on_host(
    "StringJoin", ("inputs*",), _join_infer, _join, _WHY_HOST, attrs=("separator",), defaults={"separator": ""}
)


def _reduce_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "inputs")
    return [(string, TensorShape(None))]


def _reduce(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, separator = np.asarray(inputs[0]), _bytes(op.get_attr("separator"))
    for axis in np.asarray(inputs[1]).ravel():
        if not -texts.ndim <= axis < texts.ndim:
            raise InvalidArgumentError(None, op, f"Invalid reduction dimension {axis} for {texts.ndim} dimensions")
    axes = [int(axis) % max(texts.ndim, 1) for axis in np.asarray(inputs[1]).ravel()] or list(range(texts.ndim))[::-1]
    kept = [axis for axis in range(texts.ndim) if axis not in axes]
    rows = texts.transpose([*kept, *axes]).reshape([texts.shape[axis] for axis in kept] + [-1])
    joined = texts_array([separator.join(row) for row in rows.reshape(-1, rows.shape[-1])], rows.shape[:-1])
    if op.get_attr("keep_dims"):
        joined = joined.reshape([1 if axis in axes else size for axis, size in enumerate(texts.shape)])
    return [joined]


declare_on_host(
    "ReduceJoin",
    ("inputs", "reduction_indices"),
    _reduce_infer,
    _reduce,
    _WHY_HOST,
    attrs=("separator", "keep_dims"),
    defaults={"keep_dims": False, "separator": ""},
)


# StringSplit(input, delimiter): by any of several characters; StringSplitV2(input, sep): by a text.


def _split_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "input")
    return [(int64, TensorShape([None, 2])), (string, TensorShape([None])), (int64, TensorShape([2]))]


def _split(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, delimiter = np.asarray(inputs[0]).ravel(), bytes(np.asarray(inputs[1]).item())
    if op.type == "StringSplitV2":
        most = op.get_attr("maxsplit")
        rows = [text.split(delimiter or None, most) for text in texts]
    else:
        pattern = _pattern(b"|".join(re.escape(bytes([each])) for each in delimiter) or b"(?s)(?<=.)(?=.)")
        rows = [pattern.split(text) for text in texts]
        if op.get_attr("skip_empty"):
            rows = [[part for part in row if part] for row in rows]
    indices = [(number, place) for number, row in enumerate(rows) for place in range(len(row))]
    sizes = (len(rows), max(map(len, rows), default=0))
    found = np.array(indices, np.int64).reshape(-1, 2)
    return [found, texts_array([part for row in rows for part in row]), np.array(sizes, np.int64)]


declare_on_host(
    "StringSplit",
    ("input", "delimiter"),
    _split_infer,
    _split,
    _WHY_HOST,
    attrs=("skip_empty",),
    defaults={"skip_empty": True},
)
declare_on_host(
    "StringSplitV2", ("input", "sep"), _split_infer, _split, _WHY_HOST, attrs=("maxsplit",), defaults={"maxsplit": -1}
)


# StringLength(input), Substr(input, pos, len), StringToNumber(string_tensor), AsString(input).


def _length_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "input")
    return [(int32, op.inputs[0].shape)]


def _length(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, by_character = np.asarray(inputs[0]), op.get_attr("unit") == "UTF8_CHAR"
    sizes = [len(text.decode("utf-8", "replace") if by_character else text) for text in texts.ravel()]
    return [np.array(sizes, np.int32).reshape(texts.shape)]


_UNIT: dict[str, Any] = {"attrs": ("unit",), "defaults": {"unit": "BYTE"}}
declare_on_host("StringLength", ("input",), _length_infer, _length, _WHY_HOST, **_UNIT)


def _substring(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, starts, sizes = np.broadcast_arrays(*map(np.asarray, inputs))
    by_character = op.get_attr("unit") == "UTF8_CHAR"
    found = []
    for text, start, size in zip(texts.ravel(), starts.ravel(), sizes.ravel(), strict=True):
        units = text.decode("utf-8", "replace") if by_character else text
        if not -len(units) <= start <= len(units):
            raise InvalidArgumentError(None, op, f"pos {start} out of range for string of length {len(units)}")
        begin = start if start >= 0 else start + len(units)
        found.append(_bytes(units[begin : begin + max(size, 0)]))
    return [texts_array(found, texts.shape)]


def _substring_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "input")
    return [(string, broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape))]


declare_on_host("Substr", ("input", "pos", "len"), _substring_infer, _substring, _WHY_HOST, **_UNIT)


def _number_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "string_tensor")
    return [(op.get_attr("out_type"), op.inputs[0].shape)]


def _number(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    texts, dtype = np.asarray(inputs[0]), op.get_attr("out_type")
    numbers = [number_in(op, text, dtype) for text in texts.ravel()]
    return [np.array(numbers, dtype.as_numpy_dtype).reshape(texts.shape)]


def number_in(op: Operation, text: bytes, dtype: Any) -> Any:
    """The number that a text spells.

    Raises:
        InvalidArgumentError: it spells none.
    """
    kind = np.dtype(dtype.as_numpy_dtype)
    try:
        spelled = text.strip().decode("ascii")
        if "_" in spelled:
            raise ValueError(spelled)
        return kind.type(int(spelled) if dtype.is_integer else float(spelled))
    except (ValueError, OverflowError):
        message = f"StringToNumberOp could not correctly convert string: {text.decode('utf-8', 'replace')}"
        raise InvalidArgumentError(None, op, message) from None


declare_on_host(
    "StringToNumber",
    ("string_tensor",),
    _number_infer,
    _number,
    _WHY_HOST,
    attrs=("out_type",),
    defaults={"out_type": float32},
)


def _spelled_infer(op: Operation) -> Sequence[OutputType]:
    return [(string, op.inputs[0].shape)]


def _spelled(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    values = np.asarray(inputs[0])
    width, precision = op.get_attr("width"), op.get_attr("precision")
    kind = "e" if op.get_attr("scientific") else "g" if op.get_attr("shortest") else "f"
    layout = f"{'' if width < 0 else op.get_attr('fill') + str(width)}"
    if values.dtype.kind in "iu":
        found = [f"{int(each):{layout}d}" for each in values.ravel()]
    elif values.dtype.kind == "b":
        found = [str(bool(each)).lower() for each in values.ravel()]
    else:
        places = "" if precision < 0 else f".{precision}"
        form = f"{layout}{places}{kind}"
        if values.dtype.kind == "c":
            found = [f"({each.real:{form}},{each.imag:{form}})" for each in values.ravel().tolist()]
        else:
            found = [f"{float(each):{form}}" for each in values.ravel()]
    return [texts_array([each.encode() for each in found], values.shape)]


declare_on_host(
    "AsString",
    ("input",),
    _spelled_infer,
    _spelled,
    _WHY_HOST,
    attrs=("precision", "scientific", "shortest", "width", "fill"),
    defaults={"precision": -1, "scientific": False, "shortest": False, "width": -1, "fill": ""},
)


# ReadFile(filename), WriteFile(filename, contents), MatchingFiles(pattern).


def _read(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    path = file_name(op, inputs[0])
    with translated_errors(path), open(path, "rb") as file:
        return [np.array(file.read(), object)]


def _write(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    path = file_name(op, inputs[0])
    with translated_errors(path):
        os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
        with open(path, "wb") as file:
            file.write(np.asarray(inputs[1]).item())
    return ()


def file_name(op: Operation, value: HostValue) -> str:
    """The name of a file that a scalar spells.

    Raises:
        InvalidArgumentError: it spells none.
    """
    name = os.fsdecode(np.asarray(value).item())
    if "\0" in name:
        raise InvalidArgumentError(None, op, f"{name!r:.80} is no name of a file")
    return name


def _matching_infer(op: Operation) -> Sequence[OutputType]:
    return [(string, TensorShape([None]))]


def _matching(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    import glob  # few programs look for files

    patterns = np.asarray(inputs[0]).ravel()
    return [texts_array(sorted({each for pattern in patterns for each in glob.glob(pattern)}))]


declare_on_host("ReadFile", ("filename",), _text_infer, _read, _WHY_FILE)
declare_on_host("WriteFile", ("filename", "contents"), no_outputs, _write, _WHY_FILE, is_stateful=True)
declare_on_host("MatchingFiles", ("pattern",), _matching_infer, _matching, _WHY_FILE)
