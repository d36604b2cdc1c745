"""Structures of things to fetch: what they name in a graph, and the same structure of results.

Fetches are tensors, operations, variables and names, in any nesting. A structure is resolved once; `fetch_key` finds it
again at the next run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from xlalite.client.session_errors import FetchError, FetchTypeError
from xlalite.framework.graph.errors import GraphError, MissingElementError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array
from xlalite.framework.structure import LEAF, flatten, is_leaf, rebuilder, with_value_types
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Fetches:
    """A resolved structure.

    Attributes:
        tensors: The tensors it names, each once.
        targets: The operations it names, each once.
        assemble: The structure of results, from the values of `tensors`: arrays, or NumPy scalars where they have
            rank 0; None stands for an operation.
    """

    tensors: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    assemble: Callable[[Sequence[Any]], Any]


def fetch_key(fetches: Any) -> Hashable:
    """Equal for structures that mean the same; what cannot be fetched at all gets some key."""
    kind = type(fetches)
    # The usual structures need no closer look.
    if kind is list:
        if _KEYS.issuperset(map(type, fetches)) or all(map(_may_be_key, map(type, fetches))):
            return (list, *fetches)
    elif kind in _KEYS or _may_be_key(kind):  # type: ignore[arg-type]  # types are hashable
        return fetches  # type: ignore[no-any-return]  # it was asked
    leaves, structure = flatten(fetches, none_is_leaf=True)
    return (structure, *[leaf if type(leaf).__hash__ is not None else id(leaf) for leaf in leaves])


_KEYS = frozenset((Tensor, Operation))


@functools.lru_cache(maxsize=1024)
def _may_be_key(kind: type) -> bool:
    """Whether values of a type are hashable leaves."""
    return is_leaf(kind) and kind.__hash__ is not None


def resolve_fetches(graph: Graph, fetches: Any) -> Fetches:
    """Finds what a structure names.

    Raises:
        FetchError: A name is not in the graph, or an element belongs to another graph.
        FetchTypeError: Something in it cannot be fetched.
    """
    leaves, structure = flatten(fetches, none_is_leaf=True)
    elements = [_element(graph, leaf) for leaf in leaves]
    tensors = tuple(dict.fromkeys(each for each in elements if isinstance(each, Tensor)))
    targets = tuple(dict.fromkeys(each for each in elements if isinstance(each, Operation)))
    positions = [tensors.index(each) if isinstance(each, Tensor) else None for each in elements]
    if structure == LEAF and tensors:
        return Fetches(tensors, targets, lambda results: _result(results[0]))
    return Fetches(tensors, targets, _assembler(rebuilder(with_value_types(structure)), positions, len(tensors)))


def _assembler(
    build: Callable[[Sequence[Any]], Any], positions: Sequence[int | None], count: int
) -> Callable[[Sequence[Array]], Any]:
    """Builds a structure of arrays, NumPy scalars for those of rank 0, and None; short ways for the usual ones."""
    if build is list and [*positions] == [*range(count)]:
        return lambda results: [value if value.shape else value[()] for value in results]
    if build is list:
        return lambda results: [None if i is None else _result(results[i]) for i in positions]
    if not count:
        nothing = [None] * len(positions)
        return lambda results: build(nothing)
    return lambda results: build([None if i is None else _result(results[i]) for i in positions])


def _result(value: Array) -> Any:
    return value if value.shape else value[()]


def _element(graph: Graph, fetch: Any) -> Tensor | Operation:
    if fetch is None:
        raise FetchTypeError("Fetch argument None has invalid type NoneType: expected a tensor, operation or name")
    try:
        element = graph.as_graph_element(fetch)
    except TypeError as error:
        raise FetchTypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}: {error}") from None
    except (GraphError, MissingElementError) as error:
        raise FetchError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor: {error}") from None
    if isinstance(element, Tensor) and element.handle_data is not None:
        return _value_of(element, fetch)
    return element


def _value_of(handle: Tensor, fetch: Any) -> Tensor:
    """What reads a variable whose handle is fetched: `v:0` is the value where variables are references."""
    for user in handle.consumers():
        if user.type == "ReadVariableOp" and not user.control_inputs:
            return user.outputs[0]
    raise FetchTypeError(f"Fetch argument {fetch!r} is the handle of a variable that nothing reads")
