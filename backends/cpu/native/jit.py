"""LLVM text to object code, which `linker.py` brings into this process.

The only module that drives LLVM's compiler. The two steps are apart, so that an object can come from a cache:
`compile_ir` gives an `ObjectCode` (bytes that can be stored), `link` gives a `LinkedModule` (addresses that can be
called). Importing this module starts nothing; LLVM wakes up at the first compilation.
"""

from __future__ import annotations

import enum
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from xlalite.backends.codegen.llvm import AS_WRITTEN, BRIEF, TargetInfo
from xlalite.backends.codegen.llvm.library import ask, bytes_of, call, describing
from xlalite.backends.cpu.native.content_names import ContentNames, named_by_content
from xlalite.backends.cpu.native.fork_lock import hold_over_forks
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions
from xlalite.backends.cpu.native.object_code import (
    NEXT_MODULE,
    RENAMED_MODULE,
    SHARED_MODULE,
    IrSource,
    ObjectCode,
    joined,
)
from xlalite.backends.cpu.native.side_by_side import side_by_side
from xlalite.hlo.errors import CodegenError
from xlalite.hlo.records import dataclass


class CodeForm(enum.Flag):
    """What LLVM makes of IR: the IR after its passes, assembly, object code."""

    NONE = 0
    IR = enum.auto()
    ASSEMBLY = enum.auto()
    OBJECT = enum.auto()
    ALL = IR | ASSEMBLY | OBJECT


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """What LLVM made of IR; what was not wanted is empty.

    Attributes:
        optimized_ir: The IR after LLVM's passes.
        assembly: The assembly that the object code has, for people to read.
        image: The object file, or an archive of several.
        exports: Names of the functions and variables that the object code defines for others.
        compile_ms: How long one module took.
    """

    optimized_ir: str = ""
    assembly: str = ""
    image: bytes = b""
    exports: tuple[str, ...] = ()
    compile_ms: float = 0.0


class Keeper(Protocol):
    """Who has object code of modules that programs share."""

    def find(self, text: str) -> bytes | None:
        """The object code of a module, if it was kept."""

    def keep(self, text: str, image: bytes, compile_ms: float) -> None:
        """Takes object code that was made in so many milliseconds."""


class Compiler(Protocol):
    """Makes object code without the interpreter, and has begun with some modules; see `native_compiler.py`."""

    @property
    def found(self) -> Mapping[str, bytes | None]:
        """What the keeper had of modules that it was asked for."""

    @property
    def names(self) -> ContentNames:
        """The names of what modules define, of which it knows some."""

    def finish(self, texts: Iterable[str], threads: int) -> Mapping[str, GeneratedCode]:
        """The code of modules, but for what LLVM refuses."""


def generate_code(
    text: str,
    wanted: CodeForm,
    options: JitOptions | None = None,
    keeper: Keeper | None = None,
    threads: int = 1,
    compiler: Compiler | None = None,
) -> GeneratedCode:
    """Parses and optimises LLVM IR for this host, once, and makes of it what is wanted.

    Args:
        text: One module or several.
        wanted: What to make.
        options: How.
        keeper: Who has object code of modules that programs share.
        threads: How many modules the compiler may make at once.
        compiler: Who makes object code, and has begun with it, with the same options and keeper.

    Raises:
        CodegenError: The text is not valid LLVM IR; the message quotes LLVM.
    """
    options, texts = options or JitOptions(), text.split(NEXT_MODULE)
    found: dict[str, bytes | None] = {}
    keeps = keeper if wanted is CodeForm.OBJECT else None
    if keeps is not None:
        texts = named_by_content(texts, compiler.names if compiler is not None else None)
        known = compiler.found if compiler is not None else {}
        found = {one: known[one] if one in known else keeps.find(one) for one in texts if one.startswith(KEPT)}
    kept = {one: GeneratedCode(image=image) for one, image in found.items() if image is not None}
    missing = [one for one in texts if one not in kept]
    made = _generate_all(missing, wanted, options, threads, compiler)
    for one in missing:
        if keeps is not None and one in found:
            keeps.keep(one, made[one].image, made[one].compile_ms)
    codes = [kept.get(one) or made[one] for one in texts]
    return GeneratedCode(
        NEXT_MODULE.join(code.optimized_ir for code in codes),
        NEXT_MODULE.join(code.assembly for code in codes),
        joined([code.image for code in codes]) if CodeForm.OBJECT in wanted else b"",
        tuple(name for code in codes for name in code.exports),
    )


def compile_ir(source: IrSource, options: JitOptions | None = None) -> ObjectCode:
    """The object code of a module for this host.

    Raises:
        CodegenError: The text is not valid LLVM IR; the message quotes LLVM.
    """
    code = generate_code(source.text, CodeForm.OBJECT, options)
    return ObjectCode(code.image, code.exports, source.record, source.constants, source.summary)


