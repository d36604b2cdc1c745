"""What a kernel is: how a request is computed, planned once; its fields are the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar, Self

from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, TargetInfo
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where a kernel finds an array: so many bytes behind the address that is its argument of that number."""

    argument: int
    offset: int


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """What a kernel is to compute.

    Attributes:
        body: Parameters are arrays in memory, the root (or its tuple's operands) are the results; dimensions merged.
        in_place: (result number, parameter number) pairs that share memory.
        target: What the code is for.
        unread: Numbers of results that nobody reads; what is written there does not matter.
        places: Where each array lies, parameters first; empty if each has the argument of its own number.
        streamed: Numbers of results that are stored past the caches.
        threads: How many may share what a kernel hands out by itself.
    """

    body: HloComputation
    in_place: tuple[tuple[int, int], ...] = ()
    target: TargetInfo = field(default_factory=TargetInfo.host)
    unread: frozenset[int] = frozenset()
    places: tuple[ArrayPlace, ...] = ()
    streamed: frozenset[int] = frozenset()
    threads: int = 1

    @property
    def is_update(self) -> bool:
        """Whether it is a dynamic-update-slice whose result lies in the memory of what it updates."""
        root = self.body.root
        if root.opcode != "dynamic-update-slice":
            return False
        target = root.operand(0)
        return target.opcode == "parameter" and (0, target.attrs.number) in self.in_place


@dataclass(frozen=True, slots=True)
class Declined:
    """Why a kind of kernel does not compute a request."""

    reason: str


@dataclass(frozen=True, slots=True)
class Kernel(ABC):
    """A way to compute a request.

    Attributes:
        request: What it computes.
        takes_places: Whether `emit` honours `KernelRequest.places`; the request of another kind has none.
        writes_once: Whether it writes each element of a result once, in whole vectors, and never reads it; the request
            of another kind has nothing `streamed`.
    """

    takes_places: ClassVar[bool] = False
    writes_once: ClassVar[bool] = False

    request: KernelRequest

    @property
    @abstractmethod
    def extent(self) -> int:
        """Size of the parallel dimension, the unit being what the function counts in begin and end."""

    @abstractmethod
    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Writes the function `void(ptr args, i64 begin, i64 end)` under a name."""

    def announce(self, module: ModuleBuilder) -> None:
        """Says what it can have in common with others, before any is written."""
        return

    @property
    def shares_between_units(self) -> bool:
        """Whether units that follow one another share work if one task has them."""
        return False

    @property
    def scratch_bytes(self) -> int:
        """Memory that each running call of the function needs; its address follows those of the results."""
        return 0

    @property
    def forks(self) -> bool:
        """Whether it can share out the work of one unit of its extent: `fork_of` gives what with."""
        return False

    @property
    def shared_bytes(self) -> int:
        """Memory that all running calls see; its address follows that of the scratch memory.

        Where the kernel forks, its tasks see it, and the scratch memory is that of a task.
        """
        return 0

    @property
    def counters(self) -> int:
        """Words at the beginning of that memory which are 0 when the kernel begins."""
        return 0

    @property
    def figures(self) -> Mapping[str, Number]:
        """What reports say of its choices."""
        return {}

    def at_places(self, places: tuple[ArrayPlace, ...]) -> Self:
        """The kernel of the same computation whose arrays lie in some places."""
        return replace(self, request=replace(self.request, places=places))

    def streaming(self, results: frozenset[int]) -> Self:
        """The kernel of the same computation that stores some results past the caches."""
        if self.request.streamed == results:
            return self
        return replace(self, request=replace(self.request, streamed=results))

    def forking(self, threads: int) -> Self:
        """The kernel of the same computation that shares its work out by itself."""
        return replace(self, request=replace(self.request, threads=threads))

    def estimate_ns(self, work: Work) -> float:
        """Time that it takes on one thread, its operations and bytes being counted already."""
        return work.nanoseconds(self.request.target.cache_bytes)
