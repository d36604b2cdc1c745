"""Graphs as files, and smaller graphs for them: `train.write_graph` and the functions of `graph_util`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from xlalite.files.replacing import write_whole
from xlalite.framework.graph.dtypes import as_dtype, int32
from xlalite.framework.graph.errors import InvalidArgumentError, UnimplementedError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.wording import did_you_mean
from xlalite.messages.classes import CLASSES
from xlalite.messages.data_types import DTYPE_NUMBERS, tensor_message

_PASSING = {"CheckNumerics", "Identity"}


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph or `GraphDef` to a file, as text or as bytes; gives the path."""
    is_graph = isinstance(graph_or_graph_def, Graph)
    path = os.path.join(os.fspath(logdir), name)
    write_message(path, graph_or_graph_def.as_graph_def() if is_graph else graph_or_graph_def, as_text)
    return path


def write_message(path: str | os.PathLike[str], message: Any, as_text: bool) -> None:
    """Writes a message as text or as bytes."""
    write_whole(path, str(message).encode() if as_text else message.SerializeToString())


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The part of a `GraphDef` that some nodes need, in the order of the whole.

    Raises:
        TypeError: the nodes are one string.
        InvalidArgumentError: there is no such node.
    """
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list of names, found a string")
    nodes = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            raise InvalidArgumentError(None, None, f"the GraphDef has no node {name!r}{did_you_mean(name, nodes)}")
        if name not in needed:
            needed.add(name)
            waiting += map(_producer, nodes[name].input)
    return _with_nodes(graph_def, (node for node in graph_def.node if node.name in needed))


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """A `GraphDef` without `Identity` and `CheckNumerics`; those that are protected or waited for stay."""
    kept = {
        *(protected_nodes or ()),
        *(each[1:] for node in input_graph.node for each in node.input if each[:1] == "^"),
    }
    passes = {
        node.name: node.input[0]
        for node in input_graph.node
        if node.op in _PASSING and node.name not in kept and len(node.input) == 1
    }
    nodes = []
    for node in input_graph.node:
        if node.name not in passes:
            nodes.append(_copied(node, [_behind(each, passes) for each in node.input]))
    return _with_nodes(input_graph, nodes)


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """The part of a `GraphDef` that some nodes need, with constants for the variables.

    Args:
        sess: The session with the values.
        input_graph_def: The graph of the session.
        output_node_names: The nodes.
        variable_names_whitelist: The variables to convert; all by default.
        variable_names_blacklist: The variables that stay.

    Raises:
        UnimplementedError: something other than reading is done with a variable, as in a loop or branch.
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    spared = set(variable_names_blacklist or ())
    chosen = None if variable_names_whitelist is None else set(variable_names_whitelist)
    handles = [
        node.name
        for node in part.node
        if node.op == "VarHandleOp" and node.name not in spared and (chosen is None or node.name in chosen)
    ]
    values = dict(zip(handles, sess.run([_read(sess.graph, name) for name in handles]), strict=True)) if handles else {}
    frozen = set(handles)
    types = {node.name: node.attr["dtype"].type for node in part.node if node.name in frozen}
    nodes = []
    for node in part.node:
        taken = [each for each in node.input if _producer(each) in frozen and not each.startswith("^")]
        if node.name in values:
            nodes.append(_constant(node.name, np.asarray(values[node.name])))
        elif not taken:
            nodes.append(node)
        elif node.op in ("Identity", "ReadVariableOp"):
            passed = CLASSES["NodeDef"](name=node.name, op="Identity", input=list(node.input), device=node.device)
            passed.attr["T"].type = types[_producer(taken[0])]
            types[node.name] = types[_producer(taken[0])]
            nodes.append(passed)
            if node.op == "Identity":
                frozen.add(node.name)
        elif node.op == "ResourceGather":
            axis = _constant(f"{node.name}/axis", np.zeros((), int32.numpy_dtype))
            inputs = [*node.input[:2], axis.name, *node.input[2:]]
            taking = CLASSES["NodeDef"](name=node.name, op="GatherV2", input=inputs, device=node.device)
            taking.attr["Tparams"].type = types[_producer(taken[0])]
            taking.attr["Tindices"].CopyFrom(node.attr["Tindices"])
            taking.attr["Taxis"].type = DTYPE_NUMBERS[int32]
            nodes += [axis, taking]
        else:
            raise UnimplementedError(
                None, None, f"node {node.name!r} ({node.op}) takes the variable {_producer(taken[0])!r}, not its value"
            )
    return _with_nodes(part, nodes)


def _read(graph: Graph, name: str) -> Any:
    """Reads the variable with a handle."""
    handle = graph.get_tensor_by_name(f"{name}:0")
    for operation in handle.consumers():
        if operation.type == "ReadVariableOp":
            return operation.outputs[0]
    raise InvalidArgumentError(None, None, f"nothing reads the variable {name!r}")


def _constant(name: str, value: Any) -> Any:
    dtype = as_dtype(value.dtype)
    node = CLASSES["NodeDef"](name=name, op="Const")
    node.attr["dtype"].type = DTYPE_NUMBERS[dtype]
    node.attr["value"].tensor.take_proto(tensor_message(value, dtype))
    return node


def _producer(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]


def _behind(text: str, passes: dict[str, str]) -> str:
    seen: set[str] = set()
    while text.removesuffix(":0") in passes and text not in seen:
        seen.add(text)
        text = passes[text.removesuffix(":0")]
    return text


def _copied(node: Any, inputs: Sequence[str]) -> Any:
    copy = CLASSES["NodeDef"]()
    copy.CopyFrom(node)
    copy.ClearField("input")
    copy.input.extend(inputs)
    return copy


def _with_nodes(graph_def: Any, nodes: Iterable[Any]) -> Any:
    made = CLASSES["GraphDef"]()
    made.library.CopyFrom(graph_def.library)
    made.versions.CopyFrom(graph_def.versions)
    made.node.extend(nodes)
    return made
