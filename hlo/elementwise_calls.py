"""Applies computations on scalars to arrays: what reduce, map, sort and scatter do with the computations they call.

Evaluators of elementwise operations look at element types and values only (see `hlo/ops/lifting.py`), so a computation
made of them gives, for whole arrays in place of its scalar parameters, all results at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.computation import HloComputation
from xlalite.hlo.literal import Array, Value
from xlalite.hlo.op import Caller, Trait
from xlalite.hlo.shape import Shape

# Of scalars, bitcast-convert is between types of equal width, and then it is elementwise.
_STRUCTURAL = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "call", "bitcast-convert"})


def call_elementwise(call: Caller, computation: HloComputation, arrays: Sequence[Array]) -> Value:
    """The computation's results for each element of the arrays, which broadcast against each other.

    One array, or a tuple of arrays when the computation returns a tuple, all of the common sizes.
    """
    arrays = np.broadcast_arrays(*arrays) if arrays else []
    sizes = arrays[0].shape if arrays else ()
    if is_elementwise_computation(computation):
        return _broadcast(call(computation, tuple(arrays)), sizes)
    return _one_by_one(call, computation, arrays, sizes)


def is_elementwise_computation(computation: HloComputation) -> bool:
    """Whether the computation consists of elementwise operations on scalars and of tuples of them."""
    return all(
        (instruction.op.has(Trait.ELEMENTWISE) or instruction.opcode in _STRUCTURAL)
        and not instruction.op.has(Trait.NON_DETERMINISTIC)
        and all(leaf.is_scalar for _, leaf in instruction.shape.leaves())
        and all(is_elementwise_computation(called) for called in instruction.called_computations)
        for instruction in computation.instructions
    )


def _broadcast(value: Value, sizes: tuple[int, ...]) -> Value:
    """Results that no parameter reaches are the same for all elements."""
    if isinstance(value, tuple):
        return tuple(_broadcast(element, sizes) for element in value)
    assert isinstance(value, np.ndarray), "scalars are arrays"
    return value if value.shape == sizes else np.broadcast_to(value, sizes)


def _one_by_one(call: Caller, computation: HloComputation, arrays: Sequence[Array], sizes: tuple[int, ...]) -> Value:
    result = _empty(computation.root.shape, sizes)
    for index in np.ndindex(*sizes):
        scalars = tuple(np.asarray(array[index], dtype=array.dtype) for array in arrays)
        _store(result, index, call(computation, scalars))
    return result


def _empty(shape: Shape, sizes: tuple[int, ...]) -> Value:
    if shape.is_tuple:
        return tuple(_empty(element, sizes) for element in shape.elements)
    return np.empty(sizes, shape.dtype.numpy)


def _store(result: Value, index: tuple[int, ...], value: Value) -> None:
    if isinstance(result, tuple):
        assert isinstance(value, tuple), "the root's shape is a tuple"
        for part, element in zip(result, value, strict=True):
            _store(part, index, element)
        return
    assert isinstance(result, np.ndarray), "scalars are arrays"
    result[index] = value
