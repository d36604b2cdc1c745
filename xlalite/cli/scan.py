"""`xlalite scan`: which names of TensorFlow a program uses that xlalite lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import xlalite
from xlalite.cli.arguments import CommandParser
from xlalite.cli.errors import UsageError
from xlalite.hlo.records import dataclass

_EPILOG = """\
Reads the program without running it: names that are made at run time, and
arguments of functions, are not looked at. The exit code is 1 when a name is
missing. 'python -m xlalite.tf1 SCRIPT' runs a program as it is.
"""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a name of TensorFlow.

    Attributes:
        name: The name behind `tf.`.
        line: Where it is used.
    """

    name: str
    line: int


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    parser = CommandParser(
        "scan", "Says which names of TensorFlow a program uses that xlalite lacks.", "SCRIPT...", _EPILOG
    )
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help="a Python program, or a folder of them")
    arguments, _ = parser.read(words)
    missing = 0
    for path in _programs(arguments.scripts):
        uses = list(uses_of(path.read_bytes(), str(path)))
        lacking = missing_names(uses)
        missing += len(lacking)
        known = len({use.name for use in uses}) - len(lacking)
        print(f"{path}: {known} names are there, {len(lacking)} missing")
        for name, lines in lacking.items():
            print(f"  {name}  (line {', '.join(map(str, lines))})")
    return 1 if missing else 0


def uses_of(source: str | bytes, path: str = "<program>") -> Iterator[Use]:
    """The uses of TensorFlow's names in a program.

    Raises:
        UsageError: the text is no Python.
    """
    try:
        tree = ast.parse(source, path)
    except SyntaxError as error:
        raise UsageError(f"{path}{f':{error.lineno}' if error.lineno else ''}: {error.msg}") from None
    except ValueError as error:  # of bytes that no text has
        raise UsageError(f"{path}: {error}") from None
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                inner = _inside(alias.name)
                if inner is not None:
                    bound[alias.asname or "tensorflow"] = inner if alias.asname else ""
        elif isinstance(node, ast.ImportFrom) and (inner := _inside(node.module or "")) is not None:
            for alias in node.names:
                name = ".".join(filter(None, (inner, alias.name)))
                bound[alias.asname or alias.name] = name
                yield Use(name, node.lineno)
    inner_parts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner_parts:
            root, parts = _chain(node)
            if root in bound:
                yield Use(".".join(filter(None, (bound[root], *parts))), node.lineno)


def missing_names(uses: Sequence[Use]) -> dict[str, list[int]]:
    """The names that xlalite lacks, with the lines that use them."""
    found: dict[str, list[int]] = {}
    for use in uses:
        lacking = _first_missing(use.name)
        if lacking is not None:
            found.setdefault(lacking, []).append(use.line)
    return {name: sorted(set(lines)) for name, lines in sorted(found.items())}


def _first_missing(name: str) -> str | None:
    """The shortest part of a name that does not exist; None when all is there."""
    current: object = xlalite
    parts = name.split(".")
    if "python" in parts or parts[0] in ("core", "examples"):
        return None
    for count, part in enumerate(parts, 1):
        try:
            current = getattr(current, part)
        except AttributeError:
            return ".".join(parts[:count])
        if not _is_namespace(current):
            return None
    return None


def _is_namespace(value: object) -> bool:
    return (
        hasattr(value, "__getattr__") or hasattr(value, "__path__") or type(value).__name__ in ("module", "Namespace")
    )


def _inside(module: str) -> str | None:
    """The part of a module's name behind TensorFlow's; None for another's."""
    for package in ("tensorflow.compat.v1", "tensorflow", "xlalite"):
        if module == package or module.startswith(f"{package}."):
            return module.removeprefix(package).lstrip(".")
    return None


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), parts[::-1]


def _programs(scripts: Sequence[str]) -> Iterator[Path]:
    for each in map(Path, scripts):
        if not each.exists():
            raise UsageError(f"there is no file {str(each)!r}")
        yield from sorted(each.rglob("*.py")) if each.is_dir() else [each]
