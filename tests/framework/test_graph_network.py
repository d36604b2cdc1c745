"""Graphs of operations as graphs of networkx."""

import networkx

import xlalite as tf


def test_operations_are_nodes_and_tensors_and_waits_are_edges() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.multiply(x, x, name="y")
        with tf.control_dependencies([y]):
            tf.negative(x, name="z")
    network = graph.to_networkx()
    assert isinstance(network, networkx.MultiDiGraph)
    assert network.nodes["y"] == {"type": y.op.type, "device": "", "operation": y.op}
    assert sorted(network.edges(data="tensor")) == [
        ("x", "y", "x:0"), ("x", "y", "x:0"), ("x", "z", "x:0"), ("y", "z", "^y")
    ]  # fmt: skip
    assert [network.edges[edge]["position"] for edge in (("x", "y", 0), ("x", "y", 1), ("y", "z", 0))] == [0, 1, -1]
    assert networkx.descendants(network, "x") == {"y", "z"}
