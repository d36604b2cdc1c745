"""`import_graph_def`: the nodes of a `GraphDef` as operations of the default graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import InvalidArgumentError, ResourceExhaustedError
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.op_spec import OP_SPECS, find_spec
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.messages.classes import CLASSES
from xlalite.messages.data_types import dtype_of_number, read_shape
from xlalite.messages.op_output_names import names_of, place_of
from xlalite.ops.functions.composed_operations import COMPOSED, of_node
from xlalite.ops.functions.control_flow import group, switch_case
from xlalite.ops.functions.control_flow_import import CONTROL, with_functions
from xlalite.ops.functions.dataflow_nodes import DataflowNode, FunctionLibrary, check
from xlalite.ops.functions.imported_nodes import BUILDERS, VARIABLES, with_resources, without_array_handles
from xlalite.ops.functions.node_attributes import FUNCTIONS, attribute_value, attributes_of
from xlalite.ops.helpers.constant import convert_to_tensor

_MAX_DEPTH: Final = 50
_MAX_FUNCTION_NODES: Final = 1_000_000
_ALIASES: Final = {
    **{"StatelessIf": "If", "XlaIf": "If", "StatelessWhile": "While", "XlaWhile": "While"},
    "PlaceholderV2": "Placeholder",
}
"""Types that differ from ours in nothing that shows here."""
_ANY_TYPE: Final = frozenset({0, 21})
"""None is said, or `DT_VARIANT`: a list of tensors, which has the type of its elements here."""
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_CASES: Final = frozenset({"Case", "StatelessCase"})


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> Any:
    """Adds the operations of a `GraphDef` to the default graph; their order in it does not matter.

    Gives the elements that were asked for, otherwise None.

    Args:
        graph_def: The message.
        input_map: Tensors of the default graph to take instead of outputs of the message, by their names there.
        return_elements: Names of operations and tensors of the message to give back.
        name: Name scope of the operations, `import` by default; the empty string for none.
        op_dict: Accepted for compatibility.
        producer_op_list: Accepted for compatibility.

    Raises:
        InvalidArgumentError: the message is no graph, or has operations or attributes that do not exist here.
    """
    if not isinstance(graph_def, CLASSES["GraphDef"]):
        raise TypeError(f"graph_def must be a GraphDef, found a {type(graph_def).__name__}")
    graph = get_default_graph()
    mapped = {_key(key): value for key, value in (input_map or {}).items()}
    with nullcontext() if name == "" else graph.name_scope(name or "import"):
        replaced = {
            key: graph.control_operation(value) if key[1] < 0 else convert_to_tensor(value)
            for key, value in mapped.items()
        }
        made = _Importer(graph_def).add(graph, graph_def.node, replaced)
    unused = [key for key in mapped if key not in made.used and key[0] not in made.operations]
    if unused:
        raise InvalidArgumentError(None, None, f"input_map names what the graph does not have: {_spelled(unused)}")
    if return_elements is None:
        return None
    return [made.element(each) for each in return_elements]


class _Nodes:
    """Nodes that became operations.

    Attributes:
        operations: The operations by the names of their nodes.
        used: The replaced outputs that something took.
        outputs: The outputs of those nodes that became several operations.
        inside: Names of nodes that are in functions of loops and branches.
        output_names: What the outputs of nodes are called, where that is known.
    """

    def __init__(self, replaced: Mapping[tuple[str, int], Any]) -> None:
        self.operations: dict[str, Operation] = {}
        self.used: set[tuple[str, int]] = set()
        self.outputs: dict[str, Sequence[Tensor]] = {}
        self.inside: Set[str] = frozenset()
        self.output_names: dict[str, Sequence[str]] = {}
        self._replaced = replaced

    def is_replaced(self, key: tuple[str, int]) -> bool:
        return key in self._replaced

    def tensor(self, text: str) -> Tensor:
        """The output that an input's text names."""
        key = _key(text)
        if key in self._replaced:
            self.used.add(key)
            found: Tensor = self._replaced[key]
            return found
        operation = self._operation(key[0])
        outputs = self.outputs.get(key[0], operation.outputs)
        place: int | None = key[1]
        if text.count(":") == 2:
            place = place_of(self.output_names.get(key[0], ()), len(outputs), text.split(":")[1], key[1])
        if place is None or place >= len(outputs):
            raise InvalidArgumentError(
                None, None, f"input {text!r}: {key[0]!r} has {len(outputs)} outputs, and not this one"
            )
        return outputs[place]

    def control(self, text: str) -> Operation:
        """The operation that a control input's text names."""
        key = _key(text)
        if key in self._replaced:
            self.used.add(key)
            found: Operation = self._replaced[key]
            return found
        return self._operation(key[0])

    def element(self, text: str) -> Tensor | Operation:
        """The tensor or operation that a name stands for."""
        return self.tensor(text) if ":" in text else self._operation(text)

    def _operation(self, name: str) -> Operation:
        if name in self.inside:
            raise InvalidArgumentError(None, None, f"node {name!r} is inside a loop or branch, which gives its values")
        if name not in self.operations:
            raise InvalidArgumentError(None, None, f"the GraphDef has no node {name!r}")
        return self.operations[name]


