"""Structures of things to fetch: what they name in a graph, and the same structure of results.

Fetches are tensors, operations, variables and names, in any nesting of lists, tuples, named tuples, dictionaries and
classes of attrs. A structure is resolved once; `fetch_key` finds it again at the next run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xlalite.client.session_errors import FetchError, FetchTypeError
from xlalite.framework.graph.errors import GraphError, MissingElementError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor

Results = Sequence[Any]
Assemble = Callable[[Results], Any]


@dataclass(frozen=True, slots=True)
class Fetches:
    """A resolved structure.

    Attributes:
        tensors: The tensors it names, each once.
        targets: The operations it names, each once.
        assemble: The structure of results, from the values of `tensors`.
    """

    tensors: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    assemble: Assemble


def fetch_key(fetches: Any) -> Hashable:
    """Equal for structures that mean the same; what cannot be fetched at all gets some key."""
    kind = type(fetches)
    if kind is Tensor or kind is Operation or kind is str:
        return fetches  # type: ignore[no-any-return]  # all three are hashable
    if kind is list or isinstance(fetches, tuple):
        return (kind, *[fetch_key(element) for element in fetches])
    if isinstance(fetches, Mapping):
        return (id(kind), tuple(fetches), *[fetch_key(element) for element in fetches.values()])
    if _attrs_fields(kind) is not None:
        return (kind, *[fetch_key(getattr(fetches, name)) for name in _attrs_fields(kind) or ()])
    return fetches if isinstance(fetches, Hashable) else id(fetches)


def resolve_fetches(graph: Graph, fetches: Any) -> Fetches:
    """Finds what a structure names.

    Raises:
        FetchError: A name is not in the graph, or an element belongs to another graph.
        FetchTypeError: Something in it cannot be fetched.
    """
    resolver = _Resolver(graph)
    assemble = resolver.resolve(fetches)
    return Fetches(tuple(resolver.tensors), tuple(resolver.targets), assemble)


class _Resolver:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.tensors: dict[Tensor, int] = {}
        self.targets: dict[Operation, None] = {}

    def resolve(self, fetches: Any) -> Assemble:
        """What gives the structure of results."""
        kind = type(fetches)
        if isinstance(fetches, list | tuple):
            return _sequence(kind, [self.resolve(element) for element in fetches])
        if isinstance(fetches, Mapping):
            return _mapping(kind, {key: self.resolve(element) for key, element in fetches.items()})
        names = _attrs_fields(kind)
        if names is not None:
            return _attributes(kind, {name: self.resolve(getattr(fetches, name)) for name in names})
        element = self._element(fetches)
        if isinstance(element, Operation):
            self.targets[element] = None
            return lambda results: None
        number = self.tensors.setdefault(element, len(self.tensors))
        return lambda results: results[number]

    def _element(self, fetch: Any) -> Tensor | Operation:
        if fetch is None:
            raise FetchTypeError("Fetch argument None has invalid type NoneType: expected a tensor, operation or name")
        try:
            element = self._graph.as_graph_element(fetch)
        except TypeError as error:
            raise FetchTypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}: {error}") from None
        except (GraphError, MissingElementError) as error:
            raise FetchError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor: {error}") from None
        if isinstance(element, Tensor) and element.handle_data is not None:
            raise FetchTypeError(f"Fetch argument {fetch!r} is the handle of a variable; fetch the variable's value")
        return element


def _sequence(kind: type, parts: list[Assemble]) -> Assemble:
    if hasattr(kind, "_make"):  # named tuples take their elements one by one
        return lambda results: kind(*[part(results) for part in parts])
    if kind is list:
        return lambda results: [part(results) for part in parts]
    return lambda results: kind(part(results) for part in parts)


def _mapping(kind: type, parts: dict[Any, Assemble]) -> Assemble:
    made = OrderedDict if issubclass(kind, OrderedDict) else dict
    return lambda results: made((key, part(results)) for key, part in parts.items())


def _attributes(kind: type, parts: dict[str, Assemble]) -> Assemble:
    return lambda results: kind(**{name.lstrip("_"): part(results) for name, part in parts.items()})


def _attrs_fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a class made with attrs, which need not be installed."""
    declared = getattr(kind, "__attrs_attrs__", None)
    return None if declared is None else tuple(attribute.name for attribute in declared)
