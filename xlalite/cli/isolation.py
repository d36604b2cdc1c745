"""Runs each instruction of a module by itself, on the values it has there, to find which go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.backends.base import Backend, CompileOptions
from xlalite.cli.comparison import Bounds, LeafComparison, compare
from xlalite.hlo.building.create import create
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Value

# They name values that exist anyway, or have no meaning outside their module.
_NOT_RUN = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "after-all", "add-dependency"})


@dataclass(frozen=True, slots=True)
class IsolatedRun:
    """One instruction run by itself.

    Attributes:
        instruction: Which.
        comparisons: Its results beside those of the interpreter; empty when it failed.
        error: Why it failed.
    """

    instruction: HloInstruction
    comparisons: tuple[LeafComparison, ...] = ()
    error: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the interpreter gives the same."""
        return not self.error and not any(comparison.wrong for comparison in self.comparisons)

    def __str__(self) -> str:
        lines = [f"{self.instruction!r}:"] + [f"  {comparison}" for comparison in self.comparisons if comparison.wrong]
        return "\n".join([*lines, f"  {self.error}"] if self.error else lines)


def run_isolated(
    module: HloModule, arguments: Sequence[Value], backend: Backend, options: CompileOptions, bounds: Bounds
) -> Iterator[IsolatedRun]:
    """Runs what computes something in the entry computation, operands before their users.

    Raises:
        EvaluationError: The interpreter has no value for an instruction.
    """
    values: dict[HloInstruction, Value] = {}
    for instruction in module.entry_computation.post_order():
        if instruction.opcode == "parameter":
            values[instruction] = arguments[instruction.attrs.number]
            continue
        alone = isolate(instruction)
        operands = [values[operand] for operand in dict.fromkeys(instruction.operands)]
        values[instruction] = evaluate(alone, *operands)
        if instruction.opcode not in _NOT_RUN and not instruction.has_side_effect:
            yield _run(instruction, alone, operands, values[instruction], backend, options, bounds)


def isolate(instruction: HloInstruction) -> HloModule:
    """A module with one instruction, whose operands are the parameters, each once."""
    module = HloModule(instruction.name)
    entry = HloComputation("main")
    operands = {
        operand: entry.add(create("parameter", attrs=ParameterAttrs(number), shape=operand.shape))
        for number, operand in enumerate(dict.fromkeys(instruction.operands))
    }
    copies: dict[HloComputation, HloComputation] = {}

    def copied(computation: HloComputation) -> HloComputation:
        if computation not in copies:
            copies[computation] = module.add(computation.clone(called=copied))
        return copies[computation]

    copy = instruction.clone(
        [operands[operand] for operand in instruction.operands],
        called_computations=[copied(computation) for computation in instruction.called_computations],
    )
    entry.set_root(entry.add(copy))
    module.add(entry, entry=True)
    return module


def _run(
    instruction: HloInstruction,
    alone: HloModule,
    operands: Sequence[Value],
    expected: Value,
    backend: Backend,
    options: CompileOptions,
    bounds: Bounds,
) -> IsolatedRun:
    try:
        found = backend.compile(alone, options)(*operands)
    except XlaliteError as error:
        return IsolatedRun(instruction, error=str(error))
    return IsolatedRun(instruction, tuple(compare(found, expected, instruction.shape, bounds)))
