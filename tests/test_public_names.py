"""The names that `import xlalite` offers."""

import ast
import importlib
import operator
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import xlalite
from xlalite.namespace import NAMESPACES
from xlalite.namespace_modules import exports_of, namespaces_of

TABLE = {**{name: (module, None) for name, module in xlalite._MODULES.items()}, **xlalite._EXPORTS}


WHOLE = ("array", "clipping", "control_flow", "math")
"""Modules of functions whose every function is public."""


def stub(table: Mapping[str, tuple[str, str | None]], constants: Mapping[str, str]) -> str:
    """What type checkers read of a package that imports its names lazily.

    Args:
        table: Public name to module and the name there; to None for the module itself.
        constants: Names that the package itself defines, and their types.
    """
    imports: dict[str, list[str]] = {}
    others: list[str] = []
    for name, (module, attribute) in table.items():
        holder, _, own = module.rpartition(".") if attribute is None else (module, ".", attribute)
        if own == name:
            imports.setdefault(holder, []).append(f"{name} as {name}")
        elif table.get(own) == (module, own):
            others.append(f"{name} = {own}")
        else:  # a name with an underscore is not passed on
            imports.setdefault(holder, []).append(f"{own} as _{own}")
            others.append(f"{name} = _{own}")
    lines = ["# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.", ""]
    for module in sorted(imports):
        listed = ", ".join(sorted(set(imports[module])))
        if len(line := f"from {module} import {listed}") > 120:
            unbroken = textwrap.wrap(listed.replace(" as ", "~as~"), 116, break_long_words=False)
            inner = "".join(f"    {each}\n" for each in unbroken).replace("~", " ")
            line = f"from {module} import (\n{inner})"
        lines.append(line)
    return "\n".join([*lines, "", *others, *(f"{name}: {type_}" for name, type_ in constants.items()), ""])


def test_type_checkers_see_the_same_names(expect_file: Callable[[Path, str], None]) -> None:
    spaces = {name: (f"xlalite.stubs.{name}", None) for name in namespaces_of("")}
    written = stub({**TABLE, **spaces}, {"__version__": "str"})
    expect_file(Path(xlalite.__file__).with_suffix(".pyi"), written)


# Namespaces under packages that have files, such as `xlalite.contrib`, are not known to type checkers.
STUBS = {name: name.replace(".", "_") for name in NAMESPACES if name.partition(".")[0] in namespaces_of("")}


@pytest.mark.parametrize("name", STUBS)
def test_type_checkers_see_the_same_names_of_namespaces(name: str, expect_file: Callable[[Path, str], None]) -> None:
    path = Path(xlalite.__file__).parent / "stubs" / f"{STUBS[name]}.pyi"
    nested = {last: (f"xlalite.stubs.{STUBS[full]}", None) for last, full in namespaces_of(name).items()}
    expect_file(path, stub({**exports_of(NAMESPACES[name]), **nested}, {}))


def test_there_are_no_stubs_of_namespaces_that_are_gone() -> None:
    found = {path.stem for path in (Path(xlalite.__file__).parent / "stubs").glob("*.pyi")}
    assert found == {*STUBS.values()}


def test_type_checkers_see_the_same_names_of_hlo(expect_file: Callable[[Path, str], None]) -> None:
    table = {name: (module, name) for name, module in xlalite.hlo._MODULE_OF.items()}
    expect_file(Path(xlalite.hlo.__file__).with_suffix(".pyi"), stub(table, {}))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_public_name_resolves(name: str) -> None:
    module_name, attribute = TABLE[name]
    module = importlib.import_module(module_name)
    assert getattr(xlalite, name) is (module if attribute is None else getattr(module, attribute))


