"""The builder of one function: every instruction method in one class."""

from xlalite.backends.codegen.llvm.control_flow import ControlFlow
from xlalite.backends.codegen.llvm.intrinsics import Intrinsics
from xlalite.backends.codegen.llvm.memory import Memory
from xlalite.backends.codegen.llvm.vectors import Vectors


class FunctionBuilder(ControlFlow, Vectors, Memory, Intrinsics):
    """Writes one function of a module; made by `ModuleBuilder.function`, positioned in the entry block.

    Its methods are in `emitter` (blocks, phi, alloca), `control_flow`, `arithmetic`, `memory`, `intrinsics` and
    `vectors`.
    """
