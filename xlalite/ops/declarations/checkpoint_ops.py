"""Operations that write and read checkpoints. They run on the host.

The files' code is loaded with the first checkpoint: most programs that declare operations have none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

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


def _save_infer(op: Operation) -> Sequence[OutputType]:
    for tensor, what in zip(op.inputs, op.spec.inputs[:3], strict=False):
        require_type(tensor, {string}, what)
    return no_outputs(op)


def _save(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.files.checkpoints import Part, write_checkpoint

    prefix, names, parts, *values = inputs
    arrays = [np.asarray(value) for value in values]
    listed = _texts(names)
    if len(listed) != len(arrays):
        raise InvalidArgumentError(None, op, f"{len(listed)} names for {len(arrays)} tensors")
    found: dict[str, Array | list[Part]] = {}
    for name, part, array in zip(listed, _texts(parts), arrays, strict=True):
        if not part:
            found[name] = array
            continue
        *sizes, extents = part.split()
        held = found.setdefault(name, [])
        assert isinstance(held, list), "a saver has either the whole or parts of a name"
        starts = tuple(0 if each == "-" else int(each.split(",")[0]) for each in extents.split(":"))
        held.append(Part(tuple(map(int, sizes)), starts, array))
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

    (prefix,), names, parts = map(_texts, inputs)
    reader = CheckpointReader(prefix)
    types = reader.get_variable_to_dtype_map()
    found: list[Array] = []
    for name, part, dtype in zip(names, parts, op.get_attr("dtypes"), strict=True):
        value = reader.get_tensor(name)
        if types[name] is not dtype:
            raise InvalidArgumentError(
                None, op, f"tensor {name!r} of {prefix} has element type {types[name].name}, expected {dtype.name}"
            )
        found.append(value[_part(part)] if part else value)
    return found


def _part(text: str) -> tuple[Any, ...]:
    """The part that a text such as `4 3 0,2:-` names: sizes of the whole, then of each dimension start and length."""
    extents = text.split()[-1].split(":")
    pairs = [None if each == "-" else each.split(",") for each in extents]
    return tuple(slice(None) if p is None else slice(int(p[0]), int(p[0]) + int(p[1])) for p in pairs)


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
