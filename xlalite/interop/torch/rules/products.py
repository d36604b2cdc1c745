"""Products of matrices."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.interop.torch.rules.operation import Number, Operation, wide_dtype
from xlalite.interop.torch.rules.registry import rule


@rule("aten.mm.default")
def mm(op: Operation, x: Handle, y: Handle) -> Handle:
    """[m, k] x [k, n] -> [m, n]."""
    return dot(op, x, y, 0)


@rule("aten.bmm.default")
def bmm(op: Operation, x: Handle, y: Handle) -> Handle:
    """[b, m, k] x [b, k, n] -> [b, m, n]."""
    return dot(op, x, y, 1)


@rule("aten.mv.default", "aten.dot.default")
def mv(op: Operation, x: Handle, y: Handle) -> Handle:
    """[..., k] x [k] -> [...]."""
    attrs = DotAttrs((), (len(x.dims) - 1,), (), (0,))
    return op.builder.op("dot", (x, y), attrs)


@rule("aten.addmm.default")
def addmm(op: Operation, bias: Handle, x: Handle, y: Handle, *, beta: Number = 1, alpha: Number = 1) -> Handle:
    """Beta bias + alpha x y."""
    return _biased(op, bias, dot(op, x, y, 0), beta, alpha)


@rule("aten.addmv.default")
def addmv(op: Operation, bias: Handle, x: Handle, y: Handle, *, beta: Number = 1, alpha: Number = 1) -> Handle:
    """Beta bias + alpha x y for a vector y."""
    return _biased(op, bias, mv(op, x, y), beta, alpha)


@rule("aten.baddbmm.default")
def baddbmm(op: Operation, bias: Handle, x: Handle, y: Handle, *, beta: Number = 1, alpha: Number = 1) -> Handle:
    """Beta bias + alpha x y, for each matrix of a batch."""
    return _biased(op, bias, dot(op, x, y, 1), beta, alpha)


def _biased(op: Operation, bias: Handle, product: Handle, beta: Number, alpha: Number) -> Handle:
    dtype = wide_dtype(op.dtype)
    if alpha == 0:
        product = op.builder.full(0, dtype, op.dims)  # whatever the matrices hold
    product, bias = op.cast(product, dtype), op.cast(bias, dtype)
    if alpha != 1:
        product = product * op.number(alpha, dtype)
    if beta == 0:
        return op.cast(product, op.dtype)
    if beta != 1:
        bias = bias * op.number(beta, dtype)
    return op.cast(product + op.expand(bias, op.dims), op.dtype)


def dot(op: Operation, x: Handle, y: Handle, num_batch: int) -> Handle:
    """The product of the last two axes of matrices with batch axes in front."""
    batch = tuple(range(num_batch))
    attrs = DotAttrs(batch, (num_batch + 1,), batch, (num_batch,))
    return op.builder.op("dot", (x, y), attrs)
