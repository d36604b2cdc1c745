"""What machines without FMA or SSE4.1 get instead of those instructions gives the same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from xlalite.backends.codegen.llvm import F32, F64, I64, PTR, VOID, ModuleBuilder, TargetInfo, widened

TYPES = {F32: np.float32, F64: np.float64}
UNSIGNED = {F32: np.uint32, F64: np.uint64}
ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "ftrunc": np.trunc,
    "rint": np.rint,
    "roundeven": np.rint,
    "round": lambda x: np.copysign(np.trunc(np.abs(x)) + (np.abs(x) - np.trunc(np.abs(x)) >= 0.5), x),
}


def apply(compile_text, type_, lanes, name, *arrays):
    """A method of the builder on arrays, for a machine that has nothing but SSE2."""
    module = ModuleBuilder("substitutes", TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64"))
    fb = module.function("apply", VOID, (*[PTR] * len(arrays), PTR, I64))
    *sources, target, count = fb.parameters
    with fb.loop(0, count, lanes) as i:
        values = [fb.load(widened(type_, lanes), fb.gep(type_, source, i), align=1) for source in sources]
        fb.store(getattr(fb, name)(*values), fb.gep(type_, target, i), align=1)
    fb.ret()
    assert "llvm.fma" not in module.text()
    found = np.empty_like(arrays[0])
    compile_text(module)("apply", *arrays, found, found.size)
    return found


def numbers(type_, count, seed):
    """Numbers of all sizes, few bits and many, special ones among them."""
    rng = np.random.default_rng(seed)
    dtype = TYPES[type_]
    size = 30 if type_ is F32 else 200
    noise = np.ldexp(rng.standard_normal(count), rng.integers(-size, size, count)).astype(dtype)
    near = (rng.integers(-64, 64, count) / 8).astype(dtype)
    wide = np.ldexp(rng.integers(1, 1 << 20, count), rng.integers(0, 40, count)).astype(dtype)
    special = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, np.nextafter(dtype(0.5), dtype(0)), np.inf, -np.inf, np.nan]
    special += [np.finfo(dtype).tiny, 1 / np.finfo(dtype).eps, 2 / np.finfo(dtype).eps, 0.5 / np.finfo(dtype).eps]
    found = np.concatenate([noise, near, wide, np.array(special, dtype)])
    rng.shuffle(found)
    return found[: found.size // 4 * 4]


def nearest(type_, a, b, c):
    """The sum rounded once, of numbers whose exact sum is not zero and within the range."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    guess = TYPES[type_](float(exact))
    around = [guess, np.nextafter(guess, TYPES[type_](np.inf)), np.nextafter(guess, TYPES[type_](-np.inf))]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(UNSIGNED[type_])) & 1))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_multiply_add_rounds_once(compile_text, type_, lanes):
    a, b, c = (numbers(type_, 700, seed) for seed in (1, 2, 3))
    with np.errstate(all="ignore"):
        # Sums that cancel, or nearly, or lie half way between numbers.
        plain, eps = a * b, np.finfo(TYPES[type_]).eps
        c[::3] = -plain[::3]
        c[1::6] = (-plain * (1 + eps))[1::6]
        c[2::6] = (plain * eps / 2)[2::6]
        plain = plain + c
    found = apply(compile_text, type_, lanes, "fma", a, b, c)
    for x, y, z, rough, one in zip(a, b, c, plain, found, strict=True):
        if not all(map(math.isfinite, (x, y, z, rough))):
            assert math.isnan(one) if math.isnan(rough) else one == rough
        elif Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) == 0:
            assert one == 0
            assert np.signbit(one) == np.signbit(rough)
        else:
            assert one == nearest(type_, x, y, z), (x, y, z)


def test_multiply_add_of_the_largest_numbers(compile_text):
    most = np.finfo(np.float64).max
    a, b = np.array([most, -most, most, most]), np.array([0.5, 1.0, 2.0, 1.0])
    c = np.array([most / 4, most, 0.0, -most / 2])
    np.testing.assert_array_equal(
        apply(compile_text, F64, 4, "fma", a, b, c), [nearest(F64, most, 0.5, most / 4), 0.0, np.inf, most / 2]
    )


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings(compile_text, name, type_, lanes):
    x = numbers(type_, 700, 4)
    with np.errstate(invalid="ignore"):
        expected = ROUNDINGS[name](x)
    found = apply(compile_text, type_, lanes, name, x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(x)], np.signbit(expected)[~np.isnan(x)])
