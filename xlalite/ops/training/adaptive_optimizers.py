"""The optimisers with a learning rate for each element, and those that pull variables towards zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.variable import Variable


class SlotOptimizer(Optimizer):
    """An optimiser whose update is one operation on a variable and its slots."""

    _updates_rows = True
    _op_type: ClassVar[str]
    _attrs: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, use_locking: bool, name: str, slots: Mapping[str, tuple[float, str]], **given: Any) -> None:
        """An optimiser made of parts.

        Args:
            use_locking: Accepted for compatibility.
            name: The optimiser's name.
            slots: The slots in the operation's order, with initial values and names.
            given: The other inputs of the operation, but for the gradient.
        """
        super().__init__(use_locking, name)
        self._slot_starts = dict(slots)
        self._given = given

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            for slot, (start, name) in self._slot_starts.items():
                self._get_or_make_slot(variable, start, slot, name)

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        return self._apply(self._op_type, var, tuple(self._slot_starts), self._attrs, grad=grad, **self._given, **rows)


class AdagradOptimizer(SlotOptimizer):
    """Steps divided by the root of the sum of squared gradients. Duchi et al. 2011."""

    _op_type = "ResourceApplyAdagrad"
    _attrs: ClassVar[Mapping[str, Any]] = {"update_slots": True}

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        """Raises ShapeError unless the sums start above zero."""
        _require_positive(initial_accumulator_value, "initial_accumulator_value")
        super().__init__(use_locking, name, {"accumulator": (initial_accumulator_value, name)}, lr=learning_rate)


class AdagradDAOptimizer(SlotOptimizer):
    """Adagrad that keeps the sum of all gradients and starts from zero at each step: for sparse linear models."""

    _op_type = "ResourceApplyAdagradDA"

    def __init__(
        self,
        learning_rate: Any,
        global_step: Variable,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        """`global_step` counts the steps; the penalties grow with it."""
        start = initial_gradient_squared_accumulator_value
        _require_positive(start, "initial_gradient_squared_accumulator_value")
        slots = {"gradient_accumulator": (0.0, name), "gradient_squared_accumulator": (start, name)}
        penalties = {"l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, slots, lr=learning_rate, **penalties)
        self._global_step = global_step

    def _prepare(self) -> None:
        self._given["global_step"] = cast_to(convert_to_tensor(self._global_step), int64) + 1


class AdadeltaOptimizer(SlotOptimizer):
    """Steps as large as the steps before, so that the learning rate has no unit. Zeiler 2012."""

    _op_type = "ResourceApplyAdadelta"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        """`rho` is the decay rate of both running means."""
        slots = {"accum": (0.0, name), "accum_update": (0.0, name)}
        super().__init__(use_locking, name, slots, lr=learning_rate, rho=rho, epsilon=epsilon)


class RMSPropOptimizer(SlotOptimizer):
    """Steps divided by the root of the running mean of squared gradients. Tieleman and Hinton 2012."""

    _op_type = "ResourceApplyRMSProp"

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        """With `centered`, the gradient's variance takes the place of its mean square."""
        means = {"rms": (1.0, name), "mg": (0.0, name)} if centered else {"rms": (1.0, name)}
        given = {"lr": learning_rate, "rho": decay, "momentum": momentum, "epsilon": epsilon}
        super().__init__(use_locking, name, {**means, "momentum": (0.0, name)}, **given)
        self._centered = centered

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        if not self._centered:
            return super()._resource_apply_dense(grad, var, **rows)
        slots = ("mg", "rms", "momentum")
        return self._apply("ResourceApplyCenteredRMSProp", var, slots, grad=grad, **self._given, **rows)


class FtrlOptimizer(SlotOptimizer):
    """Follow the regularised leader, for sparse linear models. McMahan et al. 2013."""

    _attrs: ClassVar[Mapping[str, Any]] = {"multiply_linear_by_lr": False}

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        """Steps get smaller as a power of the sum of squared gradients.

        Args:
            learning_rate: The learning rate.
            learning_rate_power: The power, at most 0.
            initial_accumulator_value: Where the sum of squared gradients starts.
            l1_regularization_strength: Weight of the sum of absolute values.
            l2_regularization_strength: Weight of the sum of squares.
            use_locking: Accepted for compatibility.
            name: The optimiser's name.
            accum_name: Name of the slot of sums of squares.
            linear_name: Name of the slot of the linear term.
            l2_shrinkage_regularization_strength: Weight of squares in the loss itself, at the current value.
            beta: The paper's beta, at least 0.

        Raises:
            ShapeError: a number is outside its range.
        """
        if learning_rate_power > 0:
            raise ShapeError(f"Ftrl: learning_rate_power {learning_rate_power} must not be greater than 0")
        for number, what in (
            (initial_accumulator_value, "initial_accumulator_value"),
            (l1_regularization_strength, "l1_regularization_strength"),
            (l2_regularization_strength, "l2_regularization_strength"),
            (l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength"),
        ):
            if number < 0:
                raise ShapeError(f"Ftrl: {what} {number} must not be negative")
        l2 = l2_regularization_strength + (beta / (2 * learning_rate) if beta else 0.0)
        slots = {"accum": (initial_accumulator_value, accum_name or name), "linear": (0.0, linear_name or name)}
        super().__init__(
            use_locking,
            name,
            slots,
            lr=learning_rate,
            l1=l1_regularization_strength,
            l2=l2,
            lr_power=learning_rate_power,
            l2_shrinkage=l2_shrinkage_regularization_strength,
        )

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        op_type = "ResourceApplyFtrlV2" if self._given["l2_shrinkage"] else "ResourceApplyFtrl"
        return self._apply(op_type, var, ("accum", "linear"), self._attrs, grad=grad, **self._given, **rows)


class ProximalGradientDescentOptimizer(SlotOptimizer):
    """Gradient descent with both penalties taken exactly. Duchi and Singer 2009."""

    _op_type = "ResourceApplyProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        """The penalties are weights of the sums of absolute values and of squares."""
        penalties = {"l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, {}, alpha=learning_rate, **penalties)


class ProximalAdagradOptimizer(SlotOptimizer):
    """Adagrad with both penalties taken exactly. Duchi and Singer 2009."""

    _op_type = "ResourceApplyProximalAdagrad"

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        """Raises ShapeError unless the sums start above zero."""
        _require_positive(initial_accumulator_value, "initial_accumulator_value")
        slots = {"accumulator": (initial_accumulator_value, name)}
        penalties = {"l1": l1_regularization_strength, "l2": l2_regularization_strength}
        super().__init__(use_locking, name, slots, lr=learning_rate, **penalties)


def _require_positive(number: float, what: str) -> None:
    if number <= 0:
        raise ShapeError(f"{what} {number} must be positive")
