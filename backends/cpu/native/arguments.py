"""Arguments of any kind to the exact arrays that an entry function takes, and errors for what does not fit.

Arrays must have the declared shape and element type; byte order, strides and alignment are put right by a copy. Python
numbers and nested lists have no element type of their own and take the declared one where no information can get lost
but a float's last digits. Nothing is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xlalite.backends.cpu.native.signature import CallSignature
from xlalite.hlo.dtype import DType, Kind
from xlalite.hlo.errors import ArgumentError
from xlalite.hlo.shape import Shape

Array = NDArray[Any]

_GENERALITY = {Kind.PRED: 0, Kind.UNSIGNED: 1, Kind.SIGNED: 1, Kind.FLOAT: 2, Kind.COMPLEX: 3}


def to_arrays(signature: CallSignature, arguments: Sequence[object]) -> list[Array]:
    """The arguments as row-major, aligned arrays of the signature's shapes; a donated one is safe to overwrite.

    Raises:
        ArgumentError: Their number, a shape or an element type does not fit.
    """
    if len(arguments) != len(signature.inputs):
        wanted = ", ".join(shape.text(layout=False) for shape in signature.inputs)
        raise ArgumentError(
            f"{signature.name}: {len(arguments)} arguments given, {len(signature.inputs)} expected ({wanted})"
        )
    pairs = zip(arguments, signature.inputs, strict=True)
    arrays = [
        _to_array(argument, shape, f"{signature.name}: argument {i}") for i, (argument, shape) in enumerate(pairs)
    ]
    for source, _ in signature.donations:
        if not _may_be_overwritten(source, arguments[source], arrays):
            arrays[source] = arrays[source].copy()
    return arrays


def new_results(signature: CallSignature, arrays: Sequence[Array]) -> list[Array]:
    """Arrays for the outputs; those that were donated to are arguments."""
    source_of = {target: source for source, target in signature.donations}
    return [
        arrays[source_of[i]] if i in source_of else np.empty(shape.dims, shape.dtype.numpy)
        for i, shape in enumerate(signature.outputs)
    ]


def _to_array(argument: object, shape: Shape, where: str) -> Array:
    if isinstance(argument, (bool, int, float, complex, list, tuple)) and not isinstance(argument, np.generic):
        array = _from_python(argument, shape, where)
    elif isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError(f"{where} is a masked array; expected {shape.text(layout=False)} (its mask would be lost)")
    else:
        array = np.asarray(argument)
        if not _has_type(array, shape.dtype):
            raise ArgumentError(f"{where} is {_describe(array)}; expected {shape.text(layout=False)}")
    if array.shape != shape.dims:
        raise ArgumentError(f"{where} is {_describe(array)}; expected {shape.text(layout=False)}")
    return np.require(array, shape.dtype.numpy, ("C_CONTIGUOUS", "ALIGNED"))


def _from_python(argument: object, shape: Shape, where: str) -> Array:
    """A number or nested lists of numbers in the wanted element type."""
    try:
        natural = np.asarray(argument)
        found = DType.from_numpy(natural.dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{where} is {argument!r}; expected {shape.text(layout=False)}") from error
    wanted = shape.dtype
    if natural.size and _GENERALITY[found.kind] > _GENERALITY[wanted.kind]:
        raise ArgumentError(f"{where} is {argument!r} ({found.value}); expected {shape.text(layout=False)}")
    if wanted.is_integral and found.is_integral and natural.size:
        lowest = -(1 << wanted.bits - 1) if wanted.is_signed else 0
        if int(natural.min()) < lowest or int(natural.max()) >= lowest + (1 << wanted.bits):
            raise ArgumentError(f"{where} is {argument!r}, which does not fit into {wanted.value}")
    return natural.astype(wanted.numpy)


def _has_type(array: Array, dtype: DType) -> bool:
    return array.dtype.newbyteorder("=") == dtype.numpy


def _may_be_overwritten(source: int, argument: object, arrays: Sequence[Array]) -> bool:
    """Whether the caller gave this very array, it is writeable, and no other argument sees its memory."""
    array = arrays[source]
    if array is not argument or not array.flags.writeable:
        return False
    return not any(i != source and np.may_share_memory(array, other) for i, other in enumerate(arrays))


def _describe(array: Array) -> str:
    try:
        return Shape.array(DType.from_numpy(array.dtype), array.shape).text(layout=False)
    except TypeError:
        return f"an array of {array.dtype} with shape {list(array.shape)}"
