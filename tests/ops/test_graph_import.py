"""`import_graph_def`: graphs from messages."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.hlo.errors import XlaliteError
from xlalite.ops.functions.node_attributes import _KIND_OF, _PROCESS, FUNCTIONS

BY_HAND = """
node { name: "y" op: "Softmax" input: "biased" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "x" op: "Placeholder" device: "/cpu:0" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "_class" value { list { s: "loc:@b" } } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } }
    float_val: 1 float_val: 2 float_val: 0.5 } } } }
node { name: "product" op: "MatMul" input: "cast:0" input: "w" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "transpose_a" value { b: false } } attr { key: "transpose_b" value { b: false } } }
node { name: "cast" op: "Cast" input: "x" attr { key: "SrcT" value { type: DT_INT32 } }
  attr { key: "DstT" value { type: DT_FLOAT } } attr { key: "Truncate" value { b: false } } }
node { name: "b" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor {
  dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
  tensor_content: "\\000\\000\\200?\\000\\000\\000@\\000\\000@@" } } } }
node { name: "biased" op: "BiasAdd" input: "product" input: "b" input: "^step"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "data_format" value { s: "NHWC" } } }
node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node { name: "sum" op: "Sum" input: "y" input: "axes" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "Tidx" value { type: DT_INT32 } } attr { key: "keep_dims" value { b: true } } }
node { name: "squeezed" op: "Squeeze" input: "sum" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "squeeze_dims" value { list { i: -1 } } } }
node { name: "best" op: "ArgMax" input: "y" input: "axes_0" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "Tidx" value { type: DT_INT32 } } attr { key: "output_type" value { type: DT_INT64 } } }
node { name: "axes_0" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "step" op: "NoOp" }
versions { producer: 134 }
"""
X = np.array([[1, 2], [0, -1]], np.int32)


def session(jit: bool) -> tf.Session:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = (
        tf.OptimizerOptions.ON_1 if jit else tf.OptimizerOptions.OFF
    )
    return tf.Session(config=config)


@pytest.mark.parametrize("jit", [False, True])
def test_a_graph_with_tensorflows_attributes(jit: bool) -> None:
    with tf.Graph().as_default() as graph:
        elements = ["x:0", "y:0", "squeezed:0", "best:0", "biased"]
        x, y, total, best, biased = tf.import_graph_def(tf.GraphDef.from_text(BY_HAND), return_elements=elements)
        assert x.name == "import/x:0"
        assert graph.get_operation_by_name("import/biased").control_inputs[0].name == "import/step"
        assert biased.type == "BiasAdd"
        with session(jit) as sess:
            found = sess.run([y, total, best], {x: X})
    logits = X.astype(np.float32) @ np.array([[1, 2, 0.5], [0.5, 0.5, 0.5]], np.float32) + [1, 2, 3]
    wanted = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5)
    np.testing.assert_allclose(found[1], [1, 1], rtol=1e-5)
    np.testing.assert_array_equal(found[2], logits.argmax(1))


def trained(graph: tf.Graph) -> Any:
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.Variable(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2), name="w")
        hidden = tf.nn.leaky_relu(tf.matmul(x, w), alpha=0.3)

        def twice(i: Any, y: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i, 1), lambda: y * 2, lambda: y + tf.reduce_mean(w))

        loops = [tf.while_loop(lambda i, y: i < 3, twice, [0, hidden], maximum_iterations=5)[1] for _ in range(2)]
        loss = tf.reduce_sum(tf.square(loops[0]) + loops[1], name="loss")
        tf.train.AdamOptimizer(0.1).minimize(loss, name="train")
        tf.group(*[each.initializer for each in tf.global_variables()], name="init")
    return graph


def losses(graph: tf.Graph, jit: bool) -> list[Any]:
    given = {"x:0": np.arange(12, dtype=np.float32).reshape(3, 4) / 10}
    with graph.as_default(), session(jit) as sess:
        sess.run("init")
        return [sess.run(["loss:0", "train"], given)[0] for _ in range(3)]


@pytest.mark.parametrize("jit", [False, True])
def test_a_training_graph_with_loops_comes_back_from_its_bytes(jit: bool) -> None:
    graph = trained(tf.Graph())
    message = tf.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    again = tf.Graph()
    with again.as_default():
        assert tf.import_graph_def(message, name="") is None
    assert [each.name for each in again.get_operations()] == [each.name for each in graph.get_operations()]
    assert again.as_graph_def().SerializeToString() == message.SerializeToString()
    np.testing.assert_array_equal(losses(again, jit), losses(graph, jit))


def test_functions_of_the_same_name_stay_apart() -> None:
    def branch(factor: float) -> Any:
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * factor), [0, 1.0], name="loop")[1]

    with tf.Graph().as_default() as graph:
        flag = tf.placeholder(tf.bool, [], name="flag")
        tf.identity(tf.cond(flag, lambda: branch(2.0), lambda: branch(3.0)), name="result")
    with tf.Graph().as_default():
        flag, result = tf.import_graph_def(graph.as_graph_def(), return_elements=["flag:0", "result:0"])
        with tf.Session() as sess:
            assert [sess.run(result, {flag: each}) for each in (True, False)] == [4.0, 9.0]


def test_outputs_may_be_replaced() -> None:
    with tf.Graph().as_default():
        other = tf.constant(X + 1)
        waited = tf.constant(0, name="waited").op
        given = {"x": other, "^step": waited}
        y, biased = tf.import_graph_def(tf.GraphDef.from_text(BY_HAND), given, ["y:0", "biased"], name="cut")
        assert biased.control_inputs == (waited,)
        with tf.Session() as sess:
            np.testing.assert_array_equal(sess.run(y), sess.run(y, {other: X + 1}))
        with pytest.raises(ValueError, match=r"\['nothing:0'\]"):
            tf.import_graph_def(tf.GraphDef.from_text(BY_HAND), {"nothing": other})


THREE = "tensor_content: 'abc'"
TINY = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT %s } } }'
BRANCHES = """
library { function { signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" } }
  node_def { name: "again" op: "If" input: "a" input: "a" input: "a" %s } ret { key: "r" value: "again" } } }
