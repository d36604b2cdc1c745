"""Symbolic derivatives: adds to the graph the operations that compute them."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.jit_scope import gradient_attributes
from xlalite.framework.graph.op_spec import Gradient
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.gradient_registry import gradient_of, is_overridden
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.indexed_slices import dense, join_slices
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to


class AggregationMethod:
    """How terms of a gradient are added; all ways are the same here."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """What the gradient is where the result does not depend on the input."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
) -> list[Gradient | None]:
    """The sum of the derivatives of all `ys` with respect to each of `xs`.

    Where an `x` was only gathered from, its gradient has the rows that were used (`IndexedSlices`).

    Args:
        ys: A tensor or several.
        xs: Tensors or variables, one or several.
        grad_ys: Weights of the elements of `ys`; ones by default.
        name: Name scope of the new operations; each operation's gradient goes to `<name>/<operation>_grad`.
        colocate_gradients_with_ops: Request for each gradient the device of its operation.
        gate_gradients: Accepted for compatibility; a step computes all gradients that it fetches.
        aggregation_method: Accepted for compatibility; gradients are added with `AddN`.
        stop_gradients: Tensors to be treated as constants.
        unconnected_gradients: Give None or zeros for an `x` that `ys` do not depend on.

    Raises:
        LookupError: an operation between `ys` and `xs` has no gradient.
        ElementTypeError: some `y` is not floating-point, or is complex without its `grad_ys`.
    """
    graph = get_default_graph()
    with graph.name_scope(name) as scope:
        targets = [convert_to_tensor(y) for y in _as_list(ys)]
        sources = [_differentiable_element(x) for x in _as_list(xs)]
        stops = {_differentiable_element(x) for x in _as_list(stop_gradients)}
        if targets and not graph.building_function:
            graph = targets[0].graph
        sweep = _Sweep(graph, sources, stops, scope, colocate_gradients_with_ops)
        seeds = _as_list(grad_ys) if grad_ys is not None else [None] * len(targets)
        if len(seeds) != len(targets):
            raise GraphError(f"gradients: {len(seeds)} grad_ys for {len(targets)} ys")
        for position, (y, seed) in enumerate(zip(targets, seeds, strict=True)):
            if y in sweep.reached:
                sweep.add(y, _seed(y, seed, position))
        sweep.run()
        return [_result(sweep, x, unconnected_gradients) for x in sources]


