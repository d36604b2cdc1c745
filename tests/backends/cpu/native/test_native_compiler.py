import inspect
import os
import threading
import time

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import AS_WRITTEN, ModuleBuilder, TargetInfo
from xlalite.backends.cpu.compilation.compilation import Compilation, Step
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission.module_emitter import emit_module
from xlalite.backends.cpu.native import native_compiler
from xlalite.backends.cpu.native.content_names import ContentNames, named_by_content
from xlalite.backends.cpu.native.jit import CodeForm, generate_code
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions
from xlalite.backends.cpu.native.native_compiler import NativeCompiler
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, RENAMED_MODULE, SHARED_MODULE, joined
from xlalite.hlo.errors import CodegenError

OPTIMIZED = (
    f"{SHARED_MODULE}define hidden i64 @twice(i64 %0) {{\n  %slot = alloca i64\n  store i64 %0, ptr %slot\n"
    "  %v = load i64, ptr %slot\n  %w = add i64 %v, %v\n  ret i64 %w\n}\n"
)
MARKED = f"{SHARED_MODULE}{AS_WRITTEN}define hidden i64 @next(i64 %0) {{\n  %v = add i64 %0, 1\n  ret i64 %v\n}}\n"
ENTRY = (
    "declare i64 @twice(i64)\ndeclare i64 @next(i64)\ndefine i64 @entry(i64 %0) {\n  %v = call i64 @twice(i64 %0)\n"
    "  %w = call i64 @next(i64 %v)\n  ret i64 %w\n}\n"
)
PROGRAM = NEXT_MODULE.join((ENTRY, OPTIMIZED, MARKED))


def begun(offered, options=None, keeper=None):
    """A thread that has begun with all that was offered."""
    early = NativeCompiler(options or JitOptions(), keeper)
    for text in offered:
        early.offer(text)
    deadline = time.monotonic() + 20
    while len(early.begun) < len(offered) and time.monotonic() < deadline:
        time.sleep(0.001)  # nothing tells Python that a job is taken
    return early


@pytest.mark.parametrize("passes", [JitOptions().passes, (), *((each,) for each in IrPass)], ids=str)
@pytest.mark.parametrize("quick", [False, True])
def test_code_is_the_same_as_by_the_caller(passes, quick):
    options = JitOptions(passes, quick=quick)
    early = begun((OPTIMIZED, MARKED), options)
    assert early.begun == {OPTIMIZED, MARKED}
    code = generate_code(PROGRAM, CodeForm.OBJECT, options, compiler=early)
    assert code == generate_code(PROGRAM, CodeForm.OBJECT, options)
    codes = NativeCompiler(options, None).finish((ENTRY, OPTIMIZED, MARKED, ENTRY), 2)
    assert set(codes) == {ENTRY, OPTIMIZED, MARKED}
    assert all(each.compile_ms > 0 for each in codes.values())
    assert joined([codes[text].image for text in (ENTRY, OPTIMIZED, MARKED)]) == code.image


@pytest.mark.parametrize("max_isa", ["SSE4_2", "AVX2"])
def test_code_is_for_the_machine_that_the_options_name(max_isa):
    text = f"{SHARED_MODULE}define hidden <8 x float> @f(<8 x float> %0) {{\n  ret <8 x float> %0\n}}\n"
    options = JitOptions(max_isa=max_isa)
    early = begun([text], options)
    assert early.begun == {text}
    assert generate_code(text, CodeForm.OBJECT, options, compiler=early) == generate_code(
        text, CodeForm.OBJECT, options
    )


@pytest.mark.parametrize(
    "refused",
    [
        "define hidden void @f() {\n  ret i32 %nothing\n}\n",
        "define hidden i32 @f(i1 %0) {\nentry:\n  br i1 %0, label %a, label %b\na:\n  %v = add i32 1, 1\n"
        "  br label %b\nb:\n  ret i32 %v\n}\n",
        "",
        "define",
    ],
)
def test_refused_module_is_the_error_that_it_always_is(refused):
    program = NEXT_MODULE.join((SHARED_MODULE + refused, OPTIMIZED))
    early = begun((SHARED_MODULE + refused, OPTIMIZED))
    if not refused:
        assert generate_code(program, CodeForm.OBJECT, compiler=early).image
        return
    with pytest.raises(CodegenError, match="LLVM refuses the module") as found:
        generate_code(program, CodeForm.OBJECT, threads=2, compiler=early)
    assert set(NativeCompiler(JitOptions(), None).finish(program.split(NEXT_MODULE), 1)) == {OPTIMIZED}
    with pytest.raises(CodegenError) as expected:
        generate_code(program, CodeForm.OBJECT)
    assert str(found.value) == str(expected.value)


