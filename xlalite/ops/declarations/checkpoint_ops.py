"""Operations that write and read checkpoints. They run on the host.

The files' code is loaded with the first checkpoint: most programs that declare operations have none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.shape_rules import no_outputs, require_type

_WHY_HOST = "it reads or writes files"

# SaveV2(prefix, tensor_names, shape_and_slices, tensors...).


def _texts(value: HostValue) -> list[str]:
    return [each.decode() for each in np.asarray(value).ravel()]


class _Place(NamedTuple):
    """Where a tensor lies in a checkpoint: its name, and of a part the sizes of the whole and its place in it."""

    name: str
    sizes: tuple[int, ...]
    part: tuple[slice, ...] | None


def _places(op: Operation, names: HostValue, parts: HostValue, count: int) -> list[_Place]:
    listed, texts = _texts(names), _texts(parts)
    if not len(listed) == len(texts) == count:
        raise InvalidArgumentError(None, op, f"{len(listed)} names and {len(texts)} parts for {count} tensors")
    try:
        return [_Place(name, *_part(text)) for name, text in zip(listed, texts, strict=True)]
    except ValueError:
        raise InvalidArgumentError(
            None, op, f"parts are {texts}; expected texts such as '4 3 0,2:-': sizes, then starts and lengths"
        ) from None


def _part(text: str) -> tuple[tuple[int, ...], tuple[slice, ...] | None]:
    if not text:
        return (), None
    *sizes, extents = text.split()
    part = tuple(map(_extent, extents.split(":")))
    if len(part) != len(sizes):
        raise ValueError(text)
    return tuple(map(int, sizes)), part


def _extent(text: str) -> slice:
    if text == "-":
        return slice(None)
    start, length = map(int, text.split(","))
    return slice(start, start + length)


def _save_infer(op: Operation) -> Sequence[OutputType]:
    for tensor, what in zip(op.inputs, op.spec.inputs[:3], strict=False):
        require_type(tensor, {string}, what)
    return no_outputs(op)


def _save(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.files.checkpoints import Part, write_checkpoint

    prefix, names, parts, *values = inputs
    arrays = [np.asarray(value) for value in values]
    found: dict[str, Array | list[Part]] = {}
    for (name, sizes, part), array in zip(_places(op, names, parts, len(arrays)), arrays, strict=True):
        if part is None:
            found[name] = array
            continue
        held = found.setdefault(name, [])
        assert isinstance(held, list), "a saver has either the whole or parts of a name"
        held.append(Part(sizes, tuple(each.start or 0 for each in part), array))
    write_checkpoint(_texts(prefix)[0], found)
    return ()


register(
    OpSpec(
        "SaveV2",
        _save_infer,
        inputs=("prefix", "tensor_names", "shape_and_slices", "tensors*"),
        attrs=("dtypes",),
        host_kernel=_save,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host=_WHY_HOST,
    )
)


# RestoreV2(prefix, tensor_names, shape_and_slices).


def _restore_infer(op: Operation) -> Sequence[OutputType]:
    for tensor, what in zip(op.inputs, op.spec.inputs, strict=True):
        require_type(tensor, {string}, what)
    return [(dtype, unknown_shape()) for dtype in op.get_attr("dtypes")]


def _restore(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.files.checkpoints import CheckpointReader

    prefix_text, names, parts = inputs
    (prefix,), types = _texts(prefix_text), op.get_attr("dtypes")
    reader = CheckpointReader(prefix)
    there = reader.get_variable_to_dtype_map()
    found: list[Array] = []
    for (name, sizes, part), dtype in zip(_places(op, names, parts, len(types)), types, strict=True):
        value = reader.get_tensor(name)
        if there[name] is not dtype:
            raise InvalidArgumentError(
                None, op, f"tensor {name!r} of {prefix} has element type {there[name].name}, expected {dtype.name}"
            )
        if part is not None and value.shape != sizes:
            raise InvalidArgumentError(
                None, op, f"tensor {name!r} of {prefix} has sizes {list(value.shape)}, expected {list(sizes)}"
            )
        found.append(value if part is None else value[part])
    return found


register(
    OpSpec(
        "RestoreV2",
        _restore_infer,
        inputs=("prefix", "tensor_names", "shape_and_slices"),
        attrs=("dtypes",),
        host_kernel=_restore,
        gradient=None,
        group=None,
        is_stateful=True,
        why_host=_WHY_HOST,
    )
)


# ShardedFilename(basename, shard, num_shards), MergeV2Checkpoints(checkpoint_prefixes, destination_prefix).


def _shard_infer(op: Operation) -> Sequence[OutputType]:
    return [(string, TensorShape(()))]


def _shard(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    name, number, count = (np.asarray(value).item() for value in inputs)
    return [np.array(b"%s-%05d-of-%05d" % (name, number, count), object)]


def _merge(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.files.checkpoint_state import remove_checkpoint
    from xlalite.files.checkpoints import CheckpointReader, write_checkpoint

    prefixes, (destination,) = map(_texts, inputs)
    readers = [CheckpointReader(prefix) for prefix in prefixes]
    tensors = {name: each.get_tensor(name) for each in readers for name in each.get_variable_to_dtype_map()}
    write_checkpoint(destination, tensors)
    for prefix in prefixes if op.get_attr("delete_old_dirs") else ():
        remove_checkpoint(prefix)
        with suppress(OSError):  # other files may lie there
            os.rmdir(os.path.dirname(prefix))
    return ()


declare_on_host("ShardedFilename", ("basename", "shard", "num_shards"), _shard_infer, _shard, "it makes a text")
declare_on_host(
    "MergeV2Checkpoints",
    ("checkpoint_prefixes", "destination_prefix"),
    no_outputs,
    _merge,
    _WHY_HOST,
    attrs=("delete_old_dirs",),
    defaults={"delete_old_dirs": True},
    is_stateful=True,
)
