"""Event files, which TensorBoard reads: records of `Event` messages. `FileWriter` is `tf.summary.FileWriter`."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from xlalite.files.records import TFRecordWriter, tf_record_iterator
from xlalite.messages.classes import CLASSES

_VERSION = "brain.Event:2"


class FileWriter:
    """Appends events to a new file of a folder; safe for several threads."""

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        """Makes the file.

        Args:
            logdir: The folder, which is made if needed.
            graph: A graph to show.
            max_queue: Accepted for compatibility: events go to the file at once.
            flush_secs: After how many seconds, at the latest, others see what was written.
            graph_def: A graph to show, as a `GraphDef`.
            filename_suffix: The end of the file's name.
            session: Accepted for compatibility.
        """
        self._logdir = os.fspath(logdir)
        self._suffix = filename_suffix or ""
        self._flush_secs = flush_secs
        self._lock = threading.Lock()
        self._writer: TFRecordWriter | None = None
        self.reopen()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a `Summary`, or the bytes of one."""
        value = CLASSES["Summary"].FromString(bytes(summary)) if isinstance(summary, bytes) else summary
        self.add_event(CLASSES["Event"](wall_time=time.time(), summary=value), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph, or a `GraphDef`."""
        shown = graph_def if graph_def is not None else graph.as_graph_def()
        self.add_event(CLASSES["Event"](wall_time=time.time(), graph_def=shown.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a `MetaGraphDef`."""
        data = meta_graph_def.SerializeToString()
        self.add_event(CLASSES["Event"](wall_time=time.time(), meta_graph_def=data), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a `SessionLog`."""
        self.add_event(CLASSES["Event"](wall_time=time.time(), session_log=session_log), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Accepted for compatibility: traces are written as timelines."""

    def add_event(self, event: Any, global_step: Any = None) -> None:
        """Adds an `Event`."""
        if global_step is not None:
            event.step = int(global_step)
        with self._lock:
            if self._writer is None:
                return
            self._writer.write(event.SerializeToString())
            if time.monotonic() >= self._next_flush:
                self._flush()

    def flush(self) -> None:
        """Makes what was written visible to others."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Finishes the file; what is added afterwards is lost."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def reopen(self) -> None:
        """Goes on with a new file after `close`."""
        with self._lock:
            if self._writer is not None:
                return
            self._writer = TFRecordWriter(self._new_path())
            self._writer.write(CLASSES["Event"](wall_time=time.time(), file_version=_VERSION).SerializeToString())
            self._flush()

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
        self._next_flush = time.monotonic() + self._flush_secs

    def _new_path(self) -> Path:
        stem = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        path, number = Path(self._logdir, stem + self._suffix), 0
        while path.exists():
            number += 1
            path = Path(self._logdir, f"{stem}.{number}{self._suffix}")
        return path

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class FileWriterCache:
    """One writer for each folder."""

    _writers: dict[str, FileWriter] = {}  # noqa: RUF012  # shared on purpose

    @classmethod
    def get(cls, logdir: str | os.PathLike[str]) -> FileWriter:
        """The writer of a folder, made at its first use."""
        folder = os.fspath(logdir)
        if folder not in cls._writers:
            cls._writers[folder] = FileWriter(folder)
        return cls._writers[folder]

    @classmethod
    def clear(cls) -> None:
        """Closes all writers and forgets them."""
        for writer in cls._writers.values():
            writer.close()
        cls._writers.clear()


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The events of a file."""
    return (CLASSES["Event"].FromString(record) for record in tf_record_iterator(path))
