"""How a session's configuration and the flags become its options."""

import pytest

from xlalite.client.config import ConfigProto, XlaliteOptions
from xlalite.client.session_options import SessionOptions, settle
from xlalite.flags import Flags, parse_flags
from xlalite.hlo.errors import ConfigError
from xlalite.runtime.options import CompileMode


def settled(config: ConfigProto | None = None, *arguments: str) -> SessionOptions:
    return settle(config or ConfigProto(), parse_flags(arguments))


def config_with_level(level: int) -> ConfigProto:
    return ConfigProto(graph_options={"optimizer_options": {"global_jit_level": level}})


def test_nothing_said_gives_the_defaults() -> None:
    options = settled()
    assert options.clustering.global_jit is False
    assert options.runtime.compile_mode is CompileMode.LAZY
    assert (options.runtime.lazy_compile_threshold, options.clustering.min_cluster_size) == (2, 4)
    assert options.runtime.num_threads is None
    assert options.runtime.debug.dump_to is None


@pytest.mark.parametrize(
    ("config_level", "flag", "is_on"),
    [(0, 0, False), (0, 1, True), (0, 2, True), (1, 0, True), (2, -1, True), (-1, 1, False), (1, -1, True)],
)
def test_level_of_the_session_wins_over_the_flag(config_level: int, flag: int, is_on: bool) -> None:
    options = settled(config_with_level(config_level), f"--tf_xla_auto_jit={flag}")
    assert options.clustering.global_jit is is_on


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], CompileMode.LAZY),
        (["--tf_xla_enable_lazy_compilation=false"], CompileMode.STRICT),
        (["--tf_xla_always_defer_compilation"], CompileMode.OFF),
        (["--tf_xla_async_compilation"], CompileMode.ASYNC),
    ],
)
def test_mode_comes_from_the_flags_unless_the_session_has_one(arguments: list[str], expected: CompileMode) -> None:
    assert settled(None, *arguments).runtime.compile_mode is expected
    own = ConfigProto(xlalite={"compile_mode": XlaliteOptions.STRICT})
    assert settled(own, *arguments).runtime.compile_mode is CompileMode.STRICT


def test_sizes_names_and_threads_of_the_session_win() -> None:
    config = ConfigProto(
        intra_op_parallelism_threads=1, xlalite={"min_cluster_size": 2, "max_cluster_size": 9, "ops_to_cluster": ["PW"]}
    )
    arguments = ["--tf_xla_min_cluster_size=5", "--tf_xla_ops_to_cluster=RED", "--xlalite_num_threads=2"]
    options = settled(config, *arguments)
    assert (options.clustering.min_cluster_size, options.clustering.max_cluster_size) == (2, 9)
    assert options.clustering.ops_to_cluster == ("PW",)
    assert options.runtime.num_threads == 1
    options = settled(None, *arguments)
    assert (options.clustering.min_cluster_size, options.clustering.ops_to_cluster) == (5, ("RED",))
    assert options.runtime.num_threads == 2


@pytest.mark.parametrize("field", ["min_cluster_size", "max_cluster_size", "lazy_compile_threshold"])
def test_negative_number_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"ConfigProto.xlalite.{field}: expected 0 .* or more, found -1"):
        settled(ConfigProto(xlalite={field: -1}))


def test_negative_thread_count_is_refused() -> None:
    with pytest.raises(ValueError, match="intra_op_parallelism_threads"):
        settle(ConfigProto(intra_op_parallelism_threads=-2), Flags())
