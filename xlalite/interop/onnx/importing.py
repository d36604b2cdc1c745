"""From a model to an HLO module: walks graphs and functions and asks the rule of each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.errors import LoweringError, XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx import rules  # noqa: F401
from xlalite.interop.onnx.context import NodeContext, rule_of
from xlalite.interop.onnx.graph import Attributes, Function, Graph, ModelProgram, Node, Reference
from xlalite.interop.onnx.known_values import KnownValues, UnknownValueError
from xlalite.interop.onnx.schema_functions import schema_function
from xlalite.interop.onnx.scope import Scope, Value
from xlalite.interop.onnx.tensors import LARGEST

# What rules may stumble over in a model that breaks the rules of ONNX.
_FAULTS_OF_MODELS = (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, RuntimeError)

Argument: TypeAlias = "Shape | Array | list[Argument] | None"
"""An input: the shape of a parameter, a constant, a sequence of such, or nothing."""
Structure: TypeAlias = "int | list[Structure] | None"
"""Which result of the program is an output: a number, a sequence of such, or nothing."""


@dataclass(frozen=True, slots=True)
class ImportedModule:
    """A module, and which of its results are the model's outputs."""

    module: HloModule
    outputs: tuple[Structure, ...]


class Importer:
    """Translates one model.

    Attributes:
        known: What is known of values.
        module: The module that is being made.
    """

    def __init__(self, program: ModelProgram) -> None:
        self.known = KnownValues()
        self.module = HloModule(_identifier(program.graph.name or "onnx_model"))
        self._program = program
        self._computations = 0

    def run(self, arguments: Mapping[str, Argument]) -> ImportedModule:
        """The module for inputs of given shapes.

        Raises:
            UnknownValueError: Shapes depend on values of parameters.
            LoweringError: An operator has no rule, or the model is not valid.
            ShapeError: Shapes do not fit.
        """
        graph = self._program.graph
        builder = Builder("main", self.module)
        scope = Scope(builder, self._program.versions)
        for name, array in graph.initializers.items():
            scope.names[name] = builder.constant(array)
        for name, argument in arguments.items():
            scope.names[name] = self._parameter(builder, name, argument)
        self.run_nodes(graph.nodes, scope)
        results: list[Handle] = []
        outputs = tuple(_structure(scope.find(each.name), results) for each in graph.outputs)
        builder.build(builder.tuple(results), entry=True)
        return ImportedModule(self.module, outputs)

    def run_nodes(self, nodes: Sequence[Node], scope: Scope) -> None:
        """Gives the outputs of nodes their values."""
        for node in nodes:
            with _at(node), scope.builder.metadata(Metadata(op_type=node.op_type, op_name=node.name)):
                inputs = tuple(scope.find(name) if name else None for name in node.inputs)
                attributes = self._resolved(node, scope)
                values = self.run_node(node, inputs, attributes, scope)
                if len(values) < len(node.outputs):
                    raise LoweringError(f"{len(node.outputs)} outputs are asked for, there are {len(values)}")
                for name, value in zip(node.outputs, values, strict=False):
                    if isinstance(value, Handle) and value.shape.element_count > LARGEST:
                        raise LoweringError(f"{value.shape.text()} is too large")
                    if name:
                        scope.names[name] = value

    def run_node(
        self, node: Node, inputs: tuple[Value, ...], attributes: Attributes, scope: Scope
    ) -> tuple[Value, ...]:
        """The values of a node's outputs."""
        version = scope.versions.get(node.domain, 1)
        function = self._program.functions.get((node.domain, node.op_type, node.overload))
        if function is None:
            rule = rule_of(node.domain, node.op_type, version)
            if rule is not None:
                result = rule(NodeContext(node, inputs, attributes, version, scope, self))
                return result if isinstance(result, tuple) else (result,)
            function = schema_function(replace(node, attributes=attributes), inputs, version)
        if function is None:
            raise LoweringError("there is no rule for the operator")
        return self._call(function, inputs, attributes, scope)

    def run_graph(self, graph: Graph, inputs: Sequence[Value], scope: Scope) -> list[Value]:
        """The outputs of a graph inside a scope, in its computation."""
        return self.outputs_of(graph, inputs, scope.inner(scope.builder, scope))

    def outputs_of(self, graph: Graph, inputs: Sequence[Value], scope: Scope) -> list[Value]:
        """The outputs of a graph whose scope is already there."""
        if len(inputs) < len(graph.inputs):
            raise LoweringError(f"graph {graph.name!r} takes {len(graph.inputs)} inputs, found {len(inputs)}")
        for name, array in graph.initializers.items():
            scope.names[name] = scope.builder.constant(array)
        scope.names.update((info.name, value) for info, value in zip(graph.inputs, inputs, strict=False))
        self.run_nodes(graph.nodes, scope)
        return [scope.find(each.name) for each in graph.outputs]

    def subcomputation(
        self, kind: str, scope: Scope, parameters: Sequence[Shape], body: Callable[[Builder, Handles], Handle]
    ) -> HloComputation:
        """A computation under a name of its own."""
        self._computations += 1
        return scope.builder.subcomputation(f"{kind}_{self._computations}", parameters, body)

    def _call(
        self, function: Function, inputs: tuple[Value, ...], attributes: Attributes, scope: Scope
    ) -> tuple[Value, ...]:
        if len(inputs) > len(function.inputs):
            raise LoweringError(f"function {function.name!r} takes {len(function.inputs)} inputs, found {len(inputs)}")
        filled = (*inputs, *[None] * (len(function.inputs) - len(inputs)))
        names = dict(zip(function.inputs, filled, strict=True))
        inner = scope.inner(scope.builder, None, names)
        inner.versions = {**scope.versions, **function.versions}
        inner.attributes = {**function.defaults, **attributes}
        self.run_nodes(function.nodes, inner)
        return tuple(inner.names.get(name) for name in function.outputs)

    def _resolved(self, node: Node, scope: Scope) -> Attributes:
        """The attributes with values for references; what the function's caller left out is left out."""
        if not any(isinstance(value, Reference) for value in node.attributes.values()):
            return node.attributes
        named = {
            name: scope.attributes.get(value.name) if isinstance(value, Reference) else value
            for name, value in node.attributes.items()
        }
        return {name: value for name, value in named.items() if value is not None}

    def _parameter(self, builder: Builder, name: str, argument: Argument) -> Value:
        if isinstance(argument, Shape):
            parameter = builder.parameter(argument, _identifier(name))
            self.known.add_input(parameter, name)
            return parameter
        if isinstance(argument, list):
            return [self._parameter(builder, name, each) for each in argument]
        return None if argument is None else builder.constant(argument)


def _structure(value: Value, results: list[Handle]) -> Structure:
    if isinstance(value, list):
        return [_structure(each, results) for each in value]
    if value is None:
        return None
    results.append(value)
    return len(results) - 1


def _identifier(name: str) -> str:
    """A name as HLO's text can spell it."""
    spelt = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    return spelt if spelt[:1].isalpha() or spelt[:1] == "_" else f"_{spelt}"


@contextmanager
def _at(node: Node) -> Iterator[None]:
    """Errors from inside say at which node."""
    try:
        yield
    except UnknownValueError as error:
        error.node = node
        raise
    except XlaliteError as error:
        if isinstance(error, LoweringError) and str(error).startswith("importing "):
            raise
        raise LoweringError(f"importing {node.title}: {error}") from error
    except _FAULTS_OF_MODELS as error:
        raise LoweringError(f"importing {node.title}: {type(error).__name__}: {error}") from error
