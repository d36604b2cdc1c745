"""The example programs, run as users run them."""

import gzip
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xlalite.examples.tutorials.mnist import digits, idx

# A program as tutorials for TensorFlow 1 have it; only the import lines name xlalite.
TUTORIAL_PROGRAM = """
import argparse
import sys

import xlalite as tf
from xlalite.examples.tutorials.mnist import input_data
from xlalite.client import timeline

FLAGS = None


def main(_):
  mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True)
  images = tf.placeholder(tf.float32, [None, 784])
  weights = tf.Variable(tf.zeros([784, 10]))
  biases = tf.Variable(tf.zeros([10]))
  logits = tf.matmul(images, weights) + biases
  wanted = tf.placeholder(tf.float32, [None, 10])
  loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
  step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)

  config = tf.ConfigProto()
  config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1 if FLAGS.xla else 0
  run_metadata = tf.RunMetadata()
  sess = tf.Session(config=config)
  tf.global_variables_initializer().run(session=sess)
  for i in range(200):
    x, y = mnist.train.next_batch(100)
    if i == 199:
      options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
      sess.run(step, feed_dict={images: x, wanted: y}, options=options, run_metadata=run_metadata)
      trace = timeline.Timeline(step_stats=run_metadata.step_stats)
      with open('timeline.ctf.json', 'w') as trace_file:
        trace_file.write(trace.generate_chrome_trace_format())
    else:
      sess.run(step, feed_dict={images: x, wanted: y})
  correct = tf.equal(tf.argmax(logits, 1), tf.argmax(wanted, 1))
  accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
  print(sess.run(accuracy, feed_dict={images: mnist.test.images, wanted: mnist.test.labels}))
  sess.close()


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--data_dir', type=str, default='')
  parser.add_argument('--xla', type=bool, default=True)
  FLAGS, unparsed = parser.parse_known_args()
  tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
"""


def run_python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def accuracies(output: str) -> list[float]:
    return [float(number) for number in re.findall(r"accuracy +([0-9.]+)", output)]


@pytest.fixture
def mnist_dir(tmp_path: Path) -> Path:
    """MNIST's four files, holding the package's digits at MNIST's size."""
    directory = tmp_path / "data"
    directory.mkdir()
    for prefix, split in zip(("train", "t10k"), digits.read_digits(), strict=True):
        large = np.kron(split.images, np.ones((3, 3), np.uint8))
        framed = np.pad(large * np.uint8(15), ((0, 0), (2, 2), (2, 2)))
        for kind, magic, array in (
            ("images-idx3", idx.IMAGES_MAGIC, framed),
            ("labels-idx1", idx.LABELS_MAGIC, split.labels),
        ):
            header = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
            (directory / f"{prefix}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + array.tobytes(), 1))
    return directory


def test_main_job_trains_with_the_jit_off_and_on(tmp_path: Path) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.mnist_softmax_xla")
    assert done.returncode == 0, done.stderr
    off, on = accuracies(done.stdout)
    assert off == on
    assert on >= 0.93
    assert done.stdout.index("JIT off") < done.stdout.index("JIT on")
    for wanted in (r"steps per second +[0-9,]+\n", r"first step +[0-9.]+ ms\n", r"cluster"):
        assert re.search(wanted, done.stdout)
    trace = json.loads((tmp_path / "timeline.ctf.json").read_text(encoding="utf-8"))
    assert any(event["ph"] == "X" for event in trace["traceEvents"])


@pytest.mark.parametrize(("switch", "op"), [("", "MatMul"), ("on", "_XlaRun")])
def test_main_job_traces_what_ran(tmp_path: Path, switch: str, op: str) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.mnist_softmax_xla", f"--xla={switch}", "--steps=5")
    assert done.returncode == 0, done.stderr
    assert len(accuracies(done.stdout)) == 1
    events = json.loads((tmp_path / "timeline.ctf.json").read_text(encoding="utf-8"))["traceEvents"]
    assert op in {event["name"] for event in events if event["ph"] == "X"}


def test_main_job_takes_its_size_from_mnists_files(tmp_path: Path, mnist_dir: Path) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.mnist_softmax_xla", f"--data_dir={mnist_dir}", "--steps=100")
    assert done.returncode == 0, done.stderr
    off, on = accuracies(done.stdout)
    assert off == on
    assert on >= 0.8


def test_tutorial_program_runs_with_its_imports_changed(tmp_path: Path, mnist_dir: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TUTORIAL_PROGRAM, encoding="utf-8")
    runs = [run_python(tmp_path, str(program), f"--data_dir={mnist_dir}", f"--xla={xla}") for xla in ("", "1")]
    for done in runs:
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.split()[-1]) >= 0.85
    assert (tmp_path / "timeline.ctf.json").exists()


