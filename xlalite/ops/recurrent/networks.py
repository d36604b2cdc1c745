"""Loops over time: recurrent networks in both directions, unrolled or as one loop of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype, int32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import (
    concat,
    gather,
    reshape,
    reverse,
    reverse_sequence,
    shape,
    stack,
    transpose,
    unstack,
    where_v2,
    zeros_like,
)
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.math import logical_not, reduce_all
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.recurrent.cell import RNNCell, sizes_of, zeros_of
from xlalite.ops.recurrent.time_steps import TimeSteps, inside
from xlalite.ops.training.variable_scope import variable_scope


def dynamic_rnn(
    cell: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Runs a cell over time, as one loop of the graph.

    Args:
        cell: The cell.
        inputs: `[batch, time, ...]`, or `[time, batch, ...]`, or a structure of such tensors.
        sequence_length: `[batch]`; behind its end a sequence puts out zeros and its state stays.
        initial_state: The state at the start; zeros by default.
        dtype: Element type of the zeros; that of the inputs by default.
        parallel_iterations: Accepted for compatibility.
        swap_memory: Accepted for compatibility.
        time_major: Whether inputs and outputs have the time in their first dimension.
        scope: Variable scope; `rnn` by default.

    Returns:
        The outputs of all steps, and the last state.

    Raises:
        GraphError: there is neither an initial state nor an element type.
        ShapeError: the rank of the inputs is not known or less than 2.
    """
    with variable_scope(scope or "rnn"):
        leaves, structure = flatten(inputs)
        tensors = [convert_to_tensor(leaf) for leaf in leaves]
        if any(tensor.shape.rank is None or tensor.shape.rank < 2 for tensor in tensors):
            raise ShapeError(f"dynamic_rnn: inputs have shape {tensors[0].shape}; expected a known rank of 2 or more")
        by_time = tensors if time_major else [turned(tensor) for tensor in tensors]
        count, batch = _size(by_time, 0), _size(by_time, 1)
        if initial_state is None:
            wanted = as_dtype(dtype) if dtype is not None else tensors[0].dtype
            initial_state = cell.zero_state(_known(by_time, 1) or batch, wanted)
        lengths = None if sequence_length is None else cast_to(convert_to_tensor(sequence_length), int32)
        outputs, state = _loop(cell, by_time, structure, initial_state, lengths, count, batch)
        if not time_major:
            results, around = flatten(outputs)
            outputs = rebuild(around, [turned(each) for each in results])
        return outputs, state


def _loop(
    cell: RNNCell,
    inputs: Sequence[Tensor],
    structure: Any,
    initial_state: Any,
    lengths: Tensor | None,
    count: Tensor,
    batch: Tensor,
) -> tuple[Any, Any]:
    starts, state_structure = flatten(initial_state)
    states = [convert_to_tensor(each) for each in starts]
    sizes, output_structure = sizes_of(cell.output_size)
    arrays = [TensorArray(states[0].dtype, count) for _ in sizes]
    outside = get_default_graph()

    def step(time: Tensor, written: Sequence[TensorArray], carried: Sequence[Tensor]) -> Any:
        given = rebuild(structure, [gather(each, time) for each in inputs])
        with inside(TimeSteps(outside, time, count, batch)):
            output, following = cell(given, rebuild(state_structure, carried))
        results = [convert_to_tensor(each) for each in flatten(output)[0]]
        new = [convert_to_tensor(each) for each in flatten(following)[0]]
        if len(new) != len(carried):
            raise GraphError(f"{cell.name}: the state has {len(carried)} parts and becomes one of {len(new)}")
        if lengths is not None:
            results = [_where_running(time, lengths, each, zeros_like(each)) for each in results]
            new = [_where_running(time, lengths, each, old) for each, old in zip(new, carried, strict=True)]
        arrays = [array.write(time, each) for array, each in zip(written, results, strict=True)]
        return time + 1, arrays, new

    _, done, last = while_loop(lambda time, *_: time < count, step, [constant(0, int32), arrays, states])
    outputs = [array.stack() for array in done]
    for output, own in zip(outputs, sizes, strict=True):
        output.set_shape([_known(inputs, 0), _known(inputs, 1), *own])
    return rebuild(output_structure, outputs), rebuild(state_structure, last)


