# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.hooks import (
    CheckpointSaverHook as CheckpointSaverHook, CheckpointSaverListener as CheckpointSaverListener,
    FeedFnHook as FeedFnHook, FinalOpsHook as FinalOpsHook, LoggingTensorHook as LoggingTensorHook,
    NanLossDuringTrainingError as NanLossDuringTrainingError, NanTensorHook as NanTensorHook,
    SecondOrStepTimer as SecondOrStepTimer, SessionRunArgs as SessionRunArgs, SessionRunContext as SessionRunContext,
    SessionRunHook as SessionRunHook, SessionRunValues as SessionRunValues, StepCounterHook as StepCounterHook,
    StopAtStepHook as StopAtStepHook, SummarySaverHook as SummarySaverHook
)
from xlalite.client.monitored_session import (
    ChiefSessionCreator as ChiefSessionCreator, MonitoredSession as MonitoredSession,
    MonitoredTrainingSession as MonitoredTrainingSession, Scaffold as Scaffold,
    SingularMonitoredSession as SingularMonitoredSession
)
from xlalite.client.server_cluster import (
    ClusterSpec as ClusterSpec, Server as Server, replica_device_setter as replica_device_setter
)
from xlalite.client.supervisor import Supervisor as Supervisor
from xlalite.files.checkpoint_state import (
    get_checkpoint_mtimes as get_checkpoint_mtimes, get_checkpoint_state as get_checkpoint_state,
    latest_checkpoint as latest_checkpoint, list_variables as list_variables, load_checkpoint as load_checkpoint,
    load_variable as load_variable, remove_checkpoint as remove_checkpoint,
    update_checkpoint_state as update_checkpoint_state
)
from xlalite.files.checkpoints import CheckpointReader as _CheckpointReader, checkpoint_exists as checkpoint_exists
from xlalite.files.events import FileWriter as _FileWriter, summary_iterator as summary_iterator
from xlalite.files.graph_files import write_graph as write_graph
from xlalite.messages.classes import (
    BytesList as BytesList, Example as Example, Feature as Feature, FeatureList as FeatureList,
    FeatureLists as FeatureLists, Features as Features, FloatList as FloatList, Int64List as Int64List,
    SaverDef as SaverDef, SequenceExample as SequenceExample
)
from xlalite.ops.training.adaptive_optimizers import (
    AdadeltaOptimizer as AdadeltaOptimizer, AdagradDAOptimizer as AdagradDAOptimizer,
    AdagradOptimizer as AdagradOptimizer, FtrlOptimizer as FtrlOptimizer,
    ProximalAdagradOptimizer as ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer, RMSPropOptimizer as RMSPropOptimizer
)
from xlalite.ops.training.checkpoint_init import init_from_checkpoint as init_from_checkpoint
from xlalite.ops.training.coordinator import Coordinator as Coordinator, LooperThread as LooperThread
from xlalite.ops.training.global_step import (
    create_global_step as create_global_step, get_global_step as get_global_step,
    get_or_create_global_step as get_or_create_global_step, global_step as global_step
)
from xlalite.ops.training.input_producers import (
    batch as batch, batch_join as batch_join, input_producer as input_producer, limit_epochs as limit_epochs,
    range_input_producer as range_input_producer, shuffle_batch as shuffle_batch,
    shuffle_batch_join as shuffle_batch_join, slice_input_producer as slice_input_producer,
    string_input_producer as string_input_producer
)
from xlalite.ops.training.learning_rate_decay import (
    cosine_decay as cosine_decay, cosine_decay_restarts as cosine_decay_restarts,
    exponential_decay as exponential_decay, inverse_time_decay as inverse_time_decay,
    linear_cosine_decay as linear_cosine_decay, natural_exp_decay as natural_exp_decay,
    noisy_linear_cosine_decay as noisy_linear_cosine_decay, piecewise_constant as piecewise_constant,
    piecewise_constant_decay as piecewise_constant_decay, polynomial_decay as polynomial_decay
)
from xlalite.ops.training.meta_graphs import export_meta_graph as export_meta_graph
from xlalite.ops.training.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from xlalite.ops.training.optimizer import Optimizer as Optimizer
from xlalite.ops.training.optimizers import (
    AdamOptimizer as AdamOptimizer, GradientDescentOptimizer as GradientDescentOptimizer,
    MomentumOptimizer as MomentumOptimizer
)
from xlalite.ops.training.queue_runner import (
    QueueRunner as QueueRunner, add_queue_runner as add_queue_runner, start_queue_runners as start_queue_runners
)
from xlalite.ops.training.saver import Saver as Saver, import_meta_graph as import_meta_graph

SummaryWriter = _FileWriter
NewCheckpointReader = _CheckpointReader
