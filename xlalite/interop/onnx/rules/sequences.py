"""Sequences, whose length is known while importing, and optionals."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.interop.onnx.context import NodeContext, rule
from xlalite.interop.onnx.rules.joining import pieces
from xlalite.interop.onnx.scope import Value


@rule("SequenceConstruct")
def _construct(context: NodeContext) -> list[Value]:
    return list(context.inputs)


@rule("SequenceEmpty")
def _empty(context: NodeContext) -> list[Value]:
    return []


@rule("SequenceLength")
def _length(context: NodeContext) -> Handle:
    return context.builder.constant(np.array(len(context.sequence(0)), np.int64))


@rule("SequenceAt")
def _at(context: NodeContext) -> Value:
    values = context.sequence(0)
    return values[context.normalized(int(context.known_scalar(1)), len(values))]


@rule("SequenceInsert")
def _insert(context: NodeContext) -> list[Value]:
    values = list(context.sequence(0))
    place = int(context.known_scalar(2)) if context.has(2) else len(values)
    if not -len(values) <= place <= len(values):
        raise context.error(f"position {place} of a sequence of {len(values)}")
    values.insert(place, context.value(1))
    return values


@rule("SequenceErase")
def _erase(context: NodeContext) -> list[Value]:
    values = list(context.sequence(0))
    del values[context.normalized(int(context.known_scalar(1)) if context.has(1) else -1, len(values))]
    return values


@rule("SequenceMap")
def _map(context: NodeContext) -> tuple[Value, ...]:
    graph = context.graph("body")
    columns = [value if isinstance(value, list) else None for value in context.inputs]
    found = []
    for number in range(len(context.sequence(0))):
        row = [
            value if column is None else column[number] for value, column in zip(context.inputs, columns, strict=True)
        ]
        found.append(context.importer.run_graph(graph, row, context.scope))
    return tuple([row[i] for row in found] for i in range(len(graph.outputs)))


@rule("ConcatFromSequence")
def _concat(context: NodeContext) -> Handle:
    b = context.builder
    tensors = [value for value in context.sequence(0) if isinstance(value, Handle)]
    if not tensors:
        raise context.error("an empty sequence has nothing to join")
    if context.integer("new_axis", 0):
        axis = context.axis(len(tensors[0].dims) + 1)
        tensors = [b.reshape(x, (*x.dims[:axis], 1, *x.dims[axis:])) for x in tensors]
    else:
        axis = context.axis(len(tensors[0].dims))
    return b.concatenate(tensors, axis)


@rule("SplitToSequence")
def _split(context: NodeContext) -> list[Value]:
    x = context.operand(0)
    axis = context.axis(len(x.dims), 0)
    whole = x.dims[axis]
    if not context.has(1):
        parts = pieces(context, x, axis, (1,) * whole)
        if context.integer("keepdims", 1):
            return list(parts)
        return [context.builder.reshape(part, [n for i, n in enumerate(x.dims) if i != axis]) for part in parts]
    split = context.known(1)
    if split.ndim:
        return list(pieces(context, x, axis, context.known_integers(1)))
    size = int(split)
    if size < 1:
        raise context.error(f"parts of size {size}")
    return list(pieces(context, x, axis, tuple(min(size, whole - start) for start in range(0, whole, size))))


@rule("Optional")
def _optional(context: NodeContext) -> Value:
    return context.value(0) if context.inputs else None


@rule("OptionalHasElement")
def _has_element(context: NodeContext) -> Handle:
    return context.builder.constant(np.array(context.has(0)))


@rule("OptionalGetElement")
def _get_element(context: NodeContext) -> Value:
    if not context.has(0):
        raise context.error("there is no element")
    return context.value(0)
