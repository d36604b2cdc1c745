"""The rooms and what they may import, read from the sources (docs/architecture.md shows the same table)."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("hlo", "passes", "backends", "xlalite")
MAX_LINES = 500


@dataclass(frozen=True)
class Room:
    """A part of the package, the rooms it may import besides itself, and the packages of others."""

    rooms: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


NUMERIC = ("numpy", "ml_dtypes")
GRAPH = ("xlalite.hlo", "xlalite.framework", "xlalite.ops")
FILES = ("xlalite.messages", "xlalite.files")
BELOW_RUNTIME = (
    *GRAPH,
    *FILES,
    "xlalite.passes",
    "xlalite.backends",
    "xlalite.clustering",
    "xlalite.flags",
    "xlalite.program_flags",
)
BELOW_CLIENT = (*BELOW_RUNTIME, "xlalite.runtime")
DOORS = ("xlalite.hlo", "xlalite.backends", "xlalite.backends.cpu", "xlalite.flags", "xlalite.client", "xlalite")
BELOW_TOOLS = (*BELOW_CLIENT, "xlalite.client", "xlalite.tracing", "xlalite")

# The longest prefix of a module's name finds its room.
ROOMS: dict[str, Room] = {
    # level 0
    "xlalite.hlo": Room((), NUMERIC),
    "xlalite.hlo.tools.graph": Room(("xlalite.hlo",), ("networkx",)),
    # level 1
    "xlalite.passes": Room(("xlalite.hlo", "xlalite.hlo.tools.graph"), NUMERIC),
    # level 2
    "xlalite.backends": Room(("xlalite.hlo", "xlalite.hlo.tools.graph", "xlalite.passes"), (*NUMERIC, "platformdirs")),
    "xlalite.backends.codegen": Room(("xlalite.hlo", "xlalite.passes"), NUMERIC),
    "xlalite.backends.codegen.llvm": Room(("xlalite.hlo", "xlalite.passes"), ("llvmlite",)),
    "xlalite.backends.cpu": Room(
        (
            *("xlalite.hlo", "xlalite.passes", "xlalite.backends"),
            *("xlalite.backends.codegen", "xlalite.backends.codegen.llvm"),
        ),
        (*NUMERIC, "platformdirs", "llvmlite"),
    ),
    # level 3
    "xlalite.framework": Room(GRAPH, NUMERIC),
    "xlalite.messages": Room(("xlalite.hlo", "xlalite.framework"), NUMERIC),
    "xlalite.files": Room(("xlalite.hlo", "xlalite.framework", "xlalite.messages"), (*NUMERIC, "PIL")),
    "xlalite.ops": Room((*GRAPH, *FILES), NUMERIC),
    "xlalite.ops.functions.graph_network": Room(GRAPH, ("networkx",)),
    # level 4
    "xlalite.clustering": Room(GRAPH, NUMERIC),
    # level 5
    "xlalite.program_flags": Room(("xlalite.hlo",)),
    "xlalite.flags": Room(("xlalite.hlo", "xlalite.passes", "xlalite.program_flags")),
    "xlalite.runtime": Room(BELOW_RUNTIME, (*NUMERIC, "platformdirs")),
    # level 6: the client, tracing, and the modules beside them that only gather names
    "xlalite.tracing": Room((*BELOW_CLIENT, "xlalite"), NUMERIC),
    "xlalite.client": Room((*BELOW_CLIENT, "xlalite"), NUMERIC),
    "xlalite": Room((*BELOW_CLIENT, "xlalite.client", "xlalite.tracing"), NUMERIC),
    # level 7
    "xlalite.cli": Room((*BELOW_TOOLS, "xlalite.hlo.tools.graph", "xlalite.interop.onnx"), NUMERIC),
    "xlalite.examples": Room(BELOW_TOOLS, NUMERIC),
    "xlalite.interop": Room(DOORS, NUMERIC),
    "xlalite.interop.jax": Room(
        (*DOORS, "xlalite.interop"),
        (*NUMERIC, "jax", "jaxlib"),
    ),
    "xlalite.interop.onnx": Room(
        ("xlalite.hlo", "xlalite.backends", "xlalite", "xlalite.interop", "xlalite.ops"), (*NUMERIC, "onnx")
    ),
    "xlalite.interop.torch": Room(
        (*DOORS, "xlalite.interop"),
        (*NUMERIC, "torch", "functorch"),
    ),
    "xlalite.__main__": Room(("xlalite.cli",)),
}


@dataclass(frozen=True)
class Import:
    """One imported module, as written."""

    module: str
    line: int
    level: int = 0


def python_files() -> Iterator[Path]:
    for top in SOURCES:
        for path in sorted((ROOT / top).rglob("*.py")):
            relative = path.relative_to(ROOT)
            linked = relative.parts[0] == "xlalite" and relative.parts[1] in SOURCES
            if not linked:  # the links under xlalite/ show the same file a second time
                yield relative


def module_name(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts if parts[0] == "xlalite" else ["xlalite", *parts])


def imports_of(source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module == "xlalite":  # `from xlalite import hlo` imports xlalite.hlo
                yield from (Import(f"xlalite.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield Import(module, node.lineno, node.level)
        elif isinstance(node, ast.Constant) and is_place(node.value):
            yield Import(node.value.partition(":")[0], node.lineno)


def is_place(value: object) -> bool:
    """Whether a constant says where something is that `hlo/late.py` imports."""
    return isinstance(value, str) and re.fullmatch(r"xlalite(\.\w+)+:\w+", value) is not None


def room_of(module: str) -> str:
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:end])) in ROOMS:
            return prefix
    return ""


def violations(path: Path, source: str) -> list[str]:
    """Every breach of the layers in one file, as messages."""
    room_name = room_of(module_name(path))
    room = ROOMS[room_name]
    allowed = ", ".join([*room.rooms, *room.packages]) or "nothing"
    found = []
    for item in imports_of(source):
        where = f"{path.as_posix()}:{item.line}"
        if item.level:
            found.append(f"{where} has a relative import: imports are absolute here")
        elif not _may_import(room_name, room, item.module):
            found.append(f"{where} imports {item.module}: {room_name} may import only {allowed}")
    return found


def _may_import(room_name: str, room: Room, module: str) -> bool:
    top = module.split(".")[0]
    if top != "xlalite":
        return top in sys.stdlib_module_names or top in room.packages
    target = room_of(module)
    parts_of_this_room = target == room_name or (room_name != "xlalite" and target.startswith(f"{room_name}."))
    return parts_of_this_room or target in room.rooms


def test_there_are_sources_to_check() -> None:
    tops = {path.parts[0] for path in python_files()}
    assert tops == set(SOURCES)


@pytest.mark.parametrize("path", list(python_files()), ids=lambda path: path.as_posix())
def test_file_respects_layers_and_size(path: Path) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    assert not violations(path, source)
    lines = source.count("\n")
    assert lines <= MAX_LINES, f"{path} has {lines} lines, the limit is {MAX_LINES}: is there more than one idea in it?"


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        (
            "hlo/parser.py",
            "import xlalite.passes.simplify.cse",
            "hlo/parser.py:1 imports xlalite.passes.simplify.cse: xlalite.hlo may import only numpy, ml_dtypes",
        ),
        ("passes/cse.py", "from xlalite.backends.base import Backend", "passes/cse.py:1 imports xlalite.backends.base"),
        ("passes/cse.py", "def f():\n    import llvmlite.binding", "passes/cse.py:2 imports llvmlite.binding"),
        ("backends/base.py", "import llvmlite", "backends/base.py:1 imports llvmlite"),
        (
            "passes/pipelines.py",
            'late("xlalite.backends.base:Backend")',
            "passes/pipelines.py:1 imports xlalite.backends.base",
        ),
        ("hlo/shape.py", "from . import dtype", "hlo/shape.py:1 has a relative import"),
        ("hlo/shape.py", "import hlo.dtype", "hlo/shape.py:1 imports hlo.dtype"),
        ("xlalite/clustering/mark.py", "from xlalite import passes", "imports xlalite.passes"),
        ("xlalite/framework/graph.py", "import networkx as nx", "imports networkx"),
        ("xlalite/runtime/executor.py", "from xlalite.client import config", "imports xlalite.client"),
        ("xlalite/client/session.py", "from xlalite.cli.main import main", "imports xlalite.cli.main"),
    ],
)
def test_breach_is_reported(path: str, source: str, message: str) -> None:
    (found,) = violations(Path(path), source)
    assert message in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("backends/cpu/jit.py", "import llvmlite.binding as llvm\nfrom xlalite.backends.base import Backend"),
        ("backends/cpu/jit.py", "from xlalite.backends.codegen.llvm import builder"),
        ("backends/base.py", "from xlalite.passes.core.pipeline import Pipeline\nimport threading"),
        ("xlalite/ops/math.py", "from xlalite.framework.graph.graph import Graph\nimport numpy as np"),
        ("xlalite/examples/mlp_training.py", "import xlalite as tf\nfrom xlalite.client import timeline"),
    ],
)
def test_downward_import_is_accepted(path: str, source: str) -> None:
    assert violations(Path(path), source) == []