class _Sweep:
    """Goes from results to inputs once, each operation after all that use it.

    Operations are numbered in creation order and are created after their inputs, so the largest number among those that
    wait is always the next one to take. Inside the body of a loop or branch the sweep goes on in the graphs around it,
    through the tensors that were captured; what it adds goes into the body all the same.
    """

    def __init__(self, graph: Graph, sources: Sequence[Tensor], stops: set[Tensor], scope: str, colocate: bool) -> None:
        self._functions = _enclosing_functions(graph)
        self._origins: dict[Tensor, Tensor] = {}
        # Nothing goes back through a stop, but one that is a source itself has a derivative.
        self._constants = stops - set(sources)
        self.reached = self._forward_reach(sources)
        self._graph = graph
        self._stops = stops
        self._scope = scope
        self._colocate = colocate
        self._terms: dict[Tensor, list[Gradient]] = {}
        self._waiting: list[tuple[int, int, Operation]] = []
        self._queued: set[Operation] = set()

    def add(self, tensor: Tensor, gradient: Gradient) -> None:
        """Adds one term to a tensor's gradient."""
        self._terms.setdefault(tensor, []).append(gradient)
        if tensor.op not in self._queued:
            self._queued.add(tensor.op)
            # What is inside uses what is around it, never the other way round.
            inside = self._functions.index(tensor.graph) if tensor.graph in self._functions else len(self._functions)
            heapq.heappush(self._waiting, (inside, -tensor.op.id, tensor.op))

    def total(self, tensor: Tensor) -> Gradient | None:
        """A tensor's gradient so far, as one term: rows if all terms are."""
        terms = self._terms.get(tensor)
        if not terms:
            return None
        if len(terms) > 1:
            rows = [term for term in terms if isinstance(term, IndexedSlices)]
            together = join_slices(rows) if len(rows) == len(terms) else node("AddN", [*map(dense, terms)])
            self._terms[tensor] = terms = [together]
        return terms[0]

    def run(self) -> None:
        """Propagates until nothing waits."""
        while self._waiting:
            *_, operation = heapq.heappop(self._waiting)
            for output in operation.outputs:
                if (
                    output in self._origins
                    and output not in self._stops
                    and (arrived := self.total(output)) is not None
                ):
                    self.add(self._origins[output], arrived)
            if any(tensor in self.reached and tensor not in self._constants for tensor in operation.inputs):
                self._through(operation)

    def _through(self, operation: Operation) -> None:
        gradient = gradient_of(operation)
        if gradient is None:
            return
        with self._surroundings(operation):
            incoming = [None if tensor in self._stops else self.total(tensor) for tensor in operation.outputs]
            if all(arrived is None for arrived in incoming):
                return
            if (
                operation.spec.gradient_passes_on
                and not is_overridden(operation)
                and len(incoming) == len(operation.inputs)
            ):
                found: Sequence[Gradient | None] = incoming
            else:
                found = gradient(operation, tuple(None if each is None else dense(each) for each in incoming))
        assert len(found) == len(operation.inputs), f"{operation.type}: {len(found)} gradients"
        for tensor, own in zip(operation.inputs, found, strict=True):
            if own is not None and tensor in self.reached:
                _check(operation, tensor, own)
                self.add(tensor, own)

    def _forward_reach(self, sources: Sequence[Tensor]) -> set[Tensor]:
        """Tensors that depend on a source."""
        reached = set(sources)
        waiting = list(reached)
        visited: set[Operation] = set()
        while waiting:
            tensor = waiting.pop()
            if tensor in self._constants:
                continue
            fresh = []
            for function in self._functions:
                stand_in = function.stand_in(tensor)
                if stand_in is not None and stand_in not in reached:
                    self._origins[stand_in] = tensor
                    fresh.append(stand_in)
            for consumer in tensor.consumers():
                if consumer not in visited and gradient_of(consumer) is not None:
                    visited.add(consumer)
                    fresh += [output for output in consumer.outputs if output not in reached]
            reached.update(fresh)
            waiting.extend(fresh)
        return reached

    @contextmanager
    def _surroundings(self, operation: Operation) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(self._graph.name_scope(f"{operation.name}_grad"))
            stack.enter_context(self._graph.attribute_scope(gradient_attributes(operation, self._scope)))
            if self._colocate and operation.device:
                stack.enter_context(self._graph.device(operation.device))
            yield


def _enclosing_functions(graph: Graph) -> list[FunctionGraph]:
    """The function graphs that are being built, innermost first."""
    found = []
    while isinstance(graph, FunctionGraph):
        found.append(graph)
        graph = graph.outer_graph
    return found


def _seed(y: Tensor, given: Any, position: int) -> Tensor:
    if given is None:
        if y.dtype.is_complex:
            raise ElementTypeError(f"gradients of the complex {y.name!r} need an explicit grad_ys")
        if not y.dtype.is_floating:
            raise ElementTypeError(f"gradients of {y.name!r}, which is {y.dtype.name}; expected floating point")
        one = constant(1, y.dtype, name=f"grad_ys_{position}")
        return one if y.shape.rank == 0 else node("Fill", [shape_tensor(y), one])
    seed = cast_to(convert_to_tensor(given, preferred_dtype=y.dtype), y.dtype)
    if not seed.shape.is_compatible_with(y.shape):
        raise ShapeError(f"gradients: grad_ys of shape {seed.shape} does not fit {y.name!r} of shape {y.shape}")
    return seed


def _check(operation: Operation, tensor: Tensor, gradient: Gradient) -> None:
    data = tensor.handle_data
    dtype, shape = (tensor.dtype, tensor.shape) if data is None else (data.dtype, data.shape)
    if gradient.dtype is not dtype or not gradient.shape.is_compatible_with(shape):
        raise ShapeError(
            f"the gradient of {operation.describe()} for input {tensor.name!r} is "
            f"{gradient.dtype.name}{gradient.shape}, expected {dtype.name}{shape}"
        )
    if isinstance(gradient, Tensor):
        gradient.set_shape(shape)


def _result(sweep: _Sweep, x: Tensor, unconnected: UnconnectedGradients) -> Gradient | None:
    total = sweep.total(x)
    if total is None and unconnected is UnconnectedGradients.ZERO:
        return node("ZerosLike", [node("ReadVariableOp", [x]) if x.handle_data is not None else x])
    return total


def _differentiable_element(x: Any) -> Tensor:
    """The tensor that a derivative is taken with respect to: for a variable, its handle."""
    handle = getattr(x, "handle", None)
    return handle if isinstance(handle, Tensor) else convert_to_tensor(x)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
