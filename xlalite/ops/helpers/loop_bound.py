"""How often a loop can run at the most, as far as that is known when it is compiled.

A condition is a conjunction; each part that depends on a few integers only (a counter and its limit) bounds the loop.
Those integers are followed through the body until a part fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xlalite.framework.graph.function_graph import FunctionGraph, producers_of
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.constant_resolver import ConstantResolver
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.records import dataclass

MAX_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class LoopCounter:
    """The integers that bound a `While`.

    Attributes:
        operation: The loop.
        parts: Parts of the condition that depend on nothing else.
        variables: Numbers of the loop variables among the integers.
        positions: The loop's inputs that give the integers their values: starts and captures.
    """

    operation: Operation
    parts: tuple[Tensor, ...]
    variables: tuple[int, ...]
    positions: tuple[int, ...]

    def bound(self, ctx: LoweringContext) -> int:
        """The number of iterations after which a part fails.

        Raises:
            LoweringError: an input is not known, or the loop runs too often to be followed.
        """
        op = self.operation
        cond, body = op.get_attr("cond"), op.get_attr("body")
        values: dict[int, Array] = {}
        for position in self.positions:
            value = ctx.constant_or_none(op.inputs[position])
            if value is None:
                raise LoweringError(
                    f"{op.describe()}: input {position} must be known to bound the number of iterations"
                )
            values[position] = value
        state = {number: values[number] for number in self.variables}
        for count in range(MAX_ITERATIONS + 1):
            if not all(bool(holds) for holds in _evaluate(ctx, op, cond, self.parts, {**values, **state})):
                return count
            following = [body.outputs[number] for number in self.variables]
            state = dict(zip(self.variables, _evaluate(ctx, op, body, following, {**values, **state}), strict=True))
        raise LoweringError(f"{op.describe()} runs more than {MAX_ITERATIONS} times: its gradient is not compiled")


def find_counter(op: Operation) -> LoopCounter | None:
    """The integers that bound a `While`; None when its condition looks at nothing but other values.

    A gradient runs as often as the loop through which it goes backwards, and is bounded by its integers.
    """
    if (forward := _forward_loop(op)) is not None:
        return find_counter(forward)
    cond, body = op.get_attr("cond"), op.get_attr("body")
    count = len(body.outputs)
    parts, variables, positions = [], set(), set()
    for part in parts_of(cond.outputs[0]):
        found = _followed(op, cond, [part])
        waiting = [position for position in found or () if position < count]
        followed = set(waiting)
        while waiting and found is not None:
            more = _followed(op, body, [body.outputs[waiting.pop()]])
            found = None if more is None else found | more
            fresh = [position for position in more or () if position < count and position not in followed]
            followed.update(fresh)
            waiting += fresh
        if found is not None:
            parts.append(part)
            variables |= followed
            positions |= found
    return LoopCounter(op, tuple(parts), tuple(sorted(variables)), tuple(sorted(positions))) if parts else None


def is_bounded(op: Operation) -> bool:
    """Whether it is known how often a `While` can run at the most, or will be where it is compiled."""
    counter = find_counter(op)
    if counter is None or not op.graph.is_traced:
        return counter is not None
    resolver = ConstantResolver()
    return all(resolver.resolve(counter.operation.inputs[position]) is not None for position in counter.positions)


def _forward_loop(op: Operation) -> Operation | None:
    """The loop `op` is the gradient of: from the number of its last iteration down to 0."""
    cond, body = op.get_attr("cond"), op.get_attr("body")
    if not body.outputs:
        return None
    start = op.inputs[0].op
    steps = ((start, "Sub", 1), (cond.outputs[0].op, "GreaterEqual", 0), (body.outputs[0].op, "Sub", 1))
    if not all(step.type == kind and _is_constant(step.inputs[1], value) for step, kind, value in steps):
        return None
    if cond.outputs[0].op.inputs[0] is not cond.inputs[0] or body.outputs[0].op.inputs[0] is not body.inputs[0]:
        return None
    iterations = start.inputs[0]
    is_count = iterations.op.type == "While" and iterations.value_index == len(iterations.op.get_attr("body").outputs)
    return iterations.op if is_count else None


def _is_constant(tensor: Tensor, value: int) -> bool:
    return tensor.op.type == "Const" and not tensor.shape.dims and int(tensor.op.get_attr("value")) == value


def parts_of(condition: Tensor) -> list[Tensor]:
    """What a condition is the conjunction of."""
    if condition.op.type != "LogicalAnd":
        return [condition]
    return [part for side in condition.op.inputs for part in parts_of(side)]


def _followed(op: Operation, function: FunctionGraph, tensors: list[Tensor]) -> set[int] | None:
    """The loop's inputs that tensors of a function depend on; None when one of them is more than an integer or two."""
    producers = producers_of(tensors, function.inputs, behind_shapes=False)
    if any(operation.spec.is_stateful for operation in producers) or not all(map(_is_counting, tensors)):
        return None
    found = set()
    for operation in producers:
        for tensor in operation.inputs:
            if operation.spec.is_metadata:
                if tensor not in function.inputs and not tensor.shape.is_fully_defined():
                    return None
            elif tensor in function.inputs:
                found.add(tensor)
    found.update(tensor for tensor in tensors if tensor in function.inputs)
    return {_position(op, function, source) for source in found} if all(map(_is_counting, found)) else None


def _is_counting(tensor: Tensor) -> bool:
    rank = tensor.shape.rank
    return (tensor.dtype.is_integer or tensor.dtype.is_bool) and rank is not None and rank <= 1


def _position(op: Operation, function: FunctionGraph, source: Tensor) -> int:
    """Which input of the loop an input of its condition or body is."""
    count = len(op.get_attr("body").outputs)
    number = function.inputs.index(source)
    in_cond = function is op.get_attr("cond")
    return number if number < count or in_cond else number + len(op.get_attr("cond").captures)


def _evaluate(
    ctx: LoweringContext, op: Operation, function: FunctionGraph, tensors: Iterable[Tensor], values: Mapping[int, Array]
) -> list[Array]:
    resolver = ConstantResolver()
    for tensor in function.inputs:
        position = _position(op, function, tensor)
        if position in values:
            resolver.define(tensor, values[position])
        elif not tensor.dtype.is_host_only:
            resolver.define_dims(tensor, ctx.dims(op.inputs[position]))
    found = []
    for tensor in tensors:
        value = resolver.resolve(tensor)
        if value is None:
            raise LoweringError(
                f"{op.describe()}: {tensor.name!r} bounds the iterations, but {resolver.explain(tensor)}"
            )
        found.append(value)
    return found
