"""Graphs with TensorFlow 1's switches, merges and frames, stacks, references and arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.hlo.errors import XlaliteError

HERE = Path(__file__).parent / "made_by_tensorflow"

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
INT = 'attr { key: "T" value { type: DT_INT32 } }'


def node(name: str, op: str, inputs: str = "", attrs: str = INT) -> str:
    listed = " ".join(f'input: "{each}"' for each in inputs.split())
    return f'node {{ name: "{name}" op: "{op}" {listed} {attrs} }}'


def number(name: str, value: int, inputs: str = "") -> str:
    held = f"tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }}"
    kind = 'attr { key: "dtype" value { type: DT_INT32 } }'
    return node(name, "Const", inputs, f'{kind} attr {{ key: "value" value {{ {held} }} }}')


def given(name: str, dtype: str = "DT_INT32") -> str:
    shape = 'attr { key: "shape" value { shape { } } }'
    return node(name, "Placeholder", "", f'attr {{ key: "dtype" value {{ type: {dtype} }} }} {shape}')


def enter(name: str, source: str, frame: str = "f", constant: bool = False) -> str:
    named = f'attr {{ key: "frame_name" value {{ s: "{frame}" }} }}'
    return node(name, "Enter", source, f'{named} attr {{ key: "is_constant" value {{ b: {str(constant).lower()} }} }}')


# i = 0; s = x; while i < n: if s < 100: s = s * 3 else s = s - i; i = i + 1
LOOP = [
    *(given("x"), given("n"), number("zero", 0), number("hundred", 100)),
    *(enter("enter_i", "zero"), enter("enter_s", "x"), enter("enter_n", "n", constant=True)),
    enter("enter_hundred", "hundred", constant=True),
    *(node("i", "Merge", "enter_i next_i"), node("s", "Merge", "enter_s next_s")),
    *(node("less", "Less", "i enter_n"), node("condition", "LoopCond", "less", "")),
    *(node("switch_i", "Switch", "i condition"), node("switch_s", "Switch", "s condition")),
    *(node("body_i", "Identity", "switch_i:1"), number("one", 1, "^body_i"), node("more", "Add", "body_i one")),
    *(node("small", "Less", "switch_s:1 enter_hundred"), node("pred", "Identity", "small", "")),
    *(node("in_s", "Switch", "switch_s:1 pred"), node("in_i", "Switch", "body_i small")),
    *(node("pivot_", "Switch", "small small", ""), node("pivot", "Identity", "pivot_:1", "")),
    *(number("three", 3, "^pivot"), node("times", "Mul", "in_s:1 three"), node("minus", "Sub", "in_s in_i")),
    node("chosen", "Merge", "minus times"),
    *(node("next_i", "NextIteration", "more"), node("next_s", "NextIteration", "chosen")),
    *(node("left", "Exit", "switch_s"), node("count", "Exit", "switch_i"), node("y", "Neg", "left")),
]


def session(jit: bool) -> tf.Session:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1 if jit else -1
    return tf.Session(config=config)


def run(text: str, fetches: list[str], feeds: Any, jit: bool = False) -> Any:
    with tf.Graph().as_default(), session(jit) as sess:
        tf.import_graph_def(tf.GraphDef.from_text(text), name="")
        return sess.run(fetches, feeds)


@pytest.mark.parametrize("jit", [False, True])
def test_a_branch_in_a_loop_by_hand(jit: bool) -> None:
    def expected(x: int, n: int) -> list[int]:
        s = x
        for i in range(n):
            s = s * 3 if s < 100 else s - i
        return [-s, n]

    for x, n in ((5, 6), (2, 0), (200, 3)):
        assert run(" ".join(LOOP), ["y:0", "count:0"], {"x:0": x, "n:0": n}, jit) == expected(x, n)


def test_loops_and_branches_are_functions_and_compile() -> None:
    with tf.Graph().as_default() as graph:
        y, left = tf.import_graph_def(tf.GraphDef.from_text(" ".join(LOOP)), return_elements=["y:0", "left"])
        assert {each.type for each in graph.get_operations()} == {"Placeholder", "Const", "While", "Identity", "Neg"}
        assert left.inputs[0].op.type == "While"
        with session(True) as sess:
            assert sess.run(y, {"import/x:0": 5, "import/n:0": 3}) == -135
            assert sess.jit_report().clusters == 1
        again = tf.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(again, name="")
        assert sess.run("import/y:0", {"import/x:0": 5, "import/n:0": 3}) == -135


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([each for each in LOOP if '"condition"' not in each.split("op:")[0]], "loop 'f' has 0 LoopCond nodes"),
        ([*LOOP, enter("other", "x", "g"), node("both", "Add", "other more")], "from the loops 'g' and 'f'"),
        (
            [enter("enter_hundred", "hundred") if "enter_hundred" in each[:30] else each for each in LOOP],
            "neither a const",
        ),
        ([*LOOP, node("out", "Exit", "more")], "node 'out' .Exit.: it does not leave with a loop variable"),
        ([given("p", "DT_BOOL"), given("x"), node("s", "Switch", "x p"), node("m", "Merge", "s x")], "'x' always"),
        (
            [
                *(given("p", "DT_BOOL"), given("q", "DT_BOOL"), given("x")),
                *(node("s", "Switch", "x p"), node("t", "Switch", "x q"), node("m", "Merge", "s t:1")),
            ],
            "'s' where 'p' is False; 't' where 'q' is True",
        ),
    ],
)
def test_what_is_neither_a_loop_nor_a_branch_is_refused_by_name(nodes: list[str], said: str) -> None:
    with tf.Graph().as_default(), pytest.raises(XlaliteError, match=said):
        tf.import_graph_def(tf.GraphDef.from_text(" ".join(nodes)))


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [given("x"), node("a", "Identity", "b"), node("b", "Identity", "a"), node("s", "Switch", "x a")],
            "needs itself",
        ),
        ([enter("a", "b"), enter("b", "a")], "needs itself"),
        ([given("x"), node("s", "Switch", "x")], "'s' .Switch. has 1 inputs, expected 2"),
        ([given("x"), node("a", "Enter", "x")], "'a' .Enter. has no attribute 'frame_name'"),
        ([node("v", "VariableV2")], "'v' .VariableV2. has no attribute 'dtype'"),
        (
            [given("p", "DT_BOOL"), given("x"), node("s", "Switch", "x p"), node("m", "Merge", "s:2 s")],
            "'m' .Merge. takes output 2 of 's' .Switch., which has 2",
        ),
    ],
)
def test_nodes_that_lack_something_or_need_themselves(nodes: list[str], said: str) -> None:
    with tf.Graph().as_default(), pytest.raises(XlaliteError, match=said):
        tf.import_graph_def(tf.GraphDef.from_text(" ".join(nodes)))


def test_many_switches_one_behind_the_other_are_waited_for_in_linear_time() -> None:
    switches = [node(f"s{i + 1}", "Switch", f"x p ^s{i} ^s{i}") for i in range(60)]
    nodes = [given("x"), given("p", "DT_BOOL"), node("s0", "Switch", "x p"), *switches, node("end", "NoOp", "^s60", "")]
    assert run(" ".join(nodes), ["end"], {"x:0": 1, "p:0": True}) == [None]


def test_what_runs_inside_cannot_be_fetched() -> None:
    with tf.Graph().as_default(), pytest.raises(XlaliteError, match="node 'times' is inside a loop or branch"):
        tf.import_graph_def(tf.GraphDef.from_text(" ".join(LOOP)), return_elements=["times:0"])


def test_the_index_of_a_merge() -> None:
    p, x = given("p", "DT_BOOL"), given("x")
    nodes = [p, x, node("s", "Switch", "x p"), node("n", "Neg", "s"), node("m", "Merge", "s:1 n")]
    text = " ".join([*nodes, node("index", "Identity", "m:1")])
    assert run(text, ["m:0", "index:0"], {"p:0": False, "x:0": 4}) == [-4, 1]
    assert run(text, ["m:0", "index:0"], {"p:0": True, "x:0": 4}) == [4, 0]


# What TensorFlow wrote (compat.v1 of 2.21 without control flow v2 and resource variables), and what it computes.

ROWS = np.random.RandomState(0).randn(2, 5, 3).astype(np.float32)


def imported(name: str) -> Any:
    return tf.GraphDef.FromString((HERE / f"{name}.pb").read_bytes())


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("name", "feeds", "expected"),
    [
        ("nested_cond", {"x:0": 20.0}, [2000.0, 1, 20.0]),
        ("nested_cond", {"x:0": -3.0}, [3.0, 3, -3.0]),
        ("nested_cond", {"x:0": 4.0}, [40.0, 2, 4.0]),
        ("nested_loop", {"n:0": 5}, [40]),
        ("grow", {"n:0": 3}, [[5, 0, 1, 2], 4, [0, 1, 4], 3]),
    ],
)
def test_graphs_that_tensorflow_wrote(name: str, feeds: Any, expected: list[Any], jit: bool) -> None:
    with tf.Graph().as_default(), session(jit) as sess:
        tf.import_graph_def(imported(name), name="")
        found = sess.run([f"out_{number}:0" for number in range(len(expected))], feeds)
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("jit", [False, True])
def test_a_recurrent_network_that_tensorflow_wrote(jit: bool) -> None:
    message = imported("recurrent")
    (weights,) = (each.attr["value"].tensor for each in message.node if each.name == "w")
    w = np.frombuffer(weights.tensor_content, np.float32).reshape(7, 4)
    lengths, h, outputs = np.array([3, 5]), np.zeros((2, 4), np.float32), []
    for t in range(5):
        new = np.tanh(np.concatenate([ROWS[:, t], h], 1) @ w)
        ended = (t >= lengths)[:, None]
        outputs.append(np.where(ended, 0, new))
        h = np.where(ended, h, new)
    with tf.Graph().as_default(), session(jit) as sess:
        tf.import_graph_def(message, name="")
        found = sess.run(["out_0:0", "out_1:0"], {"x:0": ROWS, "l:0": lengths.astype(np.int32)})
    np.testing.assert_allclose(found[0], np.stack(outputs, 1), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], h, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_training_by_reference_through_a_loop_that_tensorflow_wrote(jit: bool) -> None:
    x = np.random.RandomState(0).randn(8, 4).astype(np.float32)
    y = np.random.RandomState(1).randint(0, 3, 8)
    with tf.Graph().as_default(), session(jit) as sess:
        tf.import_graph_def(imported("training_loop"), name="")
        sess.run("init")
        losses = [sess.run(["loss:0", "train"], {"x:0": x, "y:0": y})[0] for _ in range(4)]
    np.testing.assert_allclose(losses, [2.3101954, 0.9826181, 0.65238416, 0.5254679], rtol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_functions_that_are_called_and_chosen_and_outputs_by_name(jit: bool) -> None:
    """Calls, `Case`, `While` and `If` with several outputs inside, and a list that grows; values are TensorFlow's."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = jit
    message = tf.GraphDef.FromString((HERE / "calls.pb").read_bytes())
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        results = tf.import_graph_def(message, name="in", return_elements=["Identity:0", "Identity_1:0"])
        for k, (first, last) in {0: (14.75, 28.75), 1: (10.75, 18.75), 2: (12.25, 22.25), 5: (12.25, 22.25)}.items():
            found = sess.run(results, {"in/x:0": np.arange(8).reshape(2, 4), "in/k:0": k})
            np.testing.assert_allclose(found[0], [[first] * 2, [last] * 2])
            np.testing.assert_allclose(found[1], [[0] * 2, [first] * 2, [2 * first] * 2])


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ('attr { key: "f" value { func { name: "g" } } }', "the library has no function 'g'"),
        ('attr { key: "f" value { func { name: "f" } } }', "function 'f' takes 0 inputs, found 1"),
    ],
)
def test_calls_that_do_not_fit_are_refused(attrs: str, message: str) -> None:
    text = given("x") + node("y", "PartitionedCall", "x", attrs)
    text += ' library { function { signature { name: "f" } } }'
    with tf.Graph().as_default(), pytest.raises(XlaliteError, match=message):
        tf.import_graph_def(tf.GraphDef.from_text(text), name="")
