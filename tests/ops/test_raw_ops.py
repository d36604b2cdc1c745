"""`raw_ops`: operations by their types, with TensorFlow's names of inputs and attributes."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode

F = np.float32
X = np.arange(6, dtype=F).reshape(2, 3)
IMAGE = X[None, ..., None]
WINDOW = {"strides": [1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("MatMul", {"a": X, "b": X, "transpose_b": True}, X @ X.T),
        ("Sum", {"input": X, "axis": [1]}, X.sum(1)),
        ("Sum", {"input": X, "axis": [1], "keep_dims": True}, X.sum(1, keepdims=True)),
        ("ArgMax", {"input": X, "dimension": 1}, [2, 2]),
        ("Relu", {"features": -X}, np.zeros((2, 3))),
        ("AddN", {"inputs": [X, X, X]}, 3 * X),
        ("ConcatV2", {"values": [X, X], "axis": 0}, np.r_[X, X]),
        ("Cast", {"x": X, "DstT": tf.int32}, X),
        ("AddV2", {"x": np.float64(X), "y": 0.5}, X + 0.5),
        ("StridedSlice", {"input": X, "begin": [0, 1], "end": [2, 3], "strides": [1, 1]}, X[:, 1:]),
        ("DynamicStitch", {"indices": [[1], [0]], "data": [X[:1], X[1:]]}, X[::-1]),
        ("Igamma", {"a": F(1), "x": F(0)}, 0),
        ("OneHot", {"indices": [1], "depth": 2, "on_value": 1, "off_value": 0}, [[0, 1]]),
        ("ExpandDims", {"input": X, "axis": 0}, X[None]),
        ("Conv2D", {**WINDOW, "input": IMAGE, "filter": F([[[[2]]]]), "use_cudnn_on_gpu": False}, 2 * IMAGE),
        ("MaxPoolV2", {"input": IMAGE, "ksize": [1, 2, 3, 1], **WINDOW}, [[[[5]]]]),
    ],
)
def test_operations_take_inputs_and_attributes_by_name(name: str, given: Any, expected: Any, run: Any) -> None:
    np.testing.assert_array_equal(run(getattr(tf.raw_ops, name)(**given)), expected)


def test_operations_with_several_outputs_give_lists_and_with_none_themselves(run: Any) -> None:
    values, places = tf.raw_ops.TopKV2(input=X, k=1)
    np.testing.assert_array_equal(run(values), [[2], [5]])
    assert places.dtype == tf.int32
    assert tf.raw_ops.NoOp(name="nothing").name == "nothing"


def test_variables_are_taken_by_their_handles(run: Any) -> None:
    variable = tf.Variable(F([1, 2]), name="v")
    run(variable.initializer)
    run(tf.raw_ops.AssignAddVariableOp(resource=variable, value=F([3, 4])))
    np.testing.assert_array_equal(run(tf.raw_ops.ReadVariableOp(resource=variable)), [4, 6])


def test_wrong_names_are_errors(graph: Any) -> None:
    with pytest.raises(AttributeError, match=r"raw_ops\.MatMull: no such operation is declared; did you mean 'MatMul'"):
        tf.raw_ops.MatMull  # noqa: B018
    with pytest.raises(GraphError, match=r"raw_ops\.MatMul needs the input b; inputs: a, b"):
        tf.raw_ops.MatMul(a=X)
    with pytest.raises(GraphError, match=r"raw_ops\.Abs has no input or attribute y"):
        tf.raw_ops.Abs(x=X, y=X)


def test_every_public_operation_has_a_function(graph: Any) -> None:
    assert set(dir(tf.raw_ops)) == {name for name in OP_SPECS if not name.startswith("_")}
    assert all("inputs: " in getattr(tf.raw_ops, name).__doc__ for name in dir(tf.raw_ops))


def test_products_are_computed_in_the_type_asked_for(run: Any) -> None:
    x = np.full((3, 16), 16, np.int8)
    product = tf.matmul(x, x, transpose_b=True, output_type=np.int32)
    np.testing.assert_array_equal(run(product), np.full((3, 3), 16**3, np.int32))


def test_sizes_that_do_not_depend_on_unknown_ones_are_known(graph: Any) -> None:
    x = tf.placeholder(F, (None, 2))
    padding = {"padding_low": [0, 1], "padding_high": [0, 2], "padding_interior": [0, 4]}
    assert tf.raw_ops.XlaPad(input=x, padding_value=F(7), **padding).shape.as_list() == [None, 9]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (((0,), (), (), ()), "same number of contracting dimensions for lhs and rhs. Got: 1 and 0"),
        (((1,), (1,), (), ()), "Contracting dimension sizes do not match. Got: 3 and 5"),
        (((), (), (0,), (0, 1)), "same number of batch dimensions for lhs and rhs. Got: 1 and 2"),
        (((), (), (0,), (1,)), "Batch dimension sizes do not match. Got: 2 and 5"),
    ],
)
def test_products_of_xla_refuse_dimensions_that_do_not_pair(graph: Any, numbers: Any, message: str) -> None:
    names = [f"{side}_{what}_dimensions" for what in ("contracting", "batch") for side in ("lhs", "rhs")]
    dims = ProtoMessage("DotDimensionNumbers")
    for name, each in zip(names, numbers, strict=True):
        dims.put_all(name, each)
    with pytest.raises(ShapeError, match=message):
        tf.raw_ops.XlaDot(
            lhs=np.zeros((2, 3)), rhs=np.zeros((4, 5)), dimension_numbers=encode(dims), precision_config=""
        )


def test_what_pads_is_one_number(graph: Any) -> None:
    padding = dict.fromkeys(("padding_low", "padding_high", "padding_interior"), (0, 0))
    with pytest.raises(ShapeError, match="must be scalar, found rank 1"):
        tf.raw_ops.XlaPad(input=np.zeros((2, 3), F), padding_value=np.zeros(2, F), **padding)
