"""Takes a part of a module out as a module of its own, to look at it, evaluate it or report it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from xlalite.hlo.building.create import create
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule, ModuleConfig
from xlalite.hlo.ir.traversal import callees_first
from xlalite.hlo.ops.structural import ParameterAttrs


def extract(
    root: HloInstruction,
    *,
    depth: int | None = None,
    boundary: Iterable[HloInstruction] | Callable[[HloInstruction], bool] = (),
    name: str = "",
) -> HloModule:
    """A module whose result is an instruction's value; what lies outside becomes its parameters.

    Before, with `extract(%c, depth=1)` and after:

        %a = f32[4] negate(%p)                 %b = f32[4] parameter(0)
        %b = f32[4] exponential(%a)            ROOT %c = f32[4] add(%b, %b)
        %c = f32[4] add(%b, %b)

    Constants within reach are taken along, never made parameters. Called computations are copied; control dependencies
    stay where both ends are inside.

    Args:
        root: The instruction.
        depth: Operands further away than this become parameters; 0 takes the instruction alone, None everything.
        boundary: Instructions that become parameters, or a function that says which do; the root never does.
        name: Name of the module; `extracted_` and the root's name when absent.

    Raises:
        XlaliteError: The root belongs to no computation, or the depth is negative.
    """
    source = root.parent
    if source is None:
        raise XlaliteError(f"extracting %{root.name}: it belongs to no computation")
    if depth is not None and depth < 0:
        raise XlaliteError(f"extracting %{root.name}: found depth {depth}, expected at least 0")
    outside = boundary if callable(boundary) else frozenset(boundary).__contains__
    inside, inputs = _divide(root, depth, outside)
    config = source.module.config if source.module is not None else ModuleConfig()
    module = HloModule(
        name or f"extracted_{root.name}",
        ModuleConfig(replica_count=config.replica_count, num_partitions=config.num_partitions),
    )
    called = _copy_called([one for one in source.post_order() if one in inside], module)
    computation = HloComputation(source.name)
    computation.execution_thread = source.execution_thread
    copies: dict[HloInstruction, HloInstruction] = {}
    for number, one in enumerate(one for one in source.post_order() if one in inputs):
        attrs = ParameterAttrs(number)
        parameter = create("parameter", attrs=attrs, shape=one.shape, name=one.name, metadata=one.metadata)
        parameter.sharding = one.sharding
        copies[one] = computation.add(parameter)
    for one in source.post_order():
        if one in inside:
            copies[one] = computation.add(
                one.clone(
                    [copies[operand] for operand in one.operands],
                    called_computations=[called[callee] for callee in one.called_computations],
                )
            )
            for before in one.control_predecessors:
                if before in inside:
                    copies[one].add_control_predecessor(copies[before])
    computation.set_root(copies[root])
    module.add(computation, entry=True)
    return module


def _divide(
    root: HloInstruction, depth: int | None, outside: Callable[[HloInstruction], bool]
) -> tuple[set[HloInstruction], set[HloInstruction]]:
    """What goes along and what becomes a parameter."""
    inside: set[HloInstruction] = set() if root.opcode == "parameter" else {root}
    inputs: set[HloInstruction] = {root} - inside
    waiting = deque([(root, 0)] if inside else [])
    while waiting:
        instruction, distance = waiting.popleft()
        for operand in instruction.operands:
            if operand in inside or operand in inputs:
                continue
            too_far = depth is not None and distance >= depth
            if operand.opcode != "constant" and (operand.opcode == "parameter" or too_far or outside(operand)):
                inputs.add(operand)
            else:
                inside.add(operand)
                waiting.append((operand, distance + 1))
    return inside, inputs


def _copy_called(inside: list[HloInstruction], module: HloModule) -> dict[HloComputation, HloComputation]:
    """Copies of all computations that the instructions call, callees first, added to the module."""
    copies: dict[HloComputation, HloComputation] = {}
    for computation in callees_first(callee for one in inside for callee in one.called_computations):
        copies[computation] = module.add(computation.clone(called=copies.__getitem__))
    return copies
