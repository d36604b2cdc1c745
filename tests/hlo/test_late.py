import sys

import pytest

from xlalite.hlo.late import LateFunctions, LateTable

PARTS = {"colorsys:__dict__": "rgb_to_hls hls_to_rgb", "this_module_does_not_exist:TABLE": "nothing"}


def test_a_part_of_a_table_is_imported_with_the_first_of_its_names() -> None:
    sys.modules.pop("colorsys", None)
    table: LateTable[object] = LateTable(PARTS)
    assert list(table) == ["rgb_to_hls", "hls_to_rgb", "nothing"]
    assert "hls_to_rgb" in table
    assert "colorsys" not in sys.modules
    assert table["hls_to_rgb"] is sys.modules["colorsys"].hls_to_rgb
    assert table.get("rgb_to_hls") is sys.modules["colorsys"].rgb_to_hls


def test_names_that_a_table_does_not_have_import_nothing() -> None:
    table: LateTable[object] = LateTable(PARTS)
    assert table.get("ONE_THIRD") is None
    with pytest.raises(KeyError, match="ONE_THIRD"):
        table["ONE_THIRD"]


def test_functions_are_imported_when_they_are_called() -> None:
    sys.modules.pop("colorsys", None)
    function = LateFunctions("colorsys").rgb_to_yiq
    assert "colorsys" not in sys.modules
    assert function(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
