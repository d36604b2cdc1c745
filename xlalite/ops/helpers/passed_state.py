"""What loops and branches share: the tuple that they pass on, and which of their inputs a gradient reaches."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.lowering import LoweringContext, Variables
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.node import node


class PassedState:
    """How loop variables, captures and variables lie in the tuple that an HLO loop or branch passes on."""

    def __init__(self, tensors: Sequence[Tensor], variables: Sequence[tuple[HandleData, Handle]]) -> None:
        """Lays out the tensors, and behind them the variables."""
        self._is_array = [not tensor.dtype.is_host_only for tensor in tensors]
        self._variables = [data for data, _ in variables]
        self._shapes = [value.shape for _, value in variables]

    def unpack(self, state: Handle) -> tuple[list[Handle | None], Variables]:
        """One entry for each tensor (None for a variable's handle), and the variables."""
        elements = [state[i] for i in range(len(state.shape.elements))]
        arrays = iter(elements)
        values = [next(arrays) if is_array else None for is_array in self._is_array]
        variables = Variables()
        for data in self._variables:
            variables.declare(data, next(arrays))
        return values, variables

    def variables_after(self, variables: Variables, wanted: Container[str] | None = None) -> list[Handle]:
        """The wanted variables (by default all) as a body left them, in the order in which they lie in the tuple.

        Raises:
            LoweringError: one has another shape than before.
        """
        handles = []
        for data, shape in zip(self._variables, self._shapes, strict=True):
            if wanted is not None and data.name not in wanted:
                continue
            value = variables.value(data)
            assert value is not None, "a variable does not lose its value"
            if not value.shape.compatible(shape):
                became = f"is {shape.text()} and becomes {value.shape.text()}"
                raise LoweringError(f"variable {data.name!r} {became} in a loop or branch; compiled ones keep shapes")
            handles.append(value)
        return handles


def shapes_inside(
    ctx: LoweringContext,
    function: FunctionGraph,
    layout: PassedState,
    passed: Sequence[Handle],
    arguments: Callable[[list[Handle | None]], Sequence[Handle | None]],
) -> list[Shape]:
    """The shapes of a body's outputs, and of the values in it that would be others if it ran again.

    The body is lowered once for that, into a computation that is thrown away.

    Args:
        ctx: Where the loop or branch is lowered.
        function: The body.
        layout: Of the tuple that is passed to it.
        passed: The elements of that tuple.
        arguments: Chooses the body's arguments among the values in it.
    """
    builder = Builder("trial")
    values, variables = layout.unpack(builder.parameter(Shape.tuple([each.shape for each in passed])))
    found = ctx.lower_function(builder, function, arguments(values), variables, function.recorded)
    return [each.shape for each in found]


def is_differentiable(tensor: Tensor) -> bool:
    """Whether a gradient with respect to the tensor, or to the variable behind it, exists."""
    return (tensor.dtype if tensor.handle_data is None else tensor.handle_data.dtype).is_differentiable


def zeros_for(tensor: Tensor) -> Tensor:
    """Zeros of the sizes of the tensor, or of the variable behind it."""
    return node("ZerosLike", [tensor if tensor.handle_data is None else node("ReadVariableOp", [tensor])])
