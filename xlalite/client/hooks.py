"""What happens around the steps of a `MonitoredSession`: stopping, saving, logging, summaries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from xlalite import program_logging as logging
from xlalite.files.events import FileWriter, FileWriterCache
from xlalite.framework.graph.errors import GraphError
from xlalite.hlo.records import dataclass
from xlalite.messages.classes import CLASSES
from xlalite.ops.training.global_step import get_global_step
from xlalite.ops.training.saver import Saver
from xlalite.ops.training.summary import merge_all


@dataclass
class SessionRunArgs:
    """What a hook wants a step to run besides."""

    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: Any = None


@dataclass
class SessionRunContext:
    """A step that is about to run."""

    original_args: SessionRunArgs
    session: Any
    stop_requested: bool = field(default=False)

    def request_stop(self) -> None:
        """Makes this the last step."""
        self.stop_requested = True


@dataclass
class SessionRunValues:
    """What a step gave a hook."""

    results: Any
    options: Any = None
    run_metadata: Any = None


class SessionRunHook:
    """Called around steps. Subclasses override what they need."""

    def begin(self) -> None:
        """Before the session is made; the last time that the graph may change."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """When the session is there and its variables have values."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before a step; what it should run besides."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """After a step."""

    def end(self, session: Any) -> None:
        """After the last step, unless an error ended it."""


class SecondOrStepTimer:
    """Says when it is time again: every so many seconds or steps."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        """Takes exactly one of the two.

        Raises:
            GraphError: neither or both are given.
        """
        if (every_secs is None) == (every_steps is None):
            raise GraphError("exactly one of every_secs and every_steps is needed")
        self._seconds, self._steps = every_secs, every_steps
        self._last: tuple[float, int] | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is time at a step."""
        if self._last is None:
            return True
        if step == self._last[1]:
            return False
        if self._seconds is not None:
            return time.time() >= self._last[0] + self._seconds
        return step >= self._last[1] + (self._steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it was done; seconds and steps since the last time."""
        now, before = time.time(), self._last
        self._last = (now, step)
        return (None, None) if before is None else (now - before[0], step - before[1])

    def last_triggered_step(self) -> int | None:
        """The step at which it was done last."""
        return None if self._last is None else self._last[1]


class StopAtStepHook(SessionRunHook):
    """Stops after some steps, or at a step."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        """Takes exactly one of the two.

        Raises:
            GraphError: neither or both are given.
        """
        if (num_steps is None) == (last_step is None):
            raise GraphError("StopAtStepHook: exactly one of num_steps and last_step is needed")
        self._count, self._last = num_steps, last_step

    def begin(self) -> None:
        """Finds the counter."""
        self._step = _require_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Learns where the counter stands."""
        if self._count is not None:
            self._last = int(session.run(self._step)) + self._count

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the counter."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Stops when it is time."""
        # The step may have counted before or after the counter was read.
        last, seen = self._last or 0, int(run_values.results)
        if seen + 1 >= last and int(run_context.session.run(self._step)) >= last:
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """The loss became NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops, or fails, when the loss is NaN."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        """Watches a tensor."""
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if np.isnan(run_values.results).any():
            if self._fails:
                raise NanLossDuringTrainingError
            logging.warn("NaN loss: stopping")
            run_context.request_stop()


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every so often."""

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        """`tensors` by the names under which they are logged, or their names in the graph."""
        named = (
            tensors if isinstance(tensors, Mapping) else {str(getattr(each, "name", each)): each for each in tensors}
        )
        self._tensors, self._formatter, self._at_end = dict(named), formatter, at_end
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        self._timer = None if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)

    def begin(self) -> None:
        """Counts steps from 0."""
        self._count = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the tensors when it is time."""
        self._logs = self._timer is not None and self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._tensors) if self._logs else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs them."""
        if self._logs:
            self._log(run_values.results)
        self._count += 1

    def end(self, session: Any) -> None:
        """Logs once more if that was asked for."""
        if self._at_end:
            self._log(session.run(self._tensors))

    def _log(self, values: Mapping[str, Any]) -> None:
        seconds = None if self._timer is None else self._timer.update_last_triggered_step(self._count)[0]
        text = self._formatter(values) if self._formatter else ", ".join(f"{k} = {v}" for k, v in values.items())
        logging.info(text if seconds is None or self._formatter else f"{text} ({seconds:.3f} sec)")