class _Importer:
    """Adds nodes to graphs, and the functions that they name."""

    def __init__(self, graph_def: Any) -> None:
        self._functions = {each.signature.name: each for each in graph_def.library.function}
        self._open: list[str] = []
        self._budget = _MAX_FUNCTION_NODES

    def add(self, graph: Graph, nodes: Sequence[Any], replaced: Mapping[tuple[str, int], Any]) -> _Nodes:
        """Adds nodes to a graph."""
        made = _Nodes(replaced)
        if any(node.op in CONTROL or node.op in VARIABLES or node.op.startswith("TensorArray") for node in nodes):
            nodes = self._functional(made, nodes)
        for node in _in_order(list(nodes), made):
            with graph.control_dependencies(None):
                made.operations[node.name] = _naming(node, partial(self._operation, graph, node, made))
            made.output_names[node.name] = self._output_names(node.op)
        return made

    def _functional(self, made: _Nodes, messages: Sequence[Any]) -> list[Any]:
        """The nodes with functions for loops and branches, resources for variables and lists for arrays."""
        nodes = {}
        for node in messages:
            inputs = tuple(_naming_key(node, each) for each in node.input)
            nodes[node.name] = DataflowNode(node.name, node.op, inputs, dict(node.attr.items()), node.device)
        if len(nodes) < len(messages):
            return list(messages)  # two have one name
        check(nodes)
        library = FunctionLibrary(self._functions)
        functional = with_functions(without_array_handles(with_resources(nodes)), library)
        self._functions |= {each.signature.name: each for each in library.messages}
        made.inside = nodes.keys() - functional.keys()
        return [node.to_message() for node in functional.values()]

    def _operation(self, graph: Graph, node: Any, made: _Nodes) -> Operation:
        called = self._called(node)
        if not called and node.op not in BUILDERS and node.op not in COMPOSED:
            spec = find_spec(_type_of(node.op))
        if not node.name or node.name.endswith("/"):
            raise InvalidArgumentError(None, None, "a name must not be empty or end in '/'")
        inputs = [graph.capture(made.tensor(each)) for each in node.input if not each.startswith("^")]
        control = [made.control(each) for each in node.input if each.startswith("^")]
        given = dict(node.attr.items())
        if called:
            return self._call(graph, called, inputs, control, node.name)
        if node.op in BUILDERS or node.op in COMPOSED:
            values = {name: attribute_value(name, each) for name, each in given.items()}
            make = BUILDERS.get(node.op) or partial(of_node, node.op)
            with graph.control_dependencies(control), graph.device(node.device or (lambda operation: None)):
                outputs = made.outputs[node.name] = make(inputs, values, node.name)
                return outputs[0].op if outputs else group(*inputs, name=node.name)
        attrs, annotations = attributes_of(spec, given)
        named = [name for name in spec.attrs if name in FUNCTIONS]
        unchanged: list[Tensor] = []
        if named:
            variables = 1 if spec.name == "If" else self._variable_count(given)
            unchanged = inputs[variables:] if "T" in given else []
            inputs, functions = self._function_attributes(graph, spec.name, given, inputs, variables)
            attrs |= functions
        if not spec.accepts_input_count(len(inputs)):
            raise InvalidArgumentError(None, None, f"it has {len(inputs)} inputs, expected {', '.join(spec.inputs)}")
        with graph.control_dependencies(control), graph.device(node.device or (lambda operation: None)):
            operation = graph.create_op(spec.name, inputs, attrs, node.name)
        if unchanged:
            made.outputs[node.name] = [*operation.outputs[:variables], *unchanged]
        for name, value in annotations.items():
            operation.set_attr(name, value)
        return operation

    def _output_names(self, op: str) -> Sequence[str]:
        if op in self._functions:
            return [each.name for each in self._functions[op].signature.output_arg]
        return names_of(op)

    def _called(self, node: Any) -> list[Any]:
        """The functions of which a node calls one: the only one, or that with the number of its first input."""
        if node.op in self._functions:
            return [self._functions[node.op]]
        if node.op in _CALLS:
            return [self._message(dict(node.attr.items()), "f")]
        if node.op in _CASES:
            names = [each.name for each in node.attr["branches"].list.func]
            if names and all(each in self._functions for each in names):
                return [self._functions[each] for each in names]
            raise InvalidArgumentError(None, None, f"attribute 'branches': the library has not all of {names}")
        return []

    def _call(
        self,
        graph: Graph,
        functions: Sequence[Any],
        inputs: Sequence[Tensor],
        control: Sequence[Operation],
        name: str,
    ) -> Operation:
        """The results of a call, whose operations join the graph under its name."""
        with graph.name_scope(f"{graph.get_name_scope()}/{name}/".lstrip("/")):
            if len(functions) == 1:
                results, waits = self._inlined(graph, functions[0], inputs, control)
            else:
                branches = [partial(self._branch, each, inputs[1:]) for each in functions]
                with graph.control_dependencies(control):
                    found = switch_case(inputs[0], branches)
                results = [found] if isinstance(found, Tensor) else [] if isinstance(found, Operation) else [*found]
                waits = [found] if isinstance(found, Operation) else []
        with graph.control_dependencies([*control, *waits]):
            if not results:
                return group(name=name)
            return graph.create_op("Identity" if len(results) == 1 else "IdentityN", results, {}, name)

    def _branch(self, message: Any, inputs: Sequence[Tensor]) -> Any:
        inner = get_default_graph()
        results, waits = self._inlined(inner, message, [inner.capture(each) for each in inputs], ())
        with inner.control_dependencies(waits):
            return [inner.create_op("Identity", [each]).outputs[0] for each in results] or group()

    def _inlined(
        self, graph: Graph, message: Any, inputs: Sequence[Tensor], control: Sequence[Operation]
    ) -> tuple[list[Tensor], list[Operation]]:
        """The results of a function whose nodes join the graph, and what has to run besides."""
        arguments = message.signature.input_arg
        if len(arguments) != len(inputs):
            text = f"function {message.signature.name!r} takes {len(arguments)} inputs, found {len(inputs)}"
            raise InvalidArgumentError(None, None, text)
        with self._within(message):
            replaced: dict[tuple[str, int], Any] = {}
            for argument, tensor in zip(arguments, inputs, strict=True):
                replaced |= {(argument.name, 0): tensor, (argument.name, -1): tensor.op}
            made = self.add(graph, message.node_def, replaced)
            for each in made.operations.values():
                each.wait_for(control)
            return _results(message, made), [made.control(f"^{each}") for each in message.control_ret.values()]

    @contextmanager
    def _within(self, message: Any) -> Iterator[None]:
        """Counts what is inside functions, which must come to an end."""
        name = message.signature.name
        if name in self._open or len(self._open) >= _MAX_DEPTH:
            raise InvalidArgumentError(None, None, f"function {name!r} is within itself, or too many are")
        self._budget -= 1 + len(message.node_def)
        if self._budget < 0:
            raise ResourceExhaustedError(None, None, f"functions have more than {_MAX_FUNCTION_NODES} nodes in all")
        self._open.append(name)
        yield
        self._open.pop()

    def _function_attributes(
        self, graph: Graph, op_type: str, given: Mapping[str, Any], inputs: Sequence[Tensor], variables: int
    ) -> tuple[list[Tensor], dict[str, FunctionGraph]]:
        """The inputs and the functions of an `If` or `While`, the first of whose inputs are no captured tensors.

        Ours have inputs for what each function captures; TensorFlow's give the same inputs to both functions.
        """
        first, second = ("then_branch", "else_branch") if op_type == "If" else ("cond", "body")
        messages = [self._message(given, each) for each in (first, second)]
        counts = [len(each.signature.input_arg) for each in messages]
        start, rest = inputs[:variables], list(inputs[variables:])
        arguments = start if op_type == "While" else ()
        counts = [each - len(arguments) for each in counts]
        is_shared = counts[0] + counts[1] != len(rest)
        rest *= 1 + is_shared
        if min(counts) < 0 or counts[0] + counts[1] != len(rest):
            raise InvalidArgumentError(None, None, f"its functions do not take its {len(inputs)} inputs")
        captured = rest[: counts[0]], rest[counts[0] :]
        shapes = [each.shape for each in arguments]
        while True:
            functions = {
                name: self._function(graph, message, arguments, each, shapes)
                for name, message, each in zip((first, second), messages, captured, strict=True)
            }
            if is_shared and op_type == "While":
                del functions[second].outputs[variables:]
            _check_results(op_type, functions)
            results = (each.shape for each in functions[second].outputs)
            wider = [_common(*each) for each in zip(shapes, results, strict=False)]
            if "_input_shapes" in messages[1].attr or [each.dims for each in wider] == [each.dims for each in shapes]:
                break
            shapes = wider
        return [*start, *functions[first].captured, *functions[second].captured], functions

    def _variable_count(self, given: Mapping[str, Any]) -> int:
        """How many inputs of a `While` its body changes; what stands behind these is captured.

        Loops that say the types of all they take, as TensorFlow's do, also give back what is captured.
        """
        body = self._message(given, "body")
        results = [body.ret[each.name] for each in body.signature.output_arg if each.name in body.ret]
        count = len(results)
        if "T" in given and count == len(body.signature.input_arg):
            while count > 1 and results[count - 1] == body.signature.input_arg[count - 1].name:
                count -= 1
        return count

    def _message(self, given: Mapping[str, Any], attr: str) -> Any:
        name = given[attr].func.name if attr in given else ""
        if name not in self._functions:
            raise InvalidArgumentError(None, None, f"attribute {attr!r}: the library has no function {name!r}")
        return self._functions[name]

    def _function(
        self,
        outer: Graph,
        message: Any,
        arguments: Sequence[Tensor],
        captured: Sequence[Tensor],
        shapes: Sequence[TensorShape],
    ) -> FunctionGraph:
        name = message.signature.name
        function = FunctionGraph(name, outer)
        said = message.attr["_input_shapes"].list.shape if "_input_shapes" in message.attr else ()
        given = [*arguments, *captured]
        shapes = [read_shape(each.to_proto()) for each in said] or shapes
        replaced: dict[tuple[str, int], Any] = {}
        mentioned = (*message.ret.values(), *(text for node in message.node_def for text in node.input))
        used = {_key(text)[0] for text in mentioned}
        with self._within(message), function.as_default():
            for position, (argument, tensor) in enumerate(zip(message.signature.input_arg, given, strict=True)):
                shape = shapes[position] if position < len(shapes) else tensor.shape
                is_alike = argument.type in _ANY_TYPE or dtype_of_number(argument.type) is tensor.dtype
                if not is_alike or not shape.is_compatible_with(tensor.shape):
                    raise InvalidArgumentError(
                        None, None, f"function {name!r}: argument {argument.name!r} is not like {tensor.name!r}"
                    )
                is_captured = position >= len(arguments)
                if is_captured and argument.name not in used:
                    continue
                inner = function.captures.get(tensor) if is_captured else None
                if inner is None:
                    inner = function.add_argument(tensor.dtype, shape, argument.name)
                    if tensor.handle_data is not None:
                        inner.set_handle_data(tensor.handle_data)
                    if is_captured:
                        function.captures[tensor] = inner
                replaced[argument.name, 0] = inner
                replaced[argument.name, -1] = inner.op
            function.outputs += _results(message, self.add(function, message.node_def, replaced))
        return function


