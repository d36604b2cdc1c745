"""Branches and loops that the program takes; in functions that are traced they work on NumPy-like arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import control_flow, functional
from xlalite.tracing.namespace import with_these_names
from xlalite.tracing.promotion import as_tensor
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, *arguments: Any, **options: Any) -> Any:
    """What `true_fn()` gives if `pred` holds, otherwise what `false_fn()` gives; only one of them runs.

    In a function that is traced both work on NumPy-like arrays; elsewhere this is TensorFlow's `tf.cond`.

    Args:
        pred: A truth value.
        true_fn: A function without arguments.
        false_fn: Another; its results have the same structure, shapes and element types.
        arguments: As TensorFlow's.
        options: As TensorFlow's.

    Raises:
        GraphError: The results differ in structure.
    """
    if not is_tracing():
        return control_flow.cond(pred, true_fn, false_fn, *arguments, **options)
    return _arrays(control_flow.cond(as_tensor(pred), _on_arrays(true_fn), _on_arrays(false_fn), *arguments, **options))


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """What the function at `index` gives for the operands; indices out of range mean the nearest.

    Args:
        index: A whole number.
        branches: Functions whose results have the same structure, shapes and element types.
        operands: Their arguments.

    Raises:
        GraphError: There are no functions, or their results differ in structure.
    """
    if not is_tracing():
        return _compiled(lambda i, *given: switch(i, branches, *given))(index, *operands)
    number = np.clip(index, 0, len(branches) - 1)
    functions = [_on_arrays(lambda each=each: each(*operands)) for each in branches]
    return _arrays(control_flow.switch_case(as_tensor(number.astype(np.int32)), functions))


def while_loop(cond: Function, body: Function, loop_vars: Any, *arguments: Any, **options: Any) -> Any:
    """Replaces the loop variables by what `body` gives as long as `cond` holds; gives their final values.

    In a function that is traced both work on NumPy-like arrays; elsewhere this is TensorFlow's `tf.while_loop`.

    Args:
        cond: Takes the loop variables, gives a truth value.
        body: Takes the loop variables, gives their next values, of the same shapes and element types.
        loop_vars: The initial values, a sequence (of nested sequences or dictionaries).
        arguments: As TensorFlow's.
        options: As TensorFlow's.

    Raises:
        ShapeError: A loop variable changes its shape.
        ElementTypeError: A loop variable changes its element type.
    """
    if not is_tracing():
        return control_flow.while_loop(cond, body, loop_vars, *arguments, **options)
    found = control_flow.while_loop(_on_arrays(cond), _on_arrays(body), _tensors(loop_vars), *arguments, **options)
    return _arrays(found)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`, as a loop of the program.

    Gradients flow through it where both limits are known while the function is traced.

    Args:
        lower: The first number.
        upper: The number that ends it.
        body_fun: Takes the number and the value, gives the next value, of the same structure, shapes and types.
        init_val: The first value: an array, or nested ones.

    Raises:
        ShapeError: A value changes its shape.
        ElementTypeError: A value changes its element type.
    """
    if not is_tracing():
        return _compiled(lambda *given: fori_loop(given[0], given[1], body_fun, given[2]))(lower, upper, init_val)
    leaves, structure = flatten(_tensors(init_val))
    traced = with_these_names(body_fun)

    def step(number: Any, *values: Any) -> Any:
        return number + 1, *flatten(traced(number, rebuild(structure, values)))[0]

    limits = {}
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        limits["maximum_iterations"] = max(int(upper) - int(lower), 0)
    start = as_tensor(np.asarray(lower, np.int64) if not isinstance(lower, TracedArray) else lower.astype(np.int64))
    found = while_loop(lambda number, *_: np.less(number, upper), step, (start, *leaves), **limits)
    return rebuild(structure, found[1:])


def map(f: Function, xs: Any) -> Any:  # jax's name
    """`f` of each of the parts of arrays along their first dimension, one after another; the results are stacked.

    Raises:
        ShapeError: The arrays have different first sizes.
    """
    if not is_tracing():
        return _compiled(lambda given: map(f, given))(xs)
    tensors, structure = flatten(_tensors(xs))
    traced = with_these_names(f)
    results: list[Any] = []

    def of_parts(parts: Any) -> Any:
        found, shape = flatten(_tensors(traced(rebuild(structure, [TracedArray(each) for each in parts]))))
        results[:] = [shape]
        return tuple(found)

    kinds = _result_types(of_parts, tensors)
    found = functional.map_fn(of_parts, tuple(tensors), dtype=kinds)
    return _arrays(rebuild(results[0], list(found)))


def _result_types(function: Function, tensors: Sequence[Any]) -> Any:
    """The element types of the results for the first parts, from a graph that is thrown away."""
    from xlalite.framework.graph.graph import Graph
    from xlalite.ops.functions.array import placeholder

    if not tensors:
        raise TracingError("map: there are no arrays")
    with Graph().as_default():
        parts = [placeholder(each.dtype, each.shape.known_dims()[1:]) for each in tensors]
        return tuple(each.dtype for each in function(parts))


def _on_arrays(function: Function) -> Function:
    traced = with_these_names(function)
    return lambda *values: _tensors(traced(*_arrays(values)))


def _tensors(value: Any) -> Any:
    leaves, structure = flatten(value)
    return rebuild(structure, [as_tensor(leaf) for leaf in leaves])


def _arrays(value: Any) -> Any:
    leaves, structure = flatten(value)
    return rebuild(structure, [TracedArray(as_tensor(leaf)) for leaf in leaves])


def _compiled(function: Function) -> Function:
    from xlalite.tracing.jit import jit

    return jit(function)
