"""Pipelines of `tf.data`, and the parsing of examples."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import (
    DataLossError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def default_graph(graph: Graph) -> Graph:
    return graph


def elements(dataset: Any, most: int = 100, feeds: Any = None) -> list[Any]:
    """The elements as a session gets them."""
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    found: list[Any] = []
    with tf.Session() as session:
        session.run(iterator.initializer, feeds)
        while len(found) < most:
            try:
                found.append(session.run(following))
            except OutOfRangeError:
                break
    return [each.tolist() if isinstance(each, np.ndarray | np.generic) else each for each in found]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(3), [0, 1, 2]),
        (lambda: Dataset.range(5, 1, -2), [5, 3]),
        (lambda: Dataset.from_tensors([1, 2]), [[1, 2]]),
        (lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (lambda: Dataset.range(3).map(lambda x: x * 2), [0, 2, 4]),
        (lambda: Dataset.range(6).filter(lambda x: tf.equal(x % 2, 0)), [0, 2, 4]),
        (lambda: Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
        (lambda: Dataset.range(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
        (lambda: Dataset.range(4).batch(2).unbatch(), [0, 1, 2, 3]),
        (lambda: Dataset.range(2).repeat(2), [0, 1, 0, 1]),
        (lambda: Dataset.range(0).repeat(), []),
        (lambda: Dataset.range(5).take(2), [0, 1]),
        (lambda: Dataset.range(5).skip(3), [3, 4]),
        (lambda: Dataset.range(5).shard(2, 1), [1, 3]),
        (lambda: Dataset.range(2).concatenate(Dataset.range(1)), [0, 1, 0]),
        (lambda: Dataset.range(3).cache().repeat(2), [0, 1, 2, 0, 1, 2]),
        (lambda: Dataset.range(1, 4).flat_map(lambda n: Dataset.range(n)), [0, 0, 1, 0, 1, 2]),
        (
            lambda: Dataset.range(1, 4).interleave(lambda n: Dataset.from_tensors(n).repeat(3), 2, 2),
            [1, 1, 2, 2, 1, 2, 3, 3, 3],
        ),
        (
            lambda: (
                Dataset.range(1, 4)
                .map(lambda n: tf.fill([tf.cast(n, tf.int32)], n))
                .padded_batch(2, [None], padding_values=np.int64(9))
            ),
            [[[1, 9], [2, 2]], [[3, 3, 3]]],
        ),
        (lambda: Dataset.range(3).apply(tf.contrib.data.map_and_batch(lambda x: x + 1, 3)), [[1, 2, 3]]),
    ],
)
def test_elements_of_datasets(make: Any, expected: list[Any]) -> None:
    assert elements(make()) == expected


def test_elements_are_nested_as_they_were_given() -> None:
    dataset = Dataset.from_tensor_slices({"x": [[1.0, 2.0], [3.0, 4.0]], "y": ([1, 2], ["a", "b"])})
    assert dataset.output_types == {"x": tf.float32, "y": (tf.int32, tf.string)}
    assert dataset.output_shapes["x"].as_list() == [2]
    found = elements(dataset.map(lambda e: (e["x"][0], e["y"][1])))
    assert found == [(1.0, b"a"), (3.0, b"b")]
    both = Dataset.zip((Dataset.range(3), Dataset.range(10, 12)))
    assert elements(both.map(lambda a, b: a + b)) == [10, 12]
    named = Dataset.zip({"b": Dataset.range(2), "a": Dataset.range(5, 7)})
    assert elements(named) == [{"b": 0, "a": 5}, {"b": 1, "a": 6}]
    assert elements(Dataset.from_tensors("s").enumerate(3)) == [(3, b"s")]


def test_shuffling_keeps_the_elements_and_follows_the_seed() -> None:
    first, second, other = (elements(Dataset.range(50).shuffle(20, seed)) for seed in (1, 1, 2))
    assert sorted(first) == list(range(50))
    assert first == second
    assert first != other
    assert first != sorted(first)
    assert max(number - place for place, number in enumerate(first)) < 20


def test_generators_are_called_anew_for_each_round() -> None:
    def numbers(limit: Any) -> Any:
        for number in range(int(limit)):
            yield number, "x" * number

    dataset = Dataset.from_generator(numbers, (tf.int64, tf.string), ([], []), args=[3])
    assert elements(dataset.repeat(2))[2:4] == [(2, b"xx"), (0, b"")]
    wrong = Dataset.from_generator(lambda: [[1, 2, 3]], tf.int64, [2])
    with pytest.raises(InvalidArgumentError, match=r"gave shape \(3,\), expected \(2,\)"):
        elements(wrong)


def test_sizes_and_data_may_be_fed() -> None:
    data, size = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int64, [])
    dataset = Dataset.from_tensor_slices(data).batch(size)
    assert dataset.output_shapes.as_list() == [None]
    assert elements(dataset, feeds={data: [1, 2, 3], size: 2}) == [[1, 2], [3]]
    with pytest.raises(GraphError, match="cannot depend on Placeholder:0"):
        dataset.make_one_shot_iterator()


def test_functions_of_elements_read_variables_and_the_graph_around_them() -> None:
    scale = tf.Variable(np.int64(3))
    offset = tf.constant(np.int64(10))
    following = Dataset.range(3).map(lambda x: x * scale + offset).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(following) == 10
        session.run(scale.assign(5).op)
        assert session.run(following) == 15


def test_each_session_has_its_own_place_and_initializers_begin_anew() -> None:
    iterator = Dataset.range(2).make_initializable_iterator()
    following = iterator.get_next()
    one, other = tf.Session(), tf.Session()
    with pytest.raises(FailedPreconditionError, match="has not been initialized"):
        one.run(following)
    for session in (one, other):
        session.run(iterator.initializer)
        assert [session.run(following) for _ in range(2)] == [0, 1]
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            session.run(following)
    one.run(iterator.initializer)
    assert one.run(following) == 0


def test_one_iterator_serves_datasets_of_a_kind() -> None:
    train, test = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    following = iterator.get_next()
    begin_train, begin_test = iterator.make_initializer(train), iterator.make_initializer(test)
    with tf.Session() as session:
        session.run(begin_train)
        assert session.run(following) == 0
        session.run(begin_test)
        assert session.run(following) == 10
    with pytest.raises(ShapeError, match="the iterator expects"):
        iterator.make_initializer(Dataset.from_tensors(1.0))


def test_a_handle_says_which_iterator_is_asked() -> None:
    one, other = (Dataset.range(n, n + 5).make_one_shot_iterator() for n in (0, 10))
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(handle, one.output_types, one.output_shapes)
    following = fed.get_next()
    first, second = one.get_next(), other.get_next()
    with tf.Session() as session:
        names = session.run([one.string_handle(), other.string_handle()])
        assert session.run([first, second]) == [0, 10]
        assert [session.run(following, {handle: name}) for name in (*names, names[0])] == [1, 11, 2]


def test_shapes_that_do_not_fit_are_errors() -> None:
    with pytest.raises(ShapeError, match="scalars have no rows"):
        Dataset.from_tensor_slices(1.0)
    with pytest.raises(ShapeError, match="different elements"):
        Dataset.range(1).concatenate(Dataset.from_tensors("x"))
    ragged = Dataset.range(1, 3).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n)).batch(2)
    with pytest.raises(InvalidArgumentError, match="Cannot batch tensors with different shapes"):
        elements(ragged)
    with pytest.raises(InvalidArgumentError, match="batch_size must be greater than zero"):
        elements(Dataset.range(1).batch(0))


def example(label: int, values: list[float], name: str | None) -> bytes:
    features = {
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "values": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[np.int16([label, -label]).tobytes()])),
    }
    if name is not None:
        features["name"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.encode()]))
    data: bytes = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    return data


FEATURES = {
    "label": tf.FixedLenFeature([], tf.int64),
    "values": tf.FixedLenFeature([2], tf.float32),
    "name": tf.FixedLenFeature([], tf.string, default_value="none"),
    "raw": tf.FixedLenFeature([], tf.string),
}


def test_records_of_examples_feed_a_graph(tmp_path: Path) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    for start, path in enumerate(paths):
        with tf.python_io.TFRecordWriter(path, "GZIP") as writer:
            for number in range(2):
                writer.write(example(2 * start + number, [number, 0.5], "n" if number else None))

    def parse(record: Any) -> Any:
        parsed = tf.parse_single_example(record, FEATURES)
        return parsed["label"], parsed["values"], parsed["name"], tf.decode_raw(parsed["raw"], tf.int16)

    dataset = tf.data.TFRecordDataset(paths, "GZIP").map(parse).batch(4)
    assert dataset.output_shapes[1].as_list() == [None, 2]
    ((labels, values, names, raw),) = elements(dataset)
    assert labels.tolist() == [0, 1, 2, 3]
    assert values.tolist() == [[0, 0.5], [1, 0.5]] * 2
    assert names.tolist() == [b"none", b"n"] * 2
    assert raw.tolist() == [[0, 0], [1, -1], [2, -2], [3, -3]]
    batched = tf.parse_example([example(1, [1, 2], "x"), example(2, [3, 4], None)], FEATURES)
    with tf.Session() as session:
        found = session.run(batched)
    assert found["values"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("data", "features", "message"),
    [
        (b"\xff", {}, "Could not parse example input"),
        (example(1, [1.0], None), {"values": tf.FixedLenFeature([2], tf.float32)}, "number of values != expected"),
        (example(1, [1.0], None), {"no": tf.FixedLenFeature([2], tf.float32)}, "no is required but could not be found"),
        (example(1, [1.0], None), {"label": tf.FixedLenFeature([], tf.float32)}, "Data types don't match"),
    ],
)
def test_examples_that_do_not_fit_are_errors(data: bytes, features: Any, message: str) -> None:
    parsed = tf.parse_single_example(tf.constant(data), {**features, "raw": tf.FixedLenFeature([], tf.string, "")})
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match=message):
        session.run(parsed)


def test_sequences_of_any_length_are_padded() -> None:
    features = {"values": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True)}
    parsed = tf.parse_example([example(1, [1, 2, 3], None), example(1, [4], None)], features)
    with tf.Session() as session:
        assert session.run(parsed)["values"].tolist() == [[1, 2, 3], [4, 0, 0]]


def test_text_and_raw_files(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"head\none\r\ntwo\n\nlast")
    assert elements(tf.data.TextLineDataset(str(path)).skip(1)) == [b"one", b"two", b"", b"last"]
    pieces = tf.data.FixedLengthRecordDataset(str(path), 4, header_bytes=1, footer_bytes=2)
    assert elements(pieces) == [b"ead\n", b"one\r", b"\ntwo", b"\n\nla"]
    assert elements(Dataset.list_files(str(tmp_path / "*.txt"))) == [str(path).encode()]
    with pytest.raises(NotFoundError, match="No such file"):
        elements(tf.data.TextLineDataset(str(tmp_path / "none")))
    with pytest.raises(DataLossError):
        elements(tf.data.TFRecordDataset(str(path)))
    assert elements(tf.data.TFRecordDataset(str(path)).apply(tf.data.experimental.ignore_errors())) == []
    with pytest.raises(InvalidArgumentError, match="not a multiple of 2"), tf.Session() as session:
        session.run(tf.decode_raw(tf.constant(b"abc"), tf.int16))


def with_lists(**features: Any) -> bytes:
    kinds = {float: ("float_list", "FloatList"), int: ("int64_list", "Int64List"), bytes: ("bytes_list", "BytesList")}
    made = tf.train.Example()
    for name, values in features.items():
        field, kind = kinds[type(values[0])]
        made.features.feature[name].CopyFrom(tf.train.Feature(**{field: getattr(tf.train, kind)(value=values)}))
    data: bytes = made.SerializeToString()
    return data


def test_features_of_any_length_are_sparse() -> None:
    data = [with_lists(n=[1, 2, 3], t=[b"a"]), with_lists(t=[b"b", b"c"]), with_lists(n=[4], x=[0.5])]
    features = {name: tf.VarLenFeature(dtype) for name, dtype in (("n", tf.int64), ("t", tf.string))}
    parsed = tf.parse_example(data, features)
    one = tf.parse_single_example(data[0], features)
    none = tf.parse_example(tf.constant([], tf.string), features)
    with tf.Session() as session:
        found, whole, single, empty = session.run(
            [parsed, tf.sparse_tensor_to_dense(parsed["t"], "-"), one, none],
        )
    np.testing.assert_array_equal(found["n"].indices, [[0, 0], [0, 1], [0, 2], [2, 0]])
    np.testing.assert_array_equal(found["n"].values, [1, 2, 3, 4])
    np.testing.assert_array_equal(found["n"].dense_shape, [3, 3])
    np.testing.assert_array_equal(whole, [[b"a", b"-"], [b"b", b"c"], [b"-", b"-"]])
    np.testing.assert_array_equal(single["n"].indices, [[0], [1], [2]])
    np.testing.assert_array_equal(single["t"].dense_shape, [1])
    assert empty["n"].indices.shape == (0, 2)
    assert list(empty["n"].dense_shape) == [0, 0]


def sequence(steps: int) -> bytes:
    made = tf.train.SequenceExample()
    made.context.feature["label"].int64_list.value.append(7)
    for step in range(steps):
        made.feature_lists.feature_list["x"].feature.add().float_list.value.extend([step, -step])
        made.feature_lists.feature_list["words"].feature.add().bytes_list.value.extend([b"w"] * step)
    data: bytes = made.SerializeToString()
    return data


def test_examples_of_sequences() -> None:
    context, steps = tf.parse_single_sequence_example(
        sequence(3),
        {"label": tf.FixedLenFeature([], tf.int64), "more": tf.VarLenFeature(tf.float32)},
        {
            "x": tf.FixedLenSequenceFeature([2], tf.float32),
            "words": tf.VarLenFeature(tf.string),
            "gone": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        },
    )
    assert steps["x"].shape.as_list() == [None, 2]
    with tf.Session() as session:
        found, along = session.run([context, steps])
        assert found["label"] == 7
        assert list(found["more"].dense_shape) == [0]
        np.testing.assert_array_equal(along["x"], [[0, 0], [1, -1], [2, -2]])
        np.testing.assert_array_equal(along["words"].indices, [[1, 0], [2, 0], [2, 1]])
        np.testing.assert_array_equal(along["words"].dense_shape, [3, 2])
        assert along["gone"].shape == (0,)
        missing = tf.parse_single_sequence_example(
            sequence(1), sequence_features={"y": tf.FixedLenSequenceFeature([], tf.float32)}
        )
        with pytest.raises(InvalidArgumentError, match="Feature list 'y' is required"):
            session.run(missing[1])
        with pytest.raises(InvalidArgumentError, match="Could not parse"):
            session.run(
                tf.parse_single_sequence_example("\xff\xff", sequence_features={"y": tf.VarLenFeature(tf.int64)})[1]
            )


def test_fields_of_lines() -> None:
    lines = tf.constant(['1,"a, b",2.5', "NA,,-1"])
    columns = tf.decode_csv(lines, [[0], ["none"], tf.float32], na_value="NA")
    with tf.Session() as session:
        numbers, texts, fractions = session.run(columns)
        np.testing.assert_array_equal(numbers, [1, 0])
        np.testing.assert_array_equal(texts, [b"a, b", b"none"])
        np.testing.assert_array_equal(fractions, [2.5, -1])
        assert session.run(tf.decode_csv("1;2;3", [[0]], ";", select_cols=[1])) == [2]
        with pytest.raises(InvalidArgumentError, match="Expect 2 fields but have 3 in record 0"):
            session.run(tf.decode_csv(lines, [[0], [0]]))
        with pytest.raises(InvalidArgumentError, match="Field 0 is required but missing"):
            session.run(tf.decode_csv(",x", [tf.int32, [""]]))


def test_sequences_of_rows_without_elements() -> None:
    values = tf.train.Int64List(value=[1])
    features = tf.train.Features(feature={"a": tf.train.Feature(int64_list=values)})
    data = tf.train.Example(features=features).SerializeToString()
    with tf.Graph().as_default(), tf.Session() as sess:
        wanted = {"a": tf.FixedLenSequenceFeature([0], tf.int64, allow_missing=True)}
        assert sess.run(tf.parse_example([data], wanted)["a"]).shape == (1, 0, 0)
