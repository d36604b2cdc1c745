"""Sessions: their life, what can be fetched and fed, and what goes wrong."""

import threading
from collections import OrderedDict, namedtuple
from collections.abc import Iterator

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError

Pair = namedtuple("Pair", ["first", "second"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


# Life.


def test_with_block_makes_session_and_graph_the_defaults_and_closes_it(graph: tf.Graph) -> None:
    other = tf.Graph()
    with tf.Session(graph=other) as sess:
        assert tf.get_default_session() is sess
        assert tf.get_default_graph() is other
        assert tf.constant(2.0).eval() == 2.0
    assert tf.get_default_session() is None
    assert tf.get_default_graph() is graph
    with pytest.raises(RuntimeError, match=r"Attempted to use a closed Session\."):
        sess.run([])


def test_as_default_leaves_the_session_open() -> None:
    sess = tf.Session()
    one = tf.constant(1)
    with sess.as_default():
        assert one.eval() == 1
    assert sess.run(one) == 1
    sess.close()


def test_closing_twice_is_fine_and_use_after_it_is_an_error() -> None:
    one = tf.constant(1)
    sess = tf.Session()
    call = sess.make_callable(one)
    assert sess.run(one) == 1
    sess.close()
    sess.close()
    for use in (lambda: sess.run(one), call, sess.list_devices, lambda: sess.make_callable(one)):
        with pytest.raises(RuntimeError, match=r"Attempted to use a closed Session\."):
            use()


def test_empty_graph_is_an_error() -> None:
    with tf.Session() as sess, pytest.raises(RuntimeError, match="graph is empty"):
        sess.run([])


def test_graph_may_grow_between_runs() -> None:
    with tf.Session() as sess:
        one = tf.constant(1)
        assert sess.run(one) == 1
        assert sess.run(one + 1) == 2


def test_the_plan_used_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlalite.client.session._MOST_PLANS", 2)
    x = tf.placeholder(tf.float32, [])
    tripled, squared, negated = x + x + x, x * x, -x
    with tf.Session() as session:
        for fetch in (tripled, squared, tripled, negated):
            session.run(fetch, {x: 3.0})
        assert session.jit_report().operations == 3  # two of tripled, one of negated
        assert session.run(squared, {x: 3.0}) == 9.0


def test_interactive_session_is_the_default_until_closed() -> None:
    sess = tf.InteractiveSession()
    assert tf.constant(3).eval() == 3
    sess.close()
    sess.close()
    assert tf.get_default_session() is None


def test_interactive_session_makes_a_given_graph_the_default(graph: tf.Graph) -> None:
    other = tf.Graph()
    sess = tf.InteractiveSession(graph=other)
    assert tf.get_default_graph() is other
    sess.close()
    assert tf.get_default_graph() is graph


def test_remote_target_is_refused() -> None:
    with pytest.raises(RuntimeError, match="grpc://here:2222"):
        tf.Session("grpc://here:2222")


def test_config_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="ConfigProto"):
        tf.Session(config={"jit": True})  # type: ignore[arg-type]


def test_devices_are_listed() -> None:
    with tf.Session() as sess:
        (device,) = sess.list_devices()
    assert device.name.endswith("device:CPU:0")
    assert device.device_type == "CPU"


def test_placement_is_logged_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    one = tf.constant(1, name="one")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as sess:
        sess.run(one)
    assert "one: (Const): /job:localhost/replica:0/task:0/device:CPU:0" in capsys.readouterr().err


# Fetches.


def test_fetches_of_every_structure() -> None:
    a, b = tf.constant(1.0, name="a"), tf.constant([2.0, 3.0], name="b")
    step = tf.group(a, name="step")
    with tf.Session() as sess:
        assert sess.run(a) == 1.0
        assert isinstance(sess.run(a), np.float32)
        assert sess.run(step) is None
        assert sess.run([]) == []
        assert sess.run([a, step, "a:0"]) == [1.0, None, 1.0]
        assert sess.run("step") is None
        assert sess.run((a, [a, (a,)])) == (1.0, [1.0, (1.0,)])
        assert sess.run(Pair(a, step)) == Pair(1.0, None)
        found = sess.run({"x": a, "y": {"z": b}})
        assert found["x"] == 1.0
        np.testing.assert_array_equal(found["y"]["z"], [2, 3])
        assert list(sess.run(OrderedDict([("q", a), ("p", a)]))) == ["q", "p"]


def test_fetches_of_attrs_classes() -> None:
    attrs = pytest.importorskip("attrs")
    sample = attrs.make_class("Sample", ["x", "y"])
    with tf.Session() as sess:
        assert sess.run(sample(tf.constant(1), tf.constant(2))) == sample(1, 2)


def test_strings_come_back_as_bytes() -> None:
    with tf.Session() as sess:
        assert sess.run(tf.constant("text")) == b"text"
        x = tf.placeholder(tf.string, [None])
        assert sess.run(tf.identity(x), {x: ["a", b"b"]}).tolist() == [b"a", b"b"]


def test_fetched_tensor_that_is_fed_gives_the_fed_value() -> None:
    a = tf.constant([1.0, 2.0])
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(a, {a: [5, 6]}), [5, 6])
        np.testing.assert_array_equal(sess.run([a * 2, a], {a: [5, 6]}), [[10, 12], [5, 6]])


