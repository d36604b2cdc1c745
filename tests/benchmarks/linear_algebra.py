"""Linear algebra: factorisations, systems and decompositions of one matrix and of many, products of groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import signed, text_contest

_FFI = 'custom_call_target="lapack_s{}_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={{{}}}'


def workloads() -> list[Workload]:
    """All of them."""
    place = " [{count},{size},{size}]"
    factors = ((1, 1000), (1000, 8))
    return [
        *(workload("cholesky" + place, _cholesky, count=count, size=size) for count, size in factors),
        *(workload("lu" + place, _lu, count=count, size=size) for count, size in ((1, 200), (16, 63), (1, 1000))),
        *(workload("solve by lu" + place, _solve, count=count, size=size) for count, size in ((1, 200), (1000, 8))),
        *(
            workload("qr [{count},{rows},{columns}]", _qr, count=count, rows=rows, columns=columns)
            for count, rows, columns in ((1, 128, 64), (16, 50, 31), (1, 1000, 300))
        ),
        *(
            workload("triangular system [{size},{size}] with {columns}", _triangular, size=size, columns=columns)
            for size, columns in ((1000, 100), (777, 1), (63, 4097))
        ),
        *(workload("eigh" + place, _eigh, count=count, size=size) for count, size in ((1, 64), (1, 201), (100, 10))),
        *(
            workload("eigenvalues" + place, _eigenvalues, count=count, size=size)
            for count, size in ((1, 64), (1, 201), (100, 10))
        ),
        *(
            workload("svd [{count},{rows},{columns}]", _svd, count=count, rows=rows, columns=columns)
            for count, rows, columns in ((1, 60, 40), (1, 200, 200), (16, 10, 10))
        ),
        *(
            workload("{groups} groups of [{rows},{size}]", _groups, rows=rows, size=size, groups=groups)
            for rows, size, groups in ((1024, 256, 8), (100, 63, 10))
        ),
    ]


def _call(routine: str, operands: str, options: str = "") -> str:
    return f"custom-call({operands}), {_FFI.format(routine, options)}"


def _letters(**letters: str) -> str:
    return ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())


def _positive(count: int, size: int) -> np.ndarray:
    (x,) = signed((count, size, size))
    return np.asarray(x @ np.swapaxes(x, -1, -2) + np.float32(size) * np.eye(size, dtype=np.float32))


def _cholesky(count: int = 2, size: int = 5) -> Contest:
    shape = f"f32[{count},{size},{size}]"
    body = f"  x = {shape} parameter(0)\n  ROOT r = {shape} cholesky(x), lower=true\n"
    return text_contest(body, [_positive(count, size)], plain=lambda np_: np_.linalg.cholesky)


def _lu(count: int = 2, size: int = 5) -> Contest:
    shape = f"f32[{count},{size},{size}]"
    body = f"""
  x = {shape} parameter(0)
  t = ({shape}, s32[{count},{size}], s32[{count}]) {_call("getrf", "x")}
  packed = {shape} get-tuple-element(t), index=0
  pivots = s32[{count},{size}] get-tuple-element(t), index=1
  one = s32[] constant(1)
  ones = s32[{count},{size}] broadcast(one), dimensions={{}}
  rows = s32[{count},{size}] subtract(pivots, ones)
  ROOT r = ({shape}, s32[{count},{size}]) tuple(packed, rows)
"""
    return text_contest(
        body,
        signed((count, size, size)),
        numpy=lambda _: _eliminated,
        jax=lambda jax: jax.scipy.linalg.lu_factor,
        scipy=lambda _: lambda x: _scipy_linalg().lu_factor(x),
        tolerance=1e-2,
    )


def _eliminated(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A step for all matrices at a time."""
    packed, size = matrices.copy(), matrices.shape[-1]
    rows, everyone = np.empty(matrices.shape[:2], np.int32), np.arange(len(matrices))
    for step in range(size):
        rows[:, step] = chosen = step + np.argmax(np.abs(packed[:, step:, step]), axis=1)
        upper = packed[:, step].copy()
        packed[:, step] = packed[everyone, chosen]
        packed[everyone, chosen] = upper
        packed[:, step + 1 :, step] /= packed[:, step, np.newaxis, step]
        below = packed[:, step + 1 :, step, np.newaxis]
        packed[:, step + 1 :, step + 1 :] -= below * packed[:, np.newaxis, step, step + 1 :]
    return packed, rows


