"""What instructions carry besides their meaning, as text: metadata and frontend attributes."""

from __future__ import annotations

import re

from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.spelling.attributes import Cursor
from xlalite.hlo.spelling.cursor import is_group
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.types.quoting import escape, quote, unquote

FrontendAttributes = tuple[tuple[str, str], ...]

_STRING = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_GROUP = r"\{[^{}]*+\}"
for _ in range(3):
    _GROUP = rf"\{{(?:[^{{}}\"']|{_STRING}|{_GROUP})*+\}}"
_FIELD = re.compile(
    rf"""[\s,]*+ (\w++)\s*+[=:]\s*+ ( {_STRING} | {_GROUP} | [^\s{{}}"',]++ )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_INTEGER = re.compile(r"\d{1,9}", re.ASCII)
_TEXT_FIELDS = ("op_type", "op_name", "source_file")


def parse_metadata(text: str) -> Metadata:
    """Metadata from its braced text; fields without a place of their own are kept verbatim.

    Raises:
        ValueError: The text is not a list of `name=value`.
    """
    known: dict[str, str] = {}
    line = 0
    extra: list[tuple[str, str]] = []
    position, end = 1, len(text.rstrip()) - 1
    while match := _FIELD.match(text, position, end):
        name, value = match.groups()
        position = match.end()
        if name in _TEXT_FIELDS and value[0] in "\"'":
            known[name] = unquote(value)
        elif name == "source_line" and _INTEGER.fullmatch(value):
            line = int(value)
        else:
            extra.append((name, value))
    rest = text[position:end].strip(" \t\r\n,")
    if rest:
        raise ValueError(f"metadata: found {rest[:40]!r}, expected name=value")
    return Metadata(
        known.get("op_type", ""), known.get("op_name", ""), known.get("source_file", ""), line, tuple(extra)
    )


def format_metadata(metadata: Metadata) -> str:
    """The braced text; fields in XLA's order."""
    parts: list[str] = []
    if metadata.op_type:
        parts.append(f'op_type="{escape(metadata.op_type)}"')
    if metadata.op_name:
        parts.append(f'op_name="{escape(metadata.op_name)}"')
    if metadata.source_file:
        parts.append(f'source_file="{escape(metadata.source_file)}"')
    if metadata.source_line:
        parts.append(f"source_line={metadata.source_line}")
    parts.extend(f"{name}={value}" for name, value in metadata.extra)
    return "{" + " ".join(parts) + "}"


def read_frontend_attributes(cursor: Cursor) -> FrontendAttributes:
    """Consumes `{name="value",name={"json":1}}`; a braced value keeps its braces."""
    cursor.expect("{")
    pairs: list[tuple[str, str]] = []
    for _ in separated(cursor, "}"):
        name = cursor.string() if cursor.peek()[:1] in ('"', "'") else _read_name(cursor)
        pairs.append((name, cursor.balanced() if cursor.at("{") else cursor.string()))
    return tuple(pairs)


def format_frontend_attributes(pairs: FrontendAttributes) -> str:
    """The braced text; values that are JSON dictionaries stand without quotes."""
    return "{" + ",".join(f"{name}={format_frontend_value(value)}" for name, value in pairs) + "}"


def format_frontend_value(value: str) -> str:
    """A value as it is when it is one braced group, quoted otherwise."""
    return value if value.startswith("{") and is_group(value) else quote(value)


def _read_name(cursor: Cursor) -> str:
    if not cursor.peek().endswith("="):
        raise cursor.error(f'frontend_attributes: found {cursor.peek()[:40]!r}, expected name="value"')
    return cursor.word("a name").removesuffix("=")
