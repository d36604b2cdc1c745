"""Mistakes that people make: each is refused where it is made, by an error that says what was found."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlalite as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=["JIT off", "JIT on"])
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    config = tf.ConfigProto()
    levels = {"JIT off": tf.OptimizerOptions.OFF, "JIT on": tf.OptimizerOptions.ON_2}
    config.graph_options.optimizer_options.global_jit_level = levels[request.param]
    with tf.Session(config=config) as session:
        yield session


def vectors(*sizes: int) -> tuple[list[tf.Tensor], dict[tf.Tensor, np.ndarray]]:
    made = [tf.placeholder(tf.float32, [None]) for _ in sizes]
    return made, {tensor: np.ones(size) for tensor, size in zip(made, sizes, strict=True)}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, y: x + y, r"Incompatible shapes \(3,\) and \(2,\)"),
        (lambda x, y: tf.matmul(x[None], y[:, None]), "contracting sizes differ"),
        (lambda x, y: tf.reshape(x, [2, 2]) + y, r"cannot reshape \(3,\) with 3 elements to \(2, 2\) with 4"),
        (lambda x, y: tf.stack([x, y]), "cannot stack tensors"),
        (lambda x, y: tf.slice(x, tf.cast(y, tf.int32)[:1] + 8, [-1]), "a slice from 9 of size -1 does not lie"),
        (lambda x, y: tf.ensure_shape(x, [9]), r"Shape of tensor .* is not compatible with expected shape \(9,\)"),
        (lambda x, y: tf.reduce_sum(x, tf.cast(y, tf.int32) - 1), "Invalid reduction dimension 0 is named twice"),
    ],
)
def test_sizes_that_do_not_fit_at_run_time_are_invalid_arguments(
    build: Callable[..., tf.Tensor], message: str, session: tf.Session
) -> None:
    (x, y), feeds = vectors(3, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
        session.run(build(x, y), feeds)
    assert caught.value.op is not None
    assert "test_mistakes.py" in str(caught.value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.ensure_shape(tf.zeros([2, 3]), [2]), "ranks"),
        (lambda: tf.reduce_sum(tf.zeros([2, 3]), [0, 0]), "axis 0 is named twice"),
        (lambda: tf.reduce_max(tf.zeros([2, 3]), [1, -1]), "axis -1 is named twice"),
        (lambda: tf.concat([tf.constant(1.0), tf.constant(2.0)], 0), "Can.t concatenate scalars"),
        (lambda: tf.zeros([2, -3]), r"zeros: a size must not be negative, found \[2, -3\]"),
        (lambda: tf.constant(2**100), "an integer does not fit into 64 bits"),
        (lambda: tf.gather(tf.constant([1.0, 2.0]), [0, 5]), "index 5 of .* is out of range, expected 0 to 1"),
        (lambda: tf.gather(tf.constant([1.0, 2.0]), -1), "index -1 of .* is out of range"),
    ],
)
def test_what_the_graph_shows_is_refused_while_it_is_built(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_the_rest_of_a_tensor_from_a_run_time_position(session: tf.Session) -> None:
    (x,), feeds = vectors(5)
    begin = tf.placeholder(tf.int32, [1])
    rest = tf.slice(x, begin, [-1]) * 2
    for position in (0, 2, 5):
        np.testing.assert_array_equal(session.run(rest, {**feeds, begin: [position]}), np.full(5 - position, 2))


@pytest.mark.parametrize("shape", [np.array([2, 3]), np.array([2, 3], np.uint8), (np.int64(2), np.int8(3))])
def test_arrays_are_shapes_everywhere(shape: Any, session: tf.Session) -> None:
    variable = tf.get_variable("v", shape)
    x = tf.placeholder(tf.float32, shape)
    made = [
        tf.zeros(shape), tf.fill(shape, 1.0), tf.constant(1.0, shape=shape), tf.random_normal(shape),
        tf.reshape(tf.zeros([6]), shape), tf.broadcast_to(tf.constant(1.0), shape), tf.tile(tf.zeros([1, 1]), shape),
        variable, x,
    ]  # fmt: skip
    assert tf.TensorShape(shape) == tf.TensorShape([2, 3])
    session.run(tf.global_variables_initializer())
    assert {value.shape for value in session.run(made, {x: np.zeros((2, 3))})} == {(2, 3)}


def test_a_shape_must_be_integers() -> None:
    with pytest.raises(TypeError, match=r"a shape must be None, an integer or a sequence of integers, found 2\.5"):
        tf.TensorShape(2.5)
    with pytest.raises(TypeError, match="a dimension must be an integer or None"):
        tf.TensorShape(np.array([2.0]))


def test_tensors_are_no_numbers_and_no_arrays() -> None:
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(TypeError, match=r"numpy\.sin of .*'Placeholder:0'.*: it has no value while the graph is built"):
        np.sin(x)
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match=r"'Placeholder:0'.* has no value while the graph is built"):
            convert(x)


def test_operators_of_arrays_mean_those_of_tensors(session: tf.Session) -> None:
    x, array = tf.placeholder(tf.float32, [2]), np.array([1, 4], np.float32)
    total = array
    total += x
    feeds = {x: [2, 3]}
    values = session.run([array - x, array**x, array < x, np.multiply(array, x), np.abs(-x), total], feeds)
    np.testing.assert_array_equal(np.stack(values), [[-1, 1], [1, 64], [1, 0], [2, 12], [2, 3], [3, 7]])
    np.testing.assert_array_equal(array, [1, 4])
    assert (array == x) is False


def test_what_things_are_is_said_in_a_line() -> None:
    text = "HloModule scale\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }"
    interpreted = tf.compile(tf.hlo.parse(text), backend="interpreter")
    assert repr(interpreted) == "<interpreter executable scale: (f32[8]) -> f32[8]>"
    compiled = repr(tf.compile(tf.hlo.parse(text)))
    assert compiled.startswith("<cpu executable scale: (f32[8]) -> f32[8], ")
    assert compiled.endswith(" bytes of code>")

    @tf.jit
    def double(x: Any) -> Any:
        return x + x

    assert repr(double) == "<jit of double, compiled for nothing yet>"
    double(np.ones(3, np.float32))
    assert repr(double) == "<jit of double, compiled for (f32[3]) -> (f32[3])>"


def test_a_wrong_feed_shows_one_frame_of_ours() -> None:
    x = tf.placeholder(tf.float32, [3])
    with tf.Session() as session, pytest.raises(ValueError, match=r"Cannot feed value of shape \(4,\)") as caught:
        session.run(x + 1, {x: np.ones(4)})
    assert len(caught.traceback) == 2
