"""Shardings and groups of devices: text to messages and back."""

import pytest

from xlalite.hlo.proto.meshes import read_groups, write_groups
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.shardings import read_sharding, write_sharding
from xlalite.hlo.proto.wire import decode, encode
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.spelling.replica_group_text import read_replica_groups

UNDERSTOOD = [
    "{replicated}",
    "{manual}",
    "{unknown}",
    "{unreduced}",
    "{maximal device=3}",
    "{devices=[2,2]0,1,2,3}",
    "{devices=[2,2]<=[4]}",
    "{devices=[2,2]<=[2,2]T(1,0)}",
    "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}",
    "{{replicated}, {maximal device=0}, {}}",
    "{}",
    "{replicated shard_as 1}",
    "{devices=[2,2]<=[4] shard_like 2}",
    '{replicated metadata={op_name="a"}}',
    "{mesh['a'=2,'b'=4], [{'a'}, {'b'}]}",
    "{mesh['a'=2,'b'=4], [{'a'}, {?}], replicated={'b'}}",
    "{mesh['a'=2,'b'=4], [{}, {'b':(2)2, ?}], manual={'a'}}",
    "{mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{}, {'b'}], unreduced={'a'}}",
    "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{}, {}], replicated={'a'}, unreduced={'b'}}",
]


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_sharding_lies_in_fields(text):
    message = ProtoMessage("OpSharding")
    write_sharding(text, message)
    assert not message.has("xlalite_text")
    assert read_sharding(decode(encode(message), "OpSharding")) == text


@pytest.mark.parametrize(
    "text",
    [
        "{@mesh, [{a}]}",
        "{devices=[2,2] <= [4]}",
        "{{replicated},{manual}}",
        "something",
        "{devices=[99999999999999999999]0}",
    ],
)
def test_other_spellings_travel_as_text(text):
    message = ProtoMessage("OpSharding")
    write_sharding(text, message)
    assert read_sharding(decode(encode(message), "OpSharding")) == text


def test_spelling_that_only_differs_in_spaces_keeps_its_fields():
    message = ProtoMessage("OpSharding")
    write_sharding("{{replicated},{manual}}", message)
    assert [one.word("type") for one in message.messages("tuple_shardings")] == ["REPLICATED", "MANUAL"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{{0,1},{2,3}}",
        "[2,2]<=[4]",
        "[2,2]<=[2,2]T(1,0)",
        "mesh['a'=2,'b'=2] {'a'}",
        "mesh['a'=4], device_ids=(3,2,1,0) {'a':(2)2}",
    ],
)
def test_groups_keep_their_spelling(text):
    groups = read_replica_groups(TokenCursor(text))
    message = ProtoMessage("HloInstructionProto")
    write_groups(groups, message)
    again = read_groups(decode(encode(message), "HloInstructionProto"))
    assert again == groups
    assert str(again) == str(groups)


def test_groups_of_older_files_are_read():
    message = ProtoMessage("HloInstructionProto")
    message.append("replica_groups").put_all("replica_ids", [1, 0])
    assert read_groups(message).groups == ((1, 0),)
