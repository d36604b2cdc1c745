"""`tf.estimator.train_and_evaluate`: training that is evaluated where checkpoints are saved, and then exported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlalite import program_logging as logging
from xlalite.client.estimator import Estimator
from xlalite.client.estimator_spec import EvalSpec, ServingInputReceiver, TrainSpec
from xlalite.client.hooks import CheckpointSaverListener, SecondOrStepTimer


class LatestExporter:
    """Exports the model after each evaluation; of the folders only the last few stay."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        """What the exported model takes, and how many exports stay; None for all."""
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number")
        self.name = name
        self._receiver, self._assets, self._as_text = serving_input_receiver_fn, assets_extra, as_text
        self._keep = exports_to_keep

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports a checkpoint into a new folder, whose path it gives."""
        made = estimator.export_savedmodel(
            export_path, self._receiver, self._assets, self._as_text, checkpoint_path=checkpoint_path
        )
        folders = sorted((each for each in os.listdir(export_path) if each.isdigit()), key=int)
        for old in folders[: -self._keep] if self._keep else ():
            shutil.rmtree(os.path.join(export_path, old))
        return made


class FinalExporter(LatestExporter):
    """Exports the model after the last evaluation."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Any = None,
        as_text: bool = False,
    ) -> None:
        """What the exported model takes."""
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep=None)

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str | None,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports if this is the last time; gives the path, or None."""
        if not is_the_final_export:
            return None
        return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)


class _Evaluation(CheckpointSaverListener):
    """Evaluates what was saved, not more often than the specification allows, and at the end.

    Attributes:
        results: The last metrics.
        exports: What the exporters gave after them.
    """

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._spec, self._max_steps = estimator, spec, max_steps
        self._timer = SecondOrStepTimer(every_secs=spec.throttle_secs)
        self._is_beginning = True
        self.results: dict[str, Any] | None = None
        self.exports: list[Any] = []

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Evaluates, unless nothing has been trained yet or the last time is not long ago."""
        is_beginning, self._is_beginning = self._is_beginning, False
        if not is_beginning and self._timer.should_trigger_for_step(global_step_value):
            self.evaluate(global_step_value)

    def end(self, session: Any, global_step_value: int) -> None:
        """Evaluates the last step, if that was not done."""
        if global_step_value != self._timer.last_triggered_step():
            self.evaluate(global_step_value)

    def evaluate(self, step: int) -> None:
        """Evaluates the last checkpoint, and hands it to the exporters."""
        self._timer.update_last_triggered_step(step)
        estimator, spec = self._estimator, self._spec
        self.results = estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=spec.name)
        is_last = self._max_steps is not None and self.results["global_step"] >= self._max_steps
        self.exports = []
        for exporter in _exporters(spec.exporters):
            folder = os.path.join(estimator.model_dir, "export", exporter.name)
            path = estimator.latest_checkpoint()
            os.makedirs(folder, exist_ok=True)
            self.exports.append(exporter.export(estimator, folder, path, self.results, is_last))
            logging.info("Exported by %s: %s.", exporter.name, self.exports[-1])


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> tuple[Any, list[Any]]:
    """Trains to the last step; gives the last metrics, and what the exporters gave.

    The model is evaluated when a checkpoint was saved and `throttle_secs` have gone by, and at the end. There is only
    this computer, so that training waits meanwhile.
    """
    evaluation = _Evaluation(estimator, eval_spec, train_spec.max_steps)
    estimator.train(
        train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=[evaluation]
    )
    if evaluation.results is None:  # it was trained before
        evaluation.evaluate(-1)
    return evaluation.results, evaluation.exports


def _exporters(given: Any) -> Sequence[Any]:
    return () if given is None else given if isinstance(given, list | tuple) else (given,)
