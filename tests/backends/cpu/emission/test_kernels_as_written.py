"""Kernels that LLVM's passes over IR leave as they are do without them."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import AS_WRITTEN, BRIEF
from xlalite.backends.cpu.native.object_code import NEXT_MODULE
from xlalite.hlo.text import parse


def largest_of_rows(dtype: str, columns: int, initial: str = "-inf") -> str:
    return f"""HloModule m
    max {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  ROOT r = {dtype}[] maximum(a, b) }}
    ENTRY e {{ x = {dtype}[256,{columns}] parameter(0)
      low = {dtype}[] constant({initial})
      ROOT y = {dtype}[256] reduce(x, low), dimensions={{1}}, to_apply=max }}"""


def of_elements(operation: str, sizes: str, dtype: str = "f32") -> str:
    return f"""HloModule m
    ENTRY e {{ x = {dtype}[{sizes}] parameter(0)
      z = {dtype}[{sizes}] {operation}(x)
      ROOT y = {dtype}[{sizes}] add(z, x) }}"""


_SUM_OF_COLUMNS = """HloModule m
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e { x = f32[256,512] parameter(0)
      zero = f32[] constant(0)
      y = f32[256] reduce(x, zero), dimensions={1}, to_apply=add
      z = f32[512] reduce(x, zero), dimensions={0}, to_apply=add
      ROOT t = (f32[256], f32[512]) tuple(y, z) }"""


def module_of_kernel(text: str) -> str:
    """The LLVM module that defines the program's kernel."""
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=1))
    (found,) = (each for each in ir.text.split(NEXT_MODULE) if "define hidden void @kernel.y_fusion(" in each)
    return found


@pytest.mark.parametrize(
    ("text", "is_as_written"),
    [
        (largest_of_rows("f32", 512), True),
        (largest_of_rows("f64", 1001), True),
        (largest_of_rows("f32", 17), False),  # its mask is most of a row
        (largest_of_rows("s32", 512, "0"), False),
        (largest_of_rows("bf16", 512), False),
        (_SUM_OF_COLUMNS, True),  # another kernel, which is not, stands in a module of its own
        (of_elements("exponential", "100000"), True),
        (of_elements("exponential", "1000,777"), True),
        (of_elements("sine", "100000"), False),
        (of_elements("abs", "100000", "s32"), False),
    ],
)
def test_kernels_of_plain_arithmetic_are_as_written(text: str, is_as_written: bool) -> None:
    assert (AS_WRITTEN in module_of_kernel(text)) is is_as_written


_CAPPED_SOFTMAX = """HloModule m
    max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e { x = f32[64,16] parameter(0)
      cap = f32[] constant(20)
      caps = f32[64,16] broadcast(cap), dimensions={}
      t = f32[64,16] tanh(x)
      s = f32[64,16] multiply(t, caps)
      low = f32[] constant(-inf)
      m = f32[64] reduce(s, low), dimensions={1}, to_apply=max
      ms = f32[64,16] broadcast(m), dimensions={0}
      d = f32[64,16] subtract(s, ms)
      p = f32[64,16] exponential(d)
      zero = f32[] constant(0)
      q = f32[64] reduce(p, zero), dimensions={1}, to_apply=add
      qs = f32[64,16] broadcast(q), dimensions={0}
      y = f32[64,16] divide(p, qs)
      z = f32[64,16] sine(x)
      ROOT r = (f32[64,16], f32[64,16]) tuple(y, z) }"""


def test_what_is_compiled_beside_a_kernel_changes_no_bit(rng) -> None:
    """LLVM's passes find that `s` is computed twice; then its multiplication does not become one with a subtraction."""
    x = rng.normal(size=(64, 16)).astype(np.float32)
    alone = _CAPPED_SOFTMAX.replace("      z = f32[64,16] sine(x)\n", "").replace("tuple(y, z)", "tuple(y, x)")
    backend = get_backend("cpu")
    expected, _ = backend.compile(parse(alone), CompileOptions(num_threads=1, use_cache=False))(x)
    for threads in (1, 2, 3):
        found, _ = backend.compile(parse(_CAPPED_SOFTMAX), CompileOptions(num_threads=threads, use_cache=False))(x)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("initial", "is_left_out"), [("-inf", True), ("3", False)])
def test_an_initial_value_that_changes_nothing_is_left_out(initial, is_left_out, check, rng) -> None:
    text = largest_of_rows("f32", 512, initial)
    assert ("call float @llvm.maximum.f32(" not in module_of_kernel(text)) is is_left_out
    x = rng.normal(size=(256, 512)).astype(np.float32)
    x[1, 5], x[2], x[3] = np.nan, -np.inf, -0.0
    check(text, x)


def product(terms: int, after: str) -> str:
    return f"""HloModule m
    ENTRY e {{ x = f32[640,{terms}] parameter(0)
      w = f32[{terms},32] parameter(1)
      b = f32[32] parameter(2)
      p = f32[640,32] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      c = f32[640,32] broadcast(b), dimensions={{1}}
      s = f32[640,32] add(p, c)
      ROOT y = f32[640,32] {after}(s, c) }}"""


@pytest.mark.parametrize(("after", "is_as_written"), [("maximum", True), ("power", False)])
def test_plain_arithmetic_behind_products_is_as_written(after: str, is_as_written: bool) -> None:
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(product(8, after)), CompileOptions())
    (found,) = (each for each in ir.text.split(NEXT_MODULE) if 'define hidden void @"dot_finish.' in each)
    assert (AS_WRITTEN in found) is is_as_written


@pytest.mark.parametrize(("terms", "mark"), [(8, AS_WRITTEN), (60, BRIEF)])
def test_loops_around_tiles_are_as_written_and_around_long_ones_brief(terms, mark, check, rng) -> None:
    text = product(terms, "maximum")
    assert mark in module_of_kernel(text)
    shapes = (640, terms), (terms, 32), (32,)
    check(text, *(rng.normal(size=shape).astype(np.float32) for shape in shapes), ulps=terms)
