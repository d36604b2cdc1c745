"""What kernels have in common that treat the matrices of a batch one by one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.kernels.fork import fork_of
from xlalite.backends.codegen.kernels.kernel import Kernel
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import places_of
from xlalite.backends.codegen.kernels.scratch import own_slot, parts_of
from xlalite.backends.codegen.llvm import VOID, Function, FunctionBuilder, ModuleBuilder, Type, Value
from xlalite.hlo.records import dataclass


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
    def task_bytes(self) -> int:
        """Bytes that a task needs for itself where threads share the work on one matrix; 0 where they do not."""
        return 0

    @property
    def forks(self) -> bool:
        """If tasks of one matrix have memory."""
        return self.task_bytes > 0

    @property
    def scratch_bytes(self) -> int:
        """All parts, or those of a task."""
        return sum(self.parts) if self.request.threads == 1 else self.task_bytes

    @property
    def shared_bytes(self) -> int:
        """All parts where tasks share them."""
        return 0 if self.request.threads == 1 else sum(self.parts)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Treats the matrices [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb, fork = entry.fb, fork_of(entry, self)
        memory = own_slot(entry, self.scratch_bytes) if fork is None else nullcontext(fork.shared)
        with memory as slot, fb.loop(entry.begin, entry.end) as number:
            self.emit_matrix(entry, parts_of(fb, slot, self.parts), places_of(fb, number, self.batch))
        fb.ret()
        return entry.function

    def apart(
        self,
        fb: FunctionBuilder,
        stem: str,
        parts: Sequence[Value],
        emit: Callable[[FunctionBuilder, Sequence[Value]], Value | None],
        return_type: Type = VOID,
    ) -> Value:
        """A step of a matrix in a function of its own, which finds the parts where LLVM sees that they lie apart."""

        def inside(inner: FunctionBuilder, held: Sequence[Value]) -> Value | None:
            return emit(inner, parts_of(inner, held[0], self.parts))

        return fb.apart(stem, parts[:1], inside, return_type)

    @abstractmethod
    def emit_matrix(self, entry: KernelEntry, parts: Sequence[Value], batch: Index) -> None:
        """Treats the matrix at an index of the batch."""