def test_what_is_not_begun_is_made_by_all():
    texts = [OPTIMIZED.replace("@twice", f"@twice{number}") for number in range(50)]
    early = NativeCompiler(JitOptions(), None)
    for text in texts[:40]:
        early.offer(text)
    code = generate_code(NEXT_MODULE.join(texts), CodeForm.OBJECT, threads=3, compiler=early)
    assert code.image == generate_code(NEXT_MODULE.join(texts), CodeForm.OBJECT).image


def test_what_was_begun_in_vain_ends():
    early = begun((OPTIMIZED, MARKED))
    assert set(early.end()) == {OPTIMIZED, MARKED}
    assert not early.end()


def test_nothing_offered_starts_nothing():
    before = os.listdir("/proc/self/task")
    early = NativeCompiler(JitOptions(), None)
    assert not early.begun
    assert os.listdir("/proc/self/task") == before
    assert generate_code(PROGRAM, CodeForm.OBJECT, compiler=early) == generate_code(PROGRAM, CodeForm.OBJECT)
    assert not early.end()


class Keeper:
    """Keeps all in a dictionary, and counts the questions."""

    def __init__(self):
        self.kept = {}
        self.asked = []

    def find(self, text):
        self.asked.append(text)
        return self.kept.get(text)

    def keep(self, text, image, compile_ms):
        assert compile_ms > 0
        self.kept[text] = image


def test_kept_modules_are_asked_for_once_and_not_compiled():
    renamed = RENAMED_MODULE + OPTIMIZED.removeprefix(SHARED_MODULE).replace("@twice", "@half")
    program = NEXT_MODULE.join((PROGRAM, renamed))
    keeper, plain = Keeper(), Keeper()
    first = generate_code(program, CodeForm.OBJECT, keeper=keeper, compiler=begun([OPTIMIZED, renamed], keeper=keeper))
    assert first == generate_code(program, CodeForm.OBJECT, keeper=plain)
    assert keeper.kept == plain.kept
    assert sorted(keeper.asked) == sorted(plain.asked) == sorted(named_by_content(program.split(NEXT_MODULE))[1:])
    early = NativeCompiler(JitOptions(), keeper)
    early.offer(OPTIMIZED)
    early.offer(renamed)
    assert generate_code(program, CodeForm.OBJECT, keeper=keeper, compiler=early) == first
    assert not early.begun


def test_a_short_kernel_that_is_all_of_a_program_is_offered_and_not_kept(monkeypatch):
    offered, keeper = [], Keeper()
    monkeypatch.setattr(Compilation, "_keeper", lambda self: keeper)
    offer = NativeCompiler.offer
    monkeypatch.setattr(NativeCompiler, "offer", lambda self, text: (offered.append(text), offer(self, text)))
    line = "ROOT y = f32[1000] {}(x)\n}}\n"
    text = "HloModule m\nENTRY e {\n x = f32[1000] parameter(0)\n"
    compiled(xl.hlo.parse(text + line.format("tanh")))
    compiled(xl.hlo.parse(text + line.format("tanh")))
    assert "@kernel.y" in offered[-1]
    assert not keeper.asked
    assert not keeper.kept
    both = "z = f32[1000] sort(x), dimensions={0}, to_apply=lt\n " + line.format("tanh").replace("(x)", "(z)")
    compare = "lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
    compiled(xl.hlo.parse(text.replace("ENTRY", compare + "ENTRY") + both))
    assert keeper.kept


def test_a_long_kernel_that_is_all_of_a_program_is_kept(monkeypatch):
    keeper = Keeper()
    monkeypatch.setattr(Compilation, "_keeper", lambda self: keeper)
    text = """HloModule m
ENTRY e {
  x = f32[2,30,30,64] parameter(0)
  k = f32[3,3,1,64] parameter(1)
  ROOT y = f32[2,30,30,64] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f,
    feature_group_count=64
}
"""
    compiled(xl.hlo.parse(text))
    assert len(keeper.kept) == 1
    compiled(xl.hlo.parse(text.replace("y =", "z =")))
    assert len(keeper.kept) == 1
    assert len(keeper.asked) == 2


