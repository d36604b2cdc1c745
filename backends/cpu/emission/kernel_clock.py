"""Code that takes the time of kernels: two counters for each, its calls and its nanoseconds, in memory of the linker's.

Kernels that run side by side are timed as one; work on scalars, which is part of the entry, counts with the entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xlalite.backends.codegen.llvm import I32, I64, PTR, Function, FunctionBuilder, ModuleBuilder, constant
from xlalite.backends.cpu.emission.emitted_module import COUNTERS, ClockedKernel
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.analysis.cost_analysis import Cost, CostAnalysis
from xlalite.passes.analysis.matrix_products import is_matrix_product

_CLOCK_MONOTONIC = 1
_SECOND_NS = 1_000_000_000


class KernelClock:
    """Writes the code that takes times, if it is to be there.

    Attributes:
        module: The code.
    """

    def __init__(self, module: ModuleBuilder, *, runs: bool) -> None:
        """Takes the time of nothing yet, and never of anything unless it `runs`."""
        self.module = module
        self._counters = module.global_variable(COUNTERS, I64, linkage="external", align=64) if runs else None
        self._numbers: dict[tuple[str, int, *tuple[HloInstruction, ...]], int] = {}

    @contextmanager
    def timed(self, fb: FunctionBuilder, kind: str, *instructions: HloInstruction, threads: int = 1) -> Iterator[None]:
        """Adds the time of the code that is written meanwhile to that of these instructions; of none, to the entry's.

        It runs on so many threads. Calls from several threads add to the same counters.
        """
        if self._counters is None:
            yield
            return
        number = self._numbers.setdefault((kind, threads, *instructions), len(self._numbers))
        now = self.module.define_once(COUNTERS, self._define_now)
        begin = fb.call(now)
        yield
        passed = fb.sub(fb.call(now), begin)
        fb.atomic_rmw("add", fb.gep(I64, self._counters, 2 * number), constant(I64, 1), "monotonic")
        fb.atomic_rmw("add", fb.gep(I64, self._counters, 2 * number + 1), passed, "monotonic")

    def kernels(self, module: HloModule) -> tuple[ClockedKernel, ...]:
        """What has counters, in the order of these: first the entry, if the clock runs."""
        costs = CostAnalysis()
        found: list[ClockedKernel] = []
        for kind, threads, *instructions in self._numbers:
            if not instructions:
                found.append((module.name, kind, 0, 0, "", threads))
                continue
            cost = sum(map(costs.of_instruction, instructions), Cost())
            name = _name(instructions[0], module)
            if len(instructions) > 1:
                name += f" and {len(instructions) - 1} more"
            found.append((name, kind, cost.flops, cost.bytes_accessed, _dtype(instructions[0]), threads))
        return tuple(found)

    def _define_now(self) -> Function:
        """Nanoseconds of a clock that only goes forward."""
        fb = self.module.function(self.module.unique_name("now"), I64, (), linkage="hidden")
        time = fb.alloca(I64, 2, align=8)
        fb.call(self.module.declare("clock_gettime", I32, (I32, PTR)), constant(I32, _CLOCK_MONOTONIC), time)
        fb.ret(fb.add(fb.mul(fb.load(I64, time), _SECOND_NS), fb.load(I64, fb.gep(I64, time, 1))))
        return fb.function


def _name(instruction: HloInstruction, module: HloModule) -> str:
    """The name; behind that of its computation, if it is not the entry: names are unique only within one."""
    computation = instruction.parent
    if computation is None or computation is module.entry_computation:
        return instruction.name
    return f"{computation.name}/{instruction.name}"


def _dtype(instruction: HloInstruction) -> str:
    """The element type of its largest operand or result; of a product, that of its operands with more bits."""
    body = instruction.called_computations[0].instructions if instruction.opcode == "fusion" else (instruction,)
    product = next(filter(is_matrix_product, body), None)
    if product is not None:
        return str(max((operand.shape.dtype for operand in product.operands), key=lambda dtype: dtype.bits).value)
    shapes = [leaf for each in (instruction, *instruction.operands) for _, leaf in each.shape.leaves() if leaf.is_array]
    return max(shapes, key=lambda shape: shape.element_count).dtype.value if shapes else ""
