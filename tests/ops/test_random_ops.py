from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.random_seed import get_seed, set_random_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import array as a
from xlalite.ops.functions.nn import dropout
from xlalite.ops.functions.random_ops import random_normal, random_shuffle, random_uniform, truncated_normal
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node


def test_seeds_come_from_graph_and_operation(graph: Graph) -> None:
    assert get_seed(None) == (0, 0)
    assert get_seed(5) == (87654321, 5)
    set_random_seed(3)
    assert get_seed(5) == (3, 5)
    first = get_seed(None)
    random_uniform([1])
    assert get_seed(None) != first
    set_random_seed(0)
    assert get_seed(0) == (0, 2**31 - 1)


def test_the_same_seeds_draw_the_same_numbers_in_new_sessions(run: Any) -> None:
    x = random_normal([4], seed=1)
    first, second = run(x), run(x)
    assert not np.array_equal(first, second)
    again = type(run)()
    np.testing.assert_array_equal(again(x), first)
    np.testing.assert_array_equal(again(x), second)


def test_the_same_program_with_a_graph_seed_draws_the_same_numbers(run: Any) -> None:
    def program() -> Any:
        with Graph().as_default():
            set_random_seed(7)
            return type(run)()([random_uniform([3]), random_uniform([3])])

    first, second = program(), program()
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random_uniform([5, 7], -1.0, 3.0, seed=1),
        lambda: random_uniform([5, 7], 10, 2**31 - 1, np.int32, seed=1),
        lambda: random_uniform([5, 7], -(2**62), 2**62, np.int64, seed=1),
        lambda: random_normal([5, 7], seed=1),
        lambda: random_normal([3], dtype=np.float64, seed=1),
        lambda: random_normal([0, 3], dtype=np.float16, seed=1),
        lambda: truncated_normal([], dtype=ml_dtypes.bfloat16, seed=1),
    ],
)
def test_a_stream_goes_on_alone_and_compiled(draw: Any, run: Any) -> None:
    drawn = draw()
    mixed = [run(drawn), *run.compiled([drawn]), run(drawn), *run.compiled([drawn])]
    alone = type(run)()
    for value in mixed:
        np.testing.assert_array_equal(value, alone(drawn))


def test_normal_numbers_follow_their_distribution(run: Any) -> None:
    (normal,), (truncated,) = (
        run.compiled([draw([100001], seed=3, dtype=np.float64)]) for draw in (random_normal, truncated_normal)
    )
    assert scipy.stats.kstest(normal, "norm").pvalue > 0.001
    assert scipy.stats.kstest(truncated, scipy.stats.truncnorm(-2, 2).cdf).pvalue > 0.001
    assert abs(np.corrcoef(normal[:-1], normal[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_uniform_numbers_stay_below_one_in_every_type(dtype: Any, run: Any) -> None:
    drawn = run(random_uniform([20000], dtype=dtype, seed=1)).astype(np.float64)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01


def test_distributions_have_their_moments(run: Any) -> None:
    normal = run(random_normal([20000], 2.0, 3.0, seed=1))
    assert abs(normal.mean() - 2) < 0.1
    assert abs(normal.std() - 3) < 0.1
    truncated = run(truncated_normal([20000], 2.0, 3.0, seed=1))
    assert np.abs(truncated - 2).max() <= 6
    integers = run(random_uniform([1000], 3, 7, np.int32, seed=1))
    assert set(integers.tolist()) == {3, 4, 5, 6}
    rows = run(random_shuffle(np.arange(10), seed=3))
    assert sorted(rows.tolist()) == list(range(10))


def test_wrong_bounds_and_types_are_errors(run: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="minval 5 must be less than maxval 5"):
        run(random_uniform([1], 5, 5, np.int32))
    with pytest.raises(ShapeError, match="needs maxval"):
        random_uniform([1], dtype=np.int32)
    with pytest.raises(ShapeError, match="not floating-point"):
        random_normal([1], dtype=np.int32)


def test_shapes_may_be_known_only_at_run_time(run: Any) -> None:
    x = a.placeholder(np.float32, [None, 2])
    drawn = random_uniform(a.shape(x))
    assert drawn.shape == [None, 2]
    assert run(drawn, {x: np.zeros((5, 2))}).shape == (5, 2)


def test_dropout_keeps_the_mean(run: Any) -> None:
    kept = run(dropout(np.ones(20000, np.float32), 0.25, seed=5))
    assert set(np.unique(kept)) == {0.0, 4.0}
    assert abs(kept.mean() - 1) < 0.05


@pytest.mark.parametrize("algorithm", [1, 2, 3])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64])
def test_stochastic_cast_rounds_to_the_nearer_neighbour_more_often(algorithm: int, dtype: Any, run: Any) -> None:
    x = constant(np.full(4000, -2.25), dtype)

    def cast(key: int, counter: int) -> np.ndarray:
        state = [constant(np.uint64([key])), constant(np.uint64([counter, 0])), constant(algorithm)]
        return np.asarray(run(node("StochasticCastToInt", [x, *state], {"Tout": dtypes.int32})))

    rounded = cast(1, 2)
    assert set(rounded.tolist()) == {-2, -3}
    assert abs(rounded.mean() + 2.25) < 0.03
    np.testing.assert_array_equal(rounded, cast(1, 2))
    assert (rounded != cast(2, 2)).any()
    assert (rounded != cast(1, 5000)).any()


def test_stochastic_cast_refuses_what_it_cannot_do() -> None:
    state = [constant(np.uint64([1])), constant(np.uint64([1, 2])), constant(1)]
    with pytest.raises(ElementTypeError, match="cannot round int32 to int8"):
        node("StochasticCastToInt", [constant(np.int32([1])), *state], {"Tout": dtypes.int8})
    with pytest.raises(ShapeError, match=r"counter is uint64 of shape \(1,\), expected uint64 of \[2\]"):
        node("StochasticCastToInt", [constant(1.5), state[0], state[0], state[2]], {"Tout": dtypes.int8})
