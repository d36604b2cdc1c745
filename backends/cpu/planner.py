"""Chooses the kernel of each instruction, and whether it is split over threads; both with reasons.

The kinds are asked in order; the first that does not decline computes the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.cpu.collapse import collapse
from xlalite.backends.cpu.errors import UnsupportedOperationError
from xlalite.backends.cpu.kernel_body import KernelBody, kernel_body
from xlalite.backends.cpu.kernels import KERNEL_KINDS
from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.llvm import TargetInfo
from xlalite.hlo.decision import Decision
from xlalite.hlo.instruction import HloInstruction
from xlalite.passes.cost_analysis import CostAnalysis

BYTES_PER_NS = 8.0
FLOPS_PER_NS = 16.0
TRANSCENDENTALS_PER_NS = 1.0
"""What one core does in a nanosecond, about; only the decision to split rests on these."""

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
) -> KernelPlan:
    """The plan for an instruction.

    Args:
        instruction: An instruction that computes arrays.
        in_place: (result number, operand number) pairs that share memory.
        num_threads: Threads that may work on it.
        target: What the code is for.

    Raises:
        UnsupportedOperationError: No kind of kernel computes it.
    """
    body = kernel_body(instruction)
    request = KernelRequest(collapse(body.computation), tuple(in_place), target)
    declined: list[Decision] = []
    for kind in KERNEL_KINDS:
        reason = kind.declines(request)
        if reason is None:
            return _plan(instruction, body, kind, request, num_threads, declined)
        declined.append(Decision("kernel planner", (instruction.name,), f"not {kind.name}", reason))
    reasons = "; ".join(f"{decision.verdict}: {decision.reason}" for decision in declined)
    raise UnsupportedOperationError(f"planning a kernel for %{instruction.name} ({instruction.opcode}): {reasons}")


def _plan(
    instruction: HloInstruction,
    body: KernelBody,
    kind: KernelKind,
    request: KernelRequest,
    num_threads: int,
    declined: list[Decision],
) -> KernelPlan:
    extent = kind.extent(request)
    estimate = kind.estimate_ns(request) if kind.estimate_ns is not None else _estimate_ns(request)
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
            "extent": extent,
            "tasks": tasks if split else 1,
            "dims": "x".join(map(str, request.body.root.shape.dims)),
            **(kind.figures(request) if kind.figures is not None else {}),
        },
    )
    scratch = kind.scratch_bytes(request) if kind.scratch_bytes is not None else 0
    return KernelPlan(kind, request, body.operands, extent, grain, scratch, (*declined, chosen))


def _estimate_ns(request: KernelRequest) -> float:
    cost = CostAnalysis().of_computation(request.body)
    moved = sum(_bytes_read(p) for p in request.body.parameters) + _bytes_written(request)
    return moved / BYTES_PER_NS + cost.flops / FLOPS_PER_NS + cost.transcendentals / TRANSCENDENTALS_PER_NS


_READS_A_PART = frozenset({"slice", "dynamic-slice"})


def _bytes_read(parameter: HloInstruction) -> int:
    """Bytes of a parameter that the kernel reads, about: the parts that slices take, else all of it."""
    size = parameter.shape.size_bytes
    parts = [user.shape.size_bytes for user in parameter.users if user.opcode in _READS_A_PART]
    whole = [user for user in parameter.users if user.opcode not in _READS_A_PART and not _is_updated(parameter, user)]
    return size if whole else min(size, sum(parts))


def _is_updated(parameter: HloInstruction, user: HloInstruction) -> bool:
    return user.opcode == "dynamic-update-slice" and user.operand(0) is parameter


def _bytes_written(request: KernelRequest) -> int:
    root = request.body.root
    is_update = root.opcode == "dynamic-update-slice" and request.in_place
    return root.operand(1).shape.size_bytes if is_update else root.shape.size_bytes
