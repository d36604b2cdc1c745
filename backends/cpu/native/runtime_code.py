"""The runtime's own machine code: the same for every program, so a process compiles it at most once.

LLVM makes it without optimising: what it does is written as a machine has it and waits for memory, so that a call takes
no longer, and the first of a process that finds no cache is there 50 ms earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xlalite.backends.cpu.native.code_version import version_in_keys
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.object_code import CodeSummary, IrSource

_OPTIONS = JitOptions(passes=(), quick=True)


def runtime_code(
    name: str, write: Callable[[], str], imports: Mapping[str, int] | None = None, variant: str = ""
) -> LinkedModule:
    """A part of the runtime, linked; its LLVM text is written only when no cache has the code.

    Args:
        name: What the part is, for people.
        write: Gives the text, which follows from the sources of this version, the machine, and the variant.
        imports: Addresses of functions that it calls by name.
        variant: What differs between interpreters.
    """
    return default_cache().get_or_compile(
        ("runtime", name, variant, version_in_keys()),
        lambda: IrSource(write(), summary=CodeSummary(f"({name})")),
        _OPTIONS,
        imports,
    )
