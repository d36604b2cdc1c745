"""Loops over the elements of tensors: map_fn, scan, foldl, foldr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype, int32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import shape
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant, convert_to_tensor


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """What `fn` gives for each element along the first dimension, stacked.

    Args:
        fn: Takes an element, or a structure of them.
        elems: A tensor or a structure of tensors of one length.
        dtype: Element types of what `fn` gives, in its structure; those of `elems` by default.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through it.
        swap_memory: Accepted for compatibility.
        infer_shape: Accepted for compatibility: all results have one shape.
        name: Name scope.
    """
    with get_default_graph().name_scope(name or "map"):
        tensors, around = _elements(elems)
        types, result_structure = flatten(dtype) if dtype is not None else ([x.dtype for x in tensors], around)
        count = _length(tensors)
        arrays = [TensorArray(as_dtype(each), count) for each in types]

        def body(number: Tensor, written: Sequence[TensorArray]) -> Any:
            given = fn(rebuild(around, [x[number] for x in tensors]))
            results = _as_leaves(given, len(arrays), "map_fn")
            return number + 1, [ta.write(number, each) for ta, each in zip(written, results, strict=True)]

        _, done = _counted(count, body, arrays, back_prop)
        return _stacked(done, result_structure)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """The running results of `fn(result so far, element)` along the first dimension, stacked.

    Args:
        fn: Takes what it gave last, and an element.
        elems: A tensor or a structure of tensors of one length.
        initializer: What is there before the first element; without, the first element is the first result.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through it.
        swap_memory: Accepted for compatibility.
        infer_shape: Accepted for compatibility: all results have one shape.
        reverse: Begin with the last element.
        name: Name scope.
    """
    with get_default_graph().name_scope(name or "scan"):
        tensors, around = _elements(elems)
        count = _length(tensors)
        first = 0 if initializer is not None else 1
        place = _placing(count, reverse)
        state, state_structure = _start(initializer, tensors, around, place)
        arrays = [TensorArray(each.dtype, count, element_shape=each.shape) for each in state]
        if first:
            arrays = [ta.write(place(constant(0)), each) for ta, each in zip(arrays, state, strict=True)]

        def body(number: Tensor, carried: Sequence[Tensor], written: Sequence[TensorArray]) -> Any:
            at = place(number)
            given = fn(rebuild(state_structure, carried), rebuild(around, [x[at] for x in tensors]))
            results = _like(given, carried, "scan")
            return number + 1, results, [ta.write(at, each) for ta, each in zip(written, results, strict=True)]

        start = constant(first, int32)
        _, _, done = while_loop(lambda number, *_: number < count, body, [start, state, arrays], back_prop=back_prop)
        return _stacked(done, state_structure)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last result of `fn(result so far, element)`, from the first element along the first dimension on."""
    return _folded(fn, elems, initializer, back_prop, name or "foldl", False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last result of `fn(result so far, element)`, from the last element along the first dimension back."""
    return _folded(fn, elems, initializer, back_prop, name or "foldr", True)


def _folded(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, back_prop: bool, name: str, reverse: bool
) -> Any:
    with get_default_graph().name_scope(name):
        tensors, around = _elements(elems)
        count = _length(tensors)
        place = _placing(count, reverse)
        state, structure = _start(initializer, tensors, around, place)

        def body(number: Tensor, carried: Sequence[Tensor]) -> Any:
            element = rebuild(around, [x[place(number)] for x in tensors])
            return number + 1, _like(fn(rebuild(structure, carried), element), carried, name)

        start = constant(0 if initializer is not None else 1, int32)
        _, done = while_loop(lambda number, _: number < count, body, [start, state], back_prop=back_prop)
        return rebuild(structure, done)


def _elements(elems: Any) -> tuple[list[Tensor], Any]:
    leaves, around = flatten(elems)
    if not leaves:
        raise GraphError("there is nothing to go through: elems is empty")
    return [convert_to_tensor(leaf) for leaf in leaves], around


def _length(tensors: Sequence[Tensor]) -> Tensor:
    """How many elements there are."""
    for tensor in tensors:
        if tensor.shape.dims and tensor.shape.dims[0] is not None:
            return constant(tensor.shape.dims[0], int32)
    length: Tensor = shape(tensors[0])[0]
    return length


def _placing(count: Tensor, reverse: bool) -> Callable[[Any], Any]:
    """Which element comes at a number of the loop."""
    return (lambda number: count - 1 - number) if reverse else (lambda number: number)


def _start(
    initializer: Any, tensors: Sequence[Tensor], around: Any, place: Callable[[Any], Any]
) -> tuple[list[Tensor], Any]:
    if initializer is None:
        return [x[place(constant(0))] for x in tensors], around
    leaves, structure = flatten(initializer)
    return [convert_to_tensor(leaf) for leaf in leaves], structure


def _counted(
    count: Tensor, body: Callable[..., Any], arrays: Sequence[TensorArray], back_prop: bool
) -> tuple[Tensor, list[TensorArray]]:
    start = constant(0, int32)
    found: tuple[Tensor, list[TensorArray]] = while_loop(
        lambda number, _: number < count, body, [start, list(arrays)], back_prop=back_prop
    )
    return found


def _as_leaves(given: Any, count: int, what: str) -> list[Any]:
    leaves, _ = flatten(given)
    if len(leaves) != count:
        raise GraphError(f"{what}: the function gives {len(leaves)} values where {count} are expected")
    return leaves


def _like(given: Any, carried: Sequence[Tensor], what: str) -> list[Tensor]:
    leaves = _as_leaves(given, len(carried), what)
    return [convert_to_tensor(leaf, preferred_dtype=each.dtype) for leaf, each in zip(leaves, carried, strict=True)]


def _stacked(arrays: Sequence[TensorArray], structure: Any) -> Any:
    return rebuild(structure, [array.stack() for array in arrays])
