"""Fourier transforms agree with the evaluator, which computes in double precision, and with the definition."""

from typing import Any

import numpy as np
import pytest
from halves import HALVES, half_of

from xlalite.backends.codegen.kernels.fft.plan import LinePlan, cost_of, plan_line, radices_of

LENGTHS = (*range(71), 97, 100, 101, 128, 243, 256, 299, 1000, 1009, 4096)
"""All small ones, products of all radices, primes, long ones."""
KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
ROWS = (("c64", "FFT", 3), ("c128", "IFFT", 17), ("c128", "RFFT", 3), ("c64", "IRFFT", 17))


def fft_text(dtype: str, dims: tuple[int, ...], kind: str, rank: int = 1) -> str:
    """A transform of the last dimensions of a signal of some sizes; the type is that of the spectrum."""
    lengths = dims[-rank:]
    spectrum = (*dims[:-1], (dims[-1] // 2 + 1 if dims[-1] else 0) if kind in ("RFFT", "IRFFT") else dims[-1])
    real = {"c64": "f32", "c128": "f64"}[dtype] if kind in ("RFFT", "IRFFT") else dtype
    shapes = [f"{real}[{','.join(map(str, dims))}]", f"{dtype}[{','.join(map(str, spectrum))}]"]
    source, target = reversed(shapes) if kind in ("IFFT", "IRFFT") else shapes
    attributes = f"fft_type={kind}, fft_length={{{','.join(map(str, lengths))}}}"
    return f"HloModule m\nENTRY e {{\n  x = {source} parameter(0)\n  ROOT r = {target} fft(x), {attributes} }}"


def operand(rng: np.random.Generator, dtype: str, dims: tuple[int, ...], kind: str = "FFT") -> np.ndarray:
    """Random numbers for it; imaginary parts that have to be ignored are some."""
    if kind == "IRFFT":
        dims = (*dims[:-1], dims[-1] // 2 + 1 if dims[-1] else 0)
    values = rng.standard_normal(dims) + 1j * rng.standard_normal(dims)
    wide = values.real if kind == "RFFT" else values
    narrow = np.float32 if kind == "RFFT" else np.complex64
    return wide.astype(narrow) if dtype == "c64" else wide


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.abs(values) ** 2)))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("half", HALVES)
def test_rows_of_any_length(check: Any, kernels: Any, rng: np.random.Generator, length: int, half: int) -> None:
    """Of even lengths and of odd ones, every second has the first half."""
    for dtype, kind, count in half_of(ROWS, length // 2, half):
        dims = (count, length)
        executable = check(fft_text(dtype, dims, kind), operand(rng, dtype, dims, kind), ulps=6, num_threads=1)
        assert kernels(executable) == (["fft"] if length else ["loop"])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 11, 16, 30, 49, 60])
def test_the_definition(compile_text: Any, rng: np.random.Generator, length: int) -> None:
    numbers = np.arange(length)
    matrix = np.exp(-2j * np.pi * (np.outer(numbers, numbers) % length) / length)
    x = operand(rng, "c64", (2, length))
    found = compile_text(fft_text("c64", x.shape, "FFT"))(x)
    np.testing.assert_allclose(found, x.astype(np.complex128) @ matrix, rtol=0, atol=4e-7 * length)


SIZES = (
    *(((2, 5, 7), 2), ((3, 20, 37), 2), ((1, 9), 2), ((9, 1), 2), ((64, 48), 2), ((2, 3, 4, 5), 3), ((6, 18, 20), 3)),
    *(((17, 1, 16), 3), ((2, 11, 13), 2), ((3, 4, 1009), 2), ((4, 0, 3), 2), ((0, 8), 1), ((3, 16, 4096), 2)),
)


@pytest.mark.parametrize(("dims", "rank"), SIZES)
def test_several_dimensions(check: Any, rng: np.random.Generator, dims: tuple[int, ...], rank: int) -> None:
    for dtype in ("c64", "c128"):
        for kind in KINDS:
            check(fft_text(dtype, dims, kind, rank), operand(rng, dtype, dims, kind), ulps=6)


