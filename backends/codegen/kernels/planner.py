"""Chooses the kernel of each instruction, and whether it is split over threads; both with reasons.

Only the kinds that fit the shape of the computation are asked, in the order of `kernel_shapes`; the first that does not
decline computes the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.column import plan_column
from xlalite.backends.codegen.kernels.concatenate import plan_concatenate
from xlalite.backends.codegen.kernels.cumulative import plan_cumulative
from xlalite.backends.codegen.kernels.dot import plan_dot_kernel
from xlalite.backends.codegen.kernels.estimate import Work, kernel_work
from xlalite.backends.codegen.kernels.fft.kernel import plan_fft
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_body import kernel_body
from xlalite.backends.codegen.kernels.linear_algebra.cholesky import plan_cholesky
from xlalite.backends.codegen.kernels.linear_algebra.eigh import plan_eigh
from xlalite.backends.codegen.kernels.linear_algebra.lu import plan_lu
from xlalite.backends.codegen.kernels.linear_algebra.qr import plan_qr
from xlalite.backends.codegen.kernels.linear_algebra.reflections import plan_reflections
from xlalite.backends.codegen.kernels.linear_algebra.svd import plan_svd
from xlalite.backends.codegen.kernels.linear_algebra.triangular_solve import plan_triangular_solve
from xlalite.backends.codegen.kernels.loop import plan_loop
from xlalite.backends.codegen.kernels.row import plan_row
from xlalite.backends.codegen.kernels.scatter import plan_scatter
from xlalite.backends.codegen.kernels.select_and_scatter.plan import plan_select_and_scatter
from xlalite.backends.codegen.kernels.sort.kernel import plan_sort
from xlalite.backends.codegen.kernels.sort.top import plan_top
from xlalite.backends.codegen.kernels.throughput import MIN_TASK_NS
from xlalite.backends.codegen.kernels.transpose import plan_transpose
from xlalite.backends.codegen.kernels.update import plan_update
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.decision import Decision, Number
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape, kernel_shapes

PLANS: Mapping[KernelKind, Callable[[KernelRequest, KernelShape], Kernel | Declined]] = {
    KernelKind.UPDATE: plan_update,
    KernelKind.SCATTER: plan_scatter,
    KernelKind.SELECT_AND_SCATTER: plan_select_and_scatter,
    KernelKind.SORT: plan_sort,
    KernelKind.TOP: plan_top,
    KernelKind.FFT: plan_fft,
    KernelKind.CHOLESKY: plan_cholesky,
    KernelKind.TRIANGULAR_SOLVE: plan_triangular_solve,
    KernelKind.LU: plan_lu,
    KernelKind.QR: plan_qr,
    KernelKind.REFLECTIONS: plan_reflections,
    KernelKind.EIGH: plan_eigh,
    KernelKind.SVD: plan_svd,
    KernelKind.TRANSPOSE: plan_transpose,
    KernelKind.CONCATENATE: plan_concatenate,
    KernelKind.DOT: plan_dot_kernel,
    KernelKind.ROW: plan_row,
    KernelKind.COLUMN: plan_column,
    KernelKind.CUMULATIVE: plan_cumulative,
    KernelKind.LOOP: plan_loop,
}
"""How each kind plans a request of its shape; which comes first is up to `KernelKind`."""

_LONG_NS = 100_000
"""What takes longer is cut into smaller parts of it, so that threads of unequal speed end together."""

_LARGE_RESULT = 8
"""A result is large if it takes at least this part of the last cache."""


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """How an instruction is computed.

    Attributes:
        kernel: The kernel.
        operands: Instructions whose arrays are the kernel's parameters.
        estimate_ns: How long it takes on one thread, about.
        grain: See `grain_of`.
        decision: The choice, and why the nearest other kind declined.
    """

    kernel: Kernel
    operands: tuple[HloInstruction, ...]
    estimate_ns: float
    grain: int
    decision: Decision


def plan_kernel(
    instruction: HloInstruction, in_place: Sequence[tuple[int, int]], num_threads: int, target: TargetInfo
) -> KernelPlan | Declined:
    """The plan for an instruction, or why no kind of kernel computes it.

    Args:
        instruction: An instruction that computes arrays.
        in_place: (result number, operand number) pairs that share memory.
        num_threads: Threads that may work on it.
        target: What the code is for.
    """
    body = kernel_body(instruction)
    request = KernelRequest(collapse(body.computation), tuple(in_place), target, _unread(instruction))
    fusion_kind = instruction.attrs.kind if instruction.opcode == "fusion" else None
    refusals: list[str] = []
    for shape in kernel_shapes(request.body, fusion_kind):
        kernel = PLANS[shape.kind](request, shape)
        if isinstance(kernel, Kernel):
            reason = refusals[-1] if refusals else "the kind for its shape"
            work = kernel_work(kernel.request.body, shape)
            kernel = kernel.streaming(_streamed(kernel, work))
            estimate = kernel.estimate_ns(work)
            grain = grain_of(estimate, kernel.extent, num_threads)
            figures = _figures(kernel, work, estimate, grain)
            decision = Decision("kernel planner", (instruction.name,), shape.kind.value, reason, figures)
            return KernelPlan(kernel, body.operands, estimate, grain, decision)
        refusals.append(f"not {shape.kind.value}: {kernel.reason}")
    return Declined("; ".join(refusals))


def _unread(instruction: HloInstruction) -> frozenset[int]:
    """Results of several that nobody reads."""
    if not instruction.shape.is_tuple or instruction.is_root:
        return frozenset()
    if any(user.opcode != "get-tuple-element" for user in instruction.users):
        return frozenset()
    read = {user.attrs.index for user in instruction.users}
    return frozenset(range(len(instruction.shape.elements))) - read


def _streamed(kernel: Kernel, work: Work) -> frozenset[int]:
    """Results that are stored past the caches.

    Where the kernel moves more than the last cache holds, whoever reads such a result finds none of its beginning in a
    cache anyway; stored past them, its lines are not read first: `add` of two cores writes 171 instead of 132 GB/s from
    24 MB to 24 MB, 100 instead of 71 from 64 MB, but of 8 MB, which stay, 173 instead of 204, and who reads them pays
    again. A line that was just read as an operand's is there already: in place, it takes three times as long.
    """
    request = kernel.request
    last_cache = request.target.cache_bytes[-1]
    if not kernel.writes_once or work.bytes_moved <= last_cache:
        return frozenset()
    in_place = {number for number, _ in request.in_place}
    leaves = enumerate(request.body.root.shape.leaves())
    large = {number for number, (_, leaf) in leaves if leaf.size_bytes * _LARGE_RESULT >= last_cache}
    return frozenset(large - in_place)


def grain_of(estimate_ns: float, extent: int, num_threads: int) -> int:
    """Units of an extent to a task; negative if the work is too short for a thread without a processor of its own.

    0 runs all on the calling thread.
    """
    is_long = estimate_ns > _LONG_NS
    tasks = min(int(estimate_ns / MIN_TASK_NS), (8 if is_long else 2) * num_threads, extent)
    if num_threads == 1 or tasks < 2:
        return 0
    return -(-extent // tasks) if is_long else -extent // tasks


def _figures(kernel: Kernel, work: Work, estimate_ns: float, grain: int) -> dict[str, Number]:
    """What the choice and its division rest on."""
    streamed = kernel.request.streamed
    return {
        "estimate_ns": round(estimate_ns),
        "flops": round(work.flops + work.transcendentals),
        "extent": kernel.extent,
        "tasks": -(-kernel.extent // abs(grain)) if grain else 1,
        "dims": "x".join(map(str, kernel.request.body.root.shape.dims)),
        **({"streamed": len(streamed)} if streamed else {}),
        **kernel.figures,
    }
