"""docs/hlo_text.md: its table is the declarations' table, its example is HLO, its error is the error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.text.op_table import op_table

START, END = "<!-- operations -->\n", "<!-- end of operations -->\n"


@pytest.fixture
def document(repository: Path) -> Path:
    return repository / "docs" / "hlo_text.md"


def test_the_table_is_up_to_date(document: Path, expect_file: Callable[[Path, str], None]) -> None:
    text = document.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    expect_file(document, f"{before}{START}\n{op_table(OPS.values())}\n{END}{after}")


def test_every_operation_has_one_line(document: Path) -> None:
    lines = re.findall(r"^\| `([a-z0-9-]+)` \| (?:any|\d)", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines == sorted(OPS)


def test_the_example_is_in_the_spelling_of_the_printer(document: Path) -> None:
    example = document.read_text(encoding="utf-8").split("```\n")[1]
    assert str(parse(example)) == example + "\n"


def test_the_error_is_what_the_parser_says(document: Path) -> None:
    shown = re.search(r"```\n(line 4.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    with pytest.raises(ParseError) as caught:
        parse("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[3] add(x, x)\n}\n")
    assert str(caught.value) + "\n" == shown[1]
