"""The flags and messages of programs in TensorFlow's manner."""

import pytest

import xlalite as tf
from xlalite import program_flags
from xlalite.hlo.errors import FlagError


@pytest.fixture(autouse=True)
def flags(monkeypatch: pytest.MonkeyPatch) -> program_flags.FlagValues:
    fresh = program_flags.FlagValues()
    monkeypatch.setattr(program_flags, "FLAGS", fresh)
    return fresh


def test_flags_of_programs_stand_beside_those_of_the_library(flags: program_flags.FlagValues) -> None:
    assert tf.flags.Flags is not None
    assert tf.app.flags is tf.flags
    tf.flags.DEFINE_string("data_dir", "/tmp", "where")
    tf.flags.DEFINE_integer("steps", 10, "how many")
    tf.flags.DEFINE_float("rate", 1, "how fast")
    tf.flags.DEFINE_bool("train", False, "whether")
    tf.flags.DEFINE_boolean("test", True, "whether")
    tf.flags.DEFINE_enum("mode", "a", ["a", "b"], "which")
    tf.flags.DEFINE_list("names", "x,y", "several")
    tf.flags.DEFINE_multi_string("more", None, "several")
    words = ["p", "--steps", "5", "-rate=0.5", "--train", "--notest", "--more=1", "--more=2", "rest", "--", "--steps=7"]
    assert flags(words) == ["p", "rest", "--steps=7"]
    assert (flags.steps, flags.rate, flags.train, flags.test) == (5, 0.5, True, False)
    assert (flags.data_dir, flags.mode, flags.names, flags.more) == ("/tmp", "a", ["x", "y"], ["1", "2"])
    flags.steps = 6
    assert flags.flag_values_dict()["steps"] == 6
    assert "steps" in flags


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--unknown=1"], "Unknown command line flag 'unknown'"),
        (["--steps=x"], "flag --steps=x: invalid literal"),
        (["--steps"], "Missing value for flag --steps"),
        (["--mode=c"], "flag --mode=c: expected one of a, b"),
        ([], "Flag --needed must have a value"),
    ],
)
def test_what_cannot_be_read_is_an_error(words: list[str], message: str, flags: program_flags.FlagValues) -> None:
    tf.flags.DEFINE_integer("steps", 10, "how many")
    tf.flags.DEFINE_enum("mode", "a", ["a", "b"], "which")
    tf.flags.DEFINE_string("needed", None, "what")
    program_flags.mark_flag_as_required("needed", flags)
    with pytest.raises(FlagError, match=message):
        flags(["p", *words])
    with pytest.raises(AttributeError, match="no flag 'nothing'"):
        _ = flags.nothing


def test_flags_are_read_when_the_first_is_asked_for(
    flags: program_flags.FlagValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf.flags.DEFINE_integer("steps", 10, "how many")
    monkeypatch.setattr("sys.argv", ["p", "--steps=3", "--other"])
    assert flags.steps == 3


def test_messages_are_shown_from_a_level_on(caplog: pytest.LogCaptureFixture) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("step %d", 3)
    tf.logging.debug("hidden")
    for _ in range(3):
        tf.logging.log_first_n(tf.logging.WARN, "few", 2)
        tf.logging.log_every_n(tf.logging.WARN, "some", 2)
    assert [record.getMessage() for record in caplog.records] == ["step 3", "few", "some", "few", "some"]
    assert tf.logging.get_verbosity() == tf.logging.INFO


def test_flags_are_found_under_their_inner_name(flags: program_flags.FlagValues) -> None:
    tf.flags.DEFINE_integer("steps", 3, "how many")
    assert {name: flag.value for name, flag in getattr(flags, "__flags").items()} == {"steps": 3}
    assert list(flags.__dict__["__flags"]) == ["steps"]
