"""The optimisers: gradient descent, momentum and Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, float32, result_type
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.node import operation
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.variable import Variable


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        """The learning rate may be a number, a scalar tensor, or a function that gives one."""
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _update(self, variable: Variable, gradient: Tensor) -> Operation:
        rate = self._scalar(self._learning_rate, variable.dtype)
        return operation("ResourceApplyGradientDescent", [variable.handle, rate, gradient])


class MomentumOptimizer(Optimizer):
    """accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        """With `use_nesterov`, the gradient is looked at where the momentum leads. Sutskever et al. 2013."""
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            self._zeros_slot(variable, "momentum")

    def _update(self, variable: Variable, gradient: Tensor) -> Operation:
        rate = self._scalar(self._learning_rate, variable.dtype)
        momentum = self._scalar(self._momentum, variable.dtype)
        slot = self._zeros_slot(variable, "momentum")
        inputs = [variable.handle, slot.handle, rate, gradient, momentum]
        return operation("ResourceApplyMomentum", inputs, {"use_nesterov": self._use_nesterov})


class AdamOptimizer(Optimizer):
    """Steps scaled by running means of the gradient and of its square. Kingma and Ba 2015."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        """`beta1` and `beta2` are the decay rates of the two means; `epsilon` keeps the divisor from zero."""
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._powers: tuple[Variable, Variable] | None = None

    def variables(self) -> list[Variable]:
        """The running means, and the powers of the decay rates."""
        return [*super().variables(), *(self._powers or ())]

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        if self._powers is None:
            # Powers go down to tiny numbers, so they are never narrower than f32.
            dtype = result_type(float32, *(variable.dtype for variable in variables))
            with variables[0].graph.name_scope(None):
                self._powers = (_power(self._beta1, dtype, "beta1_power"), _power(self._beta2, dtype, "beta2_power"))
        for variable in variables:
            self._zeros_slot(variable, "m")
            self._zeros_slot(variable, "v")

    def _update(self, variable: Variable, gradient: Tensor) -> Operation:
        assert self._powers is not None, "slots are made before updates"
        dtype = variable.dtype
        powers = [self._scalar(power, dtype) for power in self._powers]
        numbers = (self._learning_rate, self._beta1, self._beta2, self._epsilon)
        scalars = [self._scalar(number, dtype) for number in numbers]
        slots = [self._zeros_slot(variable, "m").handle, self._zeros_slot(variable, "v").handle]
        inputs = [variable.handle, *slots, *powers, *scalars, gradient]
        return operation("ResourceApplyAdam", inputs, {"use_nesterov": False})

    def _finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        """The powers advance after all updates have used them."""
        assert self._powers is not None, "slots are made before updates"
        advanced: list[Operation] = []
        with get_default_graph().control_dependencies(updates):
            for power, beta in zip(self._powers, (self._beta1, self._beta2), strict=True):
                advanced.append(power.assign(power * self._scalar(beta, power.dtype), read_value=False))
        return [*updates, *advanced]


def _power(beta: Any, dtype: DType, name: str) -> Variable:
    return Variable(beta() if callable(beta) else beta, trainable=False, name=name, dtype=dtype)
