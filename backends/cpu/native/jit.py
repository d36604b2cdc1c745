"""LLVM text to object code, which `linker.py` brings into this process.

The only module that drives LLVM's compiler. The two steps are apart, so that an object can come from a cache:
`compile_ir` gives an `ObjectCode` (bytes that can be stored), `link` gives a `LinkedModule` (addresses that can be
called). Importing this module starts nothing; LLVM wakes up at the first compilation.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import llvmlite.binding as llvm

from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.fork_lock import hold_over_forks
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, SHARED_MODULE, IrSource, ObjectCode, joined
from xlalite.hlo.errors import CodegenError


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
    machine = target_machine(options.max_isa)
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
def target_machine(max_isa: str = "") -> llvm.TargetMachine:
    """What makes machine code for this host."""
    return TargetInfo.host(max_isa).create_machine()


# llvmlite has one lock around all calls but no public way to hold it (0.48 to 0.50).
_llvm_lock = getattr(llvm.ffi.lib, "_lock", None)
if _llvm_lock is not None:
    hold_over_forks(_llvm_lock)
