"""`numpy.linalg`: factorisations, systems of equations, norms. What NumPy refuses because of values gives NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import linalg
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records, refuse
from xlalite.tracing.promotion import common_type, floating, normal_axes, numpy_dtype, sizes, traced, traced_array
from xlalite.tracing.traced_array import TracedArray

# NumPy's named tuples; its type checker's stubs want to know of what.
_EighResult: Any = type(np.linalg.eigh(np.eye(1)))
_QrResult: Any = type(np.linalg.qr(np.eye(1)))
_SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
_SvdResult: Any = type(np.linalg.svd(np.eye(1)))


@records(np.linalg.inv)
def inv(a: Any) -> Any:
    return traced(linalg.inv(_square(a)))


@records(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    dtype = np.result_type(common_type(a, b), np.float32 if common_type(a, b).kind in "fc" else np.float64)
    matrix, right = _square(traced_array(a).astype(dtype)), traced_array(b).astype(dtype)
    is_vector = right.ndim == 1
    columns = right[:, None] if is_vector else right
    batch = np.broadcast_shapes(matrix.shape.known_dims()[:-2], columns.shape[:-2])
    left = np.broadcast_to(traced(matrix), (*batch, *matrix.shape.known_dims()[-2:]))
    columns = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
    found = traced(linalg.solve(left.tensor, columns.tensor))
    return found[..., 0] if is_vector else found


@records(np.linalg.det)
def det(a: Any) -> Any:
    return traced(linalg.det(_square(a)))


@records(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    sign, logarithm = traced(*linalg.slogdet(_square(a)))
    return _SlogdetResult(sign, logarithm.real)


@records(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    x = traced(_square(a))
    found = traced(linalg.cholesky(np.conjugate(x).mT.tensor if upper else x.tensor))
    return np.conjugate(found).mT if upper else found


@records(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(
            f"Unrecognized mode '{mode}'" if mode != "raw" else "mode 'raw' cannot be recorded by xlalite.jit"
        )
    q, r = traced(*linalg.qr(floating(a), full_matrices=mode == "complete"))
    return r if mode == "r" else _QrResult(q, r)


@records(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if not compute_uv:
        return traced(linalg.svd(floating(a), compute_uv=False))
    s, u, v = traced(*linalg.svd(floating(a), full_matrices=full_matrices))
    return _SvdResult(u, s, np.conjugate(v).mT)


@records(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return svd(x, compute_uv=False)


@records(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # NumPy's name
    values, vectors = traced(*linalg.eigh(_hermitian(a, UPLO)))
    return _EighResult(values.real, vectors)


@records(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # NumPy's name
    return traced(linalg.eigvalsh(_hermitian(a, UPLO))).real


refuse(
    "whether eigenvalues are complex depends on values that are not known while the function is traced; use "
    "np.linalg.eigh for symmetric matrices",
    *(np.linalg.eig, np.linalg.eigvals),
)


@records(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, y = floating_array(a, None), floating_array(b, None)
    rows, columns = x.shape
    right = y[:, None] if y.ndim == 1 else y
    limit = np.finfo(x.dtype).eps * max(rows, columns) if rcond is None else rcond
    u, s, vh = svd(x, full_matrices=False)
    is_kept = np.greater(s, limit * np.max(s))
    rank = np.sum(is_kept).astype(np.int32)
    inverse = np.where(is_kept, 1 / np.where(is_kept, s, 1), 0)
    found = np.matmul(np.conjugate(vh).mT, inverse[:, None] * np.matmul(np.conjugate(u).mT, right))
    rest = right - np.matmul(x, found)
    squares = np.sum(np.square(np.abs(rest)), axis=0)
    # NumPy leaves them out where the rank is too low, which is not known here.
    residuals = squares if rows > columns else squares[:0]
    return found[:, 0] if y.ndim == 1 else found, residuals, rank, s


@records(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    x = floating_array(a, None)
    limit = rcond if rcond is not None else 1e-15 if rtol is None else rtol
    u, s, vh = svd(np.conjugate(x), full_matrices=False)
    is_kept = np.greater(s, np.expand_dims(traced_array(limit), -1) * np.max(s, axis=-1, keepdims=True))
    inverse = np.where(is_kept, 1 / np.where(is_kept, s, 1), 0)
    return np.matmul(vh.mT, inverse[..., None] * u.mT)


@records(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # NumPy's name
    x = floating_array(A, None)
    if x.ndim < 2:
        return np.any(np.not_equal(x, 0)).astype(np.int64)
    s = svd(x, compute_uv=False)
    if tol is None:
        share = max(x.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.expand_dims(traced_array(rtol), -1)
        tol = np.max(s, axis=-1, keepdims=True) * share
    else:
        tol = np.expand_dims(traced_array(tol), -1)
    return np.sum(np.greater(s, tol), axis=-1)


@records(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    x = traced_array(a)
    if n < 0:
        x, n = inv(x), -n
    found = None
    if n == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype) + np.zeros_like(x[..., :1, :1]), x.shape)
    while n:
        if n & 1:
            found = x if found is None else np.matmul(found, x)
        n >>= 1
        x = np.matmul(x, x) if n else x
    return found


@records(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    a = floating_array(x, None)
    if axis is None and (ord is None or (ord == 2 and a.ndim == 1) or (ord in ("f", "fro") and a.ndim == 2)):
        found = _length(np.ravel(a), None)
        return np.reshape(found, (1,) * a.ndim) if keepdims else found
    axes = normal_axes(axis, a.ndim)
    if len(axes) == 1:
        return vector_norm(a, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    found = matrix_norm(np.moveaxis(a, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return np.expand_dims(found, tuple(sorted(axes))) if keepdims else found


@records(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    a = floating_array(x, None)
    axes = normal_axes(axis, a.ndim)
    size = np.abs(a)
    if ord == np.inf:
        return np.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(np.not_equal(a, 0).astype(size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axes, keepdims=keepdims)
    if ord == 2:
        return _length(a, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return np.sum(size**ord, axes, keepdims=keepdims) ** (size.dtype.type(1) / ord)


@records(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    a = floating_array(x, None)
    if ord in ("fro", "f"):
        found = _length(a, (-2, -1))
    elif ord in ("nuc", 2, -2):
        s = svd(a, compute_uv=False)
        found = np.sum(s, -1) if ord == "nuc" else np.max(s, -1) if ord == 2 else np.min(s, -1)
    elif ord in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(a), -2 if ord in (1, -1) else -1)
        found = np.max(sums, -1) if ord in (1, np.inf) else np.min(sums, -1)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return np.expand_dims(found, (-2, -1)) if keepdims else found


@records(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    a = floating_array(x, None)
    if p in (None, 2, -2):
        s = svd(a, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))


@records(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    names = [np.empty(sizes(each)) for each in arrays]
    order = _best_order([each.shape for each in names])
    found = _multiplied(list(arrays), order, 0, len(names) - 1)
    return found


@records(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = traced_array(a), traced_array(b)
    if axes is not None:
        x = np.transpose(x, [i for i in range(x.ndim) if i not in axes] + list(axes))
    dims = x.shape[y.ndim :]
    return np.reshape(solve(np.reshape(x, (y.size, int(np.prod(dims)))), np.ravel(y)), dims)


@records(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    x = traced_array(a)
    rows = int(np.prod(x.shape[:ind]))
    return np.reshape(inv(np.reshape(x, (rows, -1))), x.shape[ind:] + x.shape[:ind])


def _square(a: Any) -> Tensor:
    x = floating(a)
    dims = x.shape.known_dims()
    if len(dims) < 2:
        raise np.linalg.LinAlgError(f"{len(dims)}-dimensional array given. Array must be at least two-dimensional")
    if dims[-1] != dims[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return x


def _hermitian(a: Any, triangle: str) -> Tensor:
    """The matrix that one triangle says, as NumPy reads it."""
    x = traced(_square(a))
    if triangle not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    lower = np.tril(x, -1) if triangle == "L" else np.conjugate(np.triu(x, 1)).mT
    middle = np.eye(x.shape[-1], dtype=x.real.dtype) * np.real(x)
    found: TracedArray = lower + np.conjugate(lower).mT + middle
    return found.tensor


def _length(a: Any, axes: Any, keepdims: bool = False) -> Any:
    squares = np.square(a.real) + np.square(a.imag) if numpy_dtype(a).kind == "c" else np.square(a)
    return np.sqrt(np.sum(squares, axes, keepdims=keepdims))


def _best_order(shapes: list[tuple[int, ...]]) -> list[list[int]]:
    """Where to split each chain of products, by the number of multiplications."""
    sides = [shapes[0][0] if len(shapes[0]) == 2 else 1, *[s[-1] if len(s) == 2 else 1 for s in shapes]]
    if len(shapes[0]) == 1:
        sides[1] = shapes[0][0]
    count = len(shapes)
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i][k] + cost[k + 1][j] + sides[i] * sides[k + 1] * sides[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(options)
    return split


def _multiplied(arrays: list[Any], split: list[list[int]], first: int, last: int) -> Any:
    if first == last:
        return arrays[first]
    middle = split[first][last]
    return np.dot(_multiplied(arrays, split, first, middle), _multiplied(arrays, split, middle + 1, last))
