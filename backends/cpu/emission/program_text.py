"""The LLVM modules of a program as one text, in which those that other programs may have are marked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from xlalite.backends.codegen.llvm import BRIEF, Function, ModuleBuilder
from xlalite.backends.cpu.emission.emitted_module import ENTRY
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, RENAMED_MODULE, SHARED_MODULE

_LINES_IN_MODULE = 20_000
"""LLVM compiles about so much text at a time, which bounds its memory."""


_LINES_WORTH_KEEPING = 150
"""Text of a program's only kernel from which on LLVM takes 3 ms or more for it; to look for its code on disk takes
0.03, and to keep it 0.15.
"""


class ProgramText:
    """The pieces of a program and the modules that it shares with others.

    If there are several pieces of kernels, what is kept of each need not be compiled again where only others change.

    Attributes:
        module: What is written of the program.
        threads: How many may compile it.
        keeps_kernels: Whether all kernels are kept, besides the program; else those that take long to compile.
    """

    def __init__(self, module: ModuleBuilder, threads: int, offer: Callable[[str], None] | None) -> None:
        """Modules of the text are offered when they are complete, if anybody wants them while others are written."""
        self.module = module
        self.threads = threads
        self._offer = offer
        self.keeps_kernels = True
        self._has_offered = False
        if offer is not None:
            module.on_shared_text = lambda text: offer(SHARED_MODULE + text)

    def kernel(self, emit: Callable[[], Function], is_brief: bool) -> Function:
        """A kernel, whose code is complete, and whether it has little to do."""
        first = self.module.function_count
        with self.module.brief() if is_brief else nullcontext():
            function = emit()
        if self._offer is not None:
            for piece in self.module.cut(first, _LINES_IN_MODULE):
                self._has_offered = True
                self._offer(RENAMED_MODULE * self._is_kept(piece) + piece)
        return function

    def text(self) -> str:
        """All modules, when the program is written."""
        pieces = self.module.texts(_LINES_IN_MODULE, self.threads)
        of_kernels = [not piece.startswith(BRIEF) and f"@{ENTRY}(" not in piece for piece in pieces]
        are_apart = sum(of_kernels) > 1 or self._has_offered
        own = (
            RENAMED_MODULE * (is_of_kernels and are_apart and self._is_kept(piece)) + piece
            for piece, is_of_kernels in zip(pieces, of_kernels, strict=True)
        )
        return NEXT_MODULE.join((*own, *(SHARED_MODULE + each for each in self.module.shared_texts)))

    def _is_kept(self, piece: str) -> bool:
        return self.keeps_kernels or piece.count("\n") >= _LINES_WORTH_KEEPING
