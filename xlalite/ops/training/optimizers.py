"""The optimisers with one learning rate for all elements, and Adam's family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, float32, result_type
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.variable import Variable


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient."""

    _updates_rows = True

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        """The learning rate may be a number, a scalar tensor, or a function that gives one."""
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        return self._apply("ResourceApplyGradientDescent", var, (), alpha=self._learning_rate, grad=grad, **rows)


class MomentumOptimizer(Optimizer):
    """accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation."""

    _updates_rows = True

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

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum")

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        attrs = {"use_nesterov": self._use_nesterov}
        given = {"lr": self._learning_rate, "momentum": self._momentum, "grad": grad, **rows}
        return self._apply("ResourceApplyMomentum", var, ("momentum",), attrs, **given)


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
        self._powers: dict[str, Variable] = {}

    def variables(self) -> list[Variable]:
        """The running means, and the powers of the decay rates."""
        return [*super().variables(), *self._powers.values()]

    @property
    def _decay_rates(self) -> dict[str, Any]:
        return {"beta1_power": self._beta1, "beta2_power": self._beta2}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        if not self._powers:
            # Powers go down to tiny numbers, so they are never narrower than f32.
            dtype = result_type(float32, *(variable.dtype for variable in var_list))
            self._powers = {name: _power(beta, dtype, name) for name, beta in self._decay_rates.items()}
        for variable in var_list:
            self._zeros_slot(variable, "m")
            self._zeros_slot(variable, "v")

    @property
    def _hyper(self) -> dict[str, Any]:
        rates = {"lr": self._learning_rate, "beta1": self._beta1, "beta2": self._beta2, "epsilon": self._epsilon}
        return {**rates, **{name: power.value() for name, power in self._powers.items()}}

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        return self._apply(
            "ResourceApplyAdam", var, ("m", "v"), {"use_nesterov": False}, grad=grad, **self._hyper, **rows
        )

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        """The powers advance after all updates have used them."""
        advanced: list[Operation] = []
        with get_default_graph().control_dependencies(update_ops):
            for name, power in self._powers.items():
                beta = self._scalar(self._decay_rates[name], power.dtype)
                advanced.append(power.assign(power * beta, read_value=False))
        return super()._finish([*update_ops, *advanced], name_scope)


class LazyAdamOptimizer(AdamOptimizer):
    """Adam whose means stay as they are for rows that the gradient leaves out."""

    _updates_rows = True


class AdaMaxOptimizer(AdamOptimizer):
    """Adam with the largest of the decayed gradients in place of their mean square. Kingma and Ba 2015, section 7."""

    _updates_rows = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        """As for Adam."""
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    @property
    def _decay_rates(self) -> dict[str, Any]:
        return {"beta1_power": self._beta1}

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        return self._apply("ResourceApplyAdaMax", var, ("m", "v"), grad=grad, **self._hyper, **rows)


class AddSignOptimizer(Optimizer):
    """Larger steps where the gradient has the sign of its running mean. Bello et al. 2017."""

    _op_type = "ResourceApplyAddSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        """`sign_decay_fn` gives the weight of the signs for the number of the step."""
        super().__init__(use_locking, name)
        self._given = {"lr": learning_rate, "alpha": alpha, "beta": beta}
        self._sign_decay_fn = sign_decay_fn
        self._step: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """As for every optimiser; the sign decay sees the global step."""
        self._step = global_step
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m")

    def _prepare(self) -> None:
        self._given["sign_decay"] = 1.0 if self._sign_decay_fn is None else self._sign_decay_fn(self._step)

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        return self._apply(self._op_type, var, ("m",), grad=grad, **self._given, **rows)


class PowerSignOptimizer(AddSignOptimizer):
    """As `AddSignOptimizer`, with a power of `base` in place of a sum."""

    _op_type = "ResourceApplyPowerSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        """`base` is the factor where the signs agree."""
        super().__init__(learning_rate, 0, beta, sign_decay_fn, use_locking, name)
        self._given["logbase"] = math.log(base)


def _power(beta: Any, dtype: DType, name: str) -> Variable:
    return Variable(beta() if callable(beta) else beta, trainable=False, name=name, dtype=dtype)
