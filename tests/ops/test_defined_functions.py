"""`tf.function`, `Defun` and `xla.compile`: pieces of a graph that act as a whole."""

import functools

import numpy as np
import pytest

import xlalite as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_function_gives_what_its_text_gives_and_keeps_nests():
    @tf.function
    def both(x, scale=2.0):
        return {"sum": tf.reduce_sum(x), "parts": (x * scale, x - 1.0)}

    result = _run(both(tf.constant([1.0, 2.0]), scale=3.0))
    assert result["sum"] == 3.0
    np.testing.assert_array_equal(result["parts"], [[3.0, 6.0], [0.0, 1.0]])


def test_concrete_functions_take_and_give_leaves():
    @tf.function
    def swapped(first, second):
        return (second, first[0] + first[1])

    number = tf.constant(1.0)
    taken = swapped.get_concrete_function((number, number), number)
    results = taken(number, number * 2, number * 5)
    assert _run(results) == [5, 3]


def test_function_changes_variables_in_the_order_of_its_text():
    variable = tf.Variable(1.0)

    @tf.function
    def step():
        before = variable.read_value() + 0.0
        variable.assign_add(2.0, read_value=False)
        middle = variable.read_value() + 0.0
        variable.assign(middle * 10.0, read_value=False)
        return before, middle, variable.read_value()

    assert _run(step()) == (1.0, 3.0, 30.0)


def test_function_without_results_gives_an_operation():
    variable = tf.Variable(1.0)
    change = tf.function(lambda: variable.assign_add(2.0, read_value=False))
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(change())
        assert session.run(variable) == 3.0


def test_function_asks_for_compilation_when_told():
    @tf.function(jit_compile=True)
    def product(x):
        return x * 2.0

    marked = product(tf.constant(1.0)).op.inputs[0].op
    plain = tf.function(lambda x: x * 2.0)(tf.constant(1.0)).op.inputs[0].op
    assert marked.get_attr("_XlaCompile") is True
    assert "_XlaCompile" not in plain.attrs


def test_functions_of_any_name_make_a_scope():
    def _twice(x):
        return x * 2.0

    calls = [tf.function(_twice), tf.Defun(tf.float32)(_twice), tf.function(functools.partial(_twice))]
    results = [call(tf.constant(1.0)) for call in calls]
    assert [each.op.name.split("/")[0] for each in results] == ["twice", "twice_1", "function"]
    assert _run(results) == [2.0, 2.0, 2.0]


def test_defun_converts_arguments_and_takes_its_gradient_from_grad_func():
    @tf.Defun(tf.float32, tf.float32, tf.float32)
    def gradient(x, y, arrived):
        return arrived * 10.0, arrived * y

    @tf.Defun(tf.float32, tf.float32, grad_func=gradient)
    def product(x, y):
        return x * y

    x, y = tf.constant(3.0), tf.constant(4.0)
    result = product(x, y)
    assert _run([result, *tf.gradients(result, [x, y])]) == [12.0, 10.0, 4.0]
    with pytest.raises(ValueError, match="product takes 2 arguments, found 1"):
        product(x)


def test_defun_hands_its_call_to_a_python_gradient():
    @tf.Defun(tf.float32, python_grad_func=lambda call, arrived: arrived * call.outputs[0] * call.inputs[0])
    def double(x):
        return x * 2.0

    x = tf.constant(3.0)
    assert _run(tf.gradients(double(x), x)) == [18.0]


def test_compile_gives_lists_and_waits_for_operations():
    variable = tf.Variable(1.0)

    def computation(x):
        return x + 1.0, variable.assign_add(x, read_value=False)

    result = tf.xla.experimental.compile(computation, [2.0])
    single = tf.xla.experimental.compile(lambda x: x * 2.0, [3.0])
    assert isinstance(single, list)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(result) == 3.0
        assert session.run(variable) == 3.0
        assert session.run(single) == [6.0]


def test_arrays_of_truth_values_are_scattered_and_split_by_constant_lengths():
    array = tf.TensorArray(tf.bool, size=3).scatter([2, 0], [True, False])
    parts = tf.TensorArray(tf.float32, size=2).split(tf.zeros([0]), tf.constant([0, 0]))
    result = _run([array.stack(), parts.read(1)])
    np.testing.assert_array_equal(result[0], [False, False, True])
    assert result[1].shape == (0,)


def test_types_make_numbers_of_numpy():
    assert tf.float32.as_numpy_dtype(1.5).dtype == np.float32
    assert tf.bfloat16.as_numpy_dtype(1.5) == 1.5


def test_bare_handles_know_their_variable():
    handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[2])
    assign = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant([1, 2]))
    with tf.control_dependencies([assign]):
        value = tf.raw_ops.ReadVariableOp(resource=handle)
    np.testing.assert_array_equal(_run(value), [1, 2])


def test_a_single_number_is_counted():
    np.testing.assert_array_equal(_run(tf.bincount(tf.constant(2), minlength=4)), [0, 0, 1, 0])


def test_what_is_compiled_comes_in_a_list_unless_it_is_one():
    assert _run(tf.xla.experimental.compile(lambda: 1.0)) == [1.0]
    assert _run(tf.xla.experimental.compile(lambda: np.array([1, 2])))[0].tolist() == [1, 2]
    assert _run(tf.xla.experimental.compile(lambda: (1.0, 2.0))) == (1.0, 2.0)
    assert tf.xla.experimental.compile(lambda: None).type == "NoOp"


def test_a_stack_is_closed_and_a_trigger_waits():
    def step():
        stack = tf.raw_ops.StackV2(max_size=2, elem_type=tf.float32)
        pushed = tf.raw_ops.StackPushV2(handle=stack, elem=1.0)
        with tf.control_dependencies([pushed]):
            closed = tf.raw_ops.StackCloseV2(handle=stack)
        with tf.control_dependencies([closed]):
            popped = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
        with tf.control_dependencies([popped]):
            return tf.raw_ops.ControlTrigger()

    with pytest.raises(tf.errors.InvalidArgumentError, match="the stack is empty"):
        _run(step())
