"""Checkpoints in TensorFlow's format, the tensor bundle: a sorted table of names, and files of values.

The index is what makes a checkpoint exist. When a checkpoint is written over another of the same name, each state in
between has an index whose values are there: see `write_checkpoint`.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from xlalite.files.crc32c import crc32c, masked
from xlalite.files.replacing import replacing, write_whole
from xlalite.files.tables import read_table, write_table
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.errors import DataLossError, NotFoundError, UnimplementedError
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.varints import decode_varint, encode_varint
from xlalite.hlo.proto.wire import decode, encode
from xlalite.messages.data_types import DTYPE_NUMBERS, dtype_of_number, read_shape, shape_message

Array = npt.NDArray[Any]
_HEADER_KEY: Final = b""


def index_path(prefix: str) -> str:
    """The file with the names."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, count: int) -> str:
    """One of the files with the values."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


class Part(NamedTuple):
    """A part of a value: the sizes of the whole, where in it the part begins, and the part."""

    whole: tuple[int, ...]
    starts: tuple[int, ...]
    array: Array


def write_checkpoint(prefix: str, values: Mapping[str, Array | Sequence[Part]]) -> None:
    """Writes arrays, or parts of arrays, under their names; those of strings hold `bytes`.

    Where a checkpoint of that name exists, the new values go to a file of another name first, then the index changes
    to it in one step. Only then does that file also get the usual name, and the index change back.
    """
    # Never the file that the index of now refers to.
    count = 2 if _shard_count(prefix) == 1 else 1
    entries: dict[bytes, bytes] = {}
    with replacing(data_path(prefix, 0, count)) as file:
        offset = 0
        for name in sorted(values):
            value = values[name]
            pieces = [(name.encode(), value)] if isinstance(value, np.ndarray) else []
            if not pieces:
                whole = _entry(value[0].array, value[0].whole)
                for part in value:
                    extents = _extents(part)
                    whole.append("slices").put_all("extent", extents.messages("extent"))
                    pieces.append((_slice_key(name, extents), part.array))
                entries[name.encode()] = encode(whole)
            for key, array in pieces:
                data, checksum = _spelled(array)
                entry = _entry(array, array.shape)
                entry.put("offset", offset).put("size", len(data)).put("crc32c", masked(checksum))
                entries[key] = encode(entry)
                file.write(data)
                offset += len(data)
    if count > 1:
        write_whole(data_path(prefix, 1, count), b"")
    _write_index(prefix, entries, count)
    if count > 1:
        with replacing(data_path(prefix, 0, 1)) as file, open(data_path(prefix, 0, count), "rb") as written:
            shutil.copyfileobj(written, file)
        _write_index(prefix, entries, 1)
    _delete_data(prefix, but={data_path(prefix, 0, 1)})


def _entry(array: Array, sizes: Sequence[int]) -> ProtoMessage:
    dtype = dtypes.string if array.dtype == object else as_dtype(array.dtype)
    entry = ProtoMessage("BundleEntryProto").put("dtype", DTYPE_NUMBERS[dtype])
    return entry.put("shape", shape_message(TensorShape(sizes)))


def _extents(part: Part) -> ProtoMessage:
    extents = ProtoMessage("TensorSliceProto")
    for start, length in zip(part.starts, part.array.shape, strict=True):
        extents.append("extent").put("start", start).put("length", length)
    return extents


def delete_checkpoint(prefix: str) -> None:
    """Removes a checkpoint, its index first; what is not there is not missed."""
    Path(index_path(prefix)).unlink(missing_ok=True)
    _delete_data(prefix, but=())


def _delete_data(prefix: str, but: Collection[str]) -> None:
    folder, stem = os.path.split(prefix)
    pattern = re.compile(re.escape(stem) + r"\.data-\d{5}-of-\d{5}")
    for path in [os.path.join(folder, found) for found in os.listdir(folder or ".") if pattern.fullmatch(found)]:
        if path not in but:
            os.unlink(path)


def _shard_count(prefix: str) -> int:
    """In how many files the checkpoint that is there has its values; 0 when there is none."""
    try:
        return CheckpointReader(prefix).shard_count
    except (NotFoundError, DataLossError, UnimplementedError):
        return 0


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of that name."""
    return os.path.exists(index_path(os.fspath(checkpoint_prefix)))


