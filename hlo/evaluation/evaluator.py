"""Runs HLO in NumPy: the executable specification.

Every operation's meaning is its `OpDef.evaluate`; this file only orders the work, hands values over and frees them. It
knows no operation but `parameter`, `constant` and elements of tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, Union

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import EvaluationError, LiteralError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import dependencies_first, reachable
from xlalite.hlo.ops.evaluation.run_time_sizes import concerns_run_time_sizes, evaluate_fitted
from xlalite.hlo.ops.rules.transfer_order import senders_and_waiters
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Literal, Token, Value
from xlalite.hlo.types.shape import Shape

Argument: TypeAlias = Union[npt.ArrayLike, Literal, Token, "tuple[Argument, ...]"]


def evaluate(program: HloModule | HloComputation, *arguments: Argument) -> Value:
    """The value of a module's entry computation, or of a computation, for the given arguments.

    The value may share memory with arguments and constants.

    Args:
        program: What to run.
        arguments: One for each parameter: arrays of exactly the parameter's type and sizes, Python numbers and lists
            that fit it, literals, tokens, or tuples of these.

    Raises:
        EvaluationError: The arguments do not fit, or an operation has no value here.
    """
    computation = program.entry_computation if isinstance(program, HloModule) else program
    return Evaluator().run(computation, *arguments)


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction: the slots of its operands, and the slots that nobody reads afterwards.

    `dtype` is NumPy's for an array; `dims` are its sizes, None for a scalar, which may stand for an array.
    """

    instruction: HloInstruction
    slot: int
    has_run_time_sizes: bool
    operands: tuple[int, ...]
    dead_afterwards: tuple[int, ...]
    dtype: np.dtype[np.generic] | None
    dims: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A computation in order of execution; `slots` hold what is known before: constants and empty arrays."""

    steps: tuple[_Step, ...]
    parameters: tuple[tuple[int, int], ...]
    slots: tuple[Value | None, ...]
    root: int


class Evaluator:
    """Evaluates computations, remembering the order of each; they must not change during its lifetime."""

    def __init__(self) -> None:
        self._plans: dict[HloComputation, _Plan] = {}

    def run(self, computation: HloComputation, *arguments: Argument) -> Value:
        """The value of a computation for arguments that are converted and checked, as `evaluate` says."""
        parameters = computation.parameters
        if len(arguments) != len(parameters):
            raise EvaluationError(
                f"evaluating {computation.name}: found {len(arguments)} arguments, expected {len(parameters)}"
            )
        values = [
            _argument_value(argument, parameter.shape, f"{computation.name}, parameter {number} (%{parameter.name})")
            for number, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True))
        ]
        return self.call(computation, values)

    def call(self, computation: HloComputation, values: Sequence[Value]) -> Value:
        """The value of a computation for values taken as they are; what operations call their computations with.

        A computation on scalars that is elementwise throughout may be given arrays in place of the scalars.
        """
        with np.errstate(all="ignore"):
            return self._call_inside(computation, values)

    def _call_inside(self, computation: HloComputation, values: Sequence[Value]) -> Value:
        """The same where NumPy is silent already: a loop calls its computations once a trip."""
        plan = self._plans.get(computation)
        if plan is None:
            plan = self._plans[computation] = _make_plan(computation)
        slots = list(plan.slots)
        for number, slot in plan.parameters:
            slots[slot] = values[number]
        for step in plan.steps:
            slots[step.slot] = self._evaluate(step, slots)
            for dead in step.dead_afterwards:
                slots[dead] = None
        result = slots[plan.root]
        assert result is not None, "the root's slot is never freed"
        return result

    def value_of(self, instruction: HloInstruction, operands: Sequence[Value]) -> Value:
        """The value of one instruction for the values of its operands; what else evaluates may change it.

        Called where NumPy is silent; constants have their values without it.
        """
        return instruction.op.evaluate(instruction, operands, self._call_inside)

    def _evaluate(self, step: _Step, slots: Sequence[Value | None]) -> Value:
        instruction = step.instruction
        operands: list[Value] = [slots[slot] for slot in step.operands]  # type: ignore[misc]
        try:
            value = (
                evaluate_fitted(instruction, operands, self.value_of)
                if step.has_run_time_sizes
                else self.value_of(instruction, operands)
            )
        except EvaluationError as error:
            error.add_note(f"while evaluating {instruction!r}")
            raise
        if value.__class__ is np.ndarray and value.dtype is step.dtype and step.dims in (None, value.shape):
            return value
        assert _is_of_shape(value, instruction.shape), (
            f"{instruction!r} evaluated to {getattr(value, 'dtype', type(value))} {getattr(value, 'shape', '')}"
        )
        return value


def _is_of_shape(value: Value, shape: Shape) -> bool:
    """Whether the value has the shape's type, and its sizes unless the shape is a scalar that stands for an array."""
    if not isinstance(value, np.ndarray):
        return not shape.is_array
    return shape.is_array and value.dtype == shape.dtype.numpy and (not shape.dims or shape.has_sizes(value.shape))


