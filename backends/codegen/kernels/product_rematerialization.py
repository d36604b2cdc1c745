"""The pass that computes large products again, for those who need what is made of them only much later."""

from __future__ import annotations

import math
from dataclasses import field
from typing import ClassVar

from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import depends_on_itself, post_order, reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass

_MOST_TERMS = 128
"""Terms of a product up to which it is quicker computed again than written and read: a step of [4,12,512,128] takes 171
instead of 175 ms of one core, of [8,12,512,64] 175 instead of 201.
"""

_LEAST_ROWS = 16
"""Rows that are in the second cache at a time, with as many of two other arrays."""

_LARGE = 4
"""A product is large from so many times the second cache on. What is smaller stays near: a step of [2,8,256,64] would
take 6.4 instead of 5.6 ms.
"""

_READERS = ("dot", "reduce")
"""What may need it later, besides elementwise work."""


@dataclass(frozen=True, slots=True)
class ProductRematerialization(HloPass):
    """A product in a large batch, and elementwise work after it, once for the products of that, and once for the rest.

    Training needs the scores of attention twice: for the softmax that values are multiplied with, and for the gradient,
    which needs the result of that. Kept in between they would be the largest arrays of all. Computed again, they are
    part of a chain there, too, and neither is ever whole in memory (`ProductChaining`). What was reduced to rows, such
    as the greatest score and the sum of exponentials, is kept. The same idea as in FlashAttention (Dao et al., 2022,
    section 3.1); XLA's `rematerialization` does it for the sake of memory alone.

    Attributes:
        target: What the code is for; its caches say what is large.
    """

    name: ClassVar[str] = "product-rematerialization"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def run(self, module: HloModule) -> bool:
        """Computes again what pays; says whether there was any."""
        changed = False
        for computation in running_computations(module):
            for product in computation.post_order():
                if product.opcode == "dot" and self._may_be_in_chain(product):
                    changed |= self._again(module, computation, product)
        return changed

    def _may_be_in_chain(self, product: HloInstruction) -> bool:
        """Whether it is large, its batch, too, and its rows and its terms are not."""
        attrs, lhs, shape = product.attrs, product.operand(0).shape, product.shape
        if product.is_controlled or not shape.rank:
            return False
        second = self.target.cache_bytes[1]
        if shape.size_bytes <= _LARGE * second:
            return False
        from xlalite.backends.codegen.kernels.chain_blocks import LEAST_PRODUCTS

        return (
            math.prod(lhs.dims[d] for d in attrs.lhs_batch_dims) >= LEAST_PRODUCTS
            and math.prod(lhs.dims[d] for d in attrs.lhs_contracting_dims) <= _MOST_TERMS
            and 3 * _LEAST_ROWS * shape.dims[-1] * shape.dtype.size_bytes <= second
        )

    def _again(self, module: HloModule, computation: HloComputation, product: HloInstruction) -> bool:
        made = _made_elementwise(product)
        behind = _behind_products_of(made)
        made = {one: None for one in made if one not in behind}
        uses = [(one, user) for one in made for user in one.users if user not in made]
        late = [(one, user) for one, user in uses if user in behind]
        if not any(user.op.is_elementwise for _, user in late) or len(late) == len(uses):
            return False
        if any(not user.op.is_elementwise and user.opcode not in _READERS for _, user in late):
            reason = "what is made of it is kept for others anyway"
            module.record(self.name, (product.name,), "kept", reason, {"bytes": product.shape.size_bytes})
            return False
        if not self.may_change():
            return False
        again: dict[HloInstruction, HloInstruction] = {}
        needed = dict.fromkeys(one for one, _ in late)
        for one in post_order(needed, lambda one: [o for o in one.operands if o in made], depends_on_itself):
            operands = [again.get(operand, operand) for operand in one.operands]
            again[one] = computation.add(one.clone(operands, name=f"{one.name}.remat"))
        for one, user in late:
            for position in user.operand_positions(one):
                user.replace_operand(position, again[one])
        subject = (product.name, *dict.fromkeys(user.name for _, user in late))
        figures = {"bytes": product.shape.size_bytes, "instructions": len(again)}
        module.record(self.name, subject, "computed again", "it is needed again after its first use", figures)
        return True


def _made_elementwise(product: HloInstruction) -> dict[HloInstruction, None]:
    """A product and what is made of it element by element."""
    made: dict[HloInstruction, None] = {product: None}
    for one in reachable(made, lambda one: one.users if one in made else ()):
        if one.op.is_elementwise and one.shape.dims == product.shape.dims and not one.is_controlled:
            made[one] = None
    return made


def _behind_products_of(made: dict[HloInstruction, None]) -> set[HloInstruction]:
    """What needs the result of a product that is made of one."""
    products = [user for one in made for user in one.users if user.opcode == "dot"]
    return set(reachable((user for product in products for user in product.users), lambda one: one.users))