def _results(message: Any, made: _Nodes) -> list[Tensor]:
    """What a function gives."""
    names = [each.name for each in message.signature.output_arg]
    missing = [each for each in names if each not in message.ret]
    if missing:
        text = f"function {message.signature.name!r} does not say its result {missing[0]!r}"
        raise InvalidArgumentError(None, None, text)
    return [made.tensor(message.ret[each]) for each in names]


def _type_of(op: str) -> str:
    """Our operation type; queues and readers by reference are resources here."""
    later = f"{op}V2"
    return _ALIASES.get(op) or (later if later in OP_SPECS and ("Queue" in op or "Reader" in op) else op)


def _common(shape: TensorShape, result: TensorShape) -> TensorShape:
    """What holds of a loop variable that starts with one shape and goes on with another."""
    if shape.dims is None or result.dims is None or len(shape.dims) != len(result.dims):
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(shape.dims, result.dims, strict=True)])


def _check_results(op_type: str, functions: Mapping[str, FunctionGraph]) -> None:
    counts = {name: len(each.outputs) for name, each in functions.items()}
    if counts.get("cond", 1) != 1 or (op_type == "If" and len({*counts.values()}) > 1):
        raise InvalidArgumentError(None, None, f"its functions have wrong numbers of results: {counts}")


