"""Parts of arrays that share their elements: what is assigned to a view is assigned to what it is a view of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass
from xlalite.ops.declarations.strided_slice import MASKS
from xlalite.ops.functions import array, math, special
from xlalite.ops.functions.indexing import index_tensor
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node


@dataclass(frozen=True, slots=True)
class View:
    """How a part of an array is read and written.

    Attributes:
        read: The part, given the whole.
        write: The whole with another part, given the whole and the part.
    """

    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor, Tensor], Tensor]


def reshaped(old: tuple[int, ...], new: tuple[int, ...]) -> View:
    """The same elements in another shape."""
    return View(lambda whole: array.reshape(whole, list(new)), lambda _, part: array.reshape(part, list(old)))


def transposed(order: tuple[int, ...]) -> View:
    """The same elements with dimensions in another order."""
    back = [int(each) for each in np.argsort(order)]
    return View(lambda whole: array.transpose(whole, list(order)), lambda _, part: array.transpose(part, back))


def component(is_real: bool) -> View:
    """The real or the imaginary parts of complex numbers."""

    def write(whole: Tensor, part: Tensor) -> Tensor:
        parts = (part, math.imag(whole)) if is_real else (math.real(whole), part)
        return special.complex(*parts)

    return View(math.real if is_real else math.imag, write)


def sliced(key: tuple[Any, ...]) -> View:
    """What integers and slices choose; dimensions that `None` adds are of size 1."""
    numbers = [each for each in key if each is not None]

    def write(whole: Tensor, part: Tensor) -> Tensor:
        taken = convert_to_tensor(index_tensor(whole, tuple(numbers)))
        value = array.reshape(part, list(taken.shape.known_dims()))
        if taken.op.type != "StridedSlice":
            return value
        masks = {mask: taken.op.get_attr(mask) for mask in MASKS}
        return node("TensorStridedSliceUpdate", [whole, *taken.op.inputs[1:], value], masks)

    return View(lambda whole: convert_to_tensor(index_tensor(whole, key)), write)


def reinterpreted(old: DType, new: DType) -> View:
    """The bits of elements as another type of the same width."""
    return View(lambda whole: math.bitcast(whole, new), lambda _, part: math.bitcast(part, old))


def diagonal(rows: int, columns: int, offset: int) -> View:
    """Diagonals of the matrices in the last two dimensions."""
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = (np.arange(length) + max(-offset, 0)) * columns + np.arange(length) + max(offset, 0)

    def read(whole: Tensor) -> Tensor:
        *batch, _, _ = whole.shape.known_dims()
        return array.gather(array.reshape(whole, [*batch, rows * columns]), constant(places), axis=len(batch))

    def write(whole: Tensor, part: Tensor) -> Tensor:
        *batch, _, _ = whole.shape.known_dims()
        first = array.transpose(array.reshape(whole, [-1, rows * columns]), [1, 0])
        values = array.transpose(array.reshape(part, [-1, length]), [1, 0])
        found = node("TensorScatterUpdate", [first, constant(places[:, None]), values])
        return array.reshape(array.transpose(found, [1, 0]), [*batch, rows, columns])

    return View(read, write)
