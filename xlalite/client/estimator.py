"""`tf.estimator.Estimator`: training, evaluation, prediction and export of a model that a function makes.

Each of them builds a graph of its own; what lasts is the folder of checkpoints and events.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite import program_logging as logging
from xlalite.client.estimator_spec import (
    EstimatorSpec,
    ModeKeys,
    PredictOutput,
    RunConfig,
    ServingInputReceiver,
    WarmStartSettings,
)
from xlalite.client.hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    NanTensorHook,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from xlalite.client.monitored_session import ChiefSessionCreator, MonitoredSession, Scaffold
from xlalite.client.session import Session
from xlalite.files.checkpoint_state import latest_checkpoint, load_checkpoint
from xlalite.files.events import FileWriterCache
from xlalite.framework.graph.errors import OutOfRangeError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.random_seed import set_random_seed
from xlalite.framework.structure import flatten
from xlalite.messages.classes import CLASSES
from xlalite.ops.data.dataset import Dataset
from xlalite.ops.training import metrics, summary
from xlalite.ops.training.checkpoint_init import init_from_checkpoint
from xlalite.ops.training.global_step import get_or_create_global_step
from xlalite.ops.training.saved_models import SavedModelBuilder, predict_signature_def
from xlalite.ops.training.saver import Saver
from xlalite.ops.training.variable import trainable_variables


class Estimator:
    """A model, its folder, and how to run it."""

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        warm_start_from: Any = None,
    ) -> None:
        """A model that is made anew for each use.

        Args:
            model_fn: Takes `features`, and of `labels`, `mode`, `params` and `config` those that it names; gives an
                `EstimatorSpec`.
            model_dir: Folder of checkpoints and events; a new one if neither it nor the configuration's is given.
            config: How to run.
            params: Handed to `model_fn` and input functions.
            warm_start_from: A checkpoint, or `WarmStartSettings`, that training begins with.
        """
        self._model_fn = model_fn
        self._config: RunConfig = config or RunConfig()
        folder = model_dir or self._config.model_dir or tempfile.mkdtemp()
        self._config = self._config.replace(model_dir=os.fspath(folder))
        self._params = dict(params or {})
        self._warm_start = warm_start_from

    @property
    def model_dir(self) -> str:
        """The folder."""
        return os.fspath(self._config.model_dir or "")

    @property
    def config(self) -> RunConfig:
        """How to run."""
        return self._config

    @property
    def params(self) -> dict[str, Any]:
        """A copy of the parameters."""
        return dict(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The model function with everything but features, labels and the mode."""
        return functools.partial(_call, self._model_fn, params=self.params, config=self.config)

    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint."""
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names in the last checkpoint."""
        return sorted(load_checkpoint(self.model_dir).get_variable_to_shape_map())

    def get_variable_value(self, name: str) -> Any:
        """A value of the last checkpoint."""
        return load_checkpoint(self.model_dir).get_tensor(name)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains on from the last checkpoint: `steps` more, up to `max_steps` in all, or until the input ends."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if max_steps is not None and self._step() >= max_steps:
            logging.info("Skipping training since max_steps has already saved.")
            return self
        with Graph().as_default():
            spec = self._build(input_fn, ModeKeys.TRAIN)
            if self._warm_start is not None:
                _warm_start(self._warm_start)
            listed = [*(hooks or ()), *(spec.training_hooks or ()), *(spec.training_chief_hooks or ())]
            if steps is not None or max_steps is not None:
                listed.append(StopAtStepHook(steps, max_steps))
            with self._training_session(spec, listed, saving_listeners) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
        logging.info("Loss for final step: %s.", loss)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics over `steps` batches, or all: those of the model, `loss` (their mean) and `global_step`."""
        with Graph().as_default():
            spec = self._build(input_fn, ModeKeys.EVAL)
            measured = dict(spec.eval_metric_ops or {})
            measured.setdefault("loss", metrics.mean(spec.loss))
            step = get_or_create_global_step()
            # Metrics of other kinds tell their parts themselves.
            pairs = {
                key: (each.result(), each.updates) if hasattr(each, "result") else each
                for key, each in measured.items()
            }
            updates = {key: update for key, (_, update) in pairs.items()}
            values = {key: value for key, (value, _) in pairs.items()}
            listed = [*(hooks or ()), *(spec.evaluation_hooks or ())]
            session = self._restored(spec, listed, checkpoint_path)
            with session:
                count = 0
                while not session.should_stop() and (steps is None or count < steps):
                    try:
                        session.run(updates)
                    except OutOfRangeError:
                        break
                    count += 1
                found, at = session.run_step_fn(lambda context: context.session.run((values, step)))
        results = {**found, "global_step": int(at)}
        self._write(results, os.path.join(self.model_dir, "eval" if name is None else f"eval_{name}"))
        logging.info(
            "Saving dict for global step %d: %s", at, ", ".join(f"{k} = {v}" for k, v in sorted(results.items()))
        )
        return results

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """What the model predicts, an example at a time, or a batch."""
        with Graph().as_default():
            spec = self._build(input_fn, ModeKeys.PREDICT)
            wanted = spec.predictions
            if predict_keys is not None:
                keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
                wanted = {key: value for key, value in wanted.items() if key in keys}
                if not wanted:
                    raise ValueError(
                        f"Expected to run at least one output from {keys}, provided {list(spec.predictions)}."
                    )
            session = self._restored(spec, [*(hooks or ()), *(spec.prediction_hooks or ())], checkpoint_path)
        with session:
            while not session.should_stop():
                try:
                    batch = session.run(wanted)
                except OutOfRangeError:
                    return
                yield from _examples(batch) if yield_single_examples else [batch]

    def export_savedmodel(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        **options: Any,
    ) -> bytes:
        """Writes a SavedModel of the last checkpoint into a new folder, whose path it gives."""
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        with Graph().as_default() as graph, Session(graph=graph) as session:
            receiver = serving_input_receiver_fn()
            spec = self._spec(receiver.features, None, ModeKeys.PREDICT)
            scaffold = (spec.scaffold or Scaffold()).finalize()
            (scaffold.saver or Saver()).restore(session, path)
            session.run(scaffold.local_init_op)
            inputs = receiver.receiver_tensors
            named = {"input": inputs} if isinstance(inputs, Tensor) else inputs
            outputs = spec.export_outputs or {"serving_default": PredictOutput(spec.predictions)}
            signatures = {key: predict_signature_def(named, each.named()) for key, each in outputs.items()}
            if len(signatures) == 1:
                signatures["serving_default"] = next(iter(signatures.values()))
            folder = _new_folder(os.fspath(export_dir_base))
            builder = SavedModelBuilder(folder)
            builder.add_meta_graph_and_variables(session, ["serve"], signatures)
            builder.save(as_text)
        return folder.encode()

    export_saved_model = export_savedmodel

    # Parts.

    def _spec(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        spec = _call(self._model_fn, features, labels, mode, params=self._mode_params(mode), config=self.config)
        spec = spec.as_estimator_spec() if hasattr(spec, "as_estimator_spec") else spec
        if not isinstance(spec, EstimatorSpec):
            raise ValueError(f"model_fn should return an EstimatorSpec, found {type(spec).__name__}.")
        return spec

    def _mode_params(self, mode: str) -> dict[str, Any]:
        return self.params

    def _build(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        """Input and model in the default graph."""
        set_random_seed(self.config.tf_random_seed if self.config.tf_random_seed is not None else 1)
        get_or_create_global_step()
        given = _with_known(input_fn, {"mode": mode, "params": self._mode_params(mode), "config": self.config})
        if isinstance(given, Dataset):
            given = given.make_one_shot_iterator().get_next()
        is_pair = isinstance(given, tuple | list) and len(given) == 2
        features, labels = given if is_pair else (given, None)
        return self._spec(features, None if mode == ModeKeys.PREDICT else labels, mode)

    def _training_session(self, spec: EstimatorSpec, hooks: list[Any], listeners: Any) -> MonitoredSession:
        config, step = self.config, get_or_create_global_step()
        summary.scalar("loss", spec.loss)
        scaffold = spec.scaffold or Scaffold()
        scaffold.saver = scaffold.saver or Saver(max_to_keep=config.keep_checkpoint_max, allow_empty=True)
        hooks.append(NanTensorHook(spec.loss))
        if config.log_step_count_steps:
            hooks.append(LoggingTensorHook({"loss": spec.loss, "step": step}, config.log_step_count_steps))
            hooks.append(StepCounterHook(config.log_step_count_steps, output_dir=self.model_dir))
        if config.save_summary_steps:
            hooks.append(SummarySaverHook(config.save_summary_steps, output_dir=self.model_dir, scaffold=scaffold))
        seconds, every = config.save_checkpoints_secs, config.save_checkpoints_steps
        given = [each for each in hooks if isinstance(each, CheckpointSaverHook)]
        if given:
            given[0].listen(listeners)
        else:
            seconds = 600 if seconds is None and every is None else seconds
            hooks.append(CheckpointSaverHook(self.model_dir, seconds, every, scaffold=scaffold, listeners=listeners))
        creator = ChiefSessionCreator(scaffold, config=config.session_config, checkpoint_dir=self.model_dir)
        return MonitoredSession(creator, hooks)

    def _restored(self, spec: EstimatorSpec, hooks: list[Any], path: str | None) -> MonitoredSession:
        """A session with the values of a checkpoint, or first values when there is none."""
        path = path or self.latest_checkpoint()
        if path is None:
            logging.info("Could not find trained model in model_dir: %s, running initialization.", self.model_dir)
        config = self.config.session_config
        creator = ChiefSessionCreator(spec.scaffold, config=config, checkpoint_filename_with_path=path)
        return MonitoredSession(creator, hooks)

    def _step(self) -> int:
        path = self.latest_checkpoint()
        return 0 if path is None else int(load_checkpoint(path).get_tensor("global_step"))

    def _write(self, results: Mapping[str, Any], folder: str) -> None:
        """The numbers among results as events."""
        numbers = {key: each for key, each in results.items() if np.ndim(each) == 0 and key != "global_step"}
        values = [CLASSES["Summary"].Value(tag=key, simple_value=float(each)) for key, each in numbers.items()]
        writer = FileWriterCache.get(folder)
        writer.add_summary(CLASSES["Summary"](value=values), results["global_step"])
        writer.flush()


def _call(model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, **known: Any) -> Any:
    """Calls a model function with the arguments that it names."""
    names = inspect.signature(model_fn).parameters
    if "labels" in names:
        known["labels"] = labels
    elif labels is not None:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    return _with_known(functools.partial(model_fn, features=features), {"mode": mode, **known})


def _with_known(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """Calls a function with those arguments that it takes."""
    names = inspect.signature(function).parameters
    everything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in names.values())
    return function(**{name: value for name, value in known.items() if everything or name in names})


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, Mapping):
        yield from batch
        return
    sizes = {len(each) for each in flatten(batch)[0]}
    if len(sizes) != 1:
        raise ValueError(f"Batch length of predictions should be same; found {sorted(sizes)}.")
    for i in range(sizes.pop()):
        yield {key: each[i] for key, each in batch.items()}


def _warm_start(given: Any) -> None:
    """Makes the initializers of chosen variables read a checkpoint."""
    settings = given if isinstance(given, WarmStartSettings) else WarmStartSettings(given)
    chosen = settings.vars_to_warm_start
    patterns = [chosen] if isinstance(chosen, str) else list(chosen)
    names = [each.op.name for each in trainable_variables() if any(re.search(p, each.op.name) for p in patterns)]
    others = settings.var_name_to_prev_var_name or {}
    init_from_checkpoint(settings.ckpt_to_initialize_from, {others.get(name, name): name for name in names})


def _new_folder(base: str) -> str:
    """A folder called after the time, and behind all that are there."""
    taken = [int(name) for name in os.listdir(base) if name.isdigit()] if os.path.isdir(base) else []
    return os.path.join(base, str(max([int(time.time()), *(number + 1 for number in taken)])))
