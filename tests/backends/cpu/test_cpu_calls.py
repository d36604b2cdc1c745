"""Calls: arrays of every layout, numbers, wrong arguments, threads, and memory of results."""

import threading
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.errors import ArgumentError

ADD = """HloModule add
ENTRY e { x = f32[6,5] parameter(0)
  y = f32[6,5] parameter(1)
  ROOT r = f32[6,5] subtract(x, y) }"""
GRID = np.arange(30, dtype=np.float32).reshape(6, 5)


def shifted(array: np.ndarray, by: int) -> np.ndarray:
    """The same values at an address that is `by` bytes off."""
    memory = np.empty(array.nbytes + by, np.uint8)
    view = memory[by:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "one byte off": lambda: shifted(GRID, 1),
    "one element off": lambda: shifted(GRID, 4),
    "fortran": lambda: np.asfortranarray(GRID),
    "strided": lambda: np.repeat(np.repeat(GRID, 2, 0), 3, 1)[::2, ::3],
    "negative strides": lambda: GRID[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda: np.broadcast_to(GRID[:1], (6, 5)),
    "transposed": lambda: GRID.T.copy().T,
    "read only": lambda: read_only(GRID),
    "other byte order": lambda: GRID.astype(">f4"),
    "nested lists": lambda: GRID.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_every_layout(compile_text: Any, layout: str) -> None:
    x = LAYOUTS[layout]()
    np.testing.assert_array_equal(compile_text(ADD)(x, GRID), np.asarray(x, np.float32) - GRID)
    np.testing.assert_array_equal(compile_text(ADD)(GRID, x), GRID - np.asarray(x, np.float32))


@pytest.mark.parametrize(
    ("dtype", "number"), [("f32", 2.5), ("f64", 3), ("s32", -7), ("pred", True), ("c64", 1 - 2j), ("u8", 200)]
)
def test_python_numbers(compile_text: Any, dtype: str, number: Any) -> None:
    result = compile_text(f"HloModule m\nENTRY e {{ x = {dtype}[] parameter(0)\n ROOT r = {dtype}[] copy(x) }}")(number)
    assert result == number
    assert result.shape == ()


@pytest.mark.parametrize("dims", ["0", "0,3", "3,0", ""])
def test_nothing_and_scalars(check: Any, dims: str) -> None:
    x = np.ones([int(size) for size in dims.split(",") if size], np.float32)
    text = f"""HloModule m
ENTRY e {{ x = f32[{dims}] parameter(0)
  n = f32[{dims}] negate(x)
  ROOT r = (f32[{dims}], f32[{dims}]) tuple(n, x) }}"""
    check(text, x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GRID,), r"1 arguments given, 2 expected \(f32\[6,5\], f32\[6,5\]\)"),
        ((GRID, GRID, GRID), "3 arguments given, 2 expected"),
        ((GRID, GRID[:5]), r"argument 1 is f32\[5,5\]; expected f32\[6,5\]"),
        ((GRID.astype(np.float64), GRID), r"argument 0 is f64\[6,5\]; expected f32\[6,5\]"),
        ((GRID, GRID.astype(np.int32)), r"argument 1 is s32\[6,5\]; expected f32\[6,5\]"),
        ((GRID, 1.0), "argument 1 is"),
        ((GRID, None), "argument 1 is"),
        ((GRID, "text"), "argument 1 is"),
    ],
)
def test_wrong_arguments_name_what_was_expected(compile_text: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compile_text(ADD)(*arguments)


def test_a_wrong_tuple_argument(compile_text: Any) -> None:
    executable = compile_text("""HloModule m
ENTRY e { p = (f32[2], (s32[], f32[3])) parameter(0)
  q = (s32[], f32[3]) get-tuple-element(p), index=1
  ROOT r = f32[3] get-tuple-element(q), index=1 }""")
    good = (np.ones(2, np.float32), (np.int32(1), np.arange(3, dtype=np.float32)))
    np.testing.assert_array_equal(executable(good), [0, 1, 2])
    with pytest.raises(ArgumentError, match="element 1 is ndarray; expected a tuple of 2 elements"):
        executable((good[0], good[0]))
    with pytest.raises(ArgumentError, match="found 2 arguments, expected 1"):
        executable(good, good)


PASS_THROUGH = """HloModule m
ENTRY e { x = f32[6,5] parameter(0)
  c = f32[3] constant({1, 2, 3})
  y = f32[30] reshape(x)
  ROOT r = (f32[6,5], f32[6,5], f32[30], f32[3], f32[3]) tuple(x, x, y, c, c) }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_results_are_memory_of_their_own(compile_text: Any, optimize: bool) -> None:
    executable = compile_text(PASS_THROUGH, optimize=optimize)
    x = GRID.copy()
    first = executable(x)
    arrays = [x, *first, *executable(x)]
    for number, one in enumerate(arrays):
        for other in arrays[number + 1 :]:
            assert not np.may_share_memory(one, other)
    for array in first:
        array[...] = -1
    again = executable(x)
    np.testing.assert_array_equal(again[2], np.arange(30))
    np.testing.assert_array_equal(again[4], [1, 2, 3])


def test_results_outlive_the_executable(compile_text: Any) -> None:
    result = compile_text(ADD)(GRID, GRID[::-1].copy())
    np.testing.assert_array_equal(result, GRID - GRID[::-1])


CHAIN = """HloModule chain
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[64,1000] parameter(0)
  z = f32[] constant(0)
  t = f32[1000,64] transpose(x), dimensions={1,0}
  s = f32[64] reduce(t, z), dimensions={0}, to_apply=add
  b = f32[64,1000] broadcast(s), dimensions={0}
  e = f32[64,1000] exponential(x)
  y = f32[64,1000] multiply(e, b)
  c = f32[1000] reduce(y, z), dimensions={0}, to_apply=add
  ROOT r = (f32[64,1000], f32[1000]) tuple(y, c) }"""


def test_several_threads_call_one_executable(compile_text: Any, rng: np.random.Generator) -> None:
    executable = compile_text(CHAIN, num_threads=2)
    inputs = [rng.standard_normal((64, 1000)).astype(np.float32) for _ in range(4)]
    wanted = [executable(x) for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(25):
            found = executable(inputs[number])
            if any(a.tobytes() != b.tobytes() for a, b in zip(found, wanted[number], strict=True)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def reduce_program(dims: tuple[int, ...], reduced: tuple[int, ...]) -> str:
    result = ",".join(str(size) for d, size in enumerate(dims) if d not in reduced)
    return f"""HloModule m
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }}
ENTRY e {{ x = f32[{",".join(map(str, dims))}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[{result}] reduce(x, z), dimensions={{{",".join(map(str, reduced))}}}, to_apply=add }}"""


@pytest.mark.parametrize(
    ("dims", "reduced"),
    [((300_001,), (0,)), ((700, 301), (1,)), ((700, 301), (0,)), ((40, 70, 90), (1,)), ((40, 70, 90), (0, 2))],
)
def test_threads_change_no_bit(
    compile_text: Any, rng: np.random.Generator, dims: tuple[int, ...], reduced: tuple[int, ...]
) -> None:
    x = rng.standard_normal(dims).astype(np.float32)
    text = reduce_program(dims, reduced)
    results = {compile_text(text, num_threads=n)(x).tobytes() for n in (1, 2, 3) for _ in range(3)}
    assert len(results) == 1


def test_contraction_changes_the_last_bit_only_where_it_is_allowed(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  p = f32[64] multiply(x, x)
  ROOT r = f32[64] subtract(p, y) }"""
    x = np.float32(1) + np.arange(1, 65, dtype=np.float32) * np.float32(2.0**-12)
    y = x * x
    strict = compile_text(text, fp_contract=False)(x, y)
    fused = compile_text(text, fp_contract=True)(x, y)
    np.testing.assert_array_equal(strict, 0)
    exact = (x.astype(np.float64) ** 2 - y).astype(np.float32)
    assert all(found in (0, wanted) for found, wanted in zip(fused, exact, strict=True))


@pytest.mark.slow
def test_more_than_two_gigabytes(compile_text: Any) -> None:
    count = 2**31 + 77
    text = f"""HloModule m
ENTRY e {{ x = s8[{count}] parameter(0)
  one = s8[] constant(1)
  b = s8[{count}] broadcast(one), dimensions={{}}
  ROOT r = s8[{count}] add(x, b) }}"""
    x = np.zeros(count, np.int8)
    x[-1] = 5
    result = compile_text(text)(x)
    assert result[-1] == 6
    assert result[2**31] == 1
    assert int(result[::4096].sum(dtype=np.int64)) == len(result[::4096])


def test_wrong_arguments_are_the_callers_and_show_one_frame_of_ours(compile_text: Any) -> None:
    with pytest.raises(ArgumentError, match=r"argument 0 is f64\[6,5\]; expected f32\[6,5\]") as caught:
        compile_text(ADD)(GRID.astype(np.float64) + 0.1, GRID)
    assert len(caught.traceback) == 2
