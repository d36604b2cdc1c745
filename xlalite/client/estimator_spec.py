"""What an Estimator is told: the mode, what a model function gives, how to run, and for how long."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass
from xlalite.ops.functions.array import placeholder


class ModeKeys:
    """What a model is made for."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"


class LearnModeKeys:
    """The same under the names of `contrib.learn`."""

    TRAIN: Final = ModeKeys.TRAIN
    EVAL: Final = ModeKeys.EVAL
    INFER: Final = ModeKeys.PREDICT


@dataclass(frozen=True)
class EstimatorSpec:
    """What a model function gives.

    Attributes:
        mode: One of `ModeKeys`.
        predictions: A tensor, or several by name.
        loss: The loss, a scalar.
        train_op: The operation of a training step.
        eval_metric_ops: Metrics by name: pairs (value, update).
        export_outputs: What `export_savedmodel` offers, by the name of the signature.
        training_chief_hooks: Hooks for training.
        training_hooks: The same.
        scaffold: Initialisers and the saver.
        evaluation_hooks: Hooks for evaluation.
        prediction_hooks: Hooks for prediction.

    Raises:
        ValueError: something is missing that the mode needs.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, Any] | None = None
    export_outputs: Mapping[str, Any] | None = None
    training_chief_hooks: Sequence[Any] | None = ()
    training_hooks: Sequence[Any] | None = ()
    scaffold: Any = None
    evaluation_hooks: Sequence[Any] | None = ()
    prediction_hooks: Sequence[Any] | None = ()

    def __post_init__(self) -> None:
        needed = {ModeKeys.TRAIN: ("loss", "train_op"), ModeKeys.EVAL: ("loss",), ModeKeys.PREDICT: ("predictions",)}
        if self.mode not in needed:
            raise ValueError(f"EstimatorSpec: mode {self.mode!r} is not one of {', '.join(needed)}")
        missing = [name for name in needed[self.mode] if getattr(self, name) is None]
        if missing:
            raise ValueError(f"Missing {' and '.join(missing)}.")


@dataclass(frozen=True)
class RunConfig:
    """How an Estimator runs. Other settings of TensorFlow's can be given and change nothing."""

    model_dir: str | os.PathLike[str] | None = None
    tf_random_seed: int | None = None
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: float | None = None
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10000
    log_step_count_steps: int | None = 100
    train_distribute: Any = None
    device_fn: Any = None
    protocol: Any = None
    eval_distribute: Any = None
    experimental_distribute: Any = None

    is_chief = True
    num_ps_replicas = 0
    num_worker_replicas = 1
    task_id = 0
    task_type = "worker"

    def replace(self, **changes: Any) -> Any:
        """The same with other settings."""
        changed = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        return changed


@dataclass(frozen=True)
class TrainSpec:
    """Training for `train_and_evaluate`: the input, the last step, and hooks."""

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[Any] | None = ()


@dataclass(frozen=True)
class EvalSpec:
    """Evaluation for `train_and_evaluate`: the input, how many batches, and when."""

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[Any] | None = ()
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600


@dataclass(frozen=True)
class WarmStartSettings:
    """Which variables begin with values of another model's checkpoint, and under which names those are there."""

    ckpt_to_initialize_from: str | os.PathLike[str]
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, Any] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ServingInputReceiver:
    """The inputs of an exported model: what its function takes, and what callers feed."""

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = field(default=None)


@dataclass(frozen=True)
class PredictOutput:
    """Outputs of an exported model by name; a single tensor is called `output`."""

    outputs: Any

    def named(self) -> dict[str, Any]:
        """The tensors by name."""
        return {"output": self.outputs} if isinstance(self.outputs, Tensor) else dict(self.outputs)


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Tensor], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes placeholders like the given tensors, with any batch size."""

    def receiver() -> ServingInputReceiver:
        shapes = {name: each.shape.as_list() for name, each in features.items()}
        inputs = {
            name: placeholder(each.dtype, [default_batch_size, *shapes[name][1:]], name)
            for name, each in features.items()
        }
        return ServingInputReceiver(inputs, inputs)

    return receiver
