"""The names that `xlalite.hlo` offers."""

import ast
import importlib
from pathlib import Path

import pytest

import xlalite.hlo as hlo

SHOWN = {
    alias.name: str(node.module)
    for node in ast.walk(ast.parse(Path(hlo.__file__).with_suffix(".pyi").read_text(encoding="utf-8")))
    if isinstance(node, ast.ImportFrom) and node.module != "typing"
    for alias in node.names
}
"""What type checkers read, and from where."""


@pytest.mark.parametrize("name", SHOWN)
def test_name_resolves_as_type_checkers_see_it(name: str) -> None:
    assert getattr(hlo, name) is getattr(importlib.import_module(SHOWN[name]), name)


def test_type_checkers_see_every_name() -> None:
    assert sorted(SHOWN) == dir(hlo)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'xlalite\.hlo' has no attribute 'pasre'"):
        hlo.pasre  # noqa: B018
