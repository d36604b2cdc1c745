"""Tells rounding from bugs: what a program computes in f64, and how far rounding may move each element of it.

Two evaluations that differ are both right when each is as near to the f64 value as rounding lets it be. How near that
is, the program itself is asked: it is evaluated again in f64 with errors of a few units in the last place, of the type
that the program has there, added to every result that this type does not hold exactly. Where such errors are amplified,
or decide a comparison, a conversion to integers or an order, an element moves much; where they cannot matter, it stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.numerics.perturbation import Perturbation, limit_range, ulp
from xlalite.hlo.records import dataclass
from xlalite.hlo.tools.widening import Widened, widen, widen_value
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape

Mask = npt.NDArray[np.bool_]
Distances = npt.NDArray[np.float64]

_AMPLITUDES = (1.0, 2.0, 4.0, 8.0)
_MOST_RUNS = 16
_MARGIN = 2.0
"""A few runs do not find the farthest that an element can go."""
_LAST_PLACES = 4.0
"""Units in the last place that a result may always be off: elementary functions are good to 2."""

# They add up terms, or products of terms, in an order of their own: the terms are perturbed, too. Of a window that
# selects, only what is scattered.
_SUMS = {
    "dot": 0, "ragged-dot": 0, "scaled-dot": 0, "convolution": 0, "reduce": 0, "reduce-window": 0, "scatter": 0,
    "select-and-scatter": 1, "fft": 0, "cholesky": 0, "triangular-solve": 0, "batch-norm-training": 0,
    "batch-norm-inference": 0, "batch-norm-grad": 0, "custom-call": 0, "all-reduce": 0, "reduce-scatter": 0,
}  # fmt: skip
# Functions of these alone choose one of their operands, and round nothing.
_CHOOSES = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "maximum", "minimum", "select", "compare", "clamp",
        "and", "or", "xor", "not", "copy",
    }
)  # fmt: skip

_KEEPS_BITS = frozenset({"select", "copy"})
"""Elementwise, but nothing is computed: the sign of a NaN is that of the operand, too."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the referee says of the elements of an array on which two evaluations differ.

    Attributes:
        rounding: Where both are as near to the f64 value as rounding lets them be.
        found_error: The largest distance of the one from the f64 value, of those elements.
        expected_error: The largest distance of the other.
        spread: The largest distance that rounding was seen to cause.
    """

    rounding: Mask
    found_error: float
    expected_error: float
    spread: float


class Referee:
    """The f64 value of a program for some arguments, and runs with errors to learn how far rounding moves it."""

    def __init__(self, module: HloModule, arguments: Sequence[Value], seed: int = 0) -> None:
        """Evaluates the module as it is, to know how long that takes, and in f64.

        Raises:
            EvaluationError: The module may differ from run to run, or takes many more steps in f64.
        """
        self._widened: Widened = widen(module)
        self._arguments = [widen_value(argument) for argument in arguments]
        self._generator = np.random.default_rng(seed)
        self._shape: Shape = module.entry_computation.root.shape
        counter = _Limited(None)
        counter.run(module.entry_computation, *arguments)
        self._budget = 4 * counter.steps + 1000
        self._runs = 0
        self._values = self._evaluate(0.0)
        self._moved: list[Distances] = [np.zeros(np.shape(value)) for value in self._values]

    def judge(self, leaf: int, found: Array, expected: Array, disputed: Mask) -> Opinion:
        """Says where two evaluations of an array of the result, given by its number, differ by rounding alone."""
        value, dtype = self._values[leaf], list(self._shape.leaves())[leaf][1].dtype
        errors = [distances(widen_array(array), value) for array in (found, expected)]
        while True:
            with np.errstate(all="ignore"):
                margin = _MARGIN if value.dtype.kind in "fc" else 1.0
                allowed = margin * self._moved[leaf] + _LAST_PLACES * ulp(value, dtype)
                rounding = disputed & (errors[0] <= allowed) & (errors[1] <= allowed)
            if self._runs == _MOST_RUNS or bool((rounding == disputed).all()):
                break
            self._run_again()
        spread = self._moved[leaf]
        largest = [float(np.max(each, where=rounding, initial=0.0)) for each in (*errors, spread)]
        return Opinion(rounding, *largest)

    def _run_again(self) -> None:
        amplitude = _AMPLITUDES[self._runs % len(_AMPLITUDES)]
        self._runs += 1
        try:
            values = self._evaluate(amplitude)
        except _TooLong:
            # Rounding decides how often a loop runs, so it decides everything.
            self._moved = [np.full(np.shape(value), np.inf) for value in self._values]
            return
        self._moved = [
            np.maximum(moved, distances(value, middle))
            for moved, value, middle in zip(self._moved, values, self._values, strict=True)
        ]

    def _evaluate(self, amplitude: float) -> list[Array]:
        perturbation = Perturbation(self._generator, amplitude) if amplitude else None
        evaluator = _Wide(self._widened, perturbation, self._budget)
        result = evaluator.run(self._widened.module.entry_computation, *self._arguments)
        return [value for value in _leaves(result) if isinstance(value, np.ndarray)]


def widen_array(array: Array) -> Array:
    """The same numbers in f64 or c128."""
    wide = widen_value(np.asarray(array))
    assert isinstance(wide, np.ndarray), "an array stays one"
    return wide


def distances(one: Array, other: Array) -> Distances:
    """How far numbers are apart: 0 where they are equal or both NaN, infinity where only one is finite."""
    with np.errstate(all="ignore"):
        same = (one == other) | (_is_nan(one) & _is_nan(other))
        if one.dtype.kind in "fc":
            far = np.abs(np.subtract(one, other))
            return np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))
        # Unequal integers of 64 bits may be equal as f64.
        far = np.maximum(np.abs(one.astype(np.float64) - other.astype(np.float64)), 1.0)
        return np.where(same, 0.0, far)


def _is_nan(array: Array) -> Mask:
    return np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, np.bool_)


def _leaves(value: Value) -> Iterator[Value]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


class _TooLong(EvaluationError):
    """More steps were needed than allowed."""


class _Limited(Evaluator):
    """Counts instructions, and stops after so many."""

    def __init__(self, budget: int | None) -> None:
        super().__init__()
        self.steps = 0
        self._budget = budget

    def value_of(self, instruction: HloInstruction, operands: Sequence[Value]) -> Value:
        self.steps += 1
        if self._budget is not None and self.steps > self._budget:
            raise _TooLong(f"evaluating in f64: stopped after {self._budget} steps, the program itself needs far fewer")
        return super().value_of(instruction, operands)


class _Wide(_Limited):
    """Evaluates a widened module within the ranges of the types that it had, with errors if wanted."""

    def __init__(self, widened: Widened, perturbation: Perturbation | None, budget: int) -> None:
        super().__init__(budget)
        self._origins = widened.origins
        self._perturbation = perturbation

    def value_of(self, instruction: HloInstruction, operands: Sequence[Value]) -> Value:
        origin = self._origins.get(instruction)
        first = _SUMS.get(instruction.opcode)
        sums = first is not None and not all(map(_chooses, instruction.called_computations[-1:]))
        if first is not None and not instruction.called_computations:
            sums = True
        if sums and self._perturbation is not None:
            operands = [
                self._perturb_terms(value, self._origins.get(operand)) if position >= (first or 0) else value
                for position, (operand, value) in enumerate(zip(instruction.operands, operands, strict=True))
            ]
        value = super().value_of(instruction, operands)
        computes = instruction.op.is_elementwise and instruction.opcode not in _KEEPS_BITS
        if origin is None or not (sums or computes):
            return value
        return self._rounded(value, origin, operands if instruction.op.is_elementwise else ())

    def _perturb_terms(self, value: Value, origin: Shape | None) -> Value:
        assert self._perturbation is not None, "asked for with errors only"
        if origin is None or not origin.is_array or not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
            return value
        return self._perturbation.of_terms(value, origin.dtype)

    def _rounded(self, value: Value, origin: Shape, operands: Sequence[Value]) -> Value:
        if isinstance(value, tuple):
            return tuple(self._rounded(part, element, ()) for part, element in zip(value, origin.elements, strict=True))
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
            return value
        within = limit_range(value, origin.dtype)
        if self._perturbation is None:
            return within
        arrays = [operand for operand in operands if isinstance(operand, np.ndarray) and operand.dtype == value.dtype]
        return self._perturbation.of_result(within, origin.dtype, arrays)


def _chooses(computation: HloComputation) -> bool:
    return all(instruction.opcode in _CHOOSES for instruction in computation.instructions)