def _solve(count: int = 2, size: int = 5) -> Contest:
    """As jax writes it: rows change places in a loop, then two triangular systems."""
    a, b = f"f32[{count},{size},{size}]", f"f32[{count},{size},1]"
    state = f"(s32[], s32[{count},{size}], s32[{count},{size}])"
    one, zero = f"s32[{count},1]", "zero = s32[] constant(0)"
    batched = "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1"
    computations = f"""
set {{
  old = s32[] parameter(0)
  ROOT new = s32[] parameter(1)
}}
more {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({size})
  ROOT r = pred[] compare(i, n), direction=LT
}}
swap {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  pivots = s32[{count},{size}] get-tuple-element(s), index=1
  order = s32[{count},{size}] get-tuple-element(s), index=2
  {zero}
  j = {one} dynamic-slice(pivots, zero, i), dynamic_slice_sizes={{{count},1}}
  x = {one} dynamic-slice(order, zero, i), dynamic_slice_sizes={{{count},1}}
  y = {one} gather(order, j), offset_dims={{1}}, start_index_map={{1}}, slice_sizes={{1,1}}, {batched}
  upper = s32[{count},{size}] dynamic-update-slice(order, y, zero, i)
  both = s32[{count},{size}] scatter(upper, j, x), update_window_dims={{1}}, inserted_window_dims={{}},
    input_batching_dims={{0}}, scatter_indices_batching_dims={{0}}, scatter_dims_to_operand_dims={{1}},
    index_vector_dim=1, to_apply=set
  c = s32[] constant(1)
  next = s32[] add(i, c)
  ROOT r = {state} tuple(next, pivots, both)
}}
"""
    systems = [_letters(side="L", uplo=uplo, trans_x="N", diag=diag) for uplo, diag in (("L", "U"), ("U", "N"))]
    body = f"""
  a = {a} parameter(0)
  b = {b} parameter(1)
  t = ({a}, s32[{count},{size}], s32[{count}]) {_call("getrf", "a")}
  packed = {a} get-tuple-element(t), index=0
  found = s32[{count},{size}] get-tuple-element(t), index=1
  one = s32[] constant(1)
  ones = s32[{count},{size}] broadcast(one), dimensions={{}}
  pivots = s32[{count},{size}] subtract(found, ones)
  start = s32[{count},{size}] iota(), iota_dimension=1
  {zero}
  state = {state} tuple(zero, pivots, start)
  swapped = {state} while(state), condition=more, body=swap
  order = s32[{count},{size}] get-tuple-element(swapped), index=2
  places = s32[{count},{size},1] reshape(order)
  rows = {b} gather(b, places), offset_dims={{2}}, start_index_map={{1}}, slice_sizes={{1,1,1}},
    operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, collapsed_slice_dims={{1}}, index_vector_dim=2
  y = {b} {_call("trsm", "packed, rows", systems[0])}
  ROOT x = {b} {_call("trsm", "packed, y", systems[1])}
"""
    (matrices,), rhs = signed((count, size, size)), signed((count, size, 1), seed=1)
    matrices += np.float32(2 * size) * np.eye(size, dtype=np.float32)
    return text_contest(
        body, [matrices, *rhs], computations=computations, plain=lambda np_: np_.linalg.solve, tolerance=1e-3
    )


def _qr(count: int = 2, rows: int = 5, columns: int = 3) -> Contest:
    """Tall matrices; signs are LAPACK's everywhere."""
    matrix, square = f"f32[{count},{rows},{columns}]", f"f32[{count},{columns},{columns}]"
    numbers = f"s32[{count},{columns},{columns}]"
    body = f"""
  x = {matrix} parameter(0)
  t = ({matrix}, f32[{count},{columns}]) {_call("geqrf", "x")}
  packed = {matrix} get-tuple-element(t), index=0
  taus = f32[{count},{columns}] get-tuple-element(t), index=1
  q = {matrix} {_call("orgqr", "packed, taus")}
  top = {square} slice(packed), slice={{[0:{count}], [0:{columns}], [0:{columns}]}}
  i = {numbers} iota(), iota_dimension=1
  j = {numbers} iota(), iota_dimension=2
  upper = pred[{count},{columns},{columns}] compare(i, j), direction=LE
  zero = f32[] constant(0)
  zeros = {square} broadcast(zero), dimensions={{}}
  r = {square} select(upper, top, zeros)
  ROOT both = ({matrix}, {square}) tuple(q, r)
"""
    return text_contest(
        body, signed((count, rows, columns)), plain=lambda np_: lambda x: tuple(np_.linalg.qr(x)), tolerance=1e-3
    )


def _triangular(size: int = 5, columns: int = 3) -> Contest:
    a, b = f"f32[{size},{size}]", f"f32[{size},{columns}]"
    body = f"""
  a = {a} parameter(0)
  b = {b} parameter(1)
  ROOT x = {b} triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
"""
    matrix, rhs = signed((size, size), (size, columns))
    matrix = np.tril(matrix / np.float32(size)) + np.eye(size, dtype=np.float32)
    return text_contest(
        body,
        [matrix, rhs],
        numpy=lambda np_: np_.linalg.solve,
        jax=lambda jax: partial(jax.scipy.linalg.solve_triangular, lower=True),
        scipy=lambda _: lambda a, b: _scipy_linalg().solve_triangular(a, b, lower=True, check_finite=False),
    )


