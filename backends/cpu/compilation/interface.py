"""How code is called, told without the program that it was made from."""

from __future__ import annotations

from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import ProgramShape


@dataclass(frozen=True, slots=True)
class Interface:
    """What callers of code see.

    Attributes:
        name: The module's name.
        shape: Shapes of the parameters and of the result.
        num_threads: Threads that calls use.
        replica_count: Number of replicas.
        num_partitions: Number of partitions.
    """

    name: str
    shape: ProgramShape
    num_threads: int
    replica_count: int
    num_partitions: int

    @staticmethod
    def of(request: CompileRequest) -> Interface:
        """The interface of the code of a module."""
        module = request.given
        counts = module.config.replica_count, module.config.num_partitions
        return Interface(module.name, module.entry_computation.program_shape, request.num_threads, *counts)
