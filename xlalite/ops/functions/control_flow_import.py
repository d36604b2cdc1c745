"""Loops and branches of switches and merges, as TensorFlow 1 writes them, become `While` and `If` with functions.

TensorFlow runs such graphs by letting dead tensors through; what its own functions build always has the form of loops
and branches, which is found again here. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from xlalite.framework.graph.errors import UnimplementedError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions.dataflow_nodes import (
    ENTERS,
    EXITS,
    IDENTITIES,
    MERGES,
    NEXTS,
    SWITCHES,
    BodyBuilder,
    DataflowNode,
    FunctionLibrary,
    Nodes,
    Source,
    argument,
    function_attribute,
    in_order,
    index_constant,
    unique_name,
)

CONTROL: Final = frozenset({"LoopCond", *SWITCHES, *MERGES, *ENTERS, *EXITS, *NEXTS})
"""The types of operations that loops and branches are made of."""


def with_functions(nodes: Nodes, library: FunctionLibrary) -> Nodes:
    """The nodes with `While` and `If` for the loops and branches; the functions go to the library.

    Nodes inside loops and branches are left out.

    Raises:
        UnimplementedError: they are no loops and branches as TensorFlow's functions build them.
    """
    return _with_branches(_with_loops(nodes, library), library)


# Loops: frames, which are entered, gone through and left.

Frame = tuple[str, ...]


def _with_loops(nodes: Nodes, library: FunctionLibrary) -> Nodes:
    frames = _frames(nodes)
    for frame in sorted({*frames.values()} - {()}, key=len, reverse=True):
        members = {name for name, each in frames.items() if each == frame}
        loop = _Loop(nodes, members, frame[-1])
        whole, exits = loop.as_while(library)
        exited = {each.name for each in exits}
        nodes = {name: node for name, node in nodes.items() if name not in members and name not in exited}
        for each in (whole, *exits):
            nodes[each.name] = each
            frames[each.name] = frame[:-1]
        frames = {name: each for name, each in frames.items() if name in nodes}
    return nodes


def _frames(nodes: Nodes) -> dict[str, Frame]:
    """The loops in which nodes are, the outermost first."""
    frames: dict[str, Frame] = {}
    for node in in_order(nodes):
        around: Frame = ()
        for name, _ in node.inputs:
            given = frames.get(name, ())
            if name in nodes and nodes[name].op in EXITS:
                given = given[:-1]
            if given[: len(around)] != around and around[: len(given)] != given:
                raise _refused(node, f"its inputs come from the loops {around[-1]!r} and {given[-1]!r}")
            around = max(around, given, key=len)
        if node.op in ENTERS:
            around = (*around, node.attrs["frame_name"].s.decode("utf-8", "replace"))
        frames[node.name] = around
    return frames


class _Loop:
    """The nodes of one loop."""

    def __init__(self, nodes: Nodes, members: set[str], frame: str) -> None:
        self._nodes = nodes
        self._members = members
        self._frame = frame
        listed = [node for name, node in nodes.items() if name in members]
        conditions = [node for node in listed if node.op == "LoopCond"]
        if len(conditions) != 1:
            raise UnimplementedError(None, None, f"loop {frame!r} has {len(conditions)} LoopCond nodes, expected one")
        self._condition = conditions[0]
        self._merges = [node for node in listed if node.op in MERGES and self._next_of(node) is not None]
        numbers = {node.name: number for number, node in enumerate(self._merges)}
        self._numbers = dict(numbers)
        for node in listed:
            if node.op in SWITCHES and node.data[1][0] == self._condition.name:
                if node.data[0][0] not in numbers:
                    raise _refused(node, "it does not switch a loop variable")
                self._numbers[node.name] = numbers[node.data[0][0]]

    def as_while(self, library: FunctionLibrary) -> tuple[DataflowNode, list[DataflowNode]]:
        """The loop as one node, and nodes in place of its exits."""
        starts = [self._start_of(merge) for merge in self._merges]
        following = [node for merge in self._merges if (node := self._next_of(merge)) is not None]
        cond, cond_name = self._function("cond", [self._condition], library)
        body, body_name = self._function("body", following, library)
        waits = dict.fromkeys((*cond.waits, *body.waits, *self._entry_waits()))
        whole = DataflowNode(
            unique_name(_under(self._condition.name, "While"), self._nodes),
            "While",
            (*starts, *cond.captured, *body.captured, *waits),
            {"cond": function_attribute(cond_name), "body": function_attribute(body_name)},
        )
        exits = []
        for node in self._nodes.values():
            if node.op in EXITS and node.data[0][0] in self._members:
                source, output = _root(self._nodes, node.data[0])
                if source not in self._numbers or output:
                    raise _refused(node, "it does not leave with a loop variable")
                left = ((whole.name, self._numbers[source]),)
                exits.append(DataflowNode(node.name, "Identity", left, device=node.device))
        return whole, exits

    def _function(self, label: str, ends: list[DataflowNode], library: FunctionLibrary) -> tuple[BodyBuilder, str]:
        """What the ends get, as a function of the loop variables."""
        body = BodyBuilder(self._nodes, self._members.__contains__, self._resolved, len(self._merges))
        results = body.build(each.data[0] for each in ends)
        body.build(wait for each in ends for wait in each.waits)
        name = f"{self._frame}_{label}".replace("/", "_")
        return body, library.add(name, _with_branches(body.nodes, library), body.arguments, results)

    def _resolved(self, source: Source) -> Source | None:
        name, output = source
        if name in self._numbers:
            return None if output < 0 else (argument(self._numbers[name]), 0)
        node = self._nodes.get(name)
        if node is None or name not in self._members or node.op not in ENTERS:
            return source
        if not _is_constant(node):
            raise _refused(node, "it is neither a constant of the loop nor one of its variables")
        return None if output < 0 else node.data[0]

    def _entry_waits(self) -> list[Source]:
        enters = (self._nodes[name] for name in self._members)
        return sorted({wait for node in enters if node.op in ENTERS for wait in node.waits})

    def _start_of(self, merge: DataflowNode) -> Source:
        for name, _ in merge.data:
            node = self._nodes.get(name)
            if node is not None and node.op in ENTERS:
                return node.data[0]
        raise _refused(merge, "nothing enters the loop there")

    def _next_of(self, merge: DataflowNode) -> DataflowNode | None:
        found = (self._nodes.get(name) for name, _ in merge.data)
        return next((node for node in found if node is not None and node.op in NEXTS), None)


def _is_constant(enter: DataflowNode) -> bool:
    return "is_constant" in enter.attrs and enter.attrs["is_constant"].b


# Branches: what is switched by one predicate and merged again.

Condition = tuple[Source, int]
"""A predicate and what it must be."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """Where a merge gets its values from: on what predicate, under which conditions, and the input for each value."""

    predicate: Source
    around: frozenset[Condition]
    inputs: tuple[Source, Source]


def _with_branches(nodes: Nodes, library: FunctionLibrary) -> Nodes:
    if not any(node.op in SWITCHES or node.op in MERGES for node in nodes.values()):
        return nodes
    states: dict[str, frozenset[Condition]] = {}
    merged: dict[str, _Merged] = {}
    for node in in_order(nodes):
        given = [_state(nodes, states, each) for each in node.inputs]
        if node.op in MERGES:
            merged[node.name] = found = _merging(node, given)
            states[node.name] = found.around.union(*given[len(node.data) :])
        elif node.op == "ControlTrigger":
            states[node.name] = frozenset.intersection(*given) if given else frozenset()
        else:
            states[node.name] = frozenset().union(*given)
    groups: dict[tuple[Source, int], list[str]] = {}
    for name, each in merged.items():
        if not states[name]:
            level = _level(nodes, merged, name, groups)
            groups.setdefault((each.predicate, level), []).append(name)
    kept = {
        name: node.with_inputs(_without_switches(nodes, node.inputs))
        for name, node in nodes.items()
        if not states[name] and node.op not in SWITCHES
    }
    places: dict[str, str] = {}
    for (predicate, _), names in groups.items():
        branches = _Branches(nodes, states, predicate, {name: merged[name] for name in names}, ())
        kept |= branches.as_if(unique_name(_under(names[0], "If"), kept), library)
        places |= branches.places
    for trigger in [node for node in kept.values() if node.op == "ControlTrigger"]:
        for name, _ in trigger.waits:
            if states.get(name) and name not in places:
                branches = _Branches(nodes, states, _outermost(states, name), {}, ((name, -1),))
                kept |= branches.as_if(unique_name(_under(name, "If"), kept), library)
                places |= branches.places
        kept[trigger.name] = trigger.with_inputs((places.get(name, name), -1) for name, _ in trigger.waits)
    return kept


def _under(name: str, last: str) -> str:
    scope = name.rpartition("/")[0]
    return f"{scope}/{last}" if scope else last


def _without_switches(nodes: Nodes, inputs: Iterable[Source]) -> Iterable[Source]:
    """The inputs; who waits for a switch waits for what it needs."""
    found = list(inputs)
    seen: set[str] = set()
    for source in found:
        node = nodes.get(source[0])
        if source[1] < 0 and node is not None and node.op in SWITCHES:
            found += [(name, -1) for name, _ in node.inputs if node.name not in seen]
            seen.add(node.name)
        else:
            yield source


def _outermost(states: Mapping[str, frozenset[Condition]], name: str) -> Source:
    """The predicate of the outermost branch that a node is in."""
    predicates = sorted(predicate for predicate, _ in states[name])
    return min(predicates, key=lambda predicate: len(states.get(predicate[0], ())))


def _state(nodes: Nodes, states: Mapping[str, frozenset[Condition]], source: Source) -> frozenset[Condition]:
    """Under which conditions a tensor has a value."""
    name, output = source
    state = states.get(name, frozenset())
    node = nodes.get(name)
    if node is not None and node.op in SWITCHES and output >= 0:
        return state | {(_root(nodes, node.data[1]), output)}
    return state


def _root(nodes: Nodes, source: Source) -> Source:
    """The tensor that identities pass on."""
    while (node := nodes.get(source[0])) is not None and node.op in IDENTITIES:
        source = node.data[0]
    return source


def _merging(node: DataflowNode, given: list[frozenset[Condition]]) -> _Merged:
    inputs = node.data
    if len(inputs) == 2:
        around = given[0] & given[1]
        own = [state - around for state in given[:2]]
        if len(own[0]) == len(own[1]) == 1:
            ((first, value),), ((second, other),) = own
            if first == second and value != other:
                return _Merged(first, around, (inputs[value], inputs[other]))
    said = "; ".join(f"{name!r} {_spelled(state)}" for (name, _), state in zip(inputs, given, strict=False))
    raise _refused(node, f"what it merges are not the two branches of one predicate: {said}")


def _spelled(state: Iterable[Condition]) -> str:
    texts = [f"{predicate[0]!r} is {bool(value)}" for predicate, value in sorted(state)]
    return f"where {' and '.join(texts)}" if texts else "always"


def _level(
    nodes: Nodes, merged: Mapping[str, _Merged], name: str, groups: Mapping[tuple[Source, int], list[str]]
) -> int:
    """One more than the levels of the merges on the same predicate that a merge depends on."""
    predicate = merged[name].predicate
    before = {each: level for (other, level), names in groups.items() if other == predicate for each in names}
    if not before:
        return 0
    seen: set[str] = set()
    waiting = [name]
    level = 0
    while waiting:
        for source, _ in nodes[waiting.pop()].inputs:
            if source in nodes and source not in seen:
                seen.add(source)
                waiting.append(source)
                level = max(level, before.get(source, -1) + 1)
    return level


class _Branches:
    """Merges on one predicate, and what has effects in its branches.

    Attributes:
        places: The whole for each node in a branch.
    """

    def __init__(
        self,
        nodes: Nodes,
        states: Mapping[str, frozenset[Condition]],
        predicate: Source,
        merges: Mapping[str, _Merged],
        effects: tuple[Source, ...],
    ) -> None:
        self._nodes = nodes
        self._states = states
        self._predicate = predicate
        self._merges = merges
        self._effects = effects
        self._indices = [name for name in merges if any((name, 1) in node.inputs for node in nodes.values())]
        self.places: dict[str, str] = {}

    def as_if(self, name: str, library: FunctionLibrary) -> Nodes:
        """The branches as one node, and nodes in place of the merges."""
        then_body, then_name = self._body(1, library)
        else_body, else_name = self._body(0, library)
        self.places = dict.fromkeys((*then_body.nodes, *else_body.nodes), name)
        waits = dict.fromkeys((*then_body.waits, *else_body.waits))
        whole = DataflowNode(
            name,
            "If",
            (self._predicate, *then_body.captured, *else_body.captured, *waits),
            {"then_branch": function_attribute(then_name), "else_branch": function_attribute(else_name)},
        )
        made = {name: whole}
        for number, merge in enumerate(self._merges):
            given = [(name, number)]
            if merge in self._indices:
                given.append((name, len(self._merges) + self._indices.index(merge)))
            node = self._nodes[merge]
            op = "IdentityN" if len(given) > 1 else "Identity"
            made[merge] = DataflowNode(merge, op, (*given, *node.waits), device=node.device)
        return made

    def _body(self, value: int, library: FunctionLibrary) -> tuple[BodyBuilder, str]:
        here = (self._predicate, value)

        def resolved(source: Source) -> Source | None:
            while (node := self._nodes.get(source[0])) is not None and node.op in SWITCHES:
                if (_root(self._nodes, node.data[1]), source[1]) != here:
                    return None if source[1] < 0 else source
                source = node.data[0]
            return source

        def is_inside(name: str) -> bool:
            return here in self._states.get(name, ())

        body = BodyBuilder(self._nodes, is_inside, resolved, 0)
        results = body.build(each.inputs[value] for each in self._merges.values())
        body.build(each for each in self._effects if is_inside(each[0]))
        for merge in self._indices:
            place = self._nodes[merge].data.index(self._merges[merge].inputs[value])
            index = index_constant(unique_name(f"{merge}/value_index", body.nodes), place)
            body.nodes[index.name] = index
            results.append((index.name, 0))
        label = _under(next(iter(self._merges), "cond"), "true" if value else "false").replace("/", "_")
        return body, library.add(label, _with_branches(body.nodes, library), body.arguments, results)


def _refused(node: DataflowNode, why: str) -> UnimplementedError:
    return UnimplementedError(None, None, f"node {node.name!r} ({node.op}): {why}; such control flow is not imported")
