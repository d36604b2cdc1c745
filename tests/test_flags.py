"""XLALITE_FLAGS: the table, its parser, its errors, its help."""

import dataclasses

import pytest

from xlalite.flags import Flags, debug_options, flags_from_environment, help_text, parse_flags
from xlalite.hlo.errors import FlagError
from xlalite.passes.core.debug_options import DebugOptions


def from_text(text: str) -> Flags:
    return flags_from_environment({"XLALITE_FLAGS": text})


def test_nothing_said_gives_the_defaults() -> None:
    assert flags_from_environment({}) == from_text("  ") == Flags()


def test_values_are_split_as_a_shell_would() -> None:
    flags = from_text("--xla_dump_to='a dir/x' --xla_dump_hlo_pass_re=\"cse|dce\"\n--tf_xla_min_cluster_size=2")
    assert flags == Flags(xla_dump_to="a dir/x", xla_dump_hlo_pass_re="cse|dce", tf_xla_min_cluster_size=2)


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLALITE_FLAGS", "--tf_xla_auto_jit=-1")
    assert flags_from_environment().tf_xla_auto_jit == -1


@pytest.mark.parametrize(
    ("text", "value"),
    [("", True), ("=true", True), ("=True", True), ("=1", True), ("=false", False), ("=0", False)],
)
def test_switch_may_stand_alone(text: str, value: bool) -> None:
    assert from_text(f"--xla_dump_large_constants{text}").xla_dump_large_constants is value


def test_later_flag_wins() -> None:
    assert from_text("--tf_xla_auto_jit=1 --tf_xla_auto_jit=2").tf_xla_auto_jit == 2


def test_fuel_adds_up() -> None:
    flags = from_text("--xla_fuel=cse=3 --xla_fuel=fusion=0,dce=5")
    assert dict(flags.xla_fuel) == {"cse": 3, "fusion": 0, "dce": 5}


def test_names_are_a_tuple_without_blanks() -> None:
    assert from_text("--xla_disable_hlo_passes='cse, dce,'").xla_disable_hlo_passes == ("cse", "dce")


def test_arguments_are_applied_to_a_base() -> None:
    base = Flags(xla_dump_to="a", xlalite_num_threads=2)
    assert parse_flags(["--xla_dump_to=b"], base) == Flags(xla_dump_to="b", xlalite_num_threads=2)


def test_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "elsewhere")
    assert from_text("--xla_dump_to=~/dumps").xla_dump_to == "elsewhere/dumps"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--xla_dump_hlo_pass=a", "unknown flag --xla_dump_hlo_pass; did you mean '--xla_dump_hlo_pass_re'?"),
        ("--tf-xla-auto-jit=1", r"unknown flag --tf-xla-auto-jit; did you mean '--tf_xla_auto_jit'\?"),
        ("--zzz", "unknown flag --zzz; `xlalite flags` lists those there are"),
        ("xla_dump_to=a", "expected --flag=value, found 'xla_dump_to=a'"),
        ("--xla_dump_to", "--xla_dump_to needs a value: --xla_dump_to=DIR"),
        ("--tf_xla_auto_jit=on", "--tf_xla_auto_jit: expected an integer from -1 to 2, found 'on'"),
        ("--tf_xla_auto_jit=3", "expected an integer from -1 to 2, found '3'"),
        ("--tf_xla_min_cluster_size=0", "expected an integer of at least 1, found '0'"),
        ("--xla_dump_large_constants=yes", "expected true or false, found 'yes'"),
        ("--xla_dump_hlo_as_text=false", "expected true, the only value, found 'false'"),
        ("--xla_dump_hlo_pass_re=(", "expected a regular expression .*, found '\\('"),
        ("--xla_fuel=cse", "expected pass=N, or several of them with commas between, found 'cse'"),
        ("--xla_fuel=cse=-1", "expected pass=N"),
        ("--xla_fuel=", "expected pass=N"),
        (
            "--xla_cpu_max_isa=AVX3",
            "expected one of SSE2, SSE4_2, AVX, AVX2, AVX512, AVX512_VNNI, AVX512_BF16, AMX, found 'AVX3'",
        ),
        ("--xla_cpu_winograd=3", "expected one of 0, 2, 4, found '3'"),
        ("--xla_dump_to='a", "No closing quotation"),
    ],
)
def test_wrong_flag_is_explained(text: str, message: str) -> None:
    with pytest.raises(FlagError, match=message) as caught:
        from_text(text)
    assert str(caught.value).startswith("XLALITE_FLAGS: ")


def test_help_shows_every_flag_with_its_default() -> None:
    text = help_text()
    for flag in dataclasses.fields(Flags):
        assert f"  --{flag.name}=" in text
    assert "(default: 4)" in text
    assert "(default: false)" in text
    assert "(default: none)" in text


def test_every_default_is_what_its_own_kind_reads() -> None:
    for flag in dataclasses.fields(Flags):
        if isinstance(flag.default, bool | int):
            assert flag.metadata["kind"].read(str(flag.default)) == flag.default


def test_flags_become_the_options_of_passes() -> None:
    text = (
        "--xla_dump_to=d --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_disable_hlo_passes=cse --xla_fuel=dce=1"
        " --xla_cpu_max_isa=avx2 --xla_cpu_winograd=4 --xla_cpu_autotune --xla_allow_excess_precision"
    )
    assert debug_options(from_text(text)) == DebugOptions(
        dump_to="d",
        dump_hlo_pass_re=".*",
        disable_passes=("cse",),
        fuel=(("dce", 1),),
        cpu_max_isa="AVX2",
        cpu_winograd=4,
        cpu_autotune=True,
        allow_excess_precision=True,
    )
    assert debug_options(Flags()) == DebugOptions()