def _make_plan(computation: HloComputation) -> _Plan:
    scheduled = computation.module is not None and computation.module.config.is_scheduled
    order = computation.instructions if scheduled else _post_order(computation)
    needed = _needed(computation)
    order = tuple(instruction for instruction in order if instruction in needed)
    slots = {instruction: slot for slot, instruction in enumerate(order)}
    last_reader: dict[int, int] = {}
    for position, instruction in enumerate(order):
        last_reader[position] = position
        for operand in _read_operands(instruction):
            last_reader[slots[operand]] = position
    root = slots[_source(computation.root)]
    dying: list[list[int]] = [[] for _ in order]
    for slot, position in last_reader.items():
        if slot != root:
            dying[position].append(slot)

    known = tuple(map(_known_value, order))

    def operands_of(instruction: HloInstruction) -> tuple[int, ...]:
        return tuple(slots[operand] for operand in _read_operands(instruction))

    steps = tuple(
        _Step(
            instruction,
            slot,
            concerns_run_time_sizes(instruction),
            operands_of(instruction),
            tuple(dying[slot]),
            instruction.shape.dtype.numpy if instruction.shape.is_array else None,
            instruction.shape.dims or None,
        )
        for instruction, slot in slots.items()
        if instruction.opcode != "parameter" and known[slot] is None
    )
    parameters = tuple((i.attrs.number, slot) for i, slot in slots.items() if i.opcode == "parameter")
    return _Plan(steps, parameters, known, root)


def _post_order(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """One in which what sends runs before what waits, where it can."""
    order = computation.post_order()
    senders, waiters = senders_and_waiters(order)
    return dependencies_first((*senders, *order)) if waiters else order


def _needed(computation: HloComputation) -> set[HloInstruction]:
    """The root, what has side effects, and everything they read."""
    starts = (i for i in computation.instructions if i is computation.root or i.has_side_effect)
    return set(
        reachable(map(_source, starts), lambda one: (*_read_operands(one), *map(_source, one.control_predecessors)))
    )


def _read_operands(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """What is read for the value: nothing for an empty array."""
    return () if _is_empty(instruction) else tuple(map(_source, instruction.operands))


def _is_empty(instruction: HloInstruction) -> bool:
    """Whether the value is an array without elements, of which there is one whatever the operands are."""
    shape = instruction.shape
    known = shape.is_array and shape.element_count == 0 and not shape.is_dynamic
    return known and instruction.opcode != "parameter" and not instruction.has_side_effect


def _known_value(instruction: HloInstruction) -> Value | None:
    """The value that does not depend on anything."""
    if _is_empty(instruction):
        return np.zeros(instruction.shape.dims, instruction.shape.dtype.numpy)
    literal: Literal | None = instruction.attrs.literal if instruction.opcode == "constant" else None
    return None if literal is None else literal.to_value()


def _source(instruction: HloInstruction) -> HloInstruction:
    """What computes the value: element i of a tuple that is made here is what it was made of."""
    while instruction.opcode == "get-tuple-element" and instruction.operand(0).opcode == "tuple":
        instruction = instruction.operand(0).operand(instruction.attrs.index)
    return instruction


def _argument_value(argument: Argument, shape: Shape, where: str) -> Value:
    if isinstance(argument, Literal):
        argument = argument.to_value()
    if shape.is_token:
        return Token()
    if shape.is_tuple:
        if not isinstance(argument, (tuple, list)) or len(argument) != len(shape.elements):
            found = f"{len(argument)} values" if isinstance(argument, (tuple, list)) else type(argument).__name__
            raise EvaluationError(f"{where}: found {found}, expected a tuple of shape {shape.text()}")
        return tuple(
            _argument_value(part, element, f"{where}, element {position}")
            for position, (part, element) in enumerate(zip(argument, shape.elements, strict=True))
        )
    if isinstance(argument, Token) or not shape.is_array:
        raise EvaluationError(f"{where}: found {type(argument).__name__}, expected {shape.text()}")
    return _array_argument(argument, shape, where)


def _array_argument(argument: object, shape: Shape, where: str) -> Array:
    if isinstance(argument, np.ma.MaskedArray):
        raise EvaluationError(f"{where}: found a masked array, expected {shape.text()} (its mask would be lost)")
    try:
        array = np.asarray(argument)
    except ValueError as error:
        raise EvaluationError(f"{where}: found no array, expected {shape.text()}: {error}") from error
    if not shape.has_sizes(array.shape):
        raise EvaluationError(f"{where}: found sizes {list(array.shape)}, expected {shape.text()}")
    if array.dtype.newbyteorder("=") == shape.dtype.numpy:
        return array.astype(shape.dtype.numpy, copy=False)
    loses_imaginary = array.dtype.kind == "c" and not shape.dtype.is_complex
    if hasattr(argument, "dtype") or loses_imaginary or not np.can_cast(array.dtype, np.complex128):
        raise EvaluationError(f"{where}: found element type {_dtype_name(array)}, expected {shape.text()}")
    try:
        return Literal(array, Shape.array(shape.dtype, array.shape)).value
    except LiteralError as error:
        raise EvaluationError(f"{where}: {error}") from error


def _dtype_name(array: Array) -> str:
    try:
        return str(DType.from_numpy(array.dtype).value)
    except TypeError:
        return str(array.dtype)