def test_network_reaches_97_percent(tmp_path: Path) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.mlp_training")
    assert done.returncode == 0, done.stderr
    assert accuracies(done.stdout)[-1] >= 0.97


@pytest.mark.parametrize(
    ("program", "steps", "measure", "at_least"),
    [
        ("gru4rec", 100, "recall at 5", 0.9),
        ("sasrec", 60, "recall at 5", 0.9),
        ("masked_lm", 300, "masked accuracy", 0.8),
        ("word2vec", 1000, "neighbours of the same topic", 0.4),
        ("seq2seq", 150, "letter accuracy", 0.95),
        ("resnet", 100, "test accuracy", 0.95),
    ],
)
def test_models_learn_with_a_training_step_that_is_one_cluster(
    tmp_path: Path, program: str, steps: int, measure: str, at_least: float
) -> None:
    done = run_python(tmp_path, "-m", f"xlalite.examples.{program}", f"--steps={steps}")
    assert done.returncode == 0, done.stderr
    (reached,) = re.findall(rf"{measure} ([0-9.]+)", done.stdout)[-1:]
    assert float(reached) >= at_least
    operations, of_all, clusters = map(
        int, re.findall(r"JIT: (\d+) of (\d+) operations in (\d) clusters", done.stdout)[0]
    )
    assert of_all - operations <= 4
    assert clusters <= 3


def test_a_film_is_foretold(tmp_path: Path) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.convlstm", "--steps=60")
    assert done.returncode == 0, done.stderr
    found, lazy = map(float, re.findall(r"error ([0-9.]+), of no movement ([0-9.]+)", done.stdout)[0])
    assert found < 0.6 * lazy


@pytest.mark.parametrize("xla", ["off", "on"])
def test_training_from_records_goes_on_where_it_stopped(tmp_path: Path, xla: str) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.record_training", f"--xla={xla}", "--steps=200")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"begins at step (\d+)", done.stdout) == ["0", "100"]
    assert accuracies(done.stdout)[-1] >= 0.93


def test_lenet_reaches_98_percent(tmp_path: Path) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.lenet", "--steps=300")
    assert done.returncode == 0, done.stderr
    assert accuracies(done.stdout)[-1] >= 0.98


@pytest.mark.parametrize(
    "program",
    ["convlstm", "gru4rec", "lenet", "masked_lm", "mlp_training", "resnet", "sasrec", "seq2seq", "word2vec"],
)
def test_programs_learn_the_same_with_the_jit_off_and_on(tmp_path: Path, program: str) -> None:
    runs = [
        run_python(tmp_path, "-m", f"xlalite.examples.{program}", f"--xla={xla}", "--steps=2") for xla in ("off", "on")
    ]
    off, on = (float(re.findall(r"loss ([0-9.]+)", done.stdout)[-1]) for done in runs)
    assert on == pytest.approx(off, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--xla=perhaps"], "expected on or off"),
        (["--steps=0"], "expected a positive number"),
        (["--data_dir=nowhere"], "train-images-idx3-ubyte, train-labels-idx1-ubyte"),
    ],
)
def test_main_job_explains_wrong_arguments(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run_python(tmp_path, "-m", "xlalite.examples.mnist_softmax_xla", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
