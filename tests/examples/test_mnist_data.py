"""The data of the examples: MNIST's files, the digits of the package, and batches of both."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import xlalite as tf
from xlalite.examples.tutorials.mnist import digits, idx, input_data, mnist
from xlalite.hlo.errors import DataError, XlaliteError

TRAIN, TEST = 24, 6


def idx_bytes(array: np.ndarray, magic: int) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.astype(np.uint8).tobytes()


def write_mnist(directory: Path, compress: bool = True) -> None:
    """Four files with small images: every pixel of training image i is i, its label i % 10."""
    for prefix, count in (("train", TRAIN), ("t10k", TEST)):
        images = np.broadcast_to(np.arange(count)[:, None, None], (count, 4, 3))
        for kind, content in (
            ("images-idx3", idx_bytes(images, idx.IMAGES_MAGIC)),
            ("labels-idx1", idx_bytes(np.arange(count) % 10, idx.LABELS_MAGIC)),
        ):
            name = f"{prefix}-{kind}-ubyte"
            if compress:
                (directory / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (directory / name).write_bytes(content)


@pytest.fixture
def mnist_dir(tmp_path: Path) -> Path:
    write_mnist(tmp_path)
    return tmp_path


@pytest.mark.parametrize("compress", [True, False])
def test_idx_files_are_read_plain_or_gzipped(tmp_path: Path, compress: bool) -> None:
    write_mnist(tmp_path, compress)
    data = input_data.read_data_sets(str(tmp_path))
    assert (data.train.num_examples, data.validation.num_examples, data.test.num_examples) == (22, 2, 6)
    assert data.test.images.shape == (6, 12)
    np.testing.assert_array_equal(data.test.images[:, 0], np.arange(6, dtype=np.float32) * np.float32(1 / 255))
    np.testing.assert_array_equal(data.test.labels, np.arange(6))


def test_types_are_those_of_the_tutorial(mnist_dir: Path) -> None:
    plain = input_data.read_data_sets(mnist_dir)
    one_hot = input_data.read_data_sets(mnist_dir, one_hot=True)
    assert (plain.train.images.dtype, plain.train.labels.dtype) == (np.float32, np.uint8)
    assert (one_hot.train.images.dtype, one_hot.train.labels.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(np.argmax(one_hot.train.labels, 1), plain.train.labels)
    assert one_hot.train.labels.sum() == 22


def test_uint8_pixels_are_left_as_they_are(mnist_dir: Path) -> None:
    data = input_data.read_data_sets(mnist_dir, dtype=np.uint8, reshape=False)
    assert data.test.images.dtype == np.uint8
    assert data.test.images.shape == (6, 4, 3, 1)
    assert data.test.images[5, 0, 0, 0] == 5


def test_validation_images_come_from_the_front_of_the_training_images(mnist_dir: Path) -> None:
    data = input_data.read_data_sets(mnist_dir, dtype=np.uint8, validation_size=5)
    np.testing.assert_array_equal(data.validation.images[:, 0], np.arange(5))
    np.testing.assert_array_equal(data.train.images[:, 0], np.arange(5, TRAIN))


@pytest.mark.parametrize("size", [0, TRAIN])
def test_validation_may_take_nothing_or_all(mnist_dir: Path, size: int) -> None:
    data = input_data.read_data_sets(mnist_dir, validation_size=size)
    assert (data.validation.num_examples, data.train.num_examples) == (size, TRAIN - size)


@pytest.mark.parametrize("size", [-1, TRAIN + 1])
def test_validation_size_out_of_range_is_refused(mnist_dir: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"from 0 to the number of training images, 24; found {size}"):
        input_data.read_data_sets(mnist_dir, validation_size=size)


def test_other_dtype_is_refused(mnist_dir: Path) -> None:
    with pytest.raises(TypeError, match="expected dtype float32 or uint8, found float64"):
        input_data.read_data_sets(mnist_dir, dtype=np.float64)


def test_directory_without_the_files_names_files_and_format(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(FileNotFoundError) as caught:
        input_data.read_data_sets(tmp_path)
    message = str(caught.value)
    assert f"{tmp_path} has no train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte:" in message
    assert "IDX format" in message
    assert isinstance(caught.value, XlaliteError)


def test_missing_directory_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(input_data.MissingDataError, match="is not a directory, so there is no train-images-idx3-ubyte"):
        input_data.read_data_sets(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a header of 8 bytes, found 0"),
        (struct.pack(">II", 2051, 3) + b"abc", "invalid magic number 2051, expected 2049"),
        (struct.pack(">II", 2049, 4) + b"abc", "the header promises 4 bytes, found 3"),
        (struct.pack(">II", 2049, 2) + b"abc", "the header promises 2 bytes, found 3"),
        (struct.pack(">II", 2049, 2**32 - 1), "the header promises 4294967295 bytes, found 0"),
    ],
)
def test_damaged_file_is_explained(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "labels"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        idx.read_array(path, idx.LABELS_MAGIC, rank=1)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"some labels")[:-6]], ids=["other", "cut short"])
def test_damaged_gzip_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a complete gzip file"):
        idx.read_array(path, idx.LABELS_MAGIC, rank=1)


def test_images_and_labels_must_be_as_many(mnist_dir: Path) -> None:
    content = idx_bytes(np.zeros(3), idx.LABELS_MAGIC)
    (mnist_dir / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"has 6 images, but t10k-labels-idx1-ubyte\.gz has 3 labels"):
        input_data.read_data_sets(mnist_dir)


def test_one_hot_needs_digits(mnist_dir: Path) -> None:
    content = idx_bytes(np.full(TEST, 10), idx.LABELS_MAGIC)
    (mnist_dir / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="digits 0 to 9, found 10"):
        input_data.read_data_sets(mnist_dir, one_hot=True)


@pytest.mark.parametrize("directory", ["", None])
def test_digits_of_the_package_are_read_without_a_directory(directory: str | None) -> None:
    data = input_data.read_data_sets(directory, one_hot=True)
    assert (data.train.num_examples, data.validation.num_examples, data.test.num_examples) == (1319, 119, 359)
    assert data.train.images.shape == (1319, 64)
    assert (data.train.images.min(), data.train.images.max()) == (0.0, 1.0)


def test_digits_are_the_published_ones() -> None:
    train, test = digits.read_digits()
    counts = np.bincount(np.concatenate([train.labels, test.labels]))
    # The class counts and the first image of the data set's documentation.
    np.testing.assert_array_equal(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    np.testing.assert_array_equal(train.images[0][1], [0, 0, 13, 15, 10, 15, 5, 0])
    assert train.images.max() == 16


def test_fake_data_has_mnists_size() -> None:
    data = input_data.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = data.train.next_batch(3)
    assert data.test.num_examples == 10_000
    np.testing.assert_array_equal(images, np.ones((3, 784)))
    np.testing.assert_array_equal(labels, np.eye(10)[[0, 0, 0]])


def counting_set(size: int, seed: int | None = None) -> input_data.DataSet:
    return input_data.DataSet(np.arange(size, dtype=np.float32)[:, None], np.arange(size, dtype=np.uint8), seed)


def test_batches_follow_the_tutorials_shuffling() -> None:
    """The order that two shuffles of numpy.random make: one at the first call, one where the second epoch begins."""
    np.random.seed(7)
    first = np.arange(5)
    np.random.shuffle(first)
    again = np.arange(5)
    np.random.shuffle(again)
    expected = np.concatenate([first, first[again]])

    np.random.seed(7)
    data = counting_set(5)
    batches = [data.next_batch(3)[1] for _ in range(3)]
    np.testing.assert_array_equal(np.concatenate(batches), expected[:9])


def test_seed_frees_the_order_from_the_state_of_numpy() -> None:
    orders = []
    for noise in (1, 2):
        np.random.seed(noise)
        orders.append(counting_set(50, seed=11).next_batch(50)[1])
    np.testing.assert_array_equal(*orders)


def test_tail_of_an_epoch_is_joined_with_the_next() -> None:
    data = counting_set(5)
    taken = np.concatenate([data.next_batch(2, shuffle=False)[1] for _ in range(5)])
    np.testing.assert_array_equal(taken, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    assert data.epochs_completed == 1


def test_batch_may_span_several_epochs() -> None:
    data = counting_set(4)
    images, labels = data.next_batch(10)
    assert sorted(labels[:4]) == sorted(labels[4:8]) == [0, 1, 2, 3]
    np.testing.assert_array_equal(images[:, 0], labels)
    assert data.epochs_completed == 2


def test_images_and_labels_stay_together() -> None:
    images, labels = counting_set(100).next_batch(64)
    np.testing.assert_array_equal(images[:, 0], labels)


@pytest.mark.parametrize(("size", "batch"), [(5, 0), (5, -1), (0, 1)])
def test_impossible_batch_is_refused(size: int, batch: int) -> None:
    with pytest.raises(ValueError, match=f"cannot take {batch} examples from a set of {size}"):
        counting_set(size).next_batch(batch)


def test_mnist_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "MNIST-data").mkdir()
    write_mnist(tmp_path / "MNIST-data")
    monkeypatch.chdir(tmp_path)
    found = tf.contrib.learn.datasets.load_dataset("mnist")
    assert found.test.num_examples == TEST
    assert tf.contrib.learn.datasets.DATASETS["mnist"]("MNIST-data").train.images.shape == found.train.images.shape
    with pytest.raises(ValueError, match="not found: iris"):
        tf.contrib.learn.datasets.load_dataset("iris")


def test_tables_are_read_with_and_without_a_header(tmp_path: Path) -> None:
    base = tf.contrib.learn.datasets.base
    (tmp_path / "t").write_text("2,2,a,b\n1.5,2,1\n3,4.5,0\n")
    table = base.load_csv_with_header(str(tmp_path / "t"), np.int64, np.float32)
    assert table.data.tolist() == [[1.5, 2], [3, 4.5]]
    assert table.target.tolist() == [1, 0]
    (tmp_path / "u").write_text("7,1.5\n8,2\n")
    table = base.load_csv_without_header(str(tmp_path / "u"), np.int64, np.float32, target_column=0)
    assert (table.data.tolist(), table.target.tolist()) == ([[1.5], [2]], [7, 8])
    with pytest.raises(tf.errors.NotFoundError):
        base.load_csv_without_header(str(tmp_path / "none"), np.int64, np.float32)


def test_the_tutorials_perceptron_learns_the_digits() -> None:
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto()) as session:
        tf.set_random_seed(0)
        images, labels = np.random.RandomState(0).rand(40, mnist.IMAGE_PIXELS).astype(np.float32), np.arange(40) % 10
        logits = mnist.inference(images, 16, 8)
        loss = mnist.loss(logits, labels.astype(np.int32))
        step, right = mnist.training(loss, 0.05), mnist.evaluation(logits, labels)
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(30):
            session.run(step)
        assert session.run(loss) < before
        assert 0 <= session.run(right) <= 40
        assert session.run(tf.global_variables()[-1]) == 30
