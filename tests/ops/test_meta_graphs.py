"""Graphs in files: `write_graph`, `.meta` files, frozen graphs; `tf.test`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.hlo.errors import XlaliteError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model() -> Any:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    table = tf.get_variable("table", initializer=np.arange(8, dtype=np.float32).reshape(4, 2))
    w = tf.get_variable("w", initializer=np.full((3, 2), 0.5, np.float32))
    rows = tf.nn.embedding_lookup(table, tf.constant([1, 3]))
    y = tf.identity(tf.matmul(x, w) + rows, name="y")
    step = tf.train.get_or_create_global_step()
    tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(y), step, name="train")
    tf.add_to_collection("outputs", y)
    return y


@pytest.mark.parametrize("as_text", [False, True])
def test_a_graph_is_written(tmp_path: Path, as_text: bool) -> None:
    with tf.Graph().as_default() as graph:
        model()
        path = tf.train.write_graph(graph, str(tmp_path / "new"), "graph.pb", as_text)
    data = Path(path).read_bytes()
    message = tf.GraphDef.from_text(data.decode()) if as_text else tf.GraphDef.FromString(data)
    assert message.SerializeToString() == graph.as_graph_def().SerializeToString()


@pytest.mark.parametrize("scope", [None, "again"])
def test_training_goes_on_from_a_meta_file(tmp_path: Path, scope: str | None) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        y = model()
        saver = tf.train.Saver(max_to_keep=3)
        sess.run(tf.global_variables_initializer())
        sess.run("train", {"x:0": X})
        path = saver.save(sess, str(tmp_path / "model"), global_step=1)
        wanted = sess.run(y, {"x:0": X})
        sess.run("train", {"x:0": X})
        later = sess.run(y, {"x:0": X})
    prefix = f"{scope}/" if scope else ""
    with tf.Graph().as_default(), tf.Session() as sess:
        again = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
        again.restore(sess, path)
        (y,) = tf.get_collection("outputs")
        assert y.name == f"{prefix}y:0"
        given = {f"{prefix}x:0": X}
        np.testing.assert_array_equal(sess.run(y, given), wanted)
        sess.run(f"{prefix}train", given)
        np.testing.assert_array_equal(sess.run(y, given), later)
        assert [each.op.name for each in tf.trainable_variables()] == [f"{prefix}table", f"{prefix}w"]
        assert [each.op.name for each in tf.global_variables()][-1] == f"{prefix}global_step"
        sess.run(tf.global_variables_initializer())
        assert sess.run(tf.global_variables()[-1]) == 0


def test_meta_graphs_without_a_saver_and_broken_ones(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        model()
        message = tf.train.export_meta_graph(str(tmp_path / "text"), as_text=True)
    with tf.Graph().as_default():
        assert isinstance(tf.train.import_meta_graph(str(tmp_path / "text")), tf.train.Saver)
    message.collection_def["outputs"].node_list.value.append("gone:0")
    (tmp_path / "broken").write_bytes(b"\xff\xfe broken")
    for bad in (message, str(tmp_path / "broken"), str(tmp_path / "gone")):
        with tf.Graph().as_default(), pytest.raises(XlaliteError, match=r"gone|MetaGraphDef"):
            tf.train.import_meta_graph(bad)


@pytest.mark.parametrize("trimmed", [False, True])
def test_frozen_graphs_need_no_variables(trimmed: bool) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        y = model()
        sess.run(tf.global_variables_initializer())
        wanted = sess.run(y, {"x:0": X})
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
        kept = tf.graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(), ["y"], variable_names_blacklist=["w"]
        )
    assert [node.name for node in kept.node if node.op == "VarHandleOp"] == ["w"]
    assert not {node.op for node in frozen.node} & {"VarHandleOp", "ReadVariableOp", "ResourceGather"}
    if trimmed:
        frozen = tf.graph_util.remove_training_nodes(frozen, ["y"])
        assert [node.name for node in frozen.node if node.op == "Identity"] == ["y"]
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.import_graph_def(frozen, return_elements=["x:0", "y:0"])
        np.testing.assert_array_equal(sess.run(y, {x: X}), wanted)
    with pytest.raises(XlaliteError, match="no node 'nowhere'"):
        tf.graph_util.extract_sub_graph(frozen, ["nowhere"])


class SquareTest(tf.test.TestCase):
    """What a user's test looks like."""

    def testSquares(self) -> None:
        with self.test_session():
            self.assertAllEqual(tf.square([1, 2]).eval(), [1, 4])
            self.assertAllClose(self.evaluate({"a": tf.constant(0.5)}), {"a": 0.5})
        with self.session() as sess, self.assertRaisesOpError("positive"):
            sess.run(tf.Assert(tf.constant(False), ["positive"]))
        with self.assertRaises(AssertionError):
            self.assertAllClose([1.0], [1.1])
        with self.assertRaises(AssertionError):
            self.assertAllEqual([1.0, 1.0], 1.0)
        self.assertFalse(tf.test.is_gpu_available())
        self.assertTrue(Path(self.get_temp_dir()).is_dir())
