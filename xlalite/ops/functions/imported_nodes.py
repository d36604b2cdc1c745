"""Nodes that TensorFlow 1 writes and that have another form here: variables by reference, arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import gather, shape
from xlalite.ops.functions.dataflow_nodes import (
    ENTERS,
    IDENTITIES,
    SWITCHES,
    DataflowNode,
    Nodes,
    Source,
    in_order,
    unique_name,
)
from xlalite.ops.functions.math import maximum, reduce_max
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node as graph_node

# Variables by reference become resources; whoever takes the value reads it.

_BY_REFERENCE: Final = {
    **{"Assign": "AssignVariableOp", "AssignAdd": "AssignAddVariableOp", "AssignSub": "AssignSubVariableOp"},
    **{"CountUpTo": "ResourceCountUpTo", "IsVariableInitialized": "VarIsInitializedOp"},
}
_OF_VALUE: Final = frozenset({"CountUpTo", "IsVariableInitialized"})
"""Operations on references whose results are none."""

_FAMILIES: Final = ("Apply", "SparseApply", "Scatter")
_PASS_ON: Final = frozenset({"RefIdentity", "RefEnter", "RefSwitch", "RefExit", "RefNextIteration"})
VARIABLES: Final = frozenset({"Variable", "VariableV2"})


def with_resources(nodes: Nodes) -> Nodes:
    """The nodes with resource variables in place of variables by reference."""
    handles: dict[Source, tuple[Source, tuple[Source, ...]]] = {}
    result: Nodes = dict(nodes)
    for node in in_order(nodes):
        held = [handles.get(each) for each in node.data]
        if node.op in VARIABLES:
            kept = {name: node.attrs[name] for name in ("dtype", "shape")}
            result[node.name] = replace(node, op="VarHandleOp", attrs=kept)
            handles[node.name, 0] = (node.name, 0), ()
            continue
        if not any(held):
            continue
        waits = [*node.waits, *(wait for each in held if each is not None for wait in each[1])]
        inputs = [given if each is None else each[0] for given, each in zip(node.data, held, strict=True)]
        op = _of_resource(node.op) if held[0] is not None else None
        if node.op in _PASS_ON:
            handles |= {(node.name, output): ((node.name, output), ()) for output in range(2)}
            op = node.op.removeprefix("Ref") if node.op == "RefIdentity" else node.op
        elif node.op in IDENTITIES:
            op = "ReadVariableOp"
        elif op is not None and node.op not in _OF_VALUE:
            handles[node.name, 0] = inputs[0], ((node.name, -1),)
        elif op is None:
            for position, each in enumerate(held):
                if each is not None:
                    name = unique_name(f"{node.name}/read", result)
                    read = DataflowNode(name, "ReadVariableOp", (inputs[position],), device=node.device)
                    result[name] = read.with_inputs((*read.inputs, *waits))
                    inputs[position] = (name, 0)
        result[node.name] = replace(node, op=op or node.op).with_inputs((*inputs, *waits))
    return result


def _of_resource(op: str) -> str | None:
    """The type of operation on resources that does what one on references does."""
    return _BY_REFERENCE.get(op) or (f"Resource{op}" if op.startswith(_FAMILIES) and op != "ScatterNd" else None)


# Arrays of tensors become lists: the flow is the list, and nobody asks for the handle.

_ARRAYS: Final = "TensorArray"
_OWN: Final = f"_{_ARRAYS}"


def without_array_handles(nodes: Nodes) -> Nodes:
    """The nodes of TensorArrays without the handles, of operation types of our own."""
    result: Nodes = {}
    for name, node in nodes.items():
        made = _array_of(nodes, node.data[0]) if node.op.startswith(_ARRAYS) and node.data else None
        if node.op == "TensorArrayV3":
            result[name] = replace(node, op=f"{_OWN}V3")
        elif node.op == "TensorArrayCloseV3":
            result[name] = replace(node, op="NoOp", inputs=node.waits, attrs={})
        elif made is not None and f"_{node.op}" in BUILDERS:
            attrs = {**node.attrs, "dtype": made.attrs["dtype"], "dynamic_size": made.attrs["dynamic_size"]}
            result[name] = replace(node, op=f"_{node.op}", inputs=node.inputs[1:], attrs=attrs)
        else:
            result[name] = node
    return result


def _array_of(nodes: Nodes, handle: Source) -> DataflowNode | None:
    """The node that makes the array behind a handle."""
    node = nodes.get(handle[0])
    while node is not None and node.op in ENTERS | SWITCHES | IDENTITIES:
        node = nodes.get(node.data[0][0])
    return node if node is not None and node.op == "TensorArrayV3" else None


Builder = Callable[[Sequence[Tensor], Mapping[str, Any], str], Sequence[Tensor]]


def _array(flow: Tensor, attrs: Mapping[str, Any]) -> TensorArray:
    return TensorArray(attrs["dtype"], dynamic_size=attrs.get("dynamic_size"), flow=flow)


def _make(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    made = TensorArray(
        attrs["dtype"],
        inputs[0],
        attrs.get("dynamic_size"),
        element_shape=attrs.get("element_shape"),
        name=name,
    )
    return made.flow, made.flow


def _write(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    index, value, flow = inputs
    return (_array(flow, attrs).write(index, value, name).flow,)


def _read(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    return (gather(inputs[1], inputs[0], name=name),)


def _scatter(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    indices, value, flow = inputs
    length = graph_node("TensorListLength", [flow])
    if attrs.get("dynamic_size"):
        length = maximum(length, reduce_max(indices) + 1)
    sizes = _sizes([length], value)
    rows = graph_node("ExpandDims", [indices, constant(-1)])
    return (graph_node("ScatterNd", [rows, value, sizes], None, name),)


def _split(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    value, lengths, _ = inputs
    length = graph_node("TensorListLength", [lengths])
    sizes = graph_node(
        "ConcatV2", [graph_node("Pack", [length, constant(-1)], {"axis": 0}), shape(value)[1:], constant(0)]
    )
    return (graph_node("Reshape", [value, sizes], None, name),)


def _sizes(first: Sequence[Tensor], value: Tensor) -> Tensor:
    """Given sizes, and those that the rows of a tensor have."""
    return graph_node("ConcatV2", [graph_node("Pack", first, {"axis": 0}), shape(value)[1:], constant(0)])


def _concat(inputs: Sequence[Tensor], attrs: Mapping[str, Any], name: str) -> Sequence[Tensor]:
    sizes = shape(inputs[0])
    lengths = graph_node("Fill", [sizes[:1], graph_node("Cast", [sizes[1]], {"dtype": int64})])
    return _array(inputs[0], attrs).concat(name), lengths


BUILDERS: Final[Mapping[str, Builder]] = {
    f"{_OWN}V3": _make,
    f"{_OWN}WriteV3": _write,
    f"{_OWN}ReadV3": _read,
    f"{_OWN}GatherV3": _read,
    f"{_OWN}ScatterV3": _scatter,
    f"{_OWN}SplitV3": _split,
    f"{_OWN}ConcatV3": _concat,
    f"{_OWN}SizeV3": lambda inputs, attrs, name: (graph_node("TensorListLength", [inputs[0]], None, name),),
}
"""Functions that make what a node stands for: of its inputs, attributes and name, its outputs."""
