"""Kernels that have little to do are compiled as written, beside the code that calls them."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import BRIEF
from xlalite.backends.cpu.native.object_code import NEXT_MODULE
from xlalite.hlo.text import parse

_LOOP = """HloModule m
step { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] multiply(x, x)
  ROOT t = (s32[], f32[8]) tuple(j, y) }
goes { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(s), condition=goes, body=step
  ROOT y = f32[8] get-tuple-element(w), index=1 }"""


# The sum is one kernel, the sort another, which LLVM improves, in one module or in two.
_SUM_AND_SORT = """HloModule m
lt { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[32] parameter(0)
  y = f32[1000] parameter(1)
  p = f32[32] multiply(x, x)
  q = f32[32] add(p, x)
  s = f32[1000] sort(y), dimensions={0}, to_apply=lt
  ROOT t = (f32[32], f32[1000]) tuple(q, s) }"""

_EIGENVALUES = """HloModule m
ENTRY e { x = f32[3,3] parameter(0)
  ROOT r = (f32[3,3], f32[3], s32[]) custom-call(x), custom_call_target="lapack_ssyevd_ffi",
    api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8} }"""


_TURNED, _NEGATED = "f32[16,5,3] transpose(w), dimensions={2,1,0}", "f32[3,5,16] negate(w)"


def beside_product(work: str, size: int) -> str:
    """A kernel on 240 elements and a product of matrices."""
    return f"""HloModule m
    ENTRY e {{ w = f32[3,5,16] parameter(0)
      x = f32[{size},{size}] parameter(1)
      y = {work}
      d = f32[{size},{size}] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      ROOT t = ({work.split()[0]}, f32[{size},{size}]) tuple(y, d) }}"""


def doubled(size: int, dtype: str = "f32") -> str:
    return f"HloModule m\nENTRY e {{ x = {dtype}[{size}] parameter(0)\n ROOT y = {dtype}[{size}] add(x, x) }}"


def module_of_kernel(text: str, threads: int) -> str:
    """The LLVM module that defines the program's kernel."""
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=threads))
    (found,) = (each for each in ir.text.split(NEXT_MODULE) if "define hidden void @kernel.y(" in each)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("text", "is_brief"),
    [
        (doubled(8), True),
        (doubled(1000), False),
        (doubled(80, "u8"), True),
        (doubled(160, "u8"), False),
        (_LOOP, False),
    ],
)
def test_little_work_outside_of_loops_is_brief(text: str, is_brief: bool, threads: int) -> None:
    assert (BRIEF in module_of_kernel(text, threads)) is is_brief


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("text", "is_brief"),
    [
        (beside_product(_TURNED, 512), True),
        (beside_product(_TURNED, 8), False),
        (beside_product(_NEGATED, 512), False),
    ],
)
def test_moves_of_few_elements_are_brief_beside_much_work(text: str, is_brief: bool, threads: int) -> None:
    assert (BRIEF in module_of_kernel(text, threads)) is is_brief


def test_brief_moves_move_what_others_do(check, rng: np.random.Generator) -> None:
    arrays = [rng.random(dims, np.float32) for dims in ((3, 5, 16), (512, 512))]
    check(beside_product(_TURNED, 512), *arrays, ulps=64)


@pytest.mark.parametrize("text", [doubled(8), doubled(0), _LOOP])
@pytest.mark.parametrize("threads", [1, 2])
def test_brief_kernels_compute_what_others_do(text: str, threads: int, check) -> None:
    size = 0 if "[0]" in text else 8
    check(text, np.linspace(-2, 2, size).astype(np.float32), num_threads=threads)


def test_a_brief_kernel_in_the_module_of_another_is_improved_like_that(check, rng: np.random.Generator) -> None:
    # LLVM 22 aborts on the mask of this rounding in functions that it is told not to optimise among others.
    text = """HloModule m
    lt { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = f32[2] parameter(0)
      y = f32[1000] parameter(1)
      r = f32[2] reduce-precision(x), exponent_bits=8, mantissa_bits=7
      q = f32[2] sqrt(r)
      s = f32[1000] sort(y), dimensions={0}, to_apply=lt
      ROOT t = (f32[2], f32[1000]) tuple(q, s) }"""
    arrays = [rng.random(size).astype(np.float32) for size in (2, 1000)]
    for threads in (1, 2):
        check(text, *arrays, ulps=1, num_threads=threads)


@pytest.mark.parametrize("text", [_SUM_AND_SORT, _EIGENVALUES])
def test_what_else_is_compiled_by_how_many_threads_changes_no_bit(text: str, rng: np.random.Generator) -> None:
    module = parse(text)
    one, two = (
        get_backend("cpu").compile(module, CompileOptions(num_threads=threads, use_cache=False)) for threads in (1, 2)
    )
    for _ in range(20):
        arrays = [rng.random(parameter.shape.dims, np.float32) for parameter in module.entry_computation.parameters]
        for expected, found in zip(one(*arrays), two(*arrays), strict=True):
            np.testing.assert_array_equal(found, expected)
