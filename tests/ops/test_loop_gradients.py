"""Gradients through loops and branches, and from inside them: against derivatives by hand, alone and compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.hlo.errors import LoweringError
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.functions.control_flow import cond, while_loop
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.training.variable import Variable


def require_both(run: Any, fetches: list[Any], feeds: dict[Any, Any], expected: list[Any]) -> None:
    """The fetches have the expected values, operation by operation and as one module."""
    for found in (run(fetches, feeds), run.compiled(fetches, feeds)):
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=2e-5)


def powers(x: Tensor, w: Any, times: Any, **options: Any) -> Tensor:
    """x * w ** times, by a loop."""
    result: Tensor = while_loop(lambda i, y: i < times, lambda i, y: (i + 1, y * w), [constant(0), x], **options)[1]
    return result


def test_gradients_reach_starts_captures_and_variables(run: Any) -> None:
    x, v, c = a.placeholder(np.float32, [2]), Variable(2.0), a.placeholder(np.float32, [2])
    run(v.initializer)
    y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * v + c), [constant(0), x])[1]
    # y = x v^3 + c (v^2 + v + 1)
    found = gradients(y, [x, v, c])
    require_both(run, found, {x: [1, 3], c: [5, 7]}, [[8, 8], 4 * 3 * 4 + 12 * 5, [7, 7]])


def test_gradients_reach_captured_constants(run: Any) -> None:
    c, x = constant(3.0), a.placeholder(np.float32, [])
    loop = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * c), [constant(0), x])[1]
    branch = cond(m.greater(x, 0.0), lambda: c * c, lambda: cond(m.less(x, -1.0), lambda: c * x, lambda: c))
    found = [*gradients(loop, [c]), *gradients(branch, [c])]
    require_both(run, found, {x: 2}, [2 * 3 * 9, 6])
    require_both(run, found, {x: -2}, [-2 * 3 * 9, -2])


@pytest.mark.parametrize("times", [0, 1, 4])
def test_the_number_of_iterations_may_come_from_a_shape(run: Any, times: int) -> None:
    x, w, rows = a.placeholder(np.float32, []), a.placeholder(np.float32, []), a.placeholder(np.float32, [None])
    of_x, of_w = gradients(powers(x, w, a.shape(rows)[0]), [x, w])
    feeds = {x: 3, w: 2, rows: np.ones(times)}
    require_both(run, [of_x, of_w], feeds, [2.0**times, 3 * times * 2.0 ** (times - 1)])


def test_values_decide_when_a_loop_ends_up_to_a_limit(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    free = while_loop(lambda y: y < 100, lambda y: y * y, [x])
    limited = while_loop(lambda y: y < 100, lambda y: y * y, [x], maximum_iterations=6)
    # 3 -> 9 -> 81 -> 6561 = x^8
    expected = 8 * 3.0**7
    require_both(run, gradients(limited, [x]), {x: 3}, [expected])
    of_free = gradients(free, [x])
    np.testing.assert_allclose(run(of_free, {x: 3}), [expected])
    # The body runs again, up to where each iteration began.
    assert why_not_compilable(free.op) is None


def test_loops_inside_loops_and_branches_inside_loops(run: Any) -> None:
    x, w = a.placeholder(np.float32, []), a.placeholder(np.float32, [])

    def step(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, cond(m.equal(i, 1), lambda: y * y, lambda: powers(y, w, 2))

    y = while_loop(lambda i, y: i < 3, step, [constant(0), x])[1]
    # ((x w^2)^2) w^2 = x^2 w^6
    require_both(run, gradients(y, [x, w]), {x: 3, w: 2}, [2 * 3 * 64, 9 * 6 * 32])


def test_second_derivatives_of_loops(run: Any) -> None:
    x, w = a.placeholder(np.float32, []), a.placeholder(np.float32, [])
    y = powers(x, w, 4)
    first = gradients(y, [w])[0]
    np.testing.assert_allclose(run(gradients(first, [x, w]), {x: 3, w: 2}), [4 * 8, 3 * 12 * 4])


def test_every_use_of_a_loop_counts(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    i, y, z = while_loop(lambda i, y, z: i < 2, lambda i, y, z: (i + 1, y * z, z + y), [constant(0), x, x])
    # y: x, x^2, x^2 (2x);  z: x, 2x, 2x + x^2
    require_both(run, gradients([y, z, m.cast(i, np.float32) * x], [x]), {x: 3}, [6 * 9 + 2 + 2 * 3 + 2])


def test_random_numbers_are_those_of_the_forward_run(run: Any) -> None:
    x, flag = a.placeholder(np.float32, [8]), a.placeholder(np.bool_, [])
    looped = while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y * random_uniform([8], 1, 2)), [constant(0), x], name="loop"
    )[1]
    branch = cond(flag, lambda: x * random_uniform([8]), lambda: x * random_uniform([8]))
    for y, feeds in ((looped, {}), (branch, {flag: True}), (branch, {flag: False})):
        for runs in (run, run.compiled):
            value, gradient = runs([y, gradients(y, [x])[0]], {x: np.full(8, 2), **feeds})
            np.testing.assert_allclose(gradient, value / 2, rtol=1e-6)
            assert len(set(value)) == 8


def test_effects_happen_once_although_a_branch_is_replayed(run: Any) -> None:
    counter, x = Variable(0.0), a.placeholder(np.float32, [])
    run(counter.initializer)

    def counted() -> Tensor:
        return counter.assign_add(1.0) * x

    y = cond(x > 0, counted, lambda: x)
    value, gradient = run([y, gradients(y, [x])[0]], {x: 5})
    assert (value, gradient, run(counter.read_value())) == (5, 1, 1)


def test_back_prop_switched_off_makes_constants(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    assert gradients(powers(x, 2.0, 3, back_prop=False), [x]) == [None]


def test_loops_whose_values_grow_have_no_history(run: Any) -> None:
    x = a.placeholder(np.float32, [1])
    grown = while_loop(
        lambda t: m.less(a.shape(t)[0], 5), lambda t: a.concat([t * t, t], 0), [x], shape_invariants=[[None]]
    )
    gradient = gradients(grown, [x])
    with pytest.raises(InvalidArgumentError, match=r"values of one size, found \[1\] and \[2\]"):
        run(gradient, {x: [2]})


def test_loops_too_long_to_be_followed_are_refused_when_compiled(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    with pytest.raises(LoweringError, match="runs more than 10000 times"):
        run.compiled(gradients(powers(x, x, 20_000), [x]), {x: 1})


# Gradients that are taken inside a body.


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_gradients_inside_a_branch_go_through_what_it_captures(run: Any, place: str) -> None:
    v, p = Variable([1.0, 2.0]), a.placeholder(np.bool_, [])
    run(v.initializer)
    outside = v * 2
    square: Callable[[Tensor], Tensor] = lambda z: z * z  # noqa: E731
    y = cond(p, lambda: gradients(square(outside if place == "outside" else v * 2), [v])[0], lambda: v * 3)
    require_both(run, [y], {p: True}, [[8, 16]])


def test_gradients_inside_a_loop_inside_a_branch_go_all_the_way_out(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    outer = x * x

    def looped() -> Tensor:
        middle = outer * x
        step = lambda i, y: (i + 1, y + gradients(middle * outer, [x])[0])  # noqa: E731
        result: Tensor = while_loop(lambda i, y: i < 2, step, [constant(0), x])[1]
        return result

    # d(x^5) = 5 x^4, twice
    require_both(run, [cond(x > 0, looped, lambda: x)], {x: 2}, [2 + 2 * 80])


def test_tensors_named_as_stops_are_constants_inside_too(run: Any) -> None:
    x, p = a.placeholder(np.float32, []), a.placeholder(np.bool_, [])
    z = x * x
    y = cond(p, lambda: gradients(z * x, [x], stop_gradients=[z])[0], lambda: x)
    require_both(run, [y], {x: 3, p: True}, [9])