def _generate_all(
    texts: Sequence[str], wanted: CodeForm, options: JitOptions, threads: int, compiler: Compiler | None
) -> Mapping[str, GeneratedCode]:
    """The code of each text."""
    with _generating:
        made = dict(compiler.finish(texts, threads)) if compiler is not None else {}
        return made | side_by_side(
            lambda text: _generate(text, wanted, options), [text for text in texts if text not in made], threads
        )


def _generate(text: str, wanted: CodeForm, options: JitOptions) -> GeneratedCode:
    start, level, target = time.perf_counter(), level_of(text, options), TargetInfo.host(options.max_isa)
    optimized_ir, assembly, image = "", "", b""
    machine = take_machine(level, options)
    try:
        with _parsed(text) as module:
            call("SetTarget", module, target.triple.encode())
            call("SetDataLayout", module, target.data_layout.encode())
            if level == 2:
                _run_passes(module, machine, options.passes)
            if CodeForm.IR in wanted:
                optimized_ir = ask("PrintModuleToString", module)[1]
            if CodeForm.ASSEMBLY in wanted:
                assembly = _assembly(module, machine)
            if CodeForm.OBJECT in wanted:
                image = _emit(module, machine, is_object=True)
    finally:
        give_machine_back(machine, level, options)
    exports = exported_names(text) if CodeForm.OBJECT in wanted else ()
    return GeneratedCode(optimized_ir, assembly, image, exports, 1e3 * (time.perf_counter() - start))


def take_machine(level: int, options: JitOptions) -> int:
    """A target machine that the caller alone uses until it gives it back."""
    idle = _idle_machines.setdefault((options.max_isa, level), [])
    try:
        return idle.pop()
    except IndexError:
        return TargetInfo.host(options.max_isa).create_machine(level)


def give_machine_back(machine: int, level: int, options: JitOptions) -> None:
    """The next one who wants such a machine may have it."""
    _idle_machines[options.max_isa, level].append(machine)


def level_of(text: str, options: JitOptions) -> int:
    """How much LLVM optimises: its code, and at level 2 the IR before, and the order of instructions once more."""
    if options.quick or BRIEF in text:
        return 0
    return 1 if AS_WRITTEN in text else 2


@contextmanager
def _parsed(text: str) -> Iterator[int]:
    """A valid module in a context of its own: LLVM's global one would keep every type and constant for ever."""
    context, module = call("ContextCreate"), None
    try:
        module, problem = ask("ParseAssembly", context, text.encode())
        is_refused, fault = (True, "") if module is None else ask("VerifyModule", module)
        if is_refused:
            raise CodegenError(f"LLVM refuses the module: {problem or fault}")
        yield module
    finally:
        if module is not None:
            call("DisposeModule", module)
        call("ContextDispose", context)


def _run_passes(module: int, machine: int, passes: Sequence[IrPass]) -> None:
    tuning, manager = call("CreatePipelineTuningOptions"), call("CreateNewModulePassManager")
    builder = call("CreatePassBuilder", machine, tuning)
    try:
        for ir_pass in passes:
            call(f"module_Add{ir_pass.value}Pass", manager)
        call("RunNewModulePassManager", manager, module, builder)
    finally:
        call("DisposePassBuilder", builder)
        call("DisposeNewModulePassManger", manager)
        call("DisposePipelineTuningOptions", tuning)


def _assembly(module: int, machine: int) -> str:
    copy = call("CloneModule", module)  # LLVM changes a module while it makes code of it
    try:
        return _emit(copy, machine, is_object=False).decode()
    finally:
        call("DisposeModule", copy)


def _emit(module: int, machine: int, *, is_object: bool) -> bytes:
    buffer, problem = ask("TargetMachineEmitToMemory", machine, module, int(is_object))
    if not buffer:
        raise CodegenError(f"LLVM makes no code: {problem}")
    return bytes_of(buffer)


def exported_names(text: str) -> tuple[str, ...]:
    """Names of the functions and variables that a module defines for others; programs keep those of shared ones."""
    return () if text.startswith(KEPT) else tuple(match[1] or match[2] for match in _EXPORT.finditer(text))


LEVELS = 3
"""How many levels of optimisation there are."""

KEPT = (SHARED_MODULE, RENAMED_MODULE)
"""Begin modules that are worth keeping; all that they define is for the modules that they are linked with."""

_generating = threading.RLock()
"""Held while threads of ours are in LLVM."""

_EXPORT = re.compile(
    r'^(?:define (?!hidden |internal |private )[^@\n]*@"?([^\s"(]+)"?\(|@"?([^\s"=]+)"? =  ?(?:constant|global) )',
    re.MULTILINE,
)
"""The beginning of a definition that is not for its module alone."""

_idle_machines: dict[tuple[str, int], list[int]] = {}
"""By instruction set and level of optimisation; each is used by one thread at a time."""

hold_over_forks(_generating)  # before the lock that is taken within it
hold_over_forks(describing)