@pytest.mark.parametrize("name", WHOLE)
def test_table_has_all_functions_of_modules_that_are_shown_whole(name: str) -> None:
    module = importlib.import_module(f"xlalite.ops.functions.{name}")
    defined = {public for public, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    listed = {attribute for module_name, attribute in TABLE.values() if module_name == module.__name__}
    # Of some there is a form under the same name that takes arrays of NumPy, too.
    assert {public for public in defined if not public.startswith("_")} <= listed | {*TABLE}


def test_no_name_is_listed_twice() -> None:
    assert not xlalite._MODULES.keys() & xlalite._EXPORTS.keys()


def test_namespaces_may_lie_in_others() -> None:
    assert xlalite.io.gfile.exists is xlalite.gfile.Exists


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespaces_hold_what_their_modules_define(name: str) -> None:
    namespace = operator.attrgetter(name)(xlalite)
    exports = exports_of(NAMESPACES[name])
    assert dir(namespace) == sorted({*exports, *namespaces_of(name)})
    for public_name, (module, attribute) in exports.items():
        assert getattr(namespace, public_name) is getattr(importlib.import_module(module), attribute)


def test_namespaces_can_be_imported_before_anything_asked_for_them() -> None:
    code = "\n".join(
        f"from xlalite.{name} import {next(iter(exports_of(names)))}" for name, names in NAMESPACES.items() if names
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    assert set(dir(xlalite)) == {*TABLE, *namespaces_of(""), "__version__"}
    assert {"parse", "load", "evaluate", "Builder"} <= set(dir(xlalite.hlo))
    assert all(hasattr(xlalite.hlo, name) for name in dir(xlalite.hlo))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_name", "xlalite.no_such_name: xlalite has no such name yet; docs/tf1.md lists those there are$"),
        ("reduce_summ", "xlalite.reduce_summ: xlalite has no such name yet; did you mean 'reduce_sum'[?]$"),
        (
            "nn.quantized_conv2d",
            "xlalite.nn.quantized_conv2d: xlalite has no such name yet; docs/tf1.md lists those there are$",
        ),
        (
            "contrib.nowhere",
            "xlalite.contrib.nowhere: xlalite has no such name yet; docs/tf1.md lists those there are$",
        ),
        ("compat.v1.quokka", "xlalite.quokka: xlalite has no such name yet; docs/tf1.md lists those there are$"),
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


def test_the_document_lists_the_names_of_tensorflow(expect_file: Callable[[Path, str], None]) -> None:
    lines = [
        "# TensorFlow 1 programs",
        "",
        "`import xlalite as tf` offers these names of TensorFlow 1; `import xlalite.compat.v1 as tf` is the same.",
        "`python -m xlalite.tf1 SCRIPT` runs a program whose imports say `tensorflow`, unchanged, and",
        "`xlalite scan SCRIPT` lists the names that a program uses and that are missing here.",
        "",
        "What differs: element types of mixed operands follow NumPy's rules; every variable is a resource variable;",
        "every device name means this computer's processors, unless `ConfigProto(device_count={'CPU': n})` asks for",
        "several devices: then each runs its part of a step in a thread of its own, placed, refused or replaced as in",
        "TensorFlow, except that an operation on a variable always lies where the variable lies; functions of",
        "`tf.data` run on the host, an operation at a time; a variable's name as a tensor, `v:0`, fetches its value.",
        "Derivatives of complex roots and reciprocals are those of TensorFlow's CPU kernels, which conjugate; its XLA",
        "kernels do not, and are no derivatives then.",
        "Imported graphs may have variables by reference, switches, merges, frames and TensorArrays: they become",
        "resources, `If`, `While` and lists. Branches and loops are written so that TensorFlow reads them, but for",
        "loops that carry TensorArrays or whose gradients are in the graph. A TensorArray is a value; the gradient",
        "array of a source is one for all who ask for it, except that a loop or branch changes a copy of it.",
        "A `tf.train.Server` serves a cluster of one task; estimators have their variables in one piece.",
        "Elements of quantised types are fed and fetched as NumPy's plain integers.",
        "",
        "Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.",
        "",
        "## `tf`",
        "",
        textwrap.fill(
            ", ".join(f"`{name}`" for name in sorted({*xlalite._EXPORTS, *xlalite._MODULES})),
            120,
            break_long_words=False,
        ),
    ]
    for space in sorted(NAMESPACES):
        names = ", ".join(f"`{name}`" for name in sorted(exports_of(NAMESPACES[space])))
        lines += ["", f"## `tf.{space}`", "", textwrap.fill(names, 120, break_long_words=False)]
    expect_file(Path(__file__).parents[1] / "docs" / "tf1.md", "\n".join(lines) + "\n")
