"""Repeats the operations of a function's graph for many examples at once, asking a rule for each type of operation.

Of every tensor of the function there is a `Part`: the tensor that holds it for all examples, or is the same for all.
An operation without a rule runs example by example, in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.function_graph import FunctionGraph, producers_of
from xlalite.framework.graph.op_spec import OpGroup
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.scoped_creation import GRADIENT_OVERRIDE
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import TracingError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions import array
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import operation
from xlalite.tracing.loops import over_numbers


@dataclass(frozen=True, slots=True)
class Part:
    """A value of a function, for all examples.

    Attributes:
        tensor: The value.
        axis: Its dimension of examples; None if it is the same for all.
    """

    tensor: Tensor
    axis: int | None


class Batch:
    """The parts of a function's tensors.

    Attributes:
        size: The number of examples.
        parts: What is known so far.
    """

    def __init__(self, size: int, parts: Mapping[Tensor, Part]) -> None:
        self.size = size
        self.parts = dict(parts)

    def replay(self, outputs: Sequence[Tensor], function: FunctionGraph) -> list[Part]:
        """The parts of some of the function's tensors, after what they are computed from was added to the graph."""
        for tensor, inner in function.captures.items():
            self.parts.setdefault(inner, Part(tensor, None))
        needed = producers_of(outputs, self.parts)
        for each in function.get_operations():
            if each in needed:
                found = self._repeated(each)
                self.parts.update(zip(each.outputs, found, strict=True))
        return [self.parts[output] for output in outputs]

    def inside(self, function: FunctionGraph, arguments: Sequence[Part]) -> list[Part]:
        """The results of a function that an operation calls."""
        parts = dict(zip(function.inputs, arguments, strict=True))
        return Batch(self.size, parts).replay(function.outputs, function)

    def front(self, part: Part) -> Tensor:
        """A part with the examples in the first dimension, repeated if it is the same for all."""
        return self.moved(part, 0)

    def moved(self, part: Part, axis: int) -> Tensor:
        """A part with the examples in a certain dimension, repeated if it is the same for all."""
        if part.axis is None:
            dims = list(part.tensor.shape.known_dims())
            wide = array.expand_dims(part.tensor, axis)
            return array.broadcast_to(wide, [*dims[:axis], self.size, *dims[axis:]])
        if part.axis == axis:
            return part.tensor
        order = [i for i in range(rank_of(part.tensor)) if i != part.axis]
        return array.transpose(part.tensor, [*order[:axis], part.axis, *order[axis:]])

    def _repeated(self, op: Operation) -> Sequence[Part]:
        parts = [self.parts[tensor] for tensor in op.inputs]
        if all(part.axis is None for part in parts):
            return [Part(tensor, None) for tensor in copied(op, [part.tensor for part in parts])]
        sizes = [constant_value(output) for output in op.outputs] if op.spec.is_metadata else [None]
        if all(value is not None for value in sizes):
            return [Part(constant(value), None) for value in sizes]
        kind = GRADIENT_OVERRIDE if GRADIENT_OVERRIDE in op.attrs else op.type
        if kind not in RULES and op.spec.group is OpGroup.ELEMENTWISE:
            kind = OpGroup.ELEMENTWISE.value
        return RULES[kind](self, op, parts) if kind in RULES else self.one_by_one(op, parts)

    def one_by_one(self, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
        """An operation without a rule, in a loop over the examples."""
        if op.spec.is_stateful or any(isinstance(value, FunctionGraph) for value in op.attrs.values()):
            raise TracingError(f"vmap: there is no rule for {op.describe()}")
        rows = [part.tensor if part.axis is None else self.front(part) for part in parts]

        def one(number: Tensor) -> list[Tensor]:
            given = [
                row if part.axis is None else array.gather(row, number) for part, row in zip(parts, rows, strict=True)
            ]
            return copied(op, given)

        kinds = [(output.dtype, output.shape.known_dims()) for output in op.outputs]
        return [Part(tensor, 0) for tensor in over_numbers(self.size, one, kinds)]


BatchRule = Callable[[Batch, Operation, Sequence[Part]], Sequence[Part]]

RULES: dict[str, BatchRule] = {}


def batches(*op_types: str) -> Callable[[BatchRule], BatchRule]:
    """Says what operations of these types are for many examples."""

    def register(rule: BatchRule) -> BatchRule:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return register


def copied(op: Operation, inputs: Sequence[Tensor], **changed: Any) -> list[Tensor]:
    """An operation on other inputs, perhaps with other attributes."""
    own = {name: op.get_attr(name) for name in op.spec.attrs}
    notes = {name: value for name, value in op.attrs.items() if name.startswith("_")}
    with get_default_graph().attribute_scope(notes):
        return list(operation(op.type, inputs, {**own, **changed}, op.name.rpartition("/")[2]).outputs)


def known(op: Operation, name: str) -> np.ndarray[Any, Any]:
    """The value of an input that must be the same for all examples and known.

    Raises:
        TracingError: It is not.
    """
    (position,) = op.spec.input_range(name, len(op.inputs))
    value = constant_value(op.inputs[position])
    if value is None:
        raise TracingError(f"vmap: {name} of {op.describe()} must be known while the function is traced")
    return np.asarray(value)


def rank_of(tensor: Tensor) -> int:
    """The number of a tensor's dimensions, whose sizes need not be known."""
    assert tensor.shape.rank is not None, "what is traced has a known rank"
    return tensor.shape.rank


def dims_of(op: Operation) -> list[int]:
    """The sizes of an operation's first result, for one example."""
    return list(op.outputs[0].shape.known_dims())
