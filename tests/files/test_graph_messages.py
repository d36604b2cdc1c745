"""Graphs as `GraphDef`s."""

from pathlib import Path

import numpy as np

import xlalite as tf


def training_graph() -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default(), tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.Variable(np.ones((3, 1), np.float32), name="w")
        loss = tf.reduce_sum(tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 2), [0, tf.matmul(x, w)])[1])
        with tf.control_dependencies([x]):
            tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    return graph


def test_every_operation_is_a_node_with_inputs_and_attributes() -> None:
    graph = training_graph()
    message = graph.as_graph_def(add_shapes=True)
    nodes = {node.name: node for node in message.node}
    assert list(nodes) == [operation.name for operation in graph.get_operations()]
    assert nodes["x"].op == "Placeholder"
    assert nodes["x"].device == "/device:CPU:0"
    assert nodes["x"].attr["dtype"].type == 1
    assert [dim.size for dim in nodes["x"].attr["shape"].shape.dim] == [-1, 3]
    assert [dim.size for dim in nodes["MatMul"].attr["_output_shapes"].list.shape[0].dim] == [-1, 1]
    assert nodes["MatMul"].attr["transpose_a"].WhichOneof("value") == "b"
    assert next(iter(nodes["MatMul"].input)) == "x"
    assert "^x" in {name for node in message.node for name in node.input}
    assert nodes["while"].attr["body"].func.name in {each.signature.name for each in message.library.function}


def test_a_graph_comes_back_from_its_bytes() -> None:
    message = training_graph().as_graph_def()
    again = tf.GraphDef.FromString(message.SerializeToString())
    assert again == message
    tensors = [node.attr["value"].tensor for node in again.node if node.op == "Const"]
    (ones,) = (each for each in tensors if each.dtype == 1 and [dim.size for dim in each.tensor_shape.dim] == [3, 1])
    np.testing.assert_array_equal(np.frombuffer(ones.tensor_content, np.float32), [1, 1, 1])


def test_constants_may_be_strings() -> None:
    with tf.Graph().as_default() as graph:
        tf.summary.scalar("loss", tf.constant(1.0))
    values = [node.attr["value"].tensor.string_val for node in graph.as_graph_def().node if node.op == "Const"]
    assert [b"loss"] in [list(each) for each in values]


def test_only_what_is_new_is_asked_for() -> None:
    graph = training_graph()
    version = graph.version
    with graph.as_default():
        added = tf.constant(1.0, name="added")
    assert [node.name for node in graph.as_graph_def(from_version=version).node] == ["added"]
    assert added.op.node_def.op == "Const"


def test_a_summary_writer_writes_its_graph(tmp_path: Path) -> None:
    graph = training_graph()
    tf.summary.FileWriter(str(tmp_path), graph).close()
    (path,) = tmp_path.iterdir()
    (shown,) = (event.graph_def for event in tf.train.summary_iterator(str(path)) if event.graph_def)
    assert tf.GraphDef.FromString(shown) == graph.as_graph_def()


def test_attributes_that_follow_from_inputs_are_said_for_tensorflow() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        tf.concat([x, x, x], 0, name="concat")
        tf.cast(x, tf.int64, name="cast")
        tf.dynamic_partition(x, [0, 1], 2, name="parts")
        tf.py_func(lambda a: a, [x], [tf.float32], name="called")
        tf.identity_n([x, tf.constant(1)], name="both")
        tf.argmax(x, 1, name="best")
    attrs = {node.name: node.attr for node in graph.as_graph_def().node}
    assert (attrs["concat"]["N"].i, attrs["concat"]["T"].type, attrs["concat"]["Tidx"].type) == (3, 1, 3)
    assert (attrs["cast"]["SrcT"].type, attrs["cast"]["DstT"].type) == (1, 9)
    assert "dtype" not in attrs["cast"]
    assert attrs["parts"]["num_partitions"].i == 2
    assert list(attrs["both"]["T"].list.type) == [1, 3]
    assert attrs["best"]["Tidx"].type == 3
    assert "T" not in attrs["called"]


def test_variables_say_their_names_for_tensorflow() -> None:
    (handle,) = (node for node in training_graph().as_graph_def().node if node.op == "VarHandleOp" and node.name == "w")
    assert handle.attr["shared_name"].s == b"w"
