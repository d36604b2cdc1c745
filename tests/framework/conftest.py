"""An empty graph for each test."""

from collections.abc import Iterator

import pytest

import xlalite.ops
from xlalite.framework.graph.graph import Graph

assert xlalite.ops.functions.operators is not None


@pytest.fixture
def graph() -> Iterator[Graph]:
    """An empty graph, the default one during the test."""
    with Graph().as_default() as default:
        yield default
