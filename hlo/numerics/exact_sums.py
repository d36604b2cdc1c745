"""Products and sums with their rounding errors, in whatever floating-point type the arrays have."""

from __future__ import annotations

from functools import reduce

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray

Pair = tuple[AnyArray, AnyArray]


def two_sum(a: AnyArray, b: AnyArray) -> Pair:
    """The sum rounded, and what rounding took (Knuth)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def two_product(a: AnyArray, b: AnyArray) -> Pair:
    """The product rounded, and what rounding took (Dekker), where nothing overflows or underflows."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(x: AnyArray) -> Pair:
    """Two numbers of half as many bits whose sum is x (Veltkamp)."""
    bits = np.finfo(x.dtype).nmant + 1
    scaled = x * x.dtype.type(2.0 ** -(-bits // 2) + 1)
    high = scaled - (scaled - x)
    return high, x - high


def exact_sum(*terms: AnyArray) -> AnyArray:
    """The terms added up with the errors of each step, so that what cancels leaves nothing wrong behind."""

    def step(state: Pair, term: AnyArray) -> Pair:
        total, lost = two_sum(state[0], term)
        return total, state[1] + lost

    total, lost = reduce(step, terms[1:], (terms[0], np.zeros_like(terms[0])))
    # Where the plain sum is infinite or NaN its errors mean nothing; a zero keeps its sign.
    return np.where(np.isfinite(total) & (lost != 0), total + lost, total)
