"""Ways through programs: every one of them linear, without recursion, and in an order that the program alone decides.

`post_order` and `reachable` walk anything that has a next; what is next in HLO, the other functions say.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from xlalite.hlo.errors import XlaliteError

if TYPE_CHECKING:
    from xlalite.hlo.ir.computation import HloComputation
    from xlalite.hlo.ir.instruction import HloInstruction
    from xlalite.hlo.ir.module import HloModule

Node = TypeVar("Node", bound=Hashable)


def post_order(
    starts: Iterable[Node], before: Callable[[Node], Sequence[Node]], cycle: Callable[[Node], XlaliteError]
) -> tuple[Node, ...]:
    """The starting points and all that comes before them, each once and behind what `before` gives, left to right.

    Raises:
        XlaliteError: A node comes before itself; `cycle` makes the error.
    """
    order: dict[Node, None] = {}
    opened: set[Node] = set()
    for start in starts:
        stack = [start]
        while stack:
            node = stack[-1]
            if node in opened:
                order[node] = None
                stack.pop()
                continue
            opened.add(node)
            for one in reversed(before(node)):
                if one not in opened:
                    stack.append(one)
                elif one not in order:
                    raise cycle(one)
    return tuple(order)


def reachable(starts: Iterable[Node], step: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """The starting points and what steps lead to, each once, the nearest first; found as far as they are asked for."""
    found = list(dict.fromkeys(starts))
    seen = set(found)
    for node in found:  # The list grows under the loop.
        yield node
        for one in step(node):
            if one not in seen:
                seen.add(one)
                found.append(one)


def dependencies(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """What must run before an instruction: control predecessors and operands."""
    control = instruction.control_predecessors
    return (*control, *instruction.operands) if control else instruction.operands


def callees(computation: HloComputation) -> tuple[HloComputation, ...]:
    """The computations that instructions here call, each once."""
    return computation.callees


def dependencies_first(starts: Iterable[HloInstruction]) -> tuple[HloInstruction, ...]:
    """What the starting points depend on, and they themselves.

    Raises:
        XlaliteError: An instruction depends on itself.
    """
    return post_order(starts, dependencies, depends_on_itself)


def callees_first(starts: Iterable[HloComputation]) -> tuple[HloComputation, ...]:
    """What the starting points call, and they themselves.

    Raises:
        XlaliteError: A computation calls itself.
    """
    return post_order(starts, callees, calls_itself)


def canonical_order(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """Depth first from the instructions that nobody uses, in order of insertion: XLA's post order."""
    return dependencies_first(i for i in computation.instructions if not i.user_count and not i.control_successors)


def structural_order(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """Depth first from the root, then the parameters, then what else nobody uses in order of insertion."""
    unused = (instruction for instruction in computation.instructions if not instruction.user_count)
    return dependencies_first([computation.root, *computation.parameters, *unused])


def callers(module: HloModule) -> dict[HloComputation, tuple[HloInstruction, ...]]:
    """The instructions that call each computation; none for the entry and for what nobody calls."""
    found: dict[HloComputation, dict[HloInstruction, None]] = {one: {} for one in module.computations()}
    for instruction in module.instructions():
        for called in instruction.called_computations:
            found[called][instruction] = None
    return {computation: tuple(instructions) for computation, instructions in found.items()}


def calls_itself(computation: HloComputation) -> XlaliteError:
    """What is wrong with a computation on a cycle of calls."""
    return XlaliteError(f"computation {computation.name} calls itself")


def depends_on_itself(instruction: HloInstruction) -> XlaliteError:
    """What is wrong with an instruction on a cycle of operands and control predecessors."""
    where = f"computation {instruction.parent.name}: " if instruction.parent is not None else ""
    return XlaliteError(f"{where}%{instruction.name} depends on itself")
