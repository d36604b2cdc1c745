"""Handles: what stands in the graph for an object that a session or a step keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from xlalite.framework.graph.dtypes import resource
from xlalite.framework.graph.errors import FailedPreconditionError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostValue

T = TypeVar("T")


def one_handle(op: Operation) -> Sequence[OutputType]:
    """The output of an operation that makes an object."""
    return [(resource, TensorShape(()))]


def handle_of(held: object) -> Array:
    """The handle of an object."""
    handle = np.empty((), object)
    handle[()] = held
    return handle


def object_of(op: Operation, handle: HostValue, kind: type[T], what: str) -> T:
    """The object behind a handle that an operation takes.

    Raises:
        FailedPreconditionError: it is the handle of something else.
    """
    held = np.asarray(handle)
    found = held.item() if not held.shape else None
    if not isinstance(found, kind):
        raise FailedPreconditionError(None, op, f"a handle that {op.name!r} takes is not a {what}")
    return found