class CheckpointReader:
    """The names and values of a checkpoint.

    Attributes:
        shard_count: In how many files the values lie.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Reads the index.

        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: the index is damaged.
        """
        self._prefix = os.fspath(prefix)
        path = index_path(self._prefix)
        try:
            data = Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                None,
                None,
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}",
            ) from None
        table = read_table(data, path)
        try:
            header = decode(table.pop(_HEADER_KEY, b""), "BundleHeaderProto")
            entries = {key: _Entry.of(decode(value, "BundleEntryProto")) for key, value in table.items()}
            self._entries = {key.decode(): entry for key, entry in entries.items() if key[:1] != b"\0"}
        except ValueError as error:
            raise DataLossError(None, None, f"{path}: {error}") from None
        if header.integer("endianness"):
            raise UnimplementedError(None, None, f"{path}: written on a machine of the other byte order")
        self.shard_count = header.integer("num_shards")
        self._slices = {key: entry for key, entry in entries.items() if key[:1] == b"\0"}

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The sizes of each variable."""
        return {name: [*entry.dims] for name, entry in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The element type of each variable."""
        return {name: entry.dtype for name, entry in self._entries.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint has a value of that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Array:
        """The value of a name.

        Raises:
            NotFoundError: there is none.
            DataLossError: the file of values is damaged, or the index does not fit it.
            UnimplementedError: there is no such element type here.
        """
        entry = self._entries.get(tensor_str)
        if entry is None:
            raise NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        try:
            return self._joined(tensor_str, entry) if entry.parts else self._read(tensor_str, entry)
        except ValueError as error:
            raise DataLossError(None, None, f"{self._prefix}: {tensor_str}: {error}") from None

    def _joined(self, name: str, entry: _Entry) -> Array:
        """A variable that was saved in parts."""
        parts: list[tuple[tuple[slice, ...], Array]] = []
        for part in entry.parts:
            extents = [
                (each.integer("start"), each.integer("length") if each.has("length") else size)
                for each, size in zip(part.messages("extent"), entry.dims, strict=True)
            ]
            found = self._slices.get(_slice_key(name, part))
            if found is None:
                raise ValueError("a part is missing")
            parts.append((tuple(slice(start, start + length) for start, length in extents), self._read(name, found)))
        if sum(array.size for _, array in parts) != math.prod(entry.dims):
            raise ValueError(f"its parts do not fill {list(entry.dims)}")
        whole = np.zeros(entry.dims, entry.dtype.numpy_dtype)
        for place, array in parts:
            whole[place] = array
        return whole

    def _read(self, name: str, entry: _Entry) -> Array:
        message, path = entry.message, data_path(self._prefix, entry.message.integer("shard_id"), self.shard_count)
        offset, size = message.integer("offset"), message.integer("size")
        try:
            with open(path, "rb") as file:
                if not 0 <= offset <= offset + size <= os.fstat(file.fileno()).st_size:
                    raise DataLossError(None, None, f"{path}: {name} goes beyond the end of the file")
                file.seek(offset)
                data = file.read(size)
        except FileNotFoundError:
            raise NotFoundError(None, None, f"{path}; No such file or directory") from None
        array, checksum = _understood(data, entry.dtype.numpy_dtype, entry.dims)
        if masked(checksum) != message.integer("crc32c"):
            raise DataLossError(None, None, f"{path}: checksum of {name} does not match")
        return array


class _Entry(NamedTuple):
    """What the index says of a value."""

    message: ProtoMessage
    dims: tuple[int, ...]

    @staticmethod
    def of(message: ProtoMessage) -> _Entry:
        """An entry whose sizes are known."""
        return _Entry(message, read_shape(message.message("shape")).known_dims())

    @property
    def dtype(self) -> DType:
        """The element type, if there is one here."""
        return dtype_of_number(self.message.integer("dtype"))

    @property
    def parts(self) -> Sequence[ProtoMessage]:
        """Where the parts lie that it was saved in; none of a value that was saved as a whole."""
        return self.message.messages("slices")


def _write_index(prefix: str, entries: Mapping[bytes, bytes], count: int) -> None:
    header = ProtoMessage("BundleHeaderProto").put("num_shards", count)
    header.put("version", ProtoMessage("VersionDef").put("producer", 1))
    write_whole(index_path(prefix), write_table({_HEADER_KEY: encode(header), **entries}))


def _spelled(array: Array) -> tuple[bytes, int]:
    """The bytes of an array, and their checksum: of strings, first their lengths and a checksum of these."""
    if array.dtype != object:
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).tobytes()
        return data, crc32c(data)
    strings = [bytes(each) for each in array.ravel()]
    checksum = _checksum_of_lengths([len(each) for each in strings])
    stored = masked(checksum).to_bytes(4, "little")
    joined = b"".join(strings)
    data = b"".join(encode_varint(len(each)) for each in strings) + stored + joined
    return data, crc32c(joined, crc32c(stored, checksum))


def _understood(data: bytes, dtype: np.dtype[Any], dims: Sequence[int]) -> tuple[Array, int]:
    """The array that some bytes are, and their checksum.

    Raises:
        ValueError: there are too few bytes.
    """
    if dtype.kind != "O":
        return np.frombuffer(data, dtype).reshape(dims).copy(), crc32c(data)
    lengths: list[int] = []
    position = 0
    for _ in range(math.prod(dims)):
        length, position = decode_varint(data, position, len(data))
        lengths.append(length)
    checksum = _checksum_of_lengths(lengths)
    stored, position = data[position : position + 4], position + 4
    strings = np.empty(len(lengths), object)
    checksum = crc32c(data[position:], crc32c(stored, checksum))
    for number, length in enumerate(lengths):
        strings[number] = data[position : position + length]
        position += length
    if position != len(data):
        raise ValueError("the strings do not fill their place")
    return strings.reshape(dims), checksum


def _checksum_of_lengths(lengths: Sequence[int]) -> int:
    return crc32c(b"".join(length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths))


def _slice_key(name: str, part: ProtoMessage) -> bytes:
    """The key of a part of a variable, spelled so that keys sort as what they say."""
    numbers: list[int] = []
    for each in part.messages("extent"):
        numbers += [each.integer("start"), each.integer("length") if each.has("length") else -1]
    escaped = name.encode().replace(b"\0", b"\0\xff").replace(b"\xff", b"\xff\0") + b"\0\1"
    return _ordered(0) + escaped + _ordered(len(numbers) // 2) + b"".join(map(_signed_ordered, numbers))


def _ordered(number: int) -> bytes:
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _signed_ordered(number: int) -> bytes:
    """A number of few bytes: as many leading ones (zeros, if negative) as there are bytes, then its bits."""
    size = next(size for size in range(1, 9) if -(1 << (7 * size - 1)) <= number < 1 << (7 * size - 1))
    marks = ((1 << size) - 1) << (8 * size - size)
    bits = (number + (1 << 8 * size)) & ((1 << 8 * size) - 1)
    return (bits ^ marks).to_bytes(size, "big")
