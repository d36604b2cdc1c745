"""Transposes of every order, element width and odd size."""

import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse

NUMPY = {
    "pred": np.bool_,
    "s8": np.int8,
    "bf16": ml_dtypes.bfloat16,
    "s32": np.int32,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def transpose(dims: tuple[int, ...], order: tuple[int, ...], dtype: str) -> str:
    shape, result = ",".join(map(str, dims)), ",".join(str(dims[d]) for d in order)
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{shape}] parameter(0)
  ROOT r = {dtype}[{result}] transpose(x), dimensions={{{",".join(map(str, order))}}} }}"""


def numbers(dims: tuple[int, ...], dtype: str) -> np.ndarray:
    count = np.arange(np.prod(dims, dtype=int)).reshape(dims)
    return np.asarray(count % 3 == 1 if dtype == "pred" else count % 251 - (100 if dtype != "s8" else 128)).astype(
        NUMPY[dtype]
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("dims", [(5, 6, 7), (1, 4, 18), (16, 17, 33), (4, 4, 4)], ids=str)
def test_every_order_of_three(check: Any, dims: tuple[int, ...], order: tuple[int, ...]) -> None:
    check(transpose(dims, order, "f32"), numbers(dims, "f32"))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:], ids=str)
def test_every_order_of_four(check: Any, order: tuple[int, ...]) -> None:
    check(transpose((3, 5, 4, 9), order, "s32"), numbers((3, 5, 4, 9), "s32"))


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("dims", [(4, 4), (5, 67), (70, 9), (33, 31), (64, 128), (1, 5), (3, 2), (150, 139)], ids=str)
def test_matrices_of_every_width(check: Any, dtype: str, dims: tuple[int, ...]) -> None:
    check(transpose(dims, (1, 0), dtype), numbers(dims, dtype))


@pytest.mark.parametrize("dims", [(0, 5), (5, 0), (0, 0)], ids=str)
def test_nothing(check: Any, dims: tuple[int, ...]) -> None:
    check(transpose(dims, (1, 0), "f32"), np.zeros(dims, np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_matrix_on_threads(compile_text: Any, threads: int) -> None:
    x = numbers((701, 1003), "f32")
    found = compile_text(transpose(x.shape, (1, 0), "f32"), num_threads=threads)(x)
    np.testing.assert_array_equal(found, x.T)


@pytest.mark.parametrize("more", [0, 4, 1])
def test_results_stored_past_the_caches_may_have_lines_of_any_alignment(compile_text: Any, more: int) -> None:
    """All rows of the result begin where a vector may, every fourth does, every sixteenth does."""
    rows = TargetInfo.host().cache_bytes[-1] // (8 * 70) // 16 * 16 + 16 + more
    x = numbers((rows, 70), "f32")
    executable = compile_text(transpose(x.shape, (1, 0), "f32"))
    assert "nontemporal" in executable.as_text("llvm")
    np.testing.assert_array_equal(executable(x), x.T)


def test_small_arrays_are_moved_in_small_tiles(compile_text: Any) -> None:
    widest = min(TargetInfo.host().lanes(32), 16)
    for dims, lanes in ((3, 64, 64), min(widest, 8)), ((3, 2048, 128), widest):
        ir = compile_text(transpose(dims, (0, 2, 1), "f32")).as_text("llvm-before-optimizations")
        assert f"load <{lanes} x i32>" in ir


def functions(ir: str) -> set[str]:
    return set(re.findall(r'^define [^@]*@"?(transpose[\w.]*)', ir, re.MULTILINE))


def test_arrays_of_all_sizes_share_a_function(compile_text: Any) -> None:
    def of(dims: tuple[int, ...], order: tuple[int, ...], dtype: str = "f32") -> set[str]:
        return functions(compile_text(transpose(dims, order, dtype)).as_text("llvm-before-optimizations"))

    first = of((300, 400), (1, 0))
    assert len(first) == 1
    assert of((8, 31, 17, 40), (0, 3, 1, 2)) == of((40, 50, 60), (1, 2, 0), "s32") == first
    assert not of((300, 400), (1, 0), "bf16") & first
    # Few elements at a time are turned where they are met.
    assert not of((300, 8, 8), (0, 2, 1))


def test_a_matrix_uses_the_tiled_kernel(check: Any, kernels: Any) -> None:
    assert kernels(check(transpose((40, 50), (1, 0), "f32"), numbers((40, 50), "f32"))) == ["transpose"]


def test_a_transpose_that_keeps_the_minor_dimension_is_a_loop(check: Any, kernels: Any) -> None:
    assert kernels(check(transpose((4, 5, 60), (1, 0, 2), "f32"), numbers((4, 5, 60), "f32"))) == ["loop"]


def test_one_image_is_turned_by_all_threads(check: Any, rng: np.random.Generator) -> None:
    executable = check(
        """HloModule m
ENTRY e { x = f32[1,64,700] parameter(0)
 ROOT t = f32[1,700,64] transpose(x), dimensions={0,2,1} }""",
        rng.standard_normal((1, 64, 700)).astype(np.float32),
        num_threads=2,
    )
    assert "extent=1," not in "".join(map(str, executable.decisions()))


@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64"])
def test_llvm_sees_no_two_rounds_of_shuffles_at_once(dtype: str) -> None:
    # It would try to join them, which takes it longer than all else.
    ir = (
        get_backend("cpu")
        .compile_to(
            "llvm-before-optimizations", parse(transpose((300, 400), (1, 0), dtype)), CompileOptions(num_threads=1)
        )
        .text
    )
    shuffles = re.findall(r"(%\S+) = shufflevector <[^>]*> (%\d+), <[^>]*> (%\d+)", ir)
    assert len(shuffles) > 8
    found = {result for result, _, _ in shuffles}
    assert not found & {operand for _, *operands in shuffles for operand in operands}