def deep(count, seed=0):
    """A module of many kernels: products, and functions of the sums of their rows."""
    lines = ["%x0 = f32[40,40] parameter(0)", "%zero = f32[] constant(0)"]
    for n in range(count):
        function = ("tanh", "cosine", "sine", "logistic")[(n + seed) % 4]
        lines += [
            f"%d{n} = f32[40,40] dot(%x{n}, %x{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"%s{n} = f32[40] reduce(%d{n}, %zero), dimensions={{1}}, to_apply=%add",
            f"%f{n} = f32[40] {function}(%s{n})",
            f"%c{n} = f32[] constant({n + seed}.5)",
            f"%e{n} = f32[40,40] broadcast(%c{n}), dimensions={{}}",
            f"%b{n} = f32[40,40] broadcast(%f{n}), dimensions={{{n % 2}}}",
            f"%m{n} = f32[40,40] divide(%b{n}, %e{n})",
            f"%k{n} = f32[40,40] maximum(%x{n}, %m{n})",
            f"%x{n + 1} = f32[40,40] tanh(%k{n})",
        ]
    body = "\n".join(lines)
    return xl.hlo.parse(
        "HloModule deep\n%add (a: f32[], b: f32[]) -> f32[] {\n%a = f32[] parameter(0)\n%b = f32[] parameter(1)\n"
        f"ROOT %s = f32[] add(%a, %b)\n}}\nENTRY %main (x0: f32[40,40]) -> f32[40,40] {{\n{body}\n"
        f"ROOT %r = f32[40,40] negate(%x{count})\n}}\n"
    )


def compiled(module, **options):
    return get_backend("cpu").compile(module, CompileOptions(**{"num_threads": 2, "use_cache": False, **options}))


def test_modules_are_offered_as_they_are_in_the_program():
    compilation = Compilation(CompileRequest.of(deep(24), CompileOptions(num_threads=2)))
    for step in compilation.steps():
        if step is Step.ASSIGNED:
            break
    offered = []
    emitted = emit_module(
        compilation.optimized,
        compilation.assignment,
        ModuleBuilder("deep", TargetInfo.host()),
        num_threads=2,
        offer=offered.append,
    )
    texts = emitted.text.split(NEXT_MODULE)
    assert set(offered) <= set(texts)
    assert len(set(offered)) == len(offered)
    assert sum(text.startswith(RENAMED_MODULE) for text in offered) > 1
    assert {text for text in texts if text.startswith(SHARED_MODULE)} <= set(offered)
    names, early = ContentNames(), []
    for text in offered:
        names.learn(text)
        early.append(names.renamed(text))
    assert set(early) <= set(named_by_content(texts)) == set(named_by_content(texts, names))


def test_results_are_those_of_one_thread():
    argument = np.random.default_rng(0).standard_normal((40, 40), np.float32)
    module = deep(24)
    assert np.array_equal(compiled(module)(argument), compiled(module, num_threads=1)(argument))


STRESS = (
    """
import os, random, signal, threading, time
import numpy as np
import xlalite as xl
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.native.native_compiler import NativeCompiler
"""
    + "\n".join(map(inspect.getsource, (deep, compiled)))
    + """
argument = np.random.default_rng(0).standard_normal((40, 40), np.float32)
modules = [deep(12, seed) for seed in range(3)]
expected = [compiled(module, num_threads=1)(argument) for module in modules]
def check(seed):
    assert np.array_equal(compiled(modules[seed])(argument), expected[seed])
begun, end = [], NativeCompiler.end
def watched(compiler):
    codes = end(compiler)
    begun.append(len(codes))
    return codes
NativeCompiler.end = watched
"""
)


def test_many_threads_compile_at_once(run_python):
    program = """
done = []
def work(seed):
    for _ in range(2):
        check(seed % 3)
    done.append(seed)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(done), sum(begun) > 0)
"""
    output, errors = run_python(STRESS + program).communicate(timeout=60)
    assert output.strip() == "[0, 1, 2, 3] True", errors


