"""Complex arithmetic where parts are zero, infinite, huge or tiny."""

from typing import Any

import numpy as np
import pytest

UNARY = ("abs", "negate", "exponential", "log", "sqrt", "rsqrt", "logistic", "tanh", "sine", "cosine",
         "log-plus-one", "exponential-minus-one", "sign")  # fmt: skip


def grid(parts: np.ndarray) -> np.ndarray:
    return np.ravel(parts[:, None] + 1j * parts[None, :]).astype(np.complex64)


def program(opcode: str, count: int, operands: int, result: str = "c64") -> str:
    parameters = "\n".join(f"  x{n} = c64[{count}] parameter({n})" for n in range(operands))
    names = ", ".join(f"x{n}" for n in range(operands))
    return f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = {result}[{count}] {opcode}({names}) }}"


def assert_close(found: np.ndarray, expected: np.ndarray, operand: np.ndarray, ulps: float) -> None:
    """Close in units of each element's own modulus; infinities and NaN in the same parts."""
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= ulps * np.finfo(np.float32).eps * np.abs(expected) + 1e-44
        same = near | (found == expected) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), f"{operand[~same]}: found {found[~same]}, expected {expected[~same]}"


@pytest.mark.parametrize("opcode", UNARY)
def test_unary_of_moderate_numbers(compile_text: Any, opcode: str) -> None:
    from xlalite.hlo.evaluation.evaluator import evaluate
    from xlalite.hlo.text import parse

    parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 3.0, 1e-3, 10.0], np.float32)
    x = grid(parts)
    if opcode in ("log", "rsqrt"):
        x = x[x != 0]
    if opcode == "log-plus-one":
        x = x[x != -1]
    text = program(opcode, len(x), 1, "f32" if opcode == "abs" else "c64")
    with np.errstate(all="ignore"):
        expected = np.asarray(evaluate(parse(text), x))
    assert_close(compile_text(text)(x), expected, x, 16)


@pytest.mark.parametrize("opcode", ["abs", "sqrt", "sign"])
def test_no_overflow_or_underflow_of_squares(compile_text: Any, opcode: str) -> None:
    from xlalite.hlo.evaluation.evaluator import evaluate
    from xlalite.hlo.text import parse

    x = grid(np.array([1e-30, -1e-30, 1e30, -1e30, 1e-40, 0.0, 2.5], np.float32))
    text = program(opcode, len(x), 1, "f32" if opcode == "abs" else "c64")
    with np.errstate(all="ignore"):
        expected = np.asarray(evaluate(parse(text), x))
    assert_close(compile_text(text)(x), expected, x, 16)


@pytest.mark.parametrize("opcode", ["add", "subtract", "multiply", "divide"])
def test_binary(compile_text: Any, opcode: str) -> None:
    from xlalite.hlo.evaluation.evaluator import evaluate
    from xlalite.hlo.text import parse

    parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0], np.float32)
    one = grid(parts)
    x, y = np.repeat(one, len(one)), np.tile(one, len(one))
    keep = y != 0 if opcode == "divide" else np.ones(len(y), bool)
    x, y = x[keep], y[keep]
    text = program(opcode, len(x), 2)
    with np.errstate(all="ignore"):
        expected = np.asarray(evaluate(parse(text), x, y))
    assert_close(compile_text(text)(x, y), expected, x, 4)


@pytest.mark.parametrize("infinite", [complex(np.inf, 0), complex(0, -np.inf), complex(np.inf, np.nan)])
def test_the_modulus_of_an_infinite_number_is_infinite(compile_text: Any, infinite: complex) -> None:
    x = np.full(3, infinite, np.complex64)
    np.testing.assert_array_equal(compile_text(program("abs", 3, 1, "f32"))(x), np.inf)


@pytest.mark.parametrize("direction", ["EQ", "NE"])
def test_comparison_looks_at_both_parts(check: Any, direction: str) -> None:
    one = grid(np.array([0.0, -0.0, 1.0, np.nan], np.float32))
    x, y = np.repeat(one, len(one)), np.tile(one, len(one))
    text = program("compare", len(x), 2, "pred").replace("(x0, x1)", f"(x0, x1), direction={direction}")
    check(text, x, y)


def test_odd_sizes_leave_a_masked_tail(check: Any) -> None:
    for count in (1, 2, 3, 7, 8, 9, 17):
        x = (np.arange(count) + 1j * np.arange(count)[::-1]).astype(np.complex64)
        check(program("negate", count, 1), x)
        check(program("reverse", count, 1).replace("(x0)", "(x0), dimensions={0}"), x)


def test_moduli_are_rounded_once(compile_text: Any, rng: np.random.Generator) -> None:
    size = rng.integers(-149, 128, 20_000)
    x = np.empty(20_000, np.complex64)
    with np.errstate(all="ignore"):
        x.real = rng.standard_normal(20_000) * 2.0**size
        x.imag = rng.standard_normal(20_000) * 2.0 ** (size + rng.integers(-13, 14, 20_000))
        expected = np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(compile_text(program("abs", 20_000, 1, "f32"))(x), expected)
