"""docs/numerics.md: its rows, and its writing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from numerics.functions import COMPLEX, REAL, SPECIAL
from numerics.sweep import Worst
from xlalite.hlo.types.dtype import DType

PATH = Path(__file__).resolve().parents[2] / "docs" / "numerics.md"
HEADER = ("| function | type | worst ulp | at | points |", "|---|---|--:|---|--:|")

TYPES = (DType.F32, DType.F64, DType.F16, DType.BF16, DType.C64, DType.C128)
ORDER = [(name, dtype) for name in REAL | SPECIAL for dtype in TYPES[:4]]
ORDER += [(name, dtype) for name in COMPLEX for dtype in TYPES[4:]]


@dataclass(frozen=True)
class Row:
    """One function of one type; the error is rounded up."""

    name: str
    dtype: DType
    ulp: float
    place: str
    points: int

    @staticmethod
    def of(worst: Worst) -> Row:
        """The row that tells what a sweep has found."""
        ulp = math.ceil(worst.ulp * 1000) / 1000 if math.isfinite(worst.ulp) else worst.ulp
        return Row(worst.name, worst.dtype, ulp, ", ".join(worst.operands), worst.points)

    def text(self) -> str:
        """The row in Markdown."""
        bits = self.points.bit_length() - 1
        points = f"2^{bits}" if self.points == 2**bits else f"{self.points:.0e}".replace("e+0", "e")
        return f"| {self.name} | {self.dtype.value} | {self.ulp:.3f} | {self.place} | {points} |"


def read_rows() -> list[Row]:
    """The rows of the table."""
    rows = []
    for line in PATH.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "function":
            count = 2 ** int(cells[4][2:]) if cells[4].startswith("2^") else int(float(cells[4]))
            rows.append(Row(cells[0], DType.from_name(cells[1]), float(cells[2]), cells[3], count))
    return rows


def write_rows(found: Iterable[Row]) -> None:
    """Replaces rows by what has been found; the other rows and the text stay."""
    rows = {(row.name, row.dtype): row for row in (*read_rows(), *found)}
    text = PATH.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEADER[0])
    after = "\n".join(line for line in rest.splitlines() if not line.startswith("|"))
    table = "\n".join([*HEADER, *(rows[key].text() for key in ORDER if key in rows)])
    PATH.write_text(f"{before}{table}\n{after.strip()}\n".rstrip() + "\n", encoding="utf-8")
