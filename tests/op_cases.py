"""One or more runnable records for every operation: what parametrised tests go through.

A test that takes `op_case` runs once for each record, with `op_dtype` for each element type (`tests/conftest.py`).
A record is HLO text in which `$T` stands for the element type, with the range of its arguments and the tolerance of its
results. Elementwise operations are a table here, all others are in `op_cases.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Token
from xlalite.hlo.types.shape import Shape

FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
TINY_FLOATS = tuple(dtype for dtype in DType if dtype.is_floating and dtype.bits <= 8)
SIGNED = (DType.S32, DType.S8, DType.S16, DType.S64, DType.S4)
UNSIGNED = (DType.U32, DType.U8, DType.U16, DType.U64, DType.U4)
INTEGERS = SIGNED + UNSIGNED
COMPLEX = (DType.C64, DType.C128)
PRED = (DType.PRED,)
NUMBERS = FLOATS + INTEGERS + COMPLEX
ANY = NUMBERS + PRED
GROUPS = {"floats": FLOATS, "integers": INTEGERS, "complex": COMPLEX, "any": ANY}


@dataclass(frozen=True)
class OpCase:
    """A record.

    Attributes:
        opcode: The operation that the record is about.
        hlo_text: A module in which `$T` is the element type.
        dtypes: Element types to run it with.
        low: Least argument of the element type; unsigned types start at 0.
        high: Greatest argument of the element type.
        tolerance_ulps: Largest error of a result, in units of its type's precision times its size; 0 means equal bits
            (but for NaN).
        normwise: Whether the error is measured by the largest result, as sums of terms of both signs need.
        is_deterministic: Whether two runs give the same.
        is_local: Whether it runs without values from elsewhere.
    """

    opcode: str
    hlo_text: str
    dtypes: tuple[DType, ...] = (DType.F32,)
    low: float = -4.0
    high: float = 4.0
    tolerance_ulps: float = 0.0
    normwise: bool = False
    is_deterministic: bool = True
    is_local: bool = True

    def text(self, dtype: DType) -> str:
        """The module for an element type."""
        return self.hlo_text.replace("$T", dtype.value)

    def arguments(self, module: HloModule, dtype: DType, rng: np.random.Generator) -> list[object]:
        """Random arguments for the parsed module."""
        return [self.argument(parameter.shape, dtype, rng) for parameter in module.entry_computation.parameters]

    def argument(self, shape: Shape, dtype: DType, rng: np.random.Generator) -> object:
        """A random argument: from the range for the record's element type, small numbers for indices and states."""
        if shape.is_tuple:
            return tuple(self.argument(element, dtype, rng) for element in shape.elements)
        if not shape.is_array:
            return Token()
        if shape.dtype is DType.PRED:
            return np.asarray(rng.random(shape.dims) < 0.5)
        if shape.dtype not in (dtype, dtype.component):
            return np.asarray(rng.integers(0, 3, shape.dims)).astype(shape.dtype.numpy)
        if shape.dtype.is_integral:
            return self._integers(shape, rng)
        numbers = rng.uniform(self.low, self.high, shape.dims)
        if shape.dtype.is_complex:
            numbers = numbers + 1j * rng.uniform(self.low, self.high, shape.dims)
        with np.errstate(over="ignore"):
            return np.asarray(numbers).astype(shape.dtype.numpy)

    def _integers(self, shape: Shape, rng: np.random.Generator) -> np.ndarray:
        dtype = shape.dtype
        least, most = (-(1 << (dtype.bits - 1)) if dtype.is_signed else 0), (1 << (dtype.bits - dtype.is_signed)) - 1
        low, high = max(least, int(self.low)), min(most, int(self.high))
        return np.asarray(rng.integers(low, high, shape.dims, np.int64, endpoint=True)).astype(dtype.numpy)

    def check(self, found: object, expected: object) -> None:
        """Asserts that values are equal, or close as the record allows."""
        if isinstance(expected, tuple):
            assert isinstance(found, tuple)
            assert len(found) == len(expected)
            for part, wanted in zip(found, expected, strict=True):
                self.check(part, wanted)
        elif not isinstance(expected, Token):
            self._check_array(np.asarray(found), np.asarray(expected))

    def _check_array(self, found: np.ndarray, expected: np.ndarray) -> None:
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        dtype = DType.from_numpy(expected.dtype)
        if not (dtype.is_floating or dtype.is_complex):
            np.testing.assert_array_equal(found, expected, err_msg=self.opcode)
            return
        wide = np.complex128 if dtype.is_complex else np.float64
        found, expected = found.astype(wide), expected.astype(wide)
        info = ml_dtypes.finfo(dtype.component.numpy)
        size = np.abs(expected)
        if self.normwise:
            size = np.full_like(size, size.max(where=np.isfinite(size), initial=0.0))
        with np.errstate(invalid="ignore"):
            allowed = self.tolerance_ulps * (float(info.eps) * size + float(info.smallest_subnormal))
            far = np.abs(found - expected) > allowed
        wrong = (far | np.isnan(found) | ~np.isfinite(expected)) & ~_same(found, expected)
        assert not wrong.any(), f"{self.opcode}: found {found[wrong][:5]}, expected {expected[wrong][:5]}"


