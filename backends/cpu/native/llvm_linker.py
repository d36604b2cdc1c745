"""LLVM's linker in this process, for what `elf_loader.py` does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.fork_lock import ForkLock
from xlalite.hlo.errors import CodegenError


def link_by_llvm(
    images: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]
) -> tuple[llvm.ResourceTracker, dict[str, int]]:
    """LLVM's handle of the loaded objects, and the addresses of what they export.

    Raises:
        CodegenError: A symbol is missing or defined twice; the message quotes LLVM.
    """
    builder = llvm.JITLibraryBuilder().add_current_process()
    for image in images:
        builder.add_object_img(image)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        tracker = builder.link(*_linker.next_library())
    except RuntimeError as error:
        raise CodegenError(f"linking a module that defines {', '.join(exports)}: {error}") from error
    return tracker, {name: tracker[name] for name in exports}


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
                self._lljit = llvm.create_lljit_compiler(_machine(), use_jit_link=True)
            self._links += 1
            return self._lljit, f"xlalite.{self._links}"


def _machine() -> llvm.TargetMachine:
    host = TargetInfo.host()
    target = llvm.Target.from_triple(host.triple)
    return target.create_target_machine(host.cpu, host.feature_string, reloc="pic", codemodel="small")


_LINKS_PER_LINKER = 128
_linker = _Linker()
