"""Operators of `com.microsoft`, and one that the standard's suite has no case of, agree with onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from interop.onnx.onnx_models import graph, node

import xlalite
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode
from xlalite.hlo.types.dtype import DType

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle

GENERATOR = np.random.default_rng(3)


def f(*dims: int) -> np.ndarray:
    return GENERATOR.standard_normal(dims).astype(np.float32)


def q(*dims: int, dtype: type = np.uint8) -> np.ndarray:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return GENERATOR.integers(low, high + 1, dims).astype(dtype)


def scaled(*dims: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return q(*dims), np.float32(0.02), np.uint8(120)


def i32(*values: object) -> np.ndarray:
    return np.array(values, np.int32)


SKIP = None
CASES = {
    "FusedMatMul": [
        ([f(2, 3, 4), f(2, 4, 5)], {"alpha": 0.5}),
        ([f(2, 4, 3), f(2, 5, 4)], {"transA": 1, "transB": 1}),
        ([f(3, 2, 4), f(2, 4, 5)], {"transBatchA": 1}),
        ([f(2, 3, 4), f(4, 2, 5)], {"transBatchB": 1, "alpha": 2.0}),
        ([f(3), f(3)], {"alpha": 2.0}),
    ],
    "FusedGemm": [
        ([f(3, 4), f(4, 5), f(5)], {"activation": "Relu", "alpha": 0.5, "beta": 2.0}),
        ([f(3, 4), f(5, 4), f(5)], {"activation": "LeakyRelu", "activation_alpha": 0.1, "transB": 1}),
    ],
    "FusedConv": [
        ([f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
        ([f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), f(1, 3, 3, 3)], {"activation": "Relu"}),
        ([f(1, 2, 5, 5), f(3, 2, 3, 3)], {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
        ([f(1, 2, 5, 5), f(3, 2, 3, 3)], {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}),
        ([f(1, 2, 5, 5), f(3, 2, 3, 3)], {"activation": "LeakyRelu", "activation_params": [0.3]}),
    ],
    "Gelu": [([f(3, 4)], {})],
    "BiasGelu": [([f(2, 3, 4), f(4)], {})],
    "FastGelu": [([f(2, 3, 4), f(4)], {}), ([f(2, 3, 4)], {})],
    "QuickGelu": [([f(3, 4)], {}), ([f(3, 4)], {"alpha": 1.0})],
    "SkipLayerNormalization": [
        ([f(2, 3, 4), f(2, 3, 4), f(4), f(4), f(4)], {"epsilon": 1e-5}),
        ([f(2, 3, 4), f(3, 4), f(4)], {}),
    ],
    "SkipSimplifiedLayerNormalization": [([f(2, 3, 4), f(2, 3, 4), f(4), f(4)], {"epsilon": 1e-5})],
    "EmbedLayerNormalization": [
        ([q(2, 3) % 5 * i32(1), q(2, 3) % 2 * i32(1), f(5, 4), f(6, 4), f(2, 4), f(4), f(4), i32([1, 1, 0], [1, 1, 1])],
         {}),
        ([q(2, 3) % 5 * i32(1), SKIP, f(5, 4), f(6, 4), SKIP, f(4), f(4)], {}),
    ],
    "Attention": [
        ([f(2, 3, 8), f(8, 24), f(24)], {"num_heads": 2}),
        ([f(2, 3, 8), f(8, 24), f(24)], {"num_heads": 2, "unidirectional": 1, "scale": 0.3}),
        ([f(2, 3, 8), f(8, 24), f(24), i32(2, 3)], {"num_heads": 2}),
        ([f(2, 3, 8), f(8, 24), f(24), i32(2, 3, 0, 1)], {"num_heads": 2}),
        ([f(2, 3, 8), f(8, 24), f(24), i32([1, 0, 1], [1, 1, 1])], {"num_heads": 2}),
        ([f(2, 3, 8), f(8, 24), f(24), SKIP, SKIP, f(2, 2, 3, 3)], {"num_heads": 2}),
        ([f(2, 3, 8), f(8, 20), f(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
        ([f(2, 3, 8), f(8, 24), f(24), i32([1] * 7, [1] * 7), f(2, 2, 2, 4, 4)], {"num_heads": 2, "unidirectional": 1}),
    ],
    "MultiHeadAttention": [
        ([f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), f(24)], {"num_heads": 2}),
        ([f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), SKIP, i32([1, 1, 0, 0, 1], [1, 1, 1, 1, 0])], {"num_heads": 2}),
        ([f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), SKIP, SKIP, f(1, 2, 3, 5)], {"num_heads": 2, "scale": 0.2}),
    ],
    "RotaryEmbedding": [
        ([f(2, 3, 8), np.array([[0, 1, 2], [2, 3, 4]]), f(6, 2), f(6, 2)], {}),
        ([f(2, 3, 8), np.array([2]), f(6, 2), f(6, 2)], {"interleaved": 1}),
        ([f(2, 2, 3, 4), np.array([[0, 1, 2], [2, 3, 4]]), f(6, 2), f(6, 2)], {}),
    ],
    "QLinearAdd": [([*scaled(2, 3), *scaled(3), np.float32(0.05), np.uint8(100)], {})],
    "QLinearMul": [([*scaled(2, 3), *scaled(3), np.float32(0.05), np.uint8(100)], {})],
    "QLinearSigmoid": [([*scaled(2, 30), np.float32(1 / 256), np.uint8(0)], {})],
    "QLinearLeakyRelu": [([*scaled(2, 30), np.float32(0.02), np.uint8(60)], {"alpha": 0.1})],
    "QLinearSoftmax": [([*scaled(2, 5), np.float32(1 / 256), np.uint8(0)], {"opset": 13, "axis": -1})],
    "QLinearGlobalAveragePool": [
        ([*scaled(2, 3, 4, 4), np.float32(0.02), np.uint8(120)], {}),
        ([*scaled(2, 4, 4, 3), np.float32(0.02), np.uint8(120)], {"channels_last": 1}),
    ],
    "QLinearAveragePool": [([*scaled(1, 2, 4, 4), np.float32(0.02), np.uint8(120)], {"kernel_shape": [2, 2]})],
    "QLinearConcat": [([np.float32(0.03), np.uint8(110), *scaled(2, 3), *scaled(2, 4)], {"axis": 1})],
    "QLinearWhere": [([GENERATOR.random((2, 3)) > 0.5, *scaled(2, 3), *scaled(2, 3), np.float32(0.03), np.uint8(99)],
                      {})],
    "QGemm": [
        ([*scaled(2, 4), *scaled(4, 3), i32(10, -20, 30), np.float32(0.1), np.uint8(128)], {}),
        ([*scaled(2, 4), *scaled(3, 4)], {"transB": 1, "alpha": 0.5}),
    ],
    "MatMulIntegerToFloat": [
        ([q(2, 4), q(4, 3), np.float32(0.1), np.float32(0.2), np.uint8(3), np.uint8(4), f(3)], {}),
        ([q(2, 4), q(4, 3, dtype=np.int8), np.float32(0.1), np.abs(f(3)), np.uint8(3)], {}),
    ],
    "DynamicQuantizeMatMul": [([f(2, 4), q(4, 3), np.float32(0.1), np.uint8(7), f(3)], {})],
    "QAttention": [
        ([q(2, 3, 8), q(8, 24), f(24), np.float32(0.02), np.float32(0.01), SKIP, np.uint8(128), np.uint8(128)],
         {"num_heads": 2}),
        ([q(2, 3, 8), q(8, 24), f(24), np.float32(0.02), np.float32(0.01), i32(2, 3), np.uint8(1), np.uint8(2)],
         {"num_heads": 2}),
    ],
    "MatMulNBits": [
        ([f(2, 40), q(3, 3, 8), f(9)], {"K": 40, "N": 3, "bits": 4, "block_size": 16}),
        ([f(2, 40), q(3, 3, 8), f(9), q(3 * 2)], {"K": 40, "N": 3, "bits": 4, "block_size": 16}),
    ],
    "QuantizeLinear": [([f(3, 4), np.float32(0.1), np.uint8(100)], {})],
    "DequantizeLinear": [([q(3, 4), np.float32(0.1), np.uint8(100)], {})],
    "MaxRoiPool": [
        ([f(2, 3, 7, 9), np.array([[0, 0, 0, 16, 12], [1, 3.2, 1, 9, 5.1], [1, 30, 30, 40, 40]], np.float32)],
         {"pooled_shape": [2, 3], "spatial_scale": 0.5}),
        ([f(1, 1, 3, 3), np.array([[0, 1, 1, 1, 1]], np.float32)], {"pooled_shape": [2, 2]}),
    ],
    "ExpandDims": [([f(3, 4), i32(1).reshape(())], {})],
}  # fmt: skip
STANDARD = ("MaxRoiPool",)
CONSTANT = {"ExpandDims": (1,)}
OUTPUTS = {"EmbedLayerNormalization": "z y", "Attention": "z y", "QAttention": "z y", "MultiHeadAttention": "z y x"}


def model_of(name: str, inputs: list, attributes: dict) -> tuple[bytes, dict]:
    names = [letter if array is not SKIP else "-" for letter, array in zip("abcdefghijkl", inputs, strict=False)]
    arrays = {letter: np.asarray(x) for letter, x in zip("abcdefghijkl", inputs, strict=False) if x is not SKIP}
    outputs = "z" if "qkv_hidden_sizes" in attributes else OUTPUTS.get(name, "z")
    fixed = {"abcdefgh"[i] for i in CONSTANT.get(name, ())}
    message = ProtoMessage("onnx.ModelProto").put("ir_version", 8)
    message.append("opset_import").put("version", 17)
    message.append("opset_import").put("domain", "com.microsoft").put("version", 1)
    found = node(
        name,
        " ".join(names),
        outputs,
        "" if name in STANDARD else "com.microsoft",
        **{k: v for k, v in attributes.items() if k != "activation_params"},
    )
    if "activation_params" in attributes:
        one = ProtoMessage("onnx.AttributeProto").put("name", "activation_params").put("type", 6)
        found.put_all("attribute", [one.put_all("floats", attributes["activation_params"])])
    types = {key: (DType.from_numpy(x.dtype), x.shape) for key, x in arrays.items() if key not in fixed}
    message.put("graph", graph([found], types, outputs, {key: arrays[key] for key in fixed}))
    return encode(message), {key: x for key, x in arrays.items() if key not in fixed}


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, cases in CASES.items() for i in range(len(cases))])
def test_an_operator_agrees_with_onnxruntime(name: str, number: int) -> None:
    data, feeds = model_of(name, *CASES[name][number])
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for want, have in zip(session.run(None, feeds), xlalite.onnx.load(data).run(feeds).values(), strict=True):
        assert have.dtype == want.dtype
        if want.dtype.kind in "iu":
            assert np.abs(have.astype(np.int64) - want.astype(np.int64)).max() <= 1
        else:
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "message"),
    [
        ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3)], {"activation": "Erf"}, "activation 'Erf' is not known"),
        ("Attention", [f(2, 3, 8), f(8, 24), f(24), i32(1, 2, 3)], {"num_heads": 2}, r"a mask of sizes \(3,\)"),
        ("Attention", [f(2, 3, 8), f(8, 24), f(24)], {"num_heads": 2, "do_rotary": 1}, "rotary embeddings"),
        ("Attention", [f(2, 3, 8), f(8, 24)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8]}, "not split into"),
        (
            "MatMulNBits",
            [f(2, 4), q(3, 1, 2), f(3)],
            {"K": 4, "N": 3, "bits": 3, "block_size": 4},
            "3 bits in blocks",
        ),
        ("QLinearSoftmax", [*scaled(2, 5), np.float32(1), np.uint8(0)], {"opset": 11}, "version 12 and before"),
    ],
)
def test_what_has_no_rule_is_refused(name: str, inputs: list, attributes: dict, message: str) -> None:
    data, feeds = model_of(name, inputs, attributes)
    with pytest.raises(LoweringError, match=message):
        xlalite.onnx.load(data).run(feeds)
