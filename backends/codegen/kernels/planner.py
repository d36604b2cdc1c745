"""Chooses the kernel of each instruction, and whether it is split over threads; both with reasons.

The kinds are asked in order; the first that does not decline computes the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.kernels import KERNEL_KINDS
from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.estimate import kernel_work
from xlalite.backends.codegen.kernels.kernel_body import KernelBody, kernel_body
from xlalite.backends.codegen.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.decision import Decision

MIN_TASK_NS = 2000.0
"""A task worth handing to another thread; a fork-join costs about 0.5 µs."""


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """How an instruction is computed.

    Attributes:
        kind: The kind of kernel.
        request: What the kernel computes.
        operands: Instructions whose arrays are the kernel's parameters.
        extent: Size of the parallel dimension.
        grain: Units of the extent to a task; 0 runs all on the calling thread.
        scratch_bytes: Scratch memory of each running call.
        decisions: The choice and the kinds that declined.
    """

    kind: KernelKind
    request: KernelRequest
    operands: tuple[HloInstruction, ...]
    extent: int
    grain: int
    scratch_bytes: int
    decisions: tuple[Decision, ...]


def plan_kernel(
    instruction: HloInstruction, in_place: Sequence[tuple[int, int]], num_threads: int, target: TargetInfo
) -> KernelPlan | str:
    """The plan for an instruction, or why no kind of kernel computes it.

    Args:
        instruction: An instruction that computes arrays.
        in_place: (result number, operand number) pairs that share memory.
        num_threads: Threads that may work on it.
        target: What the code is for.
    """
    body = kernel_body(instruction)
    request = KernelRequest(collapse(body.computation), tuple(in_place), target, _unread(instruction))
    declined: list[Decision] = []
    for kind in KERNEL_KINDS:
        reason = kind.declines(request)
        if reason is None:
            return _plan(instruction, body, kind, request, num_threads, declined)
        declined.append(Decision("kernel planner", (instruction.name,), f"not {kind.name}", reason))
    return "; ".join(f"{decision.verdict}: {decision.reason}" for decision in declined)


def _unread(instruction: HloInstruction) -> frozenset[int]:
    """Results of several that nobody reads."""
    if not instruction.shape.is_tuple or instruction.is_root:
        return frozenset()
    if any(user.opcode != "get-tuple-element" for user in instruction.users):
        return frozenset()
    read = {user.attrs.index for user in instruction.users}
    return frozenset(range(len(instruction.shape.elements))) - read


def _plan(
    instruction: HloInstruction,
    body: KernelBody,
    kind: KernelKind,
    request: KernelRequest,
    num_threads: int,
    declined: list[Decision],
) -> KernelPlan:
    extent = kind.extent(request)
    work = kernel_work(request, kind.domain(request) if kind.domain is not None else None)
    estimate = kind.estimate_ns(request) if kind.estimate_ns is not None else work.nanoseconds
    tasks = min(int(estimate / MIN_TASK_NS), 8 * num_threads, extent)
    split = num_threads > 1 and tasks > 1
    grain = -(-extent // tasks) if split else 0
    chosen = Decision(
        "kernel planner",
        (instruction.name,),
        kind.name,
        "the first kind that fits",
        {
            "estimate_ns": round(estimate),
            "flops": round(work.flops + work.transcendentals),
            "extent": extent,
            "tasks": tasks if split else 1,
            "dims": "x".join(map(str, request.body.root.shape.dims)),
            **(kind.figures(request) if kind.figures is not None else {}),
        },
    )
    scratch = kind.scratch_bytes(request) if kind.scratch_bytes is not None else 0
    return KernelPlan(kind, request, body.operands, extent, grain, scratch, (*declined, chosen))
