"""Results that consist of blocks of operands are copied line by line, by one function that programs share."""

import re
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

_PROGRAMS = {
    "slice": "x = T[9,7,W] parameter(0)\n ROOT r = T[3,4,W] slice(x), slice={[1:9:3],[2:6],[0:W]}",
    "part of lines": "x = T[9,7,W] parameter(0)\n ROOT r = T[9,7,V] slice(x), slice={[0:9],[0:7],[1:W]}",
    "reversed": "x = T[3,5,4,W] parameter(0)\n ROOT r = T[3,5,4,W] reverse(x), dimensions={0,2}",
    "transposed": "x = T[6,5,4,W] parameter(0)\n ROOT r = T[4,6,5,W] transpose(x), dimensions={2,0,1,3}",
    "joined": """x = T[9,3,W] parameter(0)\n y = T[9,1,W] parameter(1)\n z = T[5,9,W] parameter(2)
 t = T[9,5,W] transpose(z), dimensions={1,0,2}\n ROOT r = T[9,9,W] concatenate(x, t, y), dimensions={1}""",
    "lines joined": """x = T[300,W] parameter(0)\n y = T[300,W] parameter(1)
 a = T[300,V] slice(y), slice={[0:300],[1:W]}\n ROOT r = T[300,S] concatenate(x, a), dimensions={1}""",
    "alternating": """x = T[4,9,W] parameter(0)\n y = T[4,9,W] parameter(1)\n a = T[4,9,1,W] reshape(x)
 b = T[4,9,1,W] reshape(y)\n c = T[4,9,2,W] concatenate(a, b), dimensions={2}\n d = T[4,18,W] reshape(c)
 ROOT r = T[4,17,W] slice(d), slice={[0:4],[0:17],[0:W]}""",
    "nothing joined": """x = T[9,3,W] parameter(0)\n y = T[9,0,W] parameter(1)\n z = T[9,2,W] parameter(2)
 ROOT r = T[9,5,W] concatenate(x, y, z), dimensions={1}""",
    "one line": "x = T[3,5,W] parameter(0)\n ROOT r = T[1,1,W] slice(x), slice={[1:2],[3:4],[0:W]}",
}


def program(name: str, dtype: str, width: int) -> str:
    text = _PROGRAMS[name]
    for letter, value in (("T[", f"{dtype}["), ("W", width), ("V", width - 1), ("S", 2 * width - 1)):
        text = text.replace(letter, str(value))
    return f"HloModule m\nENTRY e {{\n {text} }}"


@pytest.mark.parametrize(("threads", "optimize"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("dtype", ["f32", "s8", "c64", "bf16", "pred"])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_blocks_are_copied(
    check: Any, rng: np.random.Generator, name: str, dtype: str, threads: int, optimize: bool
) -> None:
    for width in (33, 61, 64, 100, 1500):
        module = parse(program(name, dtype, width))
        shapes = [one.shape for one in module.entry_computation.parameters]
        arguments = [rng.integers(0, 2, shape.dims).astype(DType(dtype).numpy) for shape in shapes]
        executable = check(module, *arguments, optimize=optimize, num_threads=threads)
        assert "@copy_by_" in executable.as_text("llvm").replace('"', ""), module


@pytest.mark.parametrize(
    ("dtype", "body"),
    [
        pytest.param("f32", "x = T[9,7,5] parameter(0)\n ROOT r = T[9,7,5] reverse(x), dimensions={1}", id="short"),
        pytest.param("f32", "x = T[9,64] parameter(0)\n ROOT r = T[9,64] reverse(x), dimensions={1}", id="backwards"),
        pytest.param("f32", "x = T[9,64] parameter(0)\n ROOT r = T[9,32] slice(x), slice={[0:9],[0:64:2]}", id="apart"),
        pytest.param(
            "f32",
            "x = T[9,64] parameter(0)\n y = T[9,64] negate(x)\n ROOT r = T[9,40] slice(y), slice={[0:9],[0:40]}",
            id="computed",
        ),
    ],
)
def test_other_results_are_computed_by_loops(check: Any, rng: np.random.Generator, dtype: str, body: str) -> None:
    text = f"HloModule m\nENTRY e {{\n {body.replace('T[', dtype + '[')} }}"
    module = parse(text)
    arguments = [rng.standard_normal(one.shape.dims).astype(np.float32) for one in module.entry_computation.parameters]
    assert "copy_by_" not in check(module, *arguments).as_text("llvm")


def test_copies_of_all_sizes_share_a_function(compile_text: Any) -> None:
    def functions(name: str, width: int) -> list[str]:
        text = compile_text(program(name, "f32", width)).as_text("llvm")
        return re.findall(r"define .*@(copy_by_[^(]*)", text)

    assert len(functions("joined", 33)) == 1
    assert functions("joined", 33) == functions("joined", 61) == functions("reversed", 61)


def in_turns(size: int, first: int, direction: str) -> str:
    """Lines of two arrays in turns: those of the first one at even places, or at odd ones."""
    counts = [len(range(at, size, 2)) for at in (first, 1 - first)]
    low, high = ((at, size - at - 2 * count + 1) for at, count in zip((first, 1 - first), counts, strict=True))
    return f"""HloModule m
ENTRY e {{
 x = f32[4,{counts[0]},61] parameter(0)
 y = f32[4,{counts[1]},61] parameter(1)
 zero = f32[] constant(0)
 a = f32[4,{size},61] pad(x, zero), padding=0_0x{low[0]}_{low[1]}_1x0_0
 b = f32[4,{size},61] pad(y, zero), padding=0_0x{high[0]}_{high[1]}_1x0_0
 place = s32[4,{size},61] iota(), iota_dimension=1
 c = s32[] constant(1)
 one = s32[4,{size},61] broadcast(c), dimensions={{}}
 d = s32[] constant(0)
 none = s32[4,{size},61] broadcast(d), dimensions={{}}
 bits = s32[4,{size},61] and(place, one)
 even = pred[4,{size},61] compare(bits, none), direction={direction}
 ROOT r = f32[4,{size},61] select(even, a, b) }}"""


@pytest.mark.parametrize(
    ("size", "first", "direction", "copies"),
    [(17, 0, "EQ", True), (18, 0, "EQ", True), (17, 1, "NE", False), (17, 0, "NE", False)],
)
def test_arrays_in_turns_are_copied(
    check: Any, rng: np.random.Generator, size: int, first: int, direction: str, copies: bool
) -> None:
    module = parse(in_turns(size, first, direction))
    arguments = [rng.standard_normal(one.shape.dims).astype(np.float32) for one in module.entry_computation.parameters]
    for threads in (1, 3):
        executable = check(module, *arguments, num_threads=threads)
        assert ("copy_by_" in executable.as_text("llvm")) is copies
