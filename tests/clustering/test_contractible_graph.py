import random

import networkx
import pytest
from hypothesis import given, settings, strategies as st

from xlalite.clustering.contractible_graph import ContractibleGraph
from xlalite.clustering.order_list import OrderList


def order_of(items: OrderList, count: int) -> list[int]:
    return sorted(range(count), key=items.labels.__getitem__)


def test_items_move_to_both_sides_of_another() -> None:
    items = OrderList([0, 1, 2, 3, 4])
    items.move_after([1, 0], 3)
    items.move_before([4], 2)
    assert order_of(items, 5) == [4, 2, 3, 1, 0]


def test_an_item_takes_the_place_of_another() -> None:
    items = OrderList([0, 1, 2])
    items.replace(0, 2)
    assert items.labels[2] < items.labels[1]


def test_labels_are_spread_when_a_gap_is_full() -> None:
    count = 3000
    items = OrderList(range(count))
    expected = list(range(count))
    for item in range(2, count):
        items.move_after([item], 0)
        expected.remove(item)
        expected.insert(1, item)
    assert order_of(items, count) == expected
    assert items.work < 40 * count


@settings(max_examples=50, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_an_order_list_does_what_a_list_does(rng: random.Random) -> None:
    count = rng.randint(2, 30)
    items, expected = OrderList(range(count)), list(range(count))
    for _ in range(60):
        anchor, *moved = rng.sample(range(count), rng.randint(2, min(count, 4)))
        expected = [item for item in expected if item not in moved]
        at = expected.index(anchor)
        if rng.random() < 0.5:
            items.move_after(moved, anchor)
            expected[at + 1 : at + 1] = moved
        else:
            items.move_before(moved, anchor)
            expected[at:at] = moved
        assert order_of(items, count) == expected


def test_an_edge_is_contracted_when_it_is_the_only_path() -> None:
    graph = ContractibleGraph([[1], [2], []], [0, 1, 2])
    assert graph.contract(0, 1) == ()
    assert graph.find(0) == graph.find(1) != graph.find(2)
    assert graph.contract(graph.find(0), 2) == ()


def test_an_edge_beside_another_path_is_refused_with_that_path() -> None:
    graph = ContractibleGraph([[1, 2], [3], [3], []], [0, 1, 2, 3])
    assert graph.contract(0, 1) == ()
    group = graph.find(0)
    assert graph.contract(group, 3) == (group, 2, 3)
    assert graph.find(3) == 3


def test_a_refusal_is_forgotten_when_its_path_is_contracted() -> None:
    graph = ContractibleGraph([[1, 2], [2], []], [0, 1, 2])
    assert graph.contract(0, 2) == (0, 1, 2)
    assert graph.contract(1, 2) == ()
    assert graph.contract(0, graph.find(2)) == ()


def test_a_repeated_refusal_costs_no_search() -> None:
    graph = ContractibleGraph([[1, 2], [2], []], [0, 1, 2])
    graph.contract(0, 2)
    before = graph.work
    assert graph.contract(0, 2) == (0, 1, 2)
    assert graph.work == before


def test_a_short_path_is_found_among_many_nodes() -> None:
    count = 1000
    before, beside, end = range(1, count), count, 2 * count
    after = range(count + 1, end)  # the chains lead from the start, and to the end, but not on
    successors = [
        [1, beside, end],
        *[[node + 1] for node in before[:-1]],
        [],
        [end],
        *[[node + 1] for node in after],
        [],
    ]
    graph = ContractibleGraph(successors, range(end + 1))
    assert graph.contract(0, end) == (0, beside, end)
    assert graph.searched < 10


def test_a_wrong_order_is_refused() -> None:
    with pytest.raises(AssertionError, match="no order"):
        ContractibleGraph([[], [0]], [0, 1])


@settings(max_examples=80, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_contraction_agrees_with_a_search_of_the_whole_graph(rng: random.Random) -> None:
    count = rng.randint(2, 25)
    edges = {(a, b) for b in range(count) for a in range(b) if rng.random() < 0.2}
    graph = ContractibleGraph([sorted(b for a, b in edges if a == node) for node in range(count)], range(count))
    group = list(range(count))
    attempts = rng.choices(sorted(edges), k=3 * len(edges)) if edges else []
    for a, b in attempts:
        start, end = graph.find(a), graph.find(b)
        if start == end:
            continue
        expected = other_path_exists(edges, group, group[a], group[b])
        path = graph.contract(start, end)
        assert bool(path) == expected
        if path:
            # Groups may have grown since the path was found, so it is a walk that leaves both ends.
            assert {group[node] for node in path} - {group[a], group[b]}
        else:
            group = [group[a] if each == group[b] else each for each in group]
        assert [graph.find(x) == graph.find(y) for x in range(count) for y in range(count)] == [
            group[x] == group[y] for x in range(count) for y in range(count)
        ]


def other_path_exists(edges: set[tuple[int, int]], group: list[int], start: int, end: int) -> bool:
    """Whether a walk leads from one group through others to the second."""
    links = networkx.DiGraph((group[a], group[b]) for a, b in edges if group[a] != group[b])
    links.remove_edge(start, end)
    return networkx.has_path(links, start, end)