@pytest.mark.parametrize(("length", "limit"), [(64, 0.8), (1000, 1.1), (1009, 1.8), (4096, 1.2), (1 << 15, 1.35)])
def test_errors_are_those_of_its_precision(
    compile_text: Any, rng: np.random.Generator, length: int, limit: float
) -> None:
    """Root mean squares; the limits are what SciPy errs by and a little more (of 1009 elements, 2)."""
    for count in (1, 16):
        x = operand(rng, "c64", (count, length))
        expected = np.fft.fft(x.astype(np.complex128))
        found = compile_text(fft_text("c64", x.shape, "FFT"))(x)
        assert root_mean_square(found - expected) < limit * np.finfo(np.float32).eps * root_mean_square(expected)


@pytest.mark.parametrize("length", [50, 96, 8192, 1 << 16, 3**9, 5**6, 37, 1009, 4097, 2 * 5003, 10007])
def test_a_line_of_its_own(check: Any, rng: np.random.Generator, length: int) -> None:
    for kind in KINDS:
        check(fft_text("c64", (length,), kind), operand(rng, "c64", (length,), kind), ulps=6)


@pytest.mark.parametrize(("dims", "rank"), [((40, 100), 1), ((35, 1009), 1), ((7, 4096), 1), ((9, 40, 36), 2)])
def test_threads_change_no_bit(compile_text: Any, rng: np.random.Generator, dims: tuple[int, ...], rank: int) -> None:
    for kind in ("IFFT", "RFFT"):
        x = operand(rng, "c64", dims, kind)
        text = fft_text("c64", dims, kind, rank)
        found = [compile_text(text, num_threads=threads)(x).tobytes() for threads in (1, 2, 5)]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("dims", "rank"), [((263, 500), 2), ((1, 1 << 17), 1), ((1, 3**11), 1), ((70, 61, 33), 3), ((1, 100003), 1)]
)
def test_threads_share_one_transform(
    compile_text: Any, rng: np.random.Generator, dims: tuple[int, ...], rank: int
) -> None:
    for kind in KINDS:
        x = operand(rng, "c64", dims, kind)
        executables = [compile_text(fft_text("c64", dims, kind, rank), num_threads=threads) for threads in (1, 2, 5)]
        alone, *shared = ([d.numbers.get("threads") for d in each.decisions()] for each in executables)
        assert 2 in shared[0]
        assert 5 in shared[1]
        assert not any(alone)
        first, *others = (each(x).tobytes() for each in executables)
        assert others == [first, first]


@pytest.mark.parametrize("length", [1, 7, 8, 22, 64, 300, 1009, 4096])
def test_special_numbers(compile_text: Any, rng: np.random.Generator, length: int) -> None:
    """A line with NaN or an infinity has no finite sum; lines beside it are not touched. Zeros give zeros."""
    x = operand(rng, "c64", (20, length))
    x[3, length // 2], x[5, 0], x[7, -1] = np.nan, np.inf, complex(1, -np.inf)
    x[9] = -0.0
    found = compile_text(fft_text("c64", x.shape, "FFT"))(x)
    assert not np.isfinite(found[[3, 5, 7]]).all(axis=1).any()
    assert np.isfinite(np.delete(found, [3, 5, 7], axis=0)).all()
    assert (found[9] == 0).all()
    one = compile_text(fft_text("c64", (length,), "FFT"))(x[3])
    assert not np.isfinite(one).all()


def test_one_frequency_of_no_signal(check: Any) -> None:
    text = "ENTRY e { x = c64[3,1] parameter(0)\n ROOT r = f32[3,0] fft(x), fft_type=IRFFT, fft_length={0} }"
    check(text, np.ones((3, 1), np.complex64))


def test_lines_beyond_all_memory_are_not_planned(compile_text: Any, kernels: Any) -> None:
    assert kernels(compile_text(fft_text("c64", (1 << 57,), "FFT"))) == ["evaluated"]


@pytest.mark.parametrize("length", [*range(11, 200, 2), 463, 1021])
def test_a_convolution_takes_the_cheapest_of_all_lengths_with_small_factors(length):
    plan = plan_line(length)
    if plan.is_convolution:
        lengths = range(2 * length - 1, 2 ** (2 * length - 2).bit_length() + 1)
        found = filter(None, map(radices_of, lengths))
        plans = [LinePlan(length, radices) for radices in found if max(radices) <= 8]
        assert plan.size * cost_of(plan.radices) == min(each.size * cost_of(each.radices) for each in plans)
