"""Functions of complex tensors: values alone and compiled; gradients, whose parts are the slopes along the parts."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import node

Z = np.array([0.5 + 0.25j, -0.75 + 1.5j, 2 - 3j, -1.25 - 0.5j, 3 + 0.125j])
VALUES = {
    "Abs": np.abs,
    "Sign": np.sign,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda z: 1 / np.sqrt(z),
    "Square": np.square,
    "Reciprocal": np.reciprocal,
    "Tanh": np.tanh,
    "Sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Real": np.real,
    "Imag": np.imag,
}


def apply(op_type: str, z: Tensor) -> Tensor:
    return m.abs(z) if op_type == "Abs" else node(op_type, [z])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("op_type", VALUES)
def test_values_alone_and_compiled(op_type: str, dtype: Any, run: Any) -> None:
    z = a.placeholder(dtype, [5])
    result, expected = apply(op_type, z), VALUES[op_type](Z.astype(dtype))
    tolerance = 2e-6 if dtype is np.complex64 else 2e-15
    for found in (run(result, {z: Z.astype(dtype)}), run.compiled([result], {z: Z.astype(dtype)})[0]):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance)


@pytest.mark.parametrize("op_type", [name for name in VALUES if name != "Sign"])
def test_gradients_are_slopes_along_both_parts(op_type: str, run: Any) -> None:
    z = a.placeholder(np.complex128, [5])
    result = apply(op_type, z)
    weighted = result * (np.arange(1, 6) * (0.5 - 0.25j if result.dtype.is_complex else 1.0))
    total = m.reduce_sum(m.real(weighted))
    (found,) = run.compiled([gradients(total, z)[0]], {z: Z})
    step = 1e-6
    for position in range(Z.size):
        along = []
        for unit in (step, step * 1j):
            moved = [np.where(np.arange(5) == position, Z + sign * unit, Z) for sign in (1, -1)]
            up, down = (float(run(total, {z: value})) for value in moved)
            along.append((up - down) / (2 * step))
        np.testing.assert_allclose(found[position], complex(*along), rtol=1e-6, atol=1e-8)


def test_the_modulus_has_no_slope_at_zero(run: Any) -> None:
    z = a.placeholder(np.complex64, [2])
    (found,) = run.compiled([gradients(m.abs(z), z)[0]], {z: np.zeros(2, np.complex64)})
    np.testing.assert_array_equal(found, 0)


def test_parts_of_real_numbers(run: Any) -> None:
    x = a.placeholder(np.float32, [2])
    values = np.array([1.5, -2], np.float32)
    np.testing.assert_array_equal(run(m.real(x), {x: values}), values)
    np.testing.assert_array_equal(run(m.imag(x), {x: values}), [0, 0])


def test_types_know_that_of_their_parts() -> None:
    types = (tf.complex64, tf.complex128, tf.bfloat16, tf.int8, tf.string)
    assert [each.real_dtype for each in types] == [tf.float32, tf.float64, tf.bfloat16, tf.int8, tf.string]
