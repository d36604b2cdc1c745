"""Gradients of rounding to quantised numbers pass straight through, and what lies outside pulls at the range."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import quantization as q
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients

X = np.float32([[-7, -1, 1], [2, 0.5, 9]])
G = np.float32([[1, 2, 4], [8, 16, 32]])
LOW, HIGH = np.float32(-2), np.float32(4)
INSIDE = G * [[0, 1, 1], [1, 1, 0]]

CASES: dict[str, tuple[Callable[..., Tensor], Any, Any]] = {
    "fake, range of attributes": (lambda x, low, high: q.fake_quant_with_min_max_args(x, -2, 4), None, None),
    "fake, range of variables": (q.fake_quant_with_min_max_vars, 1, 32),
    "clipped": (lambda *t: q.quantize_and_dequantize_v2(*t, range_given=True), 1, 32),
}


@pytest.mark.parametrize("name", CASES)
def test_what_lies_outside_pulls_at_the_range(name: str, run: Any) -> None:
    build, low_pull, high_pull = CASES[name]
    inputs = [constant(each) for each in (X, LOW, HIGH)]
    to_x, *to_ends = gradients(build(*inputs), inputs, grad_ys=[constant(G)])
    np.testing.assert_array_equal(run(to_x), INSIDE)
    assert [None if each is None else run(each) for each in to_ends] == [low_pull, high_pull]


def test_each_channel_has_its_range(run: Any) -> None:
    low, high = np.float32([-8, -2, -2]), np.float32([1, 4, 8])
    inputs = [constant(each) for each in (X, low, high)]
    result = q.fake_quant_with_min_max_vars_per_channel(*inputs)
    found = run(gradients(result, inputs, grad_ys=[constant(G)]))
    np.testing.assert_array_equal(found[0], G * [[1, 1, 1], [0, 1, 0]])
    np.testing.assert_array_equal(found[1], [0, 0, 0])
    np.testing.assert_array_equal(found[2], [8, 0, 32])


@pytest.mark.parametrize("bits", [None, 8])
def test_unclipped_gradients_pass_everywhere(bits: int | None, run: Any) -> None:
    x = constant(X)
    if bits is None:
        result = q.quantize_and_dequantize(x, LOW, HIGH, range_given=True)
    else:
        result = q.quantize_and_dequantize_v3(x, LOW, HIGH, bits)
    np.testing.assert_array_equal(run(gradients(result, x, grad_ys=[constant(G)])[0]), G)
