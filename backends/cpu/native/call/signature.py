"""What a compiled entry function takes and gives, seen from Python: flat arrays, and which of them share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.thread_pool import ThreadPool
from xlalite.hlo.errors import CodegenError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class CallSignature:
    """The arrays of a call.

    Attributes:
        inputs: Shapes of the arguments, row-major.
        outputs: Shapes of the results, row-major.
        returns_tuple: Whether the call gives a tuple; otherwise there is one output, and the call gives that array.
        donations: Pairs (input, output): the result is the argument's array, overwritten.
        name: Name of the callable.
    """

    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    returns_tuple: bool = False
    donations: tuple[tuple[int, int], ...] = ()
    name: str = "executable"

    def __post_init__(self) -> None:
        """Refuses a signature that no call could obey."""
        if not self.returns_tuple and len(self.outputs) != 1:
            raise CodegenError(f"{self.name}: a call that gives one array has {len(self.outputs)} outputs")
        strange = [str(shape) for shape in (*self.inputs, *self.outputs) if not shape.is_array or shape.is_dynamic]
        if strange:
            raise CodegenError(f"{self.name}: only arrays of known sizes can be passed, found {', '.join(strange)}")
        for which, numbers in enumerate(zip(*self.donations, strict=True)):
            if len(set(numbers)) != len(numbers):
                raise CodegenError(f"{self.name}: an {('input', 'output')[which]} is donated twice: {self.donations}")
        for source, target in self.donations:
            if not self.inputs[source].compatible(self.outputs[target]):
                raise CodegenError(
                    f"{self.name}: input {source} {self.inputs[source]} is donated to output {target} "
                    f"{self.outputs[target]}, which has another shape"
                )


class Failure(Protocol):
    """What a nonzero result of an entry function means."""

    def explain(self) -> tuple[str, BaseException | None]:
        """What went wrong in the calling thread's last call, and what was raised there; forgotten afterwards."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A compiled `i32 entry(ptr params, ptr results, ptr arena, ptr context)` and what it needs to run.

    Attributes:
        module: The code; kept loaded by this object.
        symbol: Name of the function.
        pool: The threads that its context gives it.
        arena_bytes: Size of the scratch memory; its address is a multiple of 64.
        releases_lock: Whether a call lets other Python threads run meanwhile; costs about 40 ns, so not for tiny work.
        failures: What its nonzero results mean, that of 1 first.
        device: Address of the context on one of several devices; 0 if the code runs alone.
    """

    module: LinkedModule
    symbol: str
    pool: ThreadPool
    arena_bytes: int = 0
    releases_lock: bool = True
    failures: Sequence[Failure] = ()
    device: int = 0

    @property
    def context(self) -> int:
        """Address of what the function takes as its context."""
        return self.device or self.pool.context_address

    @property
    def address(self) -> int:
        """Where the function is."""
        return self.module.address(self.symbol)
