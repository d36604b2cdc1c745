"""The configuration messages: what users of protocol buffers expect, and clear errors."""

import copy
import pickle

import numpy as np
import pytest

from xlalite.client.config import (
    CompileMode,
    ConfigProto,
    GPUOptions,
    GraphOptions,
    OptimizerOptions,
    RewriterConfig,
    RunMetadata,
    RunOptions,
)
from xlalite.hlo.errors import ConfigError, XlaliteError
from xlalite.messages.settings import Settings


def full_config() -> ConfigProto:
    config = ConfigProto(allow_soft_placement=True, device_count={"CPU": 2})
    config.graph_options.optimizer_options.global_jit_level = OptimizerOptions.ON_1
    config.device_filters.extend(["/job:worker", "/job:ps"])
    config.session_inter_op_thread_pool.add(num_threads=3, global_name='a "b"')
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    return config


def test_nested_messages_exist_without_being_made() -> None:
    config = ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = 1
    assert config.graph_options.optimizer_options.global_jit_level == OptimizerOptions.ON_1


def test_reading_a_nested_message_sets_nothing() -> None:
    config = ConfigProto()
    assert config.graph_options.optimizer_options.global_jit_level == OptimizerOptions.DEFAULT
    assert not config.HasField("graph_options")
    assert config == ConfigProto()
    assert repr(config) == ""


def test_values_of_enumerations_are_reached_through_the_message_class() -> None:
    levels = OptimizerOptions.DEFAULT, OptimizerOptions.OFF, OptimizerOptions.ON_1, OptimizerOptions.ON_2
    assert levels == (0, -1, 1, 2)
    assert (OptimizerOptions.L1, OptimizerOptions.L0) == (0, -1)
    assert OptimizerOptions.GlobalJitLevel.ON_2 == 2
    assert (RunOptions.NO_TRACE, RunOptions.FULL_TRACE) == (0, 3)
    assert RewriterConfig.OFF == 2


def test_keywords_set_fields_and_copy_messages() -> None:
    options = OptimizerOptions(global_jit_level=OptimizerOptions.ON_2)
    config = ConfigProto(graph_options=GraphOptions(optimizer_options=options), gpu_options={"allow_growth": True})
    options.global_jit_level = 0
    assert config.graph_options.optimizer_options.global_jit_level == 2
    assert config.gpu_options == GPUOptions(allow_growth=True)


def test_text_is_that_of_protocol_buffers() -> None:
    assert repr(full_config()) == (
        'device_count {\n  key: "CPU"\n  value: 2\n}\n'
        'device_filters: "/job:worker"\ndevice_filters: "/job:ps"\n'
        "gpu_options {\n  per_process_gpu_memory_fraction: 0.5\n}\n"
        "allow_soft_placement: true\n"
        "graph_options {\n  optimizer_options {\n    global_jit_level: ON_1\n  }\n}\n"
        'session_inter_op_thread_pool {\n  num_threads: 3\n  global_name: "a \\"b\\""\n}\n'
    )


def test_copy_from_replaces_everything_and_shares_nothing() -> None:
    config = ConfigProto(log_device_placement=True)
    source = full_config()
    config.CopyFrom(source)
    assert config == source
    source.device_filters.append("/job:third")
    source.session_inter_op_thread_pool[0].num_threads = 9
    assert not config.log_device_placement
    assert len(config.device_filters) == 2
    assert config.session_inter_op_thread_pool[0].num_threads == 3


def test_copy_from_itself_keeps_the_message() -> None:
    config = full_config()
    config.CopyFrom(config)
    assert config == full_config()


def test_merge_from_keeps_what_the_other_leaves_unset() -> None:
    config = ConfigProto(log_device_placement=True, device_filters=["first"], device_count={"GPU": 1})
    config.MergeFrom(full_config())
    assert config.log_device_placement
    assert config.allow_soft_placement
    assert list(config.device_filters) == ["first", "/job:worker", "/job:ps"]
    assert dict(config.device_count) == {"GPU": 1, "CPU": 2}


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))])
def test_copies_are_equal_and_independent(duplicate) -> None:
    config = full_config()
    other = duplicate(config)
    assert other == config
    other.graph_options.optimizer_options.global_jit_level = 0
    assert other != config


def test_clearing_a_field_restores_its_default() -> None:
    config = full_config()
    config.ClearField("graph_options")
    assert config.graph_options.optimizer_options.global_jit_level == 0
    config.Clear()
    assert config == ConfigProto()


def test_numpy_values_become_plain_ones() -> None:
    config = ConfigProto()
    config.intra_op_parallelism_threads = np.int64(2)
    config.allow_soft_placement = np.True_
    config.gpu_options.per_process_gpu_memory_fraction = np.float32(0.25)
    assert type(config.intra_op_parallelism_threads) is int
    assert config.allow_soft_placement is True
    assert type(config.gpu_options.per_process_gpu_memory_fraction) is float


