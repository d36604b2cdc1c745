"""A directed acyclic graph whose edges can be contracted as long as it stays acyclic.

The nodes are kept in a topological order (an online one, in the manner of Pearce and Kelly, A dynamic topological sort
algorithm for directed acyclic graphs, 2007). Contracting an edge needs to know whether another path connects its ends;
only nodes between them in the order can lie on one. The search runs from both ends in turn and stops when either has
seen all it can reach, so a contraction costs as much as the smaller side. Knows nothing of operations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from xlalite.clustering.order_list import OrderList


class ContractibleGraph:
    """Nodes `0 .. n-1`; a group of contracted nodes is known by the number of one of them.

    Attributes:
        searched: Edges looked at by searches so far.
        rewired: Edges moved by contractions so far.
    """

    def __init__(self, successors: Sequence[Sequence[int]], order: Sequence[int]) -> None:
        """Makes the graph.

        Args:
            successors: For each node, those that come after it.
            order: All nodes in a topological order.
        """
        count = len(successors)
        self._successors: list[dict[int, None]] = [dict.fromkeys(each) for each in successors]
        self._predecessors: list[dict[int, None]] = [{} for _ in range(count)]
        for node, followers in enumerate(self._successors):
            for follower in followers:
                self._predecessors[follower][node] = None
        self._parents = list(range(count))
        self._order = OrderList(order)
        labels = self._order.labels
        assert all(labels[a] < labels[b] for a in range(count) for b in self._successors[a]), "the order is no order"
        self._refusals: dict[tuple[int, int], tuple[int, ...]] = {}
        self.searched = 0
        self.rewired = 0

    @property
    def work(self) -> int:
        """Steps taken so far: edges searched and moved, labels written."""
        return self.searched + self.rewired + self._order.work

    def find(self, node: int) -> int:
        """The number of the group that `node` belongs to."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def successors(self, group: int) -> tuple[int, ...]:
        """Groups that an edge leads to from `group`."""
        return tuple(self._successors[group])

    def other_path(self, start: int, end: int) -> tuple[int, ...]:
        """A path between two groups besides the edge between them, ends included; empty when there is none."""
        known = self._known_refusal(start, end)
        return known or self._search(start, end)[2]

    def contract(self, start: int, end: int) -> tuple[int, ...]:
        """Joins two groups with an edge between them unless that closes a cycle.

        Returns:
            Nothing when they were joined; otherwise the other path, ends included.
        """
        known = self._known_refusal(start, end)
        if known:
            return known
        forward, backward, path = self._search(start, end)
        if path:
            self._refusals[start, end] = path
            return path
        labels, order = self._order.labels, self._order
        if forward.is_exhausted:
            order.move_after(sorted(forward.parents, key=labels.__getitem__), end)
            self._join(kept_place=end, lost_place=start)
        else:
            order.move_before(sorted(backward.parents, key=labels.__getitem__), start)
            self._join(kept_place=start, lost_place=end)
        return ()

    def _known_refusal(self, start: int, end: int) -> tuple[int, ...]:
        path = self._refusals.get((start, end))
        if path is None:
            return ()
        # Groups only grow, so the path stands as long as a node between its ends belongs to neither of them.
        return path if any(self.find(node) not in (start, end) for node in path[1:-1]) else ()

    def _search(self, start: int, end: int) -> tuple[_Search, _Search, tuple[int, ...]]:
        labels = self._order.labels
        forward = _Search(self._successors, start, end, labels, 1)
        backward = _Search(self._predecessors, end, start, labels, -1)
        path: tuple[int, ...] = ()
        while not path:
            met = forward.step(backward.parents)
            if met < 0 and not forward.is_exhausted:
                met = backward.step(forward.parents)
            if met >= 0:
                path = (*reversed([*forward.path_from(met)]), *[*backward.path_from(met)][1:])
            elif forward.is_exhausted or backward.is_exhausted:
                break
        self.searched += forward.count + backward.count
        return forward, backward, path

    def _join(self, kept_place: int, lost_place: int) -> None:
        """Makes one group of two; it stands where `kept_place` does. The one with more edges gives its number."""
        degree = [len(self._successors[each]) + len(self._predecessors[each]) for each in (kept_place, lost_place)]
        if degree[0] >= degree[1]:
            kept, lost = kept_place, lost_place
            self._order.remove(lost)
        else:
            kept, lost = lost_place, kept_place
            self._order.replace(lost, kept)
        self._parents[lost] = kept
        for after, before in ((self._successors, self._predecessors), (self._predecessors, self._successors)):
            for neighbour in after[lost]:
                del before[neighbour][lost]
                if neighbour != kept:
                    before[neighbour][kept] = None
                    after[kept][neighbour] = None
            self.rewired += len(after[lost])
            after[lost] = {}


class _Search:
    """A breadth-first search in one direction that takes one edge a step.

    The other path between neighbours is most often short, while far more may lie between them in the order.

    Attributes:
        parents: The nodes found, each with the one it was found from.
        is_exhausted: Whether there is nothing left to find.
        count: Edges looked at.
    """

    __slots__ = (
        "_end",
        "_labels",
        "_limit",
        "_neighbours",
        "_queue",
        "_sign",
        "_start",
        "count",
        "is_exhausted",
        "parents",
    )

    def __init__(
        self, neighbours: Sequence[dict[int, None]], start: int, end: int, labels: Sequence[int], sign: int
    ) -> None:
        self._neighbours = neighbours
        self._start = start
        self._end = end
        self._labels = labels
        self._sign = sign
        self._limit = labels[end] * sign
        self._queue: deque[tuple[int, Iterator[int]]] = deque([(start, iter(neighbours[start]))])
        self.parents: dict[int, int] = {}
        self.is_exhausted = False
        self.count = 0

    def step(self, others: dict[int, int]) -> int:
        """Looks at one edge; the node where a path is found (the end, or one of `others`), otherwise -1."""
        queue = self._queue
        while queue:
            source, edges = queue[0]
            for node in edges:
                self.count += 1
                if node == self._end:
                    if source == self._start:
                        continue
                    self.parents[node] = source
                    return node
                if node in self.parents or self._labels[node] * self._sign > self._limit:
                    return -1
                self.parents[node] = source
                if node in others:
                    return node
                queue.append((node, iter(self._neighbours[node])))
                return -1
            queue.popleft()
        self.is_exhausted = True
        return -1

    def path_from(self, node: int) -> Iterator[int]:
        """The nodes from `node` back to where the search began."""
        yield node
        while node != self._start:
            node = self.parents[node]
            yield node
