"""Functions of strings, and moving and comparing them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.graph import Graph

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as sess:
        return sess.run(fetches, feeds)


WORDS = ["b", "", "a b", "b"]


def words() -> Any:
    return tf.constant(WORDS)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: tf.stack([words(), words()], 1)[2], [b"a b", b"a b"]),
        (lambda: tf.concat([words(), ["é"]], 0), [b"b", b"", b"a b", b"b", "é".encode()]),
        (lambda: tf.reshape(words(), [2, 2]), [[b"b", b""], [b"a b", b"b"]]),
        (lambda: tf.gather(words(), [2, 0]), [b"a b", b"b"]),
        (lambda: tf.where([True, False, True, False], words(), tf.fill([4], "x")), [b"b", b"x", b"a b", b"x"]),
        (lambda: tf.pad(words(), [[1, 0]]), [b"", b"b", b"", b"a b", b"b"]),
        (lambda: tf.equal(words(), "b"), [True, False, False, True]),
        (lambda: tf.not_equal(words(), words()[::-1]), [False, True, True, False]),
        (lambda: tf.unique(words())[1], [0, 1, 2, 0]),
        (lambda: tf.squeeze(tf.split(words(), 4)[2]), b"a b"),
        (lambda: tf.strings.length([b"a\0\0", b"\0"]), [3, 1]),
    ],
)
def test_strings_are_moved_and_compared(make: Any, expected: Any) -> None:
    np.testing.assert_array_equal(run(make()), expected)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: tf.string_join([["a", "b"], "c"], "-"), [b"a-c", b"b-c"]),
        (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], 0, separator="+"), [b"a+c", b"b+d"]),
        (lambda: tf.reduce_join([["a", "b"], ["c", "d"]]), b"abcd"),
        (lambda: tf.reduce_join([["a", "b"], ["c", "d"]], 1, keep_dims=True), [[b"ab"], [b"cd"]]),
        (lambda: tf.regex_replace(["aab", "b"], "a(.)", r"<\1\0>"), [b"<aaa>b", b"b"]),
        (lambda: tf.regex_replace("aa", "a", "b", replace_global=False), b"ba"),
        (lambda: tf.strings.regex_full_match(["a1", "xa1"], "a[0-9]"), [True, False]),
        (lambda: tf.string_split(["a  b", "c"]).values, [b"a", b"b", b"c"]),
        (lambda: tf.string_split(["a  b", "c"]).indices, [[0, 0], [0, 1], [1, 0]]),
        (lambda: tf.string_split(["a,b;", ""], ",;", skip_empty=False).values, [b"a", b"b", b"", b""]),
        (lambda: tf.string_split(["ab", "c"], "").values, [b"a", b"b", b"c"]),
        (lambda: tf.sparse_tensor_to_dense(tf.string_split(["a b", "c"]), ""), [[b"a", b"b"], [b"c", b""]]),
        (lambda: tf.strings.split(["a--b-", "c"], "--").values, [b"a", b"b-", b"c"]),
        (lambda: tf.strings.split(["a b c"], maxsplit=1).dense_shape, [1, 2]),
        (lambda: tf.strings.length(["é", ""]), [2, 0]),
        (lambda: tf.strings.length("é", unit="UTF8_CHAR"), 1),
        (lambda: tf.substr(["hello", "world"], [1, -2], 3), [b"ell", b"ld"]),
        (lambda: tf.string_to_number(["1.5", " -2 ", "inf"]), [1.5, -2, np.inf]),
        (lambda: tf.string_to_number("7", tf.int64), 7),
        (lambda: tf.as_string([1, -2]), [b"1", b"-2"]),
        (lambda: tf.as_string(1.5, precision=2), b"1.50"),
        (lambda: tf.as_string(3, width=4, fill="0"), b"0003"),
        (lambda: tf.as_string([True]), [b"true"]),
        (lambda: tf.strings.upper("aé"), "Aé".encode()),
        (lambda: tf.strings.lower("AÉ", encoding="utf-8"), "aé".encode()),
        (lambda: tf.strings.strip([" a ", "\n"]), [b"a", b""]),
        (lambda: tf.encode_base64("a?>"), b"YT8-"),
        (lambda: tf.decode_base64(["YT8-", "YQ"]), [b"a?>", b"a"]),
        (lambda: tf.encode_base64("a", pad=True), b"YQ=="),
    ],
)
def test_functions_of_strings(make: Any, expected: Any) -> None:
    np.testing.assert_array_equal(run(make()), expected)


def test_files_are_written_found_and_read(tmp_path: Path) -> None:
    written = tf.write_file(str(tmp_path / "in" / "a.txt"), "one")
    with tf.control_dependencies([written]):
        found = tf.matching_files([str(tmp_path / "in" / "*.txt")])
        text = tf.read_file(found[0])
    assert run([found, text])[1] == b"one"
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        run(tf.read_file(str(tmp_path / "b")))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.string_to_number("1x"), "could not correctly convert string: 1x"),
        (lambda: tf.string_to_number("1_0", tf.int32), "could not correctly convert"),
        (lambda: tf.regex_replace("a", "(", ""), "Invalid pattern"),
        (lambda: tf.substr("abc", 4, 1), "pos 4 out of range"),
        (lambda: tf.decode_base64("ü"), "Invalid base64"),
    ],
)
def test_what_strings_do_not_spell_is_refused(make: Any, said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        run(make())


def test_strings_beside_a_cluster(graph: Graph) -> None:
    x = tf.placeholder(tf.string, [None])
    numbers = tf.string_to_number(tf.concat([x, ["3"]], 0)) * 2
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    with tf.Session(config=config) as sess:
        np.testing.assert_array_equal(sess.run(numbers, {x: ["1", "2"]}), [2, 4, 6])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.regex_replace(words(), "b", r"\7"), "Invalid rewrite pattern"),
        (lambda: tf.strings.lower([b"\xff"], "utf-8"), "is not UTF-8"),
        (lambda: tf.reduce_join([["a"]], 2), "Invalid reduction dimension 2 for 2 dimensions"),
        (lambda: tf.read_file("a\0b"), "is no name of a file"),
        (lambda: tf.write_file("a\0b", ""), "is no name of a file"),
        (lambda: tf.decode_csv(["a\n\nd"], [["x"]]), "record 0 is no line of fields"),
        (lambda: tf.decode_csv(["a"], [["x"]], field_delim=";;"), "record 0 is no line of fields"),
        (lambda: tf.decode_csv(["a"], [["x"]], select_cols=[5]), r"columns \(5,\) of the 1 fields of record 0"),
    ],
)
def test_what_makes_no_sense(make: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(make())


def test_directories_are_no_files(tmp_path: Path) -> None:
    for make in (lambda: tf.read_file(str(tmp_path)), lambda: tf.write_file(str(tmp_path), "")):
        with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
            run(make())


def test_complex_numbers_as_text() -> None:
    assert list(run(tf.as_string(tf.constant([1 + 2j]), precision=1))) == [b"(1.0,2.0)"]


def test_a_field_may_be_long() -> None:
    assert [len(each[0]) for each in run(tf.decode_csv(["a" * 200_000 + ",b"], [["x"], ["y"]]))] == [200_000, 1]
