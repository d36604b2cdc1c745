"""How a session's configuration and the flags become its options."""

import pytest

from xlalite.client.config import CompileMode, ConfigProto, GlobalJitLevel
from xlalite.client.session_options import SessionOptions, settle
from xlalite.flags import Flags, parse_flags
from xlalite.hlo.errors import ConfigError


def settled(config: ConfigProto | None = None, *arguments: str) -> SessionOptions:
    return settle(config or ConfigProto(), parse_flags(arguments))


def config_with_level(level: int) -> ConfigProto:
    return ConfigProto(graph_options={"optimizer_options": {"global_jit_level": level}})


def test_nothing_said_gives_the_defaults() -> None:
    options = settled()
    assert options.jit_level is GlobalJitLevel.OFF
    assert options.compile_mode is CompileMode.LAZY
    assert (options.lazy_compile_threshold, options.min_cluster_size) == (2, 4)
    assert options.num_threads is None
    assert options.debug.dump_to is None


@pytest.mark.parametrize(
    ("config_level", "flag", "expected"),
    [(0, 0, -1), (0, 1, 1), (1, 0, 1), (2, 1, 2), (-1, 1, -1), (1, -1, 1)],
)
def test_level_of_the_session_wins_over_the_flag(config_level: int, flag: int, expected: int) -> None:
    assert settled(config_with_level(config_level), f"--tf_xla_auto_jit={flag}").jit_level == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], CompileMode.LAZY),
        (["--tf_xla_enable_lazy_compilation=false"], CompileMode.STRICT),
        (["--tf_xla_always_defer_compilation"], CompileMode.OFF),
    ],
)
def test_mode_comes_from_the_flags_unless_the_session_has_one(arguments: list[str], expected: CompileMode) -> None:
    assert settled(None, *arguments).compile_mode is expected
    own = ConfigProto(xlalite={"compile_mode": CompileMode.STRICT})
    assert settled(own, *arguments).compile_mode is CompileMode.STRICT


def test_sizes_names_and_threads_of_the_session_win() -> None:
    config = ConfigProto(
        intra_op_parallelism_threads=1, xlalite={"min_cluster_size": 2, "max_cluster_size": 9, "ops_to_cluster": ["PW"]}
    )
    arguments = ["--tf_xla_min_cluster_size=5", "--tf_xla_ops_to_cluster=RED", "--xlalite_num_threads=2"]
    options = settled(config, *arguments)
    assert (options.min_cluster_size, options.max_cluster_size) == (2, 9)
    assert options.ops_to_cluster == ("PW",)
    assert options.num_threads == 1
    options = settled(None, *arguments)
    assert (options.min_cluster_size, options.ops_to_cluster, options.num_threads) == (5, ("RED",), 2)


@pytest.mark.parametrize("field", ["min_cluster_size", "max_cluster_size", "lazy_compile_threshold"])
def test_negative_number_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"ConfigProto.xlalite.{field}: expected 0 .* or more, found -1"):
        settled(ConfigProto(xlalite={field: -1}))


def test_negative_thread_count_is_refused() -> None:
    with pytest.raises(ValueError, match="intra_op_parallelism_threads"):
        settle(ConfigProto(intra_op_parallelism_threads=-2), Flags())
