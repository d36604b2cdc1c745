"""An order of items in which neighbours can be inserted and positions compared at once.

Each item carries an integer label that grows along the order. Where labels run out, the smallest thin enough range
around the spot is labelled anew (Bender, Cole, Demaine, Farach-Colton, Zito: Two simplified algorithms for maintaining
order in a list, 2002), so an insertion costs a logarithmic number of labels on average. Knows nothing of graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LABEL_BITS = 62
# A range of 2**i labels is thin enough when it holds at most _DENSITY**i items.
_DENSITY = 4 / 3


class OrderList:
    """The numbers `0 .. n-1` in some order.

    Attributes:
        labels: Grows along the order; changes when items move. Read it, never write it.
        work: Labels written so far.
    """

    __slots__ = ("_next", "_previous", "labels", "work")

    def __init__(self, order: Sequence[int]) -> None:
        """Starts with the given order of `0 .. n-1`."""
        # One more item, number n, is both before the first and after the last.
        count = len(order)
        self.labels = [0] * (count + 1)
        self._next = [0] * (count + 1)
        self._previous = [0] * (count + 1)
        self.work = count
        spacing = 2**_LABEL_BITS // (count + 1)
        around = [count, *order, count]
        for position, item in enumerate(order, 1):
            self.labels[item] = position * spacing
            self._previous[item] = around[position - 1]
            self._next[item] = around[position + 1]
        self._next[count], self._previous[count] = around[1], around[-2]

    def move_after(self, items: Iterable[int], anchor: int) -> None:
        """Moves `items`, in their order, to directly behind `anchor`."""
        for item in items:
            self.remove(item)
            self._insert(item, anchor)
            anchor = item

    def move_before(self, items: Iterable[int], anchor: int) -> None:
        """Moves `items`, in their order, to directly before `anchor`."""
        for item in items:
            self.remove(item)
            self._insert(item, self._previous[anchor])

    def remove(self, item: int) -> None:
        """Takes `item` out of the order."""
        before, after = self._previous[item], self._next[item]
        self._next[before], self._previous[after] = after, before

    def replace(self, item: int, other: int) -> None:
        """Takes `other` out of its place and puts it where `item` is, which leaves the order."""
        self.remove(other)
        before, after = self._previous[item], self._next[item]
        self._next[before] = self._previous[after] = other
        self._previous[other], self._next[other] = before, after
        self.labels[other] = self.labels[item]

    def _insert(self, item: int, anchor: int) -> None:
        low, high = self._gap_after(anchor)
        if high - low < 2:
            self._spread(anchor)
            low, high = self._gap_after(anchor)
        after = self._next[anchor]
        self._next[anchor] = self._previous[after] = item
        self._previous[item], self._next[item] = anchor, after
        self.labels[item] = (low + high) // 2
        self.work += 1

    def _gap_after(self, anchor: int) -> tuple[int, int]:
        ends = len(self.labels) - 1
        after = self._next[anchor]
        return (-1 if anchor == ends else self.labels[anchor]), (
            2**_LABEL_BITS if after == ends else self.labels[after]
        )

    def _spread(self, anchor: int) -> None:
        """Labels items around `anchor` anew so that there is room behind it."""
        ends = len(self.labels) - 1
        first = last = anchor if anchor != ends else self._next[anchor]
        label, count = self.labels[first], 1
        for bits in range(1, _LABEL_BITS + 1):
            base = label >> bits << bits
            while (item := self._previous[first]) != ends and self.labels[item] >= base:
                first, count = item, count + 1
            while (item := self._next[last]) != ends and self.labels[item] < base + 2**bits:
                last, count = item, count + 1
            if count <= _DENSITY**bits and 2**bits // count >= 4:
                break
        spacing = 2**bits // count
        for position in range(count):
            self.labels[first] = base + position * spacing + spacing // 2
            first = self._next[first]
        self.work += count
