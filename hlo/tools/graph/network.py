"""Programs as graphs of networkx, whose algorithms answer questions about them: what is near, what lies between."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import networkx

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.wording import did_you_mean


def computation_network(computation: HloComputation) -> Any:
    """The instructions of a computation, by name, as a `networkx.DiGraph`.

    Nodes have `opcode`, `shape`, `size_bytes`, `computation`, `is_root` and `instruction`; edges lead from operands to
    users and have `positions`, those of the operand, empty for a control dependency.
    """
    network = networkx.DiGraph(name=computation.name)
    _add(network, computation, lambda one: one.name)
    return network


def module_network(module: HloModule) -> Any:
    """The instructions of all computations as one `networkx.DiGraph`.

    Nodes are as in `computation_network`; those of the entry have their names, others `computation/name`. From the
    root of a computation edges with `calls=True` lead to the instructions that call it, and have no positions.
    """
    network = networkx.DiGraph(name=module.name)
    for computation in module.computations():
        _add(network, computation, node_name)
    for instruction in module.instructions():
        for called in instruction.called_computations:
            network.add_edge(node_name(called.root), node_name(instruction), positions=(), calls=True)
    return network


def node_name(instruction: HloInstruction) -> str:
    """What an instruction is called in the network of its module."""
    parent = instruction.parent
    assert parent is not None, "loose instructions are in no network"
    return instruction.name if parent.is_entry else f"{parent.name}/{instruction.name}"


def find_instruction(module: HloModule, name: str) -> HloInstruction:
    """The instruction with a name: of the entry if it is there, or the only one elsewhere, or `computation/name`.

    Raises:
        XlaliteError: There is none, or several.
    """
    wanted = name.removeprefix("%")
    found = [one for one in module.instructions() if wanted in (one.name, node_name(one))]
    exact = [one for one in found if node_name(one) == wanted] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        places = ", ".join(node_name(one) for one in exact[:4])
        raise XlaliteError(f"module {module.name} has {len(exact)} instructions {wanted!r}: {places}; say which")
    hint = did_you_mean(wanted, [one.name for one in module.instructions()])
    raise XlaliteError(f"module {module.name} has no instruction {wanted!r}{hint}")


def neighbourhood(instruction: HloInstruction, radius: int) -> Collection[HloInstruction]:
    """What is at most `radius` edges away from an instruction, in either direction."""
    computation = instruction.parent
    assert computation is not None, "a loose instruction has no neighbours"
    network = computation_network(computation)
    near = networkx.ego_graph(network.to_undirected(as_view=True), instruction.name, radius)
    return {computation.find(name) for name in near}


def between(start: HloInstruction, end: HloInstruction) -> Collection[HloInstruction]:
    """All instructions on the paths from one to another, these two among them.

    Raises:
        XlaliteError: They are in different computations, or no path leads from the first to the second.
    """
    computation = start.parent
    assert computation is not None, "a loose instruction has no paths"
    if end.parent is not computation:
        raise XlaliteError(f"no path from {node_name(start)} to {node_name(end)}: they are in different computations")
    network = computation_network(computation)
    after = {start.name, *networkx.descendants(network, start.name)}
    before = {end.name, *networkx.ancestors(network, end.name)}
    if end.name not in after:
        is_turned = networkx.has_path(network, end.name, start.name)
        turned = f"; one leads from {end.name} to {start.name}" if is_turned else ""
        raise XlaliteError(f"no path leads from {start.name} to {end.name}{turned}")
    return {computation.find(name) for name in after & before}


def _add(network: Any, computation: HloComputation, name: Callable[[HloInstruction], str]) -> None:
    for one in computation.instructions:
        network.add_node(
            name(one),
            opcode=one.opcode,
            shape=one.shape.text(),
            size_bytes=one.shape.size_bytes,
            computation=computation.name,
            is_root=one.is_root,
            instruction=one,
        )
    for one in computation.instructions:
        for before in one.control_predecessors:
            network.add_edge(name(before), name(one), positions=())
        for before in dict.fromkeys(one.operands):
            network.add_edge(name(before), name(one), positions=one.operand_positions(before))
