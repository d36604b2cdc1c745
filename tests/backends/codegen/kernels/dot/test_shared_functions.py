"""Tiles and packing functions: one serves products of all sizes, and programs share its object code."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import AS_WRITTEN, BRIEF, TargetInfo
from xlalite.backends.cpu.native.jit import CodeForm, generate_code
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.object_cache import ObjectCache, SharedImages
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, SHARED_MODULE
from xlalite.hlo import parse
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions


def product(m: int, k: int, n: int, dtype: str = "f32") -> str:
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{m},{k}] parameter(0)
  y = {dtype}[{k},{n}] parameter(1)
  ROOT d = {dtype}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


def shared_modules(text: str) -> set[str]:
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2)).text
    return {module for module in ir.split(NEXT_MODULE) if module.startswith(SHARED_MODULE)}


@pytest.mark.parametrize(("dtype", "depth"), [("f32", 448), ("f64", 448), ("bf16", 1024), ("s8", 1024)])
def test_products_of_all_sizes_share_functions(dtype: str, depth: int) -> None:
    first = shared_modules(product(512, 512, 512, dtype))
    assert first
    assert shared_modules(product(524, depth, 1024, dtype)) == first


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_sums_in_memory_of_their_own_need_no_tiles_of_fewer_rows_or_columns(dtype: str) -> None:
    target = TargetInfo.host()

    def tiles(m: int, n: int) -> int:
        return sum(' @"dot_tile' in module for module in shared_modules(product(m, 256, n, dtype)))

    if target.vector_bits == 512:
        assert tiles(512, 512) == tiles(504, 512) == tiles(504, 1024) == tiles(504, 1000) == tiles(256, 1000)
        assert tiles(504, 528) > tiles(504, 512)  # too many columns would be summed for nothing
        assert tiles(100, 512) > tiles(504, 512)  # or rows


def test_other_types_and_remainders_have_functions_of_their_own() -> None:
    first = shared_modules(product(512, 512, 512))
    assert not first & shared_modules(product(512, 512, 512, "f64"))
    packers = {module for module in first if "@dot_pack" in module.replace('"', "")}
    other = shared_modules(product(512, 512, 513))
    assert packers < other
    assert other != first


def test_products_share_functions_for_what_fills_no_tile() -> None:
    # Registers of 128 bits have no masks that only the code knows: tiles of fewer columns are functions of their own.
    has_masks = TargetInfo.host().vector_bits >= 256
    first = shared_modules(product(520, 512, 525))
    assert (shared_modules(product(520, 512, 527)) == first) is has_masks
    assert shared_modules(product(1, 4097, 1000)) == shared_modules(product(1, 4001, 1020))
    assert shared_modules(product(1, 1000, 3000)) == shared_modules(product(1, 1100, 2900))


def test_loops_around_products_of_computed_operands_are_shared() -> None:
    def scaled(m: int, k: int, n: int) -> str:
        return f"""HloModule m
ENTRY e {{
  x = f32[{m},{k}] parameter(0)
  y = s8[{k},{n}] parameter(1)
  s = f32[{n}] parameter(2)
  w = f32[{k},{n}] convert(y)
  b = f32[{k},{n}] broadcast(s), dimensions={{1}}
  m = f32[{k},{n}] multiply(w, b)
  ROOT d = f32[{m},{n}] dot(x, m), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""

    drivers = {module for module in shared_modules(scaled(64, 1024, 1000)) if "dot_driver" in module}
    assert drivers
    assert drivers <= shared_modules(scaled(64, 1000, 1128))


def test_loops_around_calls_are_compiled_as_written_also_where_parts_are_added() -> None:
    for text in product(8, 100_000, 7), product(64, 100, 48):
        ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2)).text
        (kernel,) = (one for one in ir.split(NEXT_MODULE) if re.search(r"^define .*@kernel\.d\(", one, re.MULTILINE))
        assert AS_WRITTEN in kernel or BRIEF in kernel


