"""Summaries and event files."""

import io
import struct
import wave
import zlib
from pathlib import Path

import numpy as np
import pytest

import xlalite as tf
from xlalite.files.events import FileWriterCache, summary_iterator
from xlalite.files.png import encode_png
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError


def summary_of(tensor: object, feeds: object = None) -> object:
    with tf.Session() as session:
        return tf.Summary.FromString(session.run(tensor, feeds))


def test_scalars_are_tagged_by_scope_and_collected(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.name_scope("train"):
        tf.summary.scalar("loss of it", x)
        tf.summary.scalar("loss", x, family="all")
    tf.summary.scalar("zero", 0.0)
    merged = summary_of(tf.summary.merge_all(), {x: 2.5})
    assert [(value.tag, value.simple_value) for value in merged.value] == [
        ("train/loss_of_it", 2.5),
        ("all/train/all/loss", 2.5),
        ("zero", 0.0),
    ]
    assert merged.value[2].HasField("simple_value")


def test_there_is_nothing_to_merge_without_summaries(graph: Graph) -> None:
    assert tf.summary.merge_all() is None
    a, b = tf.summary.scalar("a", 1.0, collections=["mine"]), tf.summary.scalar("b", 1.0, collections=[])
    assert tf.get_collection("mine") == [a]
    assert len(summary_of(tf.summary.merge([a, b])).value) == 2


def test_the_same_tag_twice_is_an_error(graph: Graph) -> None:
    a = tf.summary.scalar("a", 1.0)
    with pytest.raises(InvalidArgumentError, match="Duplicate tag a"):
        summary_of(tf.summary.merge([a, a]))


def test_histograms_count_in_buckets(graph: Graph) -> None:
    values = np.float32([-1, 0, 0, 0.5, 0.5, 0.5, 1e30])
    histo = summary_of(tf.summary.histogram("h", values)).value[0].histo
    assert (histo.num, histo.min, histo.max) == (7, -1, np.float64(np.float32(1e30)))
    assert histo.sum == pytest.approx(float(values.astype(np.float64).sum()))
    limits, counts = np.array(histo.bucket_limit[:]), np.array(histo.bucket[:])
    assert counts.sum() == 7
    assert sorted(counts[counts > 0]) == [1, 1, 2, 3]
    for number, limit in zip(counts, limits, strict=True):
        if number == 3:
            assert 0.5 < limit <= 0.5 * 1.1
    assert not ((counts[:-1] == 0) & (counts[1:] == 0)).any()
    with pytest.raises(InvalidArgumentError, match="Nan or infinite number in summary histogram for: bad"):
        summary_of(tf.summary.histogram("bad", [np.nan]))


def decoded(png: bytes) -> np.ndarray:
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    channels = {0: 1, 2: 3, 6: 4}[kind]
    (length,) = struct.unpack(">I", png[33:37])
    rows = np.frombuffer(zlib.decompress(png[41 : 41 + length]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_png_files(channels: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    np.testing.assert_array_equal(decoded(encode_png(image)), image)


def test_audio_summaries_are_wave_files(graph: Graph) -> None:
    sounds = np.float32([[[0.5, -2]], [[1, 0]], [[np.nan, 0]], [[0, 0]]])
    values = summary_of(tf.summary.audio("a", sounds, 8000)).value
    assert [value.tag for value in values] == ["a/audio/0", "a/audio/1", "a/audio/2"]
    with wave.open(io.BytesIO(values[0].audio.encoded_audio_string)) as read:
        assert (read.getnchannels(), read.getsampwidth(), read.getframerate(), read.getnframes()) == (2, 2, 8000, 1)
        np.testing.assert_array_equal(np.frombuffer(read.readframes(1), "<i2"), [16384, -32767])
    assert (values[0].audio.num_channels, values[0].audio.length_frames) == (2, 1)
    (mono,) = summary_of(tf.summary.audio("m", np.zeros((1, 0)), 16000.0, max_outputs=1)).value
    assert (mono.tag, mono.audio.num_channels, mono.audio.content_type) == ("m/audio", 1, "audio/wav")
    with pytest.raises(ShapeError, match=r"\[batch, frames\]"):
        tf.summary.audio("a", np.zeros(3), 8000)
    with pytest.raises(InvalidArgumentError, match="sample_rate must be above 0"):
        summary_of(tf.summary.audio("a", sounds, 0))


def test_image_summaries_scale_numbers_to_brightness(graph: Graph) -> None:
    images = np.zeros((4, 1, 3, 1), np.float32)
    images[0, 0, :, 0] = [0, 1, 2]
    images[1, 0, :, 0] = [-2, 0, 1]
    images[2, 0, :, 0] = [np.nan, 0, 1]
    values = summary_of(tf.summary.image("i", images)).value
    assert [value.tag for value in values] == ["i/image/0", "i/image/1", "i/image/2"]
    found = [decoded(value.image.encoded_image_string).ravel().tolist() for value in values]
    assert found == [[0, 127, 255], [1, 128, 191], [255, 0, 255]]
    assert (values[0].image.width, values[0].image.height, values[0].image.colorspace) == (3, 1, 1)
    assert summary_of(tf.summary.image("j", images, max_outputs=1)).value[0].tag == "j/image"


def test_texts_are_tensors_for_a_plugin(graph: Graph) -> None:
    value = summary_of(tf.summary.text("t", tf.constant("hello"))).value[0]
    assert value.metadata.plugin_data.plugin_name == "text"
    assert value.tensor.string_val[0] == b"hello"


def test_a_writer_appends_events_to_a_new_file(tmp_path: Path, graph: Graph) -> None:
    scalar = tf.summary.scalar("x", 3.0)
    with tf.summary.FileWriter(tmp_path / "logs", filename_suffix=".v2") as writer, tf.Session() as session:
        writer.add_summary(session.run(scalar), 7)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="y", simple_value=1)]), np.int64(8))
    writer.add_summary(b"", 9)
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".v2")
    events = list(summary_iterator(path))
    assert events[0].file_version == "brain.Event:2"
    assert [(event.step, event.summary.value[0].tag) for event in events[1:]] == [(7, "x"), (8, "y")]
    writer.reopen()
    writer.close()
    assert len(list((tmp_path / "logs").iterdir())) == 2
    assert FileWriterCache.get(tmp_path / "c") is FileWriterCache.get(tmp_path / "c")
    FileWriterCache.clear()


def test_the_projector_is_told_what_to_show(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    shown = config.embeddings.add()
    shown.tensor_name = "v:0"
    shown.sprite.single_image_dim.extend([28, 28])
    writer = tf.summary.FileWriter(str(tmp_path))
    projector.visualize_embeddings(writer, config)
    writer.close()
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "v:0"' in text
    assert projector.ProjectorConfig.from_text(text) == config
    with pytest.raises(ValueError, match="expected a writer with a folder"):
        projector.visualize_embeddings("", config)
