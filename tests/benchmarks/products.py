"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import floats, function_contest, onnx_program, signed, text_contest

from xlalite.hlo.types.dtype import DType


def workloads() -> list[Workload]:
    """All of them."""
    return [
        *(
            workload("matmul {m}x{k} by {k}x{n}", _matmul, m=m, k=k, n=n)
            for m, k, n in (
                *((size,) * 3 for size in (16, 17, 32, 63, 64, 100, 128, 200, 256, 777, 1024)),
                (1000, 777, 63),
                (8, 2048, 2048),
                (64, 1024, 1024),
                (32, 768, 3072),
                (16, 3072, 768),
                (5, 777, 4097),
                (100000, 8, 8),
                (100000, 3, 1),
                (8, 100000, 7),
                (1, 4097, 1000),
                (1, 4096, 4096),
                (4096, 4096, 1),
                (4097, 63, 1),
                (4097, 1, 1000),
            )
        ),
        *(
            workload(
                "matmul of {dtype} {m}x{k} by {k}x{n}".replace("{dtype}", dtype),
                partial(_matmul_of, dtype),
                m=m,
                k=k,
                n=n,
            )
            for dtype, m, k, n in (
                ("f64", 512, 512, 512),
                ("f64", 1, 4097, 1000),
                ("bf16", 512, 512, 512),
                ("bf16", 63, 777, 127),
                ("bf16", 1, 4097, 1000),
                ("f16", 512, 512, 512),
                ("c64", 256, 256, 256),
                ("c64", 1, 1001, 777),
            )
        ),
        *(
            workload("matmul of s8 {m}x{k} by {k}x{n}", _bytes, m=m, k=k, n=n)
            for m, k, n in ((512, 512, 512), (64, 1024, 1024), (63, 777, 127), (1, 4097, 1000))
        ),
        workload("matmul of s8 as s32 {m}x{k} by {k}x{n}", _widened_bytes, m=64, k=1024, n=1000),
        workload("matmul of f32 {m}x{k} by s8 {k}x{n} with scales", _dequantised, m=64, k=1024, n=1000),
        workload("matmul of f32 {m}x{k} by s8 {k}x{n} with scales", _dequantised, m=1, k=4097, n=1000),
        *(
            workload(f"matmul of f32 {{m}}x{{k}} by scaled s8 {{k}}x{{n}}{', transposed' * turned}", build, **size)
            for turned in (False, True)
            for build in [partial(_scaled_weights, turned)]
            for size in ({"m": 16, "k": 4096, "n": 4096}, {"m": 1, "k": 4097, "n": 1000})
        ),
        workload("matmul {m}x{k} by a slice of {count} {k}x{n}", _sliced_weights, count=4, m=8, k=2048, n=2048),
        workload("matmul, right side transposed {m}x{k} by {n}x{k}", _matmul_transposed, m=128, k=1000, n=777),
        workload("matmul, right side transposed {m}x{k} by {n}x{k}", _matmul_transposed, m=16, k=768, n=3072),
        workload("matmul, right side transposed {m}x{k} by {n}x{k}", _matmul_transposed, m=1, k=4097, n=1000),
        *(
            workload("matmul, left side transposed {k}x{m} by {k}x{n}", _matmul_turned, m=m, k=k, n=n)
            for m, k, n in ((1024, 1024, 1024), (777, 2000, 513), (768, 1024, 3072))
        ),
        *(
            workload(
                f"matmul, {{m}}x{{k}}{' transposed' * across} by itself{' transposed' * (not across)}",
                partial(_gram, across),
                m=m,
                k=k,
            )
            for across, m, k in ((False, 1024, 1024), (False, 777, 129), (True, 2000, 513))
        ),
        workload("matmul, {batch} of {m}x{k} by {k}x{n}", _batched, batch=96, m=129, k=64, n=129),
        workload("matmul, {batch} of {m}x{k} by {k}x{n}", _batched, batch=10000, m=4, k=4, n=4),
        workload("matmul, {batch} of {m}x{k} by {k}x{n}", _batched, batch=10000, m=3, k=3, n=1),
        workload("matmul, {batch} of {m}x{k} by {k}x{n}", _batched, batch=999, m=1, k=63, n=65),
        workload("matmul, {batch} of {m}x{k} by the same {k}x{n}", _broadcast, batch=96, m=129, k=64, n=129),
        workload("matmul, {batch} of the same {m}x{k} by {k}x{n}", _broadcast_left, batch=96, m=129, k=64, n=129),
    ]


