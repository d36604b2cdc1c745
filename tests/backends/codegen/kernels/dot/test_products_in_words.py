"""Products of narrow numbers, multiplied in words of several, are exact, whatever signs, sizes, places and machine."""

import itertools
import random
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvm_machine import machine_for

from xlalite.backends.codegen.kernels.dot.layout import layout_of, tile_of
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.kernels.dot.words import Words
from xlalite.backends.codegen.llvm import ModuleBuilder, TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

FULL = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "s16": (-(1 << 15), 1 << 15)}


def product(sizes: tuple[int, int, int], types: tuple[str, str, str], turned: tuple[bool, bool]) -> str:
    m, k, n = sizes
    lhs = f"{types[0]}[{k},{m}]" if turned[0] else f"{types[0]}[{m},{k}]"
    rhs = f"{types[1]}[{n},{k}]" if turned[1] else f"{types[1]}[{k},{n}]"
    return f"""HloModule m
ENTRY e {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  ROOT d = {types[2]}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(not turned[0])}}}, \
rhs_contracting_dims={{{int(turned[1])}}} }}"""


@pytest.mark.parametrize("rhs", FULL)
@pytest.mark.parametrize("lhs", FULL)
def test_products_of_any_size(check: Any, rng: np.random.Generator, lhs: str, rhs: str) -> None:
    chance = random.Random(lhs + rhs)
    for isa in ("", "", "", "AVX512_VNNI", "AVX512", "AVX2", "SSE2"):
        m, k, n = (chance.choice((1, 2, 3, 5, 13, 16, 17, 31, 33, 64)) for _ in range(3))
        k = chance.choice((k, k, k, 3077))
        turned = chance.random() < 0.5, chance.random() < 0.5
        text = product((m, k, n), (lhs, rhs, "s32"), turned)
        arguments = [
            rng.integers(*FULL[name], parameter.shape.dims).astype(DType(name).numpy)
            for name, parameter in zip((lhs, rhs), parse(text).entry_computation.parameters, strict=True)
        ]
        check(text, *arguments, num_threads=chance.choice((1, 2, 5)), debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.parametrize(
    "sizes", [(16, 64, 16), (17, 65, 33), (129, 64, 48), (140, 1100, 31), (47, 4200, 15), (300, 70, 96)]
)
@pytest.mark.parametrize("types", [("s8", "s8"), ("u8", "s8"), ("s4", "u8"), ("u8", "u4")])
def test_what_fills_no_register_of_matrices(
    check: Any, rng: np.random.Generator, types: tuple[str, str], sizes: tuple[int, int, int]
) -> None:
    for turned, threads in itertools.product(((False, False), (True, False), (False, True)), (1, 5)):
        text = product(sizes, (*types, "s32"), turned)
        shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
        arguments = [rng.integers(*FULL[shape.dtype.value], shape.dims).astype(shape.dtype.numpy) for shape in shapes]
        check(text, *arguments, num_threads=threads)


@pytest.mark.parametrize("dtype", ["s8", "s16"])
@pytest.mark.parametrize("isa", ["", "AVX512_VNNI", "AVX512", "AVX2", "SSE2"])
def test_the_least_numbers(check: Any, dtype: str, isa: str) -> None:
    """Whose products are the largest, and of s16 in pairs more than 32 bits hold."""
    least = np.full((33, 33), FULL[dtype][0], DType(dtype).numpy)
    check(
        product((33, 33, 33), (dtype, dtype, "s32"), (False, False)), least, least, debug=DebugOptions(cpu_max_isa=isa)
    )


@pytest.mark.parametrize("result", ["s8", "u8", "s16", "s64"])
def test_results_of_other_widths_wrap(check: Any, rng: np.random.Generator, result: str) -> None:
    lhs = "u8" if result == "u8" else "s8"
    text = product((9, 70, 20), (lhs, lhs, result), (False, False))
    check(text, *(rng.integers(*FULL[lhs], sizes).astype(DType(lhs).numpy) for sizes in ((9, 70), (70, 20))))


@pytest.mark.parametrize("inputs", [3, 8, 64])
@pytest.mark.parametrize("labels", ["b01f_01io->b01f", "bf01_oi01->bf01"])
def test_convolutions(check: Any, kernels: Any, rng: np.random.Generator, labels: str, inputs: int) -> None:
    image, kernel, result = (
        ((2, 20, 33, inputs), (3, 3, inputs, 20), (2, 18, 31, 20))
        if labels.startswith("b0")
        else ((2, inputs, 20, 33), (20, inputs, 3, 3), (2, 20, 18, 31))
    )
    dims = [",".join(map(str, sizes)) for sizes in (image, kernel, result)]
    text = f"""HloModule m
ENTRY e {{
  x = s8[{dims[0]}] parameter(0)
  k = s8[{dims[1]}] parameter(1)
  ROOT c = s32[{dims[2]}] convolution(x, k), window={{size=3x3}}, dim_labels={labels} }}"""
    executable = check(text, *(rng.integers(-128, 128, sizes).astype(np.int8) for sizes in (image, kernel)))
    # Three features that follow one another are filled up to a word.
    filled = ["zero pad", "loop"] if labels.startswith("b0") and inputs == 3 else []
    assert [kind for kind in kernels(executable) if kind != "transpose"] == [*filled, "dot"]


@pytest.mark.parametrize(
    ("types", "features", "words"),
    [
        (("s8", "u8", "s32"), ("avx512f", "avx512vl", "avx512bw", "avx512vnni"), Words.BYTES),
        (("s8", "u4", "s32"), ("avx512f", "avx512vl", "avx512vnni", "amx-tile", "amx-int8"), Words.MATRICES_OF_BYTES),
        (("s16", "s8", "s32"), ("avx512f", "avx512vl", "avx512vnni", "amx-tile", "amx-int8"), Words.PAIRS),
        (("s8", "s8", "s32"), ("avx512f", "avx512vl", "avx512vnni", "amx-int8"), Words.BYTES),
        (("s8", "s16", "s32"), ("avx512f", "avx512vl", "avx512bw", "avx512vnni"), Words.PAIRS),
        (("s8", "s8", "s32"), ("avx512f", "avx512vl", "avx512bw"), Words.PAIRS_ADDED_APART),
        (("s8", "s8", "s32"), ("avx512f", "avx512vl"), None),
        (("s4", "u4", "s32"), ("avx", "avx2", "avxvnni"), Words.BYTES),
        (("s16", "s16", "s16"), ("avx", "avx2", "avxvnni"), Words.PAIRS),
        (("u8", "u8", "u32"), ("avx", "avx2"), Words.PAIRS_ADDED_APART),
        (("s8", "s8", "s32"), ("avx",), None),
        (("u16", "u16", "u32"), ("avx", "avx2"), None),
        (("s8", "s8", "s64"), ("avx", "avx2"), None),
    ],
)
def test_words_are_the_quickest_that_hold_the_operands_and_the_machine_has(
    types: tuple[str, str, str], features: tuple[str, ...], words: Words | None
) -> None:
    target = TargetInfo.of("x86_64-unknown-linux-gnu", features=(*features, "fma"))
    dot = parse(product((64, 64, 64), types, (False, False))).entry_computation.root
    assert plan_dot(dot, target).numbers.words is words


@pytest.mark.parametrize(
    ("features", "instruction"),
    [
        (("avx512f", "avx512vl", "avx512bw", "avx512vnni"), "vpdpbusd\t"),
        (("avx512f", "avx512vl", "avx512bw", "amx-tile", "amx-int8"), "tdpbssd\t"),
        (("avx2", "avxvnni"), "{vex}\tvpdpbusd\t"),
        (("avx2",), "vpmaddwd\t"),
    ],
)
def test_each_machine_has_the_instruction_for_its_words(features: tuple[str, ...], instruction: str) -> None:
    target = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx", *features))
    module = ModuleBuilder("tile", target)
    dot = parse(product((64, 64, 64), ("s8", "s8", "s32"), (False, False))).entry_computation.root
    plan = plan_dot(dot, target)
    tile_of(plan, layout_of(plan, stores_result=True), plan.rows, plan.columns).function(module, plan.numbers)
    (text,) = module.shared_texts
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as parsed:
        parsed.verify()
        assert instruction in machine_for(target).emit_assembly(parsed)


_OF_OTHERS = (
    """
import faulthandler, os, threading
import numpy as np
import xlalite as xl
faulthandler.enable()
text = """
    + repr(product((70, 130, 40), ("s8", "s8", "s32"), (False, False)))
    + """
run = xl.compile(xl.hlo.parse(text))
a, b = (np.arange(size, dtype=np.int64).astype(np.int8) for size in (70 * 130, 130 * 40))
a, b = a.reshape(70, 130), b.reshape(130, 40)
is_right = lambda: bool((run(a, b) == a.astype(np.int32) @ b.astype(np.int32)).all())
found = []
others = [threading.Thread(target=lambda: found.append(is_right())) for _ in range(3)]
for each in others:
    each.start()
for each in others:
    each.join()
child = os.fork()
if child == 0:
    os._exit(0 if is_right() else 1)
print(found, os.waitpid(child, 0)[1])
"""
)


def test_threads_and_forked_processes_may_use_what_the_process_may() -> None:
    done = subprocess.run([sys.executable, "-c", _OF_OTHERS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[True, True, True] 0", done.stderr
