"""What front ends build with, against formulas of NumPy; derivatives as adjoints: <f(x), g> = <x, f'(g)>."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from xlalite.hlo import Builder, DType
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.convolutions import Convolution
from xlalite.hlo.building.cumulative import cumulative, cumulative_log_sum_exp
from xlalite.hlo.building.indexing import gather_along, scatter_along
from xlalite.hlo.building.pooling import averages_to_array, window_averages, window_counts
from xlalite.hlo.building.resampling import Taps
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.literal import Array, Literal
from xlalite.hlo.types.window import Window, WindowDimension


def run(build: Callable[..., Handle], *arrays: Array) -> Array:
    b = Builder("composite")
    parameters = [b.parameter(Literal(array).shape) for array in arrays]
    return np.asarray(evaluate(b.build_module(build(*parameters)), *arrays))


def numbers(*dims: int) -> Array:
    return np.random.default_rng(sum(dims) + len(dims)).integers(-4, 5, dims).astype(np.float64)


@pytest.mark.parametrize("labels", [("bf01", "oi01"), ("b01f", "01io"), ("b0f1", "o01i")])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "window", [(2, 1, 1, 0, 1), (3, 2, 0, 2, 2), (1, 3, -1, 1, 1), (8, 1, 0, 0, 1), (7, 2, 0, 0, 1), (8, 1, 1, -1, 1)]
)
def test_derivatives_of_a_convolution_are_its_adjoints(
    labels: tuple[str, str], groups: int, window: tuple[int, ...]
) -> None:
    size, stride, low, high, dilation = window
    own = (WindowDimension(size, stride, low, high, rhs_dilate=dilation), WindowDimension(2, 1, 1, 1))
    space = Window(own).output_sizes((8, 7))
    sizes = {"b": 3, "f": 4, "0": 8, "1": 7}, {"o": 6, "i": 4 // groups, "0": size, "1": 2}
    found = {"b": 3, "f": 6, "0": space[0], "1": space[1]}
    image, filters = (tuple(of[label] for label in order) for of, order in zip(sizes, labels, strict=True))
    output = tuple(found[label] for label in labels[0])
    at = Convolution(*labels, own, image, filters, output, groups)
    x, w, g = numbers(*image), numbers(*filters), numbers(*output)
    product = np.vdot(run(at.forward, x, w), g)
    assert product == np.vdot(x, run(at.to_image, w, g)) == np.vdot(w, run(at.to_filters, x, g))


def test_the_derivative_of_filters_as_large_as_the_image_takes_each_element_of_them_once() -> None:
    """Infinite weights show what else would be multiplied."""
    whole = (WindowDimension(8), WindowDimension(2, 1, 1, 1))
    at = Convolution("b01f", "01io", whole, (3, 8, 7, 4), (8, 2, 4, 6), (3, 1, 8, 6))
    w, g = numbers(8, 2, 4, 6), np.abs(numbers(3, 1, 8, 6)) + 1
    w[5, :, :, :] = np.inf
    found = run(at.to_image, w, g)
    assert np.isinf(found[:, 5]).all()
    assert np.isfinite(np.delete(found, 5, 1)).all()


def test_averages_below_windows_have_their_adjoint() -> None:
    window = [WindowDimension(1), WindowDimension(3, 2, 1, 1), WindowDimension(2, 1, 0, 1, rhs_dilate=2)]
    x = numbers(2, 7, 6)
    counts = window_counts(window, x.shape)
    forward = run(lambda p: window_averages(p, window, counts), x)
    g = numbers(*forward.shape)
    back = run(lambda p: averages_to_array(p, window, counts, x.shape), g)
    np.testing.assert_allclose(np.vdot(forward, g), np.vdot(x, back), rtol=1e-12)


@pytest.mark.parametrize("weights", [None, [[0.5, 0.25], [1.0, -1.0], [0.0, 2.0], [3.0, 1.0]]])
def test_resampling_has_its_adjoint(weights: list[list[float]] | None) -> None:
    indices = np.array([[2, 0], [1, 1], [0, 2], [2, 2]])
    taps = Taps(indices[:, :1]) if weights is None else Taps(indices, np.array(weights))
    x, g = numbers(2, 3, 2), numbers(2, 4, 2)
    forward, back = run(lambda p: taps.of(p, 1), x), run(lambda p: taps.transposed(p, 1, 3), g)
    shares = np.ones((4, 1)) if weights is None else np.array(weights)
    assert (forward == np.einsum("nt,bntc->bnc", shares, x[:, taps.indices])).all()
    assert np.vdot(forward, g) == np.vdot(x, back)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dims", [(3, 5), (1, 1), (4, 0)])
def test_running_sums(dims: Sequence[int], reverse: bool, exclusive: bool) -> None:
    x = numbers(*dims)
    own = x[:, ::-1] if reverse else x
    if exclusive:
        own = np.concatenate([np.zeros((dims[0], 1)), own], 1)[:, : dims[1]]
    sums = np.cumsum(own, 1)
    logs = np.logaddexp.accumulate(np.concatenate([np.full((dims[0], 1), -np.inf), own], 1), 1)[:, 1:]
    if exclusive and dims[1]:
        moved = np.concatenate([np.full((dims[0], 1), -np.inf), own[:, 1:]], 1)
        logs = np.logaddexp.accumulate(moved, 1)
    turn = slice(None, None, -1 if reverse else 1)
    found = run(lambda p: cumulative(p, 1, "add", 0, reverse=reverse, exclusive=exclusive), x)
    assert (found == sums[:, turn]).all()
    found = run(lambda p: cumulative_log_sum_exp(p, 1, reverse=reverse, exclusive=exclusive), x)
    np.testing.assert_allclose(found, logs[:, turn], rtol=1e-12)


def test_elements_along_a_dimension() -> None:
    x, indices = numbers(3, 4), np.array([[3, 0], [1, 1]])
    assert (run(lambda p, i: gather_along(p, i, 1), x, indices) == np.take_along_axis(x[:2], indices, 1)).all()
    updates = numbers(2, 2)
    expected = x.copy()
    np.add.at(expected, (np.arange(2)[:, None], indices), updates)
    assert (run(lambda p, i, u: scatter_along(p, i, u, 1, "add"), x, indices, updates) == expected).all()
    assert run(lambda p, i: gather_along(p, i, 1), x, np.zeros((3, 0), np.int64)).shape == (3, 0)


def test_sums_of_narrow_types_are_wide_while_they_run() -> None:
    ones = np.ones(4096, DType.BF16.numpy)
    assert float(run(lambda p: cumulative(p, 0, "add", 0), ones)[-1]) == 4096
