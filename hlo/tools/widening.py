"""The same program with every floating-point number in f64: what it would compute if nothing were rounded.

Integers keep their types and their meaning. Operations that look at the bits of numbers, or know their types by name,
run in the types that they had: their operands are converted for them, and their results back.

>>> wide = widen(module)
>>> evaluate(wide.module, *map(widen_value, arguments))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from xlalite.hlo.building import construct
from xlalite.hlo.building.create import create
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.numerics.conversion import convert
from xlalite.hlo.ops.structural import ConstantAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape

# What depends on how a number is written, or is registered for certain types.
_BOUND_TO_TYPES = frozenset({"bitcast", "bitcast-convert", "stochastic-convert", "custom-call"})


@dataclass(slots=True)
class Widened:
    """A widened module.

    Attributes:
        module: The module.
        origins: The shape that each of its instructions had, but for conversions that widening put in.
    """

    module: HloModule
    origins: dict[HloInstruction, Shape] = field(default_factory=dict)


def widen(module: HloModule) -> Widened:
    """A copy of a module in which all real numbers are f64 and all complex ones c128.

    Raises:
        EvaluationError: The module draws random numbers or has side effects, so no two runs need agree.
    """
    for instruction in module.instructions():
        if instruction.op.has(Trait.SIDE_EFFECT) or instruction.op.has(Trait.NON_DETERMINISTIC):
            raise EvaluationError(f"widening {module.name}: {instruction!r} may differ from run to run")
    result = Widened(HloModule(f"{module.name}_in_f64"))
    result.module.update_config(replica_count=module.config.replica_count, num_partitions=module.config.num_partitions)
    wide: dict[HloComputation, HloComputation] = {}
    narrow = _Copies(result.module)
    for computation in module.computations():
        wide[computation] = result.module.add(
            _Computation(computation, result.origins, wide.__getitem__, narrow.of).widened(),
            entry=computation is module.entry_computation,
        )
    return result


def widen_shape(shape: Shape) -> Shape:
    """The shape with f64 or c128 for floating-point and complex element types."""
    if shape.is_tuple:
        return Shape.tuple([widen_shape(element) for element in shape.elements])
    if not shape.is_array:
        return shape
    return replace(shape, dtype=widen_dtype(shape.dtype))


def widen_dtype(dtype: DType) -> DType:
    """F64 for floating-point types, c128 for complex ones, others as they are."""
    return DType.F64 if dtype.is_floating else DType.C128 if dtype.is_complex else dtype


def widen_value(value: Value) -> Value:
    """The same numbers in f64 or c128."""
    if isinstance(value, tuple):
        return tuple(widen_value(element) for element in value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    with np.errstate(all="ignore"):
        return convert(np.asarray(value), widen_dtype(DType.from_numpy(value.dtype)))


class _Copies:
    """Copies of computations as they are, for operations that keep their types."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._copies: dict[HloComputation, HloComputation] = {}

    def of(self, computation: HloComputation) -> HloComputation:
        """The copy of a computation, made when it is first asked for."""
        if computation not in self._copies:
            self._copies[computation] = self._module.add(computation.clone(called=self.of))
        return self._copies[computation]


class _Computation:
    """Widens one computation."""

    def __init__(
        self,
        source: HloComputation,
        origins: dict[HloInstruction, Shape],
        wide: Callable[[HloComputation], HloComputation],
        narrow: Callable[[HloComputation], HloComputation],
    ) -> None:
        self._source = source
        self._origins = origins
        self._wide, self._narrow = wide, narrow
        self._result = HloComputation(source.name)
        self._twins: dict[HloInstruction, HloInstruction] = {}

    def widened(self) -> HloComputation:
        for instruction in self._source.post_order():
            twin = self._twins[instruction] = self._twin(instruction)
            self._origins[twin] = instruction.shape
        self._result.set_root(self._twins[self._source.root])
        return self._result

    def _twin(self, instruction: HloInstruction) -> HloInstruction:
        shape = widen_shape(instruction.shape)
        operands = [self._twins[operand] for operand in instruction.operands]
        if instruction.opcode in _BOUND_TO_TYPES:
            originals = [
                self._converted(twin, operand.shape)
                for twin, operand in zip(operands, instruction.operands, strict=True)
            ]
            called = [self._narrow(callee) for callee in instruction.called_computations]
            return self._converted(self._result.add(instruction.clone(originals, called_computations=called)), shape)
        attrs = instruction.attrs
        if instruction.opcode == "constant":
            attrs = ConstantAttrs(Literal(widen_value(attrs.literal.to_value()), shape))
        called = [self._wide(callee) for callee in instruction.called_computations]
        return self._result.add(instruction.clone(operands, shape=shape, attrs=attrs, called_computations=called))

    def _converted(self, value: HloInstruction, shape: Shape) -> HloInstruction:
        """The value in the element types of a shape that is otherwise its own."""
        if value.shape == shape or not (shape.is_array or shape.is_tuple):
            return value
        if not shape.is_tuple:
            return self._result.add(create("convert", [value], shape=shape))
        elements = [
            self._converted(self._result.add(construct.element(value, index)), element)
            for index, element in enumerate(shape.elements)
        ]
        return self._result.add(create("tuple", elements))
