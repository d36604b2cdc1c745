"""One program for a range of sizes, where the sizes decide about nothing else."""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

RNG = np.random.default_rng(8)

varying = functools.partial(xl.jit, dynamic={"x": {0: "n"}})


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


IN_RANGES: list[Callable[[Any], Any]] = [
    softmax,
    lambda x: (x.mean(0), x.var(ddof=1), x.sum() / max(x.size, 1)),
    lambda x: (x - x.mean(0)) / (x.std(0) + 1),
    lambda x: (x @ x.T, x.T @ x),
    lambda x: x.ravel() * 2,
    lambda x: x * np.arange(len(x))[:, None],
    lambda x: np.ones(len(x)).sum() + x.sum(),
    lambda x: np.concatenate([x, x * 2]),
    lambda x: (x[::-1], x[:, [0, 2]], x[:, 1]),
    lambda x: np.tanh(x @ np.ones((3, 5))) @ np.ones((5, 2)),
    lambda x: (x[x > 0].sum(), np.where(x > 0, x, 0)),
    lambda x: {"norm": np.linalg.norm(x, axis=1)},
    lambda x: (np.cumsum(x, 0), np.cumprod(x[:, 0]), np.maximum.accumulate(x), np.cumsum(x[::-1], 0)),
    lambda x: (np.diff(x, axis=0), np.diff(x, 2, axis=0), x[1:-1], x[2:, 1:]),
    lambda x: (x[0] + x, x[-1] - x, x[-3:-1], x[1:4:2], np.roll(x, 1, 0)),
    lambda x: (np.sort(x, 0), np.argsort(x, 0), np.sort(x, axis=None), np.sort((x * 9).astype(int), 0)),
    lambda x: (x.argmax(0), x.argmin(), (x > 0).argmax(0), (x * 9).astype(int).argmin(0)),
    lambda x: xl.grad(lambda y: (np.cumsum(y, 0) ** 2).sum() + (np.diff(y, axis=0) ** 2).sum())(x),
]
BY_SIZE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: np.median(x, 0), "the operations depend on the size"),
    (lambda x: x[:: len(x) - 1], "the attributes of slice in line .* depend on the size"),
    (lambda x: np.linspace(0, 1, len(x))[:, None] * x, "constants"),
    (lambda x: x * 2 if len(x) > 6 else x / 3, "at the largest size"),
    (lambda x: np.take(x, [0, 1], 0), "no padded form of gather"),
    (lambda x: x + np.ones((len(x) % 32, 1)), "takes no other sizes: ShapeError: Incompatible shapes"),
    (lambda x: x + 1 / (len(x) - 32), "takes no other sizes: ZeroDivisionError: "),
]


def check(compiled: Any, plain: Any, x: Any) -> None:
    found, expected = (xl.nest.flatten(each(x)) for each in (compiled, plain))
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", IN_RANGES)
def test_functions_of_a_batch_are_compiled_for_ranges(function: Callable[[Any], Any]) -> None:
    compiled = varying(function)
    for n in (5, 11, 16, 17, 31):
        check(compiled, function, RNG.normal(size=(n, 3)))
    verdicts = [(each.verdict, each.reason) for each in compiled.decisions if each.decided_by == "symbolic sizes"]
    assert verdicts == [("compiled for a range", f"n <= {bound}") for bound in (16, 32)]


@pytest.mark.parametrize(("function", "reason"), BY_SIZE)
def test_what_sizes_decide_about_is_compiled_by_itself(function: Callable[[Any], Any], reason: str) -> None:
    compiled = varying(function)
    for n in (5, 11, 16, 17):
        check(compiled, function, RNG.normal(size=(n, 3)))
    decisions = [each for each in compiled.decisions if each.verdict == "compiled for one size"]
    assert decisions
    assert any(re.search(reason, each.reason) for each in decisions)


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_sizes(n: int) -> None:
    compiled = varying(lambda x: x * 2 + x.sum())
    check(compiled, lambda x: x * 2 + x.sum(), RNG.normal(size=(n, 3)))


def test_padding_is_never_seen() -> None:
    compiled = varying(lambda x: (1 / x, (1 / x).sum(), np.log(x).min(), (x == 0).any(), np.exp(x).prod()))
    for n in (3, 7):
        check(compiled, lambda x: (1 / x, (1 / x).sum(), np.log(x).min(), (x == 0).any(), np.exp(x).prod()), np.ones(n))


def test_several_sizes_and_nested_arguments() -> None:
    def scores(x: Any, state: Any) -> Any:
        return x @ state["w"].T + state["b"], x.shape[0] * state["w"].shape[0]

    compiled = xl.jit(scores, dynamic={"x": {0: "n"}, "state": {0: "m"}})
    for n, m in ((3, 4), (7, 7), (12, 5), (16, 16)):
        x, state = RNG.normal(size=(n, 3)), {"w": RNG.normal(size=(m, 3)), "b": RNG.normal(size=m)}
        found, count = compiled(x, state)
        np.testing.assert_allclose(found, scores(x, state)[0])
        assert count == n * m


def test_arguments_that_are_assigned_to_are_those_of_the_caller() -> None:
    def grow(x: Any, step: Any) -> None:
        x += step * x.sum()

    compiled = xl.jit(grow, donate_argnames="x", dynamic={"x": {0: "n"}})
    for n in (3, 6):
        x, expected = np.ones(n), np.ones(n)
        compiled(x, 0.5)
        grow(expected, 0.5)
        np.testing.assert_allclose(x, expected)
    assert sum(each.verdict == "compiled for a range" for each in compiled.decisions) == 1
    (donation,) = [each for each in compiled.decisions if each.decided_by == "donation"]
    assert donation.subject == ("grow", "x")
    assert donation.reason == "a program for several sizes has larger arrays; what is assigned is copied"


def test_sizes_of_one_name_are_equal() -> None:
    compiled = xl.jit(lambda x, y: x.sum() + y.sum(), dynamic={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(TracingError, match="the size 'n' is 3 and 4"):
        compiled(np.ones(3), np.ones(4))
    with pytest.raises(TracingError, match="x has no dimension 0, for 'n'"):
        compiled(np.float64(3), np.ones(4))
    with pytest.raises(ValueError, match="dynamic argument 'z' is none of x"):
        xl.jit(lambda x: x, dynamic={"z": {0: "n"}})


def test_a_program_for_several_sizes_is_named_once() -> None:
    compiled = varying(softmax)
    for size in (3, 5, 17):
        compiled(np.ones((size, 4), np.float32))
    shapes = "(f32[<=16,4]) -> (f32[<=16,4]); (f32[<=32,4]) -> (f32[<=32,4])"
    assert repr(compiled) == f"<jit of softmax, compiled for {shapes}>"
