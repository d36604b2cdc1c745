"""`jit_scope` from the user's side: what is compiled with the JIT off and on."""

from collections.abc import Callable
from typing import Any

import pytest

from xlalite.contrib.compiler.jit import experimental_jit_scope
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math as m, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.helpers.gradients import gradients

Make = Callable[..., Any]


@pytest.fixture
def x(graph: Graph) -> Tensor:
    """A fed vector."""
    return placeholder(dtypes.float32, [None], "x")


def grown(tensor: Tensor, count: int = 4) -> Tensor:
    for _ in range(count):
        tensor = m.tanh(tensor)
    return tensor


def test_a_marked_operation_is_compiled_with_the_jit_off_whatever_the_size(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        y = m.tanh(x)
    clustered = cluster([y], [x], global_jit=False)
    assert clustered.names == [{y.op.name}]
    kept = [d.reason for d in clustered.result.decisions if d.verdict == "kept"]
    assert kept == ["an operation of it is marked with _XlaCompile=true"]


def test_neighbours_that_are_not_marked_are_taken_along(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        y = m.tanh(x)
    z = m.exp(y)
    assert cluster([z], [x], global_jit=False).names == [{y.op.name, z.op.name}]


def test_an_outer_scope_that_compiles_nothing_leaves_neighbours_alone(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope(compile_ops=False):
        with experimental_jit_scope():
            y = m.tanh(x)
        z = m.exp(y)
    clustered = cluster([z], [x], global_jit=False)
    assert clustered.names == [{y.op.name}]
    assert clustered.reason(z) == "marked with _XlaCompile=false"


def test_clusters_without_a_mark_are_dissolved_with_the_jit_off(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        y = m.tanh(x)
    other = grown(m.exp(x))
    clustered = cluster([y, other], [x], global_jit=False)
    assert clustered.names == [{y.op.name}]
    assert clustered.reason(other) == "the JIT is off and no operation of its cluster is marked"


def test_scopes_stay_apart_with_the_jit_off(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        first = grown(x)
    with experimental_jit_scope():
        second = grown(first)
    clustered = cluster([second], [x], global_jit=False)
    assert [len(names) for names in clustered.names] == [4, 4]
    (pair,) = (d for d in clustered.result.decisions if d.verdict == "not joined")
    assert pair.reason == "they belong to different JIT scopes"


def test_scopes_do_not_count_with_the_jit_on(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        first = grown(x)
    with experimental_jit_scope():
        second = grown(first)
    assert [len(names) for names in cluster([second], [x]).names] == [8]


def test_an_unmarked_operation_between_two_scopes_joins_one_of_them(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        first = m.tanh(x)
    between = m.exp(first)
    with experimental_jit_scope():
        second = m.tanh(between)
    clustered = cluster([second], [x], global_jit=False)
    assert sorted(map(len, clustered.names)) == [1, 2]
    assert {first.op.name, second.op.name} not in clustered.names


def test_a_nested_scope_can_exclude(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        first = grown(x)
        with experimental_jit_scope(compile_ops=False):
            outside = m.tanh(first)
        second = grown(outside)
    clustered = cluster([second], [x], global_jit=False)
    assert [len(names) for names in clustered.names] == [4, 4]
    assert clustered.reason(outside) == "marked with _XlaCompile=false"


def test_a_function_chooses_what_to_compile(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope(compile_ops=lambda op: op.type == "Tanh"):
        y = grown(x)
        z = m.exp(y)
    clustered = cluster([z], [x], global_jit=False)
    assert [len(names) for names in clustered.names] == [4]
    assert clustered.reason(z) == "marked with _XlaCompile=false"


@pytest.mark.parametrize(("separate", "clusters"), [(False, 1), (True, 2)])
def test_gradients_are_compiled_with_their_scope_or_apart(
    x: Tensor, cluster: Make, separate: bool, clusters: int
) -> None:
    with experimental_jit_scope(separate_compiled_gradients=separate):
        y = grown(x)
    (gradient,) = gradients(y, [x], name="GA")
    clustered = cluster([y, gradient], [x], global_jit=False)
    marked = [names for names in clustered.names if y.op.name in names or gradient.op.name in names]
    assert len(marked) == clusters


def test_what_cannot_be_compiled_stays_outside_a_scope_silently(x: Tensor, cluster: Make) -> None:
    with experimental_jit_scope():
        shuffled = random_ops.random_shuffle(x)
        y = m.tanh(shuffled)
    clustered = cluster([y], [x], global_jit=False)
    assert clustered.names == [{y.op.name}]
    assert clustered.reason(shuffled).startswith("cannot be compiled")
