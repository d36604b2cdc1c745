"""The LLVM modules of a program as one text, in which those that other programs may have are marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xlalite.backends.codegen.llvm import ONLY_CALLS
from xlalite.backends.cpu.emission.emitted_module import ENTRY
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, RENAMED_MODULE, SHARED_MODULE


def program_text(pieces: Sequence[str], shared: Iterable[str]) -> str:
    """The pieces of a program and the modules that it shares with others.

    If there are several pieces of kernels, what is kept of each need not be compiled again where only others change.
    """
    of_kernels = [not piece.startswith(ONLY_CALLS) and f"@{ENTRY}(" not in piece for piece in pieces]
    mark = RENAMED_MODULE if sum(of_kernels) > 1 else ""
    own = (mark * is_kept + piece for piece, is_kept in zip(pieces, of_kernels, strict=True))
    return NEXT_MODULE.join((*own, *(SHARED_MODULE + each for each in shared)))
