"""Random numbers in functions that are traced: a generator with NumPy's methods whose numbers follow from its seed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.ops.helpers.node import node
from xlalite.tracing.promotion import as_tensor, sizes, traced_array
from xlalite.tracing.traced_array import TracedArray


def default_rng(seed: Any) -> Generator:
    """A generator of random numbers; the seed may be traced.

    Args:
        seed: A whole number, or a pair of them.
    """
    return Generator(seed)


class Generator:
    """NumPy's `Generator` by name; its numbers are others. Calls one after another give different numbers.

    A loop of the program runs its body with one and the same generator: `rng.at(i)` is another one for each `i`.
    """

    def __init__(self, seed: Any) -> None:
        """Begins with a whole number, or a pair of them."""
        pair = traced_array(np.asarray(seed) if not isinstance(seed, TracedArray) else seed).astype(np.int64)
        self._seed = pair if pair.shape == (2,) else np.stack([pair, np.zeros_like(pair)])
        self._calls = itertools.count(1)

    def at(self, number: Any) -> Generator:
        """A generator for a number, traced or not."""
        mixed = traced_array(number).astype(np.int64) * np.int64(0x5851F42D4C957F2D) + np.int64(next(self._calls))
        return Generator(np.stack([self._seed[0] ^ mixed, self._seed[1] + mixed]))

    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Numbers evenly distributed in [0, 1)."""
        return self._drawn("StatelessRandomUniform", size, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Numbers evenly distributed from `low` to below `high`."""
        return self.random(_common_size(size, low, high)) * np.subtract(high, low) + low

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Normally distributed numbers with mean 0 and deviation 1."""
        return self._drawn("StatelessRandomNormal", size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normally distributed numbers."""
        return self.standard_normal(_common_size(size, loc, scale)) * scale + loc

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponentially distributed numbers."""
        return -np.log1p(-self.random(_common_size(size, scale))) * scale

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
        """Whole numbers evenly distributed from `low` to below `high`, or from 0 to below `low`."""
        first, end = (0, low) if high is None else (low, high)
        drawn = np.floor(self.random(_common_size(size, first, end)) * np.subtract(end, first))
        return np.minimum(drawn.astype(np.int64) + first, np.subtract(end, 1)).astype(dtype)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The parts of an array along a dimension in random order; of a number those below it."""
        parts = np.arange(x) if isinstance(x, int) else x
        order = np.argsort(self.random(sizes(parts)[axis]))
        return np.take(traced_array(parts), order, axis=axis)

    def choice(self, a: Any, size: Any = None, replace: bool = True) -> Any:
        """Parts of an array, or numbers below one, chosen at random."""
        count = a if isinstance(a, int) else sizes(a)[0]
        wanted = _dims(size)
        if replace:
            places = self.integers(0, count, wanted)
        else:
            places = np.reshape(self.permutation(count)[: int(np.prod(wanted))], wanted)
        return places if isinstance(a, int) else np.take(traced_array(a), places, axis=0)

    def _drawn(self, op_type: str, size: Any, dtype: Any) -> Any:
        shape, seed = as_tensor(np.array(_dims(size), np.int32)), as_tensor(self.at(0)._seed)
        return traced_array(node(op_type, [shape, seed], {"dtype": as_dtype(np.dtype(dtype))}))


def _dims(size: Any) -> tuple[int, ...]:
    return () if size is None else (int(size),) if isinstance(size, int | np.integer) else tuple(size)


def _common_size(size: Any, *parameters: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*map(sizes, parameters)) if size is None else _dims(size)
