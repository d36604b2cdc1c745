"""Elements of datasets: what they are made of, and functions of them that were traced into graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype, int64
from xlalite.framework.graph.function_graph import FunctionGraph, trace_function
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.op_execution import run_function_on_host
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to

Element = list[Array]


@dataclass(frozen=True, eq=False)
class ElementSpec:
    """What all elements of a dataset have in common.

    Attributes:
        types: Element types of the parts, in order.
        shapes: What is known of their shapes.
        structure: How they are nested.
    """

    types: tuple[DType, ...]
    shapes: tuple[TensorShape, ...]
    structure: Any

    @staticmethod
    def of(values: Any) -> tuple[ElementSpec, list[Tensor]]:
        """What nested values have in common with themselves, and these as tensors."""
        leaves, structure = flatten(_as_tuples(values))
        tensors = [convert_to_tensor(leaf) for leaf in leaves]
        return ElementSpec(tuple(t.dtype for t in tensors), tuple(t.shape for t in tensors), structure), tensors

    @staticmethod
    def declared(types: Any, shapes: Any = None) -> ElementSpec:
        """From nested types and shapes as users write them."""
        leaves, structure = flatten(_as_tuples(types))
        listed = [TensorShape(None)] * len(leaves) if shapes is None else shape_leaves(shapes, structure)
        return ElementSpec(tuple(map(as_dtype, leaves)), tuple(listed), structure)

    def packed(self, leaves: Sequence[Any]) -> Any:
        """Values nested as the elements are."""
        return rebuild(self.structure, leaves)

    def with_shapes(self, shapes: Iterable[TensorShape]) -> ElementSpec:
        """The same with other shapes."""
        return ElementSpec(self.types, tuple(shapes), self.structure)

    def is_compatible_with(self, other: ElementSpec) -> bool:
        """Whether elements of the other kind may stand where these are expected."""
        fits = len(self.types) == len(other.types) and self.types == other.types
        return fits and all(a.is_compatible_with(b) for a, b in zip(self.shapes, other.shapes, strict=True))


class Reading:
    """What iterators over elements find around them: captured values, and the session.

    Attributes:
        context: Variables and states of the session.
        window: The elements of a group.
    """

    def __init__(
        self,
        captured: Sequence[Tensor],
        values: Sequence[HostValue],
        context: HostContext,
        window: Sequence[Element] = (),
    ) -> None:
        self._values = dict(zip(captured, values, strict=True))
        self.context = context
        self.window = window

    def value(self, tensor: Tensor) -> HostValue:
        """The value of a tensor of the graph around the dataset."""
        return self._values[tensor]

    def integer(self, tensor: Tensor) -> int:
        """The value of a scalar."""
        return int(np.asarray(self.value(tensor)))


class ElementFunction:
    """A function of elements, traced once.

    Attributes:
        graph: Its body.
        spec: What it gives.
    """

    def __init__(self, function: Callable[..., Any], given: ElementSpec, name: str) -> None:
        """Traces the function on elements of the given kind; a tuple becomes several arguments."""
        specs: list[ElementSpec] = []

        def body(arguments: Sequence[Tensor]) -> list[Tensor]:
            element = given.packed(arguments)
            result = function(*element) if type(element) is tuple else function(element)
            spec, tensors = ElementSpec.of(result)
            specs.append(spec)
            return tensors

        signature = list(zip(given.types, given.shapes, strict=True))
        self.graph: FunctionGraph = trace_function(name, get_default_graph(), signature, body)
        self.spec = specs[0]

    @property
    def captured(self) -> tuple[Tensor, ...]:
        """The tensors that it takes from the graph around it."""
        return self.graph.captured

    def __call__(self, element: Element, reading: Reading) -> Element:
        """The value for an element."""
        inputs = [*element, *(reading.value(tensor) for tensor in self.captured)]
        return [np.asarray(value) for value in run_function_on_host(self.graph, inputs, reading.context)]


def integer_tensor(value: Any) -> Tensor:
    """A number of elements, as a scalar tensor."""
    return cast_to(convert_to_tensor(value), int64)


def shape_leaves(shapes: Any, structure: Any) -> list[TensorShape]:
    """The shapes in a nested structure of them, whose leaves are lists themselves."""
    if isinstance(structure, tuple) and structure and structure[0] is not None:
        kind, names, *inner = structure
        parts = [shapes[name] for name in sorted(names)] if isinstance(shapes, dict) else list(shapes)
        assert kind is not None, "a structure has a kind"
        return [leaf for part, within in zip(parts, inner, strict=True) for leaf in shape_leaves(part, within)]
    return [as_shape(shapes)]


def stacked(elements: Sequence[Element]) -> Element:
    """Elements of equal shapes as one, with a new first dimension."""
    return [stack_arrays(parts) for parts in zip(*elements, strict=True)]


def stack_arrays(parts: Sequence[Array]) -> Array:
    """Arrays with a new first dimension; strings stay what they are."""
    if parts[0].dtype != object:
        return np.stack(parts)
    result = np.empty((len(parts), *parts[0].shape), object)
    for number, part in enumerate(parts):
        result[number] = part if part.ndim else part[()]
    return result


def rows_of(arrays: Sequence[Array]) -> Iterator[Element]:
    """The rows of arrays of equal length, as elements."""
    for number in range(len(arrays[0])):
        yield [_row(array, number) for array in arrays]


def text(value: bytes) -> Array:
    """A string as an array."""
    array = np.empty((), object)
    array[()] = value
    return array


def _row(array: Array, number: int) -> Array:
    row = array[number]
    return row if isinstance(row, np.ndarray) else text(row) if array.dtype == object else np.asarray(row)


def _as_tuples(values: Any) -> Any:
    """Lists are tensors in datasets, only tuples and mappings are structures."""
    if isinstance(values, list):
        return convert_to_tensor(values) if not all(isinstance(each, DType) for each in values) else tuple(values)
    if type(values) is tuple:
        return tuple(map(_as_tuples, values))
    if isinstance(values, dict):
        return {key: _as_tuples(value) for key, value in values.items()}
    return values
