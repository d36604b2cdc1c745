"""What datasets do with their elements, as Python iterators; functions that give datasets."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlalite.files.records import compression_name, read_inflated
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import InvalidArgumentError, NotFoundError
from xlalite.framework.graph.function_graph import FunctionGraph, trace_function
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.op_execution import run_function_on_host
from xlalite.framework.meaning.static_value import constant_value
from xlalite.framework.structure import flatten
from xlalite.hlo.errors import XlaliteError
from xlalite.ops.data.elements import Element, ElementSpec, Reading, shape_leaves, stacked
from xlalite.ops.helpers.constant import convert_to_tensor

if TYPE_CHECKING:
    from xlalite.ops.data.dataset import Dataset


def generated(
    generator: Callable[..., Iterable[Any]], spec: ElementSpec, given: Sequence[Tensor], reading: Reading
) -> Iterator[Element]:
    """What a Python generator gives, checked against what was said of it."""
    for values in generator(*[np.asarray(reading.value(each)) for each in given]):
        leaves = flatten(values)[0] if len(spec.types) > 1 or isinstance(values, dict) else [values]
        if len(leaves) != len(spec.types):
            raise InvalidArgumentError(None, None, f"the generator gave {values!r}, expected {len(spec.types)} values")
        element = [_converted(leaf, dtype) for leaf, dtype in zip(leaves, spec.types, strict=True)]
        for array, shape in zip(element, spec.shapes, strict=True):
            if not shape.is_compatible_with(array.shape):
                raise InvalidArgumentError(None, None, f"the generator gave shape {array.shape}, expected {shape}")
        yield element


def _converted(value: Any, dtype: Any) -> Array:
    if dtype.name != "string":
        return np.asarray(value, dtype.numpy_dtype)
    given = np.asarray(value, object)
    array = np.empty(given.shape, object)
    array.ravel()[:] = [each.encode() if isinstance(each, str) else each for each in given.ravel()]
    return array


class DatasetFunction:
    """A function that gives a dataset for an element, traced once.

    Attributes:
        spec: What the elements of its datasets have in common.
        captured: The tensors that it takes from the graph around it.
    """

    def __init__(self, function: Callable[..., Any], given: ElementSpec) -> None:
        found: list[Dataset] = []

        def body(arguments: Sequence[Tensor]) -> list[Tensor]:
            element = given.packed(arguments)
            found.append(function(*element) if type(element) is tuple else function(element))
            return list(found[0].captured)

        signature = list(zip(given.types, given.shapes, strict=True))
        self._graph: FunctionGraph = trace_function("Dataset_flat_map", get_default_graph(), signature, body)
        self._dataset = found[0]
        self.spec = self._dataset.spec
        self.captured = self._graph.captured

    def elements(self, element: Element, reading: Reading, window: Sequence[Element] = ()) -> Iterator[Element]:
        """The elements of the dataset for an element, perhaps made of those of a group."""
        inputs = [*element, *(reading.value(tensor) for tensor in self.captured)]
        values = run_function_on_host(self._graph, inputs, reading.context)
        return self._dataset.elements(Reading(self._dataset.captured, values, reading.context, window))


def grouped(
    elements: Iterator[Element],
    key_of: Callable[[Element], Element],
    size_of: Callable[[Element], int],
    reduced: Callable[[Element, Sequence[Element]], Iterator[Element]],
) -> Iterator[Element]:
    """What becomes of groups of so many elements with one key; groups that are not full come last."""
    open_groups: dict[int, list[Element]] = {}
    keys: dict[int, Element] = {}
    for element in elements:
        key = key_of(element)
        number = int(key[0])
        keys[number] = key
        group = open_groups.setdefault(number, [])
        group.append(element)
        if len(group) >= size_of(key):
            yield from reduced(key, open_groups.pop(number))
    for number, group in sorted(open_groups.items()):
        yield from reduced(keys[number], group)


def interleaved(datasets: Iterator[Iterator[Element]], cycle: int, block: int) -> Iterator[Element]:
    """Elements of several datasets, `block` at a time from each of `cycle`; one that ends makes place for the next."""
    opened: list[Iterator[Element] | None] = list(itertools.islice(datasets, cycle))
    while any(each is not None for each in opened):
        for place, current in enumerate(opened):
            if current is None:
                continue
            taken = list(itertools.islice(current, block))
            yield from taken
            if len(taken) < block:
                opened[place] = next(datasets, None)


def batched(
    elements: Iterator[Element],
    size: int,
    drop_remainder: bool,
    join: Callable[[Sequence[Element]], Element] = stacked,
) -> Iterator[Element]:
    """Some elements at a time as one.

    Raises:
        InvalidArgumentError: the size is not positive, or the parts have different shapes.
    """
    if size < 1:
        raise InvalidArgumentError(None, None, f"batch_size must be greater than zero, found {size}")
    while chunk := list(itertools.islice(elements, size)):
        if len(chunk) < size and drop_remainder:
            return
        try:
            yield join(chunk)
        except ValueError:
            shapes = sorted({str([part.shape for part in each]) for each in chunk})
            raise InvalidArgumentError(
                None, None, f"Cannot batch tensors with different shapes: found {' and '.join(shapes)}"
            ) from None


def batch_dimension(size: Tensor, drop_remainder: bool) -> int | None:
    """The first size of batches, where it is known."""
    known = constant_value(size)
    return int(known) if drop_remainder and known is not None else None


class Padding:
    """How parts of elements are made equally large.

    Attributes:
        shapes: The sizes after it; None where it is that of the largest.
        values: What fills each part, scalars.
    """

    def __init__(self, spec: ElementSpec, shapes: Any, values: Any) -> None:
        given = spec.shapes if shapes is None else shape_leaves(shapes, spec.structure)
        self.shapes = tuple(
            TensorShape([None if size is None or size < 0 else size for size in (shape.dims or ())]) for shape in given
        )
        listed = [None] * len(spec.types) if values is None else flatten(values)[0]
        if len(listed) == 1:
            listed *= len(spec.types)
        zeros = [b"" if dtype.name == "string" else 0 for dtype in spec.types]
        self.values = [
            convert_to_tensor(zero if value is None else value, None if isinstance(value, Tensor) else dtype)
            for value, zero, dtype in zip(listed, zeros, spec.types, strict=True)
        ]

    def join(self, elements: Sequence[Element], reading: Reading) -> Element:
        """One element of several."""
        columns = zip(*elements, strict=True)
        fill = [np.asarray(reading.value(each))[()] for each in self.values]
        return [self._joined(*each) for each in zip(columns, self.shapes, fill, strict=True)]

    def _joined(self, parts: Sequence[Array], shape: TensorShape, value: Any) -> Array:
        wanted = shape.dims or ()
        largest = np.max([part.shape for part in parts], axis=0).astype(int).tolist() if wanted else []
        sizes = [most if size is None else size for size, most in zip(wanted, largest, strict=True)]
        if any(most > size for size, most in zip(sizes, largest, strict=True)):
            raise InvalidArgumentError(None, None, f"an element of shape {tuple(largest)} does not fit {tuple(sizes)}")
        joined = np.full((len(parts), *sizes), value, parts[0].dtype)
        for number, part in enumerate(parts):
            place: tuple[Any, ...] = (number, *(slice(size) for size in part.shape))
            joined[place] = part if part.ndim else part[()]
        return joined


def generator_of(seeds: tuple[int, int]) -> np.random.Generator:
    """A generator of random numbers; another one each time for the seeds (0, 0)."""
    return np.random.default_rng(None if seeds == (0, 0) else [abs(seed) for seed in seeds])


def shuffled(elements: Iterator[Element], size: int, rng: np.random.Generator) -> Iterator[Element]:
    """Elements in random order: each is drawn from the next `size`."""
    if size < 1:
        raise InvalidArgumentError(None, None, f"buffer_size must be greater than zero, found {size}")
    buffer = list(itertools.islice(elements, size))
    for element in elements:
        place = int(rng.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = element
    for place in rng.permutation(len(buffer)):
        yield buffer[place]


def repeated(dataset: Dataset, times: int, reading: Reading) -> Iterator[Element]:
    """The elements several times over; without end if `times` is negative."""
    for _ in itertools.count() if times < 0 else range(times):
        empty = True
        for element in dataset.elements(reading):
            empty = False
            yield element
        if empty:
            return


def remembered(elements: Iterator[Element], kept: list[Element], complete: list[bool]) -> Iterator[Element]:
    """The elements, which are kept; once they have all come, that is noted."""
    found: list[Element] = []
    for element in elements:
        found.append(element)
        yield element
    kept[:] = found
    complete.append(True)


def without_errors(elements: Iterator[Element]) -> Iterator[Element]:
    """The elements that can be computed."""
    while True:
        try:
            yield next(elements)
        except StopIteration:
            return
        except XlaliteError:
            continue


def common_shape(one: TensorShape, other: TensorShape) -> TensorShape:
    """What two shapes have in common."""
    if one.dims is None or other.dims is None or len(one.dims) != len(other.dims):
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(one.dims, other.dims, strict=True)])


def joined_order(datasets: Any, listed: Sequence[Dataset]) -> list[Dataset]:
    """Datasets in the order in which their elements are flattened."""
    return [datasets[key] for key in sorted(datasets)] if isinstance(datasets, dict) else list(listed)


def joined_spec(datasets: Any, specs: Sequence[ElementSpec]) -> ElementSpec:
    """What elements side by side have in common."""
    if isinstance(datasets, dict):
        names = sorted(datasets)
        by_name = dict(zip(datasets, specs, strict=True))
        ordered = [by_name[name] for name in names]
        structure: Any = (dict, tuple(datasets), *(each.structure for each in ordered))
    else:
        ordered = list(specs)
        structure = (tuple, None, *(each.structure for each in ordered))
    types = tuple(dtype for each in ordered for dtype in each.types)
    return ElementSpec(types, tuple(shape for each in ordered for shape in each.shapes), structure)


def lines_of(name: str, compression_type: Any) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    with _opened(name) as file:
        packed = compression_name(compression_type)
        for line in io.BytesIO(read_inflated(name)) if packed else file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def pieces_of(name: str, size: int, header: int, footer: int) -> Iterator[bytes]:
    """Pieces of equal length of a file."""
    with _opened(name) as file:
        data = file.read()
    end = len(data) - footer
    if size < 1 or (end - header) % size:
        raise InvalidArgumentError(None, None, f"{name}: {end - header} bytes are no whole number of records of {size}")
    return (data[start : start + size] for start in range(header, end, size))


def _opened(name: str) -> Any:
    try:
        return open(name, "rb")
    except FileNotFoundError:
        raise NotFoundError(None, None, f"{name}; No such file or directory") from None
