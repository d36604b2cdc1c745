"""What an ONNX model is made of: graphs, nodes and functions as values, read from its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from xlalite.hlo.errors import ParseError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array
from xlalite.interop.onnx.messages import decode_model
from xlalite.interop.onnx.tensors import ExternalData, element_type, read_sparse_tensor, read_tensor

DEFAULT_DOMAIN = ""
_DOMAIN_ALIASES = {"ai.onnx": DEFAULT_DOMAIN}


@dataclass(frozen=True, slots=True)
class TensorType:
    """An array.

    Attributes:
        dtype: Its element type.
        dims: Its sizes: numbers, names of sizes that are known later, or None; None if not even the rank is known.
    """

    dtype: DType
    dims: tuple[int | str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class SequenceType:
    """Any number of values of a type."""

    element: ValueType


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value of a type, or nothing."""

    element: ValueType


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that no program here can hold; says what it is."""

    name: str


ValueType: TypeAlias = TensorType | SequenceType | OptionalType | OtherType


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of an attribute of the function around the node."""

    name: str


AttributeValue: TypeAlias = (
    "int | float | str | Array | Graph | ValueType | Reference "
    "| tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | tuple[Array, ...]"
)
Attributes: TypeAlias = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Node:
    """An operation of a graph.

    Attributes:
        op_type: Name of the operator.
        domain: Its domain.
        overload: Which of the functions of the name, if it is one.
        name: The node's name.
        inputs: Names of its inputs; empty where one is left out.
        outputs: Names of its outputs; empty where nobody wants one.
        attributes: Values of the attributes that are there.
        message: What it was read from.
    """

    op_type: str
    domain: str
    overload: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes
    message: ProtoMessage = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        """How messages call it."""
        operator = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{operator} {self.name or ', '.join(filter(None, self.outputs))!r}"


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A name and its type."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can run, between inputs and outputs."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    initializers: Mapping[str, Array] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Function:
    """Nodes under a name: a call of it is the nodes."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: Attributes
    versions: Mapping[str, int]


FunctionName: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ModelProgram:
    """A model: its graph, the functions it calls by domain, name and overload, and the versions of its operators."""

    graph: Graph
    functions: Mapping[FunctionName, Function]
    versions: Mapping[str, int]


def read_model(data: bytes, external: ExternalData) -> ModelProgram:
    """The model in a file's bytes.

    Raises:
        ParseError: They are no ONNX model, or one that holds what cannot be read.
    """
    message = decode_model(data)
    if not message.has("graph"):
        raise ParseError("the bytes are no ONNX model: there is no graph")
    reader = _Reader(external)
    functions = [reader.function(each) for each in message.messages("functions")]
    return ModelProgram(reader.graph(message.message("graph")), dict(functions), _versions(message))


def read_function(message: ProtoMessage) -> Function:
    """A function that did not come with a model."""
    return _Reader(ExternalData()).function(message)[1]


def canonical_domain(name: str) -> str:
    """A domain under its only name."""
    return _DOMAIN_ALIASES.get(name, name)


def _versions(message: ProtoMessage) -> dict[str, int]:
    return {canonical_domain(each.text("domain")): each.integer("version") for each in message.messages("opset_import")}


@dataclass(frozen=True, slots=True)
class _Reader:
    external: ExternalData

    def graph(self, message: ProtoMessage) -> Graph:
        initializers = {each.text("name"): read_tensor(each, self.external) for each in message.messages("initializer")}
        for each in message.messages("sparse_initializer"):
            initializers[each.message("values").text("name")] = read_sparse_tensor(each, self.external)
        return Graph(
            message.text("name"),
            tuple(map(self.node, message.messages("node"))),
            tuple(map(_value_info, message.messages("input"))),
            tuple(map(_value_info, message.messages("output"))),
            initializers,
        )

    def function(self, message: ProtoMessage) -> tuple[FunctionName, Function]:
        domain, name, overload = (
            canonical_domain(message.text("domain")),
            message.text("name"),
            message.text("overload"),
        )
        function = Function(
            name,
            tuple(map(self.node, message.messages("node"))),
            message.texts("input"),
            message.texts("output"),
            message.texts("attribute"),
            self.attributes(message.messages("attribute_proto")),
            _versions(message),
        )
        return (domain, name, overload), function

    def node(self, message: ProtoMessage) -> Node:
        return Node(
            message.text("op_type"),
            canonical_domain(message.text("domain")),
            message.text("overload"),
            message.text("name"),
            message.texts("input"),
            message.texts("output"),
            self.attributes(message.messages("attribute")),
            message,
        )

    def attributes(self, messages: object) -> dict[str, AttributeValue]:
        assert isinstance(messages, (list, tuple)), "repeated messages"
        return {each.text("name"): self.attribute(each) for each in messages}

    def attribute(self, message: ProtoMessage) -> AttributeValue:
        if message.has("ref_attr_name"):
            return Reference(message.text("ref_attr_name"))
        match message.integer("type") or _guessed_type(message):
            case 1:
                return message.number("f")
            case 2:
                return message.integer("i")
            case 3:
                return _text(message.data("s"))
            case 4:
                if message.message("t").integer("data_type") == 8:
                    return tuple(map(_text, message.message("t").values.get("string_data", ())))
                return read_tensor(message.message("t"), self.external)
            case 5:
                return self.graph(message.message("g"))
            case 6:
                return tuple(message.values.get("floats", ()))
            case 7:
                return message.integers("ints")
            case 8:
                return tuple(map(_text, message.values.get("strings", ())))
            case 9:
                return tuple(read_tensor(each, self.external) for each in message.messages("tensors"))
            case 11:
                return read_sparse_tensor(message.message("sparse_tensor"), self.external)
            case 13:
                return _value_type(message.message("tp"))
            case kind:
                raise message.error(f"attribute {message.text('name')!r} is of type {kind}, which is not supported")


def _guessed_type(message: ProtoMessage) -> int:
    """The type of an attribute of which old files say nothing but what it holds."""
    kinds = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8}
    return next((number for name, number in kinds.items() if message.has(name)), 0)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _value_info(message: ProtoMessage) -> ValueInfo:
    return ValueInfo(message.text("name"), _value_type(message.message("type")))


def _value_type(message: ProtoMessage) -> ValueType:
    if message.has("sequence_type"):
        return SequenceType(_value_type(message.message("sequence_type").message("elem_type")))
    if message.has("optional_type"):
        return OptionalType(_value_type(message.message("optional_type").message("elem_type")))
    if not message.has("tensor_type"):
        return OtherType("neither tensor nor sequence nor optional")
    tensor = message.message("tensor_type")
    try:
        dtype = element_type(tensor, tensor.integer("elem_type"))
    except ParseError as error:
        return OtherType(str(error))
    if not tensor.has("shape"):
        return TensorType(dtype)
    dims: list[int | str | None] = []
    for dim in tensor.message("shape").messages("dim"):
        if dim.has("dim_value") and dim.integer("dim_value") >= 0:
            dims.append(dim.integer("dim_value"))
        else:
            dims.append(dim.text("dim_param") or None)
    return TensorType(dtype, tuple(dims))
