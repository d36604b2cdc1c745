"""`tf.data.Dataset`: elements that come one after the other, and what can be made of them."""

from __future__ import annotations

import builtins
import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlalite.files.records import tf_record_iterator
from xlalite.framework.graph.dtypes import int64, string
from xlalite.framework.graph.errors import InvalidArgumentError, NotFoundError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.data import transformations as t
from xlalite.ops.data.elements import Element, ElementFunction, ElementSpec, Reading, integer_tensor, rows_of, text
from xlalite.ops.data.iterators import Iterator as GraphIterator, one_shot
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to

Elements = Callable[[Reading], Iterator[Element]]


class Dataset:
    """Elements of one kind; an iterator gives them to a graph."""

    def __init__(self, spec: ElementSpec, captured: Iterable[Tensor], elements: Elements) -> None:
        """A dataset made of parts.

        Args:
            spec: What its elements have in common.
            captured: The tensors of the graph that it depends on.
            elements: Gives the elements, anew at each call.
        """
        self.spec = spec
        self.captured = tuple(dict.fromkeys(captured))
        self.elements = elements

    @property
    def output_types(self) -> Any:
        """Element types, nested as the elements are."""
        return self.spec.packed(self.spec.types)

    @property
    def output_shapes(self) -> Any:
        """What is known of the shapes, nested as the elements are."""
        return self.spec.packed(self.spec.shapes)

    @property
    def output_classes(self) -> Any:
        """The classes of the parts, nested as the elements are."""
        return self.spec.packed([Tensor] * len(self.spec.types))

    # Iterators.

    def make_one_shot_iterator(self) -> GraphIterator:
        """An iterator that goes over the elements once, without being initialised."""
        return one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> GraphIterator:
        """An iterator that begins whenever its initializer runs."""
        made = GraphIterator(self.spec)
        made.make_initializer(self)
        return made

    # Sources.

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: the tensors."""
        spec, given = ElementSpec.of(tensors)
        return Dataset(spec, given, lambda reading: iter([[np.asarray(reading.value(each)) for each in given]]))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The rows of the tensors.

        Raises:
            ShapeError: a tensor is a scalar, or they have different lengths.
        """
        spec, given = ElementSpec.of(tensors)
        lengths = TensorShape(None)
        for shape in spec.shapes:
            if shape.rank == 0:
                raise ShapeError("from_tensor_slices: scalars have no rows")
            lengths = lengths.merge_with(shape[:1] if shape.rank is not None else None)

        def elements(reading: Reading) -> Iterator[Element]:
            arrays = [np.asarray(reading.value(each)) for each in given]
            if len({len(array) for array in arrays}) > 1:
                raise InvalidArgumentError(
                    None, None, f"rows of {[array.shape for array in arrays]} do not go together"
                )
            return rows_of(arrays)

        shapes = (shape[1:] if shape.rank is not None else shape for shape in spec.shapes)
        return Dataset(spec.with_shapes(shapes), given, elements)

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]], output_types: Any, output_shapes: Any = None, args: Sequence[Any] = ()
    ) -> Dataset:
        """What a Python generator gives."""
        spec = ElementSpec.declared(output_types, output_shapes)
        given = [convert_to_tensor(each) for each in args or ()]
        return Dataset(spec, given, lambda reading: t.generated(generator, spec, given, reading))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Numbers as Python's `range` gives them, as int64."""
        limits = [integer_tensor(each) for each in args]
        spec = ElementSpec((int64,), (TensorShape(()),), ElementSpec.of(np.int64(0))[0].structure)

        def elements(reading: Reading) -> Iterator[Element]:
            return ([np.array(n, np.int64)] for n in builtins.range(*map(reading.integer, limits)))

        return Dataset(spec, limits, elements)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, nested as the datasets are, until one ends."""
        listed: list[Dataset] = list(datasets) if isinstance(datasets, tuple | list) else list(datasets.values())
        spec = t.joined_spec(datasets, [each.spec for each in listed])
        order = t.joined_order(datasets, listed)
        captured = itertools.chain.from_iterable(each.captured for each in listed)

        def elements(reading: Reading) -> Iterator[Element]:
            for parts in builtins.zip(*(each.elements(reading) for each in order), strict=False):
                yield [array for part in parts for array in part]

        return Dataset(spec, captured, elements)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The paths that fit a pattern, in random order unless `shuffle` is false."""
        found = _file_names(file_pattern)

        def elements(reading: Reading) -> Iterator[Element]:
            paths = sorted(path for each in _texts(reading, found) for path in glob.glob(each))
            if not paths:
                raise NotFoundError(None, None, f"no files fit {_texts(reading, found)}")
            return ([text(path.encode())] for path in paths)

        spec = _one_text()
        listed = Dataset(spec, [found], elements)
        return listed if shuffle is False else listed.shuffle(1 << 20, seed)

    # Transformations.

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, **unused: Any) -> Dataset:
        """What a function gives for each element; a tuple becomes several arguments."""
        function = ElementFunction(map_func, self.spec, "Dataset_map")

        def elements(reading: Reading) -> Iterator[Element]:
            return (function(each, reading) for each in self.elements(reading))

        return Dataset(function.spec, [*self.captured, *function.captured], elements)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a function gives true."""
        function = ElementFunction(predicate, self.spec, "Dataset_filter")

        def elements(reading: Reading) -> Iterator[Element]:
            return (each for each in self.elements(reading) if function(each, reading)[0].all())

        return Dataset(self.spec, [*self.captured, *function.captured], elements)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that a function gives, one dataset after the other."""
        return self.interleave(map_func, 1)

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any = 1, block_length: Any = 1, *unused: Any, **others: Any
    ) -> Dataset:
        """The elements of the datasets that a function gives, some at a time from each of several."""
        inner = t.DatasetFunction(map_func, self.spec)
        sizes = [integer_tensor(cycle_length), integer_tensor(block_length)]

        def elements(reading: Reading) -> Iterator[Element]:
            cycle, block = map(reading.integer, sizes)
            opened = (inner.elements(each, reading) for each in self.elements(reading))
            return t.interleaved(opened, cycle, block)

        return Dataset(inner.spec, [*self.captured, *inner.captured, *sizes], elements)

    def batch(self, batch_size: Any, drop_remainder: bool = False, **unused: Any) -> Dataset:
        """Some elements at a time as one, with a new first dimension; the last may have fewer."""
        size = integer_tensor(batch_size)
        first = t.batch_dimension(size, drop_remainder)

        def elements(reading: Reading) -> Iterator[Element]:
            return t.batched(self.elements(reading), reading.integer(size), drop_remainder)

        shapes = (TensorShape([first]).concatenate(shape) for shape in self.spec.shapes)
        return Dataset(self.spec.with_shapes(shapes), [*self.captured, size], elements)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """As `batch`, with each part made as large as the largest first."""
        size = integer_tensor(batch_size)
        padding = t.Padding(self.spec, padded_shapes, padding_values)
        first = t.batch_dimension(size, drop_remainder)

        def elements(reading: Reading) -> Iterator[Element]:
            join = partial(padding.join, reading=reading)
            return t.batched(self.elements(reading), reading.integer(size), drop_remainder, join)

        shapes = (TensorShape([first]).concatenate(shape) for shape in padding.shapes)
        return Dataset(self.spec.with_shapes(shapes), [*self.captured, size, *padding.values], elements)

    def unbatch(self) -> Dataset:
        """The rows of the elements."""
        shapes = (shape[1:] if shape.rank is not None else shape for shape in self.spec.shapes)

        def elements(reading: Reading) -> Iterator[Element]:
            return (row for each in self.elements(reading) for row in rows_of(each))

        return Dataset(self.spec.with_shapes(shapes), self.captured, elements)

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """The elements in random order: each is drawn from the next `buffer_size`."""
        size, seeds = integer_tensor(buffer_size), get_seed(seed)
        fixed = t.generator_of(seeds) if reshuffle_each_iteration is not False else None

        def elements(reading: Reading) -> Iterator[Element]:
            return t.shuffled(self.elements(reading), reading.integer(size), fixed or t.generator_of(seeds))

        return Dataset(self.spec, [*self.captured, size], elements)

    def repeat(self, count: Any = None) -> Dataset:
        """The elements several times over; without end for None or -1."""
        times = integer_tensor(-1 if count is None else count)
        return Dataset(
            self.spec, [*self.captured, times], lambda reading: t.repeated(self, reading.integer(times), reading)
        )

    def take(self, count: Any) -> Dataset:
        """The first elements; all for -1."""
        number = integer_tensor(count)

        def elements(reading: Reading) -> Iterator[Element]:
            limit = reading.integer(number)
            return itertools.islice(self.elements(reading), None if limit < 0 else limit)

        return Dataset(self.spec, [*self.captured, number], elements)

    def skip(self, count: Any) -> Dataset:
        """All but the first elements; none for -1."""
        number = integer_tensor(count)

        def elements(reading: Reading) -> Iterator[Element]:
            left_out = reading.integer(number)
            return iter(()) if left_out < 0 else itertools.islice(self.elements(reading), left_out, None)

        return Dataset(self.spec, [*self.captured, number], elements)

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every so many-th element, from one on."""
        numbers = [integer_tensor(index), integer_tensor(num_shards)]

        def elements(reading: Reading) -> Iterator[Element]:
            first, step = map(reading.integer, numbers)
            return itertools.islice(self.elements(reading), first, None, step)

        return Dataset(self.spec, [*self.captured, *numbers], elements)

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another.

        Raises:
            ShapeError: they are of another kind.
        """
        if not self.spec.is_compatible_with(dataset.spec):
            raise ShapeError(f"concatenate: {self!r} and {dataset!r} have different elements")
        shapes = [a if a == b else t.common_shape(a, b) for a, b in zip_shapes(self.spec, dataset.spec)]

        def elements(reading: Reading) -> Iterator[Element]:
            return itertools.chain(self.elements(reading), dataset.elements(reading))

        return Dataset(self.spec.with_shapes(shapes), [*self.captured, *dataset.captured], elements)

    def enumerate(self, start: int = 0) -> Dataset:
        """The elements with their numbers."""
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self))

    def cache(self, filename: str = "") -> Dataset:
        """The elements, kept in memory after the first time."""
        kept: list[Element] = []
        complete: list[bool] = []

        def elements(reading: Reading) -> Iterator[Element]:
            return iter(kept) if complete else t.remembered(self.elements(reading), kept, complete)

        return Dataset(self.spec, self.captured, elements)

    def prefetch(self, buffer_size: Any = None) -> Dataset:
        """The same elements: they are prepared when they are asked for."""
        return self

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function of datasets gives."""
        return transformation_func(self)

    def with_options(self, options: Any) -> Dataset:
        """The same dataset: options change nothing."""
        return self

    def __repr__(self) -> str:
        return f"<xlalite.data.Dataset types={self.output_types} shapes={self.output_shapes}>"


def zip_shapes(one: ElementSpec, other: ElementSpec) -> Iterable[tuple[TensorShape, TensorShape]]:
    """Shapes of the same parts."""
    return builtins.zip(one.shapes, other.shapes, strict=True)


class _FileDataset(Dataset):
    """Strings out of files, one file after the other."""

    def __init__(self, filenames: Any, read: Callable[[str, Reading], Iterator[bytes]], further: Sequence[Tensor] = ()):
        names = _file_names(filenames)

        def elements(reading: Reading) -> Iterator[Element]:
            return ([text(data)] for name in _texts(reading, names) for data in read(name, reading))

        super().__init__(_one_text(), [names, *further], elements)


class TFRecordDataset(_FileDataset):
    """The records of files."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """`compression_type` is `""`, `ZLIB` or `GZIP`."""
        super().__init__(filenames, lambda name, _: tf_record_iterator(name, compression_type))


class TextLineDataset(_FileDataset):
    """The lines of files, without their ends."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        """`compression_type` is `""`, `ZLIB` or `GZIP`."""
        super().__init__(filenames, lambda name, _: t.lines_of(name, compression_type))


class FixedLengthRecordDataset(_FileDataset):
    """Pieces of equal length of files."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = 0,
        footer_bytes: Any = 0,
        buffer_size: Any = None,
        compression_type: Any = None,
    ) -> None:
        """Pieces of `record_bytes` between what is left out at both ends."""
        sizes = [integer_tensor(each) for each in (record_bytes, header_bytes or 0, footer_bytes or 0)]
        super().__init__(
            filenames, lambda name, reading: t.pieces_of(name, *map(reading.integer, sizes)), further=sizes
        )