def _same(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where values are equal, parts of complex numbers each by itself; NaN equals NaN."""
    pairs = ((found.real, expected.real), (found.imag, expected.imag))
    equal = [(a == b) | (np.isnan(a) & np.isnan(b)) for a, b in pairs]
    return equal[0] & equal[1]


SIZES = "$T[5,13]"


def unary(opcode: str, dtypes: tuple[DType, ...], *rest: float, result: str = SIZES, attributes: str = "") -> OpCase:
    """A record of an operation on one array: low, high and tolerance follow the types."""
    return _elementwise(opcode, "x", dtypes, rest, result, attributes)


def binary(opcode: str, dtypes: tuple[DType, ...], *rest: float, result: str = SIZES, attributes: str = "") -> OpCase:
    """A record of an operation on two arrays of one size."""
    return _elementwise(opcode, "xy", dtypes, rest, result, attributes)


def _elementwise(
    opcode: str, names: str, dtypes: tuple[DType, ...], rest: tuple[float, ...], result: str, attributes: str
) -> OpCase:
    lines = [f"  {name} = {SIZES} parameter({number})\n" for number, name in enumerate(names)]
    root = f"  ROOT r = {result} {opcode}({', '.join(names)}){attributes}\n"
    return OpCase(opcode, "HloModule case\n\nENTRY main {\n" + "".join(lines) + root + "}\n", dtypes, *rest)


WHOLE_RANGE = (-3e9, 3e9)
ELEMENTWISE: tuple[OpCase, ...] = (
    unary("abs", FLOATS + SIGNED),
    unary("abs", (DType.C64,), -4, 4, 2, result="f32[5,13]"),
    unary("acos", FLOATS, -1, 1, 2),
    unary("acosh", FLOATS, 1, 50, 2),
    unary("asin", FLOATS, -1, 1, 2),
    unary("asinh", FLOATS, -50, 50, 2),
    unary("atan", FLOATS, -50, 50, 2),
    unary("atanh", FLOATS, -1, 1, 2),
    unary("cbrt", FLOATS, -100, 100, 2),
    unary("ceil", FLOATS, -100, 100),
    unary("cosh", FLOATS, -8, 8, 2),
    unary("cosine", FLOATS + COMPLEX, -8, 8, 4),
    unary("count-leading-zeros", INTEGERS, *WHOLE_RANGE),
    unary("erf", FLOATS, -4, 4, 2),
    unary("exponential", FLOATS + COMPLEX, -8, 8, 4),
    unary("exponential-minus-one", FLOATS + COMPLEX, -3, 3, 4),
    unary("floor", FLOATS, -100, 100),
    unary("imag", (DType.C64,), result="f32[5,13]"),
    unary("imag", FLOATS),
    unary("is-finite", FLOATS, result="pred[5,13]"),
    unary("log", FLOATS, 1e-3, 100, 2),
    unary("log-plus-one", FLOATS, -0.9, 100, 2),
    unary("logistic", FLOATS, -8, 8, 2),
    unary("negate", FLOATS + COMPLEX + TINY_FLOATS + INTEGERS),
    unary("not", INTEGERS + PRED, *WHOLE_RANGE),
    unary("popcnt", INTEGERS, *WHOLE_RANGE),
    unary("real", (DType.C64,), result="f32[5,13]"),
    unary("real", FLOATS),
    unary("round-nearest-afz", FLOATS, -20, 20),
    unary("round-nearest-even", FLOATS, -20, 20),
    unary("rsqrt", FLOATS, 1e-3, 100, 2),
    unary("sign", FLOATS + SIGNED),
    unary("sine", FLOATS + COMPLEX, -8, 8, 4),
    unary("sinh", FLOATS, -8, 8, 2),
    unary("sqrt", FLOATS, 0, 100),
    unary("tan", FLOATS, -1.5, 1.5, 4),
    unary("tanh", FLOATS + COMPLEX, -4, 4, 4),
    unary("reduce-precision", FLOATS, attributes=", exponent_bits=4, mantissa_bits=3"),
    unary("copy", ANY),
    unary("opt-barrier", ANY),
    unary("convert", ANY + TINY_FLOATS[:-1], -300, 300, result="c128[5,13]"),
    *(
        unary("convert", FLOATS + INTEGERS + PRED + TINY_FLOATS[:-1], -300, 300, result=f"{target}[5,13]")
        for target in ("s8", "u32", "s64", "u4", "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2", "pred")
    ),
    unary("bitcast-convert", (DType.F32, DType.S32), result="u32[5,13]"),
    unary("bitcast-convert", (DType.F32, DType.S32), result="u8[5,13,4]"),
    unary("bitcast", (DType.F32, DType.S32), result="u32[13,5]{0,1}"),
    unary("bitcast", ANY, result="$T[65]{0}"),
    binary("add", ANY + TINY_FLOATS),
    binary("subtract", NUMBERS),
    binary("multiply", FLOATS + INTEGERS + PRED, *WHOLE_RANGE),
    binary("multiply", COMPLEX, -4, 4, 2),
    binary("divide", FLOATS + INTEGERS, -9, 9),
    binary("divide", COMPLEX, -4, 4, 8),
    binary("remainder", FLOATS + INTEGERS, -9, 9),
    binary("mulhi", INTEGERS, *WHOLE_RANGE),
    binary("power", FLOATS, 0, 4, 4),
    binary("power", INTEGERS, -3, 7),
    binary("maximum", FLOATS + INTEGERS + PRED),
    binary("minimum", FLOATS + INTEGERS + PRED),
    binary("atan2", FLOATS, -4, 4, 2),
    binary("and", INTEGERS + PRED, *WHOLE_RANGE),
    binary("or", INTEGERS + PRED, *WHOLE_RANGE),
    binary("xor", INTEGERS + PRED, *WHOLE_RANGE),
    binary("shift-left", INTEGERS, -2, 70),
    binary("shift-right-arithmetic", INTEGERS, -2, 70),
    binary("shift-right-logical", INTEGERS, -2, 70),
    binary("complex", (DType.F32,), result="c64[5,13]"),
    binary("complex", (DType.F64,), result="c128[5,13]"),
    *(
        binary("compare", FLOATS + INTEGERS + PRED, -2, 2, result="pred[5,13]", attributes=f", direction={direction}")
        for direction in ("EQ", "NE", "LT", "LE", "GT", "GE")
    ),
    binary("compare", COMPLEX, -1, 1, result="pred[5,13]", attributes=", direction=EQ"),
    binary("compare", FLOATS, result="pred[5,13]", attributes=", direction=LT, type=TOTALORDER"),
)


def read_records(text: str) -> Iterator[OpCase]:
    """The records of `op_cases.txt`, whose head explains the format."""
    blocks = [block for block in re.split(r"\n\n+", text.strip()) if not block.startswith("#")]
    functions = {block.split()[1]: block.removeprefix("function ") for block in blocks if block.startswith("function ")}
    for block in blocks:
        if block.startswith("["):
            yield _record(block, functions)


def _record(block: str, functions: dict[str, str]) -> OpCase:
    head, *lines = block.split("\n")
    opcode, types, bounds, tolerance, *remarks = re.split(r"\] |; ", head.removeprefix("["))
    dtypes = tuple(dtype for word in types.split() for dtype in GROUPS.get(word) or (DType.from_name(word),))
    low, high = map(float, bounds.split())
    ulps, *normwise = tolerance.split()
    lines[-1] = "  ROOT " + lines[-1].strip()
    named = [name for name in functions if any(re.search(rf"[={{ ]{name}(?=[,}}]|$)", line) for line in lines)]
    called = "".join(functions[name] + "\n\n" for name in named)
    body = "\n".join(lines)
    return OpCase(
        opcode,
        f"HloModule case\n\n{called}ENTRY main {{\n{body}\n}}\n",
        dtypes,
        low,
        high,
        float(ulps),
        normwise=bool(normwise),
        is_deterministic="random" not in remarks,
        is_local="remote" not in remarks,
    )


RECORDS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
OP_CASES: tuple[OpCase, ...] = (*ELEMENTWISE, *read_records(RECORDS))
