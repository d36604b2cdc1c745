"""Where functions are tried: every number of a type of up to 32 bits, else many, spread over all magnitudes."""

from __future__ import annotations

import zlib

import ml_dtypes
import numpy as np

from xlalite.hlo.types.dtype import DType

EXHAUSTIVE_BITS = 32


def is_exhaustive(arity: int, dtype: DType) -> bool:
    """Whether each number of the type is tried."""
    return arity == 1 and dtype.is_floating and dtype.bits <= EXHAUSTIVE_BITS


def points(name: str, arity: int, dtype: DType, chunk: int, count: int) -> tuple[np.ndarray, ...]:
    """The operands of one chunk, the same ones each time."""
    if is_exhaustive(arity, dtype):
        unsigned = np.dtype(f"u{dtype.bits // 8}")
        return ((np.arange(count, dtype=unsigned) + unsigned.type(chunk * count)).view(dtype.numpy),)
    rng = np.random.default_rng([zlib.crc32(name.encode()), dtype.bits, chunk])
    if dtype.is_complex:
        x = complex_numbers(rng, dtype, count)
        if name == "atan2":
            # It jumps where x^2 + y^2 is negative; on which side a number lies must be visible in floating point.
            x = np.where(_is_moderate(x.real) & _is_moderate(x.imag), x, 1 - 1j).astype(dtype.numpy)
        return (x,) if arity == 1 else (x, complex_partners(name, rng, x))
    x = _numbers(rng, dtype, count)
    if name in ("lgamma", "digamma"):
        # Below 0 there are roots between the poles, near which only the absolute error is small.
        x = np.abs(x)
    return (x,) if arity == 1 else _PARTNERS[name](rng, x)


def _numbers(rng: np.random.Generator, dtype: DType, count: int) -> np.ndarray:
    """A quarter are any bits, a quarter lie around 1, of the others the exponents are moderate; of 16 bits any."""
    unsigned = np.dtype(f"u{dtype.bits // 8}")
    bits = rng.integers(0, 2**dtype.bits, count, unsigned)
    if dtype.bits == 16:
        return bits.view(dtype.numpy)
    mantissa = {32: 23, 64: 52}[dtype.bits]
    bias = 2 ** (dtype.bits - mantissa - 2) - 1
    exponents = rng.integers(bias - 30, bias + 11, count - count // 2).astype(unsigned)
    tail = bits[count // 2 :]
    tail &= unsigned.type(2 ** (dtype.bits - 1) + 2**mantissa - 1)
    tail |= exponents << unsigned.type(mantissa)
    x = bits.view(dtype.numpy)
    quarter = x[: count // 4]
    quarter[:] = 1 + rng.standard_normal(quarter.size) * np.exp2(rng.uniform(-mantissa, 2, quarter.size))
    return x


def _of_power(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Exponents that give results of all magnitudes."""
    x = np.where(rng.random(x.size) < 0.9, np.abs(x), x)
    limit = float(ml_dtypes.finfo(x.dtype).maxexp) * 1.06
    with np.errstate(all="ignore"):
        y = rng.uniform(-limit, limit, x.size) / np.log2(np.abs(x).astype(np.float64))
        y = np.where(x < 0, np.rint(y), y).astype(x.dtype)
    return x, y


def _near_in_size(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Half of the others are of about the size of x, with exponents up to 30 smaller or larger."""
    with np.errstate(all="ignore"):
        near = x * rng.standard_normal(x.size) * np.exp2(np.rint(rng.uniform(-30, 30, x.size)))
        return x, np.where(rng.random(x.size) < 0.5, near, rng.permutation(x)).astype(x.dtype)


def _of_zeta(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Orders from 1 to 60 of positive numbers up to 1000."""
    order = 1 + 60 * np.maximum(rng.random(x.size), 0.1) ** 3
    return order.astype(x.dtype), np.exp2(rng.uniform(-10, 10, x.size)).astype(x.dtype)


def _of_polygamma(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Derivatives up to the eighth of positive numbers up to 1000."""
    return rng.integers(0, 9, x.size).astype(x.dtype), np.exp2(rng.uniform(-10, 10, x.size)).astype(x.dtype)


_PARTNERS = {
    "power": _of_power,
    "atan2": _near_in_size,
    "remainder": _near_in_size,
    "zeta": _of_zeta,
    "polygamma": _of_polygamma,
}


def complex_numbers(rng: np.random.Generator, dtype: DType, count: int) -> np.ndarray:
    """Parts that are not zero; a sixth of the numbers lie near |z| = 1 or |1 + z| = 1."""
    part = dtype.component.numpy.type
    low, high = (-149, 127) if part is np.float32 else (-1074, 1023)

    def parts() -> np.ndarray:
        kind = rng.integers(0, 5, count)
        spread = [rng.uniform(low, high, count), rng.uniform(-30, 6, count), rng.uniform(-3, 3, count)]
        exponent = np.floor(np.select([kind == 0, kind == 1], spread[:2], spread[2])).astype(int)
        numbers = np.ldexp(1 + rng.random(count), exponent)
        landmarks = rng.choice([1.0, 0.5, 2.0, np.pi / 2, np.pi, 2.0**low, 88.5, 104.0, 709.5, 745.0], count)
        near_one = 1 + rng.normal(size=count) * 10.0 ** rng.uniform(-17, -1, count)
        numbers = np.select([kind == 3, kind == 4], [landmarks, near_one], numbers) * rng.choice([-1, 1], count)
        found = numbers.astype(part)
        return np.where(np.isfinite(found) & (found != 0), found, part(0.75))

    z = np.empty(count, dtype.numpy)
    z.real, z.imag = parts(), parts()
    near = count // 6
    angle, radius = rng.uniform(0, 2 * np.pi, near), 1 + rng.normal(size=near) * 10.0 ** rng.uniform(-17, -1, near)
    z[:near] = radius * np.exp(1j * angle)
    z.real[: near // 2] -= 1
    return z


def _is_moderate(x: np.ndarray) -> np.ndarray:
    return (np.abs(x) > 2.0**-50) & (np.abs(x) < 2.0**50)


def complex_partners(name: str, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """For powers moderate complex numbers, real ones and integers."""
    if name != "power":
        return rng.permutation(x)
    w = rng.normal(size=x.size) + 1j * rng.normal(size=x.size) * rng.integers(0, 2, x.size)
    w = w * rng.choice([0.1, 1, 3, 10], x.size)
    w[: x.size // 4] = rng.integers(1, 6, x.size // 4)
    return w.astype(x.dtype)
