"""Derivatives of functions of arrays, as functions; they can be compiled, and differentiated again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array
from xlalite.ops.helpers.gradients import gradients
from xlalite.tracing.namespace import name_of, with_these_names
from xlalite.tracing.promotion import as_tensor, sizes
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray

Function = Callable[..., Any]


def value_and_grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the value of `fun` and its gradient.

    Args:
        fun: Gives one number; with `has_aux` also anything else, as a second result.
        argnums: The positions of the arguments to differentiate by: arrays of real or complex numbers, or nested ones.
            For complex ones the gradient is the conjugate of jax's, the direction of steepest ascent.
        has_aux: Whether `fun` has a second result, which the value then brings along.

    Raises:
        TracingError: The value is no single number with fractions, or an argument has none.
    """

    @functools.wraps(fun)
    def differentiated(*arguments: Any, **named: Any) -> Any:
        if not is_tracing():
            return _compiled(differentiated)(*arguments, **named)
        inputs, leaves, structures = _fresh(fun, arguments, argnums)
        result = with_these_names(fun)(*inputs, **named)
        value, *aux = result if has_aux else (result,)
        if sizes(value) or as_tensor(value).dtype.numpy_dtype.kind not in "fc":
            raise TracingError(f"{name_of(fun)}: the gradient is that of one number with fractions, found {value!r}")
        found = _gradients([value], leaves, None)
        parts = _by_argument(found, structures)
        gradient = parts[0] if isinstance(argnums, int) else tuple(parts)
        return ((value, *aux) if has_aux else value), gradient

    return differentiated


def grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `fun`, and with `has_aux` its second result; see `value_and_grad`."""

    @functools.wraps(fun)
    def differentiated(*arguments: Any, **named: Any) -> Any:
        value, gradient = value_and_grad(fun, argnums, has_aux)(*arguments, **named)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(fun: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `fun`, and the function that takes a derivative by the value to those by the arguments.

    Outside of traced functions that is a program of its own, which computes the value again.
    """
    if not is_tracing():
        pull = _compiled(lambda x, cotangent: vjp(fun, *x)[1](cotangent))
        return _compiled(lambda *x: with_these_names(fun)(*x))(*primals), functools.partial(pull, primals)
    inputs, leaves, structures = _fresh(fun, primals, range(len(primals)))
    result = with_these_names(fun)(*inputs)
    outputs, structure = flatten(result)

    def pullback(cotangent: Any) -> Any:
        given, other = flatten(cotangent)
        if other != structure:
            raise TracingError(f"vjp of {name_of(fun)}: the cotangent has not the structure of the result")
        return tuple(_by_argument(_gradients(outputs, leaves, given), structures))

    return result, pullback


def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `fun` and its derivative in the direction of `tangents`.

    Args:
        fun: A function of arrays.
        primals: Its arguments.
        tangents: Of each argument the direction, of the same structure and shapes.
    """
    if not is_tracing():
        found: tuple[Any, Any] = _compiled(lambda x, t: jvp(fun, x, t))(tuple(primals), tuple(tangents))
        return found
    inputs, leaves, _ = _fresh(fun, primals, range(len(primals)))
    result = with_these_names(fun)(*inputs)
    outputs, structure = flatten(result)
    # The derivative is linear in the cotangent; its own derivative by that is what pushes tangents forward.
    cotangents = [TracedArray(array.zeros_like(as_tensor(each))) for each in outputs]
    pulled = _gradients(outputs, leaves, cotangents)
    pushed = _gradients(pulled, cotangents, flatten(tuple(tangents))[0])
    return result, rebuild(structure, pushed)


def jacobian(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the derivative of each element of the value of `fun` by each element of its arguments.

    The dimensions of the value come first, then those of the argument.
    """

    @functools.wraps(fun)
    def differentiated(*arguments: Any, **named: Any) -> Any:
        if not is_tracing():
            return _compiled(differentiated)(*arguments, **named)
        inputs, leaves, structures = _fresh(fun, arguments, argnums)
        outputs, structure = flatten(with_these_names(fun)(*inputs, **named))
        rows = [_rows_of_jacobian(each, leaves) for each in outputs]
        found = [_by_argument(each, structures) for each in rows]
        return rebuild(structure, [each[0] if isinstance(argnums, int) else tuple(each) for each in found])

    return differentiated


def hessian(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the second derivatives of `fun`, whose value is one number."""
    return jacobian(grad(fun, argnums), argnums)


def _rows_of_jacobian(output: Any, leaves: Sequence[TracedArray]) -> list[Any]:
    value = as_tensor(output)
    dims = value.shape.known_dims()
    rows = []
    for position in np.ndindex(*dims):
        seed = np.zeros(dims, value.dtype.numpy_dtype)
        seed[position] = 1
        rows.append(_gradients([output], leaves, [seed]))
    found = []
    for i, leaf in enumerate(leaves):
        stacked = [as_tensor(row[i]) for row in rows]
        tensor = array.stack(stacked, 0) if stacked else array.zeros([0, *leaf.shape], leaf.tensor.dtype)
        found.append(TracedArray(array.reshape(tensor, [*dims, *leaf.shape])))
    return found


def _fresh(
    fun: Function, arguments: Sequence[Any], argnums: int | Sequence[int]
) -> tuple[list[Any], list[TracedArray], list[tuple[int, Any]]]:
    """The arguments with new arrays in the place of those to differentiate by, the latter, and their structures."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    inputs, leaves, structures = list(arguments), [], []
    for number in numbers:
        if not -len(arguments) <= number < len(arguments):
            raise TracingError(
                f"{name_of(fun)}: there is no argument {number} among {len(arguments)} to differentiate by"
            )
        values, structure = flatten(arguments[number])
        new = [TracedArray(array.identity(as_tensor(value))) for value in values]
        for each in new:
            if each.dtype.kind not in "fc":
                raise TracingError(f"{name_of(fun)}: argument {number} is {each.dtype}, which has no derivative")
        leaves += new
        structures.append((len(new), structure))
        inputs[number] = rebuild(structure, [each.copy() for each in new])
    return inputs, leaves, structures


def _gradients(outputs: Sequence[Any], leaves: Sequence[TracedArray], cotangents: Sequence[Any] | None) -> list[Any]:
    tensors = [as_tensor(each) for each in outputs]
    seeds = None if cotangents is None else [as_tensor(each) for each in cotangents]
    found = gradients(tensors, [leaf.tensor for leaf in leaves], seeds)
    return [
        TracedArray(array.zeros_like(leaf.tensor) if each is None else as_tensor(each))
        for each, leaf in zip(found, leaves, strict=True)
    ]


def _by_argument(found: Sequence[Any], structures: Sequence[tuple[int, Any]]) -> list[Any]:
    parts, rest = [], list(found)
    for count, structure in structures:
        parts.append(rebuild(structure, rest[:count]))
        rest = rest[count:]
    return parts


def _compiled(function: Function) -> Function:
    from xlalite.tracing.jit import jit

    return jit(function)
