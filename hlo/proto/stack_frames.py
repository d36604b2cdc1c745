"""The tables of source locations: the text behind a module's header to a message and back."""

from __future__ import annotations

from xlalite.hlo.errors import ParseError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.types.quoting import quote


@dataclass(frozen=True, slots=True)
class _Table:
    """One table: its title, its field, and the numbers of a row, none where a row is a string.

    The text counts the frames above from 1, the message from 0.
    """

    title: str
    field: str
    numbers: tuple[str, ...] = ()


_TABLES = (
    _Table("FileNames", "file_names"),
    _Table("FunctionNames", "function_names"),
    _Table(
        "FileLocations",
        "file_locations",
        ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column"),
    ),
    _Table("StackFrames", "stack_frames", ("file_location_id", "parent_frame_id")),
)
_FROM_ONE = "parent_frame_id"


def read_stack_frames(message: ProtoMessage) -> str:
    """The text of a `StackFrameIndexProto`; "" when it is empty."""
    parts = []
    for table in _TABLES:
        if table.numbers:
            rows = [
                "{" + " ".join(f"{name}={row.integer(name) + (name == _FROM_ONE)}" for name in table.numbers) + "}"
                for row in message.messages(table.field)
            ]
        else:
            rows = [quote(text) for text in message.texts(table.field)]
        parts.append("\n".join([table.title, *(f"{number} {row}" for number, row in enumerate(rows, 1))]))
    return "\n\n".join(parts) if message.values else ""


def write_stack_frames(text: str, message: ProtoMessage) -> bool:
    """Fills a `StackFrameIndexProto`; says whether the message says what the text does."""
    try:
        cursor = TokenCursor(text)
        for table in _TABLES:
            if cursor.accept(table.title):
                _write_table(cursor, table, message)
        return cursor.at("") and read_stack_frames(message) == text
    except ParseError:
        return False


def _write_table(cursor: TokenCursor, table: _Table, message: ProtoMessage) -> None:
    strings: list[str] = []
    count = 0
    while cursor.peek().isdigit():
        count += 1
        cursor.expect(str(count))
        if not table.numbers:
            strings.append(cursor.string())
            continue
        row = message.append(table.field)
        cursor.expect("{")
        for name in table.numbers:
            cursor.expect(f"{name}=")
            row.put(name, cursor.integer() - (name == _FROM_ONE))
        cursor.expect("}")
    if strings:
        message.put_all(table.field, strings)
