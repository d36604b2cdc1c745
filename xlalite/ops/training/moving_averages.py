"""Running means of variables and tensors: `train.ExponentialMovingAverage`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math as m
from xlalite.ops.functions.array import zeros
from xlalite.ops.functions.control_flow import group
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.training.variable import Variable, global_variables, trainable_variables
from xlalite.ops.training.variable_scope import get_variable_scope


def assign_moving_average(
    variable: Variable, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves a variable towards a value by `1 - decay` of the way; gives its value after it.

    With `zero_debias`, the variable is what the mean would be if it had not started at zero. Kingma and Ba 2015, 3.
    """
    with get_default_graph().name_scope(name or "AssignMovingAvg"):
        step = 1 - cast_to(promote(decay)[0], variable.dtype)
        current = cast_to(convert_to_tensor(value), variable.dtype)
        if not zero_debias:
            return variable.assign_sub((variable.value() - current) * step)
        biased = _beside(variable, lambda: zeros(variable.shape.known_dims(), variable.dtype), "biased")
        count = _beside(variable, lambda: zeros([], variable.dtype), "local_step")
        mean = biased.assign_sub((biased.value() - current) * step)
        return variable.assign(mean / (1 - m.pow(1 - step, count.assign_add(1.0))))


class ExponentialMovingAverage:
    """Keeps shadow variables `mean = decay * mean + (1 - decay) * value`."""

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        """With `num_updates`, early means decay faster: by `(1 + num_updates) / (10 + num_updates)`."""
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """The last part of the shadow variables' names."""
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> Operation:
        """Makes the shadows that are missing, and one operation that updates all of them.

        Raises:
            ElementTypeError: something is not floating-point.
        """
        listed = list(trainable_variables() if var_list is None else var_list)
        graph = get_default_graph()
        for each in listed:
            if not each.dtype.is_floating:
                raise ElementTypeError(f"moving average of {each.name!r}, which is {each.dtype.name}")
            if isinstance(each, Variable):
                collection = graph.get_collection_ref(GraphKeys.MOVING_AVERAGE_VARIABLES)
                collection += [each] if each not in collection else []
            if each not in self._averages:
                self._averages[each] = self._shadow(each)
        with graph.name_scope(self._name):
            decay = promote(self._decay)[0]
            if self._num_updates is not None:
                count = cast_to(promote(self._num_updates)[0], decay.dtype)
                decay = m.minimum(decay, (1 + count) / (10 + count))
            debias = {each: self._zero_debias or not isinstance(each, Variable) for each in listed}
            updates = [assign_moving_average(self._averages[x], x, decay, debias[x]).op for x in listed]
            return group(*updates)

    def average(self, var: Any) -> Variable | None:
        """The shadow of a variable or tensor."""
        return self._averages.get(var)

    def average_name(self, var: Variable | Tensor) -> str:
        """The name of the shadow, whether it was made or not."""
        return self._averages[var].op.name if var in self._averages else f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Iterable[Variable] | None = None) -> dict[str, Variable]:
        """What to give to a `Saver` so that variables are restored from their means."""
        averaged = [*trainable_variables(), *get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)]
        chosen = dict.fromkeys(averaged if moving_avg_variables is None else moving_avg_variables)
        found = {self.average_name(variable): variable for variable in chosen}
        return {each.op.name: each for each in global_variables() if each not in chosen} | found

    def _shadow(self, of: Any) -> Variable:
        if isinstance(of, Variable):
            nothing = partial(zeros, of.shape, of.dtype)
            return _beside(of, nothing if self._zero_debias else of.initialized_value, self._name)
        if not isinstance(of, Tensor):
            raise GraphError(f"moving average of {of!r}: expected a variable or a tensor")
        return _beside(of, partial(zeros, of.shape, of.dtype), self._name)


def _beside(of: Variable | Tensor, initial: Callable[[], Tensor], name: str) -> Variable:
    """A variable that is called `<of>/<name>`, outside of loops and branches."""
    graph = get_default_graph().outermost
    full_name = "/".join(filter(None, (get_variable_scope().name, of.op.name, name)))
    with graph.name_scope(None), graph.control_dependencies(None):
        return Variable(initial, trainable=False, name=full_name)
