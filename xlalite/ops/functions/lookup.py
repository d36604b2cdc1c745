"""Lookup tables: the classes and functions that users call, under TensorFlow's names."""

from __future__ import annotations

from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype, int64, string
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import where_v2
from xlalite.ops.functions.control_flow import group
from xlalite.ops.functions.math import not_equal
from xlalite.ops.functions.strings import as_string
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to


class TextFileIndex:
    """What a table has of a line of a file."""

    WHOLE_LINE: Final = -2
    LINE_NUMBER: Final = -1


class KeyValueTensorInitializer:
    """Fills a table with keys and values that are tensors."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        """As many values as keys."""
        self._keys = convert_to_tensor(keys, None if key_dtype is None else as_dtype(key_dtype))
        self._values = convert_to_tensor(values, None if value_dtype is None else as_dtype(value_dtype))
        self.key_dtype, self.value_dtype = self._keys.dtype, self._values.dtype

    def initialize(self, table: Any) -> Operation:
        """The operation that fills a table."""
        return operation("InitializeTableV2", [_handle(table), self._keys, self._values])


class TextFileInitializer:
    """Fills a table from the lines of a file."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        """Columns by number, or a `TextFileIndex`; the first `vocab_size` lines, or all."""
        self._file = convert_to_tensor(filename, string)
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._attrs = {"key_index": key_index, "value_index": value_index, "delimiter": delimiter}
        self._attrs["vocab_size"] = -1 if vocab_size is None else int(vocab_size)

    def initialize(self, table: Any) -> Operation:
        """The operation that fills a table."""
        get_default_graph().add_to_collection(GraphKeys.ASSET_FILEPATHS, self._file)
        return operation("InitializeTableFromTextFileV2", [_handle(table), self._file], self._attrs)


class TextFileIdTableInitializer(TextFileInitializer):
    """Lines, or a column, and their numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        key_dtype: Any = string,
    ) -> None:
        """As `TextFileInitializer`."""
        super().__init__(filename, key_dtype, key_column_index, int64, value_column_index, vocab_size, delimiter)


class TextFileStringTableInitializer(TextFileInitializer):
    """Numbers of lines, and the lines, or a column."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        """As `TextFileInitializer`."""
        super().__init__(filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter)


class _Table:
    """A table, and what it gives for keys that it does not have.

    Attributes:
        key_dtype: Element type of keys.
        value_dtype: Element type of values.
        resource_handle: What stands for the table in the graph.
    """

    _type: str

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str | None) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        attrs = {"key_dtype": self.key_dtype, "value_dtype": self.value_dtype}
        with get_default_graph().control_dependencies(None):
            self.resource_handle = node(self._type, (), attrs, name)
        self._default = convert_to_tensor(default_value, self.value_dtype)

    @property
    def name(self) -> str:
        """That of the operation."""
        return self.resource_handle.op.name

    @property
    def table_ref(self) -> Tensor:
        """What stands for the table in the graph."""
        return self.resource_handle

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, a tensor or a sparse one; the default for those that are not there."""
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        given = convert_to_tensor(keys)
        if given.dtype is not self.key_dtype:
            given = (
                convert_to_tensor(keys, self.key_dtype) if self.key_dtype is string else cast_to(given, self.key_dtype)
            )
        return node("LookupTableFindV2", [self.resource_handle, given, self._default], None, name)

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are."""
        return node("LookupTableSizeV2", [self.resource_handle], None, name)


class StaticHashTable(_Table):
    """A table that is filled once, by `tables_initializer()`."""

    _type = "HashTableV2"

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        """What the initializer fills it with."""
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, name or "hash_table")
        with get_default_graph().control_dependencies(None):
            self.initializer: Operation = initializer.initialize(self)
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.initializer)

    @property
    def init(self) -> Operation:
        """The operation that fills it."""
        return self.initializer


HashTable = StaticHashTable


class MutableHashTable(_Table):
    """A table that can be changed at any time."""

    _type = "MutableHashTableV2"

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        """An empty table."""
        super().__init__(key_dtype, value_dtype, default_value, name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The operation that puts values at keys."""
        pairs = [convert_to_tensor(keys, self.key_dtype), convert_to_tensor(values, self.value_dtype)]
        return operation("LookupTableInsertV2", [self.resource_handle, *pairs], None, name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values."""
        attrs = {"Tkeys": self.key_dtype, "Tvalues": self.value_dtype}
        keys, values = operation("LookupTableExportV2", [self.resource_handle], attrs, name).outputs
        return keys, values


class IdTableWithHashBuckets:
    """Numbers of words; those that a table does not have fall into buckets behind its numbers."""

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: Any = None,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        """`table` may be None: then there are only buckets."""
        self._table = table
        self._buckets = int(num_oov_buckets)
        self.key_dtype: DType = (
            as_dtype(key_dtype) if key_dtype is not None else string if table is None else table.key_dtype
        )
        self.value_dtype = int64

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        if self._table is None:
            return group()
        filled: Operation = self._table.initializer
        return filled

    init = initializer

    @property
    def resource_handle(self) -> Any:
        """That of the table."""
        return None if self._table is None else self._table.resource_handle

    def size(self, name: str | None = None) -> Any:
        """Numbers of the table, and buckets."""
        return constant(self._buckets, int64) if self._table is None else self._table.size() + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of keys, a tensor or a sparse one."""
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        given = convert_to_tensor(keys)
        if not self._buckets:
            return self._table.lookup(given, name)
        bucket = string_to_hash_bucket_fast(given if given.dtype is string else as_string(given), self._buckets)
        if self._table is None:
            return bucket
        found = self._table.lookup(given)
        return where_v2(not_equal(found, self._table._default), found, bucket + self._table.size(), name)


def _handle(table: Any) -> Tensor:
    handle: Tensor = table.resource_handle
    return handle


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The buckets that strings fall into, by FarmHash's fingerprint, as TensorFlow has it."""
    attrs = {"num_buckets": int(num_buckets)}
    return node("StringToHashBucketFast", [convert_to_tensor(input, string)], attrs, name)


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: int = 0, name: str | None = None, input: Any = None
) -> Tensor:
    """The buckets that strings fall into, by MurmurHash, as TensorFlow has it."""
    given = string_tensor if string_tensor is not None else input
    return node("StringToHashBucket", [convert_to_tensor(given, string)], {"num_buckets": int(num_buckets)}, name)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that fills all tables."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


# Tables of a vocabulary.


def _with_buckets(initializer: Any, default_value: Any, buckets: int, name: str | None) -> Any:
    table = StaticHashTable(initializer, default_value, name=name)
    return IdTableWithHashBuckets(table, buckets) if buckets else table


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = None,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """The numbers of words by the lines of a file; other words get the default, or fall into buckets."""
    filled = TextFileIdTableInitializer(
        vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, key_dtype=key_dtype
    )
    return _with_buckets(filled, default_value, num_oov_buckets, name)


def index_table_from_tensor(
    vocabulary_list: Any = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = string,
    name: str | None = None,
    mapping: Any = None,
) -> Any:
    """The numbers of words by their places in a list; other words get the default, or fall into buckets."""
    keys = convert_to_tensor(vocabulary_list if vocabulary_list is not None else mapping)
    return _with_buckets(KeyValueTensorInitializer(keys, _places(keys)), default_value, num_oov_buckets, name)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """The words of numbers by the lines of a file."""
    filled = TextFileStringTableInitializer(
        vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter
    )
    return StaticHashTable(filled, default_value, name=name)


def index_to_string_table_from_tensor(
    vocabulary_list: Any = None, default_value: Any = "UNK", name: str | None = None, mapping: Any = None
) -> StaticHashTable:
    """The words of numbers by their places in a list."""
    words = convert_to_tensor(vocabulary_list if vocabulary_list is not None else mapping)
    return StaticHashTable(KeyValueTensorInitializer(_places(words), words), default_value, name=name)


def _places(keys: Tensor) -> Tensor:
    """0, 1, 2, ... as many as there are keys."""
    count = node("Cast", [node("Size", [keys], {"out_type": int64})], {"dtype": int64})
    return node("Range", [constant(0, int64), count, constant(1, int64)])
