import ctypes
import gc
import os
import weakref

import pytest

from xlalite.backends.cpu.native.jit import CodeForm, compile_ir, generate_code
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions, host_fingerprint
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import IrSource
from xlalite.hlo.errors import CodegenError

ANSWER = "define i32 @answer() {\n  ret i32 42\n}\n"


def test_compiled_text_can_be_called(link_text, native_function):
    module = link_text(ANSWER)
    assert native_function(module, "answer", ctypes.c_int32)() == 42
    assert module.symbols == ("answer",)


def test_objects_are_linked_together(native_function):
    caller = compile_ir(
        IrSource("declare i32 @answer()\ndefine i32 @ask() {\n  %a = call i32 @answer()\n  ret i32 %a\n}")
    )
    module = link([caller, compile_ir(IrSource(ANSWER))])
    assert native_function(module, "ask", ctypes.c_int32)() == 42


def test_functions_are_imported_by_name_and_from_libc(native_function):
    seven = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 7)
    text = (
        "declare i64 @seven()\ndeclare i64 @labs(i64)\n"
        "define i64 @ask() {\n  %a = call i64 @seven()\n  %b = sub i64 0, %a\n"
        "  %c = call i64 @labs(i64 %b)\n  ret i64 %c\n}"
    )
    address = ctypes.cast(seven, ctypes.c_void_p).value
    module = link([compile_ir(IrSource(text))], {"seven": address})
    assert native_function(module, "ask", ctypes.c_int64)() == 7


def test_exports_are_definitions_that_others_may_use():
    text = (
        "@table = global i64 3\n@hidden = internal global i64 4\ndeclare void @elsewhere()\n"
        "define internal i64 @private() noinline {\n  %v = load i64, ptr @hidden\n  ret i64 %v\n}\n"
        "define i64 @public() {\n  %v = call i64 @private()\n  ret i64 %v\n}"
    )
    code = compile_ir(IrSource(text, {"note": [1, "two"]}))
    assert set(code.exports) == {"table", "public"}
    module = link([code])
    assert ctypes.c_int64.from_address(module.address("table")).value == 3
    assert code.record == {"note": [1, "two"]}


def test_unknown_symbol_is_an_error_that_names_what_there_is(link_text):
    module = link_text(ANSWER)
    with pytest.raises(CodegenError, match=r"no symbol 'question' .* it defines answer"):
        module.address("question")


@pytest.mark.parametrize(
    "text", ["define nonsense", "define i32 @f() {\n  ret i64 0\n}", "define void @f() {\n  br label %nowhere\n}"]
)
def test_wrong_text_is_an_error_that_quotes_llvm(text):
    with pytest.raises(CodegenError, match="LLVM refuses the module"):
        compile_ir(IrSource(text))


def test_verifier_finds_what_the_parser_accepts():
    use_before_definition = "define i32 @f() {\n  %b = add i32 %a, 1\n  %a = add i32 1, 1\n  ret i32 %b\n}"
    with pytest.raises(CodegenError, match="does not dominate"):
        compile_ir(IrSource(use_before_definition))


def test_missing_symbol_is_a_link_error():
    code = compile_ir(
        IrSource("declare void @xlalite_missing()\ndefine void @f() {\n  call void @xlalite_missing()\n  ret void\n}")
    )
    with pytest.raises(CodegenError, match="linking a module that defines f"):
        link([code])


def test_passes_run_in_the_given_order():
    text = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}"
    assert "add" in generate_code(text, CodeForm.IR, JitOptions(passes=())).optimized_ir
    assert "add" not in generate_code(text, CodeForm.IR, JitOptions(passes=(IrPass.INSTRUCTION_COMBINE,))).optimized_ir


@pytest.mark.parametrize("ir_pass", IrPass)
def test_every_pass_exists(ir_pass):
    assert "@answer" in generate_code(ANSWER, CodeForm.IR, JitOptions(passes=(ir_pass,))).optimized_ir


def test_assembly_shows_the_function():
    assert "answer:" in generate_code(ANSWER, CodeForm.ASSEMBLY).assembly


SUM = """define float @sum(ptr %a, i64 %n) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %s = phi float [ 0.0, %start ], [ %t, %loop ]
  %p = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %p
  %y = call float @llvm.fma.f32(float %x, float %x, float 1.0)
  %t = fadd float %s, %y
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret float %t
}
declare float @llvm.fma.f32(float, float, float)
"""