class CheckpointSaverListener:
    """What is called around the saving of checkpoints; subclasses say what to do."""

    def begin(self) -> None:
        """Before the session is made."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Before each checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> None:
        """After each checkpoint."""

    def end(self, session: Any, global_step_value: int) -> None:
        """After the last step."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint every so often, at the beginning and at the end."""

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
    ) -> None:
        """Saves with the given saver, the scaffold's or one of all variables."""
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._saver, self._scaffold = saver, scaffold
        self._listeners = list(listeners or ())

    def listen(self, listeners: Any) -> None:
        """Adds listeners; None adds none."""
        self._listeners += listeners or ()

    def begin(self) -> None:
        """Makes the saver, if need be."""
        for listener in self._listeners:
            listener.begin()
        self._step = _require_step()
        self._saver = self._saver or getattr(self._scaffold, "saver", None) or Saver(allow_empty=True)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Saves where training begins."""
        self._save(session, int(session.run(self._step)))

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the counter."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is time."""
        if self._timer.should_trigger_for_step(int(run_values.results) + 1):
            step = int(run_context.session.run(self._step))
            if self._timer.should_trigger_for_step(step):
                self._save(run_context.session, step)

    def end(self, session: Any) -> None:
        """Saves the last step."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> None:
        assert self._saver is not None, "begin makes it"
        for listener in self._listeners:
            listener.before_save(session, step)
        self._saver.save(session, self._path, global_step=step)
        for listener in self._listeners:
            listener.after_save(session, step)
        self._timer.update_last_triggered_step(step)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so often."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        """Writes `summary_op`, by default all collected summaries."""
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._writer, self._folder, self._summary = summary_writer, output_dir, summary_op

    def begin(self) -> None:
        """Opens the file."""
        self._step = _require_step()
        self._summary = self._summary if self._summary is not None else merge_all()
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the counter, and the summaries when it is time."""
        last = self._timer.last_triggered_step()
        self._asks = last is None or self._timer.should_trigger_for_step(self._next)
        wanted = {"step": self._step}
        if self._asks and self._summary is not None:
            wanted["summary"] = self._summary
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        step = int(run_values.results["step"])
        self._next = step + 1
        if self._asks and self._writer is not None and "summary" in run_values.results:
            self._writer.add_summary(run_values.results["summary"], step)
            self._timer.update_last_triggered_step(step)

    def end(self, session: Any) -> None:
        """Makes all that was written visible."""
        if self._writer is not None:
            self._writer.flush()


class StepCounterHook(SessionRunHook):
    """Logs and writes how many steps run in a second."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
    ) -> None:
        """Counts every so often."""
        self._timer = SecondOrStepTimer(every_n_secs, None if every_n_secs is not None else every_n_steps)
        self._writer, self._folder = summary_writer, output_dir

    def begin(self) -> None:
        """Opens the file."""
        self._step = _require_step()
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the counter."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Counts when it is time."""
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds and steps:
                rate = steps / seconds
                logging.info("global_step/sec: %g", rate)
                if self._writer is not None:
                    value = {"tag": "global_step/sec", "simple_value": rate}
                    self._writer.add_summary(CLASSES["Summary"](value=[value]), step)


class FeedFnHook(SessionRunHook):
    """Feeds what a function gives, in every step."""

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        """Asks the function before each step."""
        self._function = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Feeds."""
        return SessionRunArgs([], self._function())


class FinalOpsHook(SessionRunHook):
    """Runs something after the last step.

    Attributes:
        final_ops_values: What it gave.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None) -> None:
        """Runs `final_ops`."""
        self._fetches, self._feeds = final_ops, final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Any) -> None:
        """Runs it."""
        self.final_ops_values = session.run(self._fetches, self._feeds)


def _require_step() -> Any:
    step = get_global_step()
    if step is None:
        raise GraphError("a global step is needed: make it with train.get_or_create_global_step()")
    return step
