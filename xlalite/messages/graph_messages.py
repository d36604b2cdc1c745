"""Graphs as TensorFlow's messages: `GraphDef`, `NodeDef`.

The types of operations are TensorFlow's; the attributes are those that operations have here, and those that TensorFlow
wants to read although they follow from the inputs.

In TensorFlow both functions of an `If` or `While` take all its inputs, and loops give all of them back; so they are
written, unless gradients use what such operations give only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype, string
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.messages.op_output_names import spelled
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
    functions: dict[FunctionGraph, _Function] = {}
    _collect(operations, functions)
    message.node.extend(operation_message(each, add_shapes=add_shapes, functions=functions) for each in operations)
    message.library.function.extend(_function_message(each, functions) for each in functions.values())
    return message


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as it is written.

    Attributes:
        graph: The function.
        name: Its name.
        before: The inputs of its operation that stand before those it captures and that it does not take, as
            placeholders of the other function.
        after: Those that stand behind.
        own_arguments: How many inputs come before those that are captured.
        gives_back: Whether it gives back what is captured, as bodies of loops do.
    """

    graph: FunctionGraph
    name: str
    before: Sequence[Tensor] = ()
    after: Sequence[Tensor] = ()
    own_arguments: int = 0
    gives_back: bool = False


def operation_message(
    operation: Operation, *, add_shapes: bool = False, functions: Mapping[FunctionGraph, _Function] | None = None
) -> Any:
    """An operation as a `NodeDef`; functions may have other names than their own.

    Within a function the names of inputs say the names of outputs too.
    """
    from xlalite.messages.classes import CLASSES

    message = CLASSES["NodeDef"](name=operation.name, op=operation.type, device=operation.device)
    spell = _name_in_function if operation.graph.building_function else _input_name
    message.input.extend(spell(tensor) for tensor in operation.inputs)
    message.input.extend(f"^{each.name}" for each in operation.control_inputs)
    own = UNKNOWN_TO_TENSORFLOW.get(operation.type)
    said = {name: value for name, value in operation.attrs.items() if name != own}
    if operation.type == "VarHandleOp":
        said["shared_name"] = operation.name  # by which TensorFlow tells variables apart
    for name, value in sorted((attributes_of_signature(operation) | _types_around(operation) | said).items()):
        if isinstance(value, FunctionGraph):
            message.attr[name].func.name = functions[value].name if functions else value.name
        else:
            _set_value(message.attr[name], value, said.get("dtype"))
    if add_shapes:
        _set_value(message.attr["_output_shapes"], [output.shape for output in operation.outputs])
    return message


def _input_name(tensor: Tensor) -> str:
    return tensor.name.removesuffix(":0")


def _name_in_function(tensor: Tensor) -> str:
    graph: Any = tensor.graph
    if tensor in graph.inputs:
        return tensor.op.name
    return f"{tensor.op.name}:{spelled(tensor.op.type, len(tensor.op.outputs), tensor.index)}"


def _functions_of(operation: Operation) -> tuple[FunctionGraph, FunctionGraph] | None:
    """Both functions of an `If` or `While` that can be written as TensorFlow has them."""
    names = {"If": ("then_branch", "else_branch"), "While": ("cond", "body")}.get(operation.type)
    if names is None:
        return None
    first, second = (operation.get_attr(name) for name in names)
    if any(each.consumers() for each in operation.outputs[len(second.outputs) :]):
        return None
    return first, second


def _types_around(operation: Operation) -> dict[str, Any]:
    """The attributes with the types of what an `If` or `While` takes and gives."""
    functions = _functions_of(operation)
    if functions is None:
        return {}
    taken = [tensor.dtype for tensor in operation.inputs]
    if operation.type == "While":
        return {"T": taken}
    return {"Tcond": taken[0], "Tin": taken[1:], "Tout": [tensor.dtype for tensor in functions[1].outputs]}


def _set_value(message: Any, value: Any, dtype: DType | None = None) -> None:
    """Gives an `AttrValue` a value of any type that attributes have, arrays of elements of `dtype`; None leaves it."""
    if isinstance(value, list | tuple):
        message.list.SetInParent()
        for each in value:
            field, held = _field_and_value(each)
            getattr(message.list, field).append(held)
        return
    if value is not None:
        field, held = _field_and_value(value, dtype)
        setting = getattr(message, field)
        if hasattr(setting, "CopyFrom"):
            setting.CopyFrom(held)
            setting.SetInParent()
        else:
            setattr(message, field, held)


def _field_and_value(value: Any, dtype: DType | None = None) -> tuple[str, Any]:
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
            held = dtype or (string if value.dtype == object else as_dtype(value.dtype))
            return "tensor", _as_message("TensorProto", tensor_message(value, held))
    return "s", str(value).encode()


def _as_message(name: str, proto: ProtoMessage) -> Any:
    from xlalite.messages.classes import CLASSES

    message = CLASSES[name]()
    message.take_proto(proto)
    return message


def _collect(operations: Iterable[Operation], functions: dict[FunctionGraph, _Function]) -> None:
    """The functions that operations name, with names of their own: two loops within two others may share theirs."""
    for operation in operations:
        both = _functions_of(operation)
        for value in operation.attrs.values():
            if not isinstance(value, FunctionGraph) or value in functions:
                continue
            taken = {each.name for each in functions.values()}
            tries = (value.name, *(f"{value.name}_{number}" for number in range(1, len(taken) + 1)))
            made = _Function(value, next(name for name in tries if name not in taken))
            if both is not None:
                captured = [[*each.captures.values()] for each in both]
                place = both.index(value)
                made = replace(
                    made,
                    before=captured[0] if place else (),
                    after=() if place else captured[1],
                    own_arguments=len(value.inputs) - len(value.captures),
                    gives_back=place == 1 and operation.type == "While",
                )
            functions[value] = made
            _collect(value.get_operations(), functions)


def _function_message(written: _Function, functions: Mapping[FunctionGraph, _Function]) -> Any:
    from xlalite.messages.classes import CLASSES
    from xlalite.messages.data_types import DTYPE_NUMBERS

    function = written.graph
    message = CLASSES["FunctionDef"]()
    message.signature.name = written.name
    own = written.own_arguments
    arguments = [*function.inputs[:own], *written.before, *function.inputs[own:], *written.after]
    names = [each.op.name if each in function.inputs else f"unused_{i}" for i, each in enumerate(arguments)]
    for name, tensor in zip(names, arguments, strict=True):
        message.signature.input_arg.add(name=name, type=DTYPE_NUMBERS[tensor.dtype])
    results = [(tensor, _name_in_function(tensor)) for tensor in function.outputs]
    if written.gives_back:
        results += zip(arguments[own:], names[own:], strict=True)
    for number, (tensor, name) in enumerate(results):
        message.signature.output_arg.add(name=f"output_{number}", type=DTYPE_NUMBERS[tensor.dtype])
        message.ret[f"output_{number}"] = name
    _set_value(message.attr["_input_shapes"], [tensor.shape for tensor in arguments])
    inside = [each for each in function.get_operations() if not any(out in function.inputs for out in each.outputs)]
    message.node_def.extend(operation_message(each, functions=functions) for each in inside)
    for each in inside:
        if each.spec.is_stateful and not each.outputs:
            message.control_ret[each.name] = each.name
            message.signature.control_output.append(each.name)
    return message


Graph.to_message = graph_message
Operation.to_message = operation_message