def test_own_knobs_are_a_nested_message() -> None:
    config = ConfigProto()
    config.xlalite.compile_mode = config.xlalite.STRICT
    config.xlalite.cluster_exclude_ops.append("Where")
    assert config.xlalite.compile_mode is CompileMode.STRICT
    assert list(config.xlalite.cluster_exclude_ops) == ["Where"]


def test_run_metadata_is_filled_in_place() -> None:
    metadata = RunMetadata()
    stats = metadata.step_stats.dev_stats.add(device="/cpu:0").node_stats.add(node_name="a")
    stats.timeline_label = "a = NoOp()"
    assert metadata.step_stats.dev_stats[0].node_stats[0].timeline_label == "a = NoOp()"


def set_unknown(config: ConfigProto) -> None:
    config.inter_op_paralelism_threads = 1


def set_on_the_wrong_level(config: ConfigProto) -> None:
    config.global_jit_level = 1


def read_unknown(config: ConfigProto) -> None:
    _ = config.graph_option


def construct_with_unknown(config: ConfigProto) -> None:
    ConfigProto(allow_soft_place=True)


def assign_message(config: ConfigProto) -> None:
    config.graph_options = GraphOptions()


def set_text_as_number(config: ConfigProto) -> None:
    config.intra_op_parallelism_threads = "2"


def set_fraction_as_integer(config: ConfigProto) -> None:
    config.intra_op_parallelism_threads = 2.0


def set_too_large(config: ConfigProto) -> None:
    config.intra_op_parallelism_threads = 1 << 31


def set_no_level(config: ConfigProto) -> None:
    config.graph_options.optimizer_options.global_jit_level = 3


def set_number_as_flag(config: ConfigProto) -> None:
    config.allow_soft_placement = 2


def set_text_as_flag(config: ConfigProto) -> None:
    config.allow_soft_placement = "yes"


def set_text_as_fraction(config: ConfigProto) -> None:
    config.gpu_options.per_process_gpu_memory_fraction = "0.5"


def append_number_to_texts(config: ConfigProto) -> None:
    config.device_filters.append(3)


def give_one_text_for_many(config: ConfigProto) -> None:
    ConfigProto(device_filters="/job:a")


def set_text_in_map(config: ConfigProto) -> None:
    config.device_count["CPU"] = "two"


def merge_another_class(config: ConfigProto) -> None:
    config.MergeFrom(GraphOptions())


@pytest.mark.parametrize(
    ("action", "builtin", "message"),
    [
        (
            set_unknown,
            AttributeError,
            "'inter_op_paralelism_threads'; did you mean 'inter_op_parallelism_threads",
        ),
        (set_on_the_wrong_level, AttributeError, "did you mean 'graph_options.optimizer_options.global_jit_level"),
        (read_unknown, AttributeError, "did you mean 'graph_options"),
        (construct_with_unknown, AttributeError, "did you mean 'allow_soft_placement"),
        (assign_message, AttributeError, "ConfigProto.graph_options cannot be assigned as a whole"),
        (set_text_as_number, TypeError, "expected an integer, found '2' of type str"),
        (set_fraction_as_integer, TypeError, "expected an integer, found 2.0 of type float"),
        (set_too_large, ValueError, "2147483648 is out of range, expected -2147483648 to 2147483647"),
        (set_no_level, ValueError, "3 is no GlobalJitLevel, expected one of DEFAULT = 0, OFF = -1, ON_1 = 1, ON_2 = 2"),
        (set_number_as_flag, ValueError, "expected True or False, found 2"),
        (set_text_as_flag, TypeError, "ConfigProto.allow_soft_placement: expected True or False, found 'yes'"),
        (set_text_as_fraction, TypeError, "expected a number, found '0.5'"),
        (append_number_to_texts, TypeError, "ConfigProto.device_filters: expected a string, found 3"),
        (give_one_text_for_many, TypeError, "expected a sequence, found '/job:a'"),
        (set_text_in_map, TypeError, r"ConfigProto.device_count\['CPU'\]: expected an integer"),
        (merge_another_class, TypeError, "ConfigProto: expected a ConfigProto, found"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wrong_use_is_explained(action, builtin: type[Exception], message: str) -> None:
    with pytest.raises(builtin, match=message) as caught:
        action(ConfigProto())
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, XlaliteError)


def test_messages_are_not_hashable_because_they_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ConfigProto())


def test_messages_of_different_classes_differ() -> None:
    assert ConfigProto() != RunOptions()
    assert isinstance(ConfigProto(), Settings)
