"""The rooms inside the packages: what each folder holds may use only what stands on a lower floor.

`python tests/test_rooms.py` counts the arrows between the rooms of each package.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from test_layering import is_place

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "xlalite.hlo": "hlo",
    "xlalite.passes": "passes",
    "xlalite.backends": "backends",
    "xlalite.backends.codegen": "backends/codegen",
    "xlalite.backends.cpu": "backends/cpu",
    "xlalite.framework": "xlalite/framework",
    "xlalite.ops": "xlalite/ops",
}
# Files and folders of each package, the lowest floor first.
FLOORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "xlalite.hlo": (
        (
            "digest",
            "errors",
            "garbage",
            "late",
            "log",
            "record_tables",
            "records",
            "wording",
        ),
        ("types",),
        (
            "numerics",
            "spelling",
        ),
        ("ir",),
        ("surroundings",),
        ("ops",),
        (
            "building",
            "evaluation",
        ),
        ("stablehlo",),
        ("text",),
        (
            "proto",
            "verification",
        ),
        (
            "loading",
            "tools",
        ),
    ),
    "xlalite.passes": (
        ("core",),
        (
            "dump",
            "rewriting",
        ),
        ("analysis",),
        (
            "fusion",
            "memory",
            "preparation",
            "simplify",
        ),
        ("normalization",),
        (
            "pipelines",
            "registry",
        ),
    ),
    "xlalite.backends": (
        ("compile_report", "kernel_profile"),
        ("watch",),
        (
            "arguments",
            "base",
            "codegen",
        ),
        (
            "cpu",
            "interpreter",
            "roofline",
        ),
    ),
    "xlalite.backends.codegen": (
        (
            "errors",
            "llvm",
        ),
        (
            "arrays",
            "math",
        ),
        ("complex_math",),
        ("elements",),
        ("kernels",),
    ),
    "xlalite.backends.cpu": (
        ("native",),
        ("emission",),
        ("compilation",),
        ("device_run",),
        ("executable",),
        ("backend",),
    ),
    "xlalite.ops": (
        ("helpers",),
        ("declarations",),
        ("functions",),
        ("training",),
        ("layers",),
        ("data", "recurrent"),
    ),
    "xlalite.framework": (
        ("graph",),
        (
            "meaning",
            "random_seed",
            "structure",
        ),
        ("nest",),
    ),
}
MOST_ARROWS = {"xlalite.hlo": 80, "xlalite.passes": 35, "xlalite.backends.cpu": 25, "xlalite.ops": 16}

# What a method of a low room asks for when it is called, for the convenience of users (`module.to_string()`), and the
# types in the signatures of a declaration's functions, which those who call them know. `custom-call` runs programs that
# are text in its attributes; the registration of a pass asks which names are taken, and backends are found
# by their names.
DOORS = {
    ("xlalite.backends.base", "xlalite.backends.cpu"),
    ("xlalite.backends.base", "xlalite.backends.interpreter"),
    ("xlalite.framework.graph", "xlalite.framework.meaning"),
    ("xlalite.hlo.ir", "xlalite.hlo.proto"),
    ("xlalite.hlo.ir", "xlalite.hlo.stablehlo"),
    ("xlalite.hlo.ir", "xlalite.hlo.text"),
    ("xlalite.hlo.ir", "xlalite.hlo.tools"),
    ("xlalite.hlo.ops", "xlalite.hlo.text"),
    ("xlalite.passes.core", "xlalite.passes.registry"),
}


@dataclass(frozen=True)
class Arrow:
    """One import from one room into another of the same package.

    Attributes:
        source: The room that imports.
        target: The room that is imported.
        where: File and line.
        is_late: Whether it stands in a function, in a block for type checkers, or as a place in a table.
    """

    source: str
    target: str
    where: str
    is_late: bool


def entries(package: str) -> set[str]:
    """The rooms of a package: its folders with sources, and its files."""
    folder = ROOT / FOLDERS[package]
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py") if not path.parent.is_symlink()}


@cache
def arrows(package: str) -> tuple[Arrow, ...]:
    return tuple(_arrows(package))


def _arrows(package: str) -> Iterator[Arrow]:
    folder, rooms = ROOT / FOLDERS[package], entries(package)
    for path in sorted(folder.rglob("*.py")):
        source = path.relative_to(folder).with_suffix("").parts[0]
        if source == "__init__":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        places = ((node, True) for node in ast.walk(tree) if isinstance(node, ast.Constant) and is_place(node.value))
        for node, is_late in chain(_statements(tree, False), places):
            for module in _imported(node):
                target = module.removeprefix(f"{package}.").split(".")[0]
                if module.startswith(f"{package}.") and target in rooms and target != source:
                    where = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
                    yield Arrow(source, target, where, is_late)


def _statements(node: ast.AST, is_late: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, is_late
        if not isinstance(child, ast.expr):
            yield from _statements(child, is_late or _is_late(child))


def _is_late(node: ast.AST) -> bool:
    is_for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return is_for_checkers or isinstance(node, ast.FunctionDef)


def _imported(node: ast.stmt | ast.Constant) -> list[str]:
    if isinstance(node, ast.Constant):
        return [str(node.value).partition(":")[0]]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def floor_of(package: str) -> dict[str, int]:
    return {room: number for number, rooms in enumerate(FLOORS[package]) for room in rooms}


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package: str) -> None:
    assert floor_of(package).keys() == entries(package)


@pytest.mark.parametrize("package", FLOORS)
def test_rooms_use_what_is_below_them(package: str) -> None:
    floors = floor_of(package)
    upward = [
        f"{arrow.where}: {arrow.source} imports {arrow.target}, which is not below it"
        for arrow in arrows(package)
        if not arrow.is_late and floors[arrow.target] >= floors[arrow.source]
    ]
    assert not upward, "\n".join(upward)


@pytest.mark.parametrize("package", FLOORS)
def test_late_imports_that_go_up_are_doors(package: str) -> None:
    floors = floor_of(package)
    found = {
        (f"{package}.{arrow.source}", f"{package}.{arrow.target}")
        for arrow in arrows(package)
        if arrow.is_late and floors[arrow.target] >= floors[arrow.source]
    }
    assert found == {door for door in DOORS if door[0].rpartition(".")[0] == package}


def test_the_graph_imports_nothing_late() -> None:
    folder = ROOT / FOLDERS["xlalite.framework"]
    late = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in sorted(folder.rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not late, "what needs the layer above is installed by it"


@pytest.mark.parametrize("package", MOST_ARROWS)
def test_there_are_few_arrows(package: str) -> None:
    assert len(pairs(package)) <= MOST_ARROWS[package]


def pairs(package: str) -> set[tuple[str, str]]:
    return {(arrow.source, arrow.target) for arrow in arrows(package) if not arrow.is_late}


if __name__ == "__main__":
    for name in FLOORS:
        print(f"{name}: {len(entries(name))} rooms, {len(FLOORS[name])} floors, {len(pairs(name))} arrows")