def test_fetched_arrays_belong_to_the_caller() -> None:
    a = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:
        sess.run(v.initializer)
        fed = np.array([1, 2], np.float32)
        for tensor in (a, v, tf.identity(x), tf.reshape(v, [1, 2]), tf.transpose(tf.identity(v))):
            sess.run(tensor, {x: fed})[...] = 9
        np.testing.assert_array_equal(sess.run(a), [1, 2])
        np.testing.assert_array_equal(sess.run(v), [1, 2])
        np.testing.assert_array_equal(fed, [1, 2])


@pytest.mark.parametrize(
    ("fetch", "error", "message"),
    [
        ("nothing:0", ValueError, "Fetch argument 'nothing:0' cannot be interpreted as a Tensor"),
        ("nothing", ValueError, "nothing"),
        (3, TypeError, "Fetch argument 3 has invalid type int"),
        (None, TypeError, "invalid type NoneType"),
        (np.zeros(2), TypeError, "invalid type ndarray"),
    ],
)
def test_what_cannot_be_fetched_is_an_error(fetch: object, error: type[Exception], message: str) -> None:
    tf.constant(1)
    with tf.Session() as sess, pytest.raises(error, match=message):
        sess.run(fetch)


def test_tensor_of_another_graph_cannot_be_fetched() -> None:
    with tf.Graph().as_default():
        stranger = tf.constant(1)
    tf.constant(1)
    with tf.Session() as sess, pytest.raises(ValueError, match="another graph"):
        sess.run(stranger)


# Feeds.


def test_any_tensor_can_be_fed_by_tensor_or_name() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.multiply(x, 2.0, name="y")
    z = y + 1.0
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(z, {x: [1, 2]}), [3, 5])
        np.testing.assert_array_equal(sess.run(z, {"x:0": [1.0]}), [3])
        np.testing.assert_array_equal(sess.run("add:0", {"y:0": np.ones(2)}), [2, 2])
        np.testing.assert_array_equal(sess.run(z, {y: [1.0]}), [2])


def test_feeds_are_converted_to_the_element_type() -> None:
    x = tf.placeholder(tf.float32, [2])
    n = tf.placeholder(tf.int32)
    with tf.Session() as sess:
        assert sess.run(x * 1, {x: np.array([1, 2], np.float64)}).dtype == np.float32
        assert sess.run(x * 1, {x: (True, 2)}).tolist() == [1, 2]
        assert sess.run(n + 1, {n: 2.0}) == 3
        assert sess.run(n + 1, {n: np.array([1, 2], np.int64)}).tolist() == [2, 3]


def test_fed_arrays_of_any_layout_are_accepted() -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    given = np.arange(6, dtype=np.float32).reshape(3, 2)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(x + 0, {x: given.T}), given.T)
        np.testing.assert_array_equal(sess.run(x + 0, {x: given.T.astype(">f4")}), given.T)
        np.testing.assert_array_equal(sess.run(x + 0, {x: np.broadcast_to(np.float32(1), (2, 3))}), np.ones((2, 3)))


@pytest.mark.parametrize("value", [np.zeros((3, 4)), 1.0, np.zeros(784), [[0.0]]])
def test_wrong_shape_is_a_value_error_with_both_shapes(value: object) -> None:
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    with tf.Session() as sess, pytest.raises(ValueError, match="Cannot feed value of shape") as caught:
        sess.run(x * 1, {x: value})
    assert f"{np.shape(value)} for Tensor 'x:0', which has shape '(?, 784)'" in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        (tf.int32, 2**40, "Type of feed value 1099511627776 with type int is not compatible with Tensor type int32"),
        (tf.int32, 1.5, "would change it"),
        (tf.uint8, [-1], "Tensor 'x:0' of type uint8"),
        (tf.int32, np.array([2**40]), "would change it"),
        (tf.float32, "text", "Cannot feed str 'text' for Tensor 'x:0' of type float32"),
        (tf.float32, [[1], [2, 3]], "Cannot feed list"),
        (tf.float32, 1j, "Tensor 'x:0' of type float32"),
        (tf.float32, None, "Cannot feed NoneType None .* objects that are no numbers"),
        (tf.string, [1], "where a string is expected"),
    ],
)
def test_wrong_type_is_a_type_error(dtype: tf.DType, value: object, message: str) -> None:
    x = tf.placeholder(dtype, name="x")
    with tf.Session() as sess, pytest.raises(TypeError, match=message):
        sess.run(tf.identity(x), {x: value})


def test_tensor_as_fed_value_is_a_type_error() -> None:
    x = tf.placeholder(tf.float32)
    with tf.Session() as sess, pytest.raises(TypeError, match="has no value before it is run"):
        sess.run(x * 1, {x: tf.constant(1.0)})


