"""One canonical line for every operation, and the modules made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from xlalite.hlo.ops import OPS

HERE = Path(__file__).parent
# What stands in the parentheses is not a list of operands.
SPECIAL = ("parameter", "constant")
OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
COMPUTATIONS = {
    block.split(" ", 1)[0]: block
    for block in (HERE / "computations.txt").read_text(encoding="utf-8").strip().split("\n\n")
}


@dataclass(frozen=True)
class Record:
    """A line of op_records.txt: `shape opcode(operand shapes), attributes`."""

    line: str

    @property
    def opcode(self) -> str:
        match = OPCODE.search(self.line)
        assert match is not None, self.line
        return match[1]

    @property
    def shape(self) -> str:
        return self.line[: self.line.index(f" {self.opcode}(")]

    @property
    def text(self) -> str:
        """A module in the `short_parsable` spelling with the instruction as the entry's root."""
        rest = self.line[len(self.shape) + len(self.opcode) + 2 :]
        depth, close = 1, 0
        while depth:
            depth += (rest[close] in "([{") - (rest[close] in ")]}")
            close += 1
        inside, attributes = rest[: close - 1], rest[close:]
        operands = [] if self.opcode in SPECIAL else split_operands(inside)
        parameters = [f"  p{i} = {operand} parameter({i})\n" for i, operand in enumerate(operands)]
        shapes = [self.shape] if self.opcode == "parameter" else operands
        called = [text for name, text in COMPUTATIONS.items() if re.search(rf"[={{ ]{name}\b", attributes)]
        layout = ", ".join(f"/*index={i}*/{shape}" if i and i % 5 == 0 else shape for i, shape in enumerate(shapes))
        words = inside if self.opcode in SPECIAL else ", ".join(f"p{i}" for i in range(len(operands)))
        return (
            f"HloModule m, entry_computation_layout={{({layout})->{self.shape}}}\n\n"
            + "".join(text + "\n\n" for text in called)
            + f"ENTRY main {{\n{''.join(parameters)}  ROOT r = {self.shape} {self.opcode}({words}){attributes}\n}}\n\n"
        )


def split_operands(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


RECORDS = [
    Record(line)
    for line in (HERE / "op_records.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`record` runs a test for every line, `inferable` for those whose result shape may be left out."""
    for fixture in {"record", "inferable"} & set(metafunc.fixturenames):
        wanted = [one for one in RECORDS if fixture == "record" or not OPS[one.opcode].explicit_shape]
        metafunc.parametrize(fixture, wanted, ids=[one.line for one in wanted])


@pytest.fixture(scope="session")
def records() -> list[Record]:
    """All lines."""
    return RECORDS