def _naming(node: Any, make: Callable[[], Operation]) -> Operation:
    """What `make` makes; its errors name the node.

    Shape functions check what programs get wrong, not what only broken files have: what goes wrong in them then is an
    error of the file too.
    """
    try:
        return make()
    except MemoryError as error:
        raise ResourceExhaustedError(None, None, f"node {node.name!r} ({node.op}): {error}") from None
    except Exception as error:
        text = str(error) or type(error).__name__
        raise InvalidArgumentError(None, None, f"node {node.name!r} ({node.op}): {text}") from error


def _in_order(nodes: Sequence[Any], made: _Nodes) -> list[Any]:
    """The nodes, each after those it needs, otherwise as they stand."""
    by_name = {node.name: node for node in nodes}
    if len(by_name) < len(nodes):
        twice = next(node.name for node in nodes if by_name[node.name] is not node)
        raise InvalidArgumentError(None, None, f"two nodes are called {twice!r}")
    ordered: dict[str, Any] = {}
    entered: set[str] = set()
    for start in nodes:
        stack = [start]
        while stack:
            node = stack[-1]
            if node.name in ordered:
                stack.pop()
                continue
            waiting = [each for each in _needed(node, by_name, made) if each.name not in ordered]
            if not waiting:
                ordered[stack.pop().name] = node
            elif node.name in entered:
                raise InvalidArgumentError(
                    None, None, f"node {node.name!r} ({node.op}) needs itself; loops must be While"
                )
            else:
                entered.add(node.name)
                stack += reversed(waiting)
    return list(ordered.values())


def _needed(node: Any, by_name: Mapping[str, Any], made: _Nodes) -> list[Any]:
    needed = []
    for text in node.input:
        key = _naming_key(node, text)
        if made.is_replaced(key):
            continue
        if key[0] not in by_name:
            raise InvalidArgumentError(None, None, f"node {node.name!r} ({node.op}): there is no input {text!r}")
        needed.append(by_name[key[0]])
    return needed


def _naming_key(node: Any, text: str) -> tuple[str, int]:
    try:
        return _key(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(None, None, f"node {node.name!r} ({node.op}): {error}") from None


def _key(text: str) -> tuple[str, int]:
    """The node and the number of its output that an input's text names; -1 for a control input."""
    if text.startswith("^"):
        return text[1:], -1
    name, *rest = text.split(":")
    number = rest[-1] if rest else "0"
    if len(rest) > 2 or not (number.isascii() and number.isdecimal() and len(number) < 7):
        raise InvalidArgumentError(None, None, f"{text!r} does not name an output")
    return name, int(number)


def _spelled(keys: Iterable[tuple[str, int]]) -> list[str]:
    return [f"^{name}" if number < 0 else f"{name}:{number}" for name, number in keys]
