"""Constants in and beside the code, and compiled programs that a second process finds."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.builder import Builder
from xlalite.hlo.dtype import DType
from xlalite.hlo.ops import OPS
from xlalite.hlo.shape import Shape


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


PROGRAM = """
import numpy as np
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.hlo.text import parse
values = ", ".join(str(i) for i in range(200))
text = '''HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT l = pred[] compare(p, q), direction=LT }
ENTRY e { x = f32[200] parameter(0)
  c = f32[200] constant({''' + values + '''})
  k = f32[200] add(c, c)
  s = f32[200] sort(x), dimensions={0}, is_stable=true, to_apply=less
  y = f32[200] multiply(s, k)
  ROOT r = f32[200] add(y, c) }'''
result = get_backend("cpu").compile(parse(text), CompileOptions())(np.arange(200, dtype=np.float32)[::-1].copy())
assert (result == np.arange(200) * 2 * np.arange(200) + np.arange(200)).all()
print(default_cache().stats())
"""


def test_a_second_process_compiles_nothing(repository: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "XLALITE_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(repository)}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
        )
        assert not done.returncode, done.stderr
        return done.stdout

    first, second = run(), run()
    assert "disk_hits=0" in first, first
    assert "misses=0" in second, second
