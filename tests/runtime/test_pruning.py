"""Which operations a run needs."""

import xlalite as tf
from xlalite.runtime.pruning import needed_operations


def test_only_what_the_fetch_depends_on_is_needed() -> None:
    a, b = tf.constant(1.0), tf.constant(2.0)
    wanted = a * 2.0
    _ = b * 2.0
    assert {op.type for op in needed_operations([wanted], [], [])} == {"Const", "Mul"}
    assert b.op not in needed_operations([wanted], [], [])


def test_producers_come_first() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.exp(x) * x
    order = needed_operations([y], [], [])
    assert order.index(x.op) < order.index(y.op)


def test_what_is_fed_hides_its_producers() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.exp(x)
    z = y * 2.0
    needed = needed_operations([z], [], [y])
    assert y.op not in needed
    assert x.op not in needed


def test_operation_with_one_fed_output_runs_for_the_other() -> None:
    a, b = tf.identity_n([tf.constant(1.0), tf.constant(2.0)])
    assert a.op in needed_operations([a + b], [], [a])


def test_control_dependencies_are_needed() -> None:
    v = tf.Variable(1.0)
    bump = v.assign_add(1.0, read_value=False)
    with tf.control_dependencies([bump]):
        late = tf.constant(1.0)
    assert bump in needed_operations([late], [], [])
    assert bump not in needed_operations([tf.constant(1.0)], [], [])


def test_fed_placeholder_as_target_or_control_dependency_does_not_run() -> None:
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([x]):
        late = tf.constant(1.0)
    assert x.op not in needed_operations([late], [x.op], [x])
    assert x.op in needed_operations([late], [], [])
