"""Mixed operands follow NumPy's rules (NEP 50)."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import LiteralError
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.training.variable import Variable

ARRAYS = [np.zeros(2, t) for t in (np.bool_, np.uint8, np.int8, np.int32, np.int64, np.float16, np.float32, np.float64)]


# The sum of two bools is not defined here.
PAIRS = [(x, y) for x in ARRAYS for y in (*ARRAYS, 1, 0.5, 1j, np.float32(1)) if x is not y or x.dtype != np.bool_]


@pytest.mark.parametrize(("x", "y"), PAIRS, ids=lambda operand: getattr(operand, "dtype", operand))
def test_sums_have_numpys_type(x: np.ndarray, y: Any, graph: Graph) -> None:
    expected = (x + y).dtype
    if x.dtype == np.float16 and isinstance(y, complex):
        expected = np.dtype(np.complex64)
    assert (constant(x) + y).dtype == expected
    assert (y + constant(x)).dtype == expected


def test_double_scalars_take_the_type_that_they_meet(graph: Graph) -> None:
    x = constant(np.zeros(2, np.float32))
    assert (x * np.sqrt(2.0)).dtype == (np.float64(2) / x).dtype == m.maximum(x, np.float64(1)).dtype == "float32"
    assert (constant([1, 2]) * np.float64(1)).dtype == "float64"
    assert m.add(np.float64(1), constant(np.float16(1))).dtype == "float16"


def test_python_sequences_are_weak_too(graph: Graph) -> None:
    assert (constant(np.zeros(2, np.float16)) * [1.0, 2.0]).dtype == "float16"
    assert m.maximum(constant(np.zeros(2, ml_dtypes.bfloat16)), 1).dtype == "bfloat16"
    assert m.add(1, 2).dtype == "int32"
    assert m.add(1.0, 2.5).dtype == "float32"


def test_division_of_integers_is_true_division(graph: Graph) -> None:
    x = constant([7, 8])
    assert (x / 2).dtype == "float64"
    assert (x // 2).dtype == "int32"
    assert m.div(x, 2).dtype == "int32"
    assert m.exp(x).dtype == "float64"


def test_numbers_out_of_range_are_errors(graph: Graph) -> None:
    x = constant(np.zeros(2, np.uint8))
    with pytest.raises(LiteralError, match="uint8 of 300"):
        _ = x + 300
    with pytest.raises(LiteralError, match="not integers"):
        constant(1.5, "int32")
    with pytest.raises(ElementTypeError, match="no common element type for float32 and string"):
        _ = constant(1.0) + constant("text")


def test_numpy_arrays_on_the_left_leave_the_operator_to_the_tensor(graph: Graph) -> None:
    total = np.ones(2, np.float32) + constant(np.ones(2, np.float32))
    assert total.op.type == "AddV2"
    assert (np.float32(2) * Variable(1.0)).op.type == "Mul"
    assert (np.ones((2, 2)) @ constant(np.ones((2, 2)))).op.type == "MatMul"


def test_sequences_with_tensors_are_stacked(graph: Graph) -> None:
    x = constant(1.0)
    stacked = convert_to_tensor([[x, 2], [3.5, x]])
    assert stacked.shape == [2, 2]
    assert stacked.dtype == "float32"
    assert a.reshape(constant([1, 2]), [constant(2), 1]).shape.as_list() == [2, 1]


def test_constants_take_natural_types_and_fill_shapes(graph: Graph) -> None:
    assert constant(1).dtype == "int32"
    assert constant(2**40).dtype == "int64"
    assert constant(1.0).dtype == "float32"
    assert constant(np.float64(1)).dtype == "float64"
    assert constant(True).dtype == "bool"
    assert constant(b"x").dtype == "string"
    assert constant(0.5, shape=[2, 3]).shape == [2, 3]
    with pytest.raises(LiteralError, match="rectangular"):
        constant([[1], [1, 2]])
    with pytest.raises(ValueError, match="cannot fill"):
        constant([1, 2], shape=[3])
    with pytest.raises(TypeError, match="neither numbers nor strings"):
        constant(object())


def test_logic_operators_choose_by_type(graph: Graph) -> None:
    flag, number = constant([True]), constant([6])
    assert ((flag & False).op.type, (number & 3).op.type) == ("LogicalAnd", "BitwiseAnd")
    assert ((flag ^ True).op.type, (~flag).op.type, (~number).op.type) == ("NotEqual", "LogicalNot", "Invert")
