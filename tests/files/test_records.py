"""Files of records, their checksums, and the examples in them."""

from pathlib import Path

import numpy as np
import pytest

from xlalite.files.crc32c import crc32c, masked
from xlalite.files.records import TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator
from xlalite.framework.graph.errors import DataLossError, InvalidArgumentError, NotFoundError
from xlalite.messages.classes import CLASSES
from xlalite.messages.setting_values import FieldTypeError

MADE_BY_TENSORFLOW = Path(__file__).parent / "made_by_tensorflow"
Example, Features, Feature = CLASSES["Example"], CLASSES["Features"], CLASSES["Feature"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_checksums_are_those_of_the_standard(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [16383, 16384, 16385, 20480, 100_003])
def test_long_data_has_the_checksum_of_its_pieces(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    piecewise = 0
    for start in range(0, size, 1000):
        piecewise = crc32c(data[start : start + 1000], piecewise)
    assert crc32c(data) == piecewise


def test_masked_checksums_differ_from_plain_ones() -> None:
    assert masked(0) == 0xA282EAD8
    assert masked(0xFFFFFFFF) == 0xA282EAD7


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_come_back(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.tfrecord"
    records = [b"", b"a", bytes(100_000), b"last"]
    with TFRecordWriter(path, TFRecordOptions(compression)) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
    writer.close()
    assert list(tf_record_iterator(path, compression)) == records


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("records.tfrecord", None),
        ("records.gzip.tfrecord", TFRecordOptions(TFRecordCompressionType.GZIP)),
        ("records.zlib.tfrecord", TFRecordOptions("ZLIB")),
    ],
)
def test_records_and_examples_of_tensorflow_are_read(name: str, options: TFRecordOptions | None) -> None:
    examples = [Example.FromString(each) for each in tf_record_iterator(MADE_BY_TENSORFLOW / name, options)]
    assert [list(e.features.feature["label"].int64_list.value) for e in examples] == [[0, 0], [1, -1], [2, -2]]
    assert examples[1].features.feature["image"].bytes_list.value[0] == b"\1" * 4
    assert [e.features.feature["x"].float_list.value[0] for e in examples] == [0, 0.5, 1]
    assert examples[1].features.feature["x"].WhichOneof("kind") == "float_list"


@pytest.mark.parametrize("cut", [1, 11, 12, 15, 18])
def test_a_file_that_ends_inside_a_record_is_an_error(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with TFRecordWriter(path) as writer:
        writer.write(b"abc")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataLossError, match="truncated record at 0"):
        list(tf_record_iterator(path))


@pytest.mark.parametrize("position", [0, 7, 8, 12, 15])
def test_a_changed_byte_is_an_error(position: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with TFRecordWriter(path) as writer:
        writer.write(b"abc")
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)
    with pytest.raises(DataLossError, match="corrupted record at 0"):
        list(tf_record_iterator(path))


def test_what_is_not_compressed_as_said_or_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not compressed")
    with pytest.raises(DataLossError, match="header"):
        list(tf_record_iterator(tmp_path / "x", "GZIP"))
    with pytest.raises(NotFoundError, match="No such file"):
        list(tf_record_iterator(tmp_path / "missing"))
    with pytest.raises(InvalidArgumentError, match="'LZ4' is not one of"):
        TFRecordWriter(tmp_path / "y", "LZ4")


def test_messages_have_the_manners_of_protocol_buffers() -> None:
    example = Example()
    assert not example.features.HasField("feature")
    example.features.feature["a"].int64_list.value.extend([1, 2])
    example.features.feature["a"].bytes_list.value.append(b"z")
    copy = Example()
    copy.CopyFrom(example)
    assert copy == example
    feature = Feature(int64_list=CLASSES["Int64List"](value=[]))
    assert feature.SerializeToString() == b"\x1a\x00"
    assert Feature.FromString(b"\x1a\x00").HasField("int64_list")
    feature = Feature(float_list=CLASSES["FloatList"](value=[1]))
    feature.int64_list.CopyFrom(CLASSES["Int64List"](value=[1]))
    assert "zz" not in example.features.feature
    with pytest.raises(FieldTypeError, match=r"BytesList.value: expected bytes, found 'text'"):
        CLASSES["BytesList"](value=["text"])
    assert str(Features(feature={"k": Feature(float_list=CLASSES["FloatList"](value=[0.5]))})).split() == (
        ["feature", "{", "key:", '"k"', "value", "{", "float_list", "{", "value:", "0.5", "}", "}", "}"]
    )


def test_one_of_a_group_takes_the_place_of_the_other() -> None:
    value = CLASSES["AttrValue"](i=0)
    assert value.WhichOneof("value") == "i"
    assert value.SerializeToString() == b"\x18\x00"
    value.b = True
    assert value.WhichOneof("value") == "b"
    assert not value.HasField("i")
