"""`raw_ops`: operations by their types, with TensorFlow's names of inputs and attributes."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode
from xlalite.ops.functions.calling_operations import CALLING
from xlalite.ops.functions.composed_operations import COMPOSED

F = np.float32
X = np.arange(6, dtype=F).reshape(2, 3)
IMAGE = X[None, ..., None]
SPREAD = {"shape": [2], "stdevs": F(1), "seed": 1, "dtype": tf.float32}
WINDOW = {"strides": [1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("MatMul", {"a": X, "b": X, "transpose_b": True}, X @ X.T),
        ("Sum", {"input": X, "axis": [1]}, X.sum(1)),
        ("Sum", {"input": X, "axis": [1], "keep_dims": True}, X.sum(1, keepdims=True)),
        ("Sum", {"input": X, "axis": []}, X),
        ("Reshape", {"tensor": X[:1, :1], "shape": []}, 0),
        ("GatherV2", {"params": X, "indices": [], "axis": 0}, X[:0]),
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
        ("BatchMatMul", {"x": X[None], "y": X[None], "adj_y": True}, [X @ X.T]),
        ("BatchMatMulV3", {"x": np.int8(X), "y": np.int8(X), "Tout": tf.int32, "adj_x": True}, X.T @ X),
        ("Concat", {"concat_dim": 1, "values": [X, X, X]}, np.c_[X, X, X]),
        ("ConjugateTranspose", {"x": X * 1j, "perm": [1, 0]}, X.T * -1j),
        ("Cross", {"a": X[:1], "b": X[1:]}, np.cross(X[:1], X[1:])),
        ("DeviceIndex", {"device_names": ["TPU", "CPU", "GPU"]}, 1),
        ("Empty", {"shape": [2, 1], "dtype": tf.int64, "init": True}, [[0], [0]]),
        ("FakeParam", {"dtype": tf.float32, "shape": [2, None]}, np.zeros((2, 0))),
        ("Gather", {"params": X, "indices": [[1], [0]]}, X[[[1], [0]]]),
        ("ParameterizedTruncatedNormal", {**dict.fromkeys(("means", "minvals", "maxvals"), F(3)), **SPREAD}, [3, 3]),
        ("Reverse", {"tensor": X, "dims": [False, True]}, X[:, ::-1]),
        ("Reverse", {"tensor": X, "dims": [False, False]}, X),
        ("RiscAdd", {"x": X, "y": X}, 2 * X),
        ("RiscDot", {"a": X, "b": X, "transpose_a": True}, X.T @ X),
        ("SparseMatMul", {"a": X, "b": X, "transpose_b": True, "a_is_sparse": True}, X @ X.T),
        ("TensorListSplit", {"tensor": X.T, "element_shape": -1, "lengths": [1, 1, 1]}, X.T[:, None]),
        ("XlaEinsum", {"a": X, "b": X, "equation": "ab,cb->ac"}, X @ X.T),
        ("Real", {"input": X * 1j, "Tout": tf.float32}, 0 * X),
        ("Select", {"condition": X > 2, "x": X, "y": -X}, np.where(X > 2, X, -X)),
        ("Equal", {"x": X, "y": X, "incompatible_shape_error": True}, X == X),
        ("MatMul", {"a": X, "b": X, "transpose_b": True, "grad_a": False, "grad_b": False}, X @ X.T),
        ("XlaReplicaId", {}, 0),
        ("XlaSetBound", {"input": 3, "bound": 5}, 3),
        ("XlaSharding", {"input": X, "sharding": b""}, X),
    ],
)
def test_operations_take_inputs_and_attributes_by_name(name: str, given: Any, expected: Any, run: Any) -> None:
    np.testing.assert_array_equal(run(getattr(tf.raw_ops, name)(**given)), expected)


def test_operations_with_several_outputs_give_lists_and_with_none_themselves(run: Any) -> None:
    values, places = tf.raw_ops.TopKV2(input=X, k=1)
    np.testing.assert_array_equal(run(values), [[2], [5]])
    assert places.dtype == tf.int32
    assert tf.raw_ops.NoOp(name="nothing").name == "nothing"


def test_choices_lists_and_decompositions_that_are_made_of_others(run: Any) -> None:
    scores = F([[-99, 9, -99], [9, -99, -99]])
    for drawn in (
        tf.raw_ops.Multinomial(logits=scores, num_samples=4, seed=1, seed2=2, output_dtype=tf.int32),
        tf.raw_ops.StatelessMultinomial(logits=scores, num_samples=4, seed=[1, 2], output_dtype=tf.int32),
    ):
        np.testing.assert_array_equal(run(drawn), [[1] * 4, [0] * 4])
    rows, lengths = tf.raw_ops.TensorListConcatV2(
        input_handle=tf.constant(X[:, :, None]), element_shape=-1, leading_dims=np.zeros(0, np.int64)
    )
    np.testing.assert_array_equal(run(rows), X.reshape(6, 1))
    np.testing.assert_array_equal(run(lengths), [3, 3])
    s, u, v = tf.raw_ops.XlaSvd(a=X, max_iter=10, epsilon=1e-6)
    np.testing.assert_allclose(run(tf.matmul(u * s, v, transpose_b=True)), X, atol=1e-4)
    upper = F([[2, 1], [0, 3]])
    for lower, wanted in ((True, [2, 3]), (False, np.linalg.eigvalsh(upper, "U"))):
        w, _ = tf.raw_ops.XlaSelfAdjointEig(a=upper, lower=lower, max_iter=10, epsilon=1e-6)
        np.testing.assert_allclose(run(w), wanted, rtol=1e-5)


def test_variables_are_taken_by_their_handles(run: Any) -> None:
    variable = tf.Variable(F([1, 2]), name="v")
    run(variable.initializer)
    run(tf.raw_ops.AssignAddVariableOp(resource=variable, value=F([3, 4])))
    np.testing.assert_array_equal(run(tf.raw_ops.ReadVariableOp(resource=variable)), [4, 6])
    run(tf.raw_ops.ResourceApplyGradientDescent(var=variable, alpha=F(2), delta=F([1, 1])))
    np.testing.assert_array_equal(run(tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)), [2, 4])


def test_types_that_follow_from_others_must_agree(graph: Any) -> None:
    variable = tf.Variable(F([1, 2]))
    with pytest.raises(ElementTypeError, match=r"raw_ops\.ReadVariableOp gives float32; dtype says int32"):
        tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.int32)
    with pytest.raises(GraphError, match=r"raw_ops\.Equal has no input or attribute incompatible_shape_error"):
        tf.raw_ops.Equal(x=X, y=X, incompatible_shape_error=False)


def test_wrong_names_are_errors(graph: Any) -> None:
    with pytest.raises(AttributeError, match=r"raw_ops\.MatMull: no such operation is declared; did you mean 'MatMul'"):
        tf.raw_ops.MatMull  # noqa: B018
    with pytest.raises(GraphError, match=r"raw_ops\.MatMul needs the input b; inputs: a, b"):
        tf.raw_ops.MatMul(a=X)
    with pytest.raises(TypeError, match=r"raw_ops\.Cross needs the input b"):
        tf.raw_ops.Cross(a=X)
    with pytest.raises(GraphError, match=r"raw_ops\.Abs has no input or attribute y"):
        tf.raw_ops.Abs(x=X, y=X)


def test_every_public_operation_has_a_function(graph: Any) -> None:
    made = COMPOSED.keys() | CALLING.keys()
    assert set(dir(tf.raw_ops)) == {*made, *(name for name in OP_SPECS if not name.startswith("_"))}
    assert not made & OP_SPECS.keys()
    assert not COMPOSED.keys() & CALLING.keys()
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


def test_operations_call_functions_of_python(graph: Any) -> None:
    def double(x: Any) -> Any:
        return x * 2.0

    def halve(x: Any) -> list[Any]:
        return [x / 2.0]

    raw, at = tf.raw_ops, tf.placeholder(tf.int32, [])
    branches = {"then_branch": double, "else_branch": halve, "Tout": [tf.float32]}
    results = [
        *(call(args=[X], f=double, Tout=[tf.float32]) for call in (raw.PartitionedCall, raw.StatefulPartitionedCall)),
        *(case(branch_index=at, input=[X], branches=[double, halve]) for case in (raw.Case, raw.StatelessCase)),
        raw.StatelessIf(cond=tf.equal(at, 0), input=[X], **branches),
        raw.XlaIf(cond=tf.equal(at, 0), inputs=[X], **branches),
        *(
            loop(input=[0, X], cond=lambda i, x: i < 2 * at, body=lambda i, x: [i + 1, double(x)])[1:]
            for loop in (raw.StatelessWhile, raw.XlaWhile)
        ),
    ]
    with tf.Session() as session:
        first, second = (session.run(results, {at: number}) for number in (0, 1))
    for found, factor in zip(first, [2, 2, 2, 2, 2, 2, 1, 1], strict=True):
        np.testing.assert_array_equal(found, [X * factor])
    for found, factor in zip(second, [2, 2, 0.5, 0.5, 0.5, 0.5, 4, 4], strict=True):
        np.testing.assert_array_equal(found, [X * factor])


@pytest.mark.parametrize("wrong", ["padding_low", "padding_high", "padding_interior"])
def test_each_dimension_is_padded(graph: Any, wrong: str) -> None:
    padding = {**dict.fromkeys(("padding_low", "padding_high", "padding_interior"), (0, 0)), wrong: (1, 2, 3)}
    with pytest.raises(ShapeError, match=f"{wrong} must be a 1D tensor of size 2"):
        tf.raw_ops.XlaPad(input=np.zeros((2, 3), F), padding_value=F(0), **padding)
