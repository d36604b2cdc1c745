"""docs/numerics.md has each function of each type, and a few points of each row are within its bound."""

import pytest

from numerics.sweep import short_sweep
from numerics.table import ORDER, Row, read_rows

ROWS = read_rows()


def test_the_table_has_each_function_of_each_type() -> None:
    assert [(row.name, row.dtype) for row in ROWS] == ORDER


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.dtype.value}")
def test_errors_are_as_small_as_the_table_says(row: Row) -> None:
    found = short_sweep(row.name, row.dtype)
    assert found.ulp <= row.ulp, found
