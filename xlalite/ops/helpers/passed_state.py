"""What loops and branches share: the tuple that they pass on, and which of their inputs a gradient reaches."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.lowering import Variables
from xlalite.hlo.building.builder import Handle
from xlalite.ops.helpers.node import node


class PassedState:
    """How loop variables, captures and variables lie in the tuple that an HLO loop or branch passes on."""

    def __init__(self, tensors: Sequence[Tensor], variables: Sequence[tuple[HandleData, Handle]]) -> None:
        """Lays out the tensors, and behind them the variables."""
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


def is_differentiable(tensor: Tensor) -> bool:
    """Whether a gradient with respect to the tensor, or to the variable behind it, exists."""
    return (tensor.dtype if tensor.handle_data is None else tensor.handle_data.dtype).is_differentiable


def zeros_for(tensor: Tensor) -> Tensor:
    """Zeros of the sizes of the tensor, or of the variable behind it."""
    return node("ZerosLike", [tensor if tensor.handle_data is None else node("ReadVariableOp", [tensor])])
