"""A loop over numbers whose results are stacked: what `map`, `scan` and operations one by one have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant

Kind = tuple[DType, Sequence[int]]


def over_numbers(count: int, function: Callable[[Tensor], Sequence[Tensor]], kinds: Sequence[Kind]) -> list[Tensor]:
    """What a function gives for each number below `count`, of these types and shapes, stacked."""
    return carrying(count, lambda number, _: ((), function(number)), (), kinds)[1]


def carrying(
    count: int,
    function: Callable[[Tensor, Sequence[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]],
    state: Sequence[Tensor],
    kinds: Sequence[Kind],
    reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """The last state, and what a function of number and state gives besides the next state, stacked.

    Args:
        count: The number of iterations.
        function: Gives the next state, and results.
        state: The first state.
        kinds: Types and shapes of the results.
        reverse: Begin with the last number.
    """
    arrays = [TensorArray(dtype, count, element_shape=list(dims)) for dtype, dims in kinds]

    def body(number: Tensor, carried: Sequence[Tensor], written: Sequence[TensorArray]) -> object:
        at = count - 1 - number if reverse else number
        following, found = function(at, carried)
        return number + 1, list(following), [ta.write(at, each) for ta, each in zip(written, found, strict=True)]

    start = constant(np.int32(0))
    _, last, done = while_loop(lambda number, *_: number < count, body, [start, list(state), arrays])
    return list(last), [array.stack() for array in done]
