"""Products lose no more than NumPy's, measured by those of twice the bits."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

WIDER = {"f32": np.float64, "c64": np.complex128, "f64": np.longdouble}
SIZES = [
    (64, 64, 64),
    (129, 257, 63),
    (100, 1000, 100),
    (64, 4097, 64),
    (8, 20000, 7),
    (1, 4097, 1000),
    (1000, 4097, 1),
    (3, 2048, 2048),
    (300, 777, 300),
    (64, 256, 64),
    (33, 3000, 40),
]


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("dtype", WIDER)
def test_errors_are_no_larger_than_numpys(
    compile_text: Any, rng: np.random.Generator, dtype: str, turned: tuple[bool, bool]
) -> None:
    numpy = DType(dtype).numpy
    for m, k, n in SIZES:
        if dtype == "f64" and m * k * n > 1 << 22:
            continue  # NumPy has no quick product of long doubles
        x, y = (
            _numbers(rng, numpy, *((b, a) if turn else (a, b))) for a, b, turn in ((m, k, turned[0]), (k, n, turned[1]))
        )
        executable = compile_text(f"""HloModule m
ENTRY e {{
  x = {dtype}[{x.shape[0]},{x.shape[1]}] parameter(0)
  y = {dtype}[{y.shape[0]},{y.shape[1]}] parameter(1)
  ROOT d = {dtype}[{m},{n}] dot(x, y), lhs_contracting_dims={{{int(not turned[0])}}}, \
rhs_contracting_dims={{{int(turned[1])}}} }}""")
        a, b = x.T if turned[0] else x, y.T if turned[1] else y
        exact = a.astype(WIDER[dtype]) @ b.astype(WIDER[dtype])
        ours, theirs = _size(executable(x, y) - exact), _size(a @ b - exact)
        assert ours <= 1.25 * theirs, f"{m}x{k} by {k}x{n}: {ours}, NumPy's {theirs}"


def test_the_highest_precision_loses_less(compile_text: Any, rng: np.random.Generator) -> None:
    x, y = (_numbers(rng, np.float32, 512, 512) for _ in range(2))
    errors = []
    for precision in ("default", "highest"):
        executable = compile_text(f"""HloModule m
ENTRY e {{
  x = f32[512,512] parameter(0)
  y = f32[512,512] parameter(1)
  ROOT d = f32[512,512] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
operand_precision={{{precision},{precision}}} }}""")
        errors.append(_size(executable(x, y) - x.astype(np.float64) @ y))
    assert errors[1] < 0.8 * errors[0]


def _numbers(rng: np.random.Generator, numpy: Any, *shape: int) -> Any:
    numbers = rng.standard_normal(shape)
    return (numbers + 1j * rng.standard_normal(shape) if np.dtype(numpy).kind == "c" else numbers).astype(numpy)


def _size(difference: Any) -> float:
    return float(np.sqrt(np.mean(np.abs(difference) ** 2)))
