"""Supervisors: sessions that begin from a folder and save into it; the description of clusters."""

import os
import time
from typing import Any

import numpy as np
import pytest

import xlalite as tf


def counting() -> Any:
    step = tf.train.get_or_create_global_step()
    tf.summary.scalar("steps", step)
    return tf.assign_add(step, 1)


def test_a_supervisor_goes_on_where_the_last_one_saved(tmp_path: Any) -> None:
    for begin in (0, 3):
        with tf.Graph().as_default():
            more = counting()
            supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
            with supervisor.managed_session() as session:
                assert session.run(supervisor.global_step) == begin
                for _ in range(3):
                    session.run(more)
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
            assert supervisor.should_stop()
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-6")


def test_its_threads_save_checkpoints_and_summaries(tmp_path: Any) -> None:
    with tf.Graph().as_default():
        more = counting()
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0.05, save_summaries_secs=0.05)
        with supervisor.managed_session() as session:
            session.run(more)
            end = time.monotonic() + 20
            while tf.train.latest_checkpoint(str(tmp_path)) is None and time.monotonic() < end:
                time.sleep(0.01)
            supervisor.summary_computed(session, session.run(supervisor.summary_op))
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None
    (events,) = [name for name in os.listdir(tmp_path) if "tfevents" in name]
    found = list(tf.train.summary_iterator(str(tmp_path / events)))
    assert [event.summary.value[0].simple_value for event in found if event.summary.value][-1] == 1
    assert found[-1].session_log.status == tf.summary.SessionLog.STOP


def test_it_does_without_a_folder_and_stops_on_errors(graph: Any) -> None:
    value = tf.Variable(2.0)
    local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    given = []
    supervisor = tf.train.Supervisor(init_fn=given.append, summary_op=None)
    assert supervisor.save_path is supervisor.summary_writer is supervisor.global_step is None
    with supervisor.managed_session() as session:
        assert session.run([value, local]) == [2.0, 3.0]
        assert given == [session]
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            supervisor.summary_computed(session, b"")
    with pytest.raises(KeyError, match="made up"), supervisor.managed_session():
        raise KeyError("made up")
    with pytest.raises(tf.errors.FinalizedGraphError):
        tf.constant(1.0)


def test_its_loops_end_when_it_stops(graph: Any) -> None:
    calls: list[int] = []
    supervisor = tf.train.Supervisor()
    session = supervisor.prepare_or_wait_for_session()
    thread = supervisor.loop(0.001, calls.append, (1,))
    while not calls:
        time.sleep(0.001)
    assert not supervisor.should_stop()
    supervisor.request_stop()
    supervisor.wait_for_stop()
    supervisor.stop()
    session.close()
    assert not thread.is_alive()


def test_clusters_are_described() -> None:
    spec = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": {1: "c:3", 4: "d:4"}})
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"ps": ["a:1", "b:2"], "worker": {1: "c:3", 4: "d:4"}}
    assert spec == tf.train.ClusterSpec(spec)
    assert spec
    assert spec.num_tasks("ps") == 2
    assert spec.task_indices("worker") == [1, 4]
    assert spec.task_address("worker", 4) == "d:4"
    assert spec.job_tasks("worker") == [None, "c:3", None, None, "d:4"]
    with pytest.raises(ValueError, match="No such job"):
        spec.num_tasks("chief")
    with pytest.raises(ValueError, match="No task with index 2"):
        spec.task_address("worker", 2)
    with pytest.raises(TypeError, match="must be a dictionary"):
        tf.train.ClusterSpec(["a:1"])
    with pytest.raises(TypeError, match="must be a list"):
        tf.train.ClusterSpec({"ps": "a:1"})
    with pytest.raises(tf.errors.UnimplementedError, match="one task"):
        tf.train.Server(spec, "ps", 0)


def test_variables_are_put_on_parameter_servers_in_turn(graph: Any) -> None:
    setter = tf.train.replica_device_setter(cluster={"ps": ["a:1", "b:2"], "worker": ["c:3"]})
    with tf.device("/cpu:0"), tf.device(setter):
        weights = [tf.get_variable(f"w{number}", [2]) for number in range(3)]
        total = tf.add_n(weights)
    tasks = [each.op.device for each in weights]
    assert tasks == [f"/job:ps/task:{number}/device:CPU:0" for number in (0, 1, 0)]
    assert total.device == "/job:worker/device:CPU:0"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total).shape == (2,)
    with tf.device(tf.train.replica_device_setter(1, "", "/job:w", ps_ops=["Const"])):
        assert tf.get_variable("u", [2]).op.device == "/job:w"
    with tf.device(tf.train.replica_device_setter(3, ps_ops=["Const"], ps_strategy=lambda operation: 2)):
        assert tf.constant(1.0).device == "/job:ps/task:2"
    assert tf.train.replica_device_setter(0) is None
    assert tf.train.replica_device_setter(cluster=tf.train.ClusterSpec({"worker": ["c:3"]})) is None


def test_sessions_open_at_the_only_server(graph: Any) -> None:
    server = tf.train.Server.create_local_server()
    assert server.server_def.jobs == ["local"]
    with tf.Session(server.target) as session:
        np.testing.assert_array_equal(session.run(tf.ones([2])), [1, 1])
