"""The names that `xlalite.hlo` offers."""

import ast
import importlib
from pathlib import Path

import pytest

import xlalite.hlo as hlo


@pytest.mark.parametrize("name", sorted(hlo._MODULE_OF))
def test_name_resolves(name: str) -> None:
    assert getattr(hlo, name) is getattr(importlib.import_module(hlo._MODULE_OF[name]), name)


def test_the_block_for_type_checkers_says_the_same() -> None:
    tree = ast.parse(Path(hlo.__file__).read_text(encoding="utf-8"))
    shown = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert shown == hlo._MODULE_OF


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'xlalite\.hlo' has no attribute 'pasre'"):
        hlo.pasre  # noqa: B018
