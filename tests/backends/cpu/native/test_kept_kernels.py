"""Kernels are kept by what they compute: a program that has changed compiles what has changed."""

import ctypes

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import I32, ModuleBuilder
from xlalite.backends.cpu.native.content_names import named_by_content
from xlalite.backends.cpu.native.jit import CodeForm, compile_ir, generate_code
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, RENAMED_MODULE, SHARED_MODULE, IrSource, ObjectCode
from xlalite.hlo import parse
from xlalite.hlo.evaluation.evaluator import evaluate

TWO_THREADS = CompileOptions(num_threads=2)


class Kept(dict[str, bytes]):
    """Object code in memory, as a `Keeper`."""

    def find(self, text: str) -> bytes | None:
        return self.get(text)

    def keep(self, text: str, image: bytes, compile_ms: float) -> None:
        assert compile_ms > 0.0
        self[text] = image


def program(*functions: str, first: str = "v") -> str:
    """A softmax, a function before it, of each of as many matrices; values are named after the first."""
    lines, results, v = [], [], first
    for n, function in enumerate(functions):
        rows = f"f32[{9 + n},77]"
        lines.append(f"""  {v}x{n} = {rows} parameter({n})
  {v}f{n} = {rows} {function}({v}x{n})
  {v}m{n} = f32[{9 + n}] reduce({v}f{n}, {v}low), dimensions={{1}}, to_apply=larger
  {v}b{n} = {rows} broadcast({v}m{n}), dimensions={{0}}
  {v}d{n} = {rows} subtract({v}f{n}, {v}b{n})
  {v}e{n} = {rows} exponential({v}d{n})
  {v}s{n} = f32[{9 + n}] reduce({v}e{n}, {v}zero), dimensions={{1}}, to_apply=sum
  {v}c{n} = {rows} broadcast({v}s{n}), dimensions={{0}}
  {v}r{n} = {rows} divide({v}e{n}, {v}c{n})""")
        results.append(f"{v}r{n}")
    shapes = ", ".join(f"f32[{9 + n},77]" for n in range(len(functions)))
    body = "\n".join(lines)
    return f"""HloModule {first}
sum {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
larger {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }}
ENTRY e {{
  {v}zero = f32[] constant(0)
  {v}low = f32[] constant(-inf)
{body}
  ROOT {v}t = ({shapes}) tuple({", ".join(results)})
}}"""


def compiled_anew(text: str, kept: Kept) -> int:
    """How many modules were compiled and kept."""
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), TWO_THREADS).text
    before = len(kept)
    generate_code(ir, CodeForm.OBJECT, keeper=kept)
    return len(kept) - before


def test_only_the_kernel_that_has_changed_is_compiled() -> None:
    kept = Kept()
    assert compiled_anew(program("tanh", "log-plus-one", "log", "erf"), kept) == 4
    assert compiled_anew(program("tanh", "log-plus-one", "log", "exponential-minus-one"), kept) == 1
    assert (
        compiled_anew(program("log", "log-plus-one", "tanh", "exponential-minus-one"), kept) == 0
    )  # rows are counted by arguments
    assert compiled_anew(program("tanh", "log-plus-one", "log", "erf"), kept) == 0


def test_kernels_are_found_under_the_names_of_other_programs() -> None:
    kept = Kept()
    assert compiled_anew(program("tanh", "log-plus-one", "log"), kept) == 3
    assert compiled_anew(program("tanh", "log-plus-one", "log", first="another"), kept) == 0


def test_people_see_the_names_of_instructions() -> None:
    shown = get_backend("cpu").compile_to("llvm-before-optimizations", parse(program("tanh", "log")), TWO_THREADS).text
    assert "@kernel.vr0" in shown
    assert "@kernel.vr0" not in NEXT_MODULE.join(named_by_content(shown.split(NEXT_MODULE)))


def test_what_was_kept_computes_the_same(rng: np.random.Generator) -> None:
    arrays = [rng.standard_normal((9 + n, 77)).astype(np.float32) for n in range(3)]
    for functions in (
        ("tanh", "log-plus-one", "exponential-minus-one"),
        ("tanh", "erf", "exponential-minus-one"),
        ("exponential-minus-one", "log-plus-one", "erf"),
    ):
        text = program(*functions, first="kept")
        for found, expected in zip(
            get_backend("cpu").compile(parse(text), TWO_THREADS)(*arrays), evaluate(parse(text), *arrays), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def pieces(factor: int, *, entry: str = "answer") -> list[str]:
    """Hidden functions, of which one calls the other, an internal one with a constant in both, and who calls them."""
    module = ModuleBuilder("names")
    internal = module.function("scaled", I32, (I32,), linkage="internal")
    table = module.constant_bytes(bytes([factor, 0, 0, 0]))
    internal.ret(internal.mul(internal.parameters[0], internal.load(I32, table, 4)))
    inner = module.function("kernel.inner", I32, (I32,), linkage="hidden")
    inner.ret(inner.call(internal.function, *inner.parameters))
    outer = module.function("kernel.out er", I32, (I32,), linkage="hidden")
    outer.ret(outer.call(internal.function, outer.call(inner.function, *outer.parameters)))
    answer = module.function(entry, I32)
    answer.ret(answer.add(answer.call(outer.function, 2), answer.call(inner.function, 1)))
    return [RENAMED_MODULE + text if f"@{entry}(" not in text else text for text in module.texts(1)]


def answer(code: ObjectCode) -> int:
    module = link([code])
    return ctypes.CFUNCTYPE(ctypes.c_int32)(module.address("answer"))()


def compiled(texts: list[str]) -> ObjectCode:
    return compile_ir(IrSource(NEXT_MODULE.join(texts)))


def test_names_agree_in_all_modules_of_a_program() -> None:
    renamed = named_by_content(pieces(3))
    assert len(renamed) == 3
    assert not any("kernel." in text for text in renamed)
    assert answer(compiled(renamed)) == answer(compiled(pieces(3))) == 2 * 9 + 3
    again, other = (named_by_content(pieces(factor, entry="main")) for factor in (3, 5))
    assert again[:2] == renamed[:2]
    assert not set(other) & set(renamed)


def test_equal_modules_keep_their_own_names() -> None:
    one, other, last = (pieces(3)[0].replace("kernel.inner", name) for name in ("one", "other", "last"))
    entry = ["declare i32 @one(i32)\ndeclare i32 @other(i32)", "define i32 @answer() {", " %1 = call i32 @one(i32 7)"]
    entry += [" %2 = call i32 @other(i32 %1)", " ret i32 %2", "}\n"]
    texts = named_by_content([one, other, "\n".join(entry)])
    assert "@other(" in texts[1]
    assert "@one(" not in texts[0]
    assert answer(compiled(texts)) == 7 * 9
    assert named_by_content([last])[0] == texts[0]


@pytest.mark.parametrize("mark", ["", SHARED_MODULE])
def test_other_modules_define_what_they_did(mark: str) -> None:
    text = mark + pieces(3)[0].removeprefix(RENAMED_MODULE)
    assert named_by_content([text]) == [text]


def test_images_of_kept_modules_are_linked() -> None:
    kept, text = Kept(), NEXT_MODULE.join(pieces(3))
    first, second = (generate_code(text, CodeForm.OBJECT, keeper=kept) for _ in range(2))
    assert len(kept) == 2
    assert first.image == second.image
    assert answer(ObjectCode(second.image, second.exports)) == 2 * 9 + 3