def test_loops_around_large_tiles_of_parts_are_not_optimised() -> None:
    gradient = """HloModule m
ENTRY e {
  x = f32[8,58,58,64] parameter(0)
  g = f32[8,56,56,64] parameter(1)
  ROOT d = f32[3,3,64,64] convolution(x, g), window={size=56x56}, dim_labels=f01b_i01o->01bf
}"""
    options = CompileOptions(num_threads=2)
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(gradient), options).text
    (kernel,) = (one for one in ir.split(NEXT_MODULE) if re.search(r"^define .*@kernel\.d\(", one, re.MULTILINE))
    assert "atomicrmw" in kernel
    assert BRIEF in kernel


@pytest.mark.parametrize("n", [61, 127, 512, 513, 525])
def test_every_function_is_called(n: int) -> None:
    options = CompileOptions(num_threads=2)
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(product(520, 512, n)), options).text
    used = re.findall(r"(?<!define hidden void )@(dot_\w+\.\w+)", re.sub(r"declare .*", "", ir.replace('"', "")))
    assert {*re.findall(r"define .*@(dot_[^(]*)", ir.replace('"', ""))} == set(used)


@pytest.mark.parametrize("columns", [512, 525])
def test_products_share_loops_whatever_follows(columns: int) -> None:
    def followed(operation: str, rows: int) -> str:
        result = f"ROOT r = f32[{rows},{columns}] {operation}(d)"
        return product(rows, 512, columns).replace("ROOT d", "d").replace("\n}", f"\n  {result}\n}}")

    first, other = (shared_modules(followed(*one)) for one in (("tanh", 1536), ("negate", 2304)))
    assert any('@"dot_driver' in module for module in first)
    assert all('@"dot_finish' in module for module in first ^ other)


def layer(m: int, k: int, n: int, bias: str, dimensions: str, dtype: str = "f32") -> str:
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{m},{k}] parameter(0)
  y = {dtype}[{k},{n}] parameter(1)
  b = {dtype}[{bias}] parameter(2)
  d = {dtype}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = {dtype}[{m},{n}] broadcast(b), dimensions={{{dimensions}}}
  a = {dtype}[{m},{n}] add(d, s)
  ROOT r = {dtype}[{m},{n}] tanh(a)
}}"""


def finishers(text: str) -> set[str]:
    return {module for module in shared_modules(text) if '@"dot_finish' in module}


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_layers_of_all_sizes_are_finished_by_one_function(dtype: str) -> None:
    first = finishers(layer(512, 512, 512, "512", "1", dtype))
    assert len(first) == 1
    assert finishers(layer(100, 300, 1024, "1024", "1", dtype)) == first
    assert finishers(layer(100, 40, 96, "96", "1", dtype)) == first


def test_other_arrays_are_read_by_other_functions() -> None:
    columns, rows, all_ = (
        finishers(layer(96, 64, 128, *bias)) for bias in (("128", "1"), ("96", "0"), ("96,128", "0,1"))
    )
    assert len(columns) == len(rows) == 1
    assert rows != columns == all_


def test_what_knows_its_place_is_finished_in_the_kernel() -> None:
    text = layer(96, 64, 128, "", "").replace("b = f32[] parameter(2)", "b = f32[128] iota(), iota_dimension=0")
    assert not finishers(text.replace("dimensions={}", "dimensions={1}"))


@pytest.mark.parametrize("isa", ["", "AVX2", "SSE2"])
@pytest.mark.parametrize(("dtype", "terms"), [("f16", 64), ("f16", 1030), ("bf16", 520), ("s8", 1030), ("f64", 300)])
def test_packed_rows_that_fill_no_tile_have_no_function(
    dtype: str, terms: int, isa: str, rng: np.random.Generator
) -> None:
    text = product(119, terms, 45, dtype).replace(f"[119,{terms}]", f"[{terms},119]").replace("{1}", "{0}")
    arrays = [rng.integers(-3, 4, dims).astype(DType(dtype).numpy) for dims in ((terms, 119), (terms, 45))]
    expected = evaluate(parse(text), *arrays)
    for threads in (1, 2, 5):
        options = CompileOptions(num_threads=threads, debug=DebugOptions(cpu_max_isa=isa))
        np.testing.assert_array_equal(get_backend("cpu").compile(parse(text), options)(*arrays), expected)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_long_sums_share_the_functions_that_add_their_parts(dtype: str) -> None:
    def around_tiles(terms: int) -> set[str]:  # which take terms in pairs where their number is even
        return {module for module in shared_modules(product(100, terms, 64, dtype)) if '@"dot_tile' not in module}

    first = around_tiles(19_200)
    assert any("atomicrmw" in module for module in first)
    assert around_tiles(20_480) == first


OF_MATRICES = pytest.mark.skipif(
    not TargetInfo.host().has("amx-int8"), reason="packers of words know the image where no registers hold matrices"
)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("f32", (96, 112)),
        pytest.param("bf16", (46, 58), marks=OF_MATRICES),
        pytest.param("s8", (92, 116), marks=OF_MATRICES),
    ],
)
def test_gradients_of_the_input_share_functions_that_pack_runs(dtype: str, sizes: tuple[int, int]) -> None:
    def gradient(features: int) -> str:
        window = "window={size=3x3 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f"
        return f"""HloModule m