# What `apply` takes.


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Callable[[Dataset], Dataset]:
    """Shuffles anew for each repetition."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset], Dataset]:
    """What a function makes of groups of elements with one key, so many each or as many as a function of it says."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("group_by_window needs window_size or window_size_func, not both")

    def applied(dataset: Dataset) -> Dataset:
        key = ElementFunction(lambda *parts: cast_to(convert_to_tensor(key_func(*parts)), int64), dataset.spec, "key")
        window = Dataset(dataset.spec, (), lambda reading: iter(reading.window))
        made = t.DatasetFunction(lambda each: reduce_func(each, window), key.spec)
        size = ElementFunction(
            lambda each: integer_tensor(window_size_func(each) if window_size_func else window_size), key.spec, "size"
        )

        def elements(reading: Reading) -> Iterator[Element]:
            return t.grouped(
                dataset.elements(reading),
                lambda element: key(element, reading),
                lambda each: int(size(each, reading)[0]),
                lambda each, found: made.elements(each, reading, found),
            )

        return Dataset(made.spec, [*dataset.captured, *key.captured, *made.captured, *size.captured], elements)

    return applied


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Callable[[Dataset], Dataset]:
    """`map`, then `batch`."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Dataset], Dataset]:
    """`batch` without the last elements that are too few."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def parallel_interleave(
    map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1, *unused: Any, **others: Any
) -> Callable[[Dataset], Dataset]:
    """`interleave`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def unbatch() -> Callable[[Dataset], Dataset]:
    """The rows of the elements."""
    return lambda dataset: dataset.unbatch()


def ignore_errors() -> Callable[[Dataset], Dataset]:
    """The elements, leaving out those that cannot be computed."""
    return lambda dataset: Dataset(
        dataset.spec, dataset.captured, lambda reading: t.without_errors(dataset.elements(reading))
    )


def _file_names(filenames: Any) -> Tensor:
    if isinstance(filenames, Dataset):
        raise TypeError("file names in a dataset: use flat_map or interleave")
    if isinstance(filenames, Tensor):
        return filenames
    listed = np.asarray(filenames, object).ravel().tolist()
    return convert_to_tensor([os.fspath(each) for each in listed])


def _texts(reading: Reading, names: Tensor) -> list[str]:
    return [each.decode() for each in np.asarray(reading.value(names)).ravel()]


def _one_text() -> ElementSpec:
    return ElementSpec.declared(string, [])
