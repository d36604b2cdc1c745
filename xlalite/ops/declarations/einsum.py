"""`Einsum`: sums of products of one or two tensors, whose dimensions have letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import NUMERIC_TYPES
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradient_rules import of_one_output, shape_tensor, sum_to
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type

# Stand for the dimensions of an ellipsis, from the last one on; in equations of gradients they stand for themselves.
_UNNAMED = "αβγδεζηθικλμνξοπρστυφχψω"


@dataclass(frozen=True, slots=True)
class Equation:
    """What an equation says.

    Attributes:
        inputs: The labels of each operand, one for each dimension.
        output: The labels of the result.
    """

    inputs: tuple[str, ...]
    output: str


def parse_equation(text: str, ranks: Sequence[int | None]) -> Equation:
    """An equation such as `ij,jk->ik`; without an arrow, the labels that come once are the result's, in order.

    Raises:
        ShapeError: it is no equation for operands of these ranks.
    """
    compact = text.replace(" ", "")
    left, arrow, right = compact.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum {text!r} has {len(terms)} terms for {len(ranks)} operands")
    unnamed = 0
    labels = []
    for term, rank in zip(terms, ranks, strict=True):
        named = term.replace("...", "")
        if (
            not all(label in _UNNAMED or (label.isalpha() and label.isascii()) for label in named)
            or term.count("...") > 1
        ):
            raise ShapeError(f"einsum {text!r}: the term {term!r} is not made of letters and at most one ellipsis")
        if "..." in term and rank is None:
            raise ShapeError(f"einsum {text!r} needs operands of known rank")
        more = 0 if "..." not in term or rank is None else rank - len(named)
        if more < 0 or (rank is not None and "..." not in term and len(named) != rank):
            raise ShapeError(f"einsum {text!r}: the term {term!r} does not fit an operand of rank {rank}")
        unnamed = max(unnamed, more)
        labels.append(term.replace("...", _UNNAMED[:more][::-1]))
    around = _UNNAMED[:unnamed][::-1]
    if arrow:
        output = right.replace("...", around)
    else:
        joined = "".join(labels)
        output = around + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in around))
    if len(set(output)) != len(output) or not set(output) <= set("".join(labels)):
        raise ShapeError(f"einsum {text!r}: the result {output!r} has labels twice, or ones that no operand has")
    return Equation(tuple(labels), output)


def _parsed(op: Operation) -> Equation:
    return parse_equation(op.get_attr("equation"), [tensor.shape.rank for tensor in op.inputs])


def _infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], NUMERIC_TYPES)
    if any(tensor.shape.rank is None for tensor in op.inputs):
        return [(dtype, unknown_shape())]
    equation = _parsed(op)
    sizes: dict[str, int | None] = {}
    for labels, tensor in zip(equation.inputs, op.inputs, strict=True):
        for label, size in zip(labels, tensor.shape.dims or (), strict=True):
            known = sizes.get(label)
            repeats = label in _UNNAMED and 1 in (known, size)
            if None not in (known, size) and known != size and not repeats:
                raise ShapeError(f"einsum {op.get_attr('equation')!r}: sizes {known} and {size} of {label!r} differ")
            sizes[label] = size if known in (None, 1) else known
    return [(dtype, TensorShape([sizes[label] for label in equation.output]))]


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    equation = parse_equation(op.get_attr("equation"), [len(x.dims) for x in inputs])
    terms = [_without_repeats(b, x, labels) for x, labels in zip(inputs, equation.inputs, strict=True)]
    others = [terms[1][1], terms[0][1]] if len(terms) == 2 else [""]
    terms = [_summed(b, x, own, equation.output + other) for (x, own), other in zip(terms, others, strict=True)]
    x, labels = terms[0] if len(terms) == 1 else _product(b, terms[0], terms[1], equation.output)
    x = b.transpose(x, [labels.index(label) for label in equation.output])
    return [x]


_Labelled = tuple[Handle, str]


def _without_repeats(b: Builder, x: Handle, labels: str) -> _Labelled:
    """The diagonals of dimensions that have one label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.index(label, labels.index(label) + 1)
            rows, columns = (b.iota(HloDType.S32, x.dims, axis) for axis in (first, second))
            on_diagonal = b.compare(rows, columns, "EQ")
            x = sum_axes(b, b.select(on_diagonal, x, b.full(0, x.dtype, x.dims)), [second])
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(b: Builder, x: Handle, labels: str, wanted: str) -> _Labelled:
    """Sums over what nobody else has."""
    alone = [axis for axis, label in enumerate(labels) if label not in wanted]
    return sum_axes(b, x, alone), "".join(label for label in labels if label in wanted)