ENTRY e {{
  x = {dtype}[8,58,58,{features}] parameter(0)
  w = {dtype}[3,3,64,{features}] parameter(1)
  ROOT d = {dtype}[8,56,56,64] convolution(x, w), {window}
}}"""

    first = shared_modules(gradient(sizes[0]))
    assert any('@"dot_pack' in module for module in first)
    assert shared_modules(gradient(sizes[1])) == first


def convolutions(features: int, *windows: tuple[int, int, int]) -> str:
    """A module with a convolution of one image for each height, width and number of output features."""
    image = f"f32[2,26,26,{features}]"
    kernels = [f"f32[{height},{width},{features},{outputs}]" for height, width, outputs in windows]
    results = [f"f32[2,{27 - height},{27 - width},{outputs}]" for height, width, outputs in windows]
    lines = [f"x = {image} parameter(0)"]
    for number, (kernel, result, (height, width, _)) in enumerate(zip(kernels, results, windows, strict=True)):
        window = f"window={{size={height}x{width}}}, dim_labels=b01f_01io->b01f"
        lines += [f"k{number} = {kernel} parameter({number + 1})"]
        lines += [f"r{number} = {result} convolution(x, k{number}), {window}"]
    names = ", ".join(f"r{number}" for number in range(len(windows)))
    lines += [f"ROOT t = ({', '.join(results)}) tuple({names})"]
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def tile_names(text: str) -> set[str]:
    return {name for one in shared_modules(text) for name in re.findall(r"define .*@\"(dot_tile_\w+\.\w+)", one)}


SEVERAL = (3, 3, 64), (1, 3, 64), (3, 1, 64), (1, 1, 60)


@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions_of_a_program_share_tiles_and_change_no_bit(threads: int, rng: np.random.Generator) -> None:
    together, apart = convolutions(96, *SEVERAL), [convolutions(96, one) for one in SEVERAL]
    assert 0 < len(tile_names(together)) < len(set().union(*map(tile_names, apart)))
    sizes = {name.partition(".")[0] for name in tile_names(together)}
    assert len(sizes) == len(tile_names(together))
    image, *kernels = (
        rng.standard_normal(dims).astype(np.float32)
        for dims in ((2, 26, 26, 96), *((height, width, 96, outputs) for height, width, outputs in SEVERAL))
    )
    backend, options = get_backend("cpu"), CompileOptions(num_threads=threads, use_cache=False)
    found = backend.compile(parse(together), options)(image, *kernels)
    for text, kernel, result in zip(apart, kernels, found, strict=True):
        np.testing.assert_array_equal(result, backend.compile(parse(text), options)(image, kernel)[0])


def test_tiles_of_few_terms_know_all_of_their_product() -> None:
    several = (3, 3, 64), (1, 1, 64)
    apart = (tile_names(convolutions(24, one)) for one in several)
    assert tile_names(convolutions(24, *several)) == set().union(*apart)


def test_a_packed_right_side_has_the_tile_of_one_that_is_not() -> None:
    def tiles(right: str, contracted: int) -> set[str]:
        text = f"""HloModule m
