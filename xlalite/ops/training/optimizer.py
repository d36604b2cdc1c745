"""What all optimisers share: gradients of a loss, slots beside variables, and one operation that updates everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.op_spec import Gradient, find_spec
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import fill
from xlalite.ops.functions.control_flow import group
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.training.variable import Variable, trainable_variables
from xlalite.ops.training.variable_scope import get_variable_scope

GradientAndVariable = tuple["Gradient | None", Variable]


class Optimizer:
    """Minimises a loss by updating variables. Subclasses say what one update is, in `_resource_apply_dense`."""

    GATE_NONE: ClassVar[int] = 0
    GATE_OP: ClassVar[int] = 1
    GATE_GRAPH: ClassVar[int] = 2
    # Whether rows that a gradient leaves out stay as they are, slots and all.
    _updates_rows: ClassVar[bool] = False

    def __init__(self, use_locking: bool, name: str) -> None:
        """`name` prefixes the operations and slots; `use_locking` is accepted for compatibility."""
        if not name:
            raise GraphError("an optimiser needs a name")
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}

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
            self._prepare()
            updates = []
            for gradient, variable in pairs:
                with graph.name_scope(f"update_{variable.op.name}"):
                    updates.append(self._constrained(variable, self._update(gradient, variable)))
            if global_step is None:
                last = self._finish(updates, scope)
            else:
                with graph.control_dependencies([self._finish(updates, "update")]):
                    last = global_step.assign_add(1, name=scope, read_value=False)
        graph.get_collection_ref(GraphKeys.TRAIN_OP).append(last)
        return last

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of that name beside a variable."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Names of the slots that exist."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """The optimiser's own variables, by their names."""
        slots = [slot for by_variable in self._slots.values() for slot in by_variable.values()]
        return sorted(slots, key=lambda slot: slot.name)

    def _update(self, grad: Gradient, var: Variable) -> Operation:
        if isinstance(grad, IndexedSlices) and self._updates_rows:
            rows = cast_to(grad.values, var.dtype)
            return self._resource_apply_dense(rows, var, indices=grad.indices)
        return self._resource_apply_dense(cast_to(convert_to_tensor(grad), var.dtype), var)

    def _resource_apply_dense(self, grad: Tensor, var: Variable, **rows: Any) -> Operation:
        """The operation that updates one variable; by default what `_apply_dense` gives.

        Args:
            grad: The gradient.
            var: The variable.
            rows: For an optimiser that updates rows, perhaps `indices`: to which rows those of the gradient belong.
        """
        return self._apply_dense(grad, var)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        """Another name under which a subclass may say what one update is."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a variable is updated")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Makes the slots that updates need; none by default."""
        return

    def _prepare(self) -> None:
        """Makes what all updates share; nothing by default."""
        return

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        """One operation, called `name_scope`, that waits for all updates."""
        return group(*update_ops, name=name_scope)

    def _apply(
        self,
        op_type: str,
        variable: Variable,
        slots: Sequence[str],
        attrs: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Operation:
        """The operation `op_type` on a variable and its slots; the other inputs by their names in the declaration."""
        handles = [variable.handle, *(self._slots[slot][variable].handle for slot in slots)]
        if "indices" in given:
            op_type = op_type.replace("Resource", "ResourceSparse")
        names = find_spec(op_type).inputs[len(handles) :]
        whole = ("grad", "indices", "global_step")
        others = [given[name] if name in whole else self._scalar(given[name], variable.dtype) for name in names]
        return operation(op_type, [*handles, *others], attrs)

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str | None = None) -> Variable:
        """A slot of zeros beside a variable, made when it is not there."""
        return self._get_or_make_slot(var, 0, slot_name, op_name)

    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str | None = None) -> Variable:
        """A slot beside a variable, called `<variable>/<op_name>`, made when it is not there.

        Args:
            var: The variable.
            val: The initial value; a number stands for all elements.
            slot_name: What the optimiser calls the slot.
            op_name: The name of the optimiser by default.
        """
        slots = self._slots.setdefault(slot_name, {})
        if var not in slots:
            dims, outer = var.shape.known_dims(), get_variable_scope().name
            name = "/".join(filter(None, (outer, var.op.name, op_name or self._name)))
            initial = (lambda: fill(dims, convert_to_tensor(val, var.dtype))) if isinstance(val, int | float) else val
            with var.graph.name_scope(None):
                slots[var] = Variable(initial, trainable=False, name=name, dtype=var.dtype)
        return slots[var]

    def _call_if_callable(self, param: Any) -> Any:
        """What a hyper-parameter that is a function gives, or the parameter itself."""
        return param() if callable(param) else param

    def _scalar(self, value: Any, dtype: DType) -> Tensor:
        """A hyper-parameter, which may be a number, a tensor or a function, as a scalar of a variable's type."""
        current = self._call_if_callable(value)
        if isinstance(current, int | float):
            return convert_to_tensor(float(current), dtype)
        return cast_to(promote(current)[0], dtype)

    def _constrained(self, variable: Variable, update: Operation) -> Operation:
        if variable.constraint is None:
            return update
        with update.graph.control_dependencies([update]):
            done: Operation = variable.assign(variable.constraint(variable.value()), read_value=False)
        return done
