"""Small entry functions in LLVM text, and ways to run them."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from xlalite.backends.cpu.native.call.dispatch import make_call
from xlalite.backends.cpu.native.call.python_call import PythonCall
from xlalite.backends.cpu.native.call.signature import CallSignature, EntryPoint
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import LinkedModule, link
from xlalite.backends.cpu.native.object_code import IrSource
from xlalite.backends.cpu.native.thread_pool import get_pool, runtime_imports
from xlalite.hlo.types.shape import Shape

MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
HEAD = "define i32 @entry(ptr %params, ptr %results, ptr %arena, ptr %context) {\n"


@dataclass(frozen=True)
class EntryTexts:
    """Writes entry functions."""

    def copy(self, sizes: Sequence[int]) -> str:
        """Output i is a copy of input i, so many bytes."""
        lines = []
        for i, size in enumerate(sizes):
            lines += [
                f"  %pa{i} = getelementptr ptr, ptr %params, i64 {i}",
                f"  %p{i} = load ptr, ptr %pa{i}",
                f"  %ra{i} = getelementptr ptr, ptr %results, i64 {i}",
                f"  %r{i} = load ptr, ptr %ra{i}",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %r{i}, ptr %p{i}, i64 {size}, i1 false)",
            ]
        return MEMCPY + HEAD + "\n".join(lines) + "\n  ret i32 0\n}\n"

    def add(self, count: int) -> str:
        """The sum of two f32 arrays; element by element, so the result may be an input."""
        return HEAD + (
            "entry:\n"
            "  %a = load ptr, ptr %params\n"
            "  %ba = getelementptr ptr, ptr %params, i64 1\n"
            "  %b = load ptr, ptr %ba\n"
            "  %r = load ptr, ptr %results\n"
            "  br label %next\n"
            "next:\n"
            "  %i = phi i64 [ 0, %entry ], [ %j, %body ]\n"
            f"  %more = icmp slt i64 %i, {count}\n"
            "  br i1 %more, label %body, label %done\n"
            "body:\n"
            "  %xa = getelementptr float, ptr %a, i64 %i\n"
            "  %ya = getelementptr float, ptr %b, i64 %i\n"
            "  %za = getelementptr float, ptr %r, i64 %i\n"
            "  %x = load float, ptr %xa\n"
            "  %y = load float, ptr %ya\n"
            "  %z = fadd float %x, %y\n"
            "  store float %z, ptr %za\n"
            "  %j = add i64 %i, 1\n"
            "  br label %next\n"
            "done:\n"
            "  ret i32 0\n"
            "}\n"
        )

    def copy_through_arena(self, size: int) -> str:
        """Output 0 is input 0, which goes to the arena and stays there for a while."""
        return (
            MEMCPY
            + "declare i32 @sched_yield()\n"
            + HEAD
            + (
                "  %p = load ptr, ptr %params\n"
                "  %r = load ptr, ptr %results\n"
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %arena, ptr %p, i64 {size}, i1 false)\n"
                + "  call i32 @sched_yield()\n"
                * 3
                + f"  call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %arena, i64 {size}, i1 false)\n"
                "  ret i32 0\n"
                "}\n"
            )
        )

    def status(self, number: int) -> str:
        """Fails with a number."""
        return HEAD + f"  ret i32 {number}\n}}\n"


class ItWentWrong:
    """What the result 1 of a tested entry function means."""

    def explain(self) -> tuple[str, BaseException | None]:
        return "it went wrong", None


@pytest.fixture(scope="session")
def entry_texts() -> EntryTexts:
    return EntryTexts()


@pytest.fixture(scope="session")
def link_text() -> Callable[[str], LinkedModule]:
    """Compiles and links LLVM text, past every cache."""
    return lambda text: link([compile_ir(IrSource(text))], runtime_imports())


@pytest.fixture(params=["native", "python"])
def build_call(request: pytest.FixtureRequest, link_text: Callable[[str], LinkedModule]):
    """Makes a callable of LLVM text, once the native way and once in Python."""

    def build(
        text: str,
        inputs: Sequence[Shape],
        outputs: Sequence[Shape],
        donations: Sequence[tuple[int, int]] = (),
        returns_tuple: bool = False,
        arena_bytes: int = 0,
        releases_lock: bool = False,
    ) -> PythonCall:
        signature = CallSignature(tuple(inputs), tuple(outputs), returns_tuple, tuple(donations), "tested")
        entry = EntryPoint(link_text(text), "entry", get_pool(1), arena_bytes, releases_lock, (ItWentWrong(),))
        return make_call(signature, entry) if request.param == "native" else PythonCall(signature, entry)

    return build


@pytest.fixture
def native_function() -> Callable[..., Callable[..., object]]:
    """A ctypes function of a linked module; the module must be held by the test."""

    def function(module: LinkedModule, symbol: str, result: type | None, *arguments: type) -> Callable[..., object]:
        return ctypes.CFUNCTYPE(result, *arguments)(module.address(symbol))

    return function


@pytest.fixture
def run_python(repository: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts another Python on a program text, with further environment variables; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, **environment: str) -> subprocess.Popen[str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("XLALITE")}
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=repository,
            env={**inherited, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # one group with the children it forks
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
