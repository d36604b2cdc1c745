"""`train.QueueRunner`: threads that fill a queue until the input ends or a coordinator says to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.default_session import get_default_session
from xlalite.framework.graph.errors import CancelledError, OutOfRangeError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.operation import Operation
from xlalite.messages.classes import CLASSES


class QueueRunner:
    """Operations that add to a queue, each for a thread of its own.

    Attributes:
        name: The name of the queue.
        enqueue_ops: The operations.
        close_op: Closes the queue when all of them are at their end.
        cancel_op: Closes it and cancels what waits.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Operation] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[BaseException], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        """Runs the operations on a queue, or those that a `QueueRunnerDef` names."""
        self._ends = queue_closed_exception_types or (OutOfRangeError, CancelledError)
        self._lock = threading.Lock()
        self._running: dict[Any, int] = {}
        self._raised: list[BaseException] = []
        if queue_runner_def is not None:
            graph, prefix = get_default_graph(), f"{import_scope}/" if import_scope else ""
            given = queue_runner_def
            self.name = prefix + given.queue_name
            self.enqueue_ops = [graph.get_operation_by_name(prefix + each) for each in given.enqueue_op_name]
            self.close_op = graph.get_operation_by_name(prefix + given.close_op_name)
            self.cancel_op = graph.get_operation_by_name(prefix + given.cancel_op_name)
            return
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self.name = queue.name
        self.enqueue_ops = list(enqueue_ops)
        self.close_op = close_op or queue.close()
        self.cancel_op = cancel_op or queue.close(cancel_pending_enqueues=True)

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What went wrong in threads that had no coordinator."""
        return list(self._raised)

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """The threads for a session; none while those made before still run."""
        with self._lock:
            if self._running.get(sess):
                return []
            self._running[sess] = len(self.enqueue_ops)
            self._raised = []
        calls: list[Callable[[], None]] = [lambda op=op: self._run(sess, op, coord) for op in self.enqueue_ops]  # type: ignore[misc]  # a default binds now
        if coord is not None:
            calls.append(lambda: self._close_on_stop(sess, coord))
        threads = [
            threading.Thread(target=call, daemon=daemon, name=f"QueueRunnerThread-{self.name}") for call in calls
        ]
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The names of the operations, as a `QueueRunnerDef`."""
        return CLASSES["QueueRunnerDef"](
            queue_name=self.name,
            enqueue_op_name=[each.name for each in self.enqueue_ops],
            close_op_name=self.close_op.name,
            cancel_op_name=self.cancel_op.name,
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner of operations that the default graph has."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    def _run(self, sess: Any, enqueue: Operation, coord: Any) -> None:
        try:
            call = sess.make_callable(enqueue)
            while coord is None or not coord.should_stop():
                call()
        except self._ends:
            pass
        except Exception as error:
            if _is_of_closed_session(error):
                return
            if coord is not None:
                coord.request_stop(error)
            else:
                self._raised.append(error)
        finally:
            with self._lock:
                self._running[sess] -= 1
                is_last = not self._running[sess]
                if is_last:
                    del self._running[sess]
            if is_last:
                self._close(sess, self.close_op)

    def _close_on_stop(self, sess: Any, coord: Any) -> None:
        coord.wait_for_stop()
        self._close(sess, self.cancel_op)

    def _close(self, sess: Any, close: Operation) -> None:
        """Closes the queue; that it is closed already, or the session, is no error."""
        try:
            sess.run(close)
        except CancelledError:
            pass
        except Exception as error:
            if not _is_of_closed_session(error):
                self._raised.append(error)


def _is_of_closed_session(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and "closed Session" in str(error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Makes `start_queue_runners` start a runner too."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None, coord: Any = None, daemon: bool = True, start: bool = True, collection: Any = None
) -> list[threading.Thread]:
    """The threads that fill the queues of the graph.

    Raises:
        ValueError: there is no session.
    """
    session = sess or get_default_session()
    if session is None:
        raise ValueError("Cannot start queue runners: No default session is registered")
    runners = session.graph.get_collection(collection or GraphKeys.QUEUE_RUNNERS)
    return [
        thread for runner in runners for thread in runner.create_threads(session, coord, daemon=daemon, start=start)
    ]
