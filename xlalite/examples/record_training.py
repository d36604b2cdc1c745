"""A perceptron trained on digits in TFRecord files, which threads read; it stops in the middle and goes on anew.

python -m xlalite.examples.record_training
python -m xlalite.examples.record_training --xla=off --steps=600
"""

import sys
import tempfile
from pathlib import Path

import xlalite as tf
from xlalite.examples.training import parser, session
from xlalite.examples.tutorials.mnist import input_data

BATCH_SIZE = 100
CLASSES = 10
FILES = 3


def write_records(images: object, labels: object, directory: Path) -> list[str]:
    """Writes images and their classes as examples, dealt out to several files; gives their names."""
    names = [str(directory / f"digits-{number}.tfrecord") for number in range(FILES)]
    writers = [tf.python_io.TFRecordWriter(name) for name in names]
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):  # type: ignore[call-overload]  # arrays
        pixels = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()]))
        wanted = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)]))
        features = tf.train.Features(feature={"image": pixels, "label": wanted})
        writers[number % FILES].write(tf.train.Example(features=features).SerializeToString())
    for writer in writers:
        writer.close()
    return names


def read_batches(names: list[str], size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Shuffled batches of the examples in files, over and over."""
    _, serialized = tf.TFRecordReader().read(tf.train.string_input_producer(names))
    features = {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    parsed = tf.parse_single_example(serialized, features)
    image = tf.reshape(tf.decode_raw(parsed["image"], tf.float32), [size])
    images, labels = tf.train.shuffle_batch(
        [image, parsed["label"]], BATCH_SIZE, capacity=2000, min_after_dequeue=1000, num_threads=2
    )
    return images, labels


def train(names: list[str], test: input_data.DataSet, directory: Path, xla: str, steps: int) -> float:
    """Trains from the latest checkpoint, if there is one, until so many steps are done; gives the accuracy."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        size = test.images.shape[1]
        images, labels = read_batches(names, size)
        x = tf.placeholder_with_default(images, [None, size])
        wanted = tf.placeholder_with_default(labels, [None])
        logits = tf.layers.dense(tf.layers.dense(x, 100, tf.nn.relu), CLASSES)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
        global_step = tf.train.get_or_create_global_step()
        train_step = tf.train.AdamOptimizer(0.002).minimize(loss, global_step=global_step)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), wanted), tf.float32))
        saver = tf.train.Saver()
        with session(xla) as sess:
            sess.run(tf.global_variables_initializer())
            latest = tf.train.latest_checkpoint(str(directory))
            if latest:
                saver.restore(sess, latest)
            print(f"begins at step {sess.run(global_step)}")
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            while sess.run(global_step) < steps:
                sess.run(train_step)
            saver.save(sess, str(directory / "model"), global_step=global_step)
            found = sess.run(accuracy, {x: test.images, wanted: test.labels})
            print(f"step {sess.run(global_step)}   test accuracy {found:.4f}")
            coordinator.request_stop()
            sess.close()
            coordinator.join(threads)
            return float(found)


def main(_: list[str]) -> None:
    """Trains half of the steps, and the rest in another session that begins with what the first one saved."""
    mnist = input_data.read_data_sets(flags.data_dir, validation_size=0)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        names = write_records(mnist.train.images, mnist.train.labels, directory)
        train(names, mnist.test, directory, flags.xla, flags.steps // 2)
        train(names, mnist.test, directory, flags.xla, flags.steps)


if __name__ == "__main__":
    switches = parser("Trains a perceptron on digits in TFRecord files.", steps=600)
    switches.add_argument("--data_dir", default="", help="directory with MNIST's files; without it, the package's")
    flags, unparsed = switches.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0], *unparsed])
