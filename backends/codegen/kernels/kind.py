"""What a kind of kernel is: when it fits, how far it can be split, and how it is emitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xlalite.backends.codegen.llvm import Function, ModuleBuilder, TargetInfo
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.types.decision import Number
from xlalite.passes.fusion.place import Domain


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
    """

    body: HloComputation
    in_place: tuple[tuple[int, int], ...] = ()
    target: TargetInfo = field(default_factory=TargetInfo.host)
    unread: frozenset[int] = frozenset()
    places: tuple[ArrayPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelKind:
    """One kind of kernel.

    Attributes:
        name: Short name for reports.
        declines: Why the kind does not fit a request; None when it fits.
        extent: Size of the parallel dimension, the unit being what `emit`'s function counts in begin and end.
        emit: Writes the function `void(ptr args, i64 begin, i64 end)` under a name.
        domain: What it walks over; None for the sizes of its first result.
        scratch_bytes: Memory that each running call of the function needs; its address follows those of the results
            (see `scratch.py`). None if it never needs any.
        estimate_ns: Time that it takes on one thread; None to estimate from operations and bytes.
        figures: What to say of its choices in reports; None for nothing.
        takes_places: Whether `emit` honours `KernelRequest.places`; the request of another kind has none.
    """

    name: str
    declines: Callable[[KernelRequest], str | None]
    extent: Callable[[KernelRequest], int]
    emit: Callable[[ModuleBuilder, str, KernelRequest], Function]
    domain: Callable[[KernelRequest], Domain] | None = None
    scratch_bytes: Callable[[KernelRequest], int] | None = None
    estimate_ns: Callable[[KernelRequest], float] | None = None
    figures: Callable[[KernelRequest], Mapping[str, Number]] | None = None
    takes_places: bool = False
