"""SavedModels: written, loaded, and one that TensorFlow wrote."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as tf

MADE_BY_TENSORFLOW = Path(__file__).parent / "made_by_tensorflow" / "saved_model"
SERVING = tf.saved_model.tag_constants.SERVING
KEY = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def test_one_that_tensorflow_wrote_with_references_an_asset_and_a_main_op() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.loader.load(sess, [SERVING], MADE_BY_TENSORFLOW)
        signature = message.signature_def[KEY]
        x, y = signature.inputs["x"].name, signature.outputs["y"].name
        found = sess.run([y, "counted:0"], {x: [[1, 1], [0, 2]]})
        assert [each.name for each in tf.trainable_variables()] == ["w:0"]
        saved = tf.train.Saver()
    np.testing.assert_array_equal(found[0], [[4, 6], [6, 8]])
    assert found[1] == 41
    assert saved is not None


def test_one_whose_signature_is_a_function_that_counts_its_calls() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.loader.load(sess, [SERVING], MADE_BY_TENSORFLOW.parent / "saved_functions")
        signature = message.signature_def[KEY]
        x, y = signature.inputs["x"].name, signature.outputs["y"].name
        found = [sess.run(y, {x: np.ones((2, 3))}) for _ in range(2)]
    logits = np.exp([6, 9]) / np.exp([6, 9]).sum()
    np.testing.assert_allclose(found, [[logits, logits], [2 * logits, 2 * logits]], rtol=1e-5)


def model(value: float) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None], name="x")
    w = tf.get_variable("w", initializer=np.float32(value))
    return x, tf.multiply(x, w, name="y")


def test_simple_save_and_load(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = model(3)
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, tmp_path / "m", {"x": x}, {"y": y})
    assert tf.saved_model.loader.maybe_saved_model_directory(tmp_path / "m")
    for scope in (None, "in"):
        with tf.Graph().as_default(), tf.Session() as sess:
            message = tf.saved_model.load(sess, {SERVING}, tmp_path / "m", import_scope=scope)
            info = message.signature_def[KEY].outputs["y"]
            assert [each.size for each in info.tensor_shape.dim] == [-1]
            out = tf.saved_model.utils.get_tensor_from_tensor_info(info, import_scope=scope)
            np.testing.assert_array_equal(sess.run(out, {f"{scope}/x:0" if scope else "x:0": [2]}), [6])


@pytest.mark.parametrize("as_text", [False, True])
def test_a_builder_with_two_graphs_assets_and_operations_for_later(tmp_path: Path, as_text: bool) -> None:
    (tmp_path / "words.txt").write_text("a b")
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = model(2)
        count = tf.get_variable("count", initializer=0, trainable=False, collections=["local_variables"])
        path = tf.constant(str(tmp_path / "words.txt"), name="path")
        kept = tf.get_variable("kept", initializer="", trainable=False, collections=["local_variables"])
        begin = tf.group(tf.assign(count, 5).op, tf.assign(kept, tf.read_file(path)).op, name="begin")
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["early"])
        builder.add_meta_graph_and_variables(sess, [SERVING], {KEY: signature}, [path], main_op=begin)
    with tf.Graph().as_default():
        model(0)
        builder.add_meta_graph([tf.saved_model.tag_constants.TRAINING])
    builder.save(as_text=as_text)
    (tmp_path / "words.txt").unlink()
    with pytest.raises(AssertionError, match="already exists"):
        tf.saved_model.builder.SavedModelBuilder(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, [SERVING], tmp_path / "m")
        assert sess.run([*tf.local_variables(), "y:0"], {"x:0": [1]}) == [5, b"a b", 2]
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, ["train"], tmp_path / "m")
        assert sess.run("y:0", {"x:0": [1]}) == [2]
        with pytest.raises(RuntimeError, match=r"tags \['eval'\] could not be found; there are \[\['serve'\]"):
            tf.saved_model.load(sess, ["eval"], tmp_path / "m")


def test_a_graph_without_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.saved_model.simple_save(sess, tmp_path / "m", {"x": x}, {"y": tf.negative(x, name="y")})
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, [SERVING], tmp_path / "m")
        assert sess.run("y:0", {"x:0": 2}) == -2


def test_assets_of_one_name_from_two_directories(tmp_path: Path) -> None:
    paths = [tmp_path / name / "words" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as sess:
        assets = [tf.constant(str(path)) for path in (*paths, paths[0])]
        kept = [tf.get_variable(f"v{i}", initializer="", collections=["local_variables"]) for i in range(3)]
        begin = tf.group(*(tf.assign(held, tf.read_file(path)) for held, path in zip(kept, assets, strict=True)))
        builder.add_meta_graph_and_variables(sess, [SERVING], assets_list=assets, main_op=begin)
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not a constant with a path"):
            builder.add_meta_graph(["more"], assets_list=[tf.constant(5)])
    builder.save()
    assert sorted(path.name for path in (tmp_path / "m" / "assets").iterdir()) == ["words", "words_1"]
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, [SERVING], tmp_path / "m")
        assert sess.run(tf.local_variables()) == [b"a", b"b", b"a"]


@pytest.mark.parametrize("name", ["../../secret", "/secret"])
def test_assets_outside_the_directory_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "words").write_text("a")
    builder = tf.saved_model.builder.SavedModelBuilder(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as sess:
        builder.add_meta_graph_and_variables(sess, [SERVING], assets_list=[tf.constant(str(tmp_path / "words"))])
    builder.save(as_text=True)
    file = tmp_path / "m" / "saved_model.pbtxt"
    message = type(builder._message).from_text(file.read_text())
    message.meta_graphs[0].asset_file_def.add(filename=name)
    file.write_text(str(message))
    with (
        tf.Graph().as_default(),
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="not in the"),
    ):
        tf.saved_model.load(sess, [SERVING], tmp_path / "m")


def test_what_is_no_model(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(OSError, match="SavedModel file does not exist"):
            tf.saved_model.load(sess, [SERVING], tmp_path)
        with pytest.raises(ValueError, match="cannot be None or empty"):
            tf.saved_model.signature_def_utils.predict_signature_def({}, {})
        (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not a SavedModel"):
            tf.saved_model.load(sess, [SERVING], tmp_path)
