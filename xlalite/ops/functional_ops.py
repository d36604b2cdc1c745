"""Loops and branches whose bodies are functions: `While` and `If`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.default_graph import get_default_graph
from xlalite.framework.errors import ElementTypeError
from xlalite.framework.function_graph import FunctionGraph, inline_function, trace_function
from xlalite.framework.host import HostContext, HostValue
from xlalite.framework.lowering import LoweringContext, Variables
from xlalite.framework.op_execution import run_function_on_host
from xlalite.framework.op_spec import OpSpec, OutputType, register
from xlalite.framework.operation import Operation
from xlalite.framework.tensor import HandleData, Tensor
from xlalite.framework.tensor_shape import TensorShape, unknown_shape
from xlalite.hlo.builder import Builder, Handle
from xlalite.hlo.computation import HloComputation
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.hlo.shape import Shape
from xlalite.ops.gradients import UnconnectedGradients, gradients
from xlalite.ops.node import node, operation

# While(loop variables..., captures of cond..., captures of body...): outputs are the loop variables.


def _loop_count(op: Operation) -> int:
    return len(op.get_attr("body").outputs)


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
        outputs.append((start.dtype, argument.shape))
    return outputs


def _while_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    cond, body = op.get_attr("cond"), op.get_attr("body")
    count = _loop_count(op)
    state = inputs[:count]
    cond_captures = inputs[count : count + len(cond.captures)]
    body_captures = inputs[count + len(cond.captures) :]
    while np.asarray(run_function_on_host(cond, (*state, *cond_captures), context)[0]).all():
        state = run_function_on_host(body, (*state, *body_captures), context)
    return state


class _State:
    """How loop variables, captures and variables lie in the tuple that an HLO loop or branch passes on."""

    def __init__(self, tensors: Sequence[Tensor], variables: Sequence[tuple[HandleData, Handle]]) -> None:
        self._is_array = [not tensor.dtype.is_host_only for tensor in tensors]
        self._variables = [data for data, _ in variables]

    def unpack(self, state: Handle) -> tuple[list[Handle | None], Variables]:
        """One entry for each tensor (None for a variable's handle), and the variables."""
        elements = [state[i] for i in range(len(state.shape.elements))]
        arrays = iter(elements)
        values = [next(arrays) if is_array else None for is_array in self._is_array]
        variables = Variables()
        for data in self._variables:
            variables.declare(data, next(arrays))
        return values, variables


def _while_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    cond, body = op.get_attr("cond"), op.get_attr("body")
    b, count, first_body_capture = ctx.builder, _loop_count(op), _loop_count(op) + len(cond.captures)
    variables = ctx.variables()
    layout = _State(op.inputs, variables)
    start = b.tuple([*inputs, *(value for _, value in variables)])

    def condition_of(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        values, inner_variables = layout.unpack(parameters[0])
        return ctx.lower_function(inner, cond, values[:first_body_capture], inner_variables)[0]

    def body_of(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        values, inner_variables = layout.unpack(parameters[0])
        arguments = [*values[:count], *values[first_body_capture:]]
        results = ctx.lower_function(inner, body, arguments, inner_variables)
        _check_invariant(op, start, results)
        kept = [parameters[0][i] for i in range(count, len(start.shape.elements))]
        return inner.tuple([*results, *kept])

    name = body.name
    state = start.shape
    result = b.op(
        "while",
        (start,),
        None,
        (
            b.subcomputation(f"{name}_condition", (state,), condition_of),
            b.subcomputation(f"{name}_body", (state,), body_of),
        ),
    )
    return [result[i] for i in range(count)]


def _check_invariant(op: Operation, start: Handle, results: Sequence[Handle]) -> None:
    for position, result in enumerate(results):
        expected = start.shape.elements[position]
        if not result.shape.compatible(expected):
            raise LoweringError(
                f"{op.describe()}: loop variable {position} starts as {expected.text()} and the body gives "
                f"{result.shape.text()}; compiled loops keep shapes"
            )


register(
    OpSpec(
        "While",
        _while_infer,
        inputs=("input*",),
        attrs=("cond", "body"),
        lower=_while_lower,
        host_kernel=_while_on_host,
    )
)


# If(condition, captures of then..., captures of else...).


def _if_infer(op: Operation) -> Sequence[OutputType]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    outputs = []
    for position, (t, e) in enumerate(zip(then_branch.outputs, else_branch.outputs, strict=True)):
        if t.dtype is not e.dtype:
            raise ElementTypeError(f"result {position} is {t.dtype.name} in one branch and {e.dtype.name} in the other")
        shape = t.shape if t.shape == e.shape else _what_both_say(t, e)
        outputs.append((t.dtype, shape))
    return outputs


def _what_both_say(t: Tensor, e: Tensor) -> TensorShape:
    if t.shape.dims is None or e.shape.dims is None or len(t.shape.dims) != len(e.shape.dims):
        return unknown_shape()
    return TensorShape([a if a == b else None for a, b in zip(t.shape.dims, e.shape.dims, strict=True)])


def _if_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    split = 1 + len(then_branch.captures)
    if np.asarray(inputs[0]).all():
        return run_function_on_host(then_branch, inputs[1:split], context)
    return run_function_on_host(else_branch, inputs[split:], context)


def _if_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    b, variables, split = ctx.builder, ctx.variables(), 1 + len(then_branch.captures)
    operands, computations = [], []
    for function, tensors in ((then_branch, op.inputs[1:split]), (else_branch, op.inputs[split:])):
        layout = _State(tensors, variables)
        arrays = [ctx.handle(tensor) for tensor in tensors if not tensor.dtype.is_host_only]
        operand = b.tuple([*arrays, *(value for _, value in variables)])
        operands.append(operand)
        computations.append(_branch(ctx, function, layout, operand.shape))
    shapes = [computation.program_shape.result for computation in computations]
    if not shapes[0].compatible(shapes[1]):
        raise LoweringError(f"{op.describe()}: the branches give {shapes[0].text()} and {shapes[1].text()}")
    result = b.op("conditional", (inputs[0], *operands), None, tuple(computations))
    return [result[i] for i in range(len(op.outputs))]


def _branch(ctx: LoweringContext, function: FunctionGraph, layout: _State, state: Shape) -> HloComputation:
    def build(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        values, inner_variables = layout.unpack(parameters[0])
        return inner.tuple(ctx.lower_function(inner, function, values, inner_variables))

    return ctx.builder.subcomputation(function.name, (state,), build)


def _if_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """Another branch on the same condition: each side runs its function again and differentiates it."""
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    split = 1 + len(then_branch.captures)
    wanted = [position for position, tensor in enumerate(op.inputs) if position and _is_differentiable(tensor)]
    if not wanted:
        return [None] * len(op.inputs)
    arrived = [(position, grad) for position, grad in enumerate(grads) if grad is not None]

    def side(function: FunctionGraph, own: range) -> FunctionGraph:
        def body(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
            inner = get_default_graph()
            inputs = {position: inner.capture(op.inputs[position]) for position in own}
            outputs = inline_function(function, list(inputs.values()))
            ys, seeds = [outputs[i] for i, _ in arrived], [inner.capture(grad) for _, grad in arrived]
            mine = [position for position in wanted if position in own]
            zero = UnconnectedGradients.ZERO
            found = gradients(ys, [inputs[position] for position in mine], seeds, unconnected_gradients=zero)
            by_position = dict(zip(mine, found, strict=True))
            return [_given_or_zeros(by_position.get(i), inner.capture(op.inputs[i])) for i in wanted]

        return trace_function(f"{function.name}_grad", op.graph, [], body)

    then_grad = side(then_branch, range(1, split))
    else_grad = side(else_branch, range(split, len(op.inputs)))
    inputs = [op.inputs[0], *then_grad.captured, *else_grad.captured]
    results = operation("If", inputs, {"then_branch": then_grad, "else_branch": else_grad}).outputs
    by_position = dict(zip(wanted, results, strict=True))
    return [by_position.get(position) for position in range(len(op.inputs))]


def _given_or_zeros(gradient: Tensor | None, tensor: Tensor) -> Tensor:
    if gradient is not None:
        return gradient
    return node("ZerosLike", [tensor if tensor.handle_data is None else node("ReadVariableOp", [tensor])])


def _is_differentiable(tensor: Tensor) -> bool:
    return (tensor.dtype if tensor.handle_data is None else tensor.handle_data.dtype).is_differentiable


register(
    OpSpec(
        "If",
        _if_infer,
        inputs=("cond", "input*"),
        attrs=("then_branch", "else_branch"),
        lower=_if_lower,
        host_kernel=_if_on_host,
        gradient=_if_gradient,
    )
)
