"""What a row kernel does in which pass over a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.kernels.accumulation import Accumulation, Accumulations
from xlalite.backends.codegen.kernels.extreme_accumulation import ExtremeAccumulation
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.vector_dimension import has_few_columns
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.domain import Place, reduces_columns
from xlalite.passes.fusion.fusible import is_expensive
from xlalite.passes.fusion.kernel_shape import KernelShape, result_dims, results_of

SCRATCH_BYTES = 1 << 16
"""Most bytes of scratch rows; they lie on the stack of a worker thread."""

_LONG_ROW = 32
"""Vectors of a row from which on it pays to compute the reciprocal of what they are divided by: softmax of [4096,1024]
takes 1.55 ms of one core so, and 1.70 with divisions, but of [1000,256] 104 us instead of 95.
"""

MOST_SETS = 4
"""Accumulators side by side."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The passes of a row kernel.

    Attributes:
        shape: What the kernel walks over, the columns being minor, and where each instruction is read.
        levels: The reductions of each pass.
        hoisted: For each pass, and for the storing pass at the end, what is computed once a row before it.
        divisors: Likewise, by which of those, spread over the columns, all elements of a row are divided.
        kept: Expensive instructions that several passes need, with the pass that computes them.
        full_results: Results that the storing pass writes.
    """

    shape: KernelShape
    levels: tuple[Accumulations, ...]
    hoisted: tuple[tuple[HloInstruction, ...], ...]
    divisors: tuple[tuple[HloInstruction, ...], ...]
    kept: Mapping[HloInstruction, int]
    full_results: frozenset[HloInstruction]

    @property
    def column_dims(self) -> tuple[int, ...]:
        """Sizes of the columns."""
        return self.shape.domain.column_dims

    def row_index(self, member: HloInstruction, row: Index) -> Index:
        """The index at which something computed once a row is asked for."""
        return row if self.shape.places[member] is Place.ROW else ()

    def takes_long(self, level: int) -> bool:
        """Whether an element of a pass takes long."""
        needed = members_of_pass(self.levels[level].arrays, self.shape.places)
        return any(member.op.has(Trait.TRANSCENDENTAL) for member in needed)

    def accumulator_sets(self, level: int, lanes: int) -> int:
        """Accumulators that hide the latency of combining; few are enough where elements are expensive."""
        vectors = self.column_dims[-1] // lanes
        if self.takes_long(level):
            return 2 if vectors >= 2 else 1
        limit = MOST_SETS if len(self.levels[level].each) <= 2 else 2
        return max(1, min(limit, vectors))


def plan_passes(request: KernelRequest, shape: KernelShape) -> RowPlan | Declined:
    """The plan of a computation of rows."""
    places, level_of = shape.places, _levels(request.body)
    reason = _why_no_rows(request.body, level_of, shape)
    if reason is not None:
        return Declined(reason)
    levels = tuple(
        _accumulations([r for r in level_of if level_of[r] == level], request.unread)
        for level in range(max(level_of.values()) + 1)
    )
    full = [result for result in results_of(request.body) if places.get(result) is Place.FULL]
    passes = [members_of_pass(seeds, places) for seeds in (*(level.arrays for level in levels), full)]
    divisors = tuple(_divisors(members, shape, request.target) for members in passes)
    return RowPlan(shape, levels, hoisted(passes, places), divisors, _kept(passes, shape), frozenset(full))


def _why_no_rows(body: HloComputation, reduces: Iterable[HloInstruction], shape: KernelShape) -> str | None:
    domain, places = shape.domain, shape.places
    if any(not reduces_columns(reduce, domain) for reduce in reduces):
        return "the reductions take different dimensions away"
    if domain.column_count == 0:
        return "a row has no elements"
    results = results_of(body)
    if any(r.shape.is_tuple for r in results) and (len(results) > 1 or results[0].opcode != "reduce"):
        return "a result is itself a tuple"
    if any(result_dims(result) not in (domain.dims, domain.row_dims) for result in results):
        return "a result has neither the sizes of the rows nor one element a row"
    if len({result_dims(result) for result in results}) == 1 and has_few_columns(body, domain):
        return "rows have few elements, and vectors of a loop take many rows"
    if any(places[reduce] is not Place.ROW for reduce in reduces if reduce in places):
        return "a reduction is read at another index than its row's"
    return None


def _accumulations(reduces: list[HloInstruction], unread: frozenset[int]) -> Accumulations:
    """How the reductions of one pass accumulate: in any order only if all of them can."""
    found = Accumulations(tuple(ExtremeAccumulation.recognised(r, unread) or Accumulation.of(r) for r in reduces))
    return found if found.are_any_order else Accumulations(tuple(map(Accumulation.of, reduces)))


def _levels(body: HloComputation) -> dict[HloInstruction, int]:
    """The pass of each reduction: one after the last that it needs."""
    depth: dict[HloInstruction, int] = {}
    for instruction in body.post_order():
        deepest = max((depth[operand] for operand in instruction.operands), default=0)
        depth[instruction] = deepest + (instruction.opcode == "reduce")
    return {reduce: passes - 1 for reduce, passes in depth.items() if reduce.opcode == "reduce"}


def members_of_pass(
    seeds: Iterable[HloInstruction], places: Mapping[HloInstruction, Place]
) -> dict[HloInstruction, None]:
    """What a pass computes for each column, and, at the edge, what it needs once a row."""
    found: dict[HloInstruction, None] = {}
    waiting = list(seeds)
    while waiting:
        instruction = waiting.pop()
        if instruction in found:
            continue
        found[instruction] = None
        if places.get(instruction) in (Place.FULL, Place.OTHER):
            waiting.extend(instruction.operands)
    return found


def hoisted(
    passes: list[dict[HloInstruction, None]], places: Mapping[HloInstruction, Place]
) -> tuple[tuple[HloInstruction, ...], ...]:
    """For each pass, what it needs once a row (or column), and scalars."""
    return tuple(
        tuple(
            member
            for member in members
            if places.get(member) in (Place.ROW, Place.SCALAR)
            and member.shape.is_array
            and (places[member] is Place.ROW or member.shape.is_scalar)
            and member.opcode not in ("reduce", "constant")
        )
        for members in passes
    )


def _divisors(members: Iterable[HloInstruction], shape: KernelShape, target: TargetInfo) -> tuple[HloInstruction, ...]:
    """By what a pass divides all elements of rows that are long enough for reciprocals to pay."""
    if not target.has_fma or shape.domain.column_dims[-1] < _LONG_ROW * target.lanes(32):
        return ()
    found = {
        member.operand(1): None
        for member in members
        if member.opcode == "divide"
        and member.shape.dtype.is_floating
        and member.shape.dtype is not DType.F8E8M0FNU
        and shape.places.get(member) is Place.FULL
        and member.operand(1).opcode == "broadcast"
        and shape.places.get(member.operand(1).operand(0)) in (Place.ROW, Place.SCALAR)
    }
    return tuple(found)


def _kept(passes: list[dict[HloInstruction, None]], shape: KernelShape) -> dict[HloInstruction, int]:
    """Members that are expensive and needed by several passes, with the first of them."""
    kept: dict[HloInstruction, int] = {}
    used = 0
    for number, members in enumerate(passes[:-1]):
        for member in members:
            if shape.places.get(member) is not Place.FULL or not is_expensive(member) or member.opcode == "reduce":
                continue
            again = any(member in later for later in passes[number + 1 :])
            size = shape.domain.column_count * member.shape.dtype.size_bytes
            if again and member not in kept and used + size <= SCRATCH_BYTES:
                kept[member] = number
                used += size
    return kept
