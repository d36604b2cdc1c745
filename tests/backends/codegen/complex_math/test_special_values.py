"""Complex functions where a part is zero, infinite or NaN, row by row of the table beside this file."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from xlalite.hlo.numerics.complex_functions import combine

TABLE = Path(__file__).with_name("special_values.txt")
NUMBERS = {"x": (1.25, 3e30), "y": (0.5, 2.0, 4.0), "f": (0.0, -0.0, 1.25, -3.0), "h": (4e200,)}
TURNS: dict[str, Callable[[float], float]] = {"s2": lambda y: math.sin(2 * y), "c": math.cos, "s": math.sin}
ANGLES = {"pi": math.pi, "pi/2": math.pi / 2, "pi/4": math.pi / 4, "3pi/4": 3 * math.pi / 4}


@dataclass(frozen=True)
class Row:
    """An argument, and the value's parts as the table has them, with the signs to turn them by."""

    argument: complex
    parts: tuple[str, str]
    signs: tuple[int, int] = (1, 1)


def rows_of(text: str, symmetry: str) -> Iterator[Row]:
    argument, value = (side.split() for side in text.split("="))
    for a, b in itertools.product(*(NUMBERS.get(part) or (float(part),) for part in argument)):
        real, imaginary = value
        plain = Row(complex(a, b), (real, imaginary))
        mirrored = Row(complex(a, -b), (real, imaginary), (1, -1))
        yield from (plain, mirrored)
        if symmetry:
            turn = -1 if symmetry == "odd" else 1
            for row in (plain, mirrored):
                yield Row(-row.argument, row.parts, (row.signs[0] * turn, row.signs[1] * turn))


def read_table() -> dict[str, list[Row]]:
    table: dict[str, list[Row]] = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            opcode, symmetry = (*line.split(), "")[:2]
            table[opcode] = []
            continue
        for text in line.split(";"):
            table[opcode] += rows_of(text, symmetry)
    # Functions that are others of the turned plane: f(z) = -i g(iz), and cos z = cosh iz.
    for circular, hyperbolic in (("sine", "sinh"), ("tan", "tanh"), ("asin", "asinh"), ("atan", "atanh")):
        table[circular] = [
            Row(complex(r.argument.imag, -r.argument.real), (r.parts[1], r.parts[0]), (r.signs[1], -r.signs[0]))
            for r in table[hyperbolic]
        ]
    table["cosine"] = [Row(complex(r.argument.imag, -r.argument.real), r.parts, r.signs) for r in table["cosh"]]
    return table


ROWS = read_table()
OPCODES = tuple(ROWS)


def agrees(found: float, expected: str, sign: int, angle: float) -> bool:
    """Whether a part of a value is what the table says; signs of zero count."""
    either, token = expected.startswith("~"), expected.lstrip("~")
    if token == "nan":
        return math.isnan(found)
    negative, token = token.startswith("-"), token.lstrip("-")
    factor = -1.0 if negative else 1.0
    for suffix, function in TURNS.items():
        if token.endswith(suffix):
            token, factor = token.removesuffix(suffix), math.copysign(1, function(angle))
            break
    number = factor * sign * (ANGLES[token] if token in ANGLES else float(token))
    if either:
        found, number = abs(found), abs(number)
    close = found == number or abs(found - number) <= 2e-7 * abs(number)
    return close and math.copysign(1, found) == math.copysign(1, number)


def test_special_values(apply_complex, way, complex_type):
    # By their texts, because zeros of either sign are equal and NaN is not.
    arguments = {repr(row.argument): row.argument for rows in ROWS.values() for row in rows}
    with np.errstate(over="ignore"):
        given = np.array(list(arguments.values()), complex_type)
    position = {argument: n for n, argument in enumerate(arguments)}
    values = apply_complex(OPCODES, way, given)
    wrong = []
    for opcode, rows in ROWS.items():
        for row in rows:
            if np.isinf(given[position[repr(row.argument)]]) > np.isinf(row.argument):
                continue
            z, angle = row.argument, abs(row.argument.imag)
            # The turned functions have their angle on the other axis.
            angle = abs(z.real) if opcode in ("sine", "cosine", "tan") else angle
            found = values[opcode][position[repr(z)]]
            parts = (float(found.real), float(found.imag))
            if not all(map(agrees, parts, row.parts, row.signs, (angle, angle))):
                wrong.append(f"{opcode}({z}) is {found}, expected {row.parts} times {row.signs}")
    assert not wrong, "\n".join(wrong)


