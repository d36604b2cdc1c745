"""Writes the reference: a page for each public namespace, from the tables that `import xlalite` is made of."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from pathlib import Path

from xlalite.namespace import NAMESPACES

# What is offered under several names is described where it comes first.
_NAMESPACES = ("xlalite", "xlalite.hlo", *(f"xlalite.{name}" for name in sorted(NAMESPACES)))


def write_reference(folder: Path) -> None:
    """One page for each namespace into the folder, and an index of them; pages that would not change stay."""
    folder.mkdir(exist_ok=True)
    described: dict[int, str] = {}
    for namespace in _NAMESPACES:
        _replace(folder / f"{namespace}.md", _page(namespace, described))
    _replace(folder / "index.md", _index(_NAMESPACES))


def _replace(file: Path, text: str) -> None:
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def _index(namespaces: Iterable[str]) -> str:
    return "\n".join(
        [
            "# Reference",
            "",
            "Every public name, with what its docstring says, by namespace.",
            "",
            *("```{toctree}", ":maxdepth: 1", "", *namespaces, "```", ""),
        ]
    )


def _page(namespace: str, described: dict[int, str]) -> str:
    module = importlib.import_module(namespace)
    entries: list[str] = []
    elsewhere: list[str] = []
    for name in sorted(dir(module), key=str.lower):
        value = getattr(module, name)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        full = f"{namespace}.{name}"
        if not (inspect.isclass(value) or callable(value)):
            elsewhere.append(f"- `{name}`: {_value(value)}")
        elif (home := described.setdefault(id(value), full)) == full:
            entries += [f".. auto{'class' if inspect.isclass(value) else 'function'}:: {full}"]
            entries += ["   :members:", ""] if inspect.isclass(value) else [""]
        else:
            elsewhere.append(f"- `{name}`: {{py:obj}}`{home}`")
    also = ["## Also here", "", *elsewhere, ""] if elsewhere else []
    return "\n".join([f"# {namespace}", "", "```{eval-rst}", *entries, "```", "", *also])


def _value(value: object) -> str:
    text = repr(value)
    return f"`{text}`" if len(text) <= 80 else f"a `{type(value).__name__}`"
