"""What `gradients` promises beyond the derivatives themselves."""

from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import UnconnectedGradients, gradients


def test_gradient_operations_are_named_after_their_operation(graph: Graph) -> None:
    x = constant([1.0])
    with graph.name_scope("layer"):
        y = m.tanh(x)
    (gradient,) = gradients(y, [x])
    (again,) = gradients(y, x, name="again")
    assert gradient is not None
    assert again is not None
    assert gradient.op.name == "gradients/layer/Tanh_grad/TanhGrad"
    assert again.op.name == "again/layer/Tanh_grad/TanhGrad"


def test_weights_multiply_the_results(run: Any) -> None:
    x = constant([1.0, 2.0])
    (gradient,) = gradients([x * x, x * 3], [x], grad_ys=[constant([10.0, 1.0]), None])
    np.testing.assert_array_equal(run(gradient), [23, 7])
    with pytest.raises(ShapeError, match="grad_ys of shape"):
        gradients(x * x, [x], grad_ys=[constant([1.0, 2.0, 3.0])])
    with pytest.raises(GraphError, match="1 grad_ys for 2 ys"):
        gradients([x, x], [x], grad_ys=[None])


def test_intermediate_tensors_count_along_all_paths(run: Any) -> None:
    x = constant(3.0)
    y = x * x
    found = gradients(y * y + x, [x, y])
    assert run(found[0]) == 4 * 27 + 1
    assert run(found[1]) == 18


def test_stopped_tensors_are_constants(run: Any) -> None:
    x = constant(3.0)
    y = x * x
    (gradient,) = gradients(y + x, [x], stop_gradients=[y])
    assert run(gradient) == 1
    (partial,) = gradients(a.stop_gradient(y) * x, [x])
    assert run(partial) == 9


def test_derivatives_are_partial_where_inputs_are_stopped_themselves(run: Any) -> None:
    x = constant(3.0)
    y = x * x
    assert run(gradients(x * y, [x, y], stop_gradients=[x, y])) == [9, 3]
    assert run(gradients(x * y, [x, y])) == [27, 3]


def test_unconnected_inputs_give_none_or_zeros(run: Any) -> None:
    x, y = constant([1.0, 2.0]), constant(1.0)
    assert gradients(y * 2, [x]) == [None]
    (zeros,) = gradients(y * 2, [x], unconnected_gradients=UnconnectedGradients.ZERO)
    np.testing.assert_array_equal(run(zeros), [0, 0])
    assert gradients(m.floor(x), [x]) == [None]


def test_several_uses_are_added_with_one_operation(graph: Graph) -> None:
    x = constant(1.0)
    (gradient,) = gradients(m.exp(x) + m.tanh(x) + m.sin(x), [x])
    assert gradient is not None
    assert gradient.op.type == "AddN"
    assert len(gradient.op.inputs) == 3


def test_what_cannot_be_differentiated_is_an_error(graph: Graph) -> None:
    x = constant(1.0)
    n = constant(1)
    with pytest.raises(ElementTypeError, match="int32; expected floating point"):
        gradients(n, [n])
    with pytest.raises(LookupError, match="forbidden: no"):
        gradients(a.prevent_gradient(x, "no"), [x])
    z = constant(1j)
    with pytest.raises(ElementTypeError, match="explicit grad_ys"):
        gradients([z], [z])


def test_a_thousand_operations_take_a_linear_number_of_gradient_operations(graph: Graph) -> None:
    x = constant(1.0)
    y = x
    for _ in range(1000):
        y = m.tanh(y)
    before = graph.version
    gradients(y, [x])
    assert graph.version - before == 1001


def test_gradients_can_be_taken_of_gradients(run: Any) -> None:
    x = constant(2.0)
    first = gradients(x**4.0, [x])[0]
    second = gradients(first, [x])[0]
    third = gradients(second, [x])[0]
    np.testing.assert_allclose(run([first, second, third]), [32, 48, 48], rtol=1e-5)
