"""Numbers and braces of literals, for every element type."""

from __future__ import annotations

import numpy as np
import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.text import format_literal, parse_literal, parse_shape
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape

ARRAY_TYPES = [dtype for dtype in DType if dtype.is_array]


def special_values(dtype: DType, rng: np.random.Generator) -> np.ndarray:
    """Every value of the narrow types, random bits and special values of the wide ones."""
    if dtype is DType.PRED:
        return np.array([False, True])
    if dtype.is_integral:
        low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        high = low + (1 << dtype.bits) - 1
        numbers = range(low, high + 1) if dtype.bits <= 8 else [low, low + 1, -1 if low else 1, 0, 1, high - 1, high]
        return np.array(list(numbers), np.uint64 if dtype.is_unsigned else np.int64).astype(dtype.numpy)
    if dtype.bits <= 8:
        return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)
    if dtype.bits <= 16:
        return np.arange(1 << 16, dtype=np.uint16)[::7].view(dtype.numpy)
    bits = rng.integers(0, 256, 512 * dtype.size_bytes, np.uint8).view(dtype.numpy)
    special = [0.0, -0.0, 1, 0.1, 1e5, 1e6, 1e7, 123456789, 1e15, 1e16, 1e-5, 3.14159265358979, 5e-324, 1e-45]
    return np.concatenate(
        [bits, np.array([*special, np.inf, -np.inf, np.nan, -np.nan], np.float64).astype(dtype.numpy)]
    )


@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=lambda dtype: dtype.value)
def test_every_value_comes_back_with_the_same_bits(dtype: DType, rng: np.random.Generator) -> None:
    values = special_values(dtype, rng)
    literal = Literal(values, Shape.array(dtype, values.shape))
    assert parse_literal(format_literal(literal), literal.shape) == literal


@pytest.mark.parametrize(
    ("shape", "written", "canonical"),
    [
        ("f32[]", "1", "1"),
        ("f32[]", "-0.0", "-0"),
        ("f32[]", "16777216", "16777216"),
        ("f32[]", "1e7", "1e+07"),
        ("f32[]", "0.1", "0.1"),
        ("f32[]", "0.3333333433", "0.333333343"),
        ("f64[]", "0.1", "0.1"),
        ("f64[]", "3.1415926535897931", "3.1415926535897931"),
        ("bf16[]", "3.14159", "3.141"),
        ("f16[]", "0.1", "0.099976"),
        ("f8e4m3fn[]", "1.1", "1.12"),
        ("f32[]", "nan(0x123)", "nan(0x123)"),
        ("f32[]", "nan(0x400000)", "nan"),
        ("f32[]", "-nan", "-nan"),
        ("f32[]", "-inf", "-inf"),
        ("pred[]", "1", "true"),
        ("pred[2]", "{true, 0}", "{1, 0}"),
        ("c64[]", "(1,-2.5)", "(1, -2.5)"),
        ("c64[2]", "{3, (0,nan)}", "{(3, 0), (0, nan)}"),
        ("s32[3]", "{1 2,3}", "{1, 2, 3}"),
        ("s32[0]", "{}", "{}"),
        ("s32[2,0]", "{{}, {}}", "{ {}, {} }"),
        ("s32[0,2]", "{}", "{  }"),
        ("s32[2,2]", "{{1,2},{3,4}}", "{ { 1, 2 }, { 3, 4 } }"),
        ("s32[2,1]", "{{1},{3}}", "{ {1}, {3} }"),
        ("s32[1,2,1]", "{{{1},{3}}}", "{ { {1}, {3} } }"),
        ("s32[1,1,1,2]", "{{{{1,2}}}}", "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }"),
        ("(f32[2], s32[])", "({1, 2}, 3)", "( {1, 2}, 3 )"),
        ("((f32[]), pred[])", "((1), false)", "( ( 1 ), false )"),
        ("u64[]", "18446744073709551615", "18446744073709551615"),
        ("u64[2]", "{-1, -9223372036854775808}", "{18446744073709551615, 9223372036854775808}"),
        ("s64[]", "18446744073709551615", "-1"),
        ("pred[2]", "{-2, 0}", "{1, 0}"),
        ("f32[2,2]", "3", "{ { 3, 0 }, { 0, 0 } }"),
        ("s8[3]", "-1", "{-1, 0, 0}"),
        ("pred[2]", "true", "{1, 0}"),
        ("(f32[2], s32[])", "(0, 3)", "( {0, 0}, 3 )"),
        ("f32[3]", "{...}", "{...}"),
        ("(f32[3], s32[])", "({...}, 1)", "( {...}, 1 )"),
    ],
)
def test_numbers_and_braces_are_written_as_xla_does(shape: str, written: str, canonical: str) -> None:
    literal = parse_literal(written, parse_shape(shape))
    assert format_literal(literal) == canonical
    assert parse_literal(canonical, parse_shape(shape)) == literal


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("s8[]", "128"),
        ("u8[]", "-1"),
        ("u1[]", "2"),
        ("s32[]", "1.0"),
        ("s32[]", "1_000"),
        ("f32[]", "1_0"),
        ("f32[]", "infinity"),
        ("f32[]", "1e39"),
        ("f8e4m3fn[]", "1000"),
        ("f8e4m3fn[]", "inf"),
        ("f8e8m0fnu[]", "-1"),
        ("pred[]", "2.5"),
        ("f32[]", "nan(0x0)"),
        ("f32[]", "nan(0x800000)"),
        ("f32[]", "nan(12)"),
        ("c64[]", "(1, 2, 3)"),
        ("f32[2]", "{1}"),
        ("f32[2]", "{1, 2"),
        ("f32[0]", "1"),
        ("c64[2]", "1"),
        ("f32[2,2]", "{1}"),
        ("(f32[])", "1"),
        ("opaque[]", "1"),
    ],
)
def test_values_that_do_not_fit_are_refused(shape: str, text: str) -> None:
    with pytest.raises(ParseError):
        parse_literal(text, parse_shape(shape))


def test_many_numbers_are_read_and_written(rng: np.random.Generator) -> None:
    literal = Literal(rng.standard_normal((100, 1000)).astype(np.float32))
    assert parse_literal(format_literal(literal), literal.shape) == literal


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("shape", "text"),
    [("f32[2,2]", "3"), ("s32[4]", "-7"), ("pred[2]", "{2,0}"), ("u64[]", "-1"), ("s64[]", "18446744073709551615")],
)
def test_xla_reads_the_same(shape: str, text: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    source = f"HloModule m\nENTRY e {{ ROOT c = {shape} constant({text}) }}"
    theirs = hlo.hlo_module_from_text(source).to_string(options)
    assert f" constant({format_literal(parse_literal(text, parse_shape(shape)))})" in theirs
