"""Products of matrices, sums of products by index, determinants."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type, broadcast_to, sum_axes
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.ops.helpers.factors import lapack


@rule("MatMul")
def _matmul(context: NodeContext) -> Handle:
    return matmul(context, context.operand(0), context.operand(1))


def matmul(context: NodeContext, x: Handle, y: Handle) -> Handle:
    """NumPy's product: matrices in the last two dimensions, the others broadcast; vectors lose their dimension."""
    b = context.builder
    if not x.dims or not y.dims:
        raise context.error("a scalar is no matrix")
    row, column = len(x.dims) == 1, len(y.dims) == 1
    x = b.reshape(x, (1, *x.dims)) if row else x
    y = b.reshape(y, (*y.dims, 1)) if column else y
    found = _batched(context, x, y)
    dims = list(found.dims)
    if column:
        dims.pop(-1)
    if row:
        dims.pop(-1 if column else -2)
    return b.reshape(found, dims)


def _batched(context: NodeContext, x: Handle, y: Handle) -> Handle:
    b = context.builder
    if len(y.dims) == 2:  # one matrix for all, so that the others' rows are rows of one matrix
        attrs = OPS["dot"].attrs(lhs_contracting_dims=(len(x.dims) - 1,), rhs_contracting_dims=(0,))
        return b.op("dot", (x, y), attrs)
    outer = np.broadcast_shapes(x.dims[:-2], y.dims[:-2])
    count = len(outer)
    x, y = broadcast_to(b, x, (*outer, *x.dims[-2:])), broadcast_to(b, y, (*outer, *y.dims[-2:]))
    batch = tuple(range(count))
    return b.op("dot", (x, y), OPS["dot"].attrs(batch, (count + 1,), batch, (count,)))


@rule("Gemm")
def _gemm(context: NodeContext) -> Handle:
    """Alpha A B + beta C."""
    b, x, y = context.builder, context.operand(0), context.operand(1)
    attrs = OPS["dot"].attrs(
        lhs_contracting_dims=(0 if context.integer("transA", 0) else 1,),
        rhs_contracting_dims=(1 if context.integer("transB", 0) else 0,),
    )
    found = b.op("dot", (x, y), attrs)
    alpha, beta = context.number("alpha", 1.0), context.number("beta", 1.0)
    if alpha != 1:
        found = found * context.constant(alpha, found.dtype)
    if not context.has(2) or beta == 0:
        return found
    added = broadcast_to(b, context.operand(2), found.dims)
    return found + (added if beta == 1 else added * context.constant(beta, found.dtype))


@rule("Einsum")
def _einsum(context: NodeContext) -> Handle:
    """Operand by operand: a product over the letters that neither the rest nor the result has."""
    equation = context.text("equation").replace(" ", "")
    operands = context.operands()
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise context.error(f"{equation!r} is for {len(terms)} operands, found {len(operands)}")
    ellipsis_rank = max(
        (len(x.dims) - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True) if "..." in term),
        default=0,
    )
    dots = "".join(chr(0x100 + i) for i in range(ellipsis_rank))
    spelt = [_spelt(term, dots, len(x.dims)) for term, x in zip(terms, operands, strict=True)]
    if arrow:
        result = right.replace("...", dots)
    else:
        letters = "".join(spelt)
        result = dots + "".join(sorted(each for each in set(letters) - set(dots) if letters.count(each) == 1))
    done, labels = _diagonals(operands[0], spelt[0])
    for position in range(1, len(operands)):
        later = set("".join(spelt[position + 1 :])) | set(result)
        other, other_labels = _diagonals(operands[position], spelt[position])
        done, labels = _contracted(done, labels, other, other_labels, later)
    gone = [i for i, label in enumerate(labels) if label not in result]
    if gone:
        done = context.builder.reduce(done, context.constant(0, done.dtype), gone, "add")
        labels = "".join(label for label in labels if label in result)
    if set(labels) != set(result) or len(result) != len(set(result)):
        raise context.error(f"{equation!r} asks for what no operand has")
    return context.builder.transpose(done, [labels.index(label) for label in result])


def _spelt(term: str, dots: str, rank: int) -> str:
    if "..." not in term:
        return term
    return term.replace("...", dots[len(dots) - (rank - len(term) + 3) :] if rank - len(term) + 3 else "")


def _diagonals(x: Handle, labels: str) -> tuple[Handle, str]:
    """A letter that stands twice means the diagonal."""
    b = x.builder
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            on = b.compare(b.iota(DType.S32, x.dims, first), b.iota(DType.S32, x.dims, second), "EQ")
            kept = b.select(on, x, b.full(0, x.dtype, x.dims))
            x = b.reduce(kept, b.constant(0, x.dtype), [second], "add")
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _contracted(x: Handle, x_labels: str, y: Handle, y_labels: str, later: set[str]) -> tuple[Handle, str]:
    shared = [label for label in x_labels if label in y_labels]
    x, y = _stretched(x, x_labels, y, y_labels), _stretched(y, y_labels, x, x_labels)
    batch = [label for label in shared if label in later]
    summed = [label for label in shared if label not in later]
    attrs = OPS["dot"].attrs(
        tuple(map(x_labels.index, batch)),
        tuple(map(x_labels.index, summed)),
        tuple(map(y_labels.index, batch)),
        tuple(map(y_labels.index, summed)),
    )
    own = [label for label in x_labels if label not in shared]
    others = [label for label in y_labels if label not in shared]
    return x.builder.op("dot", (x, y), attrs), "".join([*batch, *own, *others])


def _stretched(x: Handle, labels: str, other: Handle, other_labels: str) -> Handle:
    """Sizes of 1 repeated to those of the other operand."""
    sizes = dict(zip(other_labels, other.dims, strict=True))
    dims = [sizes.get(label, size) if size == 1 else size for label, size in zip(labels, x.dims, strict=True)]
    return broadcast_to(x.builder, x, dims)


@rule("Det")
def _det(context: NodeContext) -> Handle:
    """The product of the pivots, with the sign of the exchanges of rows."""
    b, narrow = context.builder, context.operand(0)
    *batch, size, columns = narrow.dims
    if size != columns:
        raise context.error(f"{narrow.shape.text()} holds no square matrices")
    if not narrow.shape.element_count:
        return b.full(1, narrow.dtype, batch)
    x = b.convert(narrow, accumulator_type(narrow.dtype))
    integers = (DType.S32, (*batch, size)), (DType.S32, tuple(batch))
    packed, pivots, _ = lapack(b, "getrf", (x,), [(x.dtype, x.dims), *integers])
    rank = len(batch)
    on_diagonal = b.compare(b.iota(DType.S32, x.dims, rank), b.iota(DType.S32, x.dims, rank + 1), "EQ")
    product = b.reduce(b.select(on_diagonal, packed, filled(1, x)), 1, [rank, rank + 1], "multiply")
    places = b.broadcast(b.iota(DType.S32, (size,), 0) + 1, pivots.dims, [rank])
    exchanged = sum_axes(b, b.convert(b.compare(pivots, places, "NE"), DType.S32), [rank])
    is_odd = b.compare(exchanged & 1, 1, "EQ")
    return b.convert(b.select(is_odd, -product, product), narrow.dtype)
