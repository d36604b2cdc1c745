"""Programs that say `import tensorflow`, and what they lack."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from xlalite.cli.main import main
from xlalite.cli.scan import missing_names, uses_of

PROGRAM = """
import sys
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import layers
from tensorflow.python.framework import ops
from tensorflow.python.platform import gfile
import tensorflow.compat.v1 as v1

tf.app.flags.DEFINE_integer("steps", 1, "how many")
FLAGS = tf.app.flags.FLAGS

def main(argv):
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        print(session.run(v + FLAGS.steps), argv[1:], slim.fully_connected is layers.fully_connected)
    assert ops.reset_default_graph is v1.reset_default_graph
    assert gfile.Exists(sys.argv[0])
    assert tf.__version__ == tf.VERSION == "1.15.0"

if __name__ == "__main__":
    tf.app.run()
"""


def test_a_program_runs_with_its_imports_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    words = [sys.executable, "-m", "xlalite.tf1", str(script), "--steps=4", "rest"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "5.0 ['rest'] True\n"), done.stderr


def test_modules_run_by_name(tmp_path: Path) -> None:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow as tf\n")
    (package / "task.py").write_text("import sys\nfrom trainer import tf\nprint(tf.VERSION, sys.argv[1:], __name__)\n")
    words = [sys.executable, "-m", "xlalite.tf1", "-m", "trainer.task", "--steps=4"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1.15.0 ['--steps=4'] __main__\n"), done.stderr


def test_inner_modules_are_the_public_ones() -> None:
    code = (
        "from xlalite.compat.tensorflow import install; install(); import xlalite\n"
        "from tensorflow.contrib.layers.python.layers import batch_norm\n"
        "from tensorflow.python.ops.rnn_cell import GRUCell\n"
        "from tensorflow.python.framework import function, ops\n"
        "from tensorflow.python.lib.io import file_io; file_io.file_exists\n"
        "from tensorflow.examples.tutorials.mnist import input_data; input_data.read_data_sets\n"
        "from tensorflow.contrib.layers.python.layers import initializers\n"
        "from tensorflow.contrib.learn.python.learn.datasets.mnist import read_data_sets\n"
        "from tensorflow.contrib.tensorboard.plugins import projector; projector.ProjectorConfig\n"
        "from tensorflow.python.client import device_lib\n"
        "devices = device_lib.list_local_devices(xlalite.ConfigProto(device_count={'CPU': 2}))\n"
        "assert [each.name for each in devices if each.device_type == 'CPU'] == ['/device:CPU:0', '/device:CPU:1']\n"
        "from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2\n"
        "config_pb2.ConfigProto().graph_options.rewrite_options.remapping = rewriter_config_pb2.RewriterConfig.OFF\n"
        "assert initializers.xavier_initializer is xlalite.contrib.layers.xavier_initializer\n"
        "assert batch_norm is xlalite.contrib.layers.batch_norm and GRUCell is xlalite.nn.rnn_cell.GRUCell\n"
        "assert function.Defun is xlalite.Defun and ops.Graph is xlalite.Graph\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_module_is_named() -> None:
    code = "from xlalite.compat.tensorflow import install; install(); import tensorflow.quokka"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: xlalite.quokka: xlalite has no such name yet" in done.stderr


def test_names_that_a_program_lacks_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = textwrap.dedent("""
        import tensorflow as tf
        from tensorflow.contrib import nowhere, slim
        x = tf.nn.relu(tf.constant(1.0))
        y = tf.nn.no_such(x) + tf.nn.no_such(x)
        from tensorflow.examples.tutorials.mnist import input_data
        from tensorflow.contrib.layers.python.layers import utils
        slim.conv2d; slim.nothing
        tf.Session().no_such_method()
    """)
    assert missing_names(list(uses_of(source))) == {
        "contrib.nowhere": [3],
        "contrib.slim.nothing": [8],
        "nn.no_such": [5],
    }
    script = tmp_path / "program.py"
    script.write_text(source)
    assert main(["scan", str(script)]) == 1
    assert "7 names are there, 3 missing" in capsys.readouterr().out
    script.write_text("import tensorflow as tf\ntf.nn.relu")
    assert main(["scan", str(tmp_path)]) == 0
    assert main(["scan", str(tmp_path / "none.py")]) == 2
