"""The names that `import xlalite` offers."""

import ast
import importlib
from pathlib import Path

import pytest

import xlalite

TABLE = {**{name: (module, None) for name, module in xlalite._MODULES.items()}, **xlalite._EXPORTS}


def _names_for_type_checkers() -> dict[str, tuple[str, str | None]]:
    """What the `if TYPE_CHECKING:` block of xlalite/__init__.py imports: public name to module and name there."""
    tree = ast.parse(Path(xlalite.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names: dict[str, tuple[str, str | None]] = {}
    for statement in block.body:
        if isinstance(statement, ast.Assign):  # a second name for one that is imported
            (target,) = statement.targets
            names[ast.unparse(target)] = names[ast.unparse(statement.value)]
            continue
        assert isinstance(statement, ast.ImportFrom), ast.unparse(statement)
        for alias in statement.names:
            assert alias.asname is not None, f"write `{alias.name} as {alias.name}` to re-export it"
            module = f"{statement.module}.{alias.name}"
            is_module = xlalite._MODULES.get(alias.asname) == module
            names[alias.asname] = (module, None) if is_module else (str(statement.module), alias.name)
    return names


@pytest.mark.parametrize("name", sorted(TABLE))
def test_public_name_resolves(name: str) -> None:
    module_name, attribute = TABLE[name]
    module = importlib.import_module(module_name)
    assert getattr(xlalite, name) is (module if attribute is None else getattr(module, attribute))


def test_type_checkers_see_the_same_names() -> None:
    assert _names_for_type_checkers() == TABLE


def test_no_name_is_listed_twice() -> None:
    assert not xlalite._MODULES.keys() & xlalite._EXPORTS.keys()


def test_dir_lists_the_public_names() -> None:
    assert set(TABLE) <= set(dir(xlalite))


def test_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="module 'xlalite' has no attribute 'no_such_name'"):
        _ = xlalite.no_such_name


def test_compat_v1_is_the_same_namespace() -> None:
    tf = importlib.import_module("xlalite.compat.v1")
    assert tf.float32 is xlalite.float32
    assert set(TABLE) <= set(dir(tf))
    assert xlalite.compat.v1 is tf
    tf.disable_v2_behavior()
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tf.no_such_name


def test_program_ends_with_what_its_main_returns() -> None:
    seen: list[list[str]] = []

    def main(argv: list[str]) -> int:
        seen.append(argv)
        return 3

    with pytest.raises(SystemExit) as caught:
        xlalite.app.run(main=main, argv=["program", "x"])
    assert caught.value.code == 3
    assert seen == [["program", "x"]]
