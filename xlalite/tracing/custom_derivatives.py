"""Derivatives that functions of arrays give themselves, and values that are computed again for derivatives.

Both are an `IdentityN` of results and inputs, annotated with a function graph that gives the gradients of the inputs,
from the inputs and the gradients of the results. What that graph takes in from around is an input, too, so that the
operation can be repeated elsewhere: in the gradient of a loop, for many examples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.function_graph import FunctionGraph, replay_function, trace_function
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.scoped_creation import GRADIENT_OVERRIDE
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions import custom_gradients, math
from xlalite.ops.helpers.gradient_registry import RegisterGradient
from xlalite.ops.helpers.gradients import UnconnectedGradients, gradients
from xlalite.ops.helpers.indexed_slices import dense
from xlalite.ops.helpers.node import operation
from xlalite.tracing.batching.batch import Batch, Part, batches
from xlalite.tracing.namespace import with_these_names
from xlalite.tracing.promotion import as_tensor
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray

_OWN: Final = "_own_gradient"


@dataclass(frozen=True, slots=True, eq=False)
class _OwnGradient:
    """What an operation's gradients are.

    Attributes:
        function: Takes the inputs and the gradients of the results; gives the gradients of some inputs.
        wanted: The numbers of those inputs.
        outputs: How many results there are.
        inputs: How many inputs there are besides what the function takes in from around.
    """

    function: FunctionGraph
    wanted: tuple[int, ...]
    outputs: int
    inputs: int


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradients it gives itself: `f(*args)` returns its results and `grad(*result_gradients)`.

    In a function that is traced both work on NumPy-like arrays: `grad` takes the gradient of each array of the result,
    and gives one for each argument (None: nothing flows back). Elsewhere this is TensorFlow's `tf.custom_gradient`.

    Raises:
        TracingError: There is not a gradient for each argument.
    """
    on_tensors = custom_gradients.custom_gradient(f)

    @functools.wraps(f)
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return on_tensors(*args, **kwargs)
        leaves, structure = flatten(args)
        inputs = [as_tensor(leaf) for leaf in leaves]

        def run(tensors: Sequence[Tensor]) -> tuple[Any, Callable[..., Any]]:
            arrays = rebuild(structure, [TracedArray(each) for each in tensors])
            result, grad = with_these_names(f)(*arrays, **kwargs)
            return result, grad

        result = run(inputs)[0]
        outputs, around = flatten(result)
        wanted: list[int] = []

        def differentiate(given: Sequence[Tensor], arrived: Sequence[Tensor]) -> Sequence[Tensor]:
            found = _by_leaf(f, run(given)[1], arrived, args)
            wanted[:] = [i for i, each in enumerate(found) if each is not None]
            return [each for each in found if each is not None]

        return rebuild(around, _attached([as_tensor(each) for each in outputs], inputs, differentiate, wanted))

    return with_gradient


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps none of its values for derivatives: they are computed again from its arguments."""

    @functools.wraps(fun)
    def recomputed(*arguments: Any, **named: Any) -> Any:
        if not is_tracing():
            from xlalite.tracing.jit import jit

            return jit(recomputed)(*arguments, **named)
        leaves, structure = flatten((arguments, named))
        given = [as_tensor(leaf) for leaf in leaves]
        results: list[Any] = []

        def body(tensors: tuple[Tensor, ...]) -> Sequence[Tensor]:
            positional, own_named = rebuild(structure, [TracedArray(each) for each in tensors])
            outputs, around = flatten(with_these_names(fun)(*positional, **own_named))
            results.append(around)
            return [as_tensor(each) for each in outputs]

        kinds = [(each.dtype, each.shape) for each in given]
        function = trace_function("checkpoint", get_default_graph(), kinds, body)
        inputs = [*given, *function.captured]
        wanted = [i for i, each in enumerate(inputs) if each.dtype.is_differentiable]

        def differentiate(own: Sequence[Tensor], arrived: Sequence[Tensor]) -> Sequence[Tensor]:
            # What is behind the barrier is not the same as what was computed before.
            again = operation("XlaOptimizationBarrier", [*own, *arrived]).outputs
            ys = replay_function(function, function.outputs, dict(zip(function.inputs, again, strict=False)))
            zero = UnconnectedGradients.ZERO
            found = gradients(ys, [again[i] for i in wanted], list(again[len(own) :]), unconnected_gradients=zero)
            return [dense(each) for each in found if each is not None]

        outputs = replay_function(function, function.outputs, dict(zip(function.inputs, inputs, strict=True)))
        return rebuild(results[0], _attached(outputs, inputs, differentiate, wanted))

    return recomputed


def _attached(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    differentiate: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]],
    wanted: Sequence[int],
) -> list[TracedArray]:
    """The outputs as arrays with gradients of their own."""
    return [TracedArray(each) for each in _with_gradients(outputs, inputs, differentiate, wanted)]


def _with_gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    differentiate: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]],
    wanted: Sequence[int],
) -> list[Tensor]:
    graph, count = get_default_graph(), len(inputs)
    kinds = [(each.dtype, each.shape) for each in (*inputs, *outputs)]
    function = trace_function("own_gradient", graph, kinds, lambda x: differentiate(x[:count], x[count:]))
    notes = {GRADIENT_OVERRIDE: _OWN, _OWN: _OwnGradient(function, tuple(wanted), len(outputs), count)}
    with graph.attribute_scope(notes):
        passed = operation("IdentityN", [*outputs, *inputs, *function.captured]).outputs
    return list(passed[: len(outputs)])


@RegisterGradient(_OWN)
def _gradient(op: Operation, *arrived: Any) -> list[Any]:
    own: _OwnGradient = op.get_attr(_OWN)
    first, count = own.outputs, own.inputs
    given = op.inputs[first:]
    known = dict(zip(own.function.inputs, [*given[:count], *arrived[:first], *given[count:]], strict=True))
    found = dict(zip(own.wanted, replay_function(own.function, own.function.outputs, known), strict=True))
    return [*[None] * first, *[found.get(i) for i in range(len(given))]]


@batches(GRADIENT_OVERRIDE)
def _of_many(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """The gradient for many examples; what is the same for all of them has the sum of theirs."""
    own: _OwnGradient = op.get_attr(_OWN)
    first, count = own.outputs, own.inputs
    outputs = [batch.front(part) for part in parts[:first]]
    inputs = parts[first:]

    def differentiate(given: Sequence[Tensor], arrived: Sequence[Tensor]) -> Sequence[Tensor]:
        around = [Part(tensor, part.axis) for tensor, part in zip(given, inputs, strict=True)]
        seeds = [Part(each, 0) for each in arrived]
        found = batch.inside(own.function, [*around[:count], *seeds, *around[count:]])
        return [_like(batch, each, inputs[i]) for i, each in zip(own.wanted, found, strict=True)]

    found = _with_gradients(outputs, [part.tensor for part in inputs], differentiate, own.wanted)
    return [*[Part(each, 0) for each in found], *inputs]


def _like(batch: Batch, gradient: Part, part: Part) -> Tensor:
    return math.reduce_sum(batch.front(gradient), 0) if part.axis is None else batch.moved(gradient, part.axis)


def _by_leaf(f: Any, grad: Callable[..., Any], arrived: Sequence[Tensor], args: Sequence[Any]) -> list[Any]:
    given = with_these_names(grad)(*[TracedArray(each) for each in arrived])
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if len(listed) != len(args):
        raise TracingError(f"custom_gradient of {f.__name__}: {len(listed)} gradients for {len(args)} arguments")
    found: list[Any] = []
    for own, argument in zip(listed, args, strict=True):
        leaves = flatten(argument)[0]
        found += [None] * len(leaves) if own is None else [as_tensor(each) for each in flatten(own)[0]]
    return found
