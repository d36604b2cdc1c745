import pytest

from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.jit_scope import XLA_COMPILE, XLA_SCOPE, experimental_jit_scope as jit_scope
from xlalite.ops.functions import math as m
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients


def test_scopes_are_numbered_and_nested_ones_keep_the_outer_name(graph: Graph) -> None:
    with jit_scope():
        first = constant(1.0).op
        with jit_scope(compile_ops=False):
            nested = constant(1.0).op
    with jit_scope():
        second = constant(1.0).op
    assert (first.get_attr(XLA_COMPILE), first.get_attr(XLA_SCOPE)) == (True, "jit_scope_0")
    assert (nested.get_attr(XLA_COMPILE), nested.get_attr(XLA_SCOPE)) == (False, "jit_scope_0")
    assert second.get_attr(XLA_SCOPE) == "jit_scope_1"
    assert XLA_COMPILE not in constant(1.0).op.attrs


def test_compile_ops_may_decide_for_each_operation(graph: Graph) -> None:
    with jit_scope(compile_ops=lambda op: op.type == "Mul"):
        x = constant(1.0)
        y = x * x
    assert x.op.get_attr(XLA_COMPILE) is False
    assert y.op.get_attr(XLA_COMPILE) is True


def test_a_scope_is_left_when_its_body_fails(graph: Graph) -> None:
    with pytest.raises(RuntimeError), jit_scope():
        raise RuntimeError
    with jit_scope():
        assert constant(1.0).op.get_attr(XLA_SCOPE) == "jit_scope_1"


def test_gradients_inherit_the_scope_of_their_operation(graph: Graph) -> None:
    with jit_scope():
        x = constant(2.0)
        y = m.tanh(x)
    (gradient,) = gradients(y, [x])
    assert gradient is not None
    assert gradient.op.get_attr(XLA_COMPILE) is True
    assert gradient.op.get_attr(XLA_SCOPE) == "jit_scope_0"


def test_separate_gradients_get_a_scope_of_their_own(graph: Graph) -> None:
    with jit_scope(separate_compiled_gradients=True):
        x = constant(2.0)
        y = m.tanh(x)
    (gradient,) = gradients(y, [x], name="GA")
    assert gradient is not None
    assert gradient.op.get_attr(XLA_SCOPE) == "jit_scope_0_grad_GA"


def test_a_wish_not_to_compile_reaches_gradients(graph: Graph) -> None:
    with jit_scope(compile_ops=False):
        x = constant(2.0)
        y = m.tanh(x)
    (gradient,) = gradients(y, [x])
    assert gradient is not None
    assert gradient.op.get_attr(XLA_COMPILE) is False
