"""The pass that makes one kernel of products, the rows made of their results, and products of those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.construct import element
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.joined_body import joined_body
from xlalite.passes.fusion.kernel_shape import KernelKind, kernel_shapes
from xlalite.passes.simplify.dce import remove_uncalled_computations

if TYPE_CHECKING:
    from xlalite.backends.codegen.kernels.chain import ChainKernel

_Plans: TypeAlias = "dict[str, ChainKernel | Declined]"
"""What became of a body, by its fingerprint: the layers of a network have the same chains."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """What may become one kernel.

    Attributes:
        heads: Products, which only the rows need.
        rows: A fusion that reduces rows, and what it gives if that is several.
        tails: Products of rows, or fusions with one.
        given: Which of the rows' results others need, too.
    """

    heads: tuple[HloInstruction, ...]
    rows: tuple[HloInstruction, ...]
    tails: tuple[HloInstruction, ...]
    given: tuple[HloInstruction, ...]

    @property
    def members(self) -> tuple[HloInstruction, ...]:
        """All, operands before users."""
        return *self.heads, *self.rows, *self.tails

    @property
    def subject(self) -> tuple[str, ...]:
        """The names of products and rows."""
        return tuple(one.name for one in (*self.heads, self.rows[0], *self.tails))


@dataclass(frozen=True, slots=True)
class ProductChaining(HloPass):
    """dots -> fusion that reduces rows -> dots: one fusion, which gives the rows, too, where others need them.

    What only the next ones need, such as the scores of attention, is then never whole in memory. Requires that kernels
    have been chosen. Declines, with a record, where the kernel does, see `plan_chain`.

    Attributes:
        target: What the code is for; its caches say how many rows are computed at a time.
    """

    name: ClassVar[str] = "product-chaining"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def run(self, module: HloModule) -> bool:
        """Makes one fusion of every chain; says whether there was any."""
        changed = False
        plans: _Plans = {}
        for computation in running_computations(module):
            for rows in computation.post_order():
                chains = tuple(_chains_around(rows))
                if chains and self._is_large(module, chains[0]):
                    changed |= any(self._join(module, chain, plans) for chain in chains)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _is_large(self, module: HloModule, chain: _Chain) -> bool:
        """Whether what is handed on is worth a chain."""
        from xlalite.backends.codegen.kernels.chain_plan import why_not_in_blocks

        for head in chain.heads:
            if (declined := why_not_in_blocks(head, self.target)) is not None:
                module.record(self.name, chain.subject, "not joined", declined.reason)
                return False
        return True

    def _join(self, module: HloModule, chain: _Chain, plans: _Plans) -> bool:
        subject = chain.subject
        results = (*chain.tails, *chain.given)
        body, operands = joined_body(f"fused_{chain.tails[0].name}", chain.members, results)
        digest = fingerprint(body)
        if digest not in plans:
            plans[digest] = self._plan(body)
        kernel = plans[digest]
        if isinstance(kernel, Declined):
            module.record(self.name, subject, "not joined", kernel.reason)
            return False
        if not self.may_change():
            return False
        figures = {"bytes": sum(one.shape.size_bytes for one in kernel.windows), "rows": kernel.rows}
        module.record(self.name, subject, "joined", "what they hand on is never whole in memory", figures)
        (last, *_), attrs = chain.tails, FusionAttrs(FusionKind.OUTPUT)
        name = f"{last.name}_chain"
        joined = create("fusion", operands, attrs, (module.add(body),), shape=body.root.shape, name=name)
        if len(results) == 1:
            replace(last, joined)
            return True
        assert last.parent is not None, "an instruction of a computation"
        last.parent.add(joined)
        for number, result in enumerate(results):
            replace(result, element(joined, number))
        return True

    def _plan(self, body: HloComputation) -> ChainKernel | Declined:
        from xlalite.backends.codegen.kernels.chain_plan import plan_chain

        request = KernelRequest(collapse(body), target=self.target)
        shape = next(shape for shape in kernel_shapes(request.body) if shape.kind is KernelKind.CHAIN)
        return plan_chain(request, shape)


def _chains_around(rows: HloInstruction) -> Iterator[_Chain]:
    """Those whose middle an instruction may be: with all products of the rows, with those by columns, and with one."""
    if rows.opcode != "fusion" or rows.is_root or rows.is_controlled:
        return
    if not any(one.opcode == "reduce" for one in rows.called_computations[0].instructions):
        return
    heads = tuple(one for one in rows.operands if one.opcode == "dot" and _is_for_one(one))
    results = tuple(rows.users) if rows.shape.is_tuple else (rows,)
    if not heads or not all(one.shape.is_array for one in results):
        return
    products = {user: _sums_rows(user, result) for result in results for user in result.users}
    tails = [user for user, sums in products.items() if sums is not None and not _needs_otherwise(user, results, rows)]
    by_columns = [tail for tail in tails if not products[tail]]
    for some in dict.fromkeys((tuple(tails), tuple(by_columns), *((tail,) for tail in by_columns))):
        if some:
            given = tuple(one for one in results if one.is_root or not set(some).issuperset(one.users))
            yield _Chain(heads, (rows, *(one for one in results if one is not rows)), some, given)


def _sums_rows(user: HloInstruction, result: HloInstruction) -> bool | None:
    """Whether a product of rows sums over them, and not over columns; None if it is none that could be in a chain."""
    positions = user.operand_positions(result)
    if len(positions) != 1 or not user.shape.is_array or user.is_controlled:
        return None
    (position,) = positions
    dot, rows = user, result
    if user.opcode == "fusion":
        (called,) = user.called_computations
        dots, rows = [one for one in called.instructions if one.opcode == "dot"], called.parameters[position]
        if len(dots) != 1 or set(rows.users) != {dots[0]}:
            return None
        (dot,) = dots
    if dot.opcode != "dot":
        return None
    from xlalite.backends.codegen.kernels.chain_blocks import sums_rows

    sums = sums_rows(dot, rows)
    return sums if sums or dot.operand(0) is rows else None


def _needs_otherwise(tail: HloInstruction, results: Sequence[HloInstruction], rows: HloInstruction) -> bool:
    """Whether other operands are made of the rows, so that the rows must be there before."""
    if sum(one.user_count for one in results) == 1:
        return False
    used = next(one for one in results if one in tail.operands)
    others = [operand for operand in tail.operands if operand is not used]
    return rows in reachable(others, lambda one: one.operands)


def _is_for_one(instruction: HloInstruction) -> bool:
    return instruction.user_count == 1 and not instruction.is_root and not instruction.is_controlled
