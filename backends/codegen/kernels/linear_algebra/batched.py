"""What kernels have in common that treat the matrices of a batch one by one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.kernels.kernel import Kernel
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.kernels.scratch import own_slot, parts_of
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value


@dataclass(frozen=True, slots=True)
class BatchedKernel(Kernel):
    """A kernel of which a task has some of the matrices.

    Attributes:
        batch: Sizes of the batch.
    """

    batch: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The matrices."""
        return math.prod(self.batch)

    @property
    @abstractmethod
    def parts(self) -> tuple[int, ...]:
        """Sizes in bytes of the parts of the scratch memory, which one matrix after the other takes."""

    @property
    def scratch_bytes(self) -> int:
        """All parts."""
        return sum(self.parts)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Treats the matrices [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb = entry.fb
        with own_slot(entry, self.scratch_bytes) as slot, fb.loop(entry.begin, entry.end) as number:
            self.emit_matrix(entry, parts_of(fb, slot, self.parts), places_of(fb, number, self.batch))
        fb.ret()
        return entry.function

    @abstractmethod
    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Treats the matrix at an index of the batch."""
