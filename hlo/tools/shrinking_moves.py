"""Smaller variants of a program: what `shrinking.py` tries. They need not be valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from xlalite.hlo.building.construct import constant
from xlalite.hlo.building.create import create
from xlalite.hlo.building.extraction import extract
from xlalite.hlo.building.replacement import remove_dead
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.module import HloModule, ModuleConfig
from xlalite.hlo.numerics.conversion import convert
from xlalite.hlo.ops.asynchronous import zero_value
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape

Arguments: TypeAlias = "tuple[Value, ...]"
Variant: TypeAlias = "Iterator[tuple[HloModule, Arguments]]"
Move: TypeAlias = Callable[[HloModule, Arguments], Variant]

_LARGEST_CONSTANT = 64


def without_annotations(module: HloModule, arguments: Arguments) -> Variant:
    """No metadata, no sharding, no configuration, no aliases."""
    twin = module.clone()
    twin.config, twin.tables = ModuleConfig(), ""
    for instruction in twin.instructions():
        instruction.metadata = Metadata()
        instruction.sharding = instruction.backend_config = ""
        instruction.frontend_attributes = instruction.extra_attributes = ()
        for predecessor in instruction.control_predecessors:
            instruction.drop_control_predecessor(predecessor)
    yield twin, arguments


def fewer_results(module: HloModule, arguments: Arguments) -> Variant:
    """An operand of the root as the result, or a tuple root with half of its elements, or all but one."""
    root = module.entry_computation.root
    values = _values(module, arguments)
    for operand in dict.fromkeys(root.operands):
        yield _part(operand, (), values)
    if root.opcode != "tuple":
        return
    count = len(root.operands)
    halves = [range(count // 2), range(count // 2, count)] if count > 2 else []
    for left in [*halves, *([i for i in range(count) if i != gone] for gone in range(count))]:
        yield _edited(module, arguments, root, partial(_tuple_of, positions=list(left)))


def earlier_results(module: HloModule, arguments: Arguments) -> Variant:
    """Any instruction as the result, the first ones first."""
    values = _values(module, arguments)
    for instruction in module.entry_computation.post_order():
        if instruction.opcode not in ("parameter", "constant"):
            yield _part(instruction, (), values)


def cut_off(module: HloModule, arguments: Arguments) -> Variant:
    """Values as parameters instead of what computes them: many at once first, then one by one."""
    entry = module.entry_computation
    values = _values(module, arguments)
    inner = [
        one
        for one in entry.post_order()
        if one.opcode not in ("parameter", "constant") and one is not entry.root and one.shape.is_array
    ]
    size = len(inner)
    while size:
        for start in range(0, len(inner), size):
            yield _part(entry.root, inner[start : start + size], values)
        size //= 2


def left_out(module: HloModule, arguments: Arguments) -> Variant:
    """An instruction, anywhere, replaced by one of its operands, by zero, or by what it calls."""
    for computation in reversed(module.computations()):
        for instruction in reversed(computation.post_order()):
            if instruction.opcode == "parameter":
                continue
            for position, operand in enumerate(instruction.operands):
                if operand.shape.compatible(instruction.shape):
                    yield _edited(module, arguments, instruction, partial(_operand, position=position))
            if instruction.opcode in ("call", "fusion", "conditional"):
                for callee in range(len(instruction.called_computations)):
                    yield _edited(module, arguments, instruction, partial(_inlined, number=callee))
            small = instruction.shape.is_array and instruction.shape.element_count <= _LARGEST_CONSTANT
            if small and instruction.opcode != "constant":
                yield _edited(module, arguments, instruction, _zero)


def smaller_sizes(module: HloModule, arguments: Arguments) -> Variant:
    """One size smaller wherever its number stands."""
    text = module.to_string("short_parsable")
    sizes = {size for group in re.findall(r"\[([\d,]+)\]", text) for size in map(int, group.split(","))}
    for size in sorted(sizes, reverse=True):
        for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 0 < smaller < size:
                changed = re.sub(rf"(?<=[\[{{,:x=_]){size}(?=[\]}},:x_ ])", str(smaller), text)
                yield from _from_text(changed, arguments)


def fewer_dimensions(module: HloModule, arguments: Arguments) -> Variant:
    """Dimensions of size 1 left out of all shapes; attributes that name dimensions then rarely fit."""
    text = module.to_string("short_parsable")
    yield from _from_text(re.sub(r"\[1,", "[", re.sub(r"(?<=\d),1(?=[,\]])", "", text)), arguments)


def plainer_types(module: HloModule, arguments: Arguments) -> Variant:
    """One element type for another everywhere."""
    text = module.to_string("short_parsable")
    found = dict.fromkeys(re.findall(r"\b([a-z]\w*)\[", text))
    for name in found:
        for plainer in ("f32", "s32", "f64", "c64"):
            if name != plainer and name != "pred":
                yield from _from_text(re.sub(rf"\b{name}\[", f"{plainer}[", text), arguments)


def plainer_numbers(module: HloModule, arguments: Arguments) -> Variant:
    """Arguments of zeros, of ones, of integers; one element zero."""
    for number, argument in enumerate(arguments):
        if not isinstance(argument, np.ndarray) or argument.dtype == np.bool_:
            continue
        with np.errstate(all="ignore"):
            plainer = [np.zeros_like(argument), np.ones_like(argument)]
            if argument.dtype.kind in "fc":
                plainer.append(np.rint(argument))
        if argument.size <= _LARGEST_CONSTANT:
            for index in np.ndindex(argument.shape):
                if argument[index] != 0:
                    plainer.append(argument.copy())
                    plainer[-1][index] = 0
        for value in plainer:
            yield module, (*arguments[:number], value, *arguments[number + 1 :])


def constants_for_parameters(module: HloModule, arguments: Arguments) -> Variant:
    """All small arguments inside the module, so that its text is all that is needed."""
    twin = module.clone()
    for parameter in twin.entry_computation.parameters:
        shape = parameter.shape
        if shape.is_array and not shape.is_dynamic and shape.element_count <= _LARGEST_CONSTANT:
            literal = Literal(arguments[parameter.attrs.number], shape)
            parameter.replace_all_uses_with(twin.entry_computation.add(constant(literal)))
    values = _by_name(module, arguments)
    yield _part(twin.entry_computation.root, (), {p: values[p.name] for p in twin.entry_computation.parameters})


MOVES: tuple[Move, ...] = (
    without_annotations,
    fewer_results,
    earlier_results,
    cut_off,
    left_out,
    smaller_sizes,
    fewer_dimensions,
    plainer_types,
    plainer_numbers,
)


class _Recorder(Evaluator):
    """Remembers the values of one computation's instructions."""

    def __init__(self, computation: HloComputation, arguments: Arguments) -> None:
        super().__init__()
        self._computation = computation
        self._values: dict[HloInstruction, Value] = {
            parameter: arguments[parameter.attrs.number] for parameter in computation.parameters
        }
        self.run(computation, *arguments)

    def value_of(self, instruction: HloInstruction, operands: Sequence[Value]) -> Value:
        value = super().value_of(instruction, operands)
        if instruction.parent is self._computation:
            self._values[instruction] = value
        return value

    def __getitem__(self, instruction: HloInstruction) -> Value:
        """The value of an instruction; evaluators compute no more than they need, so some are made up for here."""
        if instruction not in self._values:
            operands = [self[operand] for operand in instruction.operands]
            with np.errstate(all="ignore"):
                self._values[instruction] = super().value_of(instruction, operands)
        value = self._values[instruction]
        return np.asarray(value) if isinstance(value, np.generic) else value


