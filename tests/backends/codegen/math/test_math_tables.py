"""Each table of coefficients in the package keeps the error that its comment states."""

import importlib
import importlib.util
import re
from pathlib import Path

import mpmath
import pytest

from xlalite.backends.codegen.llvm import F32, F64

_PATH = Path(__file__).with_name("minimax.py")


def _load_minimax():
    spec = importlib.util.spec_from_file_location("minimax", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


minimax = _load_minimax()


def coefficients(place):
    room, name, key = re.fullmatch(r"(\w+)\.(\w+)(?:\[(\w+)\])?", place).groups()
    table = getattr(importlib.import_module(f"xlalite.backends.codegen.math.{room}"), name)
    return table[{"F32": F32, "F64": F64}[key]] if key else table


@pytest.mark.parametrize("table", minimax.TABLES, ids=lambda table: table.place)
def test_table_has_its_stated_error(table):
    found = coefficients(table.place)
    assert len(found) == table.degree + 1
    low, high = mpmath.mpf(table.low), mpmath.mpf(table.high)
    error = minimax.largest_error(table.f, found, low, high, table.weight)
    assert error < 2.0**-table.error_bits


def test_a_fit_is_found_again():
    table = next(table for table in minimax.TABLES if table.place == "exponential.EXP[F32]")
    found, _ = minimax.fit(table.f, table.degree, table.low, table.high, table.weight, table.dtype)
    assert found == pytest.approx(coefficients(table.place), rel=1e-2)
