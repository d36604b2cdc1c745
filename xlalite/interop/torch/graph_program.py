"""A graph as a list of steps on numbered values: compiled segments, torch's own operations, and views.

Values that are needed outside a segment have a slot: inputs of the graph, constants, results of segments.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision
from xlalite.interop.torch.lowering import NodeDeclinedError, is_known, lower, reason_to_decline
from xlalite.interop.torch.memory_order import MemoryOrder, memory_order
from xlalite.interop.torch.partition import Stage, stages_of
from xlalite.interop.torch.segment import Segment
from xlalite.interop.torch.views import base_of, is_all, is_same, is_worth_a_view, view_maker

Step = Callable[[list[Any]], None]


class GraphProgram:
    """A graph that can be called with its inputs in a list, which it empties.

    Attributes:
        segments: The compiled parts, in order.
        decisions: Which operations are left to torch, and why.
    """

    def __init__(self, module: torch.fx.GraphModule, name: str) -> None:
        """Compiles a graph whose sizes are known."""
        self._boxed_call = True
        self._module = module
        self._slots: dict[Node, int] = {}
        self._constants: list[Any] = []
        self._steps: list[Step] = []
        self.segments: list[Segment] = []
        nodes = list(module.graph.nodes)
        for node in (node for op in ("placeholder", "get_attr") for node in nodes if node.op == op):
            self._slots[node] = len(self._slots)
            if node.op == "get_attr":
                held = getattr(module, node.target)
                self._constants.append(held)
                if isinstance(held, torch.Tensor):
                    node.meta.setdefault("val", held)
        stages, lowered, eager = self._lowered(name)
        self.decisions = [Decision("torch", (n.name, str(n.target)), "eager", why) for n, why in eager.items() if why]
        for stage, parts in zip(stages, lowered, strict=True):
            self._add_stage(stage, parts)
        made = [None] * (len(self._slots) - len(self._constants) - self.num_inputs)
        results = [self._slots.get(o, len(self._slots) + i) for i, o in enumerate(self._outputs)]
        known = [o.meta["val"] if isinstance(o, Node) and is_known(o) else None for o in self._outputs]
        self._others = [*self._constants, *made, *known]
        self._results = _picker(results)

    def __call__(self, arguments: list[Any]) -> Sequence[Any]:
        """The results of the graph."""
        values = arguments + self._others
        arguments.clear()
        for step in self._steps:
            step(values)
        return self._results(values)

    def run_with_eager_parts(self, arguments: list[Any]) -> Sequence[Any]:
        """The results, where torch's operations need arguments that lie as the graph says, and no autocast."""
        for i, node in enumerate(node for node in self._slots if node.op == "placeholder"):
            wanted = node.meta["val"]
            if arguments[i].stride() != wanted.stride():
                own = torch.empty_strided(wanted.shape, wanted.stride(), dtype=wanted.dtype)
                arguments[i] = own.copy_(arguments[i])
        with torch._C._DisableAutocast():
            return self(arguments)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to torch but views."""
        return not self.decisions

    @property
    def num_inputs(self) -> int:
        """How many inputs the graph has."""
        return sum(node.op == "placeholder" for node in self._slots)

    @property
    def _outputs(self) -> Sequence[Any]:
        (output,) = (node for node in self._module.graph.nodes if node.op == "output")
        outputs: Sequence[Any] = output.args[0]
        return outputs

    def _lowered(self, name: str) -> tuple[list[Stage], list[_Parts], Mapping[Node, str]]:
        """Stages and their modules; an operation whose rule declines becomes torch's, and all begins again."""
        graph = self._module.graph
        eager = {node: why for node in graph.nodes if node.op == "call_function" and (why := reason_to_decline(node))}
        while True:
            for node in graph.nodes:
                if node.target is operator.getitem and node.args[0] in eager:
                    eager.setdefault(node, "")
            stages = stages_of(graph, eager)
            try:
                return stages, self._parts_of(stages, name), eager
            except NodeDeclinedError as declined:
                eager[declined.node] = declined.reason

    def _parts_of(self, stages: Sequence[Stage], name: str) -> list[_Parts]:
        stage_of = {node: i for i, stage in enumerate(stages) for node in stage.compiled}
        outside = _needed_outside(self._module.graph, stage_of)
        bases = {node: base_of(node, stage_of) for node in outside}
        held = {*outside, *self._slots, *(node for stage in stages for node in stage.eager)}
        views = {node: base for node, base in bases.items() if base is not node and is_worth_a_view(node, base, held)}
        shown = Counter(views.values())
        views = {
            node: base for node, base in views.items() if base in held or shown[base] > 1 or not is_all(node, base)
        }
        results = {base for base in views.values() if base in stage_of} | {n for n in outside if n not in views}
        parts = []
        for number, stage in enumerate(stages):
            inside = set(stage.compiled)
            inputs = dict.fromkeys(
                source
                for node in stage.compiled
                for source in node.all_input_nodes
                if source not in inside and not is_known(source)
            )
            taken = {node: _order(node) for node in inputs}
            given = {node: _order(node) for node in stage.compiled if node in results}
            seen = {node: base for node, base in views.items() if node in inside}
            module, refusals = None, tuple[tuple[type[Exception], str], ...]()
            if given:
                title = f"{name}.{number}" if number else name
                module, refusals = lower(title, list(taken.items()), stage.compiled, list(given.items()))
            parts.append(_Parts(module, taken, given, seen, refusals))
        return parts

    def _add_stage(self, stage: Stage, parts: _Parts) -> None:
        if parts.module is not None:
            outputs = [(order, node.meta["val"].dtype) for node, order in parts.outputs.items()]
            segment = Segment(parts.module, list(parts.inputs.values()), outputs, parts.refusals)
            self.segments.append(segment)
            self._add_segment(segment, [self._slots[node] for node in parts.inputs], list(parts.outputs))
        for node, base in parts.views.items():
            is_made_here = base in parts.outputs
            if is_made_here and is_same(node, base):
                self._slots[node] = self._slots[base]
            else:
                given_away = self._outputs if base.op == "placeholder" or base in self._outputs else ()
                self._add_call(node, view_maker(node, base, is_made_here, node in given_away), self._slots[base])
        for node in stage.eager:
            self._add_eager(node)

    def _add_segment(self, segment: Segment, sources: Sequence[int], outputs: Sequence[Node]) -> None:
        first = len(self._slots)
        self._slots.update((node, first + i) for i, node in enumerate(outputs))
        end, picked = len(self._slots), _picker(sources)

        def step(values: list[Any]) -> None:
            values[first:end] = segment(picked(values))

        self._steps.append(step)

    def _add_call(self, node: Node, function: Callable[[Any], Any], source: int) -> None:
        target = self._slots[node] = len(self._slots)

        def step(values: list[Any]) -> None:
            values[target] = function(values[source])

        self._steps.append(step)

    def _add_eager(self, node: Node) -> None:
        slots, target = self._slots, len(self._slots)
        self._slots[node] = target

        def step(values: list[Any]) -> None:
            arguments, named = torch.fx.node.map_arg(
                (node.args, node.kwargs), lambda each: values[slots[each]] if each in slots else each.meta["val"]
            )
            values[target] = _resolved(node.target(*arguments, **named))

        self._steps.append(step)


