"""Readers of files whose names come out of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.queues import QueueBase
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation


class ReaderBase:
    """Gives keys and values, record by record.

    Attributes:
        reader_ref: What stands for the reader in the graph.
    """

    op_type: ClassVar[str]

    def __init__(self, name: str | None = None, attrs: Mapping[str, Any] | None = None) -> None:
        self.reader_ref: Tensor = node(self.op_type, (), attrs, name)

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The key and the value of the next record."""
        key, value = operation("ReaderReadV2", [self.reader_ref, _handle(queue)], None, name).outputs
        return key, value

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The keys and the values of the next records; fewer at the end."""
        inputs = [self.reader_ref, _handle(queue), convert_to_tensor(num_records, int64)]
        keys, values = operation("ReaderReadUpToV2", inputs, None, name).outputs
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records were read."""
        return node("ReaderNumRecordsProducedV2", [self.reader_ref], None, name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files were read to their ends."""
        return node("ReaderNumWorkUnitsCompletedV2", [self.reader_ref], None, name)

    def reset(self, name: str | None = None) -> Operation:
        """An operation that begins anew."""
        return operation("ReaderResetV2", [self.reader_ref], None, name)


def _handle(queue: Any) -> Tensor:
    return queue.queue_ref if isinstance(queue, QueueBase) else convert_to_tensor(queue)


class WholeFileReader(ReaderBase):
    """Each file is a record."""

    op_type = "WholeFileReaderV2"

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class IdentityReader(ReaderBase):
    """Each name is a record; no file is read."""

    op_type = "IdentityReaderV2"

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class TextLineReader(ReaderBase):
    """Each line is a record, but for those at the head."""

    op_type = "TextLineReaderV2"

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(name, {"skip_header_lines": skip_header_lines or 0})


class FixedLengthRecordReader(ReaderBase):
    """Records of a number of bytes, between a header and a footer."""

    op_type = "FixedLengthRecordReaderV2"

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        attrs = {
            "record_bytes": record_bytes,
            "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
            "hop_bytes": hop_bytes or 0,
        }
        super().__init__(name, attrs)


class TFRecordReader(ReaderBase):
    """The records of TFRecord files."""

    op_type = "TFRecordReaderV2"

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        from xlalite.files.records import compression_name  # few programs read such files

        super().__init__(name, {"compression_type": compression_name(options)})