ENTRY e {{
  x = f32[256,280] parameter(0)
  y = f32[{right}] parameter(1)
  ROOT d = f32[280,32] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{{contracted}}}
}}"""
        return {module for module in shared_modules(text) if 'define hidden void @"dot_tile' in module}

    assert tiles("256,32", 0) == tiles("32,256", 1) != set()


def test_functions_that_pack_images_of_all_sizes_share_what_turns_lines() -> None:
    def turning(size: int) -> set[str]:
        result = size - 1
        text = f"""HloModule m
ENTRY e {{
  x = f32[8,{size},{size},1] parameter(0)
  g = f32[8,{result},{result},32] parameter(1)
  ROOT d = f32[2,2,1,32] convolution(x, g), window={{size={result}x{result}}}, dim_labels=f01b_i01o->01bf
}}"""
        modules = shared_modules(text)
        found = {module for module in modules if 'define hidden void @"dot_turn' in module}
        assert any('define hidden void @"dot_pack' in module for module in modules - found)
        return found

    assert turning(28) == turning(32) != set()


def test_object_code_of_shared_modules_is_made_once(tmp_path: Path) -> None:
    options = JitOptions()
    (text, *_) = sorted(shared_modules(product(512, 512, 512)))
    cache, *others = (ObjectCache.at(tmp_path) for _ in range(2))
    alone = generate_code(text, CodeForm.OBJECT, options)
    for each in (cache, cache, *others):
        assert generate_code(text, CodeForm.OBJECT, options, SharedImages(each, options)).image == alone.image
    assert (cache.stats().misses, others[0].stats().misses) == (1, 0)
    assert generate_code(text, CodeForm.ALL, options, SharedImages(cache, options)).assembly


def test_kept_code_computes_the_same(rng: np.random.Generator) -> None:
    arrays = [rng.standard_normal(dims).astype(np.float32) for dims in ((29, 300), (300, 41))]
    backend = get_backend("cpu")
    text = product(29, 300, 41)
    results = [backend.compile(parse(text), CompileOptions(use_cache=keep))(*arrays) for keep in (False, True)]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("seed", range(30))
def test_long_products_of_any_layout_find_what_the_evaluator_finds(seed: int) -> None:
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    m, n = (chance.choice((1, 2, 5, 13, 31, 33, 70, 129, 200)) for _ in range(2))
    k, batch = chance.choice((256, 300, 512, 777, 1030)), chance.choice(((), (), (3,)))
    a, b, t = chance.choice(
        (*((t,) * 3 for t in ("f32", "f64", "bf16", "f16", "s8", "s32", "c64")), ("s8", "s8", "s32"))
    )
    lhs, rhs = (chance.sample(sizes, 2) for sizes in ((m, k), (k, n)))
    first, count = len(batch), chance.choice((1, 2, 5))
    lhs_term, rhs_term = first + lhs.index(k), first + rhs.index(k)
    shapes = [",".join(map(str, (*batch, *sizes))) for sizes in (lhs, rhs, (m, n))]
    dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch else ""
    text = f"""HloModule m
ENTRY e {{
  x = {a}[{shapes[0]}] parameter(0)
  y = {b}[{shapes[1]}] parameter(1)
  ROOT d = {t}[{shapes[2]}] dot(x, y), {dims}lhs_contracting_dims={{{lhs_term}}}, rhs_contracting_dims={{{rhs_term}}}
}}"""
    arrays = [rng.integers(-3, 4, (*batch, *sizes)).astype(DType(dtype).numpy) for dtype, sizes in ((a, lhs), (b, rhs))]
    options = CompileOptions(num_threads=count, debug=DebugOptions(cpu_max_isa=("", "AVX2", "SSE2")[seed % 3]))
    found = get_backend("cpu").compile(parse(text), options)(*arrays)
    np.testing.assert_array_equal(found, evaluate(parse(text), *arrays))
