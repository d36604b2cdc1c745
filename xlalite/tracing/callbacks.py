"""`xlalite.pure_callback`: Python functions that a program calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.surroundings.custom_calls import register_custom_call
from xlalite.ops.helpers.node import operation
from xlalite.tracing.promotion import as_tensor, traced_array
from xlalite.tracing.state import is_tracing

_NUMBERS = itertools.count()


def pure_callback(callback: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    """What a Python function gives for arrays, in a program that calls it.

    The function may be called more or less often than the text says, for what it gives must follow from its arguments.
    Under `vmap` it is called for each example. It has no gradient; `xlalite.custom_gradient` gives it one.

    Args:
        callback: Takes the arguments as arrays that it must not write to.
        result: What its result is like: an array, anything with `shape` and `dtype`, or nested ones.
        arguments: Arrays, or nested ones.
    """
    if not is_tracing():
        return callback(*arguments)
    leaves, structure = flatten(arguments)
    shapes, around = flatten(result)
    kinds = tuple((as_dtype(np.dtype(each.dtype)), tuple(each.shape)) for each in shapes)
    target = f"xlalite_callback_{next(_NUMBERS)}"

    def call(*arrays: Any) -> Any:
        found = flatten(callback(*rebuild(structure, list(arrays))))[0]
        values = [np.asarray(each, dtype.numpy_dtype) for each, (dtype, _) in zip(found, kinds, strict=True)]
        return values[0] if len(values) == 1 else tuple(values)

    register_custom_call(target, call)
    made = _called(target, kinds, [as_tensor(leaf) for leaf in leaves])
    return rebuild(around, [traced_array(each) for each in made])


def _called(target: str, kinds: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    return operation("_PureCallback", inputs, {"target": target, "kinds": tuple(kinds)}).outputs