def test_wrong_keys_and_mappings_are_errors() -> None:
    x = tf.placeholder(tf.float32, name="x")
    with tf.Session() as sess:
        with pytest.raises(TypeError, match="Cannot interpret feed_dict key 'y:0' as Tensor"):
            sess.run(x, {"y:0": 1})
        with pytest.raises(TypeError, match="Cannot interpret feed_dict key"):
            sess.run(x, {3: 1})
        with pytest.raises(TypeError, match="feed_dict must be a dictionary, found list"):
            sess.run(x, [(x, 1)])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'x:0' is fed twice"):
            sess.run(x, {x: 1, "x:0": 2})
        x.graph.prevent_feeding(x)
        with pytest.raises(ValueError, match="Tensor 'x:0' may not be fed"):
            sess.run(x, {x: 1})


def test_unfed_placeholder_is_named_with_its_type() -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match=r"'x'.*float32"):
        sess.run(x * 2)


# Variables.


def test_uninitialised_variable_is_named() -> None:
    v = tf.Variable(1.0, name="weight")
    with tf.Session() as sess, pytest.raises(FailedPreconditionError, match="weight"):
        sess.run(v * 2)


def test_sessions_on_one_graph_have_their_own_variables() -> None:
    v = tf.Variable(1.0)
    step = v.assign_add(1.0)
    with tf.Session() as first, tf.Session() as second:
        first.run(v.initializer)
        second.run(v.initializer)
        first.run(step)
        assert first.run(v) == 2
        assert second.run(v) == 1


def test_only_what_is_needed_runs() -> None:
    v = tf.Variable(1.0)
    bump = v.assign_add(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(tf.constant(1.0))
        assert sess.run(v) == 1
        with tf.control_dependencies([bump]):
            late = tf.constant(7.0) * 1.0
        assert sess.run(late) == 7
        assert sess.run(v) == 2


# The rest.


def test_make_callable_runs_with_values_in_order() -> None:
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32)
    with tf.Session() as sess:
        call = sess.make_callable([x * y, y], [x, y])
        product, fed = call([1, 2], 3)
        assert product.tolist() == [3, 6]
        assert fed == 3
        with pytest.raises(ValueError, match="takes 2 values, found 1"):
            call([1, 2])
        with pytest.raises(TypeError, match="accept_options"):
            call([1, 2], 3, options=tf.RunOptions())
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            call([1, 2, 3], 3)


def test_operations_and_tensors_run_in_a_given_session() -> None:
    v = tf.Variable(4.0)
    with tf.Session() as sess:
        tf.global_variables_initializer().run(session=sess)
        assert (v * 2).eval(session=sess) == 8


def test_concurrent_runs_do_not_disturb_each_other() -> None:
    x = tf.placeholder(tf.float32, [4])
    v = tf.Variable(0.0)
    y = tf.reduce_sum(x * 2)
    bump = v.assign_add(1.0, read_value=False)
    failures: list[object] = []
    with tf.Session() as sess:
        sess.run(v.initializer)

        def work(number: int) -> None:
            for _ in range(30):
                if sess.run(y, {x: np.full(4, number)}) != 8 * number:
                    failures.append(number)
                sess.run(bump)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_step_that_takes_too_long_is_given_up() -> None:
    x = tf.placeholder(tf.float32, [400, 400])
    y = x
    for _ in range(40):
        y = tf.matmul(y, x)
    with tf.Session() as sess, pytest.raises(DeadlineExceededError, match="1 ms"):
        sess.run(y, {x: np.zeros((400, 400))}, options=tf.RunOptions(timeout_in_ms=1))


def test_errors_of_operations_name_them_and_the_users_line() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    total = tf.add(x, y, name="total")
    with tf.Session() as sess, pytest.raises(ValueError, match="total") as caught:
        sess.run(total, {x: [1, 2], y: [1, 2, 3]})
    assert "test_session.py" in str(caught.value)


# Keys made of several tensors.


def test_tuples_of_tensors_are_fed_with_tuples(graph: tf.Graph) -> None:
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2]))
    third = tf.placeholder(tf.float32)
    with tf.Session() as sess:
        feeds = {state: tf.nn.rnn_cell.LSTMStateTuple(np.ones(2), [2, 3]), third: 4}
        assert sess.run(state.c + state.h * third, feeds).tolist() == [9, 13]
        assert sess.run(state.c + state.h * third, {(state, third): ([np.ones(2), [2, 3]], 4)}).tolist() == [9, 13]
        with pytest.raises(TypeError, match="expected a tuple of 2"):
            sess.run(state.c, {state: (np.ones(2),)})


# Variables by the names of their handles.


def test_a_variable_is_fetched_by_its_name(graph: tf.Graph) -> None:
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(v.assign_add([1.0, 1.0]))
        assert sess.run("v:0").tolist() == [2, 3]
        assert sess.run({"v": graph.get_tensor_by_name("v:0")})["v"].tolist() == [2, 3]


def test_a_handle_that_nothing_reads_is_refused(graph: tf.Graph) -> None:
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2])
    with tf.Session() as sess, pytest.raises(TypeError, match="that nothing reads"):
        sess.run(handle)