def test_no_thread_is_made_while_a_process_forks():
    early = NativeCompiler(JitOptions(), None)
    other = threading.Thread(target=early.offer, args=(OPTIMIZED,))
    with native_compiler._all:
        other.start()
        other.join(0.1)
        assert other.is_alive()
        assert not early.begun
    other.join(20)
    deadline = time.monotonic() + 20
    while not early.begun and time.monotonic() < deadline:
        time.sleep(0.001)  # nothing tells Python that a job is taken
    assert early.end().keys() == {OPTIMIZED}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_child_forked_meanwhile_can_compile(run_python):
    program = """
stop = threading.Event()
def work():
    while not stop.is_set():
        check(0)
other = threading.Thread(target=work)
other.start()
states = []
for number in range(4):
    time.sleep(0.03 * number)  # forks meet other moments of a compilation
    child = os.fork()
    if child == 0:
        check(1)
        os._exit(0)
    states.append(os.waitpid(child, 0)[1])
stop.set()
other.join()
print(states, sum(begun) > 0)
"""
    output, errors = run_python(STRESS + program, PYTHONWARNINGS="ignore").communicate(timeout=60)
    assert output.strip() == f"{[0] * 4} True", errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_compilation_goes_on_in_a_child_that_was_forked_in_it(run_python):
    program = """
children, offer = [], NativeCompiler.offer
def forking(early, text):
    offer(early, text)
    if early.begun and os.getpid() == parent and len(children) < 3:
        children.append(os.fork())
parent = os.getpid()
NativeCompiler.offer = forking
for seed in (0, 1):
    check(seed)
    if os.getpid() != parent:
        check(2)
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children])
"""
    output, errors = run_python(STRESS + program, PYTHONWARNINGS="ignore").communicate(timeout=60)
    assert output.strip() == str([0] * 3), errors


def test_interrupted_compilation_leaves_nothing_running(run_python):
    program = """
random.seed(0)
main, interrupted = threading.get_ident(), 0
for number in range(6):
    timer = threading.Timer(random.uniform(0, 0.25), signal.pthread_kill, [main, signal.SIGINT])
    try:
        timer.start()
        while timer.is_alive():
            check(number % 3)
    except KeyboardInterrupt:
        interrupted += 1
check(1)
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join(20)
print(interrupted > 1, threading.active_count(), sum(begun) > 0)
"""
    output, errors = run_python(STRESS + program).communicate(timeout=60)
    assert output.strip() == "True 1 True", errors


def test_process_ends_while_a_thread_compiles(run_python):
    program = """
def work():
    while True:
        check(0)
threading.Thread(target=work, daemon=True).start()
while not sum(begun):
    time.sleep(0.01)
time.sleep(0.05)  # the test puts other moments here
print("ends")
"""
    processes = [run_python(STRESS + program.replace("0.05", str(0.01 * number))) for number in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert (output.strip(), process.returncode) == ("ends", 0), errors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes have no processors of their own here")
def test_compilation_works_on_one_processor(run_python):
    program = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for seed in range(3):
    check(seed)
print(sum(begun) > 0, len(os.sched_getaffinity(0)))
"""
    output, errors = run_python(STRESS + program).communicate(timeout=60)
    assert output.strip() == "True 1", errors


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes have no processors of their own here")
def test_a_thread_that_ends_at_once_leaves_its_maker_all_processors():
    before = os.sched_getaffinity(0)
    try:
        for _ in range(1000):
            early = NativeCompiler(JitOptions(), None)
            early.finish((), 1)
            early.offer(AS_WRITTEN)
            early.end()
            assert os.sched_getaffinity(0) == before
    finally:
        os.sched_setaffinity(0, before)


def test_an_end_that_was_interrupted_ends_once(run_python):
    program = """
import signal
def interrupted(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupted)
lines = (f"  %v{n + 1} = mul i64 %v{n}, {2 * n + 3}" for n in range(50_000))
first = begun(["\\n".join(("define hidden i64 @f(i64 %v0) {", *lines, "  ret i64 %v50000", "}", ""))])
signal.setitimer(signal.ITIMER_REAL, 0.01)
try:
    print("no code so soon:", first.end())
except KeyboardInterrupt:
    second = begun(["define hidden void @f() {\\n  ret void\\n}\\n"])  # where the thread was that ended
    print(*(len(each.end()) for each in (first, second, first)))
"""
    imports = """
import time
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.native_compiler import NativeCompiler
"""
    output, errors = run_python(imports + inspect.getsource(begun) + program).communicate(timeout=60)
    assert output.strip() == "1 1 0", errors
