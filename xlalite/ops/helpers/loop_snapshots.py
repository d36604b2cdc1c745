"""What loop variables were, computed once more: for gradients of loops that nobody knows the number of iterations of.

The loop runs a second time and leaves its variables at some iterations, at equal distances; from there on it runs a
third time, up to the iteration that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.function_graph import FunctionGraph, replay_function, trace_function
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.variable_use import changed_in
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation

_ROWS = 64
"""How many states are left: loops of no more iterations run twice, longer ones more often."""


@dataclass(frozen=True, slots=True)
class LoopSnapshots:
    """What some loop variables were at iterations 0, `distance`, 2 `distance`, ...

    Attributes:
        operation: The loop.
        distance: A number of the graph in which the gradient is made.
        rows: One tensor for each variable, with a row for each of those iterations.
    """

    operation: Operation
    distance: Tensor
    rows: Sequence[Tensor]

    def at(self, iteration: Tensor) -> list[Tensor]:
        """The loop variables at the start of an iteration."""
        place = node("FloorDiv", [iteration, self._distance()])
        start = [node("GatherV2", [get_default_graph().capture(each), place, constant(0)]) for each in self.rows]
        begin = node("Mul", [place, self._distance()])
        return _run(self.operation, "again", begin, iteration, start, lambda _, state, __: [])[0]

    def _distance(self) -> Tensor:
        return get_default_graph().capture(self.distance)


def can_run_again(op: Operation) -> bool:
    """Whether a `While` does the same every time, on arrays of known shapes."""
    body: FunctionGraph = op.get_attr("body")
    state = body.inputs[: len(body.outputs)]
    known = all(each.shape.is_fully_defined() and not each.dtype.is_host_only for each in state)
    return known and not body.recorded and not changed_in(body)


def snapshots_of(op: Operation) -> LoopSnapshots:
    """Runs a loop once more, which `can_run_again`."""
    state = op.inputs[: len(op.get_attr("body").outputs)]
    count = op.outputs[len(state)]
    distance = node("Maximum", [node("FloorDiv", [count + (_ROWS - 1), constant(_ROWS)]), constant(1)])
    # Behind the rows is one for what nobody needs.
    rows = [
        node("Fill", [constant(np.array([_ROWS + 1, *each.shape.known_dims()], np.int32)), _zero(each)])
        for each in op.get_attr("body").inputs[: len(state)]
    ]

    def keep(number: Tensor, values: Sequence[Tensor], kept: Sequence[Tensor]) -> list[Tensor]:
        apart = get_default_graph().capture(distance)
        is_kept = node("Equal", [node("FloorMod", [number, apart]), constant(0)])
        place = node("SelectV2", [is_kept, node("FloorDiv", [number, apart]), constant(_ROWS)])
        index = node("Reshape", [place, constant(np.array([1, 1], np.int32))])
        return [
            node("TensorScatterUpdate", [each, index, node("ExpandDims", [value, constant(0)])])
            for each, value in zip(kept, values, strict=True)
        ]

    return LoopSnapshots(op, distance, _run(op, "snapshots", constant(0), count, state, keep, rows)[1])


def _zero(like: Tensor) -> Tensor:
    return constant(np.zeros((), like.dtype.numpy_dtype))


def _run(
    op: Operation,
    name: str,
    begin: Tensor,
    end: Tensor,
    state: Sequence[Tensor],
    keep: Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], list[Tensor]],
    kept: Sequence[Tensor] = (),
) -> tuple[list[Tensor], list[Tensor]]:
    """The iterations from `begin` to `end` of a loop, and what is kept of what they start from."""
    body: FunctionGraph = op.get_attr("body")
    starts = [begin, *state, *kept]
    shapes = [begin.shape, *(each.shape for each in body.inputs[: len(state)]), *(each.shape for each in kept)]
    signature = [(each.dtype, shape) for each, shape in zip(starts, shapes, strict=True)]
    first_capture = len(state) + len(op.get_attr("cond").captures)

    def condition(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        return [node("Less", [arguments[0], get_default_graph().capture(end)])]

    def step(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        number, values, rows = arguments[0], arguments[1 : 1 + len(state)], arguments[1 + len(state) :]
        captured = [get_default_graph().capture(each) for each in op.inputs[first_capture:]]
        known = dict(zip(body.inputs, (*values, *captured), strict=True))
        return [number + 1, *replay_function(body, body.outputs, known), *keep(number, values, rows)]

    graph = get_default_graph()
    graphs = {
        "cond": trace_function(f"{body.name}_{name}_cond", graph, signature, condition),
        "body": trace_function(f"{body.name}_{name}", graph, signature, step),
    }
    inputs = [*starts, *graphs["cond"].captured, *graphs["body"].captured]
    found = operation("While", inputs, graphs).outputs[1 : len(starts)]
    return list(found[: len(state)]), list(found[len(state) :])
