"""Reads and writes the first line of a module: its name and what holds for it as a whole."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal as LiteralType, cast

from xlalite.hlo.ir.module import InputOutputAlias, ModuleConfig
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.codecs import BOOL, INT, INT_LIST
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.types.names import is_writable_name
from xlalite.hlo.types.shape import ProgramShape, Shape, ShapeIndex

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
# Attributes that xlalite only carries through, before and after the entry's layout as XLA writes them.
_BEFORE_LAYOUT = ("alias_passthrough_params",)


@dataclass(slots=True)
class Header:
    """What stood before the first computation."""

    name: str = ""
    config: ModuleConfig = field(default_factory=ModuleConfig)
    tables: str = ""
    seen: dict[str, int] = field(default_factory=dict)


def read_header(cursor: TokenCursor) -> Header:
    """Consumes `HloModule name, attribute=value, ...` and the tables that follow."""
    header = Header()
    if cursor.accept("HloModule"):
        if not cursor.at(","):
            if not is_writable_name(cursor.peek()):
                raise cursor.unexpected("the module's name")
            header.name = cursor.word("the module's name")
            cursor.accept(":")
        fields: dict[str, Any] = {}
        extra: list[tuple[str, str]] = []
        while cursor.accept(","):
            token = cursor.peek()
            if len(token) < 2 or token[-1] != "=":
                raise cursor.unexpected("an attribute like name=value")
            name = token[:-1]
            if name in header.seen:
                raise cursor.error(f"the attribute {name} is given twice")
            header.seen[name] = cursor.index
            cursor.index += 1
            _read_attribute(cursor, name, fields, extra)
        header.config = ModuleConfig(**fields, extra=tuple(extra))
    header.tables = _read_tables(cursor)
    return header


def format_header(name: str, config: ModuleConfig, layout: ProgramShape | None) -> str:
    """The first line of a module, in XLA's order."""
    parts = [f"HloModule {name}"]
    if config.is_scheduled:
        parts.append("is_scheduled=true")
    if config.input_output_alias:
        parts.append("input_output_alias={ " + ", ".join(map(_format_alias, config.input_output_alias)) + " }")
    if config.buffer_donors:
        donors = (f"({number}, {INT_LIST.format(index)})" for number, index in config.buffer_donors)
        parts.append("buffer_donor={ " + ", ".join(donors) + " }")
    parts.extend(f"{key}={text}" for key, text in config.extra if key in _BEFORE_LAYOUT)
    if layout is not None:
        parts.append("entry_computation_layout={" + _format_layout(layout) + "}")
    parts.extend(f"{key}={text}" for key, text in config.extra if key.startswith("allow_spmd"))
    if config.replica_count != 1:
        parts.append(f"replica_count={config.replica_count}")
    if config.num_partitions != 1:
        parts.append(f"num_partitions={config.num_partitions}")
    if config.frontend_attributes:
        from xlalite.hlo.text.annotation_text import format_frontend_attributes

        parts.append("frontend_attributes=" + format_frontend_attributes(config.frontend_attributes))
    parts.extend(
        f"{key}={text}" for key, text in config.extra if key not in _BEFORE_LAYOUT and not key.startswith("allow_spmd")
    )
    return ", ".join(parts)


def _read_attribute(cursor: TokenCursor, name: str, fields: dict[str, Any], extra: list[tuple[str, str]]) -> None:
    match name:
        case "is_scheduled":
            fields[name] = BOOL.parse(cursor)
        case "replica_count" | "num_partitions":
            fields[name] = INT.parse(cursor)
        case "frontend_attributes":
            from xlalite.hlo.text.annotation_text import read_frontend_attributes

            fields[name] = read_frontend_attributes(cursor)
        case "input_output_alias":
            fields[name] = _read_aliases(cursor)
        case "buffer_donor":
            fields["buffer_donors"] = _read_donors(cursor)
        case "entry_computation_layout":
            fields["entry_layout"] = _read_layout(cursor)
        case _:
            extra.append((name, cursor.verbatim()))


def _read_aliases(cursor: TokenCursor) -> tuple[InputOutputAlias, ...]:
    cursor.expect("{")
    aliases: list[InputOutputAlias] = []
    for _ in separated(cursor, "}"):
        output = INT_LIST.parse(cursor)
        cursor.expect(":")
        cursor.expect("(")
        number = cursor.integer()
        index: ShapeIndex = ()
        kind = "may-alias"
        if cursor.accept(","):
            index = INT_LIST.parse(cursor)
        if cursor.accept(","):
            kind = cursor.peek()
            if kind not in ("may-alias", "must-alias"):
                raise cursor.unexpected("may-alias or must-alias")
            cursor.index += 1
        cursor.expect(")")
        checked = cast("LiteralType['may-alias', 'must-alias']", kind)
        aliases.append(InputOutputAlias(output, number, index, checked))
    return tuple(aliases)


def _format_alias(alias: InputOutputAlias) -> str:
    index = INT_LIST.format(alias.parameter_index)
    return f"{INT_LIST.format(alias.output_index)}: ({alias.parameter_number}, {index}, {alias.kind})"


def _read_donors(cursor: TokenCursor) -> tuple[tuple[int, ShapeIndex], ...]:
    cursor.expect("{")
    donors: list[tuple[int, ShapeIndex]] = []
    for _ in separated(cursor, "}"):
        cursor.expect("(")
        number = cursor.integer()
        cursor.expect(",")
        donors.append((number, INT_LIST.parse(cursor)))
        cursor.expect(")")
    return tuple(donors)


def _read_layout(cursor: TokenCursor) -> ProgramShape:
    cursor.expect("{")
    cursor.expect("(")
    parameters: list[Shape] = []
    for _ in separated(cursor, ")"):
        parameters.append(cursor.shape())
    cursor.expect("->")
    result = cursor.shape()
    cursor.expect("}")
    return ProgramShape(tuple(parameters), result)


def _format_layout(layout: ProgramShape) -> str:
    parameters = ", ".join(
        (f"/*index={i}*/" if i and i % 5 == 0 else "") + str(shape) for i, shape in enumerate(layout.parameters)
    )
    return f"({parameters})->{layout.result}"


def _read_tables(cursor: TokenCursor) -> str:
    """Consumes the source location tables and returns their text."""
    first = cursor.index
    while cursor.peek() in _TABLES:
        cursor.index += 1
        while cursor.peek().isdigit():
            cursor.index += 1
            if cursor.at("{"):
                cursor.skip_balanced()
            else:
                cursor.string()
    return cursor.source.between(first, cursor.index)
