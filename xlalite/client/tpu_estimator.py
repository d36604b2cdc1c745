"""`tf.contrib.tpu`'s Estimator, as programs that fall back to the processor use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xlalite.client.estimator import Estimator
from xlalite.client.estimator_spec import EstimatorSpec, ModeKeys, RunConfig
from xlalite.hlo.records import dataclass


class InputPipelineConfig:
    """Where input functions run; here there is one place."""

    PER_SHARD_V1: Final = 1
    PER_HOST_V1: Final = 2
    PER_HOST_V2: Final = 3
    BROADCAST: Final = 4


@dataclass(frozen=True)
class TPUConfig:
    """Settings that would matter on a TPU."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: float | None = None
    input_partition_dims: Any = None


@dataclass(frozen=True)
class TPURunConfig(RunConfig):
    """A `RunConfig` with a TPU's settings."""

    tpu_config: TPUConfig = TPUConfig()
    evaluation_master: str | None = None
    master: str | None = None
    cluster: Any = None


@dataclass(frozen=True)
class TPUEstimatorSpec:
    """What a model function gives: metrics as a function and its arguments, the scaffold as a function."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: Any = None
    export_outputs: Mapping[str, Any] | None = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: Any = None
    training_hooks: Sequence[Any] | None = ()
    evaluation_hooks: Sequence[Any] | None = ()
    prediction_hooks: Sequence[Any] | None = ()

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for the processor."""
        measured = None
        if self.eval_metrics is not None:
            function, arguments = self.eval_metrics
            measured = function(**arguments) if isinstance(arguments, Mapping) else function(*arguments)
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            measured,
            self.export_outputs,
            training_hooks=self.training_hooks,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


class TPUEstimator(Estimator):
    """An Estimator that tells its functions the batch size, as `params["batch_size"]`."""

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        warm_start_from: Any = None,
        **options: Any,
    ) -> None:
        """A model with a batch size for each use.

        Raises:
            ValueError: there is no function, or the parameters have a batch size of their own.
        """
        if model_fn is None:
            raise ValueError("TPUEstimator: model_fn is missing")
        if "batch_size" in (params or {}):
            raise ValueError("batch_size are reserved keys but existed in params")
        super().__init__(model_fn, model_dir, config or TPURunConfig(), params, warm_start_from)
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }

    def _mode_params(self, mode: str) -> dict[str, Any]:
        size = self._batch_sizes[mode]
        return self.params if size is None else {**self.params, "batch_size": size}


def CrossShardOptimizer(opt: Any, reduction: str = "mean", name: str = "CrossShardOptimizer", **options: Any) -> Any:
    """The optimiser itself: there is one shard."""
    return opt


class TPUClusterResolver:
    """Accepted for compatibility: there is no TPU to find."""

    def __init__(self, tpu: Any = None, zone: str | None = None, project: str | None = None, **options: Any) -> None:
        pass

    def get_master(self) -> str:
        """The empty string: this computer."""
        return ""
