"""Graphs of core ATen operations as HLO modules: each operation by its rule, each tensor as it lies in memory."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch.fx import Node

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.torch.dtypes import DTYPES
from xlalite.interop.torch.memory_order import MemoryOrder
from xlalite.interop.torch.rules.operation import Operation, Refusals
from xlalite.interop.torch.rules.registry import Declined, find_rule

_COND = torch.ops.higher_order.cond
_PLACE = re.compile(r'File "([^"]*)", line (\d+)')


class NodeDeclinedError(XlaliteError):
    """An operation cannot be part of a module.

    Attributes:
        node: The operation.
        reason: Why.
    """

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{node.name}: {reason}")
        self.node = node
        self.reason = reason


def is_known(node: Node) -> bool:
    """Whether a value is a number that sizes decide, and no tensor."""
    return isinstance(node.meta.get("val"), (bool, int, float)) or (node.op == "get_attr" and "val" not in node.meta)


def reason_to_decline(node: Node) -> str:
    """Why an operation cannot be compiled, as far as its name and its types say; empty when they say nothing."""
    if node.target is operator.getitem or is_known(node):
        return ""
    if node.target is _COND:
        return _reason_to_decline_branches(node)
    if find_rule(str(node.target)) is None:
        return "no rule"
    if any(_is_lazy(source) for source in node.all_input_nodes):
        return "it takes a tensor whose numbers torch has yet to conjugate or negate"
    values = [value for source in (node, *node.all_input_nodes) for value in _leaves(source.meta.get("val"))]
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.dtype not in DTYPES:
                return f"element type {value.dtype}"
            if value.device.type != "cpu" or value.layout != torch.strided:
                return f"tensor on {value.device.type}, {value.layout}"
    return ""


def _reason_to_decline_branches(node: Node) -> str:
    predicate, *_, operands = node.args
    if not all(
        isinstance(each, Node) and isinstance(each.meta["val"], torch.Tensor) for each in (predicate, *operands)
    ):
        return "the condition or an operand is no tensor"
    for graph in _branches(node):
        (output,) = graph.find_nodes(op="output")
        held = (_held(each) for each in graph.find_nodes(op="get_attr"))
        if any(isinstance(each, torch.Tensor) for each in held) or not all(isinstance(o, Node) for o in output.args[0]):
            return "a branch holds a tensor or gives none"
        for each in (each for each in graph.nodes if each.op == "call_function"):
            if reason := reason_to_decline(each):
                return f"in a branch, {each.name}: {reason}"
    return ""


def _branches(node: Node) -> list[torch.fx.Graph]:
    return [_held(branch).graph for branch in node.args[1:3]]


def _held(node: Node) -> Any:
    """What an attribute of a graph's module is."""
    return getattr(node.graph.owning_module, node.target)


def lower(
    name: str,
    inputs: Sequence[tuple[Node, MemoryOrder]],
    nodes: Sequence[Node],
    outputs: Sequence[tuple[Node, MemoryOrder]],
) -> tuple[HloModule, tuple[tuple[type[Exception], str], ...]]:
    """The module of some operations of a graph, in order; and what is to be raised where its last results are true.

    Raises:
        NodeDeclinedError: An operation's rule declines its arguments.
    """
    builder = Builder(name)
    values: dict[Node, Any] = {}
    refusals: Refusals = {}
    for node, order in inputs:
        array = builder.parameter(Shape.array(DTYPES[node.meta["val"].dtype], order.dims), node.name)
        values[node] = order.tensor_of(builder, array)
    for node in nodes:
        with builder.metadata(_metadata(node)):
            values[node] = _lowered(builder, node, values, refusals)
    results = [order.array_of(builder, values[node]) for node, order in outputs]
    return builder.build_module(builder.tuple([*results, *refusals.values()])), tuple(refusals)


def _lowered(builder: Builder, node: Node, values: dict[Node, Any], refusals: Refusals) -> Any:
    if node.target is _COND:
        return _conditional(builder, node, values, refusals)
    found = node.meta["val"]
    arguments, named = torch.fx.node.map_arg(
        (node.args, node.kwargs), lambda each: values[each] if each in values else each.meta["val"]
    )
    if node.target is operator.getitem:
        return arguments[0][arguments[1]]
    rule = find_rule(str(node.target))
    assert rule is not None, "operations without a rule are no part of a module"
    wanted = tuple(_shape(value) for value in (found if isinstance(found, (tuple, list)) else (found,)))
    try:
        result = rule(Operation(builder, str(node.target), wanted, refusals), *arguments, **named)
    except Declined as declined:
        raise NodeDeclinedError(node, str(declined)) from declined
    except XlaliteError as error:
        raise NodeDeclinedError(node, f"rule refused: {error}") from error
    made = result if isinstance(result, tuple) else (result,)
    for have, want in zip(made, wanted, strict=True):
        if have is not None and want is not None and not have.shape.compatible(want):
            raise NodeDeclinedError(node, f"rule gives {have.shape} for {want}")
    return tuple(made) if isinstance(found, (tuple, list)) else made[0]


def _conditional(builder: Builder, node: Node, values: Mapping[Node, Any], refusals: Refusals) -> tuple[Handle, ...]:
    """The results of one of two branches."""
    given = builder.tuple([values[operand] for operand in node.args[3]])
    raised: dict[tuple[type[Exception], str], None] = {}
    called = [
        builder.subcomputation(
            f"{builder.computation.name}_{node.name}_{number}", [given.shape], partial(_branch, node, graph, raised)
        )
        for number, graph in enumerate(_branches(node))
    ]
    condition = builder.reshape(values[node.args[0]], ())
    found = builder.op("conditional", (condition, given, given), None, called)
    *results, is_refused = (found[number] for number in range(len(found.shape.elements)))
    if raised:
        said = next(iter(raised))[0], " or ".join(text for _, text in raised)
        refusals[said] = refusals[said] | is_refused if said in refusals else is_refused
    return tuple(results)


def _branch(
    node: Node,
    graph: torch.fx.Graph,
    raised: dict[tuple[type[Exception], str], None],
    builder: Builder,
    parameters: Handles,
) -> Handle:
    """Its results, and whether something is to be raised, which is one of what both branches may raise."""
    (operand,) = parameters
    values: dict[Node, Any] = {each: operand[i] for i, each in enumerate(graph.find_nodes(op="placeholder"))}
    refusals: Refusals = {}
    try:
        for each in (each for each in graph.nodes if each.op == "call_function"):
            values[each] = _lowered(builder, each, values, refusals)
    except NodeDeclinedError as declined:
        raise NodeDeclinedError(node, f"in a branch: {declined}") from declined
    raised.update(dict.fromkeys(refusals))
    is_refused = reduce(operator.or_, refusals.values(), builder.constant(False, DType.PRED))
    (output,) = graph.find_nodes(op="output")
    return builder.tuple([*(values[each] for each in output.args[0]), is_refused])


def _shape(value: Any) -> Shape | None:
    return Shape.array(DTYPES[value.dtype], tuple(value.shape)) if isinstance(value, torch.Tensor) else None


def _leaves(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _is_lazy(node: Node) -> bool:
    """Whether a tensor is not what its memory holds; what rules make always is."""
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg()) and find_rule(str(node.target)) is None
    )


def _metadata(node: Node) -> Metadata:
    """Where in the user's program an operation comes from."""
    places = _PLACE.findall(str(node.meta.get("stack_trace") or ""))
    file, line = places[-1] if places else ("", "0")
    return Metadata(str(node.target), node.name, file, int(line))
