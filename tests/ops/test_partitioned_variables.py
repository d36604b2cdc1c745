"""Variables that lie in parts: how they are divided, read, trained, looked up in and saved."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.files.checkpoints import CheckpointReader
from xlalite.hlo.errors import ShapeError

F: Any = np.float32
TABLE = np.arange(14, dtype=F).reshape(7, 2)
IN_THREE = tf.fixed_size_partitioner(3)


@pytest.mark.parametrize(
    ("partitioner", "shape", "expected"),
    [
        (tf.fixed_size_partitioner(3), [7, 2], [3, 1]),
        (tf.fixed_size_partitioner(3, axis=1), [7, 2], [1, 2]),
        (tf.variable_axis_size_partitioner(24), [7, 2], [3, 1]),
        (tf.variable_axis_size_partitioner(1), [7, 2], [7, 1]),
        (tf.variable_axis_size_partitioner(1, max_shards=2), [7, 2], [2, 1]),
        (tf.min_max_variable_partitioner(4, min_slice_size=20), [7, 2], [3, 1]),
        (tf.min_max_variable_partitioner(2, min_slice_size=20), [7, 2], [2, 1]),
        (tf.min_max_variable_partitioner(4), [7, 2], [1, 1]),
    ],
)
def test_partitioners(partitioner: Any, shape: Any, expected: Any) -> None:
    assert partitioner(shape=tf.TensorShape(shape), dtype=tf.float32) == expected


def test_parts_are_variables_and_together_a_tensor(graph: Any) -> None:
    with tf.variable_scope("scope", partitioner=IN_THREE):
        whole = tf.get_variable("table", initializer=TABLE)
        scalar = tf.get_variable("scalar", [])
    assert [variable.name for variable in whole] == [f"scope/table/part_{number}:0" for number in range(3)]
    assert [variable.shape.as_list() for variable in whole] == [[3, 2], [2, 2], [2, 2]]
    assert scalar in tf.global_variables()
    assert set(whole) < set(tf.trainable_variables())
    assert (whole.name, whole.dtype, whole.shape.as_list(), len(whole)) == ("scope/table", tf.float32, [7, 2], 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(whole)), TABLE)
        np.testing.assert_array_equal(session.run(whole * 2.0 + 1.0), TABLE * 2 + 1)
        session.run(whole.assign_add(TABLE))
        np.testing.assert_array_equal(session.run(whole.as_tensor()), TABLE * 2)
        session.run(whole.assign(-TABLE))
        session.run(whole.assign_sub(TABLE))
        np.testing.assert_array_equal(session.run(whole.as_tensor()), TABLE * -2)


def test_parts_along_another_dimension(graph: Any) -> None:
    whole = tf.get_variable("table", [7, 5], partitioner=tf.fixed_size_partitioner(2, axis=1))
    assert [variable.shape.as_list() for variable in whole] == [[7, 3], [7, 2]]
    assert whole.partition_axis == 1
    joined = tf.convert_to_tensor(whole)
    assert (joined.name, joined.shape.as_list()) == ("table:0", [7, 5])


def test_they_are_found_again_and_not_mistaken(graph: Any) -> None:
    with tf.variable_scope("scope", partitioner=IN_THREE):
        whole = tf.get_variable("table", [7, 2])
    with tf.variable_scope("scope", reuse=True, partitioner=IN_THREE):
        assert tf.get_variable("table") is whole
        with pytest.raises(ShapeError, match="asked for"):
            tf.get_variable("table", [7, 3])
    with tf.variable_scope("scope"):
        with pytest.raises(tf.errors.GraphError, match="lies in parts"):
            tf.get_variable("table", [7, 2])
        with pytest.raises(tf.errors.GraphError, match="exists already"):
            tf.get_variable("table", [7, 2], partitioner=IN_THREE)
        tf.get_variable("other", [7, 2])
        with pytest.raises(tf.errors.GraphError, match="one piece"):
            tf.get_variable("other", [7, 2], partitioner=IN_THREE)
    with pytest.raises(ValueError, match="more than one dimension"):
        tf.get_variable("both", [4, 4], partitioner=lambda **_: [2, 2])
    with pytest.raises(ValueError, match="Partitioner returned"):
        tf.get_variable("few", [4, 4], partitioner=lambda **_: [2])


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_tables_in_parts_are_looked_up_and_trained(graph: Any, strategy: str) -> None:
    whole = tf.get_variable("table", initializer=TABLE, partitioner=IN_THREE)
    ids = [0, 3, 6]
    rows = tf.nn.embedding_lookup(whole, ids, strategy)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows * rows))
    # Dealt out in turn, the parts hold rows 0 3 6, 1 4 and 2 5, which here are the rows of the table in order.
    places = [0, 1, 2] if strategy == "mod" else ids
    after = TABLE.copy()
    after[places] = 0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(rows), TABLE[places])
        session.run(step)
        np.testing.assert_array_equal(session.run(whole.as_tensor()), after)


@pytest.mark.parametrize(("saved", "restored"), [(3, None), (None, 2), (3, 2), (2, 5)])
def test_checkpoints_do_not_say_how_many_parts_there_were(
    tmp_path: Any, saved: int | None, restored: int | None
) -> None:
    def table(count: int | None, initial: Any) -> Any:
        partitioner = None if count is None else tf.fixed_size_partitioner(count)
        with tf.variable_scope("scope"):
            return tf.get_variable("table", initializer=initial, partitioner=partitioner)

    with tf.Graph().as_default(), tf.Session() as session:
        table(saved, TABLE)
        tf.get_variable("other", initializer=F(3))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    reader = CheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"other": [], "scope/table": [7, 2]}
    np.testing.assert_array_equal(reader.get_tensor("scope/table"), TABLE)
    with tf.Graph().as_default(), tf.Session() as session:
        whole = table(restored, np.zeros_like(TABLE))
        tf.train.Saver({"scope/table": whole}).restore(session, path)
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(whole)), TABLE)


def test_a_saver_refuses_two_variables_of_one_name(graph: Any) -> None:
    whole = tf.get_variable("table", initializer=TABLE, partitioner=IN_THREE)
    other = tf.Variable(TABLE, name="other")
    with pytest.raises(tf.errors.GraphError, match="same name"):
        tf.train.Saver({"table": [*whole, other]})
