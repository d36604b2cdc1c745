"""Chooses the kernel of each instruction, and whether it is split over threads; both with reasons.

Only the kinds that fit the shape of the computation are asked, in the order of `kernel_shapes`; the first that does not
decline computes the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from xlalite.backends.codegen.kernels.added_kernels import added_plans
from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.estimate import Work, kernel_work, written
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_body import KernelBody, kernel_body
from xlalite.backends.codegen.kernels.throughput import ELEMENTS_PER_NS, MIN_TASK_NS
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import Fingerprints
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.late import imported
from xlalite.hlo.ops.control_flow import FusionKind
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision, Number
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape, kernel_shapes

PlanFunction = Callable[[KernelRequest, KernelShape], Kernel | Declined]

_PLANS: Mapping[KernelKind, str] = {
    KernelKind.UPDATE: ".update:plan_update",
    KernelKind.SCATTER: ".scatter:plan_scatter",
    KernelKind.SELECT_AND_SCATTER: ".select_and_scatter.plan:plan_select_and_scatter",
    KernelKind.SORT: ".sort.kernel:plan_sort",
    KernelKind.TOP: ".sort.top:plan_top",
    KernelKind.FFT: ".fft.kernel:plan_fft",
    KernelKind.CHOLESKY: ".linear_algebra.cholesky:plan_cholesky",
    KernelKind.TRIANGULAR_SOLVE: ".linear_algebra.triangular_solve:plan_triangular_solve",
    KernelKind.LU: ".linear_algebra.lu:plan_lu",
    KernelKind.QR: ".linear_algebra.qr:plan_qr",
    KernelKind.REFLECTIONS: ".linear_algebra.reflections:plan_reflections",
    KernelKind.EIGH: ".linear_algebra.eigh:plan_eigh",
    KernelKind.SVD: ".linear_algebra.svd:plan_svd",
    KernelKind.HESSENBERG: ".linear_algebra.hessenberg:plan_hessenberg",
    KernelKind.TRIDIAGONAL: ".linear_algebra.tridiagonal_form:plan_tridiagonal",
    KernelKind.PIVOTED_QR: ".linear_algebra.pivoted_qr:plan_pivoted_qr",
    KernelKind.SCHUR: ".linear_algebra.schur:plan_schur",
    KernelKind.EIG: ".linear_algebra.eig:plan_eig",
    KernelKind.TRIDIAGONAL_SOLVE: ".linear_algebra.tridiagonal_solve:plan_tridiagonal_solve",
    KernelKind.TRANSPOSE: ".transpose:plan_transpose",
    KernelKind.CONCATENATE: ".concatenate:plan_concatenate",
    KernelKind.ZERO_PAD: ".zero_pad:plan_zero_pad",
    KernelKind.CHAIN: ".chain_plan:plan_chain",
    KernelKind.DOT: ".dot:plan_dot_kernel",
    KernelKind.PHASES: ".dot.phases:plan_phases",
    KernelKind.ROW: ".row:plan_row",
    KernelKind.COLUMN: ".column:plan_column",
    KernelKind.CUMULATIVE: ".cumulative:plan_cumulative",
    KernelKind.CONVOLUTION: ".convolution.kernel:plan_convolution",
    KernelKind.LOOP: ".loop:plan_loop",
}
"""How each kind plans a request of its shape, as module and function; which comes first is up to `KernelKind`.

The kinds are a third of the compiler's source, and a module asks for few of them: each is imported when it is asked.
"""

_UNEVEN = 4 / 3
"""How many times as much a thread may have to do as with fewer tasks of short work."""

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
        as_written_ns: How long if LLVM does not improve it, at least.
        grain: See `grain_of`.
        decision: The choice, and why the nearest other kind declined.
    """

    kernel: Kernel
    operands: tuple[HloInstruction, ...]
    estimate_ns: float
    as_written_ns: float
    grain: int
    decision: Decision


def plan_function(kind: KernelKind) -> PlanFunction:
    """What plans kernels of a kind."""
    function: PlanFunction = imported(_PLANS[kind], __package__)
    return function


