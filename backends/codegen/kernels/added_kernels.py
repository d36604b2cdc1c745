"""Kinds of kernels that programs add to those of the compiler, and that are asked first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.hlo.errors import PassError
from xlalite.hlo.ops import OPS
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.extensions import note_extension, source_stamp

AddedPlan: TypeAlias = Callable[[KernelRequest], Kernel | Declined]
F = TypeVar("F", bound=AddedPlan)

_plans: dict[str, tuple[tuple[str, ...], AddedPlan]] = {}


def register_kernel(*opcodes: str) -> Callable[[F], F]:
    """Makes the decorated function plan kernels for what ends in these operations, in every compilation from now on.

    The function takes a `KernelRequest` and gives a `Kernel`, or `Declined(reason)`; the latest is asked first, and the
    compiler's own kinds after all. Decisions name the kernel after the function. One of the same name takes the place
    of one before it. What its code does to memory is its own affair: nothing checks that it stays within its arrays.

    Args:
        opcodes: Operations of the roots of bodies that it is asked for.

    Raises:
        PassError: There is no such operation, or none is named.
    """
    if not opcodes:
        raise PassError("register_kernel: expected the names of operations, found none")
    for opcode in opcodes:
        if opcode not in OPS:
            raise PassError(f"register_kernel: there is no operation {opcode!r}{did_you_mean(opcode, OPS)}")

    def register(function: F) -> F:
        name = function.__name__
        _plans.pop(name, None)
        _plans[name] = opcodes, function
        note_extension(f"kernel {name}", f"{' '.join(opcodes)} {source_stamp(function)}")
        return function

    return register


def added_plans(opcode: str) -> Mapping[str, AddedPlan]:
    """The functions that plan kernels for an operation, by name, the latest first."""
    return {name: plan for name, (opcodes, plan) in reversed(_plans.items()) if opcode in opcodes}