INF, NAN = math.inf, math.nan
# Annex G.5.1: a zero divisor gives infinity, so does an infinite dividend, an infinite divisor gives zero.
QUOTIENTS = [
    (1 + 1j, 0j, complex(INF, INF)), (-1 + 2j, 0j, complex(-INF, INF)), (1 + 0j, complex(-0.0, 0), complex(-INF, NAN)),
    (0j, 0j, complex(NAN, NAN)), (complex(NAN, NAN), 0j, complex(NAN, NAN)),
    (complex(INF, 1), 1 + 1j, complex(INF, -INF)),
    (complex(INF, NAN), 1 + 0j, complex(INF, NAN)), (complex(NAN, INF), 0.5j, complex(INF, NAN)),
    (1 + 1j, complex(INF, 0), 0j), (1 + 1j, complex(INF, INF), 0j), (1 + 1j, complex(NAN, INF), complex(0, -0.0)),
    (1e30 + 1e30j, complex(INF, INF), 0j), (complex(INF, 1), complex(INF, 1), complex(NAN, NAN)),
    (complex(NAN, 1), 1 + 0j, complex(NAN, NAN)), (complex(INF, INF), 0j, complex(INF, INF)),
]  # fmt: skip
# z^0 = 1^w = 1; 0^w = 0 to the right; a positive number to a real power is a real power; the rest is exp(w log z).
POWERS = [
    (complex(NAN, NAN), 0j, 1), (complex(INF, NAN), 0j, 1), (0j, 0j, 1), (1 + 0j, complex(NAN, NAN), 1),
    (1 + 0j, complex(INF, 3), 1), (0j, 2 + 0j, 0j), (0j, 1 + 5j, 0j), (0j, -1 + 0j, complex(NAN, NAN)),
    (0j, 1j, complex(NAN, NAN)), (complex(INF, 0), 2 + 0j, complex(INF, 0)), (complex(INF, 0), -2 + 0j, 0j),
    (2 + 0j, complex(INF, 0), complex(INF, 0)), (0.5 + 0j, complex(-INF, 0), complex(INF, 0)),
    (0.5 + 0j, complex(INF, 0), 0j), (2 + 0j, complex(0, NAN), complex(NAN, NAN)), (2 + 0j, 3 + 0j, 8),
    (complex(NAN, 1), 2 + 0j, complex(NAN, NAN)), (complex(INF, INF), -1 + 1j, 0j),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "table"), [("divide", QUOTIENTS), ("power", POWERS)], ids=["divide", "power"])
def test_special_values_of_two_operands(opcode, table, apply_complex, way, complex_type):
    """Beside others, and in vectors of their own: what is rare stands behind branches."""
    columns = (np.array([row[n] for row in table], complex_type) for n in range(3))
    x, y, expected = (np.concatenate((column, np.repeat(column, 16))) for column in columns)
    found = apply_complex((opcode,), way, x, y)[opcode]
    for got, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(got, wanted, rtol=2e-7)


@pytest.mark.parametrize("opcode", ["divide", "multiply"])
def test_zeros_have_the_signs_of_plain_sums(opcode, apply_complex, way, complex_type):
    """(1 + 0i) / (-1 + 0i) is -1 - 0i: its imaginary part is 0 (-1) - 1 0."""
    parts = np.array([0.0, -0.0, 1.0, -1.0, 2.5], complex_type(0).real.dtype)
    numbers = combine(np.repeat(parts, 5), np.tile(parts, 5)).astype(complex_type)
    x, y = np.repeat(numbers, 25), np.tile(numbers, 25)
    x, y = x[y != 0], y[y != 0]
    (a, b), (c, d) = (x.real, x.imag), (y.real, y.imag)
    if opcode == "multiply":
        expected = a * c - b * d, a * d + b * c
    else:
        expected = (a * c + b * d) / (c * c + d * d), (b * c - a * d) / (c * c + d * d)
    found = apply_complex((opcode,), way, x, y)[opcode]
    np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected[0]))
    np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(expected[1]))


def test_zeros_tell_the_side_of_an_angle(apply_complex, way, complex_type):
    """Angles of half a turn have the sign that the evaluator finds where only that of a zero decides."""
    parts = np.array([-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 2.0], complex_type(0).real.dtype)
    numbers = combine(np.repeat(parts, 7), np.tile(parts, 7)).astype(complex_type)
    y, x = np.repeat(numbers, 49), np.tile(numbers, 49)
    y, x = (side[x * x + y * y != 0] for side in (y, x))
    found, expected = (apply_complex(("atan2",), each, y, x)["atan2"].real for each in (way, "evaluator"))
    np.testing.assert_allclose(found, expected, rtol=2e-7)
