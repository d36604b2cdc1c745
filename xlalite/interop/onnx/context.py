"""What a rule gets: the node, its operands as handles, and what is known of them; and the table of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array
from xlalite.interop.onnx.graph import DEFAULT_DOMAIN, Attributes, AttributeValue, Graph, Node, Reference
from xlalite.interop.onnx.scope import Scope, Value
from xlalite.interop.onnx.tensors import ELEMENT_TYPES

if TYPE_CHECKING:
    from xlalite.interop.onnx.importing import Importer

Result: TypeAlias = "Value | tuple[Value, ...]"
Rule: TypeAlias = "Callable[[NodeContext], Result]"

T = TypeVar("T")

_NEWEST = 28
_RULES: dict[tuple[str, str], list[tuple[int, Rule]]] = {}


def rule(*names: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[Rule], Rule]:
    """Makes a function the rule of operators from a version of their domain on."""

    def register(function: Rule) -> Rule:
        for name in names:
            versions = _RULES.setdefault((domain, name), [])
            assert all(version != since for version, _ in versions), f"{name} has two rules from version {since}"
            versions.append((since, function))
            versions.sort(key=lambda entry: entry[0])
        return function

    return register


def rule_of(domain: str, name: str, version: int) -> Rule | None:
    """The rule of an operator at a version of its domain."""
    fitting = [function for since, function in _RULES.get((domain, name), ()) if since <= version]
    return fitting[-1] if fitting else None


def operators() -> list[tuple[str, str]]:
    """The operators that have rules, as domain and name."""
    return sorted(_RULES)


def filled(value: float, like: Handle) -> Handle:
    """A number, rounded into the type of a value, at its sizes."""
    with np.errstate(all="ignore"):
        scalar = like.builder.constant(np.asarray(value).astype(like.dtype.numpy), like.dtype)
    return like.builder.broadcast(scalar, like.dims)


@dataclass(frozen=True, slots=True)
class NodeContext:
    """A node that is being translated.

    Attributes:
        node: The node.
        inputs: Values of its inputs; None where one is left out.
        attributes: Its attributes, with those of functions around it in place.
        version: Version of its operator's domain.
        scope: Where it stands.
        importer: What translates the model.
    """

    node: Node
    inputs: tuple[Value, ...]
    attributes: Attributes
    version: int
    scope: Scope
    importer: Importer

    @property
    def builder(self) -> Builder:
        """Builds the computation in which the node stands."""
        return self.scope.builder

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.node.op_type

    def error(self, message: str) -> LoweringError:
        """The error for this node; whoever catches it says which one it is."""
        return LoweringError(message)

    def has(self, position: int) -> bool:
        """Whether an input is there."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def value(self, position: int) -> Value:
        """An input of any kind."""
        if position >= len(self.inputs):
            raise self.error(f"input {position} is missing")
        return self.inputs[position]

    def operand(self, position: int) -> Handle:
        """An input that must be a tensor."""
        value = self.value(position)
        if not isinstance(value, Handle):
            raise self.error(f"input {position} must be a tensor, found {'nothing' if value is None else 'a sequence'}")
        return value

    def optional(self, position: int) -> Handle | None:
        """An input that may be left out."""
        return self.operand(position) if self.has(position) else None

    def operands(self) -> list[Handle]:
        """All inputs, of which none may be left out."""
        return [self.operand(i) for i in range(len(self.inputs))]

    def sequence(self, position: int) -> list[Value]:
        """An input that must be a sequence."""
        value = self.value(position)
        if not isinstance(value, list):
            raise self.error(f"input {position} must be a sequence")
        return value

    def known(self, position: int) -> Array:
        """The value of an input, which must be known while importing.

        Raises:
            UnknownValueError: It is not.
        """
        return self.importer.known.of(self.operand(position))

    def known_scalar(self, position: int) -> Array:
        """The only element of an input, as an array without dimensions."""
        value = self.known(position)
        if value.size != 1:
            raise self.error(f"input {position} must have one element, found {value.size}")
        return np.asarray(value.reshape(()))

    def known_integers(self, position: int) -> tuple[int, ...]:
        """The integers in an input."""
        return tuple(int(each) for each in self.known(position).reshape(-1))

    def integers_at(self, position: int, name: str) -> tuple[int, ...] | None:
        """Integers that are an attribute in older versions and an input in newer ones; None where left out."""
        if self.has(position):
            return self.known_integers(position)
        return self.integers(name) if name in self.attributes else None

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        return self._attribute(name, int, default)

    def number(self, name: str, default: float | None = None) -> float:
        """A floating-point attribute."""
        return float(self._attribute(name, (int, float), default))

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        return self._attribute(name, str, default)

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        return self._all(name, int, default)

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """An attribute that is a list of numbers."""
        return self._all(name, (int, float), default)

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """An attribute that is a list of strings."""
        return self._all(name, str, default)

    def array(self, name: str) -> Array:
        """An attribute that is a tensor."""
        return self._attribute(name, np.ndarray, None)

    def graph(self, name: str) -> Graph:
        """An attribute that is a graph."""
        return self._attribute(name, Graph, None)

    def dtype(self, name: str, default: DType | None = None) -> DType:
        """An attribute that is an element type."""
        if default is not None and not self.integer(name, 0):
            return default
        found = ELEMENT_TYPES.get(self.integer(name))
        if found is None:
            raise self.error(f"{name} is {self.integer(name)}, which is no type of numbers")
        return found

    def axis(self, rank: int, default: int | None = None, name: str = "axis") -> int:
        """An attribute that is a dimension, counted from the end when negative."""
        return self.normalized(self.integer(name, default), rank)

    def normalized(self, axis: int, rank: int) -> int:
        """A dimension, counted from the end when negative."""
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} is not in [{-rank}, {rank})")
        return axis % rank

    def normalized_all(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Different dimensions, counted from the end when negative."""
        found = tuple(self.normalized(axis, rank) for axis in axes)
        if len(set(found)) < len(found):
            raise self.error(f"an axis stands twice in {list(axes)}")
        return found

    def common(self, *operands: Handle) -> list[Handle]:
        """Operands at the sizes that NumPy's rules give them together."""
        try:
            dims = np.broadcast_shapes(*(each.dims for each in operands))
        except ValueError:
            shown = ", ".join(each.shape.text() for each in operands)
            raise self.error(f"{shown} cannot be broadcast together") from None
        return [broadcast_to(self.builder, each, dims) for each in operands]

    def standard(self, operator: str, *inputs: Value, **attributes: AttributeValue) -> Handle:
        """The first output of an operator of the standard, as it is today."""
        return self.standard_outputs(operator, *inputs, **attributes)[0]

    def standard_outputs(self, operator: str, *inputs: Value, **attributes: AttributeValue) -> tuple[Handle, ...]:
        """All its outputs."""
        node = replace(self.node, op_type=operator, domain=DEFAULT_DOMAIN)
        found = rule_of(DEFAULT_DOMAIN, operator, _NEWEST)
        assert found is not None, f"{operator} has a rule"
        result = found(replace(self, node=node, inputs=inputs, attributes=attributes, version=_NEWEST))
        return result if isinstance(result, tuple) else (result,)  # type: ignore[return-value]

    def constant(self, value: object, dtype: DType) -> Handle:
        """A constant of a type; floating-point numbers are rounded into it."""
        with np.errstate(all="ignore"):
            return self.builder.constant(np.asarray(value).astype(dtype.numpy), dtype)

    def _attribute(self, name: str, kind: type[T] | tuple[type[T], ...], default: T | None) -> T:
        value = self.attributes.get(name, default)
        if value is None:
            raise self.error(f"attribute {name} is missing")
        if not isinstance(value, kind) or isinstance(value, Reference):
            raise self.error(f"attribute {name} is of the wrong type")
        return value

    def _all(self, name: str, kind: type[T] | tuple[type[T], ...], default: Sequence[T] | None) -> tuple[T, ...]:
        value = self.attributes.get(name, None if default is None else tuple(default))
        if value is None:
            raise self.error(f"attribute {name} is missing")
        if not isinstance(value, tuple) or not all(isinstance(each, kind) for each in value):
            raise self.error(f"attribute {name} is of the wrong type")
        return value  # type: ignore[return-value]
