"""Products over labelled or chosen dimensions, norms and moments: the functions that users call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations.einsum import parse_equation
from xlalite.ops.functions.array import concat, gather, reshape, roll, shape, transpose
from xlalite.ops.functions.linalg import svd
from xlalite.ops.functions.math import (
    abs as magnitude,
    add_n,
    cast,
    conj,
    matmul,
    not_equal,
    reduce_max,
    reduce_mean,
    reduce_prod,
    reduce_sum,
    sqrt,
    square,
)
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import promote
from xlalite.ops.helpers.shape_rules import normalize_axis


def einsum(equation: str, *inputs: Any, **options: Any) -> Tensor:
    """Sums of products, as an equation such as `ij,jk->ik` says; operands are joined from left to right.

    Raises:
        ShapeError: the equation does not fit the operands.
    """
    listed = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    operands = list(promote(*listed))
    name = options.get("name") or "einsum"
    if len(operands) <= 2:
        return node("Einsum", operands, {"equation": equation.replace(" ", "")}, name)
    if "..." in equation:
        raise ShapeError(f"einsum {equation!r}: more than two operands with an ellipsis are not supported")
    parsed = parse_equation(equation, [tensor.shape.rank for tensor in operands])
    terms = list(parsed.inputs)
    while len(operands) > 2:
        later = "".join(terms[2:]) + parsed.output
        kept = "".join(dict.fromkeys(label for label in terms[0] + terms[1] if label in later))
        joined = node("Einsum", operands[:2], {"equation": f"{terms[0]},{terms[1]}->{kept}"})
        operands, terms = [joined, *operands[2:]], [kept, *terms[2:]]
    return node("Einsum", operands, {"equation": f"{','.join(terms)}->{parsed.output}"}, name)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Sums of products over some dimensions of both: the last and the first `axes`, or two lists of dimensions.

    Raises:
        ShapeError: a rank is not known, or the lists differ in length.
    """
    x, y = promote(a, b)
    if x.shape.rank is None or y.shape.rank is None:
        raise ShapeError("tensordot needs tensors of known rank")
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.shape.rank, y.shape.rank):
            raise ShapeError(f"tensordot: {axes} axes of shapes {x.shape} and {y.shape}")
        mine, theirs = list(range(x.shape.rank - axes, x.shape.rank)), list(range(axes))
    else:
        first, second = axes
        mine = [normalize_axis(int(i), x.shape.rank) for i in np.ravel(first)]
        theirs = [normalize_axis(int(i), y.shape.rank) for i in np.ravel(second)]
        if len(mine) != len(theirs):
            raise ShapeError(f"tensordot: {len(mine)} axes of a do not go with {len(theirs)} axes of b")
    with get_default_graph().name_scope(name or "tensordot"):
        free_x = [i for i in range(x.shape.rank) if i not in mine]
        free_y = [i for i in range(y.shape.rank) if i not in theirs]
        left = _as_matrix(transpose(x, free_x + mine), len(free_x))
        right = _as_matrix(transpose(y, theirs + free_y), len(theirs))
        sizes = concat([gather(shape(x), np.array(free_x, np.int32)), gather(shape(y), np.array(free_y, np.int32))], 0)
        result = reshape(matmul(left, right), sizes)
        result.set_shape([x.shape.as_list()[i] for i in free_x] + [y.shape.as_list()[i] for i in free_y])
        return result


