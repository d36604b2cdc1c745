"""Batch normalisation: the statistics go over all dimensions but the feature dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext
from xlalite.hlo.ops.evaluation.accumulation import narrow
from xlalite.hlo.ops.rules.elementwise_rules import is_float, require_type
from xlalite.hlo.ops.rules.shapes import array_value, check_dimensions, same_kind
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import FLOAT, INT
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape

Wide = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BatchNormAttrs:
    """The number added to the variance, and the dimension of the features."""

    epsilon: float = attribute(FLOAT)
    feature_index: int = attribute(INT)


def _feature_shapes(context: ShapeContext, vectors: Sequence[int]) -> tuple[Shape, Shape]:
    """The operand and the shape of one number for each feature, which the given operands must have."""
    operand = require_type(context, 0, is_float)
    check_dimensions(context, (context.attrs.feature_index,), operand.rank, "feature_index")
    features = operand.dims[context.attrs.feature_index]
    for position in vectors:
        vector = require_type(context, position, is_float)
        context.require(
            vector.dims == (features,) and same_kind(vector.dtype, operand.dtype),
            f"operand {position} must have one number for each of the {features} features, found {vector.text()}",
        )
    scale = context.operands[vectors[0]]
    return operand, Shape.array(scale.dtype, (features,))


def _training_shape(context: ShapeContext) -> Shape:
    operand, vector = _feature_shapes(context, (1, 2))
    return Shape.tuple([operand, vector, vector])


def _inference_shape(context: ShapeContext) -> Shape:
    return _feature_shapes(context, (1, 2, 3, 4))[0]


def _grad_shape(context: ShapeContext) -> Shape:
    operand, vector = _feature_shapes(context, (1, 2, 3))
    gradient = require_type(context, 4, is_float)
    context.require(gradient.dims == operand.dims, f"sizes of operand 0 and of the gradient differ: {gradient.text()}")
    return Shape.tuple([operand, vector, vector])


@dataclass(frozen=True, slots=True)
class _Features:
    """Which axis of an array the features are, and how many values each has."""

    axis: int
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of values of one feature."""
        return int(np.prod([size for axis, size in enumerate(self.sizes) if axis != self.axis]))

    def spread(self, vector: Wide) -> Wide:
        """A vector of one number a feature with as many dimensions as the array."""
        return vector.reshape([size if axis == self.axis else 1 for axis, size in enumerate(self.sizes)])

    def total(self, array: Wide) -> Wide:
        """The sum over all dimensions but the features."""
        total: Wide = array.sum(axis=tuple(axis for axis in range(len(self.sizes)) if axis != self.axis))
        return total


def _wide_operands(operands: Sequence[Value]) -> list[Wide]:
    return [array_value(operand).astype(np.float64) for operand in operands]


def _rounded(values: Sequence[Array], shape: Shape) -> Value:
    return tuple(narrow(value, element.dtype) for value, element in zip(values, shape.elements, strict=True))


def _training(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    attrs: BatchNormAttrs = instruction.attrs
    x, scale, offset = _wide_operands(operands)
    features = _Features(attrs.feature_index, x.shape)
    with np.errstate(all="ignore"):
        mean = features.total(x) / features.count
        centred = x - features.spread(mean)
        variance = features.total(centred * centred) / features.count
        factor = scale / np.sqrt(variance + attrs.epsilon)
        return _rounded(
            [centred * features.spread(factor) + features.spread(offset), mean, variance], instruction.shape
        )


def _inference(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    attrs: BatchNormAttrs = instruction.attrs
    x, scale, offset, mean, variance = _wide_operands(operands)
    features = _Features(attrs.feature_index, x.shape)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + attrs.epsilon)
        result = (x - features.spread(mean)) * features.spread(factor) + features.spread(offset)
    return narrow(result, instruction.shape.dtype)


def _grad(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    attrs: BatchNormAttrs = instruction.attrs
    x, scale, mean, variance, gradient = _wide_operands(operands)
    features = _Features(attrs.feature_index, x.shape)
    with np.errstate(all="ignore"):
        inverse = 1 / np.sqrt(variance + attrs.epsilon)
        normalised = (x - features.spread(mean)) * features.spread(inverse)
        grad_offset = features.total(gradient)
        grad_scale = features.total(gradient * normalised)
        pulled = gradient - (features.spread(grad_offset) + normalised * features.spread(grad_scale)) / features.count
        grad_operand = features.spread(scale * inverse) * pulled
    return _rounded([grad_operand, grad_scale, grad_offset], instruction.shape)


def _flops(instruction: HloInstruction) -> int:
    """A handful of operations for each element of the operand."""
    return 8 * instruction.operand(0).shape.element_count


OPS = (
    OpDef(
        "batch-norm-training",
        "((x - mean) / sqrt(variance + epsilon) * scale + offset, mean, variance)",
        3,
        _training_shape,
        _training,
        attrs=BatchNormAttrs,
        flops=_flops,
    ),
    OpDef(
        "batch-norm-inference",
        "(x - mean) / sqrt(variance + epsilon) * scale + offset",
        5,
        _inference_shape,
        _inference,
        attrs=BatchNormAttrs,
        flops=_flops,
    ),
    OpDef(
        "batch-norm-grad",
        "gradients of batch-norm-training with respect to (x, scale, offset)",
        5,
        _grad_shape,
        _grad,
        attrs=BatchNormAttrs,
        flops=_flops,
    ),
)
