"""Calls of compiled entries whose parameters or results have sizes that are known only at run time.

Code takes and gives such arrays at their largest sizes, with the sizes apart: see `bounded_leaves`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.backends.arguments import to_array
from xlalite.hlo.errors import ArgumentError
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.shape import ProgramShape, Shape


def with_run_time_sizes(
    function: Callable[..., object], signature: ProgramShape, name: str
) -> Callable[..., tuple[Array, ...]]:
    """A function of the arrays as the program has them, out of one of arrays at their largest sizes.

    Args:
        function: Takes `bounded_leaves` of the parameters and gives those of the result.
        signature: What the program says.
        name: Name of the module.
    """
    parameters, results = _arrays(signature.parameters), _arrays((signature.result,))

    def call(*arguments: object) -> tuple[Array, ...]:
        if len(arguments) != len(parameters):
            raise ArgumentError(f"calling {name}: found {len(arguments)} arguments, expected {len(parameters)}")
        padded: list[object] = list(arguments)
        sizes: list[Array] = []
        for number, shape in enumerate(parameters):
            if shape.is_dynamic:
                array = to_array(arguments[number], shape, f"{name}: argument {number}")
                padded[number] = _padded(array, shape)
                sizes += [np.asarray(size, np.int32) for size in array.shape]
        found = function(*padded, *sizes)
        assert isinstance(found, tuple), "the entry gives a tuple"
        found_sizes = iter(found[len(results) :])
        return tuple(
            array[tuple(slice(0, int(next(found_sizes))) for _ in shape.dims)].copy() if shape.is_dynamic else array
            for array, shape in zip(found, results, strict=False)
        )

    return call


def _arrays(shapes: Sequence[Shape]) -> list[Shape]:
    return [leaf for shape in shapes for _, leaf in shape.leaves() if leaf.is_array]


def _padded(array: Array, shape: Shape) -> Array:
    padded = np.zeros(shape.dims, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded
