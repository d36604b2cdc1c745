"""The crossing of features: for each example a number of a bucket for every combination of their values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.declarations.string_hashes import fingerprint
from xlalite.ops.helpers.declare import declare_on_host

_FACTOR: Final = 0xC6A4A7935BD1E995
_ALL: Final = (1 << 64) - 1


def joined_fingerprint(first: int, second: int) -> int:
    """One fingerprint of two, as TensorFlow joins them."""
    result = first ^ _FACTOR
    result ^= _shifted(second * _FACTOR) * _FACTOR & _ALL
    result = _shifted(result * _FACTOR) * _FACTOR
    return _shifted(result)


def _shifted(value: int) -> int:
    value &= _ALL
    return value ^ value >> 47


# _SparseCross(indices, values and shape of each sparse feature, then dense ones): indices, values, shape.


def _infer(op: Operation) -> Sequence[OutputType]:
    return [(int64, TensorShape([None, 2])), (int64, TensorShape([None])), (int64, TensorShape([2]))]


def _cross(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    count = op.get_attr("sparse_count")
    arrays = [np.asarray(each) for each in inputs]
    columns = [_rows_of_sparse(*arrays[3 * number : 3 * number + 3]) for number in range(count)]
    columns += [[[_number(each) for each in row] for row in array] for array in arrays[3 * count :]]
    indices, values, most = [], [], 0
    examples = min(map(len, columns))
    for example in range(examples):
        crossed = list(product(*(column[example] for column in columns)))
        most = max(most, len(crossed))
        for place, numbers in enumerate(crossed):
            hashed = op.get_attr("hash_key")
            for number in numbers:
                hashed = joined_fingerprint(hashed, number)
            indices.append((example, place))
            values.append(hashed % op.get_attr("num_buckets"))
    return [
        np.array(indices, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([examples, most], np.int64),
    ]


def _rows_of_sparse(indices: Array, values: Array, sizes: Array) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(int(sizes[0]))]
    for place, value in zip(indices, values, strict=True):
        rows[int(place[0])].append(_number(value))
    return rows


def _number(value: Any) -> int:
    return fingerprint(value) if isinstance(value, bytes) else int(value) & _ALL


declare_on_host(
    "_SparseCross",
    ("features*",),
    _infer,
    _cross,
    "it works on text",
    attrs=("sparse_count", "num_buckets", "hash_key"),
)
