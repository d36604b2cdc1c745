"""Expresses batch normalisation by arithmetic and reductions."""

from __future__ import annotations

import math
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.batch_norm import BatchNormAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class BatchNormExpander(OpExpander):
    """batch-norm-training, -inference and -grad -> elementwise operations and sums.

    Types narrower than f32 are computed in f32. The last bits may differ from the evaluator's, which computes in f64.
    """

    name: ClassVar[str] = "batch-norm-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad"})

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the composition."""
        source, vector = instruction.operand(0).shape, instruction.operand(1).shape
        wide = DType.F64 if source.dtype is DType.F64 else DType.F32
        work = _Features(builder, instruction, wide)
        converted = tuple(builder.convert(operand, wide) for operand in operands)
        if instruction.opcode == "batch-norm-inference":
            return builder.convert(work.inference(*converted), source.dtype)
        results = work.training(*converted) if instruction.opcode == "batch-norm-training" else work.grad(*converted)
        types = (source.dtype, vector.dtype, vector.dtype)
        return builder.tuple([builder.convert(part, dtype) for part, dtype in zip(results, types, strict=True)])


class _Features:
    """Arithmetic on an array and vectors of one number for each feature."""

    def __init__(self, builder: Builder, instruction: HloInstruction, dtype: DType) -> None:
        attrs: BatchNormAttrs = instruction.attrs
        self.builder = builder
        self.feature = attrs.feature_index
        self.epsilon = attrs.epsilon
        self.dims = instruction.operand(0).shape.dims
        self.others = tuple(d for d in range(len(self.dims)) if d != self.feature)
        self.count = float(math.prod(self.dims[d] for d in self.others))
        self.dtype = dtype

    def training(self, x: Handle, scale: Handle, offset: Handle) -> tuple[Handle, ...]:
        mean = self.total(x) / self.count
        centred = x - self.spread(mean)
        variance = self.total(centred * centred) / self.count
        return self.scaled(centred, scale, offset, variance), mean, variance

    def inference(self, x: Handle, scale: Handle, offset: Handle, mean: Handle, variance: Handle) -> Handle:
        return self.scaled(x - self.spread(mean), scale, offset, variance)

    def grad(self, x: Handle, scale: Handle, mean: Handle, variance: Handle, gradient: Handle) -> tuple[Handle, ...]:
        inverse = 1.0 / self.deviation(variance)
        normalised = (x - self.spread(mean)) * self.spread(inverse)
        grad_offset = self.total(gradient)
        grad_scale = self.total(gradient * normalised)
        share = (self.spread(grad_offset) + normalised * self.spread(grad_scale)) / self.count
        return self.spread(scale * inverse) * (gradient - share), grad_scale, grad_offset

    def scaled(self, centred: Handle, scale: Handle, offset: Handle, variance: Handle) -> Handle:
        factor = scale / self.deviation(variance)
        return centred * self.spread(factor) + self.spread(offset)

    def deviation(self, variance: Handle) -> Handle:
        return self.builder.op("sqrt", (variance + self.epsilon,))

    def spread(self, vector: Handle) -> Handle:
        return self.builder.broadcast(vector, self.dims, (self.feature,))

    def total(self, array: Handle) -> Handle:
        return self.builder.reduce(array, 0.0, self.others, "add")