def test_forms_asked_for_together_are_those_asked_for_alone():
    together = generate_code(SUM, CodeForm.ALL)
    assert together.optimized_ir == generate_code(SUM, CodeForm.IR).optimized_ir
    assert together.assembly == generate_code(SUM, CodeForm.ASSEMBLY).assembly
    alone = generate_code(SUM, CodeForm.OBJECT)
    assert (together.image, together.exports) == (alone.image, alone.exports) == (alone.image, ("sum",))
    assert (alone.optimized_ir, alone.assembly) == ("", "")


def test_options_that_change_code_are_in_their_key():
    options = (JitOptions(), JitOptions(max_isa="AVX2"), JitOptions(passes=()), JitOptions(passes=(), quick=True))
    assert len({one.key() for one in options}) == 4


def test_fingerprint_names_compiler_and_machine():
    assert "llvmlite" in host_fingerprint()
    assert host_fingerprint() == host_fingerprint()


def test_compilation_is_deterministic():
    assert compile_ir(IrSource(ANSWER)).image == compile_ir(IrSource(ANSWER)).image


def test_dropped_module_is_unloaded_while_others_stay(native_function, link_text):
    kept = link_text(ANSWER)
    dropped = weakref.ref(link_text(ANSWER))
    gc.collect()
    assert dropped() is None
    code = compile_ir(IrSource(ANSWER))
    for _ in range(300):  # more than one of LLVM's linkers serves
        link([code])
    assert native_function(kept, "answer", ctypes.c_int32)() == 42


FORK = """
import os, threading
from xlalite.backends.cpu.native.jit import CodeForm, generate_code
from xlalite.backends.cpu.native.object_cache import ObjectCache
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, IrSource
cache, stop, numbers = ObjectCache.in_memory(), threading.Event(), iter(range(10**9))
def compile_one():
    text = f"define i32 @f() {{ ret i32 {next(numbers)} }}"
    return cache.get_or_compile((text,), lambda: IrSource(text))
def keep_compiling():
    text = NEXT_MODULE.join(f"define i32 @f{number}() {{ ret i32 {number} }}" for number in range(9))
    while not stop.is_set():
        compile_one()
        generate_code(text, CodeForm.OBJECT, threads=3)
other = threading.Thread(target=keep_compiling)
other.start()
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        compile_one()
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
stop.set()
other.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_child_forked_during_a_compilation_can_compile(run_python):
    output, errors = run_python(FORK, PYTHONWARNINGS="ignore").communicate(timeout=20)
    assert output.strip() == str([0] * 6), errors


INTERRUPTED = """
import threading
from xlalite.backends.codegen.llvm import library
from xlalite.backends.cpu.native.jit import CodeForm, generate_code
from xlalite.backends.cpu.native.object_code import NEXT_MODULE
functions = vars(library._library)
counts = dict.fromkeys(("ContextCreate", "ContextDispose", "ParseAssembly", "DisposeModule"), 0)
def counted(name, function):
    def called(*arguments):
        counts[name] += 1
        return function(*arguments)
    return called
for name in counts:
    functions[f"LLVMPY_{{name}}"] = counted(name, functions[f"LLVMPY_{{name}}"])
text = NEXT_MODULE.join(f"define i32 @f{{n}}() {{{{ ret i32 {{n}} }}}}" + 2000 * " " for n in range(9))
generate_code(text, CodeForm.OBJECT)
function = functions["LLVMPY_{name}"]
def interrupted(*arguments):
    if threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
    return function(*arguments)
functions["LLVMPY_{name}"] = interrupted
try:
    generate_code(text, CodeForm.OBJECT, threads=2)
except KeyboardInterrupt:
    print("interrupted")
other = threading.Thread(target=generate_code, args=(text, CodeForm.OBJECT))
other.start()
other.join()
print("compiled", counts["ContextCreate"] - counts["ContextDispose"], {modules})
"""


@pytest.mark.parametrize("name", ["ParseAssembly", "VerifyModule", "TargetMachineEmitToMemory"])
def test_interruption_leaves_llvm_to_others_and_nothing_behind(run_python, name):
    modules = "0" if name == "ParseAssembly" else 'counts["ParseAssembly"] - counts["DisposeModule"]'
    output, errors = run_python(INTERRUPTED.format(name=name, modules=modules)).communicate(timeout=20)
    assert output.split() == ["interrupted", "compiled", "0", "0"], errors
