"""A large program is several LLVM modules, compiled one by one and linked together."""

import ctypes
import locale
import threading
from collections.abc import Sequence

import pytest

from xlalite.backends.codegen.llvm import BRIEF, I32, I64, FunctionBuilder, ModuleBuilder, Value
from xlalite.backends.cpu.native.content_names import named_by_content
from xlalite.backends.cpu.native.jit import CodeForm, compile_ir, generate_code
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.native_compiler import NativeCompiler
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, RENAMED_MODULE, IrSource, ObjectCode, joined
from xlalite.hlo.errors import CodegenError


def texts(most_lines: int) -> list[str]:
    """Of functions that call each other, one of them internal, with loops and a constant."""
    module = ModuleBuilder("several")
    internal = module.function("twice", I32, (I32,), linkage="internal")
    internal.ret(internal.mul(internal.parameters[0], 2))
    first = module.function("first", I32, linkage="hidden")
    table = module.constant_bytes(bytes([21, 0, 0, 0]))
    first.ret(first.call(internal.function, first.load(I32, table, 4)))
    entry = module.function("answer", I32)
    total = entry.alloca(I64, align=8)
    entry.store(entry.constant(I64, 0), total, 8)
    with entry.loop(0, 3) as index:
        entry.store(entry.add(entry.load(I64, total, 8), index), total, 8)
    again = entry.call(internal.function, entry.call(first.function))
    entry.ret(entry.add(again, entry.trunc(entry.load(I64, total, 8), I32)))
    return module.texts(most_lines)


def test_pieces_are_compiled_apart_and_linked() -> None:
    assert len(texts(1000)) == 1
    assert len(texts(1)) == 2
    for text in (NEXT_MODULE.join(texts(1)), texts(1000)[0]):
        code = compile_ir(IrSource(text))
        assert len(code.images) == text.count(NEXT_MODULE) + 1
        assert code.exports == ("answer",)
        module = link([code])
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(module.address("answer"))() == 21 * 2 * 2 + 3


def test_a_piece_holds_what_it_names_and_nothing_else() -> None:
    first, answer = texts(1)
    assert "constant" in first
    assert "constant" not in answer
    assert "define internal i32 @twice" in first
    assert "define internal i32 @twice" in answer
    assert "declare i32 @first()" in answer


def test_bytes_of_constants_are_no_names() -> None:
    module = ModuleBuilder("bytes")
    entry = module.function("answer", I32)
    helper = module.function("helper", I32, (I32,), linkage="hidden")
    helper.ret(helper.add(*helper.parameters, 1))
    table = module.constant_bytes(b"\x05\0\0@")
    with entry.loop(0, 1):  # whose latch has text in quotation marks
        number = entry.call(helper.function, entry.load(I32, table, 4))
        entry.store(number, table, 4)
    entry.ret(0)
    caller, callee = module.texts(1)
    assert "@helper" in caller
    assert "@helper" not in named_by_content([caller, RENAMED_MODULE + callee])[0]


def test_pieces_that_are_cut_early_are_pieces_of_the_program() -> None:
    module = ModuleBuilder("early")
    entry = module.function("answer", I32)
    number, cut = entry.constant(I32, 1), list[str]()
    twice = module.function("twice", I32, (I32,), linkage="internal")
    twice.ret(twice.mul(*twice.parameters, 2))
    for stem in "abcdefgh":
        first = module.function_count
        fb = module.function(stem, I32, (I32,), linkage="hidden")
        inner = module.function(f"inner.{stem}", I32, (I32,), linkage="internal")
        (total,) = inner.parameters
        for _ in range(100):
            total = inner.add(inner.xor(total, 5), 1)
        inner.ret(total)
        fb.ret(fb.call(inner.function, fb.call(twice.function, *fb.parameters)))
        number = entry.call(fb.function, number)
        cut += module.cut(first, 1000)
    entry.ret(number)
    pieces = module.texts(1000, threads=2)
    assert 1 < len(cut) < 8
    assert pieces[-len(cut) :] == cut
    assert len(pieces) > len(cut)
    linked = link([compile_ir(IrSource(NEXT_MODULE.join(pieces)))])
    value = 1
    for _ in range(8):
        value *= 2
        for _ in range(100):
            value = (value ^ 5) + 1
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(linked.address("answer"))() == value


def test_every_piece_is_shown() -> None:
    text = NEXT_MODULE.join(texts(1))
    shown = generate_code(text, CodeForm.IR | CodeForm.ASSEMBLY)
    assert shown.optimized_ir.count(NEXT_MODULE) == shown.assembly.count(NEXT_MODULE) == 1
    assert "answer:" in shown.assembly
    assert not shown.image


