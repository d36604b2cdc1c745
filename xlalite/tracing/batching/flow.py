"""Loops and branches for many examples.

A loop that examples leave at different times runs until the last one has: those that are through keep what they have,
and each counts its own iterations. A branch that they take differently is taken both ways, and each example chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.function_graph import FunctionGraph, trace_function
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.loop_bound import parts_of
from xlalite.ops.helpers.node import node, operation
from xlalite.tracing.batching.batch import Batch, Part, batches

_ROUNDS = 5
"""After so many looks at the body its variables stay as they are."""


@batches("While")
def loop(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    cond, body = op.get_attr("cond"), op.get_attr("body")
    _check(op, body)
    count, first_of_body = len(body.outputs), len(body.outputs) + len(cond.captures)
    own_cond, own_body = list(parts[count:first_of_body]), list(parts[first_of_body:])
    axes = [part.axis for part in parts[:count]]

    def signature() -> list[tuple[DType, Any]]:
        kinds: list[tuple[DType, Any]] = []
        for tensor, axis in zip(body.inputs, axes, strict=False):
            dims = list(tensor.shape.known_dims())
            kinds.append((tensor.dtype, dims if axis is None else [*dims[:axis], batch.size, *dims[axis:]]))
        return kinds

    def holds(arguments: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The parts of the condition that are the same for all examples, and those that are not."""
        given = [Part(x, axis) for x, axis in zip(arguments, axes, strict=False)]
        inner = Batch(batch.size, dict(zip(cond.inputs, [*given, *own_cond], strict=True)))
        parts = inner.replay(parts_of(cond.outputs[0]), cond)
        return [x.tensor for x in parts if x.axis is None], [batch.front(x) for x in parts if x.axis is not None]

    def following(arguments: Sequence[Tensor]) -> list[Part]:
        given = [Part(x, axis) for x, axis in zip(arguments, axes, strict=False)]
        return batch.inside(body, [*given, *own_body])

    differs = False
    for _ in range(_ROUNDS):
        found: list[Part] = []
        own: list[Tensor] = []

        def look(arguments: tuple[Tensor, ...], found: list[Part] = found, own: list[Tensor] = own) -> Sequence[Tensor]:
            found[:] = following(arguments)
            own.extend(holds(arguments)[1])
            return []

        _trace("look", signature(), look)
        differs = bool(own)
        # What an example that is through would have is another thing than what the others have.
        ends = [axis is None and differs and bool(op.outputs[i].consumers()) for i, axis in enumerate(axes)]
        new = [
            part.axis if part.axis is not None else 0 if end and axis is None else axis
            for part, axis, end in zip(found, axes, ends, strict=True)
        ]
        if new == axes:
            break
        axes = new

    def condition(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        same, own = holds(arguments)
        if own:
            first = constant(np.array([0], np.int32))
            # What is the same for all stays a part of its own, by which iterations can be counted.
            same.append(node("Any", [reduce(math.logical_and, own), first], {"keep_dims": False}))
        return [reduce(math.logical_and, same)]

    def step(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        results = [_placed(batch, part, axis) for part, axis in zip(following(arguments), axes, strict=True)]
        if not differs:
            return results
        runs = reduce(math.logical_and, holds(arguments)[1])
        kept = [
            result if axis is None else _chosen(runs, axis, result, before)
            for result, before, axis in zip(results, arguments, axes, strict=False)
        ]
        return [*kept, arguments[count] + node("Cast", [runs], {"dtype": arguments[count].dtype})]

    starts = [_placed(batch, part, axis) for part, axis in zip(parts, axes, strict=False)]
    kinds = signature()
    if differs:
        starts.append(constant(np.zeros(batch.size, np.int32)))
        kinds.append((starts[-1].dtype, starts[-1].shape))
    graphs = {"cond": _trace(cond.name, kinds, condition), "body": _trace(body.name, kinds, step)}
    inputs = [*starts, *graphs["cond"].captured, *graphs["body"].captured]
    made = operation("While", inputs, graphs, op.name.rpartition("/")[2]).outputs
    finals = [Part(tensor, axis) for tensor, axis in zip(made, axes, strict=False)]
    iterations = Part(made[count], 0) if differs else Part(made[count], None)
    first_history = len(starts) + 1
    histories = [Part(made[first_history + i], None if axis is None else axis + 1) for i, axis in enumerate(axes)]
    return [*finals, iterations, *histories]


@batches("If")
def branch(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    sides = [op.get_attr("then_branch"), op.get_attr("else_branch")]
    for side in sides:
        _check(op, side)
    split = 1 + len(sides[0].captures)
    given = [list(parts[1:split]), list(parts[split:])]
    if parts[0].axis is not None:
        runs = batch.front(parts[0])
        both = [batch.inside(side, own) for side, own in zip(sides, given, strict=True)]
        return [Part(_chosen(runs, 0, *map(batch.front, pair)), 0) for pair in zip(*both, strict=True)]
    found: list[list[Part]] = []
    for side, own in zip(sides, given, strict=True):

        def look(_: tuple[Tensor, ...], side: FunctionGraph = side, own: list[Part] = own) -> Sequence[Tensor]:
            found.append(batch.inside(side, own))
            return []

        _trace("look", [], look)
    axes = [one.axis if one.axis is not None else other.axis for one, other in zip(*found, strict=True)]
    graphs = []
    for side, own in zip(sides, given, strict=True):

        def results(_: tuple[Tensor, ...], side: FunctionGraph = side, own: list[Part] = own) -> Sequence[Tensor]:
            return [_placed(batch, part, axis) for part, axis in zip(batch.inside(side, own), axes, strict=True)]

        graphs.append(_trace(side.name, [], results))
    inputs = [parts[0].tensor, *graphs[0].captured, *graphs[1].captured]
    made = operation("If", inputs, {"then_branch": graphs[0], "else_branch": graphs[1]}).outputs
    return [Part(tensor, axis) for tensor, axis in zip(made, axes, strict=False)]


def _check(op: Operation, function: FunctionGraph) -> None:
    if function.recorded:
        raise TracingError(f"vmap: {op.describe()} draws random numbers of a session inside")


def _trace(
    name: str, kinds: Sequence[tuple[DType, Any]], body: Callable[[tuple[Tensor, ...]], Sequence[Tensor]]
) -> FunctionGraph:
    return trace_function(name, get_default_graph(), [(dtype, TensorShape(dims)) for dtype, dims in kinds], body)


def _placed(batch: Batch, part: Part, axis: int | None) -> Tensor:
    return part.tensor if axis is None else batch.moved(part, axis)


def _chosen(runs: Tensor, axis: int, result: Tensor, before: Tensor) -> Tensor:
    dims = [1] * len(result.shape.known_dims())
    dims[axis] = runs.shape.known_dims()[0]
    return node("SelectV2", [array.reshape(runs, dims), result, before])
