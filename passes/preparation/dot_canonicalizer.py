"""Brings dots into one form: batch, then one free or contracting dimension each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class DotCanonicalizer(OpExpander):
    """dot -> reshape(dot([batch..., m, k], [batch..., k, n])) with transposes and reshapes around it.

    Batch dimensions lead in order and at most one free and exactly one contracting dimension remain on each side.
    Transposes are real work unless a backend folds them into the product, so no pipeline runs this on every dot: a
    backend says by a subclass of the same name which dots it wants in the form, and one name switches both off.
    """

    name: ClassVar[str] = "dot-canonicalizer"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether the dot is not in the form yet."""
        attrs: DotAttrs = instruction.attrs
        lhs, rhs = instruction.operands
        batch = tuple(range(len(attrs.lhs_batch_dims)))
        first = len(batch)
        if attrs.lhs_batch_dims != batch or attrs.rhs_batch_dims != batch:
            return True
        if len(attrs.lhs_contracting_dims) != 1 or lhs.shape.rank > first + 2 or rhs.shape.rank > first + 2:
            return True
        return attrs.lhs_contracting_dims[0] != lhs.shape.rank - 1 or attrs.rhs_contracting_dims[0] != first

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the dot in the form and the reshape of its result."""
        attrs: DotAttrs = instruction.attrs
        lhs, rhs = operands
        lhs_free = free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)
        rhs_free = free_dimensions(rhs.shape.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)
        batch = [lhs.dims[d] for d in attrs.lhs_batch_dims]
        k = math.prod(lhs.dims[d] for d in attrs.lhs_contracting_dims)
        m = [math.prod(lhs.dims[d] for d in lhs_free)] if lhs_free else []
        n = [math.prod(rhs.dims[d] for d in rhs_free)] if rhs_free else []
        left = builder.transpose(lhs, (*attrs.lhs_batch_dims, *lhs_free, *attrs.lhs_contracting_dims))
        right = builder.transpose(rhs, (*attrs.rhs_batch_dims, *attrs.rhs_contracting_dims, *rhs_free))
        leading = tuple(range(len(batch)))
        form = DotAttrs(
            leading,
            (len(batch) + len(m),),
            leading,
            (len(batch),),
            attrs.operand_precision,
            attrs.algorithm,
        )
        product = builder.op(
            "dot",
            (builder.reshape(left, (*batch, *m, k)), builder.reshape(right, (*batch, k, *n))),
            form,
            shape=instruction.shape.with_dims((*batch, *m, *n)),
        )
        return builder.reshape(product, instruction.shape.dims)
