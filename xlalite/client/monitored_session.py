"""Sessions that begin from a checkpoint, call hooks around their steps and know when to stop."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from xlalite.client.config import ConfigProto
from xlalite.client.hooks import (
    CheckpointSaverHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    SummarySaverHook,
)
from xlalite.client.session import Session
from xlalite.files.checkpoint_state import latest_checkpoint
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import OutOfRangeError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.ops.functions.control_flow import group
from xlalite.ops.training.coordinator import Coordinator
from xlalite.ops.training.queue_runner import start_queue_runners
from xlalite.ops.training.saver import Saver
from xlalite.ops.training.variable import global_variables_initializer, local_variables_initializer


class Scaffold:
    """What a session needs of the graph; what is not given is made when the session is."""

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
    ) -> None:
        """Operations that give variables their first values, and a saver."""
        given = {
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "init_fn": init_fn,
            "local_init_op": local_init_op,
            "summary_op": summary_op,
            "saver": saver,
        }
        taken = {name: getattr(copy_from_scaffold, name, None) if v is None else v for name, v in given.items()}
        self.init_op: Any = taken["init_op"]
        self.init_feed_dict: Mapping[Any, Any] | None = taken["init_feed_dict"]
        self.init_fn: Any = taken["init_fn"]
        self.local_init_op: Any = taken["local_init_op"]
        self.summary_op: Any = taken["summary_op"]
        self.saver: Saver | None = taken["saver"]

    def finalize(self) -> Scaffold:
        """Makes what is missing."""
        graph = get_default_graph()
        if self.init_op is None:
            self.init_op = global_variables_initializer()
        if self.local_init_op is None:
            listed = graph.get_collection(GraphKeys.LOCAL_INIT_OP)
            self.local_init_op = listed[0] if listed else group(local_variables_initializer(), *_tables())
        if self.saver is None:
            found = graph.get_collection(GraphKeys.SAVERS)
            self.saver = found[0] if found else Saver(allow_empty=True)
        return self


class MonitoredSession:
    """A session with hooks: use it in a `with` block, and step while not `should_stop()`."""

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        """Makes the session and gives variables their values."""
        creator = session_creator or ChiefSessionCreator()
        self._hooks = list(hooks or ())
        self._coordinator = Coordinator()
        self._grace_seconds = stop_grace_period_secs
        self._stops = False
        self._graph = get_default_graph()
        for hook in self._hooks:
            hook.begin()
        self._session: Session | None = creator.create_session()
        start_queue_runners(self._session, self._coordinator)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)
        self._entered = ExitStack()

    @property
    def graph(self) -> Any:
        """The graph."""
        return self._graph

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step, with what the hooks want besides."""
        session = self._open()
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), session)
        wanted = {hook: asked for hook in self._hooks if (asked := hook.before_run(context)) is not None}
        feeds = dict(feed_dict or {})
        for asked in wanted.values():
            feeds.update(asked.feed_dict or {})
        everything = {"caller": fetches, "hooks": [asked.fetches for asked in wanted.values()]}
        results = session.run(everything, feeds or None, options, run_metadata)
        given = dict(zip(wanted, results["hooks"], strict=True))
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(given.get(hook), options, run_metadata))
        self._stops = self._stops or context.stop_requested
        return results["caller"]

    def run_step_fn(self, step_fn: Any) -> Any:
        """What `step_fn(step_context)` gives; the context has `session` and `run_with_hooks`."""
        return step_fn(StepContext(self._open(), self))

    def should_stop(self) -> bool:
        """Whether training is over."""
        return self._session is None or self._stops or self._coordinator.should_stop()

    def request_stop(self) -> None:
        """Makes this the last step."""
        self._stops = True

    def close(self) -> None:
        """Ends as a `with` block without an error does."""
        self._close(None)

    def __enter__(self) -> MonitoredSession:
        self._entered.enter_context(self._graph.as_default())
        self._entered.enter_context(self._open().as_default())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # The end of the input is how a pipeline says that training is over.
        clean = error is None or isinstance(error, OutOfRangeError | StopIteration)
        self._close(None if clean else error)
        self._entered.close()
        return clean

    def _open(self) -> Session:
        if self._session is None:
            raise RuntimeError("Run called even after should_stop requested.")
        return self._session

    def _close(self, error: BaseException | None) -> None:
        if self._session is None:
            return
        try:
            if error is None:
                for hook in self._hooks:
                    hook.end(self._session)
        finally:
            self._coordinator.request_stop()
            self._session.close()
            self._session = None
            self._coordinator.join(stop_grace_period_secs=self._grace_seconds, ignore_live_threads=True)


class StepContext:
    """What a step function works with.

    Attributes:
        session: The session, without hooks.
    """

    def __init__(self, session: Session, monitored: MonitoredSession) -> None:
        self.session = session
        self._monitored = monitored

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """A step with hooks."""
        return self._monitored.run(*args, **kwargs)

    def request_stop(self) -> None:
        """Makes this the last step."""
        self._monitored.request_stop()


SingularMonitoredSession = MonitoredSession


class ChiefSessionCreator:
    """Makes a session whose variables come from the latest checkpoint of a folder, or their first values."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        """Looks for checkpoints in `checkpoint_dir`, or takes the one that is named."""
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._folder, self._path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        session = Session(self._master, config=self._config)
        path = self._path or (latest_checkpoint(self._folder) if self._folder is not None else None)
        assert scaffold.saver is not None, "finalize makes it"
        if path is not None:
            scaffold.saver.restore(session, path)
        else:
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None:
                scaffold.init_fn(scaffold, session) if _takes_two(scaffold.init_fn) else scaffold.init_fn(session)
        session.run(scaffold.local_init_op)
        return session


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = None,
    save_summaries_steps: int | None = None,
    save_summaries_secs: float | None = None,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = None,
    summary_dir: str | os.PathLike[str] | None = None,
) -> MonitoredSession:
    """A `MonitoredSession` that saves checkpoints and summaries in a folder: every ten minutes and hundred steps."""
    made = scaffold or Scaffold()
    everything = [*(hooks or ()), *(chief_only_hooks or ())]
    folder = summary_dir or checkpoint_dir
    if folder is not None:
        if log_step_count_steps:
            everything.append(StepCounterHook(log_step_count_steps, output_dir=os.fspath(folder)))
        if save_summaries_steps is None and save_summaries_secs is None:
            save_summaries_steps = 100
        if save_summaries_steps or save_summaries_secs:
            everything.append(SummarySaverHook(save_summaries_steps, save_summaries_secs, os.fspath(folder)))
    if checkpoint_dir is not None:
        if save_checkpoint_secs is None and save_checkpoint_steps is None:
            save_checkpoint_secs = 600
        if save_checkpoint_secs or save_checkpoint_steps:
            everything.append(
                CheckpointSaverHook(checkpoint_dir, save_checkpoint_secs, save_checkpoint_steps, scaffold=made)
            )
    return MonitoredSession(ChiefSessionCreator(made, master, config, checkpoint_dir), everything)


def _takes_two(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_argcount - hasattr(function, "__self__") == 2


def _tables() -> list[Any]:
    """The operations that fill tables."""
    return list(get_default_graph().get_collection("table_initializer"))