def plan_kernel(
    instruction: HloInstruction,
    in_place: Sequence[tuple[int, int]],
    num_threads: int,
    target: TargetInfo,
    body: KernelBody | None = None,
) -> KernelPlan | Declined:
    """The plan for an instruction, or why no kind of kernel computes it.

    Args:
        instruction: An instruction that computes arrays.
        in_place: (result number, operand number) pairs that share memory.
        num_threads: Threads that may work on it.
        target: What the code is for.
        body: The instruction's `kernel_body`, if the caller has made it.
    """
    body = body or kernel_body(instruction)
    request = KernelRequest(collapse(body.computation), tuple(in_place), target, _unread(instruction))
    fusion_kind = instruction.attrs.kind if instruction.opcode == "fusion" else None
    refusals: list[str] = []
    for name, shape, kernel in _candidates(request, fusion_kind):
        if isinstance(kernel, Kernel):
            reason = refusals[-1] if refusals else "the kind for its shape"
            work = kernel_work(kernel.request.body, shape)
            kernel = kernel.streaming(_streamed(kernel, work))
            estimate = kernel.estimate_ns(work)
            grain = grain_of(estimate, kernel.extent, num_threads, is_shared=kernel.shares_between_units)
            if kernel.forks and kernel.extent < num_threads and estimate > _LONG_NS:
                kernel, grain = kernel.forking(num_threads), 0
            figures = _figures(kernel, work, estimate, grain)
            decision = Decision("kernel planner", (instruction.name,), name, reason, figures)
            elements = sum(leaf.element_count for _, leaf in written(request.body.root, shape).leaves())
            as_written = max(estimate, elements / ELEMENTS_PER_NS)
            return KernelPlan(kernel, body.operands, estimate, as_written, grain, decision)
        refusals.append(f"not {name}: {kernel.reason}")
    return Declined("; ".join(refusals))


def _candidates(
    request: KernelRequest, fusion_kind: FusionKind | None
) -> Iterator[tuple[str, KernelShape, Kernel | Declined]]:
    """What each kind says; the work of an added one is counted as that of the last, which walks over everything."""
    for name, plan in added_plans(request.body.root.opcode).items():
        *_, whole = kernel_shapes(request.body, fusion_kind)
        yield name, whole, plan(request)
    for shape in kernel_shapes(request.body, fusion_kind):
        yield shape.kind.value, shape, plan_function(shape.kind)(request, shape)


class KernelPlans:
    """The plans of a module's kernels; what computes the same is planned once, as the layers of a network are."""

    def __init__(self, num_threads: int, target: TargetInfo) -> None:
        """For so many threads of the machine."""
        self._num_threads, self._target = num_threads, target
        self._fingerprints = Fingerprints()
        self._plans: dict[Hashable, KernelPlan | Declined] = {}

    def of(
        self, instruction: HloInstruction, body: KernelBody, in_place: tuple[tuple[int, int], ...]
    ) -> KernelPlan | Declined:
        """What `plan_kernel` says, which keeps the bodies as they are."""
        digest = self._fingerprints.of_computation(body.computation)
        key = digest, in_place, instruction.opcode == "fusion" and instruction.attrs.kind, _unread(instruction)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = plan_kernel(instruction, in_place, self._num_threads, self._target, body)
            return plan
        if isinstance(plan, Declined):
            return plan
        return replace(plan, operands=body.operands, decision=replace(plan.decision, subject=(instruction.name,)))

    def digest(self, body: HloComputation) -> str:
        """The fingerprint of a kernel's body."""
        return self._fingerprints.of_computation(body)


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


def grain_of(estimate_ns: float, extent: int, num_threads: int, *, is_shared: bool = False) -> int:
    """Units of an extent to a task; negative if the work is too short for a thread without a processor of its own.

    0 runs all on the calling thread. Where long units share work, each thread has one task, for two would do again
    what their units share: [2000,777] transposed by [2000,513] takes two threads 4.2 ms so, and 4.75 otherwise.
    """
    is_long = estimate_ns > _LONG_NS
    tasks = min(int(estimate_ns / MIN_TASK_NS), (8 if is_long else 2) * num_threads, extent)
    if num_threads == 1 or tasks < 2:
        return 0
    least = -(-extent // tasks)
    most = -(-extent // num_threads)
    if is_long:
        return most if is_shared else least
    gain = _longest_share(extent, least, num_threads) / _longest_share(extent, max(least, most), num_threads)
    # A thread that comes late has less if tasks are many.
    return -max(least, most) if gain >= _UNEVEN else -least


def _longest_share(extent: int, size: int, num_threads: int) -> int:
    """Units that a thread has at most if tasks have so many each."""
    tasks = -(-extent // size)
    return -(-tasks // num_threads) * size


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
        **({"threads": kernel.request.threads} if kernel.request.threads > 1 else {}),
        **kernel.figures,
    }