def _product(b: Builder, left: _Labelled, right: _Labelled, output: str) -> _Labelled:
    (x, mine), (y, theirs) = left, right
    both = [label for label in mine if label in theirs]
    # Dimensions of an ellipsis may be 1 in one operand: then they are the other's alone.
    for label in both:
        if x.dims[mine.index(label)] != y.dims[theirs.index(label)]:
            x, mine = _dropped_if_one(b, x, mine, label)
            y, theirs = _dropped_if_one(b, y, theirs, label)
    shared = [label for label in mine if label in theirs]
    batch = [label for label in shared if label in output]
    summed = [label for label in shared if label not in output]
    attrs = OPS["dot"].attrs(
        lhs_batch_dims=tuple(mine.index(label) for label in batch),
        lhs_contracting_dims=tuple(mine.index(label) for label in summed),
        rhs_batch_dims=tuple(theirs.index(label) for label in batch),
        rhs_contracting_dims=tuple(theirs.index(label) for label in summed),
    )
    own = [label for label in mine if label not in shared] + [label for label in theirs if label not in shared]
    return b.op("dot", (x, y), attrs), "".join([*batch, *own])


def _dropped_if_one(b: Builder, x: Handle, labels: str, label: str) -> _Labelled:
    axis = labels.index(label)
    if x.dims[axis] != 1:
        return x, labels
    return b.reshape(x, (*x.dims[:axis], *x.dims[axis + 1 :])), labels[:axis] + labels[axis + 1 :]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """For each operand the product of what arrived and of the other one, spread over what was summed alone."""
    if any(tensor.shape.rank is None for tensor in op.inputs):
        raise ShapeError("the gradient of Einsum needs operands of known rank")
    equation = _parsed(op)
    return [_for_operand(op, equation, number, grad) for number in range(len(op.inputs))]


def _for_operand(op: Operation, equation: Equation, number: int, grad: Tensor) -> Tensor:
    x, own = op.inputs[number], equation.inputs[number]
    others = [(t, labels) for i, (t, labels) in enumerate(zip(op.inputs, equation.inputs, strict=True)) if i != number]
    operands = [grad, *(conjugate(tensor) for tensor, _ in others)]
    labels = [equation.output, *(term for _, term in others)]
    found = "".join(dict.fromkeys(label for label in own if any(label in term for term in labels)))
    value = node("Einsum", operands, {"equation": f"{','.join(labels)}->{found}"})
    return _spread(x, own, value, found)


def _spread(x: Tensor, own: str, value: Tensor, found: str) -> Tensor:
    """A gradient for the labels `found` as one for the dimensions `own`: repeated, or on diagonals."""
    sizes = shape_tensor(x)
    first = [own.index(label) for label in dict.fromkeys(own)]
    kept = [own[axis] in found for axis in first]
    if len(first) == len(own) and all(kept) and not any(label in _UNNAMED for label in own):
        return value
    one = constant(np.array([1], np.int32))

    def expanded(tensor: Tensor, axes: dict[str, int]) -> Tensor:
        parts = [
            node("Slice", [shape_tensor(tensor), constant([axes[label]]), one]) if label in axes else one
            for label in (label if own.index(label) == i else "" for i, label in enumerate(own))
        ]
        joined = parts[0] if len(parts) == 1 else node("ConcatV2", [*parts, constant(0)])
        return node("Reshape", [tensor, joined])

    whole = expanded(value, {label: axis for axis, label in enumerate(found)})
    if any(label in _UNNAMED for label in own):
        whole = sum_to(whole, x, whole)
    spread = node("BroadcastTo", [whole, sizes])
    return _on_diagonals(spread, own, x)


def _on_diagonals(value: Tensor, own: str, x: Tensor) -> Tensor:
    for second, label in enumerate(own):
        first = own.index(label)
        if first == second:
            continue
        rank = len(own)
        sizes = shape_tensor(x)
        count = node("GatherV2", [sizes, constant(first), constant(0)])
        numbers = node("Range", [constant(0), count, constant(1)])
        rows, columns = (
            node("Reshape", [numbers, constant(np.array([-1 if i == axis else 1 for i in range(rank)], np.int32))])
            for axis in (first, second)
        )
        value = node("SelectV2", [node("Equal", [rows, columns]), value, node("ZerosLike", [value])])
    return value


register(
    OpSpec(
        "Einsum",
        _infer,
        inputs=("inputs*",),
        attrs=("equation",),
        lower=_lower,
        gradient=of_one_output(_gradient),
        group=None,
    )
)
