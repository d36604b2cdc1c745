"""Random arguments, special numbers among them, and equality to the bit."""

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Token, Value
from xlalite.hlo.types.shape import Shape

SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e-45, 3e38)
# Without what leaves the range within one operation, depending on how it computes: squares and products.
MODEST_FLOATS = SPECIAL_FLOATS[:-2]


def make_random_arguments(
    module: HloModule, seed: int = 7, special: float = 0.6, numbers: Sequence[float] = SPECIAL_FLOATS
) -> list[Value]:
    """Small numbers for all parameters; the given share of floating-point numbers are special ones."""
    make = _Values(np.random.default_rng(seed), special, numbers)
    return [make.value(parameter.shape) for parameter in module.entry_computation.parameters]


class _Values:
    """Draws values of shapes."""

    def __init__(self, rng: np.random.Generator, special: float, numbers: Sequence[float]) -> None:
        self.rng, self.special, self.numbers = rng, special, np.asarray(numbers)

    def value(self, shape: Shape) -> Value:
        if shape.is_tuple:
            return tuple(self.value(element) for element in shape.elements)
        if not shape.is_array:
            return Token()
        dtype = shape.dtype
        if dtype is DType.PRED:
            return self.rng.random(shape.dims) < 0.5
        if dtype.is_integral:
            low = -min(5, 1 << dtype.bits >> 1) if dtype.is_signed else 0
            high = min(6, 1 << (dtype.bits - dtype.is_signed))
            return self.rng.integers(low, high, shape.dims).astype(dtype.numpy)
        if dtype.is_complex:
            value = np.empty(shape.dims, dtype.numpy)
            value.real, value.imag = (self._floats(dtype.component, shape.dims) for _ in range(2))
            return value
        return self._floats(dtype, shape.dims)

    def _floats(self, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
        values = self.rng.standard_normal(dims)
        chosen = self.rng.choice(self.numbers, dims)
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.rng.random(dims) < self.special, chosen, values)).astype(dtype.numpy)


def require_same_bits(expected: Value, found: Value, context: str) -> None:
    """Equal bits; every NaN equals every other."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(expected, found, strict=True):
            require_same_bits(one, other, context)
        return
    if not isinstance(expected, np.ndarray):
        return
    assert isinstance(found, np.ndarray)
    assert expected.dtype == found.dtype
    assert expected.shape == found.shape, context
    if DType.from_numpy(expected.dtype).is_integral or expected.dtype == np.bool_:
        np.testing.assert_array_equal(found, expected, err_msg=context)
        return
    with np.errstate(all="ignore"):
        one, other = (np.asarray(np.where(np.isnan(a), a.dtype.type(1), a)) for a in (expected, found))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=context)
    assert one.tobytes() == other.tobytes(), f"{found}\nexpected\n{expected}\n{context}"
