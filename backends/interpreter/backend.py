"""Executables that evaluate the module as it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from xlalite.backends.arguments import Array, flatten_arguments, nested_value, to_array
from xlalite.backends.base import Backend, CompileOptions, Executable, MemoryAnalysis, StageOutput, checked_stage
from xlalite.backends.compile_report import CompileReport, PhaseClock
from xlalite.hlo.errors import ExecutionError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.surroundings.host_transfers import HostTransfers
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import ProgramShape
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.analysis.cost_analysis import cost_analysis
from xlalite.passes.core.pass_record import PassRecord
from xlalite.passes.dump.dumper import module_dumper

_STAGES = MappingProxyType(
    {
        "hlo-before-optimizations": "HLO as it was given",
        "hlo": "the same: the interpreter runs no passes",
        "hlo-backend": "the same",
    }
)


class InterpreterBackend(Backend):
    """Runs the evaluator."""

    @property
    def name(self) -> str:
        """`interpreter`."""
        return "interpreter"

    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Verifies the module and keeps a copy."""
        verify(module)
        dumper = module_dumper(options.debug, module.name)
        if dumper is not None:
            with dumper:
                dumper.write_given(module)
        return InterpreterExecutable(module.clone())

    @property
    def stages(self) -> Mapping[str, str]:
        """HLO only."""
        return _STAGES

    def compile_to(self, stage: str, module: HloModule, options: CompileOptions) -> StageOutput:
        """The module as it was given."""
        checked_stage(stage, _STAGES, self.name)
        verify(module)
        return StageOutput(module.to_string(options.debug.text_preset))


class InterpreterExecutable(Executable):
    """A module that the evaluator runs."""

    backend_name = "interpreter"

    def __init__(self, module: HloModule) -> None:
        """Takes over the module."""
        self._module = module
        self.name = module.name
        self.function = self.__call__

    @property
    def program_shape(self) -> ProgramShape:
        """Shapes of the parameters and of the result."""
        return self._module.entry_computation.program_shape

    def __call__(self, *arguments: object) -> object:
        """Evaluates the module."""
        name, shapes = self._module.name, self.program_shape.parameters
        leaves = [leaf for shape in shapes for _, leaf in shape.leaves() if leaf.is_array]
        pairs = zip(flatten_arguments(name, arguments, shapes), leaves, strict=True)
        arrays = [to_array(argument, leaf, f"{name}: argument {i}") for i, (argument, leaf) in enumerate(pairs)]
        values = iter(arrays)
        operands = [nested_value(shape, values) for shape in shapes]
        try:
            result = Evaluator().call(self._module.entry_computation, operands)
        except Exception as error:  # custom calls are functions of the user, which may raise anything
            raise ExecutionError(f"{name}: {error}") from error
        return _own(result, arrays)

    def run_on_devices(
        self, arguments: Sequence[Sequence[Any]], *, transfers: Sequence[HostTransfers] = ()
    ) -> tuple[object, ...]:
        """Evaluates the module on devices that take turns."""
        return evaluate_spmd(self._module, arguments, transfers=transfers)

    def as_text(self, stage: str) -> str:
        """The module; it is not optimised."""
        checked_stage(stage, _STAGES, "interpreter")
        return str(self._module)

    def memory_analysis(self) -> MemoryAnalysis:
        """Inputs and outputs; temporaries are NumPy's."""
        shape = self.program_shape
        arguments = sum(parameter.size_bytes for parameter in shape.parameters)
        return MemoryAnalysis(arguments, shape.result.size_bytes, 0, 0, 0, 0, "")

    def cost_analysis(self) -> Mapping[str, float]:
        """Work of the module as given."""
        return cost_analysis(self._module).as_dict()

    @property
    def code_size_bytes(self) -> int:
        """Zero: there is no machine code."""
        return 0

    def decisions(self) -> Sequence[Decision]:
        """None: nothing is decided."""
        return ()

    def pass_records(self) -> Sequence[PassRecord]:
        """None: no pass runs."""
        return ()

    def compile_report(self) -> CompileReport:
        """Time to verify and copy the module."""
        clock = PhaseClock()
        verify(self._module)
        clock.end("verification")
        self._module.clone()
        clock.end("copy")
        return clock.report(self.name)


def _own(value: Value, arguments: Sequence[Array]) -> Value:
    """The value in memory that neither an argument nor a constant shares."""
    if isinstance(value, tuple):
        return tuple(_own(element, arguments) for element in value)
    if not isinstance(value, np.ndarray):
        return value
    is_own = value.flags.writeable and not any(np.may_share_memory(value, argument) for argument in arguments)
    return value if is_own else value.copy()
