"""Lookup tables, and the buckets that strings fall into."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from xlalite.framework.graph.graph import Graph
from xlalite.ops.declarations.string_hashes import fingerprint, murmur
from xlalite.ops.functions import lookup

SIZES = (0, 1, 3, 4, 8, 13, 16, 17, 32, 33, 64, 65, 128, 300)
# What TensorFlow gives for so many bytes, in 2^62 + 1 buckets.
FAST = (1936946117179621453, 550085751958558781, 50737162503519587, 74291032824012389, 3403648104430010918)
FAST += (4226636937696843315, 663651183927826902, 3125010364355856012, 3992320350721670009, 3233698670931835595)
FAST += (1859692024977922282, 444801980686921533, 2003798058489048518, 3886849482814154720)
SLOW = (105434511174508089, 2499542889307245882, 664798910978920874, 1071300106493060471, 1792776028251320487)
SLOW += (2593996486892195898, 995847565073455182, 3561695271940059062, 2782484674102228033, 3102851608180839946)
SLOW += (2817797733315875061, 799619217219469469, 2197624490377029076, 2198150325883599005)


@pytest.mark.parametrize(("size", "fast", "slow"), [*zip(SIZES, FAST, SLOW, strict=True)])
def test_hashes_are_those_of_tensorflow(size: int, fast: int, slow: int) -> None:
    text = bytes((7 * i + size) % 256 for i in range(size))
    assert fingerprint(text) % (2**62 + 1) == fast
    assert murmur(text) % (2**62 + 1) == slow


def test_strings_fall_into_buckets(graph: Graph) -> None:
    texts = np.array([["", "a"], ["abc", "é"]])
    fast, slow = tf.string_to_hash_bucket_fast(texts, 10), tf.strings.to_hash_bucket(texts, 10)
    with tf.Session() as sess:
        found = sess.run([fast, slow])
    for each, hashed in zip(found, (fingerprint, murmur), strict=True):
        wanted = [hashed(text.encode()) % 10 for text in texts.ravel()]
        np.testing.assert_array_equal(each.ravel(), wanted)
    with pytest.raises(InvalidArgumentError, match="num_buckets must be positive"):
        tf.string_to_hash_bucket_fast(texts, 0)


@pytest.fixture
def vocabulary(tmp_path: Path) -> str:
    (tmp_path / "words").write_bytes(b"the\t4\r\ncat\t5\nsat\t6\n")
    return str(tmp_path / "words")


def test_words_and_numbers_of_a_file(graph: Graph, vocabulary: str) -> None:
    columns = lookup.TextFileInitializer(vocabulary, tf.string, 0, tf.int64, 1)
    numbers = tf.contrib.lookup.HashTable(columns, -7)
    places = lookup.index_table_from_file(vocabulary, key_column_index=0, vocab_size=2)
    words = lookup.index_to_string_table_from_file(vocabulary, value_column_index=0)
    buckets = lookup.index_table_from_file(vocabulary, num_oov_buckets=5, key_column_index=0)
    text = tf.constant([["sat", "the"], ["dog", "cat"]])
    sparse = tf.SparseTensor([[0, 1]], ["cat"], [1, 2])
    fetches = [
        numbers.lookup(text),
        places.lookup(text),
        words.lookup(tf.constant([2, 9], tf.int64)),
        buckets.lookup(text),
        buckets.size(),
        places.lookup(sparse).values,
    ]
    with tf.Session() as sess:
        with pytest.raises(FailedPreconditionError, match="Table not initialized"):
            sess.run(fetches[0])
        sess.run(tf.tables_initializer())
        sess.run(tf.tables_initializer())
        found = sess.run(fetches)
    np.testing.assert_array_equal(found[0], [[6, 4], [-7, 5]])
    np.testing.assert_array_equal(found[1], [[-1, 0], [-1, 1]])
    assert found[2].tolist() == [b"sat", b"UNK"]
    np.testing.assert_array_equal(found[3], [[2, 0], [3 + fingerprint(b"dog") % 5, 1]])
    assert found[4] == 8
    assert found[5].tolist() == [1]


def test_tables_of_tensors_and_tables_that_change(graph: Graph) -> None:
    places = tf.contrib.lookup.index_table_from_tensor(["x", "y"], default_value=9)
    words = tf.contrib.lookup.index_to_string_table_from_tensor(["x", "y"], default_value="?")
    table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, 0.5)
    insert = table.insert([1, 2], [1.5, 2.5])
    only = tf.contrib.lookup.IdTableWithHashBuckets(None, 4)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        assert sess.run(places.lookup(["y", "z"])).tolist() == [1, 9]
        assert sess.run(words.lookup([1, 2])).tolist() == [b"y", b"?"]
        assert sess.run(table.lookup([1])).tolist() == [0.5]
        sess.run(insert)
        assert sess.run(table.lookup([[2, 3]])).tolist() == [[2.5, 0.5]]
        keys, values = sess.run(table.export())
        assert dict(zip(keys, values, strict=True)) == {1: 1.5, 2: 2.5}
        assert sess.run([table.size(), places.size()]) == [2, 2]
        assert sess.run(only.lookup(["q"])).tolist() == [fingerprint(b"q") % 4]
    with tf.Session() as sess:
        assert sess.run(table.size()) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda name: lookup.TextFileInitializer(name, tf.string, 0, tf.int64, 5), "words:1 has 2 columns"),
        (lambda name: lookup.TextFileInitializer(name, tf.int64, 0, tf.int64, 1), "line 1: b'the' is no int64"),
        (lambda name: lookup.TextFileInitializer(name, tf.string, -2, tf.int64, -1, 9), "expected 9 lines, found 3"),
        (lambda name: lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), "different value for same key"),
        (lambda name: lookup.KeyValueTensorInitializer(["a"], [1, 2]), "1 keys and 2 values"),
    ],
)
def test_what_fills_no_table(graph: Graph, vocabulary: str, make: Any, message: str) -> None:
    table = lookup.StaticHashTable(make(vocabulary), -1)
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match=message):
        sess.run(table.init)


def test_elements_are_grouped_by_keys_and_looked_up(graph: Graph) -> None:
    table = lookup.index_table_from_tensor(["a", "b", "c"])
    end = tf.cast(table.lookup(tf.constant("c")), tf.int32)
    texts = ["a", "a b", "b", "b a", "a b a b", "b b"]
    dataset = tf.data.Dataset.from_tensor_slices(texts).map(lambda text: tf.string_split([text]).values)
    dataset = dataset.map(lambda words: tf.cast(table.lookup(words), tf.int32))
    dataset = dataset.apply(
        tf.contrib.data.group_by_window(
            lambda words: tf.to_int64(tf.size(words) // 2),
            lambda key, window: window.padded_batch(2, [None], end).map(lambda rows: (key, rows)),
            window_size=2,
        )
    )
    iterator = dataset.make_initializable_iterator()
    number, rows = iterator.get_next()
    found = []
    with tf.Session() as sess:
        sess.run([tf.tables_initializer()])
        sess.run(iterator.initializer)
        for _ in range(4):
            key, each = sess.run([number, rows])
            found.append((int(key), each.tolist()))
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(number)
    assert found == [(0, [[0], [1]]), (1, [[0, 1], [1, 0]]), (1, [[1, 1]]), (2, [[0, 1, 0, 1]])]
    with pytest.raises(ValueError, match="not both"):
        tf.contrib.data.group_by_window(None, None)


def test_nested_structures() -> None:
    nest = tf.contrib.framework.nest
    one = {"b": (1, [2, 3]), "a": None}
    assert nest.flatten(one) == [None, 1, 2, 3]
    assert nest.map_structure(lambda x, y: (x, y), (1, [2]), (3, [4])) == ((1, 3), [(2, 4)])
    assert nest.is_sequence((1,))
    assert not nest.is_sequence("text")
    with pytest.raises(ValueError, match="same nested structure"):
        nest.assert_same_structure((1, 2), (1, (2,)))
    with pytest.raises(TypeError, match="same sequence type"):
        nest.assert_same_structure((1, 2), [1, 2])
    with pytest.raises(ValueError, match="has 2 leaves"):
        nest.pack_sequence_as((1, 2), [1])


def test_scopes_get_other_defaults(graph: Graph) -> None:
    with tf.variable_scope("s", partitioner=None):
        tf.get_variable_scope().set_initializer(tf.constant_initializer(3.0))
        tf.get_variable_scope().set_regularizer(tf.nn.l2_loss)
        variable = tf.get_variable("v", [2])
    with tf.Session() as sess, tf.container("c"):
        sess.run(tf.global_variables_initializer())
        assert sess.run(variable).tolist() == [3, 3]
        assert sess.run(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == [9]
    with pytest.raises(UnimplementedError, match="custom_getter"), tf.variable_scope("t", custom_getter=max):
        pass