def test_code_does_not_depend_on_the_number_of_threads() -> None:
    text = NEXT_MODULE.join([*texts(1), *(texts(1000)[0].replace("answer", f"answer{number}") for number in range(9))])
    alone = generate_code(text, CodeForm.OBJECT)
    assert len(alone.exports) == 10
    for threads in (2, 5):
        compiler = NativeCompiler(JitOptions(), None)
        made = generate_code(text, CodeForm.OBJECT, threads=threads, compiler=compiler)
        assert (made.image, made.exports) == (alone.image, alone.exports)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_module_that_llvm_refuses_is_told_by_any_thread(threads: int) -> None:
    wrong = [*texts(1), "define i32 @wrong() {\n ret i64 0\n}\n", *texts(1)]
    for text in (NEXT_MODULE.join(wrong), NEXT_MODULE.join(wrong[::-1])):
        with pytest.raises(CodegenError, match="LLVM refuses the module"):
            generate_code(text, CodeForm.OBJECT, threads=threads, compiler=NativeCompiler(JitOptions(), None))


def test_an_archive_gives_its_members_back() -> None:
    images = (b"odd", b"even", b"")
    assert ObjectCode(joined(images), ()).images == images
    assert ObjectCode(joined(images[:1]), ()).images == images[:1]


def test_the_locale_of_the_process_stays_while_a_module_is_shown() -> None:
    before, seen = locale.setlocale(locale.LC_ALL), set[str]()

    def show() -> None:
        for number in range(10):
            generate_code(texts(1000)[0].replace("first", f"first{number}"), CodeForm.IR)

    threads = [threading.Thread(target=show) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.add(locale.setlocale(locale.LC_ALL))
    assert seen | {locale.setlocale(locale.LC_ALL)} == {before}


@pytest.mark.parametrize("calls", [1, 200])
def test_functions_that_only_call_are_not_optimised_and_apart_if_they_are_long(calls: int) -> None:
    module = ModuleBuilder("apart")
    once = module.function("once", I32)
    once.only_calls()
    square = module.function("square", I32, (I32,), linkage="hidden")
    square.ret(square.mul(*square.parameters * 2))
    slot = once.alloca(I32, align=4)
    once.store(once.constant(I32, 3), slot, 4)
    for _ in range(calls):
        result = once.call(square.function, once.load(I32, slot, 4))
    once.ret(result)
    pieces = module.texts(1000)
    assert [piece.startswith(BRIEF) for piece in pieces] == ([False] if calls == 1 else [True, False])
    assert "alloca" in generate_code(NEXT_MODULE.join(pieces), CodeForm.IR).optimized_ir
    linked = link([compile_ir(IrSource(NEXT_MODULE.join(pieces)))])
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(linked.address("once"))() == 9


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_much_code_are_pieces_for_other_threads(threads: int) -> None:
    def emit(fb: FunctionBuilder, held: Sequence[Value]) -> Value:
        (sum_,) = held
        for _ in range(200):
            sum_ = fb.add(fb.mul(sum_, 3), 1)
        return sum_

    module = ModuleBuilder("parts")
    twice = module.function("twice", I32, (I32,))
    once = twice.apart("step", twice.parameters, emit, I32, key="one")
    twice.ret(twice.apart("step", [once], emit, I32, key="one"))
    pieces = module.texts(10_000, threads)
    assert len(pieces) == threads
    assert "".join(pieces).count("define ") == 2
    linked = link([compile_ir(IrSource(NEXT_MODULE.join(pieces)))])
    expected = 5
    for _ in range(400):
        expected = (expected * 3 + 1) % (1 << 32)
    assert ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(linked.address("twice"))(5) == expected


@pytest.mark.parametrize(("lines", "pieces"), [(120, 1), (400, 2)])
def test_brief_functions_are_in_one_piece_for_several_threads_too(lines: int, pieces: int) -> None:
    module = ModuleBuilder("brief")
    for name in ("one", "two"):
        fb = module.function(name, I32, (I32,), linkage="hidden")
        fb.only_calls()
        (sum_,) = fb.parameters
        for _ in range(lines):
            sum_ = fb.add(sum_, 1)
        fb.ret(sum_)
    improved = module.function("improved", I32, (I32,), linkage="hidden")
    improved.ret(improved.parameters[0])
    assert [piece.startswith(BRIEF) for piece in module.texts(1000, threads=2)] == [True] * pieces + [False]
