"""Calls of the evaluator that hold what has sizes known only at run time; see `run_time_sizes.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from xlalite.hlo.building.construct import element, scalar
from xlalite.hlo.building.create import create
from xlalite.hlo.building.extraction import extract
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.custom import EVALUATE, CustomCallAttrs
from xlalite.hlo.ops.evaluation.run_time_sizes import SIZE, bounded, concerns_run_time_sizes
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.inlining import inline_body
from xlalite.passes.simplify.dce import remove_uncalled_computations


def outline_run_time_sizes(module: HloModule, pass_name: str) -> bool:
    """Puts custom calls in the place of what has run-time sizes; says whether anything changed."""
    changed = _has_run_time_sizes(module.entry_computation)
    if changed:
        _bound_entry(module)
    for instruction in module.instructions():
        if instruction.opcode == "get-dimension-size" and not instruction.operand(0).shape.is_dynamic:
            size = instruction.operand(0).shape.dims[instruction.attrs.dimension]
            replace(instruction, scalar(size, DType.S32))
            changed = True
    for computation in module.computations():
        # One that takes or gives such arrays is called by an instruction that moves as a whole.
        if not _has_run_time_sizes(computation):
            for group in _groups(computation):
                _outline(computation, group)
                module.record(
                    pass_name, (computation.name,), "evaluated", "sizes known at run time", {"count": len(group)}
                )
                changed = True
    if changed:
        remove_uncalled_computations(module)
    return changed


def _has_run_time_sizes(computation: HloComputation) -> bool:
    signature = computation.program_shape
    return any(shape.is_dynamic for shape in (*signature.parameters, signature.result))


def _bound_entry(module: HloModule) -> None:
    """Puts an entry of known sizes around what the old one did."""
    old = module.entry_computation
    entry = HloComputation(f"{old.name}.bounded")

    def parameter(number: int, shape: Shape, name: str) -> HloInstruction:
        return entry.add(create("parameter", attrs=ParameterAttrs(number), shape=shape, name=name))

    padded = [parameter(number, bounded(p.shape), p.name) for number, p in enumerate(old.parameters)]
    sizes = (parameter(number, SIZE, f"size.{number}") for number in count(len(padded)))
    operands = [_cut(entry, array, p.shape, sizes) for array, p in zip(padded, old.parameters, strict=True)]
    root, _ = inline_body(old, operands, entry)
    found: list[HloInstruction] = []
    result = _pad(entry, root, found)
    entry.set_root(entry.add(create("tuple", (result, *found))))
    module.add(entry, entry=True)
    module.update_config(entry_layout=None, input_output_alias=(), buffer_donors=())


def _cut(entry: HloComputation, value: HloInstruction, shape: Shape, sizes: Iterator[HloInstruction]) -> HloInstruction:
    """The value with run-time sizes where the shape has them."""
    if not shape.is_dynamic:
        return value
    if shape.is_tuple:
        parts = [_cut(entry, _element(entry, value, i), part, sizes) for i, part in enumerate(shape.elements)]
        return entry.add(create("tuple", parts))
    operands = (value, *(next(sizes) for _ in shape.dims))
    return entry.add(create("custom-call", operands, CustomCallAttrs(custom_call_target="SliceToDynamic"), shape=shape))


def _pad(entry: HloComputation, value: HloInstruction, sizes: list[HloInstruction]) -> HloInstruction:
    """The value at its largest sizes; appends the sizes that it has."""
    if not value.shape.is_dynamic:
        return value
    if value.shape.is_tuple:
        parts = [_pad(entry, _element(entry, value, i), sizes) for i in range(len(value.shape.elements))]
        return entry.add(create("tuple", parts))
    shape = Shape.tuple([bounded(value.shape), *(SIZE for _ in value.shape.dims)])
    padded = entry.add(create("custom-call", (value,), CustomCallAttrs(custom_call_target="PadToStatic"), shape=shape))
    sizes += [_element(entry, padded, 1 + dimension) for dimension in range(value.shape.rank)]
    return _element(entry, padded, 0)


def _element(computation: HloComputation, value: HloInstruction, index: int) -> HloInstruction:
    return computation.add(element(value, index))


def _groups(computation: HloComputation) -> list[set[HloInstruction]]:
    """Sets of instructions that become one call each: no way leads out of one and back into it."""
    order = computation.post_order()
    groups: list[set[HloInstruction]] = []
    for instruction in order:
        if concerns_run_time_sizes(instruction):
            group = {instruction}
            for operand in instruction.operands:
                if operand.shape.is_dynamic:
                    group |= next(other for other in groups if operand in other)
            groups = [other for other in groups if not other & group] + [group]
    while True:
        closed = [_with_what_lies_between(order, group) for group in groups]
        merged: list[set[HloInstruction]] = []
        for group in closed:
            overlapping = [other for other in merged if other & group]
            merged = [other for other in merged if not other & group] + [group.union(*overlapping)]
        if len(merged) == len(groups):
            return merged
        groups = merged


def _with_what_lies_between(order: Sequence[HloInstruction], group: set[HloInstruction]) -> set[HloInstruction]:
    after, before = set(group), set(group)
    for instruction in order:
        if any(earlier in after for earlier in (*instruction.operands, *instruction.control_predecessors)):
            after.add(instruction)
    for instruction in reversed(order):
        if any(later in before for later in (*instruction.users, *instruction.control_successors)):
            before.add(instruction)
    return after & before


def _outline(computation: HloComputation, group: set[HloInstruction]) -> None:
    """Replaces a group by a call that holds it."""
    members = [instruction for instruction in computation.post_order() if instruction in group]
    outputs = [
        member
        for member in members
        if member is computation.root
        or (member.has_side_effect and not member.users)
        or any(user not in group for user in member.users)
    ]
    if not outputs:
        for member in reversed(members):
            computation.remove(member)
        return
    results = computation.add(create("tuple", outputs))
    part = extract(results, boundary=lambda one: one not in group, name=f"{computation.name}.{outputs[0].name}")
    computation.remove(results)
    call = create(
        "custom-call",
        [computation.find(parameter.name) for parameter in part.entry_computation.parameters],
        CustomCallAttrs(
            custom_call_target=EVALUATE,
            custom_call_has_side_effect=any(member.has_side_effect for member in members),
        ),
        shape=part.entry_computation.root.shape,
        name="run-time-sizes",
    )
    call.backend_config = part.to_string("short_parsable")
    computation.add(call)
    for number, output in enumerate(outputs):
        element = _element(computation, call, number)
        output.replace_all_uses_with(element)
        if output is computation.root:
            computation.set_root(element)
    for member in reversed(members):
        for earlier in member.control_predecessors:
            if earlier not in group:
                call.add_control_predecessor(earlier)
        for later in member.control_successors:
            if later not in group:
                later.add_control_predecessor(call)
        computation.remove(member)
