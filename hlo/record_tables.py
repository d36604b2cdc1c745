"""Records as notebooks show them: a table with a column for each field."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_MOST_ROWS = 500


class RecordTable(tuple[T, ...]):
    """A tuple of records of one class."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no records</p>"
        first: Any = self[0]
        names = [each.name for each in dataclasses.fields(first)]
        return html_table(
            [name.replace("_", " ") for name in names], [[getattr(one, name) for name in names] for one in self]
        )


class FigureTable(dict[str, float]):
    """Figures by name."""

    def _repr_html_(self) -> str:
        return html_table(["figure", ""], self.items())


def html_table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table that stands by itself; numbers stand right, and after 500 rows it says how many there are."""
    from html import escape  # which is slow to load

    def cell(value: object) -> str:
        right = ' style="text-align:right"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        return f"<td{right}>{escape(_text(value))}</td>"

    shown = [[cell(value) for value in row] for row in rows]
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in shown[:_MOST_ROWS])
    left = len(shown) - _MOST_ROWS
    rest = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def html_text(text: str) -> str:
    """Lines as they are."""
    from html import escape

    return f"<pre>{escape(text)}</pre>"


def _text(value: object) -> str:
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case float():
            return f"{value:,.0f}" if value.is_integer() else f"{value:,.4g}"
        case int():
            return f"{value:,}"
        case Mapping():
            return ", ".join(f"{name}={one}" for name, one in value.items())
        case tuple():
            return " → ".join(map(str, value))
        case _:
            return str(value)
