"""What all optimisers share: gradients of a loss, slots beside variables, and one operation that updates everything."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.op_spec import Gradient
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import zeros
from xlalite.ops.functions.control_flow import group
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.training.variable import Variable, trainable_variables

GradientAndVariable = tuple["Gradient | None", Variable]


class Optimizer(abc.ABC):
    """Minimises a loss by updating variables. Subclasses say what one update is."""

    GATE_NONE: ClassVar[int] = 0
    GATE_OP: ClassVar[int] = 1
    GATE_GRAPH: ClassVar[int] = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        """`name` prefixes the operations and slots; `use_locking` is accepted for compatibility."""
        if not name:
            raise GraphError("an optimiser needs a name")
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._hyper: dict[tuple[Any, DType], Tensor] = {}

    def get_name(self) -> str:
        """The optimiser's name."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """One operation that takes a step down the gradient of `loss`, and counts it in `global_step`.

        Raises:
            GraphError: no variable has a gradient.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(variable.name for _, variable in pairs)
            raise GraphError(
                f"{self._name}: no gradient arrives at any variable ({names}); does the loss "
                f"{getattr(loss, 'name', loss)!r} depend on them through differentiable operations?"
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[GradientAndVariable]:
        """Each variable with its gradient (None where the loss does not depend on it).

        Raises:
            GraphError: there are no variables.
        """
        value = convert_to_tensor(loss() if callable(loss) else loss)
        variables = list(var_list) if var_list is not None else trainable_variables()
        if not variables:
            raise GraphError(f"{self._name}: there are no variables to optimise")
        found = gradients(value, variables, grad_loss, colocate_gradients_with_ops=colocate_gradients_with_ops)
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """One operation that updates all variables that have a gradient, and then counts the step.

        Raises:
            GraphError: no variable has a gradient.
        """
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not pairs:
            raise GraphError(f"{self._name}: no gradients provided for any variable")
        graph = get_default_graph()
        with graph.control_dependencies(None):
            self._create_slots([variable for _, variable in pairs])
        with graph.name_scope(name or self._name) as scope:
            updates = []
            for gradient, variable in pairs:
                with graph.name_scope(f"update_{variable.op.name}"):
                    value = cast_to(convert_to_tensor(gradient), variable.dtype)
                    updates.append(self._constrained(variable, self._update(variable, value)))
            finished = self._finish(updates)
            if global_step is None:
                return group(*finished, name=scope)
            with graph.control_dependencies([group(*finished, name="update")]):
                counted: Operation = global_step.assign_add(1, name=scope, read_value=False)
            return counted

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of that name beside a variable."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Names of the slots that exist."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """The optimiser's own variables."""
        return [slot for by_variable in self._slots.values() for slot in by_variable.values()]

    @abc.abstractmethod
    def _update(self, variable: Variable, gradient: Tensor) -> Operation:
        """The operation that updates one variable."""

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Makes the slots that updates need; none by default."""
        return

    def _finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        """What must run after all updates, or the updates themselves."""
        return updates

    def _zeros_slot(self, variable: Variable, slot_name: str) -> Variable:
        """A slot of zeros beside a variable, made when it is not there."""
        slots = self._slots.setdefault(slot_name, {})
        if variable not in slots:
            dims = variable.shape.known_dims()
            name = f"{variable.op.name}/{self._name}"
            slots[variable] = _untrained(lambda: zeros(dims, variable.dtype), name, variable.graph)
        return slots[variable]

    def _scalar(self, value: Any, dtype: DType) -> Tensor:
        """A hyper-parameter, which may be a number, a tensor or a function, as a scalar of a variable's type."""
        current = value() if callable(value) else value
        return cast_to(promote(current)[0], dtype) if not isinstance(current, int | float) else _number(current, dtype)

    def _constrained(self, variable: Variable, update: Operation) -> Operation:
        if variable.constraint is None:
            return update
        with update.graph.control_dependencies([update]):
            done: Operation = variable.assign(variable.constraint(variable.value()), read_value=False)
        return done


def _number(value: float, dtype: DType) -> Tensor:
    return convert_to_tensor(float(value), dtype)


def _untrained(initial: Callable[[], Tensor], name: str, graph: Any) -> Variable:
    with graph.name_scope(None):
        return Variable(initial, trainable=False, name=name)
