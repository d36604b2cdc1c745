"""Where nodes stand: layers, order in a layer, coordinates.

The method of Sugiyama, Tagawa and Toda (1981): each node has a layer below those of the nodes that lead to it; edges
over several layers go through points of their own, one chain for all edges of a value; the order in a layer follows the
mean of the neighbours, whichever sweep has the fewest crossings; coordinates come as near to those of the neighbours as
the order allows, which is a regression on a chain (pooling adjacent violators), solved exactly in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx

from xlalite.hlo.records import dataclass

SWEEPS = 8
_STEPS = 10
_SPACE = 18.0
_POINT_SPACE = 7.0
_POINT_WEIGHT = 6.0


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a node reaches from its middle, and how high it is."""

    left: float
    right: float
    height: float


@dataclass(slots=True)
class Placement:
    """Where everything stands.

    Attributes:
        rows: The nodes of each layer from left to right; numbers beyond the nodes are points of edges.
        x: The middle of each node and point.
        tops: The upper end of each row.
        heights: The height of each row.
        routes: For each edge what it goes through: a node, points, a node.
        width: From the leftmost to the rightmost end.
        height: From the first row to the end of the last.
    """

    rows: list[list[int]]
    x: list[float]
    tops: list[float]
    heights: list[float]
    routes: list[tuple[int, ...]]
    width: float
    height: float

    def row_of(self) -> list[int]:
        """The row of each node and point."""
        found = [0] * len(self.x)
        for number, row in enumerate(self.rows):
            for item in row:
                found[item] = number
        return found


def place(extents: Sequence[Extent], edges: Sequence[tuple[int, int]], gap: float) -> Placement:
    """The placement of nodes whose edges all lead from a smaller number to a greater one.

    Args:
        extents: The nodes.
        edges: (source, target) pairs.
        gap: Space between rows.
    """
    ranks = _ranks(len(extents), edges)
    routes, ranks = _with_points(ranks, edges)
    everything = [*extents, *[Extent(0.0, 0.0, 0.0)] * (len(ranks) - len(extents))]
    links = sorted({pair for route in routes for pair in pairwise(route)})
    rows = _ordered(ranks, links)
    x = _coordinates(everything, len(extents), rows, links)
    heights = [max((everything[item].height for item in row), default=0.0) for row in rows]
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + gap
    start = min((x[item] - one.left for item, one in enumerate(everything)), default=0.0)
    x = [value - start for value in x]
    width = max((x[item] + one.right for item, one in enumerate(everything)), default=0.0)
    return Placement(rows, x, tops, heights, routes, width, max(y - gap, 0.0))


def settle(wanted: Sequence[float], weights: Sequence[float], spaces: Sequence[float]) -> list[float]:
    """The places nearest, by weighted squares, to those wanted that keep the order and the spaces between."""
    blocks: list[list[float]] = []  # of places less the spaces before them: sum, weight, count
    offsets = [0.0]
    for space in spaces:
        offsets.append(offsets[-1] + space)
    for number, (place_wanted, weight) in enumerate(zip(wanted, weights, strict=True)):
        blocks.append([weight * (place_wanted - offsets[number]), weight, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    means = [total / weight for total, weight, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each node: below all that lead to it, and as low as can be if no more than one does.

    That makes no way through the picture longer, and what prepares a value stands where it is used.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    ranks = [0] * count
    for rank, generation in enumerate(networkx.topological_generations(graph)):
        for node in generation:
            ranks[node] = rank
    for node in reversed(range(count)):
        if graph.in_degree(node) <= 1 and graph.out_degree(node):
            ranks[node] = min(ranks[one] for one in graph.successors(node)) - 1
    return ranks


def _with_points(ranks: list[int], edges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, ...]], list[int]]:
    """The way of each edge through the layers, and the layers of nodes and points."""
    ranks = list(ranks)
    chains: dict[int, list[int]] = {}
    routes = []
    for source, target in edges:
        chain = chains.setdefault(source, [])
        needed = ranks[target] - ranks[source] - 1
        while len(chain) < needed:
            ranks.append(ranks[source] + 1 + len(chain))
            chain.append(len(ranks) - 1)
        routes.append((source, *chain[:needed], target))
    return routes, ranks


def _ordered(ranks: list[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The rows in an order with few crossings."""
    rows: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    above: list[list[int]] = [[] for _ in ranks]
    below: list[list[int]] = [[] for _ in ranks]
    between: list[list[tuple[int, int]]] = [[] for _ in rows]
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
        between[ranks[source]].append((source, target))
    for item, rank in enumerate(ranks):
        rows[rank].append(item)
    place_of = [0.0] * len(ranks)
    _number(rows, place_of)
    best, fewest = [list(row) for row in rows], _crossings(between, place_of)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        near = above if down else below
        for row in rows if down else reversed(rows):
            row.sort(key=lambda item: _mean(near[item], place_of, place_of[item]))
            _number([row], place_of)
        count = _crossings(between, place_of)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return best


def _number(rows: Sequence[Sequence[int]], place_of: list[float]) -> None:
    for row in rows:
        for position, item in enumerate(row):
            place_of[item] = (position + 0.5) / len(row)


def _mean(near: Sequence[int], place_of: Sequence[float], own: float) -> float:
    return sum(place_of[one] for one in near) / len(near) if near else own


def _crossings(between: Sequence[Sequence[tuple[int, int]]], place_of: Sequence[float]) -> int:
    """How many pairs of links cross: inversions, counted with a tree of sums (Barth, Jünger and Mutzel, 2002)."""
    total = 0
    for links in between:
        ends = [place_of[target] for _, target in sorted(links, key=lambda e: (place_of[e[0]], place_of[e[1]]))]
        numbers = {end: number for number, end in enumerate(sorted(set(ends)), 1)}
        sums = [0] * (len(numbers) + 1)
        for seen, end in enumerate(ends):
            number = at = numbers[end]
            smaller = 0
            while at:
                smaller += sums[at]
                at &= at - 1
            total += seen - smaller
            at = number
            while at < len(sums):
                sums[at] += 1
                at += at & -at
    return total


def _coordinates(
    extents: Sequence[Extent], nodes: int, rows: Sequence[Sequence[int]], links: Sequence[tuple[int, int]]
) -> list[float]:
    x = [0.0] * len(extents)
    near: tuple[list[list[int]], list[list[int]]] = ([[] for _ in extents], [[] for _ in extents])
    for source, target in links:
        near[0][target].append(source)
        near[1][source].append(target)
    spaces = [
        [
            extents[a].right + extents[b].left + (_SPACE if a < nodes and b < nodes else _POINT_SPACE)
            for a, b in pairwise(row)
        ]
        for row in rows
    ]
    for row, space in zip(rows, spaces, strict=True):
        for item, value in zip(row, settle([0.0] * len(row), [1.0] * len(row), space), strict=True):
            x[item] = value
    for step in range(_STEPS):
        ways = (0, 1) if step >= _STEPS - 2 else (step % 2,)
        for row, space in (
            zip(rows, spaces, strict=True) if step % 2 == 0 else zip(rows[::-1], spaces[::-1], strict=True)
        ):
            wanted, weights = [], []
            for item in row:
                around = [one for way in ways for one in near[way][item]]
                pulls = [_POINT_WEIGHT if item >= nodes and one >= nodes else 1.0 for one in around]
                total = sum(pulls)
                wanted.append(
                    sum(x[one] * pull for one, pull in zip(around, pulls, strict=True)) / total if total else x[item]
                )
                weights.append(total or 0.1)
            for item, value in zip(row, settle(wanted, weights, space), strict=True):
                x[item] = value
    return x
