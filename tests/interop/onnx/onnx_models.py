"""Small ONNX models as bytes, made without the onnx package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx import messages  # noqa: F401
from xlalite.interop.onnx.tensors import ELEMENT_TYPES

NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.items()}


def tensor(name: str, array: np.ndarray) -> ProtoMessage:
    """An array with its bytes."""
    message = ProtoMessage("onnx.TensorProto").put("name", name).put_all("dims", array.shape)
    return message.put("data_type", NUMBERS[DType.from_numpy(array.dtype)]).put("raw_data", array.tobytes())


def attribute(name: str, value: object) -> ProtoMessage:
    """An attribute of any type."""
    message = ProtoMessage("onnx.AttributeProto").put("name", name)
    match value:
        case bool() | int():
            return message.put("type", 2).put("i", int(value))
        case float():
            return message.put("type", 1).put("f", value)
        case str():
            return message.put("type", 3).put("s", value.encode())
        case np.ndarray():
            return message.put("type", 4).put("t", tensor("", value))
        case ProtoMessage():
            return message.put("type", 5).put("g", value)
        case list():
            return message.put("type", 7).put_all("ints", value)
    raise TypeError(f"no attribute of {value!r}")


def node(op_type: str, inputs: str, outputs: str, domain: str = "", **attributes: object) -> ProtoMessage:
    """A node; names of inputs and outputs stand apart, `-` for one that is left out."""
    message = ProtoMessage("onnx.NodeProto").put("op_type", op_type).put("domain", domain)
    message.put_all("input", ["" if name == "-" else name for name in inputs.split()])
    message.put_all("output", outputs.split())
    return message.put_all("attribute", [attribute(*each) for each in attributes.items()])


def value(name: str, dtype: DType, dims: Sequence[int | str] | None) -> ProtoMessage:
    """A name with its type."""
    message = ProtoMessage("onnx.ValueInfoProto").put("name", name)
    array = message.open("type").open("tensor_type").put("elem_type", NUMBERS[dtype])
    if dims is not None:
        shape = array.open("shape")
        for size in dims:
            shape.append("dim").put("dim_param" if isinstance(size, str) else "dim_value", size)
    return message


def graph(
    nodes: Sequence[ProtoMessage],
    inputs: Mapping[str, tuple[DType, Sequence[int | str] | None]],
    outputs: str,
    constants: Mapping[str, np.ndarray] | None = None,
) -> ProtoMessage:
    """A graph; the types of its outputs are not stated."""
    message = ProtoMessage("onnx.GraphProto").put("name", "graph").put_all("node", nodes)
    message.put_all("input", [value(name, *type_) for name, type_ in inputs.items()])
    message.put_all("output", [ProtoMessage("onnx.ValueInfoProto").put("name", name) for name in outputs.split()])
    return message.put_all("initializer", [tensor(name, array) for name, array in (constants or {}).items()])


def model(
    nodes: Sequence[ProtoMessage],
    inputs: Mapping[str, tuple[DType, Sequence[int | str] | None]],
    outputs: str,
    constants: Mapping[str, np.ndarray] | None = None,
    version: int = 21,
    functions: Sequence[ProtoMessage] = (),
) -> bytes:
    """A model as a file has it."""
    message = ProtoMessage("onnx.ModelProto").put("ir_version", 10)
    message.append("opset_import").put("version", version)
    message.append("opset_import").put("domain", "local").put("version", 1)
    message.put("graph", graph(nodes, inputs, outputs, constants)).put_all("functions", functions)
    return encode(message)


def function(name: str, nodes: Sequence[ProtoMessage], inputs: str, outputs: str, attributes: str) -> ProtoMessage:
    """A function of the domain `local`."""
    message = ProtoMessage("onnx.FunctionProto").put("name", name).put("domain", "local").put_all("node", nodes)
    message.put_all("input", inputs.split()).put_all("output", outputs.split())
    message.append("opset_import").put("version", 21)
    return message.put_all("attribute", attributes.split())