node { name: "c" op: "Const" attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } } } } }
node { name: "if" op: "If" input: "c" input: "c" %s }
"""
CALL = (
    'attr { key: "then_branch" value { func { name: "f" } } } attr { key: "else_branch" value { func { name: "f" } } }'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('node { name: "n" op: "Relu" input: "gone" }', "node 'n' .Relu.: there is no input 'gone'"),
        ('node { name: "n" op: "Relu" input: "n" }', "node 'n' .Relu. needs itself"),
        ('node { name: "a" op: "Relu" input: "b" } node { name: "b" op: "Relu" input: "a" }', "needs itself"),
        ('node { name: "n" op: "NoOp" } node { name: "n" op: "NoOp" }', "two nodes are called 'n'"),
        ('node { name: "n" op: "Frobnicate" }', "node 'n' .Frobnicate.: .*not declared"),
        ('node { name: "n" op: "NoOp" attr { key: "q" value { i: 1 } } }', "node 'n' .NoOp.: attribute 'q' is unknown"),
        ('node { name: "n" op: "Relu" }', "node 'n' .Relu.: it has 0 inputs"),
        ('node { name: "n" op: "NoOp" } node { name: "m" op: "Relu" input: "n:1" }', "'n' has 0 outputs"),
        ('node { name: "n" op: "NoOp" } node { name: "m" op: "Relu" input: "n:x" }', "does not name an output"),
        (
            'node { name: "n" op: "Unpack" input: "c" attr { key: "num" value { i: 2 } } }'
            'node { name: "c" op: "Const" '
            f'{TINY % "tensor_shape { dim { size: 2 } }"} }} node {{ name: "m" op: "Relu" input: "n:value:0" }}',
            "has 2 outputs, and not this one",
        ),
        ('node { name: "n/" op: "NoOp" }', "must not be empty or end in"),
        ('node { name: "a b" op: "NoOp" }', "not a valid operation name"),
        ('node { op: "NoOp" }', "must not be empty"),
        ('node { name: "n" op: "NoOp" device: "/nowhere:::" }', "node 'n' .NoOp."),
        ('node { name: "n" op: "Placeholder" }', "node 'n' .Placeholder.: .*dtype"),
        ('node { name: "n" op: "Placeholder" attr { key: "dtype" value { i: 1 } } }', "'dtype' is 1, expected a DType"),
        ('node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: 99 } } }', "node 'n'"),
        ('node { name: "n" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } }', "node 'n'"),
        ('node { name: "n" op: "PyFunc" attr { key: "token" value { s: "f" } } }', "object of the program"),
        ('node { name: "n" op: "If" }', "has no function ''"),
        (f'node {{ name: "n" op: "Const" {TINY % "tensor_shape { dim { size: 4000000000000 } }"} }}', "larger than"),
        (f'node {{ name: "n" op: "Const" {TINY % "tensor_shape { dim { size: -1 } }"} }}', "not fully known"),
        (f'node {{ name: "n" op: "Const" {TINY % THREE} }}', "3 bytes do not fill"),
        (BRANCHES % (CALL, CALL), "within itself"),
        (BRANCHES % ("", CALL), "has no function ''"),
    ],
)
def test_what_is_no_graph_is_refused(text: str, said: str) -> None:
    with tf.Graph().as_default(), pytest.raises(XlaliteError, match=said):
        tf.import_graph_def(tf.GraphDef.from_text(text))


def test_long_chains_need_no_stack() -> None:
    nodes = [f'node {{ name: "n{i}" op: "NoOp" input: "^n{i + 1}" }}' for i in range(3000)]
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.GraphDef.from_text(" ".join([*nodes, 'node { name: "n3000" op: "NoOp" }'])))
        assert len(graph.get_operations()) == 3001


@pytest.mark.parametrize("name", sorted(OP_SPECS))
def test_every_attribute_can_be_checked(name: str) -> None:
    spec = OP_SPECS[name]
    known = {*_KIND_OF, *_PROCESS, *FUNCTIONS, "value"}
    assert {attr for attr in spec.attrs if attr not in known and spec.defaults.get(attr) is None} == set()


def test_branches_and_loops_are_written_as_tensorflow_has_them() -> None:
    """Both functions take all inputs, loops give all back, and functions say the names of outputs."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 4], name="x")
        w = tf.Variable(np.ones((4, 2), np.float32), name="w")
        y = tf.cond(x[0, 0] > 0, lambda: tf.matmul(x, w), lambda: tf.nn.top_k(x, 2)[0] + tf.split(x, 2, 1)[1])
        tf.while_loop(lambda i, z: i < tf.shape(x)[0], lambda i, z: (i + 1, z + y), [0, y])
        message = graph.as_graph_def()
    functions = {each.signature.name: each for each in message.library.function}
    counts = {}
    for node in message.node:
        names = [each.func.name for each in (node.attr[key] for key in node.attr) if each.func.name]
        for name in names:
            signature = functions[name].signature
            counts[name] = (len(node.input), len(signature.input_arg), len(signature.output_arg))
    assert sorted(counts.values()) == [(3, 3, 1), (3, 3, 3), (4, 3, 1), (4, 3, 1)]
    inputs = {text for each in functions.values() for node in each.node_def for text in node.input}
    assert {"TopKV2:values:0", "split:output:1"} <= inputs
    with tf.Graph().as_default() as again:
        tf.import_graph_def(message, name="")
        assert again.as_graph_def().SerializeToString() == message.SerializeToString()
        again_loop = again.get_operation_by_name("while")
        assert len(again_loop.get_attr("body").outputs) == 2
