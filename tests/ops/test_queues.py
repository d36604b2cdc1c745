"""Queues, their runners and producers, and readers."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite import train


@pytest.fixture
def sess() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def run_all(sess: tf.Session, tensor: Any) -> list[Any]:
    """What a tensor gives until its input ends."""
    found: list[Any] = []

    def run_on() -> None:
        while True:
            found.append(sess.run(tensor))

    with pytest.raises(tf.errors.OutOfRangeError, match="closed and has insufficient"):
        run_on()
    return found


def test_first_in_first_out_of_components_and_names(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []], names=["x", "t"])
    sess.run(queue.enqueue({"x": [1, 2], "t": "a"}))
    sess.run(queue.enqueue_many({"x": [[3, 4], [5, 6]], "t": ["b", "c"]}))
    assert sess.run(queue.size()) == 3
    one, two = queue.dequeue(), queue.dequeue_many(2)
    assert one["x"].shape.as_list() == [2]
    assert two["x"].shape.as_list() == [None, 2]
    assert sess.run(one)["t"] == b"a"
    found = sess.run(two)
    np.testing.assert_array_equal(found["x"], [[3, 4], [5, 6]])
    np.testing.assert_array_equal(found["t"], [b"b", b"c"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"component 0. Expected \[2\], got \[3\]"):
        sess.run(queue.enqueue({"x": tf.placeholder_with_default(np.zeros(3, np.float32), None), "t": "d"}))


def test_what_a_closed_queue_does(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    assert not sess.run(queue.is_closed())
    sess.run(queue.enqueue_many([[1, 2, 3]]))
    sess.run(queue.close())
    assert sess.run(queue.is_closed())
    with pytest.raises(tf.errors.CancelledError, match="FIFOQueue 'fifo_queue' is closed"):
        sess.run(queue.enqueue(4))
    with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 4, current size 3"):
        sess.run(queue.dequeue_many(4))
    np.testing.assert_array_equal(sess.run(queue.dequeue_up_to(2)), [1, 2])
    np.testing.assert_array_equal(sess.run(queue.dequeue_up_to(2)), [3])
    with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
        sess.run(queue.dequeue_up_to(2))
    with pytest.raises(tf.errors.CancelledError, match="already closed"):
        sess.run(queue.close())


def test_random_order_keeps_some_back_until_it_is_closed(sess: tf.Session) -> None:
    queue = tf.RandomShuffleQueue(100, 10, tf.int32, [[]], seed=3)
    sess.run(queue.enqueue_many([np.arange(30, dtype=np.int32)]))
    first = sess.run(queue.dequeue_many(20))
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=20))
    sess.run(queue.close())
    rest = sess.run(queue.dequeue_many(10))
    assert sorted([*first, *rest]) == list(range(30))
    assert list(first) != list(range(20))


def test_padding_and_priority(sess: tf.Session) -> None:
    padded = tf.PaddingFIFOQueue(10, tf.int32, [[None]])
    value = tf.placeholder(tf.int32, [None])
    add, both = padded.enqueue(value), padded.dequeue_many(2)
    for each in ([1], [2, 3, 4]):
        sess.run(add, {value: each})
    np.testing.assert_array_equal(sess.run(both), [[1, 0, 0], [2, 3, 4]])
    urgent = tf.PriorityQueue(10, tf.string, [[]])
    sess.run(urgent.enqueue_many([[5, 1, 5, -2], ["e", "b", "f", "a"]]))
    assert [sess.run(urgent.dequeue())[1] for _ in range(4)] == [b"a", b"b", b"e", b"f"]


def waiting(sess: tf.Session, fetch: Any) -> tuple[threading.Thread, list[Exception]]:
    errors: list[Exception] = []

    def call() -> None:
        try:
            sess.run(fetch)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, errors


def test_threads_hand_over_more_than_there_is_room_for(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(2, tf.int32, [[]])
    thread, errors = waiting(sess, queue.enqueue_many([list(range(50))]))
    np.testing.assert_array_equal(sess.run(queue.dequeue_many(50)), np.arange(50))
    thread.join(10)
    assert not errors


def test_cancelling_what_waits(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(1, tf.int32, [[]])
    sess.run(queue.enqueue(1))
    thread, errors = waiting(sess, queue.enqueue(2))
    sess.run(queue.close(cancel_pending_enqueues=True))
    thread.join(10)
    assert isinstance(errors[0], tf.errors.CancelledError)
    assert sess.run(queue.dequeue()) == 1


@pytest.mark.parametrize("fills", [False, True])
def test_closing_the_session_ends_what_waits(fills: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(1, tf.int32, [[]])
        if fills:
            sess.run(queue.enqueue(1))
        thread, errors = waiting(sess, queue.enqueue(2) if fills else queue.dequeue())
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(errors[0], tf.errors.CancelledError | RuntimeError)


def test_the_time_limit_of_a_session() -> None:
    config = tf.ConfigProto(operation_timeout_in_ms=20)
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        queue = tf.FIFOQueue(1, tf.int32)
        begun = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(queue.dequeue())
        assert time.monotonic() - begun < 10


def started(sess: tf.Session) -> tuple[train.Coordinator, list[threading.Thread]]:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = train.Coordinator()
    return coordinator, train.start_queue_runners(sess, coordinator)


def stopped(coordinator: train.Coordinator, threads: list[threading.Thread]) -> None:
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=10)
    assert not any(thread.is_alive() for thread in threads)


def test_producers_give_epochs_and_batches(sess: tf.Session) -> None:
    x = np.arange(20, dtype=np.float32).reshape(10, 2)
    row, label = train.slice_input_producer([x, np.arange(10)], num_epochs=2, shuffle=False)
    rows, labels = train.batch([row, label], 4, allow_smaller_final_batch=True)
    assert rows.shape.as_list() == [None, 2]
    coordinator, threads = started(sess)
    found = run_all(sess, [rows, labels])
    np.testing.assert_array_equal(np.concatenate([each for _, each in found]), [*range(10), *range(10)])
    np.testing.assert_array_equal(np.concatenate([each for each, _ in found]), np.concatenate([x, x]))
    stopped(coordinator, threads)


def test_batches_in_random_order_from_several_threads(sess: tf.Session) -> None:
    number = train.range_input_producer(40, num_epochs=1, seed=1).dequeue()
    batch = train.shuffle_batch({"n": number}, 8, capacity=30, min_after_dequeue=10, num_threads=2)
    assert batch["n"].shape.as_list() == [8]
    coordinator, threads = started(sess)
    found = [each["n"] for each in run_all(sess, batch)]
    assert sorted(np.concatenate(found)) == list(range(40))
    stopped(coordinator, threads)


def test_padded_batches(sess: tf.Session) -> None:
    number = train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    batch = train.batch([tf.fill([number], number)], 4, dynamic_pad=True)
    coordinator, threads = started(sess)
    np.testing.assert_array_equal(sess.run(batch), [[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]])
    stopped(coordinator, threads)


def test_an_error_in_a_runner_is_raised_where_threads_are_joined(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(10, tf.float32, [[]])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(tf.string_to_number("x"))]))
    coordinator, threads = started(sess)
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        coordinator.join(threads)


def test_runners_of_a_session_that_is_closed_end() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        train.batch([tf.constant(1)], 2)
        threads = train.start_queue_runners(sess)
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_monitored_sessions_run_queues(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        number = train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        batch = train.batch([number], 2)
        found = []
        with train.MonitoredTrainingSession() as sess:
            while not sess.should_stop():
                found.append(list(sess.run(batch)))
    assert found == [[0, 1], [2, 3], [4, 5]]


def test_runners_in_meta_graphs(sess: tf.Session) -> None:
    batch = train.batch([tf.constant(7)], 2)
    message = train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as other:
        train.import_meta_graph(message, import_scope="in")
        coordinator, threads = started(other)
        np.testing.assert_array_equal(other.run(f"in/{batch.name}"), [7, 7])
        stopped(coordinator, threads)


# Readers.


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = [str(tmp_path / name) for name in ("a", "b")]
    for name, lines in zip(names, (["head", "x", "y"], ["head", "", "z"]), strict=True):
        Path(name).write_text("\n".join(lines) + "\n")
    return names


def read(sess: tf.Session, reader: Any, names: list[str]) -> list[tuple[bytes, bytes]]:
    queue = train.string_input_producer(names, num_epochs=1, shuffle=False)
    pair = reader.read(queue)
    coordinator, threads = started(sess)
    found = run_all(sess, pair)
    stopped(coordinator, threads)
    return [tuple(each) for each in found]


def test_lines(sess: tf.Session, files: list[str]) -> None:
    reader = tf.TextLineReader(skip_header_lines=1)
    found = read(sess, reader, files)
    assert [value for _, value in found] == [b"x", b"y", b"", b"z"]
    assert found[3][0].decode() == f"{files[1]}:3"
    assert sess.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [4, 2]


def test_whole_files_and_names(sess: tf.Session, files: list[str]) -> None:
    assert read(sess, tf.WholeFileReader(), files)[0] == (files[0].encode(), b"head\nx\ny\n")
    assert [value.decode() for _, value in read(sess, tf.IdentityReader(), files)] == files


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_records(sess: tf.Session, tmp_path: Path, compression: str) -> None:
    options = tf.python_io.TFRecordOptions(compression)
    name = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(name, options) as writer:
        for record in (b"one", b"", b"three"):
            writer.write(record)
    found = read(sess, tf.TFRecordReader(options=options), [name])
    assert [value for _, value in found] == [b"one", b"", b"three"]
    assert [key.decode() for key, _ in found] == [f"{name}:0", f"{name}:19", f"{name}:35"]


def test_records_of_one_length(sess: tf.Session, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"H" + bytes(range(6)) + b"FF")
    reader = tf.FixedLengthRecordReader(2, header_bytes=1, footer_bytes=2)
    queue = train.string_input_producer([str(tmp_path / "f")], num_epochs=1)
    _, value = reader.read(queue)
    numbers = tf.decode_raw(value, tf.uint8)
    coordinator, threads = started(sess)
    np.testing.assert_array_equal(run_all(sess, numbers), [[0, 1], [2, 3], [4, 5]])
    stopped(coordinator, threads)


def test_files_that_are_not_there(sess: tf.Session) -> None:
    queue = train.string_input_producer(["nowhere"], num_epochs=1)
    _, value = tf.TextLineReader().read(queue)
    coordinator, threads = started(sess)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        sess.run(value)
    stopped(coordinator, threads)


def test_runners_forget_sessions_that_they_are_done_with() -> None:
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(9, tf.int32, [[]])
        runner = train.QueueRunner(queue, [queue.enqueue(1)])
        session = tf.Session()
        threads = runner.create_threads(session, start=True)
        sess_gone = weakref.ref(session)
        session.close()
        for thread in threads:
            thread.join(10)
        del session, threads, thread
        gc.collect()
        assert sess_gone() is None


def test_what_is_put_back_is_there_for_others_that_wait(sess: tf.Session) -> None:
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    many, one = queue.dequeue_many(3), queue.dequeue()
    sess.run(queue.enqueue_many([[1, 2]]))
    found: list[Any] = []
    run_options = tf.RunOptions(timeout_in_ms=400)

    def give_up() -> None:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(many, options=run_options)

    giving_up = threading.Thread(target=give_up)
    giving_up.start()
    while sess.run(queue.size()):
        time.sleep(0.001)
    waiting = threading.Thread(target=lambda: found.append(sess.run(one, options=tf.RunOptions(timeout_in_ms=20000))))
    waiting.start()
    giving_up.join()
    waiting.join(10)
    assert found == [1]


def test_components_of_other_types_and_numbers_are_refused(sess: tf.Session) -> None:
    handle = tf.FIFOQueue(2, [tf.int8, tf.int8], [[], []]).queue_ref
    create = tf.get_default_graph().create_op
    small = tf.constant(1, tf.int8)
    for op in ("QueueEnqueueV2", "QueueEnqueueManyV2"):
        for components in ([], [small], [small, tf.constant(1.5)]):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"components of types \['int8', 'int8'\], found"):
                sess.run(create(op, [handle, *components], {}))
    with pytest.raises(tf.errors.InvalidArgumentError, match="found a scalar"):
        sess.run(create("QueueEnqueueManyV2", [handle, small, small], {}))


def test_readers_of_what_is_no_file(sess: tf.Session, tmp_path: Path) -> None:
    names = tf.FIFOQueue(9, tf.string, [[]])
    _, record = tf.WholeFileReader().read(names)
    for name, error in ((str(tmp_path), "FailedPreconditionError"), ("a\0b", "InvalidArgumentError")):
        sess.run(names.enqueue(name))
        with pytest.raises(getattr(tf.errors, error)):
            sess.run(record)
    (tmp_path / "there").write_bytes(b"x")
    sess.run(names.enqueue(str(tmp_path / "there")))
    assert sess.run(record) == b"x"
    create = tf.get_default_graph().create_op
    numbers = tf.FIFOQueue(9, tf.int32, [[]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes names of files"):
        sess.run(tf.WholeFileReader().read(numbers)[1])
    with pytest.raises(tf.errors.FailedPreconditionError, match="is not a reader"):
        sess.run(create("ReaderReadV2", [names.queue_ref, names.queue_ref], {}))
    with pytest.raises(tf.errors.FailedPreconditionError, match="is not a stack"):
        sess.run(create("StackPushV2", [names.queue_ref, tf.constant(1)], {}))
    for attrs in ({"record_bytes": 0}, {"record_bytes": 2, "footer_bytes": -1}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="one byte at least"):
            sess.run(create("FixedLengthRecordReaderV2", [], attrs))


def test_a_queue_of_a_list_is_chosen_when_a_step_runs(graph: Any) -> None:
    first, second = tf.FIFOQueue(5, tf.float32, [()]), tf.FIFOQueue(5, tf.float32, [()])
    number = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(number, [first, second])
    assert chosen.dtypes == first.dtypes
    with tf.Session() as session:
        session.run([first.enqueue(1.0), second.enqueue(2.0)])
        assert session.run(chosen.dequeue(), {number: 1}) == 2.0
        assert session.run(chosen.size(), {number: 0}) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
            session.run(chosen.size(), {number: 2})
    with pytest.raises(TypeError, match="component dtypes"):
        tf.QueueBase.from_list(0, [first, tf.FIFOQueue(5, tf.int32)])
    with pytest.raises(TypeError, match="list of queues"):
        tf.QueueBase.from_list(0, [])
