"""`MetaGraphDef`s: a graph with its collections and its saver, as a message and in files (`.meta`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from xlalite.files.graph_files import write_message
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError, InvalidArgumentError, MissingElementError, NotFoundError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ParseError
from xlalite.messages.classes import CLASSES
from xlalite.ops.functions.graph_import import import_graph_def
from xlalite.ops.training.queue_runner import QueueRunner
from xlalite.ops.training.variable import Variable

_CONTEXTS = {GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT}
"""Collections that say which nodes are in which branch or loop, as the nodes say themselves."""


def export_meta_graph(
    filename: str | os.PathLike[str] | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> Any:
    """A graph with its collections as a `MetaGraphDef`; written to a file too, if one is named.

    Collections hold variables, operations, tensors and numbers; what else stands in them is left out.

    Args:
        filename: Where to.
        meta_info_def: What else to say of the graph.
        graph_def: The graph's message, if it is there already.
        saver_def: The names of a saver's operations.
        collection_list: The collections; all by default.
        as_text: Whether the file is text.
        graph: The graph; the default graph by default.
        export_scope: Accepted for compatibility.
        clear_devices: Whether to leave out devices.
        clear_extraneous_savers: Accepted for compatibility.
        strip_default_attrs: Accepted for compatibility.
        save_debug_info: Accepted for compatibility.
    """
    chosen = graph or get_default_graph()
    message = CLASSES["MetaGraphDef"]()
    if meta_info_def is not None:
        message.meta_info_def.CopyFrom(meta_info_def)
    message.graph_def.CopyFrom(graph_def or chosen.as_graph_def(add_shapes=True))
    for node in message.graph_def.node if clear_devices else ():
        node.device = ""
    if saver_def is not None:
        message.saver_def.CopyFrom(saver_def)
    for name in chosen.get_all_collection_keys() if collection_list is None else collection_list:
        if isinstance(name, str):
            _write_collection(message.collection_def, name, chosen.get_collection(name))
    if filename is not None:
        write_message(filename, message, as_text)
    return message


def add_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None
) -> tuple[Any, dict[str, Variable]]:
    """Adds a `MetaGraphDef`, perhaps from a file, to the default graph; gives the message and its variables.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: the file is no `MetaGraphDef`, or names what its graph does not have.
    """
    message = meta_graph_or_file
    if not isinstance(message, CLASSES["MetaGraphDef"]):
        message = read_message("MetaGraphDef", Path(meta_graph_or_file))
    graph = get_default_graph()
    graph_def = CLASSES["GraphDef"]()
    graph_def.CopyFrom(message.graph_def)
    for node in graph_def.node if clear_devices else ():
        node.device = ""
    import_graph_def(graph_def, name=import_scope or "")
    prefix = f"{import_scope}/" if import_scope else ""
    variables: dict[str, Variable] = {}
    for name in message.collection_def:
        if name in _CONTEXTS:
            continue
        held = message.collection_def[name]
        for value in held.bytes_list.value:
            if name == GraphKeys.QUEUE_RUNNERS:
                runner = QueueRunner.from_proto(CLASSES["QueueRunnerDef"].FromString(value), import_scope)
                graph.add_to_collection(name, runner)
            else:
                graph.add_to_collection(name, _variable(graph, value, prefix, variables))
        for text in held.node_list.value:
            graph.add_to_collection(name, _element(graph, prefix + text))
        for number in (*held.int64_list.value, *held.float_list.value):
            graph.add_to_collection(name, number)
    return message, variables


def read_message(name: str, path: Path) -> Any:
    """The message in a file, which may be text.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: the file holds something else.
    """
    kind = CLASSES[name]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(None, None, f"{path}: {error.strerror}") from None
    try:
        return kind.FromString(data)
    except ParseError:
        pass
    try:
        return kind.from_text(data.decode())
    except (ParseError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(None, None, f"{path} is not a {name}: {error}") from None


def _write_collection(collections: Any, name: str, items: list[Any]) -> None:
    variables = [each for each in items if isinstance(each, Variable)]
    nodes = [each for each in items if isinstance(each, Operation | Tensor)]
    numbers = [each for each in items if isinstance(each, int)]
    fractions = [each for each in items if isinstance(each, float)]
    # A collection is a list of one kind.
    if variables:
        collections[name].bytes_list.value.extend(_variable_message(each) for each in variables)
    elif any(isinstance(each, QueueRunner) for each in items):
        collections[name].bytes_list.value.extend(each.to_proto().SerializeToString() for each in items)
    elif nodes:
        collections[name].node_list.value.extend(each.name for each in nodes)
    elif numbers:
        collections[name].int64_list.value.extend(numbers)
    elif fractions:
        collections[name].float_list.value.extend(fractions)


def _variable_message(variable: Variable) -> bytes:
    message = CLASSES["VariableDef"](
        variable_name=variable.name,
        initializer_name=variable.initializer.name,
        snapshot_name=variable._as_graph_element().name,
        is_resource=True,
        initial_value_name=variable.initial_value.name,
        trainable=variable.trainable,
    )
    data: bytes = message.SerializeToString()
    return data


def _variable(graph: Graph, data: bytes, prefix: str, known: dict[str, Variable]) -> Any:
    """The variable that an item of a collection describes, or the item itself when it is something else."""
    try:
        message = CLASSES["VariableDef"].FromString(data)
    except ParseError:
        return data
    name = prefix + message.variable_name
    if not message.snapshot_name:
        return data
    if name not in known:
        snapshot = _element(graph, prefix + message.snapshot_name)
        initial = _element(graph, prefix + message.initial_value_name) if message.initial_value_name else snapshot
        initializer = _element(graph, prefix + message.initializer_name)
        if not (isinstance(snapshot, Tensor) and isinstance(initial, Tensor) and isinstance(initializer, Operation)):
            raise InvalidArgumentError(None, None, f"variable {name!r}: the names of its parts are of other things")
        if snapshot.op.type != "ReadVariableOp":
            raise InvalidArgumentError(None, None, f"variable {name!r}: {snapshot.name!r} does not read it")
        known[name] = Variable.of_operations(snapshot, initial, initializer, trainable=message.trainable)
    return known[name]


def _element(graph: Graph, name: str) -> Tensor | Operation:
    try:
        return graph.as_graph_element(name)
    except (GraphError, MissingElementError) as error:
        raise InvalidArgumentError(None, None, f"the MetaGraphDef names {name!r}: {error}") from None
