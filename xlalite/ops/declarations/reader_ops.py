"""Readers: what gives the records of files whose names come out of a queue. They run on the host."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from xlalite.files.gfile import translated_errors
from xlalite.framework.graph.dtypes import int64, string
from xlalite.framework.graph.errors import InvalidArgumentError, OpError, OutOfRangeError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.ops.declarations.queue_ops import Queue, queue_of
from xlalite.ops.declarations.string_ops import file_name, texts_array
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.handles import handle_of, object_of, one_handle
from xlalite.ops.helpers.shape_rules import no_outputs

_WHY_HOST: Final = "it reads files"
Record = tuple[bytes, bytes]


def _lines(op: Operation, name: str) -> Iterator[Record]:
    skipped = op.get_attr("skip_header_lines")
    with open(name, "rb") as file:
        for number, line in enumerate(file, 1):
            if number > skipped:
                yield b"%s:%d" % (os.fsencode(name), number), line.removesuffix(b"\n").removesuffix(b"\r")


def _whole(op: Operation, name: str) -> Iterator[Record]:
    yield os.fsencode(name), _contents(name)


def _contents(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def _names(op: Operation, name: str) -> Iterator[Record]:
    yield os.fsencode(name), os.fsencode(name)


def _records(op: Operation, name: str) -> Iterator[Record]:
    from xlalite.files.records import tf_record_iterator  # few programs read such files

    offset = 0
    for record in tf_record_iterator(name, op.get_attr("compression_type")):
        yield b"%s:%d" % (os.fsencode(name), offset), record
        offset += 16 + len(record)


def _fixed(op: Operation, name: str) -> Iterator[Record]:
    size, hop = op.get_attr("record_bytes"), op.get_attr("hop_bytes") or op.get_attr("record_bytes")
    data = _contents(name)
    body = data[op.get_attr("header_bytes") : max(0, len(data) - op.get_attr("footer_bytes"))]
    if hop == size and len(body) % size:
        raise InvalidArgumentError(None, op, f"{name}: {len(body)} bytes are no whole number of records of {size}")
    for number, start in enumerate(range(0, len(body) - size + 1, hop)):
        yield b"%s:%d" % (os.fsencode(name), number), body[start : start + size]


class _Reader:
    """Where a reader stands in one session."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        self._lock = threading.Lock()
        self._name = ""
        sizes = {name: op.get_attr(name) for name in _ATTRS.get(op.type, {}) if name.endswith("_bytes")}
        if any(size < (name == "record_bytes") for name, size in sizes.items()):
            raise InvalidArgumentError(None, op, f"records have one byte at least, nothing has less than 0: {sizes}")
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._current: Iterator[Record] | None = None
        self.records = self.files = 0

    def read(self, queue: Queue) -> Record:
        """The next record of the file, or the first one of the next file."""
        with self._lock:
            while True:
                if self._current is None:
                    if queue.component_types != (string,):
                        raise InvalidArgumentError(None, self._op, "a reader takes names of files out of its queue")
                    ((name,),) = queue.dequeue(1)
                    self._name = file_name(self._op, name)
                    self._current = _KINDS[self._op.type](self._op, self._name)
                try:
                    with translated_errors(self._name):
                        record = next(self._current, None)
                except OpError:
                    self._current = None
                    raise
                if record is not None:
                    self.records += 1
                    return record
                self._current = None
                self.files += 1


def _made(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [handle_of(context.state(op, lambda: _Reader(op)))]


_KINDS: Final[dict[str, Callable[[Operation, str], Iterator[Record]]]] = {
    "FixedLengthRecordReaderV2": _fixed,
    "IdentityReaderV2": _names,
    "TFRecordReaderV2": _records,
    "TextLineReaderV2": _lines,
    "WholeFileReaderV2": _whole,
}
_ATTRS: Final[dict[str, dict[str, Any]]] = {
    "FixedLengthRecordReaderV2": {"header_bytes": 0, "record_bytes": ..., "footer_bytes": 0, "hop_bytes": 0},
    "TFRecordReaderV2": {"compression_type": ""},
    "TextLineReaderV2": {"skip_header_lines": 0},
}
for _name in _KINDS:
    _attrs = _ATTRS.get(_name, {})
    declare_on_host(
        _name,
        (),
        one_handle,
        _made,
        _WHY_HOST,
        attrs=tuple(_attrs),
        defaults={key: value for key, value in _attrs.items() if value is not ...},
        is_stateful=True,
    )


def _reader(op: Operation, handle: HostValue) -> _Reader:
    return object_of(op, handle, _Reader, "reader")


def _scalars(op: Operation) -> Sequence[OutputType]:
    return [(string, TensorShape(()))] * 2


def _rows(op: Operation) -> Sequence[OutputType]:
    return [(string, TensorShape([None]))] * 2


def _read(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    record = _reader(op, inputs[0]).read(queue_of(op, inputs[1]))
    return [np.array(part, object) for part in record]


def _read_up_to(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    found: list[Record] = []
    try:
        while len(found) < int(np.asarray(inputs[2])):
            found.append(_reader(op, inputs[0]).read(queue_of(op, inputs[1])))
    except OutOfRangeError:
        if not found:
            raise
    return [texts_array([record[place] for record in found]) for place in range(2)]


def _count(kind: str) -> Any:
    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        return [np.asarray(getattr(_reader(op, inputs[0]), kind), np.int64)]

    return kernel


def _reset(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    _reader(op, inputs[0]).reset()
    return ()


def _number(op: Operation) -> Sequence[OutputType]:
    return [(int64, TensorShape(()))]


_OF_READER: Final = ("reader_handle",)
_OF_BOTH: Final = (*_OF_READER, "queue_handle")
declare_on_host("ReaderReadV2", _OF_BOTH, _scalars, _read, _WHY_HOST, is_stateful=True)
declare_on_host("ReaderReadUpToV2", (*_OF_BOTH, "num_records"), _rows, _read_up_to, _WHY_HOST, is_stateful=True)
declare_on_host("ReaderNumRecordsProducedV2", _OF_READER, _number, _count("records"), _WHY_HOST, is_stateful=True)
declare_on_host("ReaderNumWorkUnitsCompletedV2", _OF_READER, _number, _count("files"), _WHY_HOST, is_stateful=True)
declare_on_host("ReaderResetV2", _OF_READER, no_outputs, _reset, _WHY_HOST, is_stateful=True)
