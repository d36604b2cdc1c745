"""How the length of a transform is taken apart; knows nothing of code.

A length whose prime factors are all small goes through one pass for each radix. Any other is a convolution of a length
that does (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970).

A long line is cut in two (Bailey, "FFTs in external or hierarchical memory", 1990): as a matrix [rows, columns] its
columns are transformed, each element is turned by an angle, and then its rows are transformed. So is the convolution
of a line that is transformed by one.
"""

from __future__ import annotations

import math
from functools import cache

from xlalite.hlo.records import dataclass

_RADICES = (8, 4, 2, 23, 19, 17, 13, 11, 7, 5, 3)
"""Primes up to 23: 200 lines of 437 = 19 * 23 take 60 us so and 122 as a convolution, of 121 10 and 28. Lengths
with the largest take 15 ms more to compile.
"""


@dataclass(frozen=True, slots=True)
class LinePlan:
    """A transform of one line, done for many lines at once.

    Attributes:
        length: Elements of the line.
        radices: One for each pass; their product is the length, or that of the convolution.
    """

    length: int
    radices: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements that the passes go over."""
        product = 1
        for radix in self.radices:
            product *= radix
        return product

    @property
    def is_convolution(self) -> bool:
        """Whether the line is transformed by a convolution."""
        return self.size != self.length


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A transform of one long line as a matrix [rows, columns].

    Attributes:
        length: Elements of the line.
        rows: The transforms of columns.
        columns: The transforms of rows.
    """

    length: int
    rows: LinePlan
    columns: LinePlan

    @property
    def size(self) -> int:
        """Elements of the matrix."""
        return self.rows.length * self.columns.length

    @property
    def is_convolution(self) -> bool:
        """Whether the line is transformed by a convolution."""
        return self.size != self.length


def radices_of(length: int) -> tuple[int, ...] | None:
    """Radices whose product is the length, large ones first; None if it has a large prime factor."""
    found = []
    for radix in _RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    if found[-1:] == [2] and 8 in found and 4 not in found:
        # 8 * 2 is two passes, and so is 4 * 4, which is less work.
        found.remove(8)
        found.remove(2)
        found += [4, 4]
    return tuple(found) if length == 1 else None


def plan_line(length: int) -> LinePlan:
    """The plan for a line of any length, at least 1."""
    radices = radices_of(length)
    return LinePlan(length, radices if radices is not None else _convolution_radices(2 * length - 1))


@cache
def _convolution_radices(least: int) -> tuple[int, ...]:
    """Radices of the length, at least so much, that costs least."""
    most = 1 << (least - 1).bit_length()
    products = [1]
    for prime in (2, 3, 5, 7):
        for product in products:  # and those that it grows by
            if product * prime <= most:
                products.append(product * prime)
    found = [radices_of(length) for length in sorted(products) if length >= least]
    return min((radices for radices in found if radices), key=lambda radices: math.prod(radices) * cost_of(radices))


def cost_of(radices: tuple[int, ...]) -> float:
    """What an element costs in all passes of a convolution, about."""
    return sum({2: 1.0, 3: 1.4, 4: 1.15, 5: 2.0, 7: 3.0, 8: 1.5}[radix] for radix in radices)


def split_line(length: int, lanes: int) -> tuple[SplitPlan, float] | None:
    """The split of a line that leaves fewest lanes idle, and the part of lanes that work; None if there is no split."""
    best: tuple[float, int] | None = None
    size = plan_line(length).size
    for rows in range(2, size // 2 + 1):
        columns = size // rows
        if rows > columns * 8:
            break
        if size % rows or columns > rows * 8:
            continue
        work = (-(-columns // lanes) * rows + -(-rows // lanes) * columns) * lanes / (2 * size)
        # Of equal ones the one nearest to a square.
        penalty = work + 0.01 * max(rows, columns) / min(rows, columns)
        if best is None or penalty < best[0]:
            best = penalty, rows
    if best is None:
        return None
    rows = best[1]
    return SplitPlan(length, plan_line(rows), plan_line(size // rows)), 1 / best[0]
