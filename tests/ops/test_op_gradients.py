"""Gradients agree with central differences, for every differentiable operation and input below, in f64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.cases import GRADIENTS
from ops.cases.case import GradientCase, gradient as case, gradient_of as one

from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array as a, clipping, math as m, nn
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import node

X = np.array([[-2.5, -1.0, -0.3], [0.5, 1.5, 3.0]])
Y = np.array([[0.7, -0.4, 1.2], [1.1, 0.9, -0.8]])
POSITIVE = np.array([[0.5, 1.0, 2.0], [3.0, 0.25, 1.7]])
SMALL = X / 4
LABELS = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])


def xent(x: Tensor, y: Tensor) -> Tensor:
    return nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)


def sparse(x: Tensor) -> Tensor:
    return nn.sparse_softmax_cross_entropy_with_logits(labels=np.int32([2, 0]), logits=x)


MASKS = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

CASES = [
    *(
        one(name, X)
        for name in (
            "Neg",
            "Abs",
            "Exp",
            "Expm1",
            "Square",
            "Tanh",
            "Sigmoid",
            "Sin",
            "Cos",
            "Sinh",
            "Cosh",
            "Atan",
            "Erf",
            "Relu",
            "Relu6",
            "Elu",
            "Selu",
            "Softplus",
            "Softsign",
            "Softmax",
            "LogSoftmax",
            "L2Loss",
            "Identity",
            "Reciprocal",
            "Inv",
        )
    ),
    *(one(name, POSITIVE) for name in ("Log", "Log1p", "Sqrt", "Rsqrt")),
    *(one(name, SMALL) for name in ("Tan", "Asin", "Acos")),
    *(
        one(name, X, Y)
        for name in (
            "Add",
            "AddV2",
            "Sub",
            "Mul",
            "RealDiv",
            "Div",
            "Maximum",
            "Minimum",
            "SquaredDifference",
            "DivNoNan",
            "Atan2",
            "TanhGrad",
            "SigmoidGrad",
            "FloorMod",
            "Mod",
            "TruncateMod",
        )
    ),
    *(
        case(f"{name} with broadcasting", lambda x, y, name=name: node(name, [x, y]), X, Y[:, :1])
        for name in (
            "AddV2",
            "Sub",
            "Mul",
            "RealDiv",
            "Maximum",
            "Minimum",
        )
    ),
    case("broadcasting both ways", lambda x, y: x * y, X[:, None, :], Y[:, :1]),
    case("Mul with itself", lambda x: x * x * x, X),
    one("Pow", POSITIVE, Y),
    one("Xlogy", X, POSITIVE),
    one("LeakyRelu", X, attrs={"alpha": 0.1}),
    case("ReluGrad", lambda g: node("ReluGrad", [g, constant(X)]), Y),
    case("Cast", lambda x: m.cast(m.cast(x, "float32") * 1, "float64"), np.array([1.0, 2.0])),
    case("Select", lambda x, y: a.where([True, False], x, y), X, Y),
    case("SelectV2", lambda x, y: a.where_v2([True, False, True], x, y), X, Y[:, :1]),
    case("Sum", lambda x: m.reduce_sum(x, 0) * [1.0, 2.0, 3.0], X),
    case("Sum keeping", lambda x: m.reduce_sum(x, [1], True) * x, X),
    case("Mean", lambda x: m.reduce_mean(x, 1), X),
    case("Prod", lambda x: m.reduce_prod(x, 1), X),
    case("Prod with zeros", lambda x: m.reduce_prod(x, 1), np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0]])),
    case("Max", lambda x: m.reduce_max(x, 1), X),
    case("Min", lambda x: m.reduce_min(x), X),
    case("logsumexp", lambda x: m.reduce_logsumexp(x, 0), X),
    *(
        case(f"MatMul {p}{q}", lambda x, y, p=p, q=q: m.matmul(x, y, p, q), X.T if p else X, (Y if q else Y.T).copy())
        for p in (False, True)
        for q in (False, True)
    ),
    case("BatchMatMulV2", m.matmul, np.stack([X, -X]), np.stack([Y.T, 2 * Y.T])),
    case(
        "BatchMatMulV2 with broadcasting",
        lambda x, y: m.matmul(x, y, True, True),
        np.stack([X, -X]),
        np.ones((4, 2)) + Y[:1, :2],
    ),
    case("Reshape", lambda x: a.reshape(x, [3, 2]) * np.arange(6.0).reshape(3, 2), X),
    case("ExpandDims", lambda x: a.expand_dims(x, 1) * Y, X),
    case("Squeeze", lambda x: a.squeeze(x) * Y, X[:, None]),
    case("Transpose", lambda x: a.transpose(x, [2, 0, 1]) * np.arange(24.0).reshape(4, 2, 3), np.ones((2, 3, 4))),
    case("Fill", lambda x: a.fill([2, 3], x) * Y, np.array(2.0)),
    case("BroadcastTo", lambda x: a.broadcast_to(x, [4, 2, 3]) * np.arange(24.0).reshape(4, 2, 3), X[:, :1]),
    case("Tile", lambda x: a.tile(x, [2, 2]) * np.arange(24.0).reshape(4, 6), X),
    case("ConcatV2", lambda x, y: a.concat([x, y], 1) * np.arange(10.0).reshape(2, 5), X, Y[:, :2]),
    case("Pack", lambda x, y: a.stack([x, y, x], 1) * np.arange(18.0).reshape(2, 3, 3), X, Y),
    case("Unpack", lambda x: a.unstack(x, 3, 1)[1] * [1.0, 2.0], X),
    case("Split", lambda x: a.split(x, 3, 1)[2], X),
    case("SplitV", lambda x: a.split(x, [1, 2], 1)[1] * Y[:, :2], X),
    case("Slice", lambda x: a.slice(x, [0, 1], [-1, 1]) * [[1.0], [2.0]], X),
    case("Pad", lambda x: a.pad(x, [[1, 2], [0, 1]]) * np.arange(20.0).reshape(5, 4), X),
    case("PadV2", lambda x: a.pad(x, [[1, 0], [0, 0]], constant_values=5) * np.arange(9.0).reshape(3, 3), X),
    case("ReverseV2", lambda x: a.reverse(x, [1]) * Y, X),
    case("StridedSlice", lambda x: x[1, ::-2] * [3.0, 4.0], X),
    case("StridedSliceGrad", lambda x: gradients(node("Square", [x[:, 1:]]), x)[0], X),
    case("GatherV2", lambda x: a.gather(x, np.int32([2, 0, 2]), axis=1) * np.arange(6.0).reshape(2, 3), X),
    case(
        "GatherV2 of a matrix of indices",
        lambda x: a.gather(x, np.int32([[1, 0], [1, 1]])) * np.arange(12.0).reshape(2, 2, 3),
        X,
    ),
    case("UnsortedSegmentSum", lambda x: m.unsorted_segment_sum(x, np.int32([1, -1]), 2) * Y, X),
    case("Cumsum", lambda x: m.cumsum(x, 1, reverse=True) * Y, X),
    case("Cumsum exclusive", lambda x: m.cumsum(x, 0, exclusive=True) * Y, X),
    case("Cumprod", lambda x: m.cumprod(x, 1) * Y, X),
    case("IdentityN", lambda x, y: a.identity_n([x, y])[0] * 2, X, Y),
    case("XlaOptimizationBarrier", lambda x: node("XlaOptimizationBarrier", [x]) * Y, X),
    case("PlaceholderWithDefault", lambda x: a.placeholder_with_default(x, [2, 3]) * Y, X),
    case("BiasAdd", lambda x, b: nn.bias_add(x, b) * Y, X, X[0]),
    case("BiasAddGrad", lambda x: node("BiasAddGrad", [x], {"data_format": "NHWC"}) * [1.0, 2.0, 3.0], X),
    case("AddN", lambda x, y: m.add_n([x, y, x]) * Y, X, Y),
    case("SoftmaxCrossEntropyWithLogits", xent, X, LABELS),
    case("cross entropy of rank 3", xent, np.stack([X, Y]), np.stack([LABELS, LABELS])),
    case("second derivative of cross entropy", lambda x: gradients(xent(x, constant(LABELS)), x)[0] * Y, X),
    case("SparseSoftmaxCrossEntropyWithLogits", sparse, X),
    case("sigmoid cross entropy", lambda x: nn.sigmoid_cross_entropy_with_logits(labels=LABELS, logits=x), X),
    case("second derivative of tanh", lambda x: gradients(m.tanh(x), x)[0], X),
    case("l2_normalize", lambda x: nn.l2_normalize(x, 1) * Y, X),
    case("clip_by_norm", lambda x: clipping.clip_by_norm(x, 1.0) * Y, X),
    case(
        "batch_normalization", lambda x, s: nn.batch_normalization(x, *nn.moments(x, [0]), None, s, 1e-3) * Y, X, Y[0]
    ),
    *GRADIENTS,
]


@pytest.mark.parametrize("given", CASES, ids=lambda given: given.name)
@pytest.mark.parametrize("static", [True, False], ids=["known shapes", "unknown shapes"])
def test_gradients_agree_with_differences(given: GradientCase, static: bool, run: Any) -> None:
    inputs = [a.placeholder(np.float64, x.shape if static else [None] * x.ndim) for x in given.inputs]
    result = given.build(*inputs)
    if result.shape.rank != 0:
        weights = np.cos(np.arange(np.prod(run(result, dict(zip(inputs, given.inputs, strict=True))).shape)))
        result = m.reduce_sum(a.reshape(result, [-1]) * weights)
    found = [None if t is None else convert_to_tensor(t) for t in gradients(result, inputs)]
    feeds = dict(zip(inputs, given.inputs, strict=True))
    values = run.compiled([t for t in found if t is not None], feeds)
    wanted = [position for position, t in enumerate(found) if t is not None]
    step = 1e-2 if given.name == "Cast" else 1e-6
    tolerance = 1e-3 if given.name == "Cast" else 2e-6
    for position, value in zip(wanted, values, strict=True):
        assert value.shape == given.inputs[position].shape
        expected = differences(lambda feeds: run(result, feeds), feeds, inputs[position], step)
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


def differences(function: Callable[[dict[Tensor, Any]], Any], feeds: dict[Tensor, Any], x: Tensor, step: float) -> Any:
    """Central differences of a scalar function with respect to one input."""
    slope = np.zeros_like(feeds[x])
    for index in np.ndindex(slope.shape):
        moved = []
        for sign in (1, -1):
            array = np.array(feeds[x])
            array[index] += sign * step
            moved.append(float(function({**feeds, x: array})))
        slope[index] = (moved[0] - moved[1]) / (2 * step)
    return slope


def test_every_gradient_has_a_case() -> None:
    covered = {case.name.split(" ")[0] for case in CASES}
    tested_elsewhere = {"If", "While", "ReadVariableOp", "ResourceGather", "PreventGradient", "_PureCallback"}
    # tests/ops/test_image_functions.py
    tested_elsewhere |= {"CropAndResize", *(f"Resize{name}" for name in ("Bicubic", "BicubicGrad"))}
    tested_elsewhere |= {"ResizeBilinear", "ResizeBilinearGrad"}
    # tests/ops/test_quantization_gradients.py
    straight_through = {name for name in OP_SPECS if name.startswith(("FakeQuant", "QuantizeAndDequantize"))}
    of_complex_numbers = {"ComplexAbs", "Conj", "Imag", "Real"}
    declared = {name for name, spec in OP_SPECS.items() if spec.gradient is not None and spec.is_compilable}
    assert declared - covered - tested_elsewhere - of_complex_numbers - straight_through == set()
