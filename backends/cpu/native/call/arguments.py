"""The arrays of a call: its arguments as an entry function takes them, and its results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.backends.arguments import Array, to_array
from xlalite.backends.cpu.native.call.signature import CallSignature
from xlalite.hlo.errors import ArgumentError


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
    arrays = [to_array(argument, shape, f"{signature.name}: argument {i}") for i, (argument, shape) in enumerate(pairs)]
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


def _may_be_overwritten(source: int, argument: object, arrays: Sequence[Array]) -> bool:
    """Whether the caller gave this very array, it is writeable, and no other argument sees its memory."""
    array = arrays[source]
    if array is not argument or not array.flags.writeable:
        return False
    return not any(i != source and np.may_share_memory(array, other) for i, other in enumerate(arrays))
