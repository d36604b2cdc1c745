"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

from xlalite.ops.functions import products
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import normal_axis, of_truth_values, promoted, sizes, traced, traced_array
from xlalite.tracing.ufunc_methods import finished


@records(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Sum over the last dimension of `a` and the second to last of `b`; scalars multiply."""
    if not sizes(a) or not sizes(b):
        return finished(np.multiply(a, b), out)
    return finished(np.tensordot(a, b, ((-1,), (-2 if len(sizes(b)) > 1 else -1,))), out)


@records(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return np.vecdot(np.ravel(traced_array(a)), np.ravel(traced_array(b)))


@records(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    if not sizes(a) or not sizes(b):
        return np.multiply(a, b)
    return np.tensordot(a, b, ((-1,), (-1,)))


@records(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    return finished(np.multiply(np.reshape(traced_array(a), (-1, 1)), np.reshape(traced_array(b), (1, -1))), out)


@records(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    return outer(x1, x2)


@records(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = (traced(each) for each in promoted(a, b))
    if isinstance(axes, int):
        axes = (range(x.ndim - axes, x.ndim), range(axes))
    left, right = ([each] if isinstance(each, int) else list(each) for each in axes)
    left = [normal_axis(each, x.ndim) for each in left]
    right = [normal_axis(each, y.ndim) for each in right]
    if [x.shape[i] for i in left] != [y.shape[i] for i in right]:
        raise ValueError("shape-mismatch for sum")
    rows, columns = ([i for i in range(n) if i not in used] for n, used in ((x.ndim, left), (y.ndim, right)))
    count = int(np.prod([x.shape[i] for i in left]))
    dims = [x.shape[i] for i in rows], [y.shape[i] for i in columns]
    first = np.reshape(np.transpose(x, [*rows, *left]), (int(np.prod(dims[0])), count))
    second = np.reshape(np.transpose(y, [*right, *columns]), (count, int(np.prod(dims[1]))))
    return np.reshape(np.matmul(first, second), [*dims[0], *dims[1]])


@records(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, dtype: Any = None, **layout: Any) -> Any:
    if isinstance(operands[0], str):
        equation, arrays = operands[0], list(operands[1:])
    else:
        equation, arrays = _equation_of(operands)
    tensors = promoted(*arrays)
    found = traced(of_truth_values(partial(products.einsum, equation.replace(" ", "")), *tensors))
    return finished(found if dtype is None else found.astype(dtype), out)


@records(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    return np.einsum_path(*[np.empty(sizes(each)) if np.ndim(each) else each for each in operands], optimize=optimize)


@records(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = traced_array(a), traced_array(b)
    rank = max(x.ndim, y.ndim)
    one, other = ((1,) * (rank - each.ndim) + each.shape for each in (x, y))
    left = np.reshape(x, [size for each in one for size in (each, 1)])
    right = np.reshape(y, [size for each in other for size in (1, each)])
    return np.reshape(left * right, [i * j for i, j in zip(one, other, strict=True)])


@records(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = np.moveaxis(traced_array(a), axisa, -1), np.moveaxis(traced_array(b), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if x.shape[-1] == y.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    x, y = (
        each if each.shape[-1] == 3 else np.concatenate([each, np.zeros_like(each[..., :1])], -1) for each in (x, y)
    )
    parts = [x[..., i] * y[..., j] - x[..., j] * y[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(parts, -1), -1, axisc)


@records(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if sizes(x1)[axis] != 3 or sizes(x2)[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


@records(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return np.vecdot(x1, x2, axis=axis)


@records(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


def _equation_of(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """An equation from NumPy's other form: arrays, each with the numbers of its dimensions."""
    arrays, labels = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def text(numbers: Any) -> str:
        return "".join("..." if each is Ellipsis else letters[each] for each in numbers)

    equation = ",".join(map(text, labels))
    return (f"{equation}->{text(operands[-1])}" if len(operands) % 2 else equation), arrays
