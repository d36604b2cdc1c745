"""The names that `import xlalite` offers."""

import ast
import importlib
import operator
from dataclasses import dataclass
from pathlib import Path

import pytest

import xlalite
from xlalite.namespace import NAMESPACES, exports_of

TABLE = {**{name: (module, None) for name, module in xlalite._MODULES.items()}, **xlalite._EXPORTS}


@dataclass(frozen=True)
class Shown:
    """What the `if TYPE_CHECKING:` block of xlalite/__init__.py imports.

    Attributes:
        names: Public name to module and name there.
        starred: Modules whose every name is imported.
    """

    names: dict[str, tuple[str, str | None]]
    starred: tuple[str, ...]


@pytest.fixture(scope="module")
def shown() -> Shown:
    tree = ast.parse(Path(xlalite.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names: dict[str, tuple[str, str | None]] = {}
    starred: list[str] = []
    for statement in block.body:
        if isinstance(statement, ast.Assign):  # a second name for one that is imported
            (target,) = statement.targets
            names[ast.unparse(target)] = names[ast.unparse(statement.value)]
            continue
        assert isinstance(statement, ast.ImportFrom), ast.unparse(statement)
        if statement.names[0].name == "*":
            names |= {name: entry for name, entry in TABLE.items() if entry[0] == statement.module}
            starred.append(str(statement.module))
            continue
        for alias in statement.names:
            if alias.asname in NAMESPACES:
                continue
            assert alias.asname is not None, f"write `{alias.name} as {alias.name}` to re-export it"
            module = f"{statement.module}.{alias.name}"
            is_module = xlalite._MODULES.get(alias.asname) == module
            names[alias.asname] = (module, None) if is_module else (str(statement.module), alias.name)
    return Shown(names, tuple(starred))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_public_name_resolves(name: str) -> None:
    module_name, attribute = TABLE[name]
    module = importlib.import_module(module_name)
    assert getattr(xlalite, name) is (module if attribute is None else getattr(module, attribute))


def test_type_checkers_see_the_same_names(shown: Shown) -> None:
    assert shown.names == TABLE


def test_table_has_all_functions_of_modules_that_are_shown_whole(shown: Shown) -> None:
    for module_name in shown.starred:
        module = importlib.import_module(module_name)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        listed = {attribute for module, attribute in TABLE.values() if module == module_name}
        assert {name for name in defined if not name.startswith("_")} <= listed, module_name


def test_no_name_is_listed_twice() -> None:
    assert not xlalite._MODULES.keys() & xlalite._EXPORTS.keys()


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespaces_hold_what_their_modules_define(name: str) -> None:
    namespace = getattr(xlalite, name)
    exports = exports_of(NAMESPACES[name])
    assert dir(namespace) == sorted(exports)
    for public_name, (module, attribute) in exports.items():
        assert getattr(namespace, public_name) is getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", ["nn", "losses", "math", "errors"])
def test_namespaces_have_all_functions_and_classes_of_their_own_module(name: str) -> None:
    exports = exports_of(NAMESPACES[name])
    room = "framework.graph" if name == "errors" else "ops.functions"
    own = importlib.import_module(f"xlalite.{room}.{name}")
    tree = ast.parse(Path(str(own.__file__)).read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    elsewhere = {"cast", "bitcast"} | {name for name in defined if hasattr(xlalite, name)}
    assert {each for each in defined if not each.startswith("_")} - elsewhere <= exports.keys()


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    assert set(dir(xlalite)) == {*TABLE, *NAMESPACES, "__version__"}
    assert {"parse", "load", "evaluate", "Builder"} <= set(dir(xlalite.hlo))
    assert all(hasattr(xlalite.hlo, name) for name in dir(xlalite.hlo))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_name", "xlalite.no_such_name: xlalite has no such name yet$"),
        ("reduce_summ", "xlalite.reduce_summ: xlalite has no such name yet; did you mean 'reduce_sum'[?]$"),
        ("nn.conv2d", "xlalite.nn.conv2d: xlalite has no such name yet$"),
        ("contrib.layers", "xlalite.contrib.layers: xlalite has no such name yet$"),
        ("compat.v1.layers", "xlalite.layers: xlalite has no such name yet$"),
    ],
)
def test_a_missing_name_is_an_attribute_error_that_says_so(path: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        operator.attrgetter(path)(xlalite)


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
