"""Feature columns: what input layers and linear models make of them, beside what TensorFlow makes of the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.ops.declarations.sparse_cross import joined_fingerprint

F: Any = np.float32
fc = tf.feature_column
NUMBERS = F([[1, 5], [-3, 2], [10, 0.5]])
ONE = F([1, 2, 3])
IDS = np.int64([[1, 2], [0, -1], [3, 3]])
NUMERIC = fc.numeric_column("n", shape=2)
BUCKETS = fc.bucketized_column(NUMERIC, [0, 2, 6])
WORDS = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
WORDS_AND_BUCKETS = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"], num_oov_buckets=2)
SPARSE = fc.categorical_column_with_vocabulary_list("s", ["a", "b", "c"])
WEIGHTED = fc.weighted_categorical_column(SPARSE, "sw")
IDENTITY = fc.categorical_column_with_identity("i", 4)
CROSSED = fc.crossed_column(["w", fc.bucketized_column(fc.numeric_column("v"), [1.5, 2.5])], 11)


def features() -> dict[str, Any]:
    return {
        "w": tf.constant([[b"a", b"b"], [b"zz", b""], [b"c", b"c"]]),
        "n": tf.constant(NUMBERS),
        "i": tf.constant(IDS),
        "s": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([b"a", b"q", b"c"]), [3, 2]),
        "sw": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant(F([0.5, 2, 3])), [3, 2]),
        "v": tf.constant(ONE),
    }


def value(make: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        made = make()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            return session.run(made)


def table(rows: int, columns: int) -> Any:
    return np.linspace(-1, 1, rows * columns).reshape(rows, columns).astype(F)


def embedding(column: Any, combiner: str) -> Any:
    initial = tf.constant_initializer(table(column.num_buckets, 3))
    return fc.embedding_column(column, 3, combiner, initial)


ROWS = table(3, 3)
ONE_HOT = np.eye(4, dtype=F)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param([NUMERIC], NUMBERS, id="numeric"),
        pytest.param([fc.numeric_column("v", normalizer_fn=lambda x: x / 2)], ONE[:, None] / 2, id="normalised"),
        pytest.param([BUCKETS], ONE_HOT[[[1, 2], [0, 2], [3, 1]]].reshape(3, 8), id="bucketized"),
        pytest.param([fc.indicator_column(WORDS)], [[1, 1, 0], [0, 0, 0], [0, 0, 2]], id="vocabulary"),
        pytest.param([fc.indicator_column(IDENTITY)], [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 2]], id="identity"),
        pytest.param([fc.indicator_column(WEIGHTED)], [[0.5, 0, 0], [0, 0, 0], [0, 0, 3]], id="weighted"),
        # The numbers below are TensorFlow's.
        pytest.param(
            [fc.indicator_column(fc.categorical_column_with_hash_bucket("w", 7))],
            [[0, 0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 2, 0]],
            id="hashed",
        ),
        pytest.param(
            [fc.indicator_column(fc.categorical_column_with_hash_bucket("i", 5, tf.int64))],
            [[0, 0, 0, 0, 2], [1, 0, 0, 0, 0], [0, 2, 0, 0, 0]],
            id="hashed numbers",
        ),
        pytest.param(
            [fc.indicator_column(CROSSED)],
            [
                [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0],
                [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0],
                [0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ],
            id="crossed",
        ),
        pytest.param(
            [fc.indicator_column(fc.crossed_column([CROSSED, "s", IDENTITY], 13, hash_key=99))],
            [
                [0, 0, 0, 1, 0, 1, 2, 1, 0, 1, 1, 0, 1],
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0],
            ],
            id="crossed again",
        ),
        pytest.param([embedding(WORDS, "mean")], [(ROWS[0] + ROWS[1]) / 2, F([0, 0, 0]), ROWS[2]], id="mean of rows"),
        pytest.param([embedding(WEIGHTED, "mean")], [ROWS[0], F([0, 0, 0]), ROWS[2]], id="weighted mean"),
        pytest.param([embedding(WEIGHTED, "sum")], [ROWS[0] / 2, F([0, 0, 0]), ROWS[2] * 3], id="weighted sum"),
        pytest.param(
            [embedding(WORDS, "sqrtn")],
            [(ROWS[0] + ROWS[1]) / np.sqrt(2), F([0, 0, 0]), ROWS[2] * np.sqrt(2)],
            id="sum over norm",
        ),
    ],
)
def test_input_layer(columns: Any, expected: Any) -> None:
    np.testing.assert_allclose(value(lambda: fc.input_layer(features(), columns)), expected, rtol=1e-6)


def test_columns_lie_side_by_side_in_the_order_of_their_names() -> None:
    columns = [NUMERIC, fc.indicator_column(IDENTITY)]
    outputs: dict[Any, Any] = {}
    found = value(lambda: fc.input_layer(features(), columns, cols_to_output_tensors=outputs))
    np.testing.assert_array_equal(found[:, 4:], NUMBERS)
    assert set(outputs) == set(columns)


def test_shared_embeddings_have_one_table() -> None:
    initial = tf.constant_initializer(table(3, 2))
    columns = fc.shared_embedding_columns([WORDS, SPARSE], 2, initializer=initial)
    rows = table(3, 2)
    with tf.Graph().as_default():
        layer = fc.input_layer(features(), columns)
        assert [v.name for v in tf.global_variables()] == ["input_layer/s_w_shared_embedding/embedding_weights:0"]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            found = session.run(layer)
    np.testing.assert_allclose(found[:, :2], [rows[0], [0, 0], rows[2]], rtol=1e-6)
    np.testing.assert_allclose(found[:, 2:], [(rows[0] + rows[1]) / 2, [0, 0], rows[2]], rtol=1e-6)


def test_linear_models_sum_what_columns_give() -> None:
    columns = [NUMERIC, BUCKETS, WORDS_AND_BUCKETS, fc.categorical_column_with_hash_bucket("i", 5, tf.int64)]
    columns += [fc.numeric_column("v", normalizer_fn=lambda x: x / 2), WEIGHTED, CROSSED]
    with tf.Graph().as_default():
        found: dict[Any, Any] = {}
        sums = fc.linear_model(features(), columns, units=2, cols_to_vars=found)
        variables = sorted(tf.global_variables(), key=lambda variable: variable.name)
        gradients = tf.gradients(tf.reduce_sum(tf.square(sums)), found[WEIGHTED])
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for each in variables:
                sizes = each.shape.as_list()
                each.load(np.cos(np.arange(np.prod(sizes))).reshape(sizes).astype(F), session)
            values, slope = session.run([sums, tf.convert_to_tensor(gradients[0])])
    names = [f"linear_model/{name}/weights:0" for name in sorted(column.name for column in columns)]
    assert [variable.name for variable in variables] == ["linear_model/bias_weights:0", *names]
    # TensorFlow's numbers.
    np.testing.assert_allclose(
        values, [[1.6423366, -5.2048135], [2.2782571, 1.2592309], [7.48022, 4.4754515]], rtol=2e-6
    )
    np.testing.assert_allclose(slope, [values[0], [0, 0], values[2] * 6], rtol=2e-6)


def test_identities_outside_are_refused_or_become_the_default() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than 3"):
        value(lambda: fc.input_layer(features(), fc.indicator_column(fc.categorical_column_with_identity("i", 3))))
    column = fc.indicator_column(fc.categorical_column_with_identity("i", 3, default_value=0))
    np.testing.assert_array_equal(value(lambda: fc.input_layer(features(), column)), [[0, 1, 1], [1, 0, 0], [2, 0, 0]])


def test_words_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "words"
    path.write_text("a\nb\nc\n", encoding="utf-8")
    column = fc.indicator_column(fc.categorical_column_with_vocabulary_file("w", str(path)))
    np.testing.assert_array_equal(value(lambda: fc.input_layer(features(), column)), [[1, 1, 0], [0, 0, 0], [0, 0, 2]])


def test_an_embedding_may_begin_with_a_checkpoint(tmp_path: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(ROWS, name="rows")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    column = fc.embedding_column(WORDS, 3, "sum", ckpt_to_load_from=path, tensor_name_in_ckpt="rows")
    found = value(lambda: fc.input_layer(features(), column))
    np.testing.assert_allclose(found, [ROWS[0] + ROWS[1], F([0, 0, 0]), ROWS[2] * 2], rtol=1e-6)


def test_examples_are_parsed_as_the_columns_need_them() -> None:
    spec = fc.make_parse_example_spec([NUMERIC, BUCKETS, WEIGHTED, fc.crossed_column(["w", BUCKETS], 9)])
    assert {key: type(each).__name__ for key, each in spec.items()} == {
        "n": "FixedLenFeature",
        "s": "VarLenFeature",
        "sw": "VarLenFeature",
        "w": "VarLenFeature",
    }
    with pytest.raises(ValueError, match="different parse_spec for key n"):
        fc.make_parse_example_spec([NUMERIC, fc.numeric_column("n")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.input_layer(features(), WORDS), "must be a dense column"),
        (lambda: fc.input_layer(features(), [NUMERIC, fc.numeric_column("n")]), "Duplicate feature column name"),
        (lambda: fc.input_layer({}, [NUMERIC]), "n is not in features"),
        (lambda: fc.input_layer(features(), []), "must not be empty"),
        (lambda: fc.bucketized_column(NUMERIC, [2, 1]), "sorted"),
        (lambda: fc.numeric_column("n", 0), "greater than 0"),
        (lambda: fc.categorical_column_with_hash_bucket("w", 0), "at least 1"),
        (lambda: fc.categorical_column_with_vocabulary_list("w", ["a", "a"]), "different words"),
        (lambda: fc.crossed_column(["w"], 5), "length > 1"),
        (lambda: fc.crossed_column(["w", NUMERIC], 5), "Unsupported key type"),
        (lambda: fc.crossed_column(["n", fc.categorical_column_with_hash_bucket("w", 3)], 5), "feature's name"),
        (lambda: fc.embedding_column(WORDS, 0), "Invalid dimension"),
        (lambda: fc.embedding_column(WORDS, 2, ckpt_to_load_from="x"), "Must specify both"),
        (lambda: fc.shared_embedding_columns([WORDS, IDENTITY], 2), "same number of buckets"),
    ],
)
def test_columns_that_cannot_be(graph: Any, make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_safe_lookup_fills_rows_without_ids(graph: Any) -> None:
    ids = tf.SparseTensor([[0, 0], [1, 0], [3, 1]], np.int64([2, -1, 1]), [4, 2])
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(ROWS), ids, default_id=0)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), ROWS[[2, 0, 0, 1]])
    assert joined_fingerprint(1, 2) != joined_fingerprint(2, 1)


def test_sparse_features_take_indices_from_others(graph: Any) -> None:
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "at": tf.train.Feature(int64_list=tf.train.Int64List(value=places)),
                    "value": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
                }
            )
        ).SerializeToString()
        for places, values in (([5, 2], [1.0, 2.0]), ([], []), ([0], [7.0]))
    ]
    wanted = {
        "x": tf.SparseFeature("at", "value", tf.float32, 9),
        "y": tf.SparseFeature(["at", "at"], "value", tf.float32, [9, 8], already_sorted=True),
    }
    with tf.Session() as session:
        found = session.run(tf.parse_example(examples, wanted))
    assert sorted(found) == ["x", "y"]
    np.testing.assert_array_equal(found["x"].indices, [[0, 2], [0, 5], [2, 0]])
    np.testing.assert_array_equal(found["x"].values, [2, 1, 7])
    np.testing.assert_array_equal(found["x"].dense_shape, [3, 9])
    np.testing.assert_array_equal(found["y"].indices, [[0, 5, 5], [0, 2, 2], [2, 0, 0]])
    np.testing.assert_array_equal(found["y"].dense_shape, [3, 9, 8])
    with pytest.raises(tf.errors.InvalidArgumentError, match="two ways"):
        tf.parse_example(examples, {**wanted, "at": tf.FixedLenFeature([1], tf.int64)})
