"""Loops in HLO, and what graphs inside of operators see of the values around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext
from xlalite.interop.onnx.graph import Graph
from xlalite.interop.onnx.scope import Scope, Value

Turn = Callable[[Builder, Handle, Handles], Sequence[Handle]]


def for_each(context: NodeContext, count: int, state: Sequence[Handle], turn: Turn) -> list[Handle]:
    """The state after `count` turns; `turn(builder, number, state)` gives the next one."""
    b = context.builder
    start = b.tuple([b.constant(np.int64(0)), *state])
    names = len(state)

    def condition(inner: Builder, p: Handles) -> Handle:
        return inner.compare(p[0][0], count, "LT")

    def body(inner: Builder, p: Handles) -> Handle:
        number = p[0][0]
        found = turn(inner, number, tuple(p[0][i + 1] for i in range(names)))
        return inner.tuple([number + 1, *found])

    return loop(context, start, condition, body)[1:]


def loop(
    context: NodeContext,
    start: Handle,
    condition: Callable[[Builder, Handles], Handle],
    body: Callable[[Builder, Handles], Handle],
) -> list[Handle]:
    """The elements of a tuple after as many turns as the condition allows."""
    called = [
        context.importer.subcomputation(kind, context.scope, (start.shape,), each)
        for kind, each in (("condition", condition), ("body", body))
    ]
    found = context.builder.op("while", (start,), None, called)
    return [found[i] for i in range(len(start.shape.elements))]


def take_row(b: Builder, x: Handle, number: Handle, axis: int = 0) -> Handle:
    """The slice at a scalar position of a dimension, without it."""
    zero = b.constant(np.zeros((), number.dtype.numpy))
    starts = [number if i == axis else zero for i in range(len(x.dims))]
    sizes = [1 if i == axis else size for i, size in enumerate(x.dims)]
    found = b.dynamic_slice(x, starts, sizes)
    return b.reshape(found, [size for i, size in enumerate(x.dims) if i != axis])


def put_row(b: Builder, x: Handle, row: Handle, number: Handle) -> Handle:
    """The array with another slice at a scalar position of its first dimension."""
    zero = b.constant(np.zeros((), number.dtype.numpy))
    starts = [number, *[zero] * (len(x.dims) - 1)]
    return b.op("dynamic-update-slice", (x, b.reshape(row, (1, *row.dims)), *starts))


@dataclass(frozen=True, slots=True)
class Captured:
    """The values that graphs take from around them, by name, and their tensors in order."""

    values: dict[str, Value]
    leaves: list[Handle]

    def inside(self, context: NodeContext, b: Builder, elements: Sequence[Handle]) -> Scope:
        """A scope in another computation that has the values, of which the elements are the tensors there."""
        for inner, outer in zip(elements, self.leaves, strict=True):
            context.importer.known.add_origin(inner, outer)
        rest = iter(elements)
        return context.scope.inner(b, None, {name: _rebuilt(value, rest) for name, value in self.values.items()})


def captured(context: NodeContext, graphs: Sequence[Graph]) -> Captured:
    """What graphs take from around them."""
    names = dict.fromkeys(name for graph in graphs for name in free_names(graph) if context.scope.has(name))
    values = {name: context.scope.find(name) for name in names}
    return Captured(values, [leaf for value in values.values() for leaf in leaves(value)])


def free_names(graph: Graph) -> list[str]:
    """Names that a graph uses and does not give."""
    own = {info.name for info in graph.inputs} | graph.initializers.keys()
    found: dict[str, None] = {}
    for node in graph.nodes:
        inner = [value for value in node.attributes.values() if isinstance(value, Graph)]
        used = [*node.inputs, *(name for each in inner for name in free_names(each))]
        found.update((name, None) for name in used if name and name not in own)
        own |= set(node.outputs)
    found.update((info.name, None) for info in graph.outputs if info.name not in own)
    return list(found)


def leaves(value: Value) -> Iterator[Handle]:
    """The tensors in a value."""
    if isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif value is not None:
        yield value


def _rebuilt(value: Value, rest: Iterator[Handle]) -> Value:
    if isinstance(value, list):
        return [_rebuilt(each, rest) for each in value]
    return None if value is None else next(rest)


def as_integer(context: NodeContext, x: Handle) -> Handle:
    """The only element of a tensor as a scalar s64."""
    return context.builder.convert(context.builder.reshape(x, ()), DType.S64)
