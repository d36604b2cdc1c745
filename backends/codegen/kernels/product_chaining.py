"""The pass that makes one kernel of a product, the rows made of its result, and a product of those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar, TypeAlias

from xlalite.backends.codegen.kernels.chain import ChainKernel, plan_chain, why_not_in_blocks
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

_Plans: TypeAlias = "dict[str, ChainKernel | Declined]"
"""What became of a body, by its fingerprint: the layers of a network have the same chains."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """What may become one kernel.

    Attributes:
        first: A product, which only the rows need.
        rows: A fusion that reduces rows.
        last: A product with the rows on its left, or a fusion with one.
    """

    first: HloInstruction
    rows: HloInstruction
    last: HloInstruction

    @property
    def members(self) -> tuple[HloInstruction, ...]:
        """All, operands before users."""
        return self.first, self.rows, self.last

    @property
    def gives_rows(self) -> bool:
        """Whether others need the rows, too."""
        return self.rows.user_count > 1


@dataclass(frozen=True, slots=True)
class ProductChaining(HloPass):
    """dot -> fusion that reduces rows -> dot: one fusion, which gives the rows, too, where others need them.

    What only the next one needs, such as the scores of attention, is then never whole in memory. Requires that kernels
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
                chains = _chains_around(rows)
                changed |= any(self._join(module, chain, plans) for chain in chains)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _join(self, module: HloModule, chain: _Chain, plans: _Plans) -> bool:
        subject = tuple(member.name for member in chain.members)
        if (declined := why_not_in_blocks(chain.first, self.target)) is not None:
            module.record(self.name, subject, "not joined", declined.reason)
            return False
        results = (chain.last, chain.rows) if chain.gives_rows else (chain.last,)
        body, operands = joined_body(f"fused_{chain.last.name}", chain.members, results)
        digest = fingerprint(body)
        if digest not in plans:
            plans[digest] = self._plan(body)
        kernel = plans[digest]
        if isinstance(kernel, Declined):
            module.record(self.name, subject, "not joined", kernel.reason)
            return False
        if not self.may_change():
            return False
        saved = chain.first.shape.size_bytes + (0 if chain.gives_rows else chain.rows.shape.size_bytes)
        figures = {"bytes": saved, "rows": kernel.rows}
        module.record(self.name, subject, "joined", "what they hand on is never whole in memory", figures)
        attrs, name, last = FusionAttrs(FusionKind.OUTPUT), f"{chain.last.name}_chain", chain.last
        joined = create("fusion", operands, attrs, (module.add(body),), shape=body.root.shape, name=name)
        if not chain.gives_rows:
            replace(last, joined)
            return True
        assert last.parent is not None, "an instruction of a computation"
        last.parent.add(joined)
        replace(last, element(joined, 0))
        replace(chain.rows, element(joined, 1))
        return True

    def _plan(self, body: HloComputation) -> ChainKernel | Declined:
        request = KernelRequest(collapse(body), target=self.target)
        shape = next(shape for shape in kernel_shapes(request.body) if shape.kind is KernelKind.CHAIN)
        return plan_chain(request, shape)


def _chains_around(rows: HloInstruction) -> Iterator[_Chain]:
    """Those whose middle an instruction may be."""
    if rows.opcode != "fusion" or not rows.shape.is_array or rows.is_root or rows.is_controlled:
        return
    if not any(one.opcode == "reduce" for one in rows.called_computations[0].instructions):
        return
    first = next((one for one in rows.operands if one.opcode == "dot" and _is_for_one(one)), None)
    if first is None:
        return
    for last in rows.users:
        is_product = last.shape.is_array and last.operand_positions(rows) == _left_of_product(last)
        if is_product and not last.is_controlled and not _needs_otherwise(last, rows):
            yield _Chain(first, rows, last)


def _needs_otherwise(last: HloInstruction, rows: HloInstruction) -> bool:
    """Whether other operands are made of the rows, so that the rows must be there before."""
    others = [operand for operand in last.operands if operand is not rows]
    return rows.user_count > 1 and rows in reachable(others, lambda one: one.operands)


def _is_for_one(instruction: HloInstruction) -> bool:
    return instruction.user_count == 1 and not instruction.is_root and not instruction.is_controlled


def _left_of_product(last: HloInstruction) -> tuple[int, ...]:
    """Where the left operand of the only product stands among the operands."""
    if last.opcode == "dot":
        return (0,)
    dots = [one for called in last.called_computations for one in called.instructions if one.opcode == "dot"]
    if last.opcode != "fusion" or len(dots) != 1 or dots[0].operand(0).opcode != "parameter":
        return ()
    return (dots[0].operand(0).attrs.number,)
