"""What operators mean, compared with NumPy; the onnx package's own cases are in `test_onnx_suite.py`."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from interop.onnx.onnx_models import graph, model, node

import xlalite
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.types.dtype import DType

GENERATOR = np.random.default_rng(7)
X = GENERATOR.standard_normal((2, 3, 4)).astype(np.float32)


def run(found: ProtoMessage, *arrays: np.ndarray, version: int = 21, **constants: np.ndarray) -> list[np.ndarray]:
    """The outputs of a node whose inputs are named a, b, c, ..."""
    inputs = {name: (DType.from_numpy(array.dtype), array.shape) for name, array in zip("abcdef", arrays, strict=False)}
    outputs = " ".join(found.texts("output"))
    return list(xlalite.onnx.load(model([found], inputs, outputs, constants, version))(*arrays))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (node("Softmax", "a", "y", axis=1), lambda x: softmax(x, 1)),
        (node("LogSoftmax", "a", "y"), lambda x: np.log(softmax(x))),
        (node("Relu", "a", "y"), lambda x: np.maximum(x, 0)),
        (node("Softplus", "a", "y"), lambda x: np.log1p(np.exp(x))),
        (node("Flatten", "a", "y", axis=2), lambda x: x.reshape(6, 4)),
        (node("Transpose", "a", "y", perm=[2, 0, 1]), lambda x: x.transpose(2, 0, 1)),
        (node("ReduceL2", "a", "y", keepdims=0), lambda x: np.sqrt((x * x).sum())),
        (node("ArgMin", "a", "y", axis=2, keepdims=0), lambda x: x.argmin(2)),
        (node("Einsum", "a", "y", equation="...ij->...j"), lambda x: x.sum(1)),
        (node("Einsum", "a a", "y", equation="bij,bkj->bik"), lambda x: x @ x.transpose(0, 2, 1)),
        (node("GlobalAveragePool", "a", "y"), lambda x: x.mean(2, keepdims=True)),
        (node("SwiGLU", "a a", "y"), lambda x: x * x / (1 + np.exp(-x))),
        (node("IsNaN", "a", "y"), np.isnan),
    ],
    ids=lambda found: found.text("op_type") if isinstance(found, ProtoMessage) else "",
)
def test_operators_agree_with_numpy(found: ProtoMessage, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    (result,) = run(found, X)
    np.testing.assert_allclose(result, expected(X), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Relu", "Hardmax", "ReduceSum", "CumSum", "Transpose"])
def test_empty_arrays_stay_empty(op_type: str, shape: tuple[int, ...]) -> None:
    second = {"CumSum": {"n": np.array(0)}, "ReduceSum": {"n": np.array([1])}}.get(op_type, {})
    (result,) = run(node(op_type, "a n" if second else "a", "y"), np.zeros(shape, np.float32), **second)
    assert result.sum() == 0


@pytest.mark.parametrize(("fmod", "expected"), [(0, [1, -1, 2, -2, 0]), (1, [1, -1, -1, 1, 0])])
def test_mod_has_the_sign_that_the_attribute_asks_for(fmod: int, expected: list[int]) -> None:
    x, y = np.array([4, -4, -4, 4, 6], np.int64), np.array([3, -3, 3, -3, 3], np.int64)
    assert run(node("Mod", "a b", "y", fmod=fmod), x, y)[0].tolist() == expected


def test_casts_to_narrow_floats_saturate_unless_they_must_not() -> None:
    x = np.array([1e6, -1e6, np.inf, np.nan, 448, 1], np.float32)
    (held,) = run(node("Cast", "a", "y", to=17), x)
    assert held.dtype == ml_dtypes.float8_e4m3fn
    np.testing.assert_array_equal(held.astype(np.float32), [448, -448, 448, np.nan, 448, 1])
    (free,) = run(node("Cast", "a", "y", to=17, saturate=0), x)
    assert np.isnan(free.astype(np.float32)[:4]).all()


def test_quantization_holds_values_in_the_type_and_rounds_halves_to_even() -> None:
    x = np.array([-1000, -0.5, 0.5, 1.5, 2.5, 1000], np.float32)
    constants = {"s": np.array(1, np.float32), "z": np.array(3, np.int8)}
    (small,) = run(node("QuantizeLinear", "a s z", "y"), x, **constants)
    assert small.tolist() == [-128, 3, 3, 5, 5, 127]
    (back,) = run(node("DequantizeLinear", "a s z", "y"), small, **constants)
    assert back.tolist() == [-131, 0, 0, 2, 2, 124]


def test_scales_may_be_those_of_blocks() -> None:
    x = np.arange(8, dtype=np.int8).reshape(2, 4)
    (found,) = run(
        node("DequantizeLinear", "a s", "y", axis=1, block_size=2), x, s=np.array([[1, 2], [3, 4]], np.float32)
    )
    np.testing.assert_array_equal(found, x * np.array([[1, 1, 2, 2], [3, 3, 4, 4]], np.float32))


def test_products_of_integers_do_not_overflow() -> None:
    x = np.full((2, 300), 255, np.uint8)
    (found,) = run(node("MatMulInteger", "a b z", "y"), x, x.T.copy(), z=np.array(1, np.uint8))
    assert found.tolist() == [[300 * 254 * 255] * 2] * 2


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_borders_are_those_of_numpy(mode: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (found,) = run(node("Pad", "a p", "y", mode=mode), x, p=np.array([1, 2, 2, 3]))
    np.testing.assert_array_equal(found, np.pad(x, ((1, 2), (2, 3)), mode))


def test_slices_run_backwards_and_clamp() -> None:
    x = np.arange(10)
    for start, end, step in ((8, -100, -3), (-100, 100, 4), (5, 2, 1), (3, 7, 1)):
        constants = {"s": np.array([start]), "e": np.array([end]), "x": np.array([0]), "t": np.array([step])}
        (found,) = run(node("Slice", "a s e x t", "y"), x, **constants)
        np.testing.assert_array_equal(found, x[slice(start, None if end == -100 else end, step)])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_transposed_convolution_is_the_transpose_of_the_convolution(groups: int) -> None:
    """<conv(x), y> = <x, transposed(y)>."""
    weights = GENERATOR.standard_normal((8, 4 // groups, 3, 2)).astype(np.float32)
    x = GENERATOR.standard_normal((2, 4, 9, 8)).astype(np.float32)
    attributes = {"group": groups, "strides": [2, 3], "pads": [1, 0, 1, 1], "dilations": [2, 1]}
    (forward,) = run(node("Conv", "a w", "y", **attributes), x, w=weights)
    y = GENERATOR.standard_normal(forward.shape).astype(np.float32)
    covered = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(y.shape[2:], (2, 3), (2, 1), (3, 2), strict=True)]
    attributes["output_padding"] = [9 - covered[0] + 2, 8 - covered[1] + 1]
    (backward,) = run(node("ConvTranspose", "a w", "y", **attributes), y, w=weights)
    assert backward.shape == x.shape
    np.testing.assert_allclose((forward * y).sum(), (x * backward).sum(), rtol=1e-4)


def test_the_largest_elements_come_with_their_places() -> None:
    x = np.array([[3, 3, 1, 7], [0, 5, 5, 5]], np.float32)
    values, places = run(node("TopK", "a k", "v p"), x, k=np.array([3]))
    assert values.tolist() == [[7, 3, 3], [5, 5, 5]]
    assert places.tolist() == [[3, 0, 1], [1, 2, 3]]


def test_attention_shares_keys_between_heads() -> None:
    q, k, v = (GENERATOR.standard_normal((2, h, n, 8)).astype(np.float32) for h, n in ((4, 3), (2, 5), (2, 5)))
    (found,) = run(node("Attention", "a b c", "y", is_causal=1), q, k, v, version=25)
    wide_k, wide_v = (np.repeat(each, 2, 1) for each in (k, v))
    scores = q @ wide_k.swapaxes(2, 3) / np.sqrt(8)
    scores = np.where(np.arange(5) <= np.arange(3)[:, np.newaxis], scores, -np.inf)
    np.testing.assert_allclose(found, softmax(scores) @ wide_v, rtol=1e-5, atol=1e-6)


def test_a_scan_runs_backwards_where_it_is_asked_to() -> None:
    body = graph(
        [node("Add", "s r", "t"), node("Identity", "t", "o")], {"s": (DType.F32, [4]), "r": (DType.F32, [4])}, "t o"
    )
    found = node("Scan", "a b", "y z", body=body, num_scan_inputs=1, scan_input_directions=[1])
    state, rows = run(found, np.zeros(4, np.float32), X[0])
    np.testing.assert_allclose(rows, X[0][::-1].cumsum(0), rtol=1e-6)
    np.testing.assert_allclose(state, X[0].sum(0), rtol=1e-5, atol=1e-6)


def test_an_unknown_attribute_value_is_named() -> None:
    with pytest.raises(LoweringError, match=r"importing Gelu 'y': approximate must be none or tanh, found 'cube'"):
        run(node("Gelu", "a", "y", approximate="cube"), X)


def test_classes_are_drawn_as_often_as_they_are_likely() -> None:
    shares = np.array([[0.1, 0.6, 0.3, 0.0], [0.0, 0.0, 1.0, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        (drawn,) = run(node("Multinomial", "a", "z", sample_size=20000, dtype=7), np.log(shares))
    assert drawn.shape == (2, 20000)
    assert drawn.dtype == np.int64
    found = [np.bincount(row, minlength=4) / 20000 for row in drawn]
    np.testing.assert_allclose(found, shares, atol=0.02)


def test_an_odd_number_too_many_is_cut_off_in_front() -> None:
    x, w = np.array([[[1.0, 2, 4]]], np.float32), np.ones((1, 1, 3), np.float32)
    whole = np.array([1, 1, 3, 2, 6, 4, 4], np.float32)
    for mode, expected in (("NOTSET", whole[1:]), ("SAME_LOWER", whole[1:]), ("SAME_UPPER", whole[:-1])):
        (found,) = run(node("ConvTranspose", "a b", "y", strides=[2], output_shape=[6], auto_pad=mode), x, w)
        np.testing.assert_array_equal(found, expected[None, None])


def resized(x: np.ndarray, scales: list[float], sizes: list[int] | None = None, **attributes: object) -> np.ndarray:
    constants = {"r": np.zeros(0, np.float32), "n": np.array([] if sizes else scales, np.float32)}
    constants |= {"s": np.array(sizes, np.int64)} if sizes else {}
    found = node("Resize", "a r n s" if sizes else "a r n", "y", **attributes)
    return run(found, x, version=19, **constants)[0]


def test_sizes_and_places_of_images_are_computed_in_single_precision() -> None:
    x = np.arange(10, dtype=np.float32)
    assert resized(x, [0.7]).shape == (7,)
    found = resized(x, [0.6], nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    np.testing.assert_array_equal(found, [0, 1, 3, 5, 6, 8])
    found = resized(x[:3], [2.0], [1], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel")
    np.testing.assert_array_equal(found, [0])


def test_no_images_are_resized() -> None:
    x = np.zeros((0, 2, 4), np.float32)
    assert resized(x, [1, 1, 2], mode="linear").shape == (0, 2, 8)
    assert resized(x, [], [0, 2, 8], mode="linear").shape == (0, 2, 8)


def test_zeros_of_either_sign_are_equal_to_topk() -> None:
    x = np.array([-0.0, 0.0, -0.0, 0.0], np.float32)
    for largest in (0, 1):
        _, places = run(node("TopK", "a n", "y z", largest=largest), x, n=np.array([3]))
        np.testing.assert_array_equal(places, [0, 1, 2])


def test_what_counts_for_nothing_may_be_anything() -> None:
    x, y = np.ones((3, 2), np.float32), np.ones((2, 4), np.float32)
    (found,) = run(node("Gemm", "a b c", "y", beta=0.0), x, y, np.full(4, np.nan, np.float32))
    np.testing.assert_array_equal(found, np.full((3, 4), 2))


def test_bounds_that_old_models_leave_out_are_finite() -> None:
    (found,) = run(node("Clip", "a", "y", min=-1.0), np.array([-np.inf, np.inf], np.float32), version=9)
    np.testing.assert_array_equal(found, np.array([-1, np.finfo(np.float32).max], np.float32))


def test_equal_numbers_have_no_spread() -> None:
    for number in np.linspace(0.1, 3, 30, dtype=np.float32):
        (found,) = run(node("MeanVarianceNormalization", "a", "y"), np.full((2, 3, 4, 5), number))
        assert np.isfinite(found).all()
