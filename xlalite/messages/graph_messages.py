"""Graphs as TensorFlow's messages: `GraphDef`, `NodeDef`.

The types of operations are TensorFlow's; the attributes are those that operations have here, and those that TensorFlow
wants to read although they follow from the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype, string
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.messages.op_signatures import UNKNOWN_TO_TENSORFLOW, attributes_of_signature

_PRODUCER = 134
"""The version of TensorFlow 1.15's graphs."""


def graph_message(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """A graph as a `GraphDef`: a node for each operation, and a function for each body of a loop or branch.

    Args:
        graph: The graph.
        from_version: Leaves out the operations that were there when the graph had this version.
        add_shapes: Whether each node says the shapes of its outputs, as `_output_shapes`.
    """
    from xlalite.messages.classes import CLASSES  # the classes are made when they are first needed

    message = CLASSES["GraphDef"]()
    message.versions.producer = _PRODUCER
    operations = graph.get_operations()[from_version or 0 :]
    functions: dict[FunctionGraph, str] = {}
    _collect(operations, functions)
    message.node.extend(operation_message(each, add_shapes=add_shapes, functions=functions) for each in operations)
    message.library.function.extend(_function_message(each, functions) for each in functions)
    return message


def operation_message(
    operation: Operation, *, add_shapes: bool = False, functions: Mapping[FunctionGraph, str] | None = None
) -> Any:
    """An operation as a `NodeDef`; functions may have other names than their own."""
    from xlalite.messages.classes import CLASSES

    message = CLASSES["NodeDef"](name=operation.name, op=operation.type, device=operation.device)
    message.input.extend(_input_name(tensor) for tensor in operation.inputs)
    message.input.extend(f"^{each.name}" for each in operation.control_inputs)
    own = UNKNOWN_TO_TENSORFLOW.get(operation.type)
    said = {name: value for name, value in operation.attrs.items() if name != own}
    if operation.type == "VarHandleOp":
        said["shared_name"] = operation.name  # by which TensorFlow tells variables apart
    for name, value in sorted((attributes_of_signature(operation) | said).items()):
        if isinstance(value, FunctionGraph):
            message.attr[name].func.name = (functions or {}).get(value, value.name)
        else:
            _set_value(message.attr[name], value)
    if add_shapes:
        _set_value(message.attr["_output_shapes"], [output.shape for output in operation.outputs])
    return message


def _input_name(tensor: Tensor) -> str:
    return tensor.name.removesuffix(":0")


def _set_value(message: Any, value: Any) -> None:
    """Gives an `AttrValue` a value of any type that attributes have; None leaves it unset."""
    if isinstance(value, list | tuple):
        message.list.SetInParent()
        for each in value:
            field, held = _field_and_value(each)
            getattr(message.list, field).append(held)
        return
    if value is not None:
        field, held = _field_and_value(value)
        setting = getattr(message, field)
        if hasattr(setting, "CopyFrom"):
            setting.CopyFrom(held)
            setting.SetInParent()
        else:
            setattr(message, field, held)


def _field_and_value(value: Any) -> tuple[str, Any]:
    from xlalite.messages.data_types import DTYPE_NUMBERS, shape_message, tensor_message

    match value:
        case bool() | np.bool_():
            return "b", bool(value)
        case int() | np.integer():
            return "i", int(value)
        case float() | np.floating():
            return "f", float(value)
        case bytes():
            return "s", value
        case DType():
            return "type", DTYPE_NUMBERS[value]
        case TensorShape():
            return "shape", _as_message("TensorShapeProto", shape_message(value))
        case np.ndarray():
            dtype = string if value.dtype == object else as_dtype(value.dtype)
            return "tensor", _as_message("TensorProto", tensor_message(value, dtype))
    return "s", str(value).encode()


def _as_message(name: str, proto: ProtoMessage) -> Any:
    from xlalite.messages.classes import CLASSES

    message = CLASSES[name]()
    message.take_proto(proto)
    return message


def _collect(operations: Iterable[Operation], functions: dict[FunctionGraph, str]) -> None:
    """The functions that operations name, with names of their own: two loops within two others may share theirs."""
    for operation in operations:
        for value in operation.attrs.values():
            if isinstance(value, FunctionGraph) and value not in functions:
                taken = set(functions.values())
                tries = (value.name, *(f"{value.name}_{number}" for number in range(1, len(taken) + 1)))
                functions[value] = next(name for name in tries if name not in taken)
                _collect(value.get_operations(), functions)


def _function_message(function: FunctionGraph, names: Mapping[FunctionGraph, str]) -> Any:
    from xlalite.messages.classes import CLASSES
    from xlalite.messages.data_types import DTYPE_NUMBERS

    message = CLASSES["FunctionDef"]()
    message.signature.name = names[function]
    arguments = {tensor.op for tensor in function.inputs}
    for tensor in function.inputs:
        message.signature.input_arg.add(name=tensor.op.name, type=DTYPE_NUMBERS[tensor.dtype])
    for number, tensor in enumerate(function.outputs):
        message.signature.output_arg.add(name=f"output_{number}", type=DTYPE_NUMBERS[tensor.dtype])
        message.ret[f"output_{number}"] = tensor.name
    _set_value(message.attr["_input_shapes"], [tensor.shape for tensor in function.inputs])
    inside = (each for each in function.get_operations() if each not in arguments)
    message.node_def.extend(operation_message(each, functions=names) for each in inside)
    return message


Graph.to_message = graph_message
Operation.to_message = operation_message
