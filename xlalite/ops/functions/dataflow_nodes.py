"""Nodes of a `GraphDef` while loops and branches are made of switches and merges, and functions out of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.hlo.records import dataclass
from xlalite.messages.classes import CLASSES

Source = tuple[str, int]
"""The node and the number of its output; -1 for the node itself, which others wait for."""

SWITCHES: Final = frozenset({"Switch", "RefSwitch"})
MERGES: Final = frozenset({"Merge", "RefMerge"})
ENTERS: Final = frozenset({"Enter", "RefEnter"})
EXITS: Final = frozenset({"Exit", "RefExit"})
NEXTS: Final = frozenset({"NextIteration", "RefNextIteration"})
_REAL_TYPES: Final = frozenset({1, 2, 14, 19})
IDENTITIES: Final = frozenset({"Identity", "RefIdentity"})
_NEEDS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    **dict.fromkeys(SWITCHES, (2, ())),
    **dict.fromkeys((*MERGES, *EXITS, *NEXTS, *IDENTITIES, "LoopCond"), (1, ())),
    **dict.fromkeys(ENTERS, (1, ("frame_name",))),
    **dict.fromkeys(("Variable", "VariableV2"), (0, ("dtype", "shape"))),
    "TensorArrayV3": (0, ("dtype", "dynamic_size")),
    "Const": (0, ("dtype",)),
}
"""How many inputs and which attributes nodes have that are followed or changed here."""


@dataclass(frozen=True, slots=True)
class DataflowNode:
    """A node whose inputs have been taken apart.

    Attributes:
        name: Its name.
        op: The type of operation.
        inputs: Its inputs; those that are only waited for stand last.
        attrs: Its attributes, as `AttrValue`s.
        device: The device it asks for.
    """

    name: str
    op: str
    inputs: tuple[Source, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    device: str = ""

    @property
    def data(self) -> tuple[Source, ...]:
        """The inputs with values."""
        return tuple(each for each in self.inputs if each[1] >= 0)

    @property
    def waits(self) -> tuple[Source, ...]:
        """The inputs that are only waited for."""
        return tuple(each for each in self.inputs if each[1] < 0)

    def with_inputs(self, inputs: Iterable[Source]) -> DataflowNode:
        """The same with other inputs, each of those that are waited for once."""
        listed = tuple(inputs)
        waits = dict.fromkeys(each for each in listed if each[1] < 0)
        return replace(self, inputs=(*(each for each in listed if each[1] >= 0), *waits))

    def to_message(self) -> Any:
        """The node as a `NodeDef`."""
        message = CLASSES["NodeDef"](name=self.name, op=self.op, device=self.device)
        message.input.extend(_spelled(each) for each in self.inputs)
        for name, value in self.attrs.items():
            message.attr[name].CopyFrom(value)
        return message


Nodes = dict[str, DataflowNode]


class FunctionLibrary:
    """The functions that are made of nodes.

    Attributes:
        messages: The functions.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        """A library whose functions have other names than those that are taken."""
        self.messages: list[Any] = []
        self._taken = set(taken)

    def add(self, name: str, nodes: Nodes, arguments: Iterable[str], results: Iterable[Source]) -> str:
        """Adds a function of nodes, which take its arguments by name; gives its name."""
        unique = next(each for each in _tries(name) if each not in self._taken)
        self._taken.add(unique)
        message = CLASSES["FunctionDef"]()
        message.signature.name = unique
        for argument in arguments:
            message.signature.input_arg.add(name=argument)
        for number, result in enumerate(results):
            message.signature.output_arg.add(name=f"result_{number}")
            message.ret[f"result_{number}"] = _spelled(result)
        message.node_def.extend(each.to_message() for each in nodes.values())
        self.messages.append(message)
        return unique


def function_attribute(name: str) -> Any:
    """An attribute that names a function."""
    value = CLASSES["AttrValue"]()
    value.func.name = name
    return value


def index_constant(name: str, value: int) -> DataflowNode:
    """A node that gives a number."""
    dtype, tensor = CLASSES["AttrValue"](type=3), CLASSES["AttrValue"]()
    tensor.tensor.dtype = 3
    tensor.tensor.int_val.append(value)
    return DataflowNode(name, "Const", (), {"dtype": dtype, "value": tensor})


def unique_name(wanted: str, nodes: Mapping[str, Any]) -> str:
    """A name like the wanted one that no node has."""
    return next(each for each in _tries(wanted) if each not in nodes)


