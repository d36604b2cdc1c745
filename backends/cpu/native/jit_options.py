"""How LLVM turns text into machine code, and for which machine; parts of every key of the cache, told without LLVM."""

from __future__ import annotations

import enum
import functools
import itertools
import os
import platform

import llvmlite

from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.host_caches import host_cache_bytes
from xlalite.hlo.surroundings.matrix_registers import may_use_matrix_registers


class IrPass(enum.Enum):
    """An LLVM pass over IR; the value names it as llvmlite's library does."""

    SROA = "SROA"
    INSTRUCTION_COMBINE = "InstCombine"
    SIMPLIFY_CFG = "SimplifyCFG"


LIGHT_PASSES = (IrPass.SROA, IrPass.INSTRUCTION_COMBINE, IrPass.SIMPLIFY_CFG)
"""What vectors written by us need; LLVM's own vectoriser costs more time than the rest of a compilation together."""


@dataclass(frozen=True, slots=True)
class JitOptions:
    """How LLVM turns text into machine code.

    Attributes:
        passes: The IR passes, in order.
        max_isa: The newest instruction set to use; empty for all that the machine has.
        quick: Whether the code is made at once, as written, rather than well.
    """

    passes: tuple[IrPass, ...] = LIGHT_PASSES
    max_isa: str = ""
    quick: bool = False

    def key(self) -> str:
        """The options as text for a cache key."""
        return f"{self.max_isa}:{'quick' * self.quick}:" + ",".join(ir_pass.value for ir_pass in self.passes)


PROCESSOR = "/proc/cpuinfo"
_DECISIVE = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")


@functools.cache
def host_fingerprint() -> str:
    """What decides whether object code fits, as text for a cache key.

    llvmlite with its LLVM, CPU and its features, and the sizes of its caches, by which matrix products are cut into
    blocks.
    """
    with os.scandir(os.path.join(llvmlite.__path__[0], "binding")) as listing:
        libraries = sorted((entry.name, entry.stat().st_size) for entry in listing if "llvmlite." in entry.name)
    sizes = [size for _, size in libraries]
    return f"llvmlite {llvmlite.__version__} {sizes}; {processor()}; caches {host_cache_bytes()}"


def processor() -> str:
    """The first processor as Linux describes it, and what code may use of it; elsewhere as LLVM does."""
    try:
        with open(PROCESSOR, encoding="latin-1") as file:
            first = itertools.takewhile(str.strip, file)
            lines = [line for line in first if line.startswith(_DECISIVE)]
    except OSError:
        lines = []
    if any(line.startswith(("flags", "Features")) for line in lines):
        flags = "" if may_use_matrix_registers() else " without matrix registers"
        return f"{platform.machine()} {' '.join(''.join(lines).split())}{flags}"
    from xlalite.backends.codegen.llvm.target import TargetInfo

    return repr(TargetInfo.host())
