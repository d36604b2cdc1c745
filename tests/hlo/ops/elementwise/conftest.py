"""Applies one operation to arrays, and exact arithmetic to compare it with."""

from collections.abc import Callable, Iterator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


@pytest.fixture(scope="session")
def apply_op() -> Callable[..., np.ndarray]:
    """`apply_op(opcode, *arrays, attrs=None, result=None)`: the operation's value; `result` is the result's DType."""

    def apply(opcode, *arrays, attrs=None, result=None, dims=None):
        builder = Builder("test")
        arrays = [np.asarray(array) for array in arrays]
        parameters = [builder.parameter(Shape.array(DType.from_numpy(a.dtype), a.shape)) for a in arrays]
        shape = None if result is None else Shape.array(result, arrays[0].shape if dims is None else dims)
        root = builder.op(opcode, parameters, attrs, shape=shape)
        return evaluate(builder.build(root), *arrays)

    return apply


@pytest.fixture(scope="session")
def make_array() -> Callable[..., np.ndarray]:
    """`make_array(numbers, dtype)`: an array of any element type; integers must be in range."""

    def make(numbers, dtype: DType):
        with np.errstate(all="ignore"):
            if dtype.is_integral:
                wide = np.array(numbers, np.int64 if dtype.is_signed else np.uint64)
                return (
                    wide.astype(np.int8 if dtype.is_signed else np.uint8).astype(dtype.numpy)
                    if dtype.bits < 8
                    else wide.astype(dtype.numpy)
                )
            return np.array(numbers).astype(dtype.numpy)

    return make


@pytest.fixture(scope="session")
def all_values() -> Callable[[DType], np.ndarray]:
    """Every value of an element type of at most 16 bits."""

    def every(dtype: DType) -> np.ndarray:
        if dtype.is_integral and dtype.bits < 8:
            low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
            return np.arange(low, low + (1 << dtype.bits)).astype(np.int8).astype(dtype.numpy)
        return np.arange(1 << dtype.bits).astype(np.uint8 if dtype.bits <= 8 else np.uint16).view(dtype.numpy)

    return every


@pytest.fixture(scope="session")
def exact_round() -> Callable[[Fraction, DType], Fraction]:
    """The nearest number of a binary format without bound on its exponent above; ties to even; denormals kept."""

    def rounded(number: Fraction, dtype: DType) -> Fraction:
        if number == 0:
            return number
        info = ml_dtypes.finfo(dtype.numpy)
        mantissa_bits, lowest_exponent = int(info.nmant), int(info.minexp)
        size = abs(number)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if Fraction(2) ** exponent > size:
            exponent -= 1
        unit = Fraction(2) ** (max(exponent, lowest_exponent) - mantissa_bits)
        return round(number / unit) * unit

    return rounded


@pytest.fixture(autouse=True)
def numpy_is_quiet() -> Iterator[None]:
    """Formulas of the tests meet zeros and infinities on purpose; the evaluator must be silent by itself."""
    with np.errstate(all="ignore"):
        yield
