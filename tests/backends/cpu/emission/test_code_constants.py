"""Constants in and beside the code."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.compilation.code_record import CodeRecord
from xlalite.hlo.building.builder import Builder
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def constant_module(*arrays: np.ndarray) -> Any:
    b = Builder("constants")
    x = b.parameter(Shape.array(DType.F32, arrays[0].shape))
    total = x
    for array in arrays:
        total = total + b.constant(array)
    return b.build_module(total)


@pytest.mark.parametrize("count", [1, 3, 64, 65, 100_000])
def test_constants_of_every_size(check: Any, rng: np.random.Generator, count: int) -> None:
    c = rng.standard_normal(count).astype(np.float32)
    check(constant_module(c, c[::-1].copy(), c), np.ones(count, np.float32))


def test_a_constant_keeps_nan_payloads_and_signs(compile_text: Any) -> None:
    bits = np.array([0x7FC12345, 0xFFC00001, 0x80000000, 0x00000001, 0x7F800001] * 40, np.uint32)
    b = Builder("payload")
    module = b.build_module(b.constant(bits.view(np.float32)))
    np.testing.assert_array_equal(compile_text(module)().view(np.uint32), bits)


def test_a_scalar_constant_keeps_its_payload(compile_text: Any) -> None:
    b = Builder("payload")
    module = b.build_module(b.broadcast(b.constant(np.uint32(0x7FC12345).view(np.float32)), (70,)))
    assert set(compile_text(module)().view(np.uint32)) == {0x7FC12345}


@pytest.mark.parametrize("dtype", ["pred", "s4", "u4", "bf16", "f8e4m3fn", "c64", "c128", "s64"])
def test_constants_of_every_type(check: Any, dtype: str) -> None:
    numpy_type = DType.from_name(dtype).numpy
    values = (np.arange(600) % 7).astype(numpy_type)
    b = Builder("types")
    c = b.constant(values)
    check(b.build_module(b.tuple([c, b.op("copy", (c,)), b.op("reverse", (c,), OPS["reverse"].attrs((0,)))])))


RECORD = {
    "arena_bytes": 64,
    "donations": [[0, 1]],
    "has_loops": False,
    "meets": True,
    "forks": True,
    "evaluator_calls": {"f": "HloModule"},
    "given_constants": {},
    "clocked": [["dot.1", "dot", 128, 64, "f32", 2]],
}


def test_record_of_code_is_read_as_it_was_written() -> None:
    record = CodeRecord.from_json(RECORD)
    assert (record.arena_bytes, record.donations) == (64, ((0, 1),))
    assert record.clocked == (("dot.1", "dot", 128, 64, "f32", 2),)
    assert json.loads(json.dumps(asdict(record))) == RECORD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arena_bytes", "64"),
        ("donations", [[0]]),
        ("donations", [["0", "1"]]),
        ("donations", 3),
        ("has_loops", 1),
        ("meets", 0),
        ("forks", 1),
        ("evaluator_calls", []),
        ("evaluator_calls", {"f": None}),
        ("given_constants", {"c": "12"}),
        ("clocked", [["dot.1", "dot", 128, 64, "f32"]]),
        ("clocked", [["dot.1", "dot", 128, "64", "f32", 2]]),
    ],
)
def test_wrong_record_of_code_is_refused(field: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        CodeRecord.from_json({**RECORD, field: value})
    with pytest.raises(KeyError):
        CodeRecord.from_json({key: RECORD[key] for key in RECORD if key != field})


@pytest.mark.parametrize("optimize", [True, False])
def test_equal_bytes_of_different_shapes_are_one_constant(check: Any, optimize: bool) -> None:
    numbers = ", ".join(map(str, range(128)))
    rows = ", ".join("{" + ", ".join(str(8 * row + column) for column in range(8)) + "}" for row in range(16))
    floats = ", ".join(str(np.int32(number).view(np.float32)) for number in range(128))
    text = f"""HloModule m
ENTRY e {{ i = s32[] parameter(0)
  line = s32[128] constant({{{numbers}}})
  square = s32[16,8] constant({{{rows}}})
  real = f32[128] constant({{{floats}}})
  a = s32[3] dynamic-slice(line, i), dynamic_slice_sizes={{3}}
  b = s32[2,8] dynamic-slice(square, i, i), dynamic_slice_sizes={{2,8}}
  c = f32[3] dynamic-slice(real, i), dynamic_slice_sizes={{3}}
  ROOT r = (s32[3], s32[2,8], f32[3]) tuple(a, b, c) }}"""
    executable = check(text, np.int32(5), optimize=optimize)
    assert executable.as_text("llvm").count("external constant") == 1


def test_large_tables_of_kernels_are_linked_in_and_equal_ones_are_one() -> None:
    text = """HloModule f
ENTRY e { x = c64[3,5000] parameter(0)
  y = c64[3,5000] fft(x), fft_type=FFT, fft_length={5000}
  z = c64[3,5000] multiply(y, y)
  ROOT r = c64[3,5000] fft(z), fft_type=FFT, fft_length={5000} }"""
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions()).text
    assert len(ir) < 200_000
    assert ir.count("= external constant i8") >= 1
    x = np.random.default_rng(0).normal(size=(3, 5000)).astype(np.complex64)
    executable = get_backend("cpu").compile(parse(text), CompileOptions())
    found = executable(x)
    expected = np.fft.fft(np.fft.fft(x) ** 2)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(get_backend("cpu").load_executable(executable.serialize())(x), found)
