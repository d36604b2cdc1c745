"""Arguments that a caller gives away: results lie in their memory, and what is assigned to them is seen by the caller.

`f(x, out=y)` gives `y` away in the same sense: the result is assigned to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten
from xlalite.hlo.errors import TracingError
from xlalite.hlo.ir.module import InputOutputAlias
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.tracing.promotion import numpy_dtype, sizes
from xlalite.tracing.traced_array import TracedArray

OUT: Final = "out"


@dataclass(frozen=True, slots=True)
class Donation:
    """Where results of a program lie.

    Attributes:
        aliases: Outputs in the memory of inputs.
        written: (input, output) for each input whose new elements the caller sees.
        outputs: What the program gives for that, behind the results of the function.
        unused: Inputs in whose memory no result fits.
    """

    aliases: tuple[InputOutputAlias, ...]
    written: tuple[tuple[int, int], ...]
    outputs: tuple[Tensor, ...]
    unused: tuple[int, ...]


def donation_of(
    inputs: Sequence[TracedArray], donated: Collection[int], results: Sequence[Any], outputs: Sequence[Tensor]
) -> Donation:
    """Which output takes the memory of which of the donated inputs, after the function has run.

    Args:
        inputs: The leaves of the arguments.
        donated: Those that are given away; numbers of Python have no memory to give.
        results: The leaves of the result.
        outputs: The same as tensors.
    """
    places: dict[int, int] = {}
    extra: list[Tensor] = []
    written = [i for i in sorted(donated) if inputs[i]._version]
    for i in written:
        places[i] = next((k for k, each in enumerate(results) if each is inputs[i]), len(outputs) + len(extra))
        if places[i] >= len(outputs):
            extra.append(inputs[i].tensor)
    others = [i for i in sorted(donated) if i not in places and not inputs[i].is_weak]
    for i in others:
        fitting = (
            k
            for k, each in enumerate(outputs)
            if k not in places.values()
            and (each.shape.known_dims(), each.dtype) == (inputs[i].shape, inputs[i].tensor.dtype)
        )
        if (place := next(fitting, None)) is not None:
            places[i] = place
    return Donation(
        tuple(InputOutputAlias((place,), i, (), "may-alias") for i, place in places.items()),
        tuple((i, places[i]) for i in written),
        tuple(extra),
        tuple(i for i in others if i not in places),
    )


def unused_donation(function: str, argument: str, reason: str = "no result has its shape and element type") -> Decision:
    """The record of an argument whose memory nothing takes."""
    return Decision("donation", (function, argument), "not used", reason)


def into(out: Any, result: Any, function: str) -> Any:
    """Assigns a result to arrays of the same structure, with NumPy's casting; gives them.

    Raises:
        TracingError: Structure, shapes or element types do not fit.
    """
    (targets, structure), (values, found) = flatten(out), flatten(result)
    if structure != found:
        raise TracingError(f"{function}: out= must be nested as the result is: found {structure}, expected {found}")
    for i, (target, value) in enumerate(zip(targets, values, strict=True)):
        where = f"{function}: out=" + (f" ({i + 1} of {len(targets)})" if len(targets) > 1 else "")
        if not isinstance(target, TracedArray) or target.is_weak:
            raise TracingError(f"{where} must be an array, found {target!r}")
        wanted, kind = sizes(value), numpy_dtype(value)
        if target.shape != wanted or not np.can_cast(kind, target.dtype, "same_kind"):
            raise TracingError(f"{where} is {target.dtype}{list(target.shape)}, the result {kind}{list(wanted)}")
        target[...] = value
    return out


def writing(function: Callable[..., Any], donation: Donation) -> Callable[..., Any]:
    """The program, whose callers see what was assigned to their arrays."""
    if not donation.written:
        return function

    def call(*arrays: Any) -> list[Any]:
        results = list(function(*arrays))
        for source, place in donation.written:
            given = arrays[source]
            # Strided arrays, and those that share memory with others, were copied.
            if results[place] is not given:
                np.copyto(given, results[place])
                results[place] = given
        return results[: len(results) - len(donation.outputs)]

    return call
