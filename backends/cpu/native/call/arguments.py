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
    shared = _sharing(arrays) if signature.donations else set()
    for source, _ in signature.donations:
        array = arrays[source]
        # What is overwritten is an array of the caller's own that may be written to.
        if source in shared or array is not arguments[source] or not array.flags.writeable:
            arrays[source] = array.copy()
    return arrays


def new_results(signature: CallSignature, arrays: Sequence[Array]) -> list[Array]:
    """Arrays for the outputs; those that were donated to are arguments."""
    source_of = {target: source for source, target in signature.donations}
    return [
        arrays[source_of[i]] if i in source_of else np.empty(shape.dims, shape.dtype.numpy)
        for i, shape in enumerate(signature.outputs)
    ]


def _sharing(arrays: Sequence[Array]) -> set[int]:
    """The numbers of arrays whose memory another one sees; empty ones have none. Arrays are row-major."""
    extents = sorted((array.ctypes.data, array.nbytes, i) for i, array in enumerate(arrays) if array.nbytes)
    shared: set[int] = set()
    end, last = 0, -1
    for begin, size, i in extents:
        if begin < end:
            shared |= {i, last}
        if begin + size > end:
            end, last = begin + size, i
    return shared
