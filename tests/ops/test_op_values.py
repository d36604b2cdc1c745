"""Every operation gives what NumPy gives, run alone and compiled, for each of the cases below."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from ops.cases import VALUES
from ops.cases.case import ValueCase, value as case, value_of as one

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.surroundings.custom_calls import register_custom_call
from xlalite.ops.functions import array as a, math as m, nn
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation

F = np.float32
X = np.array([[-2.5, -1.0, -0.0], [0.5, 1.5, 3.0]], F)
POSITIVE = np.array([[0.5, 1.0, 2.0], [3.0, 0.25, 7.0]], F)
SMALL = np.array([[-0.9, -0.1, 0.0], [0.3, 0.5, 0.9]], F)
INTS = np.array([[-7, -3, 0], [2, 5, 9]], np.int32)
BOOLS = np.array([[True, False, True], [False, False, True]])
C = np.array([1 + 2j, -3 + 0.5j], np.complex64)
TWICE = "tests_twice"
register_custom_call(TWICE, lambda x: x * 2)


def softmax(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.special.softmax(x, axis=-1))


def cross_entropy(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return -np.asarray((labels * np.log(softmax(x))).sum(-1))


UNARY = {
    "Neg": (np.negative, X), "Abs": (np.abs, X), "Sign": (np.sign, X), "Exp": (np.exp, X), "Expm1": (np.expm1, X),
    "Log": (np.log, POSITIVE), "Log1p": (np.log1p, POSITIVE), "Sqrt": (np.sqrt, POSITIVE),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "Square": (np.square, X), "Reciprocal": (np.reciprocal, POSITIVE),
    "Inv": (np.reciprocal, POSITIVE), "Tanh": (np.tanh, X), "Sigmoid": (scipy.special.expit, X), "Sin": (np.sin, X),
    "Cos": (np.cos, X), "Tan": (np.tan, SMALL), "Sinh": (np.sinh, X), "Cosh": (np.cosh, X), "Asin": (np.arcsin, SMALL),
    "Acos": (np.arccos, SMALL), "Atan": (np.arctan, X), "Erf": (scipy.special.erf, X), "Floor": (np.floor, X),
    "Ceil": (np.ceil, X), "Rint": (np.rint, X), "Round": (np.rint, X), "LogicalNot": (np.logical_not, BOOLS),
    "Invert": (np.invert, INTS), "Conj": (np.conj, C), "ComplexAbs": (np.abs, C),
    "Real": (np.real, C), "Imag": (np.imag, C), "IsNan": (np.isnan, X), "IsInf": (np.isinf, X / F(0.5)),
    "IsFinite": (np.isfinite, X), "ZerosLike": (np.zeros_like, X), "OnesLike": (np.ones_like, INTS),
    "Relu": (lambda x: np.maximum(x, 0), X), "Relu6": (lambda x: np.clip(x, 0, 6), X * 3),
    "Elu": (lambda x: np.where(x > 0, x, np.expm1(x)), X), "Softplus": (lambda x: np.logaddexp(0, x), X),
    "Selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), X),
    "Softsign": (lambda x: x / (1 + np.abs(x)), X), "Softmax": (softmax, X),
    "LogSoftmax": (lambda x: np.log(softmax(x)), X),
    "L2Loss": (lambda x: (x * x).sum() / 2, X), "Identity": (lambda x: x, X), "StopGradient": (lambda x: x, X),
}  # fmt: skip

BINARY = {
    "Add": (np.add, X), "AddV2": (np.add, X), "Sub": (np.subtract, X), "Mul": (np.multiply, X),
    "RealDiv": (np.divide, X), "Div": (np.divide, X), "Maximum": (np.maximum, X), "Minimum": (np.minimum, X),
    "SquaredDifference": (lambda x, y: (x - y) ** 2, X), "Atan2": (np.arctan2, X), "FloorMod": (np.mod, INTS),
    "FloorDiv": (np.floor_divide, INTS), "Mod": (np.fmod, INTS), "TruncateMod": (np.fmod, INTS),
    "TruncateDiv": (lambda x, y: np.trunc(x / y).astype(np.int32), INTS), "Equal": (np.equal, INTS),
    "NotEqual": (np.not_equal, INTS), "Less": (np.less, X), "LessEqual": (np.less_equal, X),
    "Greater": (np.greater, X), "GreaterEqual": (np.greater_equal, X), "BitwiseAnd": (np.bitwise_and, INTS),
    "BitwiseOr": (np.bitwise_or, INTS), "BitwiseXor": (np.bitwise_xor, INTS),
    "LeftShift": (np.left_shift, INTS), "RightShift": (np.right_shift, INTS),
}  # fmt: skip
SECOND = {np.dtype(F): np.array([2.0, -0.5, 1.5], F), np.dtype(np.int32): np.array([2, 3, 4], np.int32)}

MASKS = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
LABELS = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]], F)

CASES = [
    *(one(name, x, expected=reference) for name, (reference, x) in UNARY.items()),
    *(one(name, x, SECOND[x.dtype], expected=reference) for name, (reference, x) in BINARY.items()),
    one("Pow", POSITIVE, SECOND[np.dtype(F)], expected=np.power, tolerance=1e-5),
    one("LogicalAnd", BOOLS, ~BOOLS[:1], expected=np.logical_and),
    one("LogicalOr", BOOLS, ~BOOLS[:1], expected=np.logical_or),
    one("DivNoNan", X, np.array([0, 2, 0], F), expected=lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y))),
    one("Xlogy", np.array([0, 2], F), np.array([0, 3], F), expected=scipy.special.xlogy),
    one("LeakyRelu", X, attrs={"alpha": 0.1}, expected=lambda x: np.where(x > 0, x, F(0.1) * x)),
    one("TanhGrad", SMALL, X, expected=lambda y, dy: dy * (1 - y * y)),
    one("SigmoidGrad", SMALL, X, expected=lambda y, dy: dy * y * (1 - y)),
    one("ReluGrad", X, SMALL, expected=lambda g, x: np.where(x > 0, g, 0)),
    one("Cast", X, attrs={"dtype": dtypes.int32}, expected=lambda x: x.astype(np.int32)),
    case("Cast to bool", lambda x: m.cast(x, "bool"), X, expected=lambda x: x != 0),
    case("Cast from complex", lambda x: m.cast(x, "float32"), C, expected=lambda x: x.real),
    one("Bitcast", X, attrs={"dtype": dtypes.int32}, expected=lambda x: x.view(np.int32)),
    case("Bitcast narrower", lambda x: m.bitcast(x, "uint8"), X, expected=lambda x: x.view(np.uint8).reshape(2, 3, 4)),
    one("Select", np.array([True, False]), X, -X, expected=lambda c, x, y: np.where(c[:, None], x, y)),
    one("SelectV2", BOOLS[0], X, F(7), expected=np.where),
    case("Sum", lambda x: m.reduce_sum(x, 0), X, expected=lambda x: x.sum(0)),
    case("Sum of nothing", lambda x: m.reduce_sum(x), np.zeros((0, 3), F), expected=lambda x: F(0)),
    case("Mean", lambda x: m.reduce_mean(x, [-1], keepdims=True), X, expected=lambda x: x.mean(1, keepdims=True)),
    case("Prod", lambda x: m.reduce_prod(x, 1), X, expected=lambda x: x.prod(1)),
    case("Max", lambda x: m.reduce_max(x, [0, 1]), X, expected=np.max),
    case("Min", lambda x: m.reduce_min(x, 0), INTS, expected=lambda x: x.min(0)),
    case("All", lambda x: m.reduce_all(x, 1), BOOLS, expected=lambda x: x.all(1)),
    case("Any", lambda x: m.reduce_any(x, 1), BOOLS, expected=lambda x: x.any(1)),
    case("logsumexp", lambda x: m.reduce_logsumexp(x, 1), X, expected=lambda x: scipy.special.logsumexp(x, axis=1)),
    case("ArgMax", lambda x: m.argmax(x, 1), INTS[:, ::-1].copy(), expected=lambda x: x.argmax(1)),
    case("ArgMin", lambda x: m.argmin(x, 0, output_type=np.int32), X, expected=lambda x: x.argmin(0).astype(np.int32)),
    case("ArgMax ties", lambda x: m.argmax(x, 0), np.array([1, 3, 3, 2], F), expected=lambda x: x.argmax()),
    case("ArgMax NaN", lambda x: m.argmax(x, 0), np.array([1, np.nan, 3, np.nan], F), expected=lambda x: x.argmax()),
    case(
        "MatMul",
        lambda x, y: m.matmul(x, y, True, True),
        X,
        np.arange(8, dtype=F).reshape(4, 2),
        expected=lambda x, y: x.T @ y.T,
    ),
    case("BatchMatMulV2", lambda x, y: m.matmul(x, y), np.stack([X, 2 * X]), POSITIVE.T.copy(), expected=np.matmul),
    case("Shape", lambda x: node("Shape", [x], {"out_type": dtypes.int32}), X, expected=lambda x: np.int32(x.shape)),
    case("ShapeN", lambda x, y: a.shape_n([x, y])[1], X, INTS[:1], expected=lambda x, y: np.int32(y.shape)),
    case("Rank", lambda x: node("Rank", [x], {"out_type": dtypes.int32}), X, expected=lambda x: np.int32(2)),
    case("Size", lambda x: node("Size", [x], {"out_type": dtypes.int32}), X, expected=lambda x: np.int32(6)),
    case(
        "BroadcastGradientArgs",
        lambda x, y: operation("BroadcastGradientArgs", [a.shape(x), a.shape(y)]).outputs[1],
        X,
        X[0],
        expected=lambda x, y: np.int32([0]),
    ),
    case(
        "BroadcastArgs",
        lambda x, y: m.broadcast_dynamic_shape(a.shape(x), a.shape(y)),
        X,
        X[:, :1],
        expected=lambda x, y: np.int32([2, 3]),
    ),
    case("VarHandleOp", lambda x: x, X, expected=lambda x: x),
    case("Reshape", lambda x: a.reshape(x, [3, -1]), X, expected=lambda x: x.reshape(3, 2)),
    case("ExpandDims", lambda x: a.expand_dims(x, -2), X, expected=lambda x: x[:, None]),
    case("Squeeze", lambda x: a.squeeze(x, [1]), X[:, None], expected=lambda x: x[:, 0]),
    case("Transpose", lambda x: a.transpose(x), X, expected=np.transpose),
    case(
        "InvertPermutation",
        lambda x: a.transpose(x, a.invert_permutation([2, 0, 1])),
        np.zeros((2, 3, 4), F),
        expected=lambda x: x.transpose(1, 2, 0),
    ),
    case(
        "_KeptShape",
        lambda x: node("_KeptShape", [a.shape(x), a.constant([1])]),
        X,
        expected=lambda x: np.int32([2, 1]),
    ),
    case("Fill", lambda x: a.fill([2, 3], x), F(4), expected=lambda x: np.full((2, 3), x)),
    case(
        "BroadcastTo",
        lambda x: a.broadcast_to(x, [4, 2, 3]),
        X[:, :1],
        expected=lambda x: np.broadcast_to(x, (4, 2, 3)),
    ),
    case("Tile", lambda x: a.tile(x, [2, 3]), X, expected=lambda x: np.tile(x, (2, 3))),
    case("Range", lambda x: m.range(3, 18, 4) + x, np.int32(0), expected=lambda x: np.arange(3, 18, 4, np.int32)),
    case("Range down", lambda x: m.range(1.0, 0.0, -0.3) + x, F(0), expected=lambda x: F([1.0, 0.7, 0.4, 0.1])),
    case("LinSpace", lambda x: m.linspace(x, 2.0, 5), F(1), expected=lambda x: np.linspace(1, 2, 5, dtype=F)),
    case(
        "ConcatV2", lambda x, y: a.concat([x, y], 1), X, INTS.astype(F), expected=lambda x, y: np.concatenate([x, y], 1)
    ),
    case("Pack", lambda x, y: a.stack([x, y], -1), X, -X, expected=lambda x, y: np.stack([x, y], -1)),
    case("Unpack", lambda x: a.unstack(x, 3, axis=1)[2], X, expected=lambda x: x[:, 2]),
    case("Split", lambda x: a.split(x, 3, 1)[1], X, expected=lambda x: x[:, 1:2]),
    case("SplitV", lambda x: a.split(x, [1, -1], 1)[1], X, expected=lambda x: x[:, 1:]),
    case("Slice", lambda x: a.slice(x, [0, 1], [-1, 2]), X, expected=lambda x: x[:, 1:]),
    case("Slice at run time", lambda x, i: a.slice(x, i, [1, 2]), X, np.int32([1, 1]), expected=lambda x, i: x[1:, 1:]),
    case("Pad", lambda x: a.pad(x, [[1, 0], [0, 2]]), X, expected=lambda x: np.pad(x, [[1, 0], [0, 2]])),
    case(
        "PadV2",
        lambda x: a.pad(x, [[1, 0], [0, 2]], constant_values=9),
        X,
        expected=lambda x: np.pad(x, [[1, 0], [0, 2]], constant_values=9),
    ),
    case("ReverseV2", lambda x: a.reverse(x, [-1]), X, expected=lambda x: x[:, ::-1]),
    case("StridedSlice", lambda x: x[1, ::-2], X, expected=lambda x: x[1, ::-2]),
    case("StridedSlice ellipsis", lambda x: x[..., None, -2:], X, expected=lambda x: x[..., None, -2:]),
    case("StridedSlice empty", lambda x: x[2:1], X, expected=lambda x: x[2:1]),
    case(
        "StridedSliceGrad",
        lambda g: node(
            "StridedSliceGrad", [a.constant([5]), a.constant([4]), a.constant([0]), a.constant([-2]), g], MASKS
        ),
        F([1, 2]),
        expected=lambda g: F([0, 0, 2, 0, 1]),
    ),
    case("GatherV2", lambda x, i: a.gather(x, i, axis=1), X, np.int32([[2, 0], [1, 1]]), expected=lambda x, i: x[:, i]),
    case(
        "UnsortedSegmentSum",
        lambda x, i: m.unsorted_segment_sum(x, i, 3),
        X,
        np.int32([2, -1]),
        expected=lambda x, i: np.stack([0 * x[0], 0 * x[0], x[0]]),
    ),
    case(
        "OneHot",
        lambda i: a.one_hot(i, 3, axis=0),
        np.int32([2, 0, 5]),
        expected=lambda i: (np.arange(3)[:, None] == i).astype(F),
    ),
    case(
        "Cumsum",
        lambda x: m.cumsum(x, 1, exclusive=True, reverse=True),
        X,
        expected=lambda x: np.stack([x[:, 1] + x[:, 2], x[:, 2], 0 * x[:, 0]], 1),
    ),
    case("Cumprod", lambda x: m.cumprod(x), np.arange(1, 8), expected=np.cumprod),
    case("IdentityN", lambda x, y: a.identity_n([x, y])[1], X, INTS, expected=lambda x, y: y),
    case(
        "XlaOptimizationBarrier",
        lambda x, y: operation("XlaOptimizationBarrier", [x, y]).outputs[1],
        X,
        INTS,
        expected=lambda x, y: y,
    ),
    case(
        "_PureCallback",
        lambda x: operation("_PureCallback", [x], {"target": TWICE, "kinds": ((dtypes.float32, (2, 3)),)}).outputs[0],
        X,
        expected=lambda x: x * 2,
    ),
    case("PreventGradient", lambda x: a.prevent_gradient(x), X, expected=lambda x: x),
    case("PlaceholderWithDefault", lambda x: a.placeholder_with_default(x, [None, 3]), X, expected=lambda x: x),
    case("BiasAdd", lambda x, b: nn.bias_add(x, b), X, X[0], expected=np.add),
    case(
        "BiasAdd channels first",
        lambda x, b: nn.bias_add(x, b, "NCHW"),
        X[None, :, None],
        X[:, 1],
        expected=lambda x, b: x + b[None, :, None, None],
    ),
    one("BiasAddGrad", X, attrs={"data_format": "NHWC"}, expected=lambda g: g.sum(0)),
    case("AddN", lambda x, y: m.add_n([x, y, x]), X, -X * 2, expected=lambda x, y: x + y + x),
    case(
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: nn.softmax_cross_entropy_with_logits(labels=y, logits=x),
        X,
        LABELS,
        expected=cross_entropy,
    ),
    case(
        "cross entropy of rank 3",
        lambda x, y: nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
        np.stack([X, X]),
        np.stack([LABELS, LABELS]),
        expected=cross_entropy,
    ),
    case(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        X,
        np.int64([2, 1]),
        expected=lambda x, y: cross_entropy(x, np.eye(3)[y]),
    ),
    case(
        "sigmoid cross entropy",
        lambda x, z: nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        X,
        LABELS,
        expected=lambda x, z: -(z * np.log(scipy.special.expit(x)) + (1 - z) * np.log(scipy.special.expit(-x))),
    ),
    case("softmax along 0", lambda x: nn.softmax(x, 0), X, expected=lambda x: scipy.special.softmax(x, axis=0)),
    case("moments", lambda x: nn.moments(x, [0])[1], X, expected=lambda x: x.var(0)),
    case(
        "l2_normalize",
        lambda x: nn.l2_normalize(x, 1),
        X,
        expected=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    ),
    case(
        "StochasticCastToInt",
        lambda x, *state: node("StochasticCastToInt", [x, *state, constant(1)], {"Tout": dtypes.int8}),
        np.array([[-3, 0, 7], [np.nan, 1e9, -np.inf]], F),
        np.uint64([5]),
        np.uint64([1, 2]),
        expected=lambda x, *_: np.int8([[-3, 0, 7], [0, 127, -128]]),
    ),
    case("clip_by_value", lambda x: m.clip_by_value(x, -1.0, 1.0), X, expected=lambda x: np.clip(x, -1, 1)),
    *VALUES,
]


@pytest.mark.parametrize("given", CASES, ids=lambda given: given.name)
@pytest.mark.parametrize("static", [True, False], ids=["known shapes", "unknown shapes"])
def test_values_agree_with_numpy_alone_and_compiled(given: ValueCase, static: bool, run: Any) -> None:
    arrays = [np.asarray(value) for value in given.inputs]
    shapes = [value.shape if static else [None] * value.ndim for value in arrays]
    inputs = [a.placeholder(value.dtype, shape) for value, shape in zip(arrays, shapes, strict=True)]
    result: Tensor = given.build(*inputs)
    feeds = dict(zip(inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        expected = np.asarray(given.expected(*arrays))
    alone = run(result, feeds)
    (compiled,) = run.compiled([result], feeds)
    for found in (alone, compiled):
        assert found.dtype == result.dtype.numpy_dtype
        assert result.shape.is_compatible_with(found.shape)
        np.testing.assert_allclose(found, expected, rtol=given.tolerance, atol=given.tolerance)
    np.testing.assert_array_equal(alone, compiled)


def test_every_compilable_operation_without_variables_has_a_case() -> None:
    covered = {case.name.split(" ")[0] for case in CASES}
    stateless = {name for name, spec in OP_SPECS.items() if spec.is_compilable and not spec.is_stateful}
    tested_elsewhere = {
        "Const",
        "While",
        "If",
        "ReadVariableOp",
        "VarIsInitializedOp",
        "VariableShape",
        "ResourceGather",
    }
    assert stateless - covered - tested_elsewhere == set()


FLOATING = {name: (reference, x) for name, (reference, x) in {**UNARY, **BINARY}.items() if x.dtype == F}


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floating_point_types_agree_to_their_precision(name: str, dtype: str, run: Any) -> None:
    reference, x = FLOATING[name]
    wanted = dtypes.as_dtype(dtype).numpy_dtype
    arrays = [x.astype(wanted)] + ([SECOND[x.dtype].astype(wanted)] if name in BINARY else [])
    inputs = [a.placeholder(dtype, value.shape) for value in arrays]
    result = node(name, inputs)
    feeds = dict(zip(inputs, arrays, strict=True))
    (compiled,) = run.compiled([result], feeds)
    np.testing.assert_array_equal(run(result, feeds), compiled)
    assert compiled.dtype == (bool if result.dtype.is_bool else wanted)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*(value.astype(np.float64) for value in arrays)), np.float64)
    precision = float(ml_dtypes.finfo(wanted).eps)
    np.testing.assert_allclose(compiled.astype(np.float64), expected, rtol=4 * precision, atol=4 * precision)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_empty_arrays_give_empty_arrays(name: str, run: Any) -> None:
    _, x = {**UNARY, **BINARY}[name]
    arrays = [x[:0]] + ([SECOND[x.dtype]] if name in BINARY else [])
    inputs = [a.placeholder(value.dtype, [None] * value.ndim) for value in arrays]
    result = node(name, inputs)
    feeds = dict(zip(inputs, arrays, strict=True))
    assert (
        run(result, feeds).shape == run.compiled([result], feeds)[0].shape == (() if name == "L2Loss" else x[:0].shape)
    )


@pytest.mark.parametrize("build", [m.reduce_sum, m.reduce_max, m.reduce_mean, m.reduce_prod, m.reduce_min])
def test_reductions_over_nothing_and_of_nan(build: Any, run: Any) -> None:
    x = a.placeholder(np.float32, [None, 2])
    empty = run(build(x, 0), {x: np.zeros((0, 2), F)})
    identity = {"sum": 0.0, "max": -np.inf, "mean": np.nan, "prod": 1.0, "min": np.inf}[build.__name__.split("_")[1]]
    np.testing.assert_array_equal(empty, [identity, identity])
    assert np.isnan(run(build(x), {x: F([[1, np.nan]])}))


def test_integers_wrap_and_division_by_zero_follows_xla(run: Any) -> None:
    x = a.placeholder(np.int32, [None])
    feeds = {x: np.int32([2**31 - 1, -7])}
    zero = constant(np.int32(0))
    np.testing.assert_array_equal(run(x + 1, feeds), np.int32([-(2**31), -6]))
    np.testing.assert_array_equal(run(node("TruncateDiv", [x, zero]), feeds), [-1, -1])
    np.testing.assert_array_equal(run(node("TruncateMod", [x, zero]), feeds), [2**31 - 1, -7])


def test_half_precision_sums_are_accumulated_in_single_precision(run: Any) -> None:
    x = constant(np.ones(4096, np.float16))
    assert run(m.reduce_sum(x)) == 4096
    assert run(m.reduce_mean(constant(np.full(4096, 30, np.float16)))) == 30