def _where_running(time: Tensor, lengths: Tensor, running: Tensor, finished: Tensor) -> Tensor:
    """One thing for sequences that go on at a time, another for those that are over."""
    if running.shape.rank is None:
        raise ShapeError("sequence_length needs outputs and states of known rank")
    runs = reshape(time < lengths, [-1, *[1] * (running.shape.rank - 1)])
    return where_v2(runs, running, finished)


def turned(tensor: Tensor) -> Tensor:
    """Batch and time exchanged."""
    rank = tensor.shape.rank
    assert rank is not None, "it was checked"
    return transpose(tensor, [1, 0, *range(2, rank)])


def _known(tensors: Sequence[Tensor], axis: int) -> int | None:
    found = [tensor.shape.as_list()[axis] for tensor in tensors]
    return next((size for size in found if size is not None), None)


def _size(tensors: Sequence[Tensor], axis: int) -> Tensor:
    known = _known(tensors, axis)
    size: Tensor = constant(known, int32) if known is not None else shape(tensors[0])[axis]
    return size


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Two cells over time, one of which goes backwards; gives both outputs and both last states."""
    with variable_scope(scope or "bidirectional_rnn"):
        forwards, last = dynamic_rnn(
            cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope="fw"
        )
        time, batch = (0, 1) if time_major else (1, 0)

        def turned(tensor: Any) -> Tensor:
            if sequence_length is None:
                return reverse(tensor, [time])
            return reverse_sequence(tensor, sequence_length, time, batch)

        leaves, structure = flatten(inputs)
        from_end = rebuild(structure, [turned(leaf) for leaf in leaves])
        backwards, first = dynamic_rnn(
            cell_bw, from_end, sequence_length, initial_state_bw, dtype, time_major=time_major, scope="bw"
        )
        results, around = flatten(backwards)
        return (forwards, rebuild(around, [turned(each) for each in results])), (last, first)


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs, one step after the other in the graph; gives a list of outputs and the state.

    Raises:
        GraphError: there are no inputs, or neither an initial state nor an element type.
    """
    if not inputs:
        raise GraphError("static_rnn: there are no inputs")
    with variable_scope(scope or "rnn"):
        first = convert_to_tensor(flatten(inputs[0])[0][0])
        if initial_state is None:
            if dtype is None:
                raise GraphError("static_rnn: without an initial_state there must be a dtype")
            initial_state = cell.zero_state(first.shape.as_list()[0] or shape(first)[0], as_dtype(dtype))
        lengths = None if sequence_length is None else cast_to(convert_to_tensor(sequence_length), int32)
        state, outputs = initial_state, []
        for time, given in enumerate(inputs):
            output, following = cell(given, state)
            if lengths is not None:
                output, following = _finished(constant(time, int32), lengths, output, following, state)
            outputs.append(output)
            state = following
        return outputs, state


