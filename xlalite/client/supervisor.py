"""`tf.train.Supervisor`: a session with threads that save checkpoints and summaries while a program trains."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xlalite.client.config import ConfigProto
from xlalite.client.session import Session
from xlalite.files.checkpoint_state import latest_checkpoint
from xlalite.files.events import FileWriter
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.messages.classes import CLASSES
from xlalite.ops.functions.control_flow import group
from xlalite.ops.training import summary
from xlalite.ops.training.coordinator import Coordinator, LooperThread
from xlalite.ops.training.global_step import get_global_step
from xlalite.ops.training.queue_runner import start_queue_runners
from xlalite.ops.training.saver import Saver
from xlalite.ops.training.variable import global_variables_initializer, local_variables_initializer

_DEFAULT: Any = object()
"""What is left to the supervisor; None says that there shall be nothing."""


class Supervisor:
    """Gives the variables of a graph their values, and keeps checkpoints and summaries of them in a folder.

    Attributes:
        coord: The coordinator of its threads.
        graph: The graph.
        saver: What saves; None for nothing.
        summary_op: What the summaries are; None for nothing.
        summary_writer: Writes them; None without a folder.
        global_step: The number of steps; None if the graph has none.
        save_path: Prefix of the checkpoints; None without a folder.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True,
        init_op: Any = _DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = _DEFAULT,
        logdir: str | os.PathLike[str] | None = None,
        summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = _DEFAULT,
        init_fn: Callable[[Session], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        """Makes what is missing, then closes the graph against more operations, as programs expect.

        Args:
            graph: The graph; the default one.
            ready_op: Accepted for compatibility.
            ready_for_local_init_op: Accepted for compatibility.
            is_chief: Accepted for compatibility: there is one process.
            init_op: Gives variables their first values when there is no checkpoint.
            init_feed_dict: What is fed then.
            local_init_op: Gives local variables their values.
            logdir: The folder of checkpoints and events; without one nothing is written.
            summary_op: The summaries; all of the graph merged, by default.
            saver: What saves checkpoints.
            global_step: The number of steps.
            save_summaries_secs: How often summaries are written; 0 for never.
            save_model_secs: How often checkpoints are written; 0 for never.
            recovery_wait_secs: Accepted for compatibility.
            stop_grace_secs: How long threads may take to end.
            checkpoint_basename: How checkpoints are called.
            session_manager: Accepted for compatibility.
            summary_writer: Writes the summaries.
            init_fn: Called with the session after `init_op`.
            local_init_run_options: Accepted for compatibility.
        """
        self.graph = graph or get_default_graph()
        self.coord = Coordinator()
        folder = None if logdir is None else os.fspath(logdir)
        with self.graph.as_default():
            self._init_op = self._given(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = self._given(local_init_op, GraphKeys.LOCAL_INIT_OP, _local_init)
            self.summary_op = self._given(summary_op, GraphKeys.SUMMARY_OP, summary.merge_all)
            self.saver: Any = self._given(saver, GraphKeys.SAVERS, lambda: Saver(allow_empty=True))
            self.global_step = get_global_step() if global_step is _DEFAULT else global_step
        self._folder, self._init_feeds, self._init_fn = folder, init_feed_dict, init_fn
        self._summary_seconds, self._model_seconds = save_summaries_secs, save_model_secs
        self._grace_seconds = stop_grace_secs
        self.save_path = None if folder is None else os.path.join(folder, checkpoint_basename)
        self.summary_writer: Any = summary_writer
        if summary_writer is _DEFAULT:
            self.summary_writer = None if folder is None else FileWriter(folder)
        self._threads: list[LooperThread] = []
        self.graph.finalize()

    def _given(self, given: Any, collection: Any, make: Callable[[], Any]) -> Any:
        if given is not _DEFAULT:
            return given
        held = self.graph.get_collection(collection)
        return held[0] if held else make()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session with values: from the last checkpoint of the folder, or the first ones."""
        self.coord.clear_stop()
        session = Session(master, graph=self.graph, config=config)
        path = None if self._folder is None or self.saver is None else latest_checkpoint(self._folder)
        if path is not None:
            self.saver.restore(session, path)
        else:
            if self._init_op is not None:
                session.run(self._init_op, self._init_feeds)
            if self._init_fn is not None:
                self._init_fn(session)
        if self._local_init_op is not None:
            session.run(self._local_init_op)
        if start_standard_services:
            if self.summary_writer is not None:
                self.summary_writer.add_graph(self.graph)
            self.start_standard_services(session)
        self.start_queue_runners(session)
        return session

    PrepareSession = prepare_or_wait_for_session

    def start_standard_services(self, sess: Session) -> list[LooperThread]:
        """Starts the threads that save, if there is a folder."""
        if self._folder is None:
            return []
        started = []
        if self.summary_op is not None and self._summary_seconds:
            started.append(self.loop(self._summary_seconds, self._write_summaries, (sess,)))
        if self.saver is not None and self._model_seconds:
            started.append(self.loop(self._model_seconds, self._save, (sess,)))
        return started

    StartStandardServices = start_standard_services

    def start_queue_runners(self, sess: Session, queue_runners: Sequence[Any] | None = None) -> list[Any]:
        """Starts the threads that fill queues: those given, or those of the graph."""
        if queue_runners is None:
            with self.graph.as_default():
                return list(start_queue_runners(sess, self.coord))
        return [
            thread
            for each in queue_runners
            for thread in each.create_threads(sess, self.coord, daemon=True, start=True)
        ]

    StartQueueRunners = start_queue_runners

    def loop(
        self, timer_interval_secs: float | None, target: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> LooperThread:
        """Calls a function every so often in a thread, until it is time to stop."""
        thread = LooperThread(self.coord, timer_interval_secs, target, args, kwargs)
        self._threads.append(thread)
        thread.start()
        return thread

    Loop = loop

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """A session for a `with` block, after which its threads end."""
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            with session.as_default():
                yield session
        except BaseException as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                session.close()

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Ends the threads, and raises what made them stop."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, self._grace_seconds, ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                status = CLASSES["SessionLog"](status=CLASSES["SessionLog"].STOP)
                self.summary_writer.add_session_log(status)
                self.summary_writer.close()

    Stop = stop

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads to stop."""
        self.coord.request_stop(ex)

    RequestStop = request_stop

    def should_stop(self) -> bool:
        """Whether it is time to stop."""
        return self.coord.should_stop()

    ShouldStop = should_stop

    def stop_on_exception(self) -> Any:
        """A `with` block whose errors stop the threads."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until it is time to stop."""
        self.coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary that the program has made."""
        if self.summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        self.summary_writer.add_summary(summary, self._step(sess) if global_step is None else global_step)

    SummaryComputed = summary_computed

    def _step(self, session: Session) -> int | None:
        if self.global_step is None:
            return None
        return int(session.run(self.global_step))

    def _write_summaries(self, session: Session) -> None:
        self.summary_writer.add_summary(session.run(self.summary_op), self._step(session))
        self.summary_writer.flush()

    def _save(self, session: Session) -> None:
        self.saver.save(session, self.save_path, global_step=self.global_step)


def _local_init() -> Any:
    graph = get_default_graph()
    return group(local_variables_initializer(), *graph.get_collection(GraphKeys.TABLE_INITIALIZERS))