def _values(module: HloModule, arguments: Arguments) -> _Recorder:
    return _Recorder(module.entry_computation, arguments)


def _by_name(module: HloModule, arguments: Arguments) -> dict[str, Value]:
    return {parameter.name: arguments[parameter.attrs.number] for parameter in module.entry_computation.parameters}


def _part(
    root: HloInstruction, boundary: Iterable[HloInstruction], values: _Recorder | dict[HloInstruction, Value]
) -> tuple[HloModule, Arguments]:
    """What is needed for an instruction, with the arguments for its parameters."""
    assert root.parent is not None, "instructions of modules belong to computations"
    module = extract(root, boundary=boundary, name="shrunk")
    return module, tuple(values[root.parent.find(p.name)] for p in module.entry_computation.parameters)


def _edited(
    module: HloModule,
    arguments: Arguments,
    place: HloInstruction,
    replacement: Callable[[HloInstruction], HloInstruction],
) -> tuple[HloModule, Arguments]:
    """The module with an instruction replaced by what the function makes of it, unused parts thrown away."""
    assert place.parent is not None, "instructions of modules belong to computations"
    twin = module.clone()
    computation = twin.find(place.parent.name)
    old = computation.find(place.name)
    new = replacement(old)
    if new.parent is None:
        computation.add(new)
    if new.shape.compatible(old.shape):
        old.replace_all_uses_with(new)
    else:
        computation.set_root(new)
    remove_dead(old)
    values = _by_name(module, arguments)
    return _part(twin.entry_computation.root, (), {p: values[p.name] for p in twin.entry_computation.parameters})


def _operand(instruction: HloInstruction, position: int) -> HloInstruction:
    return instruction.operand(position)


def _tuple_of(root: HloInstruction, positions: Iterable[int]) -> HloInstruction:
    return create("tuple", [root.operand(position) for position in positions])


def _zero(instruction: HloInstruction) -> HloInstruction:
    shape = instruction.shape.without_layout()
    return constant(Literal(zero_value(shape), shape))


def _inlined(instruction: HloInstruction, number: int) -> HloInstruction:
    """The body of a called computation in the place of the call."""
    callee, home = instruction.called_computations[number], instruction.parent
    assert home is not None, "instructions of modules belong to computations"
    given = instruction.operands if instruction.opcode != "conditional" else (instruction.operand(number + 1),)
    copies: dict[HloInstruction, HloInstruction] = {}
    for one in callee.post_order():
        if one.opcode == "parameter":
            copies[one] = given[one.attrs.number]
        else:
            copies[one] = home.add(one.clone([copies[operand] for operand in one.operands]))
    return copies[callee.root]


def _from_text(text: str, arguments: Arguments) -> Variant:
    try:
        module = parse(text)
        shapes = [parameter.shape for parameter in module.entry_computation.parameters]
        yield module, tuple(_fitted(value, shape) for value, shape in zip(arguments, shapes, strict=True))
    except XlaliteError:
        return


def _fitted(value: Value, shape: Shape) -> Value:
    """The first elements of an argument, as many as a smaller shape has, in its type."""
    if isinstance(value, tuple):
        return tuple(_fitted(part, element) for part, element in zip(value, shape.elements, strict=True))
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim != shape.rank:
        value = value.reshape([size for size in value.shape if size != 1])
    result = np.zeros(shape.dims, value.dtype)
    if value.ndim == shape.rank:
        corner = tuple(slice(0, min(a, b)) for a, b in zip(value.shape, shape.dims, strict=True))
        result[corner] = value[corner]
    if value.dtype.kind == "c" and not shape.dtype.is_complex:
        result = result.real.copy()
    with np.errstate(all="ignore"):
        return convert(result, shape.dtype)
