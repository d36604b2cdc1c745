"""Products of matrices."""

from __future__ import annotations

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import function_contest, onnx_program, signed, text_contest


def workloads() -> list[Workload]:
    """All of them."""
    return [
        *(
            workload("matmul {m}x{k} by {k}x{n}", _matmul, m=m, k=k, n=n)
            for m, k, n in (
                (63, 63, 63),
                (64, 64, 64),
                (256, 256, 256),
                (777, 777, 777),
                (1024, 1024, 1024),
                (1000, 777, 63),
                (1, 4097, 1000),
                (4097, 63, 1),
            )
        ),
        *(
            workload("matmul of s8 {m}x{k} by {k}x{n}", _bytes, m=m, k=k, n=n)
            for m, k, n in ((512, 512, 512), (64, 1024, 1000), (63, 777, 127))
        ),
        workload("matmul, right side transposed {m}x{k} by {n}x{k}", _matmul_transposed, m=128, k=1000, n=777),
        workload("matmul, {batch} of {m}x{k} by {k}x{n}", _batched, batch=96, m=129, k=64, n=129),
    ]


def _matmul(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    body = (
        f"  x = f32[{m},{k}] parameter(0)\n  y = f32[{k},{n}] parameter(1)\n"
        f"  ROOT r = f32[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    )
    inputs = f"float[{m},{k}] x, float[{k},{n}] y"
    return text_contest(
        body,
        signed((m, k), (k, n)),
        plain=lambda np_: np_.matmul,
        torch=lambda torch: torch.matmul,
        onnxruntime=onnx_program(inputs, f"float[{m},{n}] r", "r = MatMul(x, y)"),
    )


def _bytes(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    body = (
        f"  x = s8[{m},{k}] parameter(0)\n  y = s8[{k},{n}] parameter(1)\n"
        f"  ROOT r = s32[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    )
    rng = np.random.default_rng(0)
    return text_contest(
        body,
        [rng.integers(-128, 128, sizes, np.int8) for sizes in ((m, k), (k, n))],
        numpy=lambda _: lambda x, y: (x.astype(np.float32) @ y.astype(np.float32)).astype(np.int32),
        jax=lambda jax: lambda x, y: jax.lax.dot(x, y, preferred_element_type=np.int32),
        torch=lambda torch: lambda x, y: torch._int_mm(x, y),
        tolerance=0,
    )


def _matmul_transposed(m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y.T  # noqa: E731
    return function_contest(None, signed((m, k), (n, k)), plain, torch=plain)


def _batched(batch: int = 2, m: int = 3, k: int = 5, n: int = 7) -> Contest:
    plain = lambda np_: lambda x, y: x @ y  # noqa: E731
    return function_contest(None, signed((batch, m, k), (batch, k, n)), plain, torch=plain)