class _Parts:
    """What a stage is made of.

    Attributes:
        module: The module of its compiled operations; None when nothing of it is needed.
        inputs: What the module takes.
        outputs: What the module gives.
        views: What torch views, and of what.
        refusals: What is raised where the last results of the module are true, which are none of `outputs`.
    """

    __slots__ = ("inputs", "module", "outputs", "refusals", "views")

    def __init__(
        self,
        module: HloModule | None,
        inputs: Mapping[Node, MemoryOrder],
        outputs: Mapping[Node, MemoryOrder],
        views: Mapping[Node, Node],
        refusals: Sequence[tuple[type[Exception], str]],
    ) -> None:
        self.module, self.inputs, self.outputs, self.views, self.refusals = module, inputs, outputs, views, refusals


def _picker(slots: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that gives the values of slots."""
    return operator.itemgetter(*slots) if len(slots) > 1 else lambda values: [values[slot] for slot in slots]


def _resolved(value: Any) -> Any:
    """A result whose memory says what it is: no conjugation or negation is left to its readers."""
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value


def _needed_outside(graph: torch.fx.Graph, stage_of: Mapping[Node, int]) -> list[Node]:
    """Compiled values that torch's operations, later stages, or the caller need."""
    return [
        node
        for node in graph.nodes
        if node in stage_of
        and isinstance(node.meta["val"], torch.Tensor)
        and any(stage_of.get(user) != stage_of[node] for user in node.users)
    ]


def _order(node: Node) -> MemoryOrder:
    value = node.meta["val"]
    return memory_order(tuple(value.shape), value.stride())
