"""Loops inside a kernel whose turns threads share out: the kernel runs on one thread, which forks and joins.

For kernels of which one call is much work, in steps that wait for each other. What a turn computes must not depend on
who computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.kernels.kernel import Kernel
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import I64, PTR, VOID, FunctionBuilder, Value, constant
from xlalite.hlo.records import dataclass

ForkBody = Callable[[FunctionBuilder, Sequence[Value], Value, Value], None]
"""(builder of the function of a task, what was held for it, its first turn, one past its last) -> emits its work."""


@dataclass(frozen=True, slots=True)
class Fork:
    """What a kernel forks with.

    Attributes:
        area: Slots of scratch memory, one for each thread.
        shared: Memory that all tasks see.
        context: What knows the threads.
        parallel_for: The address of `void(context, kernel, arguments, extent, grain)`.
    """

    area: Value
    shared: Value
    context: Value
    parallel_for: Value

    def loop(
        self, fb: FunctionBuilder, extent: Value | int, held: Sequence[Value], body: ForkBody, grain: int = 1
    ) -> None:
        """Runs a loop of so many turns.

        Args:
            fb: The function of the kernel.
            extent: Turns.
            held: Words that the body needs, numbers of 64 bits and addresses.
            body: Emits the function of a task.
            grain: Turns of a task, at least; negative if they are too few for a thread without a processor of its own.
        """
        inner = fb.module.function(
            fb.module.unique_name("task"),
            VOID,
            (PTR, I64, I64),
            parameter_attributes=("noalias readonly", "", ""),
            linkage="internal",
        )
        arguments, begin, end = inner.parameters
        words = [inner.load(word.type, inner.gep(PTR, arguments, number), 8) for number, word in enumerate(held)]
        body(inner, words, begin, end)
        inner.ret()
        own = fb.alloca(PTR, max(len(held), 1), align=8)
        for number, word in enumerate(held):
            fb.store(word, fb.gep(PTR, own, number), 8)
        count = constant(I64, extent) if isinstance(extent, int) else extent
        fb.call_pointer(self.parallel_for, VOID, (self.context, inner.function, own, count, constant(I64, grain)))


def fork_of(entry: KernelEntry, kernel: Kernel) -> Fork | None:
    """What a kernel forks with; None if it has one thread. The addresses follow those of the results."""
    if kernel.request.threads == 1:
        return None
    first = len(entry.inputs) + len(entry.outputs)
    return Fork(
        *(entry.fb.load(PTR, entry.fb.gep(PTR, entry.fb.parameters[0], first + number), 8) for number in range(4))
    )
