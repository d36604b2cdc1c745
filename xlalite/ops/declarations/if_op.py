"""`If`: one of two functions, by a condition.

If(condition, captures of then..., captures of else...): the outputs are those of the branch that runs, and then, for
gradients, the recorded values of both branches; those of the branch that did not run are zeros.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.function_graph import FunctionGraph, replay_function, trace_function
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.op_execution import run_function_on_host
from xlalite.framework.meaning.variable_use import changed_in
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.declare import declare_outputs
from xlalite.ops.helpers.gradients import UnconnectedGradients, gradients
from xlalite.ops.helpers.indexed_slices import dense
from xlalite.ops.helpers.node import operation
from xlalite.ops.helpers.passed_state import PassedState, is_differentiable, shapes_inside, zeros_for


def _if_infer(op: Operation) -> Sequence[OutputType]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    outputs = []
    for position, (t, e) in enumerate(zip(then_branch.outputs, else_branch.outputs, strict=True)):
        if t.dtype is not e.dtype:
            raise ElementTypeError(f"result {position} is {t.dtype.name} in one branch and {e.dtype.name} in the other")
        shape = t.shape if t.shape == e.shape else _what_both_say(t, e)
        outputs.append((t.dtype, shape))
    return [*outputs, *((tensor.dtype, unknown_shape(tensor.shape.rank)) for tensor in _recorded(op))]


def _recorded(op: Operation) -> tuple[Tensor, ...]:
    return (*op.get_attr("then_branch").recorded, *op.get_attr("else_branch").recorded)


def _what_both_say(t: Tensor, e: Tensor) -> TensorShape:
    if t.shape.dims is None or e.shape.dims is None or len(t.shape.dims) != len(e.shape.dims):
        return unknown_shape()
    return TensorShape([a if a == b else None for a, b in zip(t.shape.dims, e.shape.dims, strict=True)])


def _if_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    split = 1 + len(then_branch.captures)
    runs_then = bool(np.asarray(inputs[0]).all())
    branch, given = (then_branch, inputs[1:split]) if runs_then else (else_branch, inputs[split:])
    found = run_function_on_host(branch, given, context, branch.recorded)
    count = len(branch.outputs)
    other = [_nothing(tensor) for tensor in (else_branch if runs_then else then_branch).recorded]
    return [*found, *other] if runs_then else [*found[:count], *other, *found[count:]]


def _nothing(tensor: Tensor) -> Array:
    """Stands for a recorded value of the branch that did not run; nobody looks at it."""
    return np.zeros((0,) * (tensor.shape.rank or 0), tensor.dtype.numpy_dtype)


def _if_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    b, variables, split = ctx.builder, ctx.variables(op), 1 + len(then_branch.captures)
    sides = [
        _Side(ctx, function, tensors, variables)
        for function, tensors in ((then_branch, op.inputs[1:split]), (else_branch, op.inputs[split:]))
    ]
    changed = changed_in(then_branch) | changed_in(else_branch)
    computations = [
        sides[0].lower(changed, after=sides[1].recorded),
        sides[1].lower(changed, before=sides[0].recorded),
    ]
    shapes = [computation.program_shape.result for computation in computations]
    if not shapes[0].compatible(shapes[1]):
        raise LoweringError(f"{op.describe()}: the branches give {shapes[0].text()} and {shapes[1].text()}")
    result = b.op("conditional", (inputs[0], *(side.operand for side in sides)), None, tuple(computations))
    for place, data in enumerate((data for data, _ in variables if data.name in changed), len(op.outputs)):
        ctx.assign(data, result[place])
    return [result[i] for i in range(len(op.outputs))]


class _Side:
    """One branch while it is lowered: it gives its outputs, what both branches record, and the variables.

    Attributes:
        operand: The tuple that is passed to it.
        recorded: The shapes of what it records; the other branch gives zeros in their place.
    """

    def __init__(
        self,
        ctx: LoweringContext,
        function: FunctionGraph,
        tensors: Sequence[Tensor],
        variables: Sequence[tuple[HandleData, Handle]],
    ) -> None:
        self._ctx = ctx
        self._function = function
        self._layout = PassedState(tensors, variables)
        arrays = [ctx.handle(tensor) for tensor in tensors if not tensor.dtype.is_host_only]
        passed = [*arrays, *(value for _, value in variables)]
        self.operand = ctx.builder.tuple(passed)
        self.recorded: list[Shape] = []
        if function.recorded:
            count = len(function.outputs)
            self.recorded = shapes_inside(ctx, function, self._layout, passed, lambda values: values)[count:]

    def lower(
        self, changed: Container[str], before: Sequence[Shape] = (), after: Sequence[Shape] = ()
    ) -> HloComputation:
        """The computation, with what the other branch records before or after its own, and the changed variables."""
        count = len(self._function.outputs)

        def build(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
            values, inner_variables = self._layout.unpack(parameters[0])
            found = self._ctx.lower_function(inner, self._function, values, inner_variables, self._function.recorded)
            recorded = [*map(inner.zeros, before), *found[count:], *map(inner.zeros, after)]
            return inner.tuple([*found[:count], *recorded, *self._layout.variables_after(inner_variables, changed)])

        return self._ctx.builder.subcomputation(self._function.name, (self.operand.shape,), build)


def _if_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """Another branch on the same condition: each side replays its function and differentiates it."""
    then_branch, else_branch = op.get_attr("then_branch"), op.get_attr("else_branch")
    split = 1 + len(then_branch.captures)
    wanted = [position for position, tensor in enumerate(op.inputs) if position and is_differentiable(tensor)]
    if not wanted:
        return [None] * len(op.inputs)
    count = len(then_branch.outputs)
    arrived = [(position, grad) for position, grad in enumerate(grads[:count]) if grad is not None]

    def side(function: FunctionGraph, own: range, recorded: Sequence[Tensor]) -> FunctionGraph:
        def body(arguments: tuple[Tensor, ...]) -> Sequence[Tensor]:
            inner = get_default_graph()
            inputs = {position: inner.capture(op.inputs[position]) for position in own}
            stand_ins = [*inputs.values(), *map(inner.capture, recorded)]
            known = dict(zip((*function.inputs, *function.recorded), stand_ins, strict=True))
            ys = replay_function(function, [function.outputs[i] for i, _ in arrived], known)
            seeds = [inner.capture(grad) for _, grad in arrived]
            mine = [position for position in wanted if position in own]
            zero = UnconnectedGradients.ZERO
            found = gradients(ys, [inputs[position] for position in mine], seeds, unconnected_gradients=zero)
            own_gradients = {
                i: dense(gradient) for i, gradient in zip(mine, found, strict=True) if gradient is not None
            }
            return [own_gradients[i] if i in own_gradients else zeros_for(op.inputs[i]) for i in wanted]

        return trace_function(f"{function.name}_grad", get_default_graph(), [], body)

    else_records = count + len(then_branch.recorded)
    then_grad = side(then_branch, range(1, split), op.outputs[count:else_records])
    else_grad = side(else_branch, range(split, len(op.inputs)), op.outputs[else_records:])
    inputs = [op.inputs[0], *then_grad.captured, *else_grad.captured]
    results = operation("If", inputs, {"then_branch": then_grad, "else_branch": else_grad}).outputs
    by_position = dict(zip(wanted, results, strict=True))
    return [by_position.get(position) for position in range(len(op.inputs))]


declare_outputs(
    "If",
    ("cond", "input*"),
    _if_infer,
    _if_lower,
    _if_gradient,
    None,
    attrs=("then_branch", "else_branch"),
    host_kernel=_if_on_host,
)
