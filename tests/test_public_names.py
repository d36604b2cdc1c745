"""The names that `import xlalite` offers."""

import ast
import importlib
from pathlib import Path

import pytest

import xlalite

TABLE = {**xlalite._MODULES, **xlalite._EXPORTS}


def _names_for_type_checkers() -> dict[str, str]:
    """What the `if TYPE_CHECKING:` block of xlalite/__init__.py imports: name to module."""
    tree = ast.parse(Path(xlalite.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom), ast.unparse(statement)
        for alias in statement.names:
            assert alias.asname is not None, f"write `{alias.name} as {alias.name}` to re-export it"
            is_module = xlalite._MODULES.get(alias.asname) == f"{statement.module}.{alias.name}"
            names[alias.asname] = f"{statement.module}.{alias.name}" if is_module else str(statement.module)
    return names


@pytest.mark.parametrize("name", sorted(TABLE))
def test_public_name_resolves(name: str) -> None:
    value = getattr(xlalite, name)
    if name in xlalite._MODULES:
        assert value is importlib.import_module(xlalite._MODULES[name])
    else:
        assert value is getattr(importlib.import_module(xlalite._EXPORTS[name]), name)


def test_type_checkers_see_the_same_names() -> None:
    assert _names_for_type_checkers() == TABLE


def test_no_name_is_listed_twice() -> None:
    assert not xlalite._MODULES.keys() & xlalite._EXPORTS.keys()


def test_dir_lists_the_public_names() -> None:
    assert set(TABLE) <= set(dir(xlalite))


def test_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="module 'xlalite' has no attribute 'no_such_name'"):
        _ = xlalite.no_such_name
