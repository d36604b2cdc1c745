"""LLVM text to object code, and object code to addresses in this process.

The only module that drives LLVM's compiler and linker. The two steps are apart, so that an object can come from a
cache: `compile_ir` gives an `ObjectCode` (bytes that can be stored), `link` gives a `LinkedModule` (addresses that can
be called). Importing this module starts nothing; LLVM wakes up at the first compilation.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import llvmlite
import llvmlite.binding as llvm

from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.fork_lock import ForkLock
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, SHARED_MODULE, IrSource, ObjectCode, joined
from xlalite.hlo.errors import CodegenError


class IrPass(enum.Enum):
    """An LLVM pass over IR; the value names it as llvmlite does."""

    SROA = "sroa"
    INSTRUCTION_COMBINE = "instruction_combine"
    SIMPLIFY_CFG = "simplify_cfg"


LIGHT_PASSES = (IrPass.SROA, IrPass.INSTRUCTION_COMBINE, IrPass.SIMPLIFY_CFG)
"""What vectors written by us need; LLVM's own vectoriser costs more time than the rest of a compilation together."""


@dataclass(frozen=True, slots=True)
class JitOptions:
    """How LLVM turns text into machine code.

    Attributes:
        passes: The IR passes, in order.
        max_isa: The newest instruction set to use; empty for all that the machine has.
    """

    passes: tuple[IrPass, ...] = LIGHT_PASSES
    max_isa: str = ""

    def key(self) -> str:
        """The options as text for a cache key."""
        return f"{self.max_isa}:" + ",".join(ir_pass.value for ir_pass in self.passes)


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
    """

    optimized_ir: str
    assembly: str
    image: bytes
    exports: tuple[str, ...]


class LinkedModule:
    """Machine code in memory; unloaded when the last reference to this object goes.

    Whoever holds an address must hold the module.
    """

    __slots__ = ("__weakref__", "_addresses", "_tracker")

    def __init__(self, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]) -> None:
        """Takes over LLVM's handle of the loaded code."""
        self._tracker = tracker
        self._addresses = addresses

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names it defines."""
        return tuple(self._addresses)

    def address(self, symbol: str) -> int:
        """The address of a function or variable.

        Raises:
            CodegenError: The module does not define it.
        """
        try:
            return self._addresses[symbol]
        except KeyError:
            defined = ", ".join(self._addresses)
            raise CodegenError(f"no symbol {symbol!r} in this module; it defines {defined}") from None


Keeper = Callable[[str, Callable[[], bytes]], bytes]
"""(text of a shared module, what makes its object code) -> its object code, kept or made."""


def generate_code(
    text: str, wanted: CodeForm, options: JitOptions | None = None, keeper: Keeper | None = None
) -> GeneratedCode:
    """Parses and optimises LLVM IR for this host, once, and makes of it what is wanted.

    Args:
        text: One module or several.
        wanted: What to make.
        options: How.
        keeper: Who has object code of modules that programs share.

    Raises:
        CodegenError: The text is not valid LLVM IR; the message quotes LLVM.
    """
    options = options or JitOptions()
    machine = _target_machine(options.max_isa)
    optimized_irs: list[str] = []
    assemblies: list[str] = []
    images: list[bytes] = []
    exports: list[str] = []
    for one in text.split(NEXT_MODULE):
        if keeper is not None and wanted is CodeForm.OBJECT and one.startswith(SHARED_MODULE):
            images.append(keeper(one, partial(_object_image, one, options, machine)))
            continue
        with _optimized(one, options, machine) as module:
            if CodeForm.IR in wanted:
                optimized_irs.append(str(module))
            if CodeForm.ASSEMBLY in wanted:
                # LLVM changes a module while it makes code of it.
                with module.clone() as copy:
                    assemblies.append(machine.emit_assembly(copy))
            if CodeForm.OBJECT in wanted:
                images.append(machine.emit_object(module))
                exports += _exported_names(module)
    image = joined(images) if images else b""
    return GeneratedCode(NEXT_MODULE.join(optimized_irs), NEXT_MODULE.join(assemblies), image, tuple(exports))


def _object_image(text: str, options: JitOptions, machine: llvm.TargetMachine) -> bytes:
    with _optimized(text, options, machine) as module:
        return machine.emit_object(module)  # type: ignore[no-any-return]


def compile_ir(source: IrSource, options: JitOptions | None = None) -> ObjectCode:
    """The object code of a module for this host.

    Raises:
        CodegenError: The text is not valid LLVM IR; the message quotes LLVM.
    """
    code = generate_code(source.text, CodeForm.OBJECT, options)
    return ObjectCode(code.image, code.exports, source.record, source.constants, source.summary)


def link(objects: Sequence[ObjectCode], imports: Mapping[str, int] | None = None) -> LinkedModule:
    """Loads objects together into this process.

    Args:
        objects: They may refer to each other; no two define the same name.
        imports: Addresses of further functions by name. What is not among them is looked up in the process (libc).

    Raises:
        CodegenError: A symbol is missing or defined twice; the message quotes LLVM.
    """
    exports = tuple(name for code in objects for name in code.exports)
    builder = llvm.JITLibraryBuilder().add_current_process()
    for code in objects:
        for image in code.images:
            builder.add_object_img(image)
    for name, address in (imports or {}).items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        tracker = builder.link(*_linker.next_library())
    except RuntimeError as error:
        raise CodegenError(f"linking a module that defines {', '.join(exports)}: {error}") from error
    return LinkedModule(tracker, {name: tracker[name] for name in exports})


@functools.cache
def host_fingerprint() -> str:
    """What decides whether object code fits, as text for a cache key.

    llvmlite and LLVM, CPU and its features, and the sizes of its caches, by which matrix products are cut into blocks.
    """
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"llvmlite {llvmlite.__version__}; LLVM {version}; {TargetInfo.host()!r}"


@contextlib.contextmanager
def _optimized(text: str, options: JitOptions, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    """Parses the text in a context of its own (LLVM's global one would keep every type and constant for ever)."""
    with llvm.create_context() as context, _parsed(text, context) as module:
        _verify(module)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        _run_passes(module, machine, options.passes)
        yield module


def _parsed(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    try:
        return llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the module: {error}") from error


def _verify(module: llvm.ModuleRef) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the module: {error}") from error


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, passes: Sequence[IrPass]) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    manager = llvm.create_new_module_pass_manager()
    for ir_pass in passes:
        getattr(manager, f"add_{ir_pass.value}_pass")()
    manager.run(module, llvm.create_pass_builder(machine, tuning))


def _exported_names(module: llvm.ModuleRef) -> tuple[str, ...]:
    defined = itertools.chain(module.functions, module.global_variables)
    return tuple(
        value.name
        for value in defined
        if not value.is_declaration
        and value.linkage == llvm.Linkage.external
        and value.visibility == llvm.Visibility.default
    )


@functools.cache
def _target_machine(max_isa: str = "") -> llvm.TargetMachine:
    return TargetInfo.host(max_isa).create_machine()


class _Linker:
    """Hands out LLVM's in-process linker, a new one now and then.

    A linker keeps 10 KB of bookkeeping for each library ever linked, even unloaded ones (seen with llvmlite 0.50), and
    gives it back when it goes. Loaded modules keep their own linker alive, so it may be replaced at any time.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._links = 0
        self._lljit: llvm.LLJIT | None = None

    def next_library(self) -> tuple[llvm.LLJIT, str]:
        """A linker and an unused library name."""
        with self._lock:
            if self._lljit is None or self._links % _LINKS_PER_LINKER == 0:
                self._lljit = llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)
            self._links += 1
            return self._lljit, f"xlalite.{self._links}"


_LINKS_PER_LINKER = 128
_linker = _Linker()


def _hold_llvm_over_forks() -> None:
    """Makes a fork wait until no thread is inside LLVM, so that the child never finds it in the middle of work.

    llvmlite has one lock around all calls but no public way to hold it (0.48 to 0.50).
    """
    lock = getattr(llvm.ffi.lib, "_lock", None)
    if lock is not None and hasattr(os, "register_at_fork"):
        release = functools.partial(lock.__exit__, None, None, None)
        os.register_at_fork(before=lock.__enter__, after_in_parent=release, after_in_child=release)


_hold_llvm_over_forks()
