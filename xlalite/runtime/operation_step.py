"""Steps that run one operation by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.host import HostValue
from xlalite.framework.meaning.op_execution import run_operation_on_host
from xlalite.runtime.trace import StepTrace, tensor_label
from xlalite.runtime.variables import VariableStore

PlanRegisters: TypeAlias = "list[HostValue | None]"


class PlanStep(Protocol):
    """One step of a plan: reads registers, writes registers."""

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Runs the step; with `trace`, also records what it did."""
        ...


class OperationStep:
    """Runs one operation on the host.

    Attributes:
        operation: The operation.
    """

    __slots__ = ("_inputs", "_kernel", "_outputs", "operation")

    def __init__(self, operation: Operation, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.operation = operation
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._kernel = operation.spec.host_kernel

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Computes the outputs."""
        start = trace.now() if trace is not None else 0
        inputs = tuple([registers[number] for number in self._inputs])
        operation = self.operation
        results: Sequence[HostValue]
        if self._kernel is not None:
            results = self._kernel(store, operation, inputs)  # type: ignore[arg-type]  # producers ran before
        else:
            results = run_operation_on_host(operation, inputs, store)  # type: ignore[arg-type]  # as above
        for number, result in zip(self._outputs, results, strict=True):
            registers[number] = result
        if trace is not None:
            labels = [tensor_label(tensor) for tensor in operation.inputs]
            trace.record(operation.name, operation.type, labels, start, results)


class ReleaseStep:
    """Empties registers that no later step reads, so that their memory can be used again."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = tuple(numbers)

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Empties the registers."""
        for number in self._numbers:
            registers[number] = None