def _as_matrix(x: Tensor, rows: int) -> Tensor:
    """The first dimensions as rows, the others as columns."""
    dims = x.shape.as_list()
    if None not in dims:
        return reshape(x, [math.prod(d or 0 for d in dims[:rows]), math.prod(d or 0 for d in dims[rows:])])
    sizes = shape(x)
    parts = [reduce_prod(sizes[:rows], [0]), reduce_prod(sizes[rows:], [0])]
    return reshape(x, node("Pack", parts, {"axis": 0}))


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Products of vectors of three numbers in the last dimension, which stand at right angles to both.

    Raises:
        ShapeError: the last dimension is known not to be 3.
    """
    x, y = promote(a, b)
    for tensor in (x, y):
        if tensor.shape.dims is not None and tensor.shape.dims[-1:] != (3,) and tensor.shape.dims[-1:] != (None,):
            raise ShapeError(f"cross: the last dimension of {tensor.name!r} {tensor.shape} is not 3")

    def turned(tensor: Tensor, by: int) -> Tensor:
        return roll(tensor, by, -1)

    result: Tensor = turned(x, -1) * turned(y, 1) - turned(x, 1) * turned(y, -1)
    return result


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors along a dimension, of matrices along two, or of everything.

    Raises:
        ShapeError: there is no such norm for these dimensions.
    """
    x = convert_to_tensor(tensor)
    keep = bool(keepdims if keepdims is not None else keep_dims)
    of_matrices = isinstance(axis, list | tuple) and len(axis) == 2
    with get_default_graph().name_scope(name or "norm"):
        if ord in ("fro", "euclidean", 2) and not (of_matrices and ord == 2):
            squares = node("Real", [x * conj(x)]) if x.dtype.is_complex else square(x)
            return sqrt(reduce_sum(squares, axis, keep))
        sizes = magnitude(x)
        if of_matrices:
            return _matrix_norm(x, sizes, ord, axis, keep)
        if ord in (np.inf, "inf"):
            return reduce_max(sizes, axis, keep)
        if isinstance(ord, int | float) and ord > 0:
            return sizes_norm(sizes, ord, axis, keep)
        raise ShapeError(f"norm: there is no norm {ord!r} of vectors")


def sizes_norm(sizes: Tensor, order: float, axis: Any, keep: bool) -> Tensor:
    """The p-norm of absolute values."""
    if order == 1:
        return reduce_sum(sizes, axis, keep)
    result: Tensor = reduce_sum(sizes**order, axis, keep) ** (1.0 / order)
    return result


def _matrix_norm(x: Tensor, sizes: Tensor, order: Any, axes: Sequence[int], keep: bool) -> Tensor:
    if order in (1, np.inf, "inf"):
        summed, largest = (axes[0], axes[1]) if order == 1 else (axes[1], axes[0])
        totals = reduce_sum(sizes, [summed], True)
        found = reduce_max(totals, [largest], True)
        return found if keep else node("Squeeze", [found], {"squeeze_dims": tuple(axes)})
    if order == 2:
        rank = x.shape.rank
        if rank is None:
            raise ShapeError("norm: the rank is not known")
        last = [normalize_axis(int(i), rank) for i in axes]
        moved = transpose(x, [i for i in range(rank) if i not in last] + last)
        found = reduce_max(svd(moved, compute_uv=False), [-1])
        for axis in sorted(last) if keep else ():
            found = node("ExpandDims", [found, convert_to_tensor(axis)])
        return found
    raise ShapeError(f"norm: there is no norm {order!r} of matrices")


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The mean of the squared distances from the mean."""
    x = convert_to_tensor(input_tensor)
    with get_default_graph().name_scope(name or "reduce_variance"):
        distance = x - reduce_mean(x, axis, True)
        squares = node("Real", [distance * conj(distance)]) if x.dtype.is_complex else square(distance)
        return reduce_mean(squares, axis, keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The square root of the variance."""
    with get_default_graph().name_scope(name or "reduce_std"):
        return sqrt(reduce_variance(input_tensor, axis, keepdims))


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """How many elements are not zero."""
    x = convert_to_tensor(input_tensor if input_tensor is not None else input)
    with get_default_graph().name_scope(name or "count_nonzero"):
        wanted = axis if axis is not None else reduction_indices
        counted = cast(x if x.dtype.is_bool else not_equal(x, node("ZerosLike", [x])), dtypes.int64)
        keep = bool(keepdims if keepdims is not None else keep_dims)
        return cast(reduce_sum(counted, wanted, keep), as_dtype(dtype))


def accumulate_n(inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    return add_n(inputs, name)


def cumulative_logsumexp(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running log(sum(e^x)) along a dimension, computed so that e^x cannot overflow."""
    tensor = convert_to_tensor(x)
    attrs = {"exclusive": exclusive, "reverse": reverse}
    return node("CumulativeLogsumexp", [tensor, convert_to_tensor(axis)], attrs, name)


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares."""
    return norm(input_tensor, "euclidean", axis, keepdims, name)
