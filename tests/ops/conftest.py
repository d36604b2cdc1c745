"""Runs graphs without a session: operation by operation, and lowered to one module."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from graphs import needed

import xlalite.ops
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.framework.meaning.host import LocalContext
from xlalite.framework.meaning.lowering import (
    Argument,
    LoweredOperations,
    ParameterArgument,
    VariableArgument,
    lower_operations,
)
from xlalite.framework.meaning.op_execution import run_operation_on_host
from xlalite.framework.meaning.variable_use import begin_states, variables_of
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify
from xlalite.ops.helpers.constant import convert_to_tensor

assert xlalite.ops.functions.operators is not None


class GraphRunner:
    """One session's worth of variables, and two ways to run a graph on them."""

    def __init__(self) -> None:
        self.context = LocalContext()

    def __call__(self, fetches: Any, feeds: Mapping[Tensor, Any] | None = None) -> Any:
        """The values of the fetches, operation by operation."""
        listed = fetches if isinstance(fetches, list) else [fetches]
        elements = [_element(fetch) for fetch in listed]
        values = {tensor: np.asarray(value, tensor.dtype.numpy_dtype) for tensor, value in (feeds or {}).items()}
        for operation in needed(elements, values):
            arguments = [values[tensor] for tensor in operation.inputs]
            values.update(
                zip(operation.outputs, run_operation_on_host(operation, arguments, self.context), strict=True)
            )
        results = [values.get(element) for element in elements]
        return results if isinstance(fetches, list) else results[0]

    def compiled(self, fetches: Sequence[Tensor], feeds: Mapping[Tensor, Any] | None = None) -> list[np.ndarray]:
        """The values of the fetches from one module, evaluated; updates of variables are applied."""
        arrays = {tensor: np.asarray(value, tensor.dtype.numpy_dtype) for tensor, value in (feeds or {}).items()}
        lowered = self.lower(fetches, arrays)
        arguments = [
            arrays[p.tensor] if isinstance(p, ParameterArgument) else self.context.variables[p.data.name]
            for p in lowered.parameters
        ]
        results = evaluate(lowered.module, *arguments)
        for update in lowered.updates:
            self.context.assign_variable(update.data.name, np.asarray(results[update.output_index]))
        return [np.asarray(result) for result in results[: lowered.output_count]]

    def lower(self, fetches: Sequence[Any], arrays: Mapping[Tensor, np.ndarray]) -> LoweredOperations:
        elements = [_element(fetch) for fetch in fetches]
        operations = [op for op in needed(elements, arrays) if op.type != "VarHandleOp"]
        reasons = [why for op in operations if (why := why_not_compilable(op)) is not None]
        assert not reasons, reasons
        arguments: list[Argument] = [
            ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, array.shape)) for tensor, array in arrays.items()
        ]
        begin_states(operations, self.context)
        handles = {data.name: data for op in operations for data in variables_of(op)}
        for name, data in handles.items():
            value = self.context.read_variable(name)
            arguments.append(
                VariableArgument(data, None if value is None else Shape.array(data.dtype.hlo, value.shape))
            )
        lowered = lower_operations(operations, arguments, [e for e in elements if isinstance(e, Tensor)])
        verify(lowered.module)
        return lowered


def _element(fetch: Any) -> Any:
    if isinstance(fetch, IndexedSlices):
        return convert_to_tensor(fetch)
    converter = getattr(fetch, "_as_graph_element", None)
    return converter() if converter is not None else fetch


@pytest.fixture
def run(graph: Graph) -> GraphRunner:
    """Runs elements of `graph`."""
    return GraphRunner()
