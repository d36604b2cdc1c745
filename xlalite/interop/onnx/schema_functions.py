"""Operators that are functions: their bodies are in the schemas of the onnx package, where that is installed.

What models are made of has rules of its own; these are the rest, and what newer versions of ONNX add.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import decode, encode
from xlalite.interop.onnx.graph import Function, Node, read_function
from xlalite.interop.onnx.scope import Value
from xlalite.interop.onnx.tensors import ELEMENT_TYPES

_NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.items()}


def schema_function(node: Node, inputs: tuple[Value, ...], version: int) -> Function | None:
    """The body of a node's operator; None where there is none, or no onnx package to ask."""
    try:
        from onnx import defs
    except ImportError:
        return None
    # Of names that are no text the package would complain.
    is_text = (node.op_type + node.domain).isascii()
    if not is_text or not defs.has(node.op_type, version, node.domain):
        return None
    schema = defs.get_schema(node.op_type, version, node.domain)
    if schema.has_function:
        fitting = [each for each in schema.function_opset_versions if each <= version]
    else:
        fitting = [each for each in schema.context_dependent_function_opset_versions if each <= version]
    if not fitting:
        return None
    if schema.has_function:
        body = schema.get_function_with_opset_version(max(fitting))
    else:
        types = [_encoded_type(value) for value in inputs]
        body = schema.get_context_dependent_function_with_opset_version(max(fitting), encode(node.message), types)
    return _with_defaults(read_function(decode(body, "onnx.FunctionProto")), schema)


def _with_defaults(function: Function, schema: Any) -> Function:
    """The function with the defaults that the schema states for its attributes."""
    stated = [each.default_value.SerializeToString() for each in schema.attributes.values()]
    defaults = [decode(each, "onnx.AttributeProto") for each in stated]
    message = ProtoMessage("onnx.FunctionProto")
    message.put_all("attribute_proto", [each for each in defaults if each.integer("type")])
    return replace(function, defaults={**read_function(message).defaults, **function.defaults})


def _encoded_type(value: Value) -> bytes:
    """A `TypeProto` of a tensor; an empty one where nothing is."""
    message = ProtoMessage("onnx.TypeProto")
    if isinstance(value, Handle):
        tensor = message.open("tensor_type").put("elem_type", _NUMBERS[value.dtype])
        shape = tensor.open("shape")
        for size in value.dims:
            shape.append("dim").put("dim_value", size)
    return encode(message)