def _eigh(count: int = 2, size: int = 5) -> Contest:
    """Vectors without their signs."""
    matrix, vector = f"f32[{count},{size},{size}]", f"f32[{count},{size}]"
    body = f"""
  x = {matrix} parameter(0)
  t = ({matrix}, {vector}, s32[{count}]) {_call("syevd", "x", _letters(mode="V", uplo="L"))}
  vectors = {matrix} get-tuple-element(t), index=0
  values = {vector} get-tuple-element(t), index=1
  sizes = {matrix} abs(vectors)
  ROOT r = ({vector}, {matrix}) tuple(values, sizes)
"""

    def make(np_: Any) -> Any:
        def eigh(x: Any) -> Any:
            values, vectors = np_.linalg.eigh(x)
            return values, np_.abs(vectors)

        return eigh

    spread = np.arange(size, dtype=np.float32)
    return text_contest(body, [_spectrum(count, size, size, spread)], plain=make, tolerance=1e-2)


def _eigenvalues(count: int = 2, size: int = 5) -> Contest:
    """Real parts in order: everybody has an order of their own."""
    matrix, vector = f"f32[{count},{size},{size}]", f"f32[{count},{size}]"
    body = f"""
  x = {matrix} parameter(0)
  t = ({vector}, {vector}, c64[{count},{size},{size}], c64[{count},{size},{size}], s32[{count}]) {
        _call("geev", "x", _letters(compute_left="N", compute_right="N"))
    }
  values = {vector} get-tuple-element(t), index=0
  ROOT r = {vector} sort(values), dimensions={{1}}, to_apply=lt_f32
"""
    return text_contest(
        body,
        list(signed((count, size, size))),
        plain=lambda np_: lambda x: np_.sort(np_.linalg.eigvals(x).real, axis=-1),
        tolerance=1e-2,
    )


def _svd(count: int = 2, rows: int = 5, columns: int = 3) -> Contest:
    """Vectors without their signs, as many as there are values."""
    k = min(rows, columns)
    u, values, v = f"f32[{count},{rows},{k}]", f"f32[{count},{k}]", f"f32[{count},{k},{columns}]"
    matrix = f"f32[{count},{rows},{columns}]"
    body = f"""
  x = {matrix} parameter(0)
  t = ({matrix}, {values}, {u}, {v}, s32[{count}]) {_call("gesdd", "x", _letters(mode="S"))}
  s = {values} get-tuple-element(t), index=1
  left = {u} get-tuple-element(t), index=2
  right = {v} get-tuple-element(t), index=3
  lefts = {u} abs(left)
  rights = {v} abs(right)
  ROOT r = ({u}, {values}, {v}) tuple(lefts, s, rights)
"""

    def make(np_: Any) -> Any:
        def svd(x: Any) -> Any:
            u, s, v = np_.linalg.svd(x, full_matrices=False)
            return np_.abs(u), s, np_.abs(v)

        return svd

    spread = np.arange(1, k + 1, dtype=np.float32)
    return text_contest(body, [_spectrum(count, rows, columns, spread)], plain=make, tolerance=1e-2)


def _spectrum(count: int, rows: int, columns: int, values: np.ndarray) -> np.ndarray:
    """Matrices of given singular values, or eigenvalues if they are square, which keeps vectors apart."""
    left, right = (
        np.linalg.qr(x)[0][..., : len(values)] for x in signed((count, rows, rows), (count, columns, columns))
    )
    right = left if rows == columns else right
    return np.asarray((left * values) @ np.swapaxes(right, -1, -2), np.float32)


def _groups(rows: int = 9, size: int = 5, groups: int = 3) -> Contest:
    """Rows times the matrix of their group."""
    lhs, rhs = f"f32[{rows},{size}]", f"f32[{groups},{size},{size}]"
    body = f"""
  x = {lhs} parameter(0)
  y = {rhs} parameter(1)
  sizes = s32[{groups}] parameter(2)
  ROOT r = {lhs} ragged-dot(x, y, sizes), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, lhs_ragged_dims={{0}},
    rhs_group_dims={{0}}
"""
    cuts = np.sort(np.random.default_rng(0).integers(0, rows + 1, groups - 1))
    sizes = np.diff(np.concatenate([[0], cuts, [rows]])).astype(np.int32)

    def by_group(x: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        parts = np.split(x, np.cumsum(sizes)[:-1])
        return np.concatenate([part @ matrix for part, matrix in zip(parts, y, strict=True)])

    return text_contest(
        body,
        [*signed((rows, size), (groups, size, size)), sizes],
        numpy=lambda _: by_group,
        jax=lambda jax: jax.lax.ragged_dot,
        flops=2 * rows * size * size,
    )


def _scipy_linalg() -> Any:
    import scipy.linalg

    return scipy.linalg
