"""Sessions with hooks, and threads that stop together."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.files.events import FileWriterCache, summary_iterator
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph

train = tf.train


def training() -> Any:
    step = train.get_or_create_global_step()
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    loss = v * v
    tf.summary.scalar("loss", loss)
    return train.GradientDescentOptimizer(0.1).minimize(loss, step), loss, v


def test_training_stops_saves_and_goes_on(tmp_path: Path, graph: Graph) -> None:
    for last in (3, 5):
        with Graph().as_default():
            op, *_ = training()
            hooks = [train.StopAtStepHook(last_step=last)]
            count = 0
            with train.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=hooks, save_summaries_steps=1, save_checkpoint_steps=100
            ) as session:
                while not session.should_stop():
                    session.run(op)
                    count += 1
            assert count == (3 if last == 3 else 2)
            assert train.latest_checkpoint(tmp_path) == str(tmp_path / f"model.ckpt-{last}")
    value = train.load_variable(tmp_path, "v")
    np.testing.assert_allclose(value, 0.8**5, rtol=1e-5)
    FileWriterCache.clear()
    (path,) = tmp_path.glob("events.*")
    tags = {each.tag for event in summary_iterator(path) for each in event.summary.value}
    assert "loss" in tags


class Recorder(train.SessionRunHook):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("created")

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs({"v": tf.trainable_variables()[0]}, {})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls.append(float(run_values.results["v"]))

    def end(self, session: Any) -> None:
        self.calls.append("end")


def test_hooks_are_called_around_steps(graph: Graph) -> None:
    _, loss, _ = training()
    recorder = Recorder()
    final = train.FinalOpsHook(loss)
    with train.MonitoredSession(hooks=[recorder, final, train.StopAtStepHook(num_steps=10)]) as session:
        assert session.run(loss) == 1
        assert not session.should_stop()
        assert session.run_step_fn(lambda context: context.session.run(loss)) == 1
    assert recorder.calls == ["begin", "created", 1.0, "end"]
    assert final.final_ops_values == 1
    with pytest.raises(RuntimeError, match="should_stop"):
        session.run(loss)


def test_the_end_of_the_input_ends_training(graph: Graph) -> None:
    following = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    seen = []
    with train.MonitoredSession() as session:
        while not session.should_stop():
            seen.append(int(session.run(following)))
    assert seen == [0, 1, 2]


def test_errors_pass_and_hooks_do_not_end(graph: Graph) -> None:
    training()
    recorder = Recorder()
    with pytest.raises(KeyError), train.MonitoredSession(hooks=[recorder]):
        raise KeyError
    assert recorder.calls == ["begin", "created"]


def test_nan_losses_stop_training(graph: Graph) -> None:
    loss = tf.log(tf.get_variable("v", initializer=-1.0))
    with (
        pytest.raises(train.NanLossDuringTrainingError),
        train.MonitoredSession(hooks=[train.NanTensorHook(loss)]) as session,
    ):
        session.run(loss)
    with train.MonitoredSession(hooks=[train.NanTensorHook(loss, fail_on_nan_loss=False)]) as session:
        session.run(loss)
        assert session.should_stop()


def test_tensors_are_logged_every_so_often(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    op, loss, _ = training()
    tf.logging.set_verbosity(tf.logging.INFO)
    hook = train.LoggingTensorHook({"loss": loss}, every_n_iter=2)
    with train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(4):
            session.run(op)
    shown = [record.getMessage() for record in caplog.records if "loss = " in record.getMessage()]
    assert len(shown) == 2
    assert shown[0].startswith("loss = ")


def test_what_hooks_need_is_asked_for(graph: Graph) -> None:
    with pytest.raises(GraphError, match="exactly one of num_steps and last_step"):
        train.StopAtStepHook()
    with pytest.raises(GraphError, match="a global step is needed"):
        train.MonitoredSession(hooks=[train.StopAtStepHook(1)])


def test_threads_stop_together_and_raise_the_first_error() -> None:
    coordinator = train.Coordinator()

    def work() -> None:
        with coordinator.stop_on_exception():
            coordinator.wait_for_stop()

    def fail() -> None:
        with coordinator.stop_on_exception():
            raise ValueError("first")

    threads = [threading.Thread(target=target) for target in (work, work, fail)]
    for thread in threads:
        thread.start()
    with pytest.raises(ValueError, match="first"):
        coordinator.join(threads)
    assert coordinator.should_stop()
    coordinator.clear_stop()
    coordinator.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    coordinator.join([])
    with pytest.raises(ValueError, match="No default session"):
        train.start_queue_runners(coord=coordinator)
