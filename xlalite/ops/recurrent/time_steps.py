"""What cells may know of the loop over time that runs them: random numbers are drawn before it, for all its steps.

Random numbers come from the host, so a loop that drew them itself could not be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass
from xlalite.ops.functions.array import gather, shape
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote


@dataclass(frozen=True, slots=True)
class TimeSteps:
    """A loop over time while its body is built.

    Attributes:
        outside: The graph around the loop.
        time: The number of the step, inside.
        count: The number of steps, outside.
        batch: The number of sequences, outside.
    """

    outside: Graph
    time: Tensor
    count: Tensor
    batch: Tensor


_CURRENT: ContextVar[TimeSteps | None] = ContextVar("time steps", default=None)


@contextmanager
def inside(steps: TimeSteps) -> Iterator[None]:
    """Builds the body of a loop."""
    token = _CURRENT.set(steps)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def noise_like(value: Tensor, seed: int | None) -> Tensor:
    """Numbers evenly distributed in `[0, 1)` of the type and sizes of a value, others in each step."""
    steps, dims = _CURRENT.get(), value.shape.dims
    if steps is None or dims is None or None in dims[1:]:
        return random_uniform(shape(value), seed=seed, dtype=value.dtype)
    first = dims[0] if dims[0] is not None else steps.batch
    with steps.outside.as_default(), steps.outside.control_dependencies(None):
        drawn = random_uniform([steps.count, first, *dims[1:]], seed=seed, dtype=value.dtype)
    found = gather(drawn, steps.time)
    found.set_shape(value.shape)
    return found


def dropped_out(value: Tensor, keep_prob: Any, seed: int | None, noise: Tensor | None = None) -> Tensor:
    """Elements set to 0 with probability `1 - keep_prob`, the others scaled; noise is drawn unless it is given."""
    kept = cast_to(promote(keep_prob)[0], value.dtype)
    drawn = noise_like(value, seed) if noise is None else noise
    mask = node("Cast", [node("Less", [drawn, kept])], {"dtype": value.dtype})
    result: Tensor = value / kept * mask
    return result
