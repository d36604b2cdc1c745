"""Groups of devices in their spellings."""

from __future__ import annotations

import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.spelling.codecs import REPLICA_GROUPS
from xlalite.hlo.spelling.cursor import TokenCursor


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("mesh['stage'=2,'local'=4] {'local'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['stage'=2,'local'=4] {'stage'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'b'}", ((3, 1), (2, 0))),
        ("mesh['a'=4] {'a':(1)2}", ((0, 2), (1, 3))),
        ("mesh['a'=4] {'a':(2)2}", ((0, 1), (2, 3))),
    ],
)
def test_spellings(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    found = REPLICA_GROUPS.parse(TokenCursor(text))
    assert found.groups == groups
    assert REPLICA_GROUPS.format(found) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[2,2]<=[5]", "impossible"),
        ("[2,2,1]<=[4]", "impossible"),
        ("[2,2]<=[4]T(1)", "impossible"),
        ("[1000000,1000000]<=[1000000000000]", "more than"),
        ("mesh['a'=2] {'b'}", "there is no axis 'b', only a"),
        ("mesh['a'=2,'a'=2] {'a'}", "different names"),
        ("mesh['a'=8] {'a':(3)2}", "does not fit an axis of size 8"),
        ("mesh['a'=8] {'a':(2)2,'a':(2)2}", "overlaps"),
        ("mesh['a'=12] {'a':(4)1,'a':(6)2}", "overlap"),
        ("mesh['a'=2], device_ids=(0,1,2) {'a'}", "found 3 device numbers, the axes have 2"),
        ("mesh['a'=2], device_ids=([2]T(1)) {'a'}", "impossible"),
        ("{{0,1}", "the end of the text"),
    ],
)
def test_impossible_groups_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        REPLICA_GROUPS.parse(TokenCursor(text))


def test_the_spelling_is_not_part_of_the_value() -> None:
    assert REPLICA_GROUPS.parse(TokenCursor("[2,2]<=[4]")) == REPLICA_GROUPS.parse(TokenCursor("{{0,1},{2,3}}"))
