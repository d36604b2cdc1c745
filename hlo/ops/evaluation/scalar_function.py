"""Applies scalar computations (reducers, comparators, the function of `map`) to whole arrays.

A computation that only has elementwise operations means the same for arrays of any size, so it is called once with
whole arrays; any other is called element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.ops.rules.shapes import array_value, elements_of, flatten_values
from xlalite.hlo.types.literal import Array

ArrayFunction: TypeAlias = Callable[[Sequence[Array]], tuple[Array, ...]]

# Besides the elementwise ones, those whose evaluator goes by its operands and not by the sizes that the instruction
# states: no declaration says that of an evaluator, and a reshape's, alike in all else, does go by them. Bitcasts of
# scalars are always between types of equal width.
_EVALUATED_AT_ANY_SIZE = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "call", "fusion", "map", "bitcast", "bitcast-convert"}
)


def array_function(computation: HloComputation, call: Caller) -> ArrayFunction:
    """The scalar computation as a function of arrays that have the same sizes (or broadcast to them).

    The function returns one array for each element of the computation's result, all of the common size.
    """
    apply = _apply_whole if is_vectorizable(computation) else _apply_each
    return lambda arguments: apply(computation, arguments, call)


def is_vectorizable(computation: HloComputation) -> bool:
    """Whether calling the scalar computation with arrays means applying it to each element."""
    return all(
        (instruction.op.is_elementwise or instruction.opcode in _EVALUATED_AT_ANY_SIZE)
        and _is_scalar(instruction)
        and all(is_vectorizable(callee) for callee in instruction.called_computations)
        for instruction in computation.instructions
    )


def _is_scalar(instruction: HloInstruction) -> bool:
    return all(leaf.is_scalar for _, leaf in instruction.shape.leaves())


def _apply_whole(computation: HloComputation, arguments: Sequence[Array], call: Caller) -> tuple[Array, ...]:
    sizes = np.broadcast_shapes(*(argument.shape for argument in arguments))
    results = flatten_values(call(computation, arguments))
    return tuple(np.broadcast_to(array_value(result), sizes) for result in results)


def _apply_each(computation: HloComputation, arguments: Sequence[Array], call: Caller) -> tuple[Array, ...]:
    spread = np.broadcast_arrays(*arguments)
    shapes = elements_of(computation.root.shape)
    results = tuple(np.empty(spread[0].shape, shape.dtype.numpy) for shape in shapes)
    for index in np.ndindex(spread[0].shape):
        values = flatten_values(call(computation, [np.asarray(array[index]) for array in spread]))
        for result, value in zip(results, values, strict=True):
            result[index] = array_value(value)
    return results