def check(nodes: Nodes) -> None:
    """Makes sure that what this package follows from node to node is there, and comes to an end.

    Raises:
        InvalidArgumentError: a node lacks inputs or attributes, takes an output that a switch does not have, or needs
            itself other than in the next iteration.
    """
    for node in nodes.values():
        count, attrs = _NEEDS.get(node.op, (0, ()))
        if len(node.data) < count:
            message = f"node {node.name!r} ({node.op}) has {len(node.data)} inputs, expected {count}"
            raise InvalidArgumentError(None, None, message)
        missing = [name for name in attrs if name not in node.attrs]
        if missing:
            raise InvalidArgumentError(None, None, f"node {node.name!r} ({node.op}) has no attribute {missing[0]!r}")
        for name, output in node.data:
            if output > 1 and name in nodes and nodes[name].op in SWITCHES:
                giver = f"{name!r} ({nodes[name].op})"
                message = f"node {node.name!r} ({node.op}) takes output {output} of {giver}, which has 2"
                raise InvalidArgumentError(None, None, message)
    _, endless = _ordered(nodes)
    if endless:
        raise InvalidArgumentError(None, None, f"node {endless[0]!r} needs itself, not only in the next iteration")


def in_order(nodes: Nodes) -> list[DataflowNode]:
    """The nodes, each after those it needs but for the next iteration."""
    return [nodes[name] for names in _ordered(nodes) for name in names]


def _ordered(nodes: Nodes) -> tuple[list[str], list[str]]:
    """The nodes in order, and those in or behind cycles."""
    users: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    for node in nodes.values():
        needed = {name for name, _ in node.inputs if name in nodes and nodes[name].op not in NEXTS}
        missing[node.name] = len(needed)
        for name in needed:
            users.setdefault(name, []).append(node.name)
    ready = [name for name, count in missing.items() if not count]
    for name in ready:
        for user in users.get(name, ()):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return ready, [name for name, count in missing.items() if count]


class BodyBuilder:
    """Makes the body of a loop or branch of nodes of the graph around it.

    Attributes:
        arguments: The names of its arguments: the given ones, then one for each captured tensor.
        captured: The tensors that it takes from outside.
        waits: What its nodes waited for outside, so that the whole waits for it.
        nodes: Its nodes.
    """

    def __init__(
        self, outer: Nodes, is_inside: Callable[[str], bool], resolve: Callable[[Source], Source | None], given: int
    ) -> None:
        """A body without nodes.

        Args:
            outer: The graph.
            is_inside: Whether a node belongs to the body.
            resolve: What stands for a tensor: another one, an argument (`argument`), or None for nothing.
            given: The number of arguments before the captured tensors.
        """
        self._outer = outer
        self._is_inside = is_inside
        self._resolve = resolve
        self.arguments = [argument(number) for number in range(given)]
        self.captured: list[Source] = []
        self.waits: dict[Source, None] = {}
        self.nodes: Nodes = {}
        self._places: dict[Source, Source] = {}

    def build(self, results: Iterable[Source]) -> list[Source]:
        """Takes in what computes the results; gives what they are called inside."""
        found = [self._source(each) for each in results]
        waiting = [each for each in found if each is not None]
        while waiting:
            name = waiting.pop()[0]
            if name in self.nodes or name not in self._outer or not self._is_inside(name):
                continue
            node = self._outer[name]
            inputs = [each for each in map(self._source, node.inputs) if each is not None]
            self.nodes[name] = node.with_inputs(inputs)
            waiting += inputs
        self.nodes = {name: self.nodes[name] for name in (*self._outer, *self.nodes) if name in self.nodes}
        return [each for each in found if each is not None]

    def _source(self, source: Source) -> Source | None:
        found = self._resolve(source)
        if found is None or found[0] in self.arguments or self._is_inside(found[0]):
            return found
        if found[1] < 0:
            self.waits[found] = None
            return None
        if found not in self._places:
            self._places[found] = self._from_outside(found)
        return self._places[found]

    def _from_outside(self, source: Source) -> Source:
        """A copy of a constant that may have to be known, otherwise an argument."""
        node = self._outer.get(source[0])
        while node is not None and node.op in ENTERS:
            node = self._outer.get(node.data[0][0])
        if node is not None and node.op == "Const" and node.attrs["dtype"].type not in _REAL_TYPES:
            self.nodes[node.name] = replace(node, inputs=())
            return node.name, 0
        self.captured.append(source)
        self.arguments.append(argument(len(self.arguments)))
        return self.arguments[-1], 0


def argument(number: int) -> str:
    """The name of an argument of a body, which no node has."""
    return f".argument_{number}"


def _tries(wanted: str) -> Iterable[str]:
    yield wanted
    number = 0
    while True:
        number += 1
        yield f"{wanted}_{number}"


def _spelled(source: Source) -> str:
    name, number = source
    return f"^{name}" if number < 0 else f"{name}:{number}" if number else name