def _matmul(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    inputs = f"float[{m},{k}] x, float[{k},{n}] y"
    program = onnx_program(inputs, f"float[{m},{n}] r", "r = MatMul(x, y)")
    return _matmul_of("f32", m, k, n, onnxruntime=program)


def _matmul_of(dtype: str, m: int = 3, k: int = 5, n: int = 7, **options: Any) -> Contest:
    x, y = (array.astype(DType(dtype).numpy) for array in signed((m, k), (k, n)))
    if dtype in ("c64", "c128"):
        x, y = x + x.dtype.type(1j) * x[::-1], y + y.dtype.type(1j) * y[::-1]
    if dtype in ("bf16", "f16"):
        options |= {"jax": lambda jax: jax.numpy.matmul, "numpy": _by_f32, "tolerance": 2e-2}
    else:
        options |= {"numpy" if dtype in ("f64", "c128") else "plain": lambda np_: np_.matmul}
    return text_contest(_dot_body(dtype, dtype, dtype, m, k, n), [x, y], torch=lambda torch: torch.matmul, **options)


def _by_f32(_: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, y: (x.astype(np.float32) @ y.astype(np.float32)).astype(x.dtype)


def _dot_body(lhs: str, rhs: str, result: str, m: int, k: int, n: int) -> str:
    return (
        f"  x = {lhs}[{m},{k}] parameter(0)\n  y = {rhs}[{k},{n}] parameter(1)\n"
        f"  ROOT r = {result}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    )


def _inner(count: int = 1001) -> Contest:
    body = f"""
  x = f32[{count}] parameter(0)
  y = f32[{count}] parameter(1)
  ROOT r = f32[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
"""
    return text_contest(body, floats((count,), (count,)), plain=lambda np_: np_.dot, torch=lambda torch: torch.dot)


def _bytes(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    return _of_bytes(_dot_body("s8", "s8", "s32", m, k, n), m, k, n)


def _widened_bytes(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    body = f"""
  x = s8[{m},{k}] parameter(0)
  y = s8[{k},{n}] parameter(1)
  a = s32[{m},{k}] convert(x)
  b = s32[{k},{n}] convert(y)
  ROOT r = s32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
    return _of_bytes(body, m, k, n)


def _of_bytes(body: str, m: int, k: int, n: int) -> Contest:
    rng = np.random.default_rng(0)
    takes_rows = {"torch": lambda torch: torch._int_mm} if m > 16 else {}
    return text_contest(
        body,
        [rng.integers(-128, 128, sizes, np.int8) for sizes in ((m, k), (k, n))],
        numpy=lambda _: lambda x, y: (x.astype(np.float32) @ y.astype(np.float32)).astype(np.int32),
        jax=lambda jax: lambda x, y: jax.lax.dot(x, y, preferred_element_type=np.int32),
        tolerance=1e-6,
        **takes_rows,
    )


def _dequantised(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    body = f"""
  x = f32[{m},{k}] parameter(0)
  y = s8[{k},{n}] parameter(1)
  s = f32[{n}] parameter(2)
  w = f32[{k},{n}] convert(y)
  d = f32[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{m},{n}] broadcast(s), dimensions={{1}}
  ROOT r = f32[{m},{n}] multiply(d, t)
"""
    weights = np.random.default_rng(0).integers(-128, 128, (k, n), np.int8)
    return text_contest(
        body,
        [*signed((m, k)), weights, *signed((n,), seed=1)],
        plain=lambda np_: lambda x, y, s: (x @ y.astype(np.float32)) * s,
        torch=lambda torch: lambda x, y, s: torch.matmul(x, y.float()) * s,
    )


def _scaled_weights(turned: bool, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    """Weights that are whole numbers times a scale for each column, made real numbers first."""

    def plain(np_: Any) -> Callable[..., Any]:
        return lambda x, w, s: x @ ((w.astype(np.float32) * s[:, None]).T if turned else w.astype(np.float32) * s)

    weights = np.random.default_rng(0).integers(-128, 128, (n, k) if turned else (k, n), np.int8)
    return function_contest(None, [*signed((m, k)), weights, *signed((n,), seed=1)], plain)


def _sliced_weights(count: int = 2, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    """The weights of one layer out of those of all."""
    body = f"""
  x = f32[{m},{k}] parameter(0)
  w = f32[{count},{k},{n}] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  one = f32[1,{k},{n}] dynamic-slice(w, i, z, z), dynamic_slice_sizes={{1,{k},{n}}}
  y = f32[{k},{n}] reshape(one)
  ROOT d = f32[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
    return text_contest(
        body,
        [*signed((m, k), (count, k, n)), np.asarray(1, np.int32)],
        numpy=lambda _: lambda x, w, i: x @ w[i],
        jax=lambda jax: lambda x, w, i: x @ jax.lax.dynamic_index_in_dim(w, i, 0, keepdims=False),
        traffic=(4 * (m * k + k * n), 4 * m * n),
    )


def _matmul_transposed(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y.T  # noqa: E731
    return function_contest(None, signed((m, k), (n, k)), plain, torch=plain)


def _matmul_turned(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    """As gradients of weights are."""

    def plain(_: Any) -> Callable[[Any, Any], Any]:
        return lambda a, b: a.T @ b

    return function_contest(None, signed((k, m), (k, n)), plain, torch=plain, flops=2 * m * k * n)


def _gram(across: bool, m: int = 3, k: int = 5) -> Contest:
    def plain(_: Any) -> Callable[[Any], Any]:
        return (lambda a: a.T @ a) if across else lambda a: a @ a.T

    rows, terms = (k, m) if across else (m, k)
    return function_contest(None, signed((m, k)), plain, torch=plain, flops=rows * (rows + 1) * terms)


def _batched(batch: int = 2, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y  # noqa: E731
    return function_contest(None, signed((batch, m, k), (batch, k, n)), plain, torch=plain)


def _broadcast(batch: int = 2, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y  # noqa: E731
    return function_contest(None, signed((batch, m, k), (k, n)), plain, torch=plain)


def _broadcast_left(batch: int = 2, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y  # noqa: E731
    return function_contest(None, signed((m, k), (batch, k, n)), plain, torch=plain)
