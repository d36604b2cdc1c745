"""What parts of a driver have in common: where they write code, and for which product."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.llvm import Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class DriverPart:
    """Writes a part of the loops of a kernel.

    Attributes:
        module: Where functions are declared.
        fb: Builder of the loops.
        math: Arithmetic of sizes and positions, which are known or not.
        callee: How a function is called.
        plan: The plan of the product.
    """

    module: ModuleBuilder
    fb: FunctionBuilder
    math: Scalars
    callee: Callable[[Function], Value]
    plan: DotPlan
