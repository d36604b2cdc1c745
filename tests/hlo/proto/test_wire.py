"""The binary form: integers, unknown fields, packed and unpacked, and what is no message."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from xlalite.hlo import ParseError
from xlalite.hlo.errors import BinaryParseError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.varints import decode_varint, decode_varints, encode_varint, encode_varints
from xlalite.hlo.proto.wire import decode, encode


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=100))
@settings(max_examples=50, deadline=None)
def test_integers_survive_one_by_one_and_together(numbers):
    data = b"".join(map(encode_varint, numbers))
    array = np.array(numbers, np.int64).view(np.uint64)
    assert encode_varints(array) == data
    assert decode_varints(data).view(np.int64).tolist() == numbers
    position = 0
    for number in numbers:
        value, position = decode_varint(data, position, len(data))
        assert value == number % (1 << 64)


def test_known_bytes():
    # The field numbers and bytes are those of the wire format's definition.
    message = ProtoMessage("ShapeProto").put_word("element_type", "F32").put_all("dimensions", [2, 300])
    assert encode(message) == b"\x10\x0b\x1a\x03\x02\xac\x02"
    assert encode(ProtoMessage("SliceDimensions").put("start", -1)) == b"\x08" + b"\xff" * 9 + b"\x01"


def test_repeated_numbers_may_be_packed_or_not():
    packed, loose = b"\x1a\x02\x02\x03", b"\x18\x02\x18\x03"
    assert decode(packed, "ShapeProto").integers("dimensions") == (2, 3)
    assert decode(loose, "ShapeProto").integers("dimensions") == (2, 3)
    assert decode(packed + loose, "ShapeProto").integers("dimensions") == (2, 3, 2, 3)


def test_unknown_fields_are_skipped():
    unknown = (
        b"\xf8\x3f\x05"  # 1023: varint
        + b"\xfa\x3f\x02hi"  # bytes
        + b"\xfd\x3f1234"  # 32 bits
        + b"\xf9\x3f12345678"  # 64 bits
        + b"\xfb\x3f\x08\x01\xfc\x3f"  # a group
    )
    message = decode(unknown + b"\x10\x0b" + unknown, "ShapeProto")
    assert message.values == {"element_type": 11}


def test_a_message_that_stands_twice_is_merged():
    one = encode(ProtoMessage("ProgramShapeProto").put("result", ProtoMessage("ShapeProto").put("element_type", 11)))
    two = encode(ProtoMessage("ProgramShapeProto").put("result", ProtoMessage("ShapeProto").put_all("dimensions", [5])))
    both = decode(one + two, "ProgramShapeProto").message("result")
    assert (both.integer("element_type"), both.integers("dimensions")) == (11, (5,))


def test_narrow_integers_wrap_as_protobuf_does():
    assert decode(b"\x20" + encode_varint((1 << 32) - 1), "OpMetadata").integer("source_line") == -1


@pytest.mark.parametrize(
    ("data", "offset", "message"),
    [
        (b"\x10", 1, "the data ends inside an integer"),
        (b"\x10" + b"\xff" * 11, 1, "more than 10 bytes"),
        (b"\x1a\x05\x01", 0, "a field takes 5 bytes, only 1 are left"),
        (b"\x1a\x02\x01\xff", 2, "dimensions: the data ends inside an integer"),
        (b"\x2a\x02\x0a\x7f", 2, "a field takes 127 bytes, only 0 are left"),
        (b"\x12\x01x", 0, "element_type: found wire type 2, expected enum"),
        (b"\x00\x00", 0, "there is no field number 0"),
        (b"\xff\x3f", 0, "there is no wire type 7"),
        (b"\xfc\x3f", 0, "a group ends that did not start"),
        (b"\xfb\x3f\x08", 3, "the data ends inside an integer"),
    ],
)
def test_malformed_bytes_are_refused_with_their_place(data, offset, message):
    with pytest.raises(BinaryParseError, match=message) as caught:
        decode(data, "ShapeProto")
    assert caught.value.offset == offset
    assert str(caught.value).startswith(f"byte {offset}: ")
    assert isinstance(caught.value, ParseError)


def test_deep_nesting_is_refused():
    data = b""
    for _ in range(300):
        data = b"\x22" + encode_varint(len(data)) + data
    with pytest.raises(BinaryParseError, match="nested more than 200 deep"):
        decode(data, "ShapeProto")