def _finished(time: Tensor, lengths: Tensor, output: Any, following: Any, state: Any) -> tuple[Any, Any]:
    """Output and next state of a step, where sequences that are over give zeros and keep their state."""
    results, around = flatten(output)
    new, structure = flatten(following)
    old = flatten(state)[0]
    shown = [_where_running(time, lengths, each, zeros_like(each)) for each in results]
    kept = [_where_running(time, lengths, *pair) for pair in zip(new, map(convert_to_tensor, old), strict=True)]
    return rebuild(around, shown), rebuild(structure, kept)


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Two cells over a list of inputs, one of which goes backwards; gives joined outputs and both last states."""
    with variable_scope(scope or "bidirectional_rnn"):
        forwards, last = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, "fw")
        from_end = _reversed(inputs, sequence_length)
        backwards, first = static_rnn(cell_bw, from_end, initial_state_bw, dtype, sequence_length, "bw")
        pairs = zip(forwards, _reversed(backwards, sequence_length), strict=True)
        return [concat(list(pair), 1) for pair in pairs], last, first


def _reversed(steps: Sequence[Any], lengths: Any) -> list[Any]:
    if lengths is None:
        return list(steps)[::-1]
    turned = reverse_sequence(stack(list(steps)), lengths, 0, 1)
    return unstack(turned, len(steps))


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[RNNCell],
    cells_bw: Sequence[RNNCell],
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Networks in both directions one above the other; gives the highest outputs, joined, and the states of each."""
    states_fw, states_bw, layer = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (forwards, backwards) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{number}"):
                outputs, (last, first) = bidirectional_dynamic_rnn(
                    forwards,
                    backwards,
                    layer,
                    sequence_length,
                    None if initial_states_fw is None else initial_states_fw[number],
                    None if initial_states_bw is None else initial_states_bw[number],
                    dtype,
                    time_major=time_major,
                )
            layer = concat(list(outputs), 2)
            states_fw.append(last)
            states_bw.append(first)
    return layer, tuple(states_fw), tuple(states_bw)


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[TensorArray, Any, Any]:
    """Runs a cell as long as a function says, which chooses inputs and states; gives outputs, last state, loop state.

    `loop_fn(time, cell_output, cell_state, loop_state)` gives `(finished, next_input, next_state, emit_output,
    next_loop_state)`; before the first step its output and states are None. Where a sequence has finished its state
    stays and its output is zero.
    """
    with variable_scope(scope or "rnn"):
        time = constant(0, int32)
        finished, given, state, emitted, loop_state = loop_fn(time, None, None, None)
        states, state_structure = flatten(state)
        inputs, input_structure = flatten(given)
        extra, extra_structure = flatten(loop_state)
        first = convert_to_tensor(inputs[0])
        batch = first.shape.as_list()[0] or shape(first)[0]
        if emitted is None:
            sizes, output_structure = sizes_of(cell.output_size)
            zeros = [zeros_of(batch, own, convert_to_tensor(states[0]).dtype) for own in sizes]
        else:
            leaves, output_structure = flatten(emitted)
            zeros = [zeros_of(batch, tuple(leaf.shape.known_dims()), leaf.dtype) for leaf in leaves]
        arrays = [TensorArray(each.dtype, 0, dynamic_size=True) for each in zeros]

        def step(now: Tensor, done: Tensor, current: Any, own: Any, written: Any, more: Any) -> Any:
            before = rebuild(state_structure, own)
            output, following = cell(rebuild(input_structure, current), before)
            over, upcoming, new, emit, rest = loop_fn(
                now + 1, output, following, rebuild(extra_structure, more) if more else loop_state
            )
            kept = [_where_over(done, b, a) for a, b in zip(flatten(new)[0], own, strict=True)]
            shown = [_where_over(done, b, a) for a, b in zip(flatten(emit)[0], zeros, strict=True)]
            arrays = [array.write(now, each) for array, each in zip(written, shown, strict=True)]
            return now + 1, done | over, flatten(upcoming)[0], kept, arrays, flatten(rest)[0] if more else more

        variables = [time, convert_to_tensor(finished), inputs, states, arrays, extra]
        results = while_loop(lambda now, done, *_: _some_run(done), step, variables)
        outputs = results[4]
        return (
            rebuild(output_structure, outputs),
            rebuild(state_structure, results[3]),
            rebuild(extra_structure, results[5]) if extra else loop_state,
        )


def _where_over(over: Tensor, finished: Any, running: Any) -> Tensor:
    tensor = convert_to_tensor(running)
    if tensor.shape.rank is None:
        raise ShapeError("raw_rnn needs outputs and states of known rank")
    return where_v2(reshape(over, [-1, *[1] * (tensor.shape.rank - 1)]), finished, tensor)


def _some_run(done: Tensor) -> Tensor:
    return logical_not(reduce_all(done))
