"""Branches and loops. What is known while importing is decided there; the rest becomes that of HLO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx.context import NodeContext, rule
from xlalite.interop.onnx.graph import Graph
from xlalite.interop.onnx.known_values import UnknownValueError
from xlalite.interop.onnx.rules.loops import as_integer, captured, for_each, leaves, loop, put_row, take_row
from xlalite.interop.onnx.scope import Value

_MOST_TURNS = 10_000


class _ChangingError(Exception):
    """A loop whose state changes its shape, or of which only its turns say how much it gives."""


@rule("If")
def _if(context: NodeContext) -> tuple[Value, ...]:
    branches = [context.graph("then_branch"), context.graph("else_branch")]
    try:
        chosen = branches[0 if bool(context.known_scalar(0)) else 1]
        return tuple(context.importer.run_graph(chosen, [], context.scope))
    except UnknownValueError as error:
        unknown = error
    b, around = context.builder, captured(context, branches)
    operand = b.tuple(around.leaves)
    gives: list[list[Value]] = []

    def build(graph: Graph) -> HloComputation:
        def body(inner: Builder, p: Handles) -> Handle:
            scope = around.inside(context, inner, [p[0][i] for i in range(len(around.leaves))])
            gives.append(context.importer.outputs_of(graph, [], scope))
            return inner.tuple([leaf for value in gives[-1] for leaf in leaves(value)])

        return context.importer.subcomputation("branch", context.scope, (operand.shape,), body)

    called = [build(graph) for graph in branches]
    forms = [[_form(value) for value in values] for values in gives]
    if forms[0] != forms[1]:  # so that what comes out depends on the condition's value
        raise unknown
    condition = b.reshape(context.operand(0), ())
    found = b.op("conditional", (condition, operand, operand), None, called)
    rest = iter(range(len(found.shape.elements)))
    return tuple(_taken(value, found, rest) for value in gives[0])


def _form(value: Value) -> object:
    if isinstance(value, list):
        return [_form(each) for each in value]
    return None if value is None else (value.dtype, value.dims)


def _taken(value: Value, found: Handle, rest: object) -> Value:
    if isinstance(value, list):
        return [_taken(each, found, rest) for each in value]
    return None if value is None else found[next(rest)]  # type: ignore[call-overload]


@rule("Loop")
def _loop(context: NodeContext) -> tuple[Value, ...]:
    try:
        return tuple(_compiled_loop(context))
    except _ChangingError:
        return tuple(_unrolled_loop(context))
    except UnknownValueError as error:
        if not error.inside:
            raise
        return tuple(_unrolled_loop(context))


def _compiled_loop(context: NodeContext) -> list[Handle]:
    b, graph = context.builder, context.graph("body")
    state = [context.value(i) for i in range(2, len(context.inputs))]
    if not all(isinstance(value, Handle) for value in state):
        raise _ChangingError
    carried = [value for value in state if isinstance(value, Handle)]
    count, scans = len(carried), len(graph.outputs) - 1 - len(carried)
    going = context.optional(1)
    going = b.constant(True) if going is None else b.reshape(going, ())
    limit = as_integer(context, context.operand(0)) if context.has(0) else b.constant(np.int64(np.iinfo(np.int64).max))
    trips = max(0, int(context.importer.known.of(limit))) if scans else 0
    if scans and not (context.has(0) and bool(context.importer.known.of(going))):
        raise _ChangingError
    turn, shapes, goes_on = _turn(context, graph, [b.constant(np.int64(0)), going, *carried])
    if [shape for shape in shapes[1 : 1 + count]] != [value.shape for value in carried] or (scans and not goes_on):
        raise _ChangingError
    around = captured(context, [graph])
    buffers = [b.full(0, shape.dtype, (trips, *shape.dims)) for shape in shapes[1 + count :]]
    start = b.tuple([b.constant(np.int64(0)), limit, going, *carried, *buffers, *around.leaves])

    def condition(inner: Builder, p: Handles) -> Handle:
        return inner.compare(p[0][0], p[0][1], "LT") & p[0][2]

    def body(inner: Builder, p: Handles) -> Handle:
        parts = [p[0][i] for i in range(len(start.shape.elements))]
        number, stop, still, *rest = parts
        own, kept, others = rest[:count], rest[count : count + scans], rest[count + scans :]
        found = inner.op("call", [number, still, *own, *others], OPS["call"].attrs(), (turn,))
        rows = [found[1 + count + i] for i in range(scans)]
        kept = [put_row(inner, buffer, row, number) for buffer, row in zip(kept, rows, strict=True)]
        return inner.tuple([number + 1, stop, found[0], *(found[1 + i] for i in range(count)), *kept, *others])

    return loop(context, start, condition, body)[3 : 3 + count + scans]


def _turn(
    context: NodeContext, graph: Graph, inputs: Sequence[Handle]
) -> tuple[HloComputation, tuple[Shape, ...], bool]:
    """One turn of a loop as a computation of its inputs and what it takes from around; whether it always goes on."""
    around = captured(context, [graph])
    shapes = [value.shape for value in (*inputs, *around.leaves)]
    goes_on: list[bool] = []

    def body(inner: Builder, p: Handles) -> Handle:
        own, others = p[: len(inputs)], p[len(inputs) :]
        found = context.importer.outputs_of(graph, own, around.inside(context, inner, others))
        if not all(isinstance(value, Handle) for value in found):
            raise _ChangingError
        tensors = [value for value in found if isinstance(value, Handle)]
        goes_on.append(len(own) > 1 and tensors[0].instruction is own[1].instruction)
        if not goes_on[-1] and tensors[0].dtype is DType.PRED:
            try:
                goes_on[-1] = bool(context.importer.known.of(tensors[0]).all())
            except UnknownValueError:
                goes_on[-1] = False
            tensors[0] = inner.reshape(tensors[0], ())
        return inner.tuple(tensors)

    computation = context.importer.subcomputation("turn", context.scope, shapes, body)
    return computation, computation.root.shape.elements, goes_on[0]


def _unrolled_loop(context: NodeContext) -> list[Value]:
    """Turn by turn, each with shapes of its own; how often must be known."""
    b, graph = context.builder, context.graph("body")
    limit = int(context.known_scalar(0)) if context.has(0) else _MOST_TURNS + 1
    going: Value = context.value(1) if context.has(1) else b.constant(True)
    state = [context.value(i) for i in range(2, len(context.inputs))]
    rows: list[list[Handle]] = [[] for _ in range(len(graph.outputs) - 1 - len(state))]
    number = 0
    while number < limit and isinstance(going, Handle) and bool(context.importer.known.of(going).all()):
        if number >= _MOST_TURNS:
            raise context.error(f"a loop of more than {_MOST_TURNS} turns whose shapes change")
        found = context.importer.run_graph(graph, [b.constant(np.int64(number)), going, *state], context.scope)
        going, state = found[0], found[1 : 1 + len(state)]
        for kept, value in zip(rows, found[1 + len(state) :], strict=True):
            if not isinstance(value, Handle):
                raise context.error("a loop cannot gather sequences")
            kept.append(b.reshape(value, (1, *value.dims)))
        number += 1
    if not number and rows:
        raise context.error("a loop without turns, whose outputs have no shapes therefore")
    return [*state, *(b.concatenate(kept, 0) for kept in rows)]


@rule("Scan", since=9)
def _scan(context: NodeContext) -> tuple[Value, ...]:
    return tuple(_scanned(context, context.operands()))


@rule("Scan", since=8)
def _scan_of_batch(context: NodeContext) -> tuple[Value, ...]:
    """Each example by itself; all have the same length."""
    if context.has(0):
        raise context.error("examples of different lengths are not supported")
    b = context.builder
    operands = [context.operand(i) for i in range(1, len(context.inputs))]
    examples = []
    for number in range(operands[0].dims[0]):
        rows = [
            b.reshape(b.slice(x, [number, *[0] * (len(x.dims) - 1)], [number + 1, *x.dims[1:]]), x.dims[1:])
            for x in operands
        ]
        examples.append(_scanned(context, rows))
    columns = zip(*examples, strict=True)
    return tuple(b.concatenate([b.reshape(x, (1, *x.dims)) for x in column], 0) for column in columns)


def _scanned(context: NodeContext, operands: Sequence[Handle]) -> list[Handle]:
    b, graph = context.builder, context.graph("body")
    inputs = context.integer("num_scan_inputs")
    if not 0 < inputs <= len(operands):
        raise context.error(f"{inputs} scan inputs among {len(operands)} inputs")
    count = len(operands) - inputs
    carried, scanned = list(operands[:count]), list(operands[count:])
    axes = context.integers("scan_input_axes", (0,) * inputs)
    backwards = context.integers("scan_input_directions", context.integers("directions", (0,) * inputs))
    axes = tuple(context.normalized(axis, len(x.dims)) for axis, x in zip(axes, scanned, strict=True))
    length = scanned[0].dims[axes[0]]
    if any(x.dims[axis] != length for x, axis in zip(scanned, axes, strict=True)):
        raise context.error("scan inputs have different lengths")
    firsts = [
        b.full(0, x.dtype, [size for i, size in enumerate(x.dims) if i != axis])
        for x, axis in zip(scanned, axes, strict=True)
    ]
    around = captured(context, [graph])
    turn, shapes, _ = _turn(context, graph, [*carried, *firsts])
    rows = shapes[count:]
    out_axes = context.integers("scan_output_axes", (0,) * len(rows))
    out_backwards = context.integers("scan_output_directions", (0,) * len(rows))
    if tuple(shapes[:count]) != tuple(value.shape for value in carried):
        raise context.error("the state changes its shape")
    buffers = [b.full(0, shape.dtype, (length, *shape.dims)) for shape in rows]

    def one(inner: Builder, number: Handle, state: Handles) -> Sequence[Handle]:
        own, kept, rest = state[:count], state[count : count + len(rows)], state[count + len(rows) :]
        arrays, others = rest[:inputs], rest[inputs:]
        last = length - 1
        parts = [
            take_row(inner, x, last - number if turned else number, axis)
            for x, axis, turned in zip(arrays, axes, backwards, strict=True)
        ]
        found = inner.op("call", [*own, *parts, *others], OPS["call"].attrs(), (turn,))
        filled = [
            put_row(inner, buffer, found[count + i], last - number if turned else number)
            for i, (buffer, turned) in enumerate(zip(kept, out_backwards, strict=True))
        ]
        return [*(found[i] for i in range(count)), *filled, *rest]

    found = for_each(context, length, [*carried, *buffers, *scanned, *around.leaves], one)
    moved = []
    for array, axis in zip(found[count : count + len(rows)], out_axes, strict=True):
        place = context.normalized(axis, len(array.dims))
        order = list(range(1, len(array.dims)))
        order.insert(place, 0)
        moved.append(b.transpose(array, order))
    return [*found[:count], *moved]
