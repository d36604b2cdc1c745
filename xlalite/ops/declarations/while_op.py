"""`While`: a loop whose condition and body are functions.

While(loop variables..., captures of cond..., captures of body...): the outputs are the loop variables, the number of
iterations (int32), and, for gradients, *histories*: what each loop variable was at the start of each iteration, and
what each recorded value of the body was in it, stacked along a new first dimension. A history that nobody reads is
empty and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int32
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.framework.graph.function_graph import FunctionGraph, replay_function, trace_function
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.op_spec import Gradient, OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.op_execution import run_function_on_host
from xlalite.framework.meaning.variable_use import changed_in
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.tensor_lists import carried_shape, is_blank
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import UnconnectedGradients, gradients
from xlalite.ops.helpers.indexed_slices import dense
from xlalite.ops.helpers.loop_bound import find_counter, is_bounded
from xlalite.ops.helpers.loop_snapshots import LoopSnapshots, can_run_again, snapshots_of
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.passed_state import PassedState, is_differentiable, shapes_inside, zeros_for


def _loop_count(op: Operation) -> int:
    return len(op.get_attr("body").outputs)


def _histories_read(op: Operation) -> list[int]:
    """Numbers of the histories that something reads."""
    first = _loop_count(op) + 1
    return [number for number, output in enumerate(op.outputs[first:]) if output.consumers()]


def _while_infer(op: Operation) -> Sequence[OutputType]:
    body: FunctionGraph = op.get_attr("body")
    outputs = []
    for start, argument, result in zip(op.inputs, body.inputs, body.outputs, strict=False):
        if start.dtype is not result.dtype:
            raise ElementTypeError(
                f"a loop variable starts as {start.dtype.name} ({start.name!r}) but the body gives {result.dtype.name}"
            )
        if not argument.shape.is_compatible_with(result.shape):
            raise ShapeError(
                f"a loop variable has shape {argument.shape} ({start.name!r}) but the body gives {result.shape}; "
                "say what stays with shape_invariants"
            )
        outputs.append((start.dtype, carried_shape(start, argument.shape, result.shape)))
    each_time = [*outputs, *((tensor.dtype, tensor.shape) for tensor in body.recorded)]
    histories = [(dtype, TensorShape([None]).concatenate(shape)) for dtype, shape in each_time]
    return [*outputs, (int32, TensorShape([])), *histories]


def _while_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    cond, body = op.get_attr("cond"), op.get_attr("body")
    count = _loop_count(op)
    state = inputs[:count]
    cond_captures = inputs[count : count + len(cond.captures)]
    body_captures = inputs[count + len(cond.captures) :]
    read = _histories_read(op)
    also = body.recorded if any(number >= count for number in read) else ()
    kept: dict[int, list[Array]] = {number: [] for number in read}
    iterations = 0
    while np.asarray(run_function_on_host(cond, (*state, *cond_captures), context)[0]).all():
        found = run_function_on_host(body, (*state, *body_captures), context, also)
        values = (*state, *found[count:])
        for number, history in kept.items():
            history.append(np.asarray(values[number]))
        state = found[:count]
        iterations += 1
    histories = [_stacked(op, number, kept.get(number, [])) for number in range(count + len(body.recorded))]
    finals = [_of_known_shape(value, output) for value, output in zip(state, op.outputs, strict=False)]
    return [*finals, np.asarray(iterations, np.int32), *histories]


def _of_known_shape(value: HostValue, output: Tensor) -> HostValue:
    """A list into which nothing was put, as zeros of the shape that it would have."""
    if isinstance(value, np.ndarray) and is_blank(value.shape) and not output.shape.is_compatible_with(value.shape):
        return np.zeros([size or 0 for size in output.shape.dims or ()], value.dtype)
    return value


def _stacked(op: Operation, number: int, values: list[Array]) -> Array:
    output = op.outputs[_loop_count(op) + 1 + number]
    if not values:
        sizes = [size or 0 for size in output.shape.dims or ()]
        return np.zeros(sizes, output.dtype.numpy_dtype)
    if any(value.shape != values[0].shape for value in values):
        shapes = f"{list(values[0].shape)} and {list(next(v.shape for v in values if v.shape != values[0].shape))}"
        message = f"the gradient of a loop needs values of one size, found {shapes} for {output.name!r}"
        raise InvalidArgumentError(None, op, message)
    return np.stack(values)


def _while_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    cond, body = op.get_attr("cond"), op.get_attr("body")
    b, count, first_body_capture = ctx.builder, _loop_count(op), _loop_count(op) + len(cond.captures)
    variables = ctx.variables(op)
    layout = PassedState(op.inputs, variables)
    arrays = [ctx.handle(tensor) for tensor in op.inputs if not tensor.dtype.is_host_only]
    read = _histories_read(op)

    def body_arguments(values: list[Handle | None]) -> list[Handle | None]:
        return [*values[:count], *values[first_body_capture:]]

    each_time = [array.shape for array in arrays[:count]]
    if any(map(is_blank, (shape.dims for shape in each_time))) or any(number >= count for number in read):
        held = [*arrays, *(value for _, value in variables)]
        inside = shapes_inside(ctx, body, layout, held, body_arguments)
        # A list that waits for the shape of its elements has that which the body gives.
        for place in [place for place, shape in enumerate(each_time) if is_blank(shape.dims)]:
            arrays[place] = b.zeros(inside[place])
        each_time = [*(array.shape for array in arrays[:count]), *inside[count:]]
    passed = [*arrays, *(value for _, value in variables)]
    # A row at the least: what reads a history asks for one even in a loop that never runs.
    capacity = max(1, _capacity(ctx, op)) if read else 0
    rows = [b.full(0, each_time[number].dtype, (capacity, *each_time[number].dims)) for number in read]
    start = b.tuple([*passed, b.constant(0, HloDType.S32), *rows])

    def condition_of(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        values, inner_variables = layout.unpack(parameters[0])
        return ctx.lower_function(inner, cond, values[:first_body_capture], inner_variables)[0]

    def body_of(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        state = parameters[0]
        values, inner_variables = layout.unpack(state)
        recorded = body.recorded if len(each_time) > count else ()
        found = ctx.lower_function(inner, body, body_arguments(values), inner_variables, recorded)
        _check_invariant(op, start, found[:count])
        kept = [state[i] for i in range(count, len(arrays))]
        iteration = state[len(passed)]
        before = [*(state[i] for i in range(count)), *found[count:]]
        histories = [
            _with_row(inner, state[len(passed) + 1 + place], before[number], iteration)
            for place, number in enumerate(read)
        ]
        return inner.tuple([*found[:count], *kept, *layout.variables_after(inner_variables), iteration + 1, *histories])

    called = (
        b.subcomputation(f"{body.name}_condition", (start.shape,), condition_of),
        b.subcomputation(f"{body.name}_body", (start.shape,), body_of),
    )
    result = b.op("while", (start,), None, called)
    changed = changed_in(body)
    for place, (data, _) in enumerate(variables, len(arrays)):
        if data.name in changed:
            ctx.assign(data, result[place])
    found = {number: result[len(passed) + 1 + place] for place, number in enumerate(read)}
    histories = [
        found[number] if number in found else _empty_history(b, op.outputs[count + 1 + number])
        for number in range(count + len(body.recorded))
    ]
    return [*(result[i] for i in range(count)), result[len(passed)], *histories]


def _empty_history(b: Builder, history: Tensor) -> Handle:
    """Stands for a history that nobody looks at."""
    return b.full(0, history.dtype.hlo, [size or 0 for size in history.shape.dims or (0,)])


def _capacity(ctx: LoweringContext, op: Operation) -> int:
    counter = find_counter(op)
    assert counter is not None, "a loop without a counter is not compiled when its histories are read"
    return counter.bound(ctx)


def _with_row(b: Builder, history: Handle, value: Handle, row: Handle) -> Handle:
    zero = b.constant(0, HloDType.S32)
    update = b.reshape(value, (1, *value.dims))
    return b.op("dynamic-update-slice", (history, update, row, *[zero] * len(value.dims)))


def _check_invariant(op: Operation, start: Handle, results: Sequence[Handle]) -> None:
    for position, result in enumerate(results):
        expected = start.shape.elements[position]
        if not result.shape.compatible(expected):
            raise LoweringError(
                f"{op.describe()}: loop variable {position} starts as {expected.text()} and the body gives "
                f"{result.shape.text()}; compiled loops keep shapes"
            )


def _counting_inputs(op: Operation) -> Sequence[int]:
    counter = find_counter(op) if _histories_read(op) else None
    return counter.positions if counter is not None and counter.operation is op else ()


def _why_not_compilable(op: Operation) -> str | None:
    changed = changed_in(op.get_attr("cond"))
    if changed:
        return f"its condition assigns a variable ({next(iter(changed))!r})"
    if _histories_read(op) and find_counter(op) is None:
        return "its gradient needs a limit on the iterations that is known; give maximum_iterations"
    return None


# The gradient goes through the iterations backwards: each replays the body on what it started from.


def _while_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    count = _loop_count(op)
    first_body_capture = count + len(op.get_attr("cond").captures)
    variables = [number for number in range(count) if is_differentiable(op.inputs[number])]
    captures = [i for i in range(first_body_capture, len(op.inputs)) if is_differentiable(op.inputs[i])]
    if not variables:
        return [None] * len(op.inputs)
    of_results = [zeros_for(op.outputs[i]) if (grad := grads[i]) is None else grad for i in variables]
    of_captures = [zeros_for(op.inputs[i]) for i in captures]
    starts = [op.outputs[count] - 1, *of_results, *of_captures]
    signature = [(start.dtype, start.shape) for start in starts]
    signature[1 : 1 + len(variables)] = [(op.outputs[i].dtype, op.outputs[i].shape) for i in variables]

    snapshots = None if is_bounded(op) or not can_run_again(op) else snapshots_of(op)

    def condition(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        return [node("GreaterEqual", [arguments[0], constant(0)])]

    def step(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
        iteration, seeds, sums = arguments[0], arguments[1 : 1 + len(variables)], arguments[1 + len(variables) :]
        known = _at_iteration(op, iteration, variables, snapshots)
        body: FunctionGraph = op.get_attr("body")
        ys = replay_function(body, [body.outputs[i] for i in variables], known)
        xs = [known[body.inputs[i]] for i in variables]
        xs += [get_default_graph().capture(op.inputs[i]) for i in captures]
        # What computes the state once more is not part of this iteration.
        found = gradients(
            ys,
            xs,
            list(seeds),
            stop_gradients=[known[each] for each in body.inputs[:count] if each in known],
            unconnected_gradients=UnconnectedGradients.ZERO,
        )
        steps = [_required(each) for each in found[: len(variables)]]
        for place, number in enumerate(variables):
            of_history = grads[count + 1 + number]
            if of_history is not None:
                steps[place] += _row(of_history, iteration, op.outputs[number].shape)
        totals = [_added(total, each) for total, each in zip(sums, found[len(variables) :], strict=True)]
        return [iteration - 1, *steps, *totals]

    name = op.get_attr("body").name
    cond_graph = trace_function(f"{name}_grad_cond", get_default_graph(), signature, condition)
    body_graph = trace_function(f"{name}_grad_body", get_default_graph(), signature, step)
    body_graph.drop_unused()
    inputs = [*starts, *cond_graph.captured, *body_graph.captured]
    results = operation("While", inputs, {"cond": cond_graph, "body": body_graph}).outputs[1 : len(starts)]
    by_position = dict(zip([*variables, *captures], results, strict=True))
    return [by_position.get(position) for position in range(len(op.inputs))]


def _at_iteration(
    op: Operation, iteration: Tensor, variables: Sequence[int], snapshots: LoopSnapshots | None
) -> dict[Tensor, Tensor]:
    """What stands for the inputs and the recorded values of the body when it is replayed for one iteration."""
    body: FunctionGraph = op.get_attr("body")
    count, graph = _loop_count(op), get_default_graph()
    first_capture = count + len(op.get_attr("cond").captures)
    if snapshots is not None:
        known = dict(zip(body.inputs, snapshots.at(iteration), strict=False))
    else:
        each_time = (*body.inputs[:count], *body.recorded)
        wanted = {*body.sources_of(body.outputs[i] for i in variables), *(body.inputs[i] for i in variables)}
        known = {
            tensor: _row(op.outputs[count + 1 + number], iteration, tensor.shape)
            for number, tensor in enumerate(each_time)
            if tensor in wanted
        }
    for number, tensor in enumerate(body.inputs[count:]):
        known[tensor] = graph.capture(op.inputs[first_capture + number])
    return known


def _row(history: Tensor, iteration: Tensor, shape: TensorShape) -> Tensor:
    row = node("GatherV2", [history, iteration, constant(0)])
    row.set_shape(shape)
    return row


def _added(total: Tensor, gradient: Gradient | None) -> Tensor:
    """A sum with one more term, which touches only the rows that the term has."""
    if isinstance(gradient, IndexedSlices):
        rows = node("ExpandDims", [gradient.indices, constant(-1)])
        return node("TensorScatterAdd", [total, rows, gradient.values])
    result: Tensor = total + _required(gradient)
    return result


def _required(gradient: Gradient | None) -> Tensor:
    assert gradient is not None, "unconnected gradients are zeros"
    return dense(gradient)


register(
    OpSpec(
        "While",
        _while_infer,
        inputs=("input*",),
        attrs=("cond", "body"),
        lower=_while_lower,
        host_kernel=_while_on_host,
        gradient=_while_gradient,
        group=None,
        further_constant_inputs=_counting_inputs,
        why_not_compilable=_why_not_compilable,
    )
)
