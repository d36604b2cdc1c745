"""Makes a program that shows a fault as small as it can be while the fault stays.

>>> case = shrink(Case(module, arguments), lambda case: run(case) != evaluate(case.module, *case.arguments))
>>> print(case.text())
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.text import format_literal
from xlalite.hlo.tools.shrinking_moves import MOVES, Variant, constants_for_parameters
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify

Fails = Callable[["Case"], bool]

_WEIGHTS = {"parameter": 1, "tuple": 1, "get-tuple-element": 1, "constant": 2}
_OTHERS_WEIGH = 3
_PLAIN_TYPES = ("f32", "s32", "pred")


@dataclass(frozen=True, slots=True)
class Case:
    """A program with arguments.

    Attributes:
        module: The program; never changed.
        arguments: One for each parameter of the entry.
    """

    module: HloModule
    arguments: tuple[Value, ...]

    def text(self) -> str:
        """HLO text that can be read again, and the arguments as comments."""
        parameters = self.module.entry_computation.parameters
        lines = [
            f"// {parameter.name} = {_argument_text(argument, parameter.shape)}"
            for parameter, argument in zip(parameters, self.arguments, strict=True)
        ]
        return "\n".join([self.module.to_string("short_parsable").rstrip(), *lines]) + "\n"


def shrink(case: Case, fails: Fails, most_trials: int = 600) -> Case:
    """The smallest case found that still fails.

    Args:
        case: What fails.
        fails: Whether a case shows the same fault. It may raise XlaliteError for what cannot be run.
        most_trials: How often `fails` is called at most.
    """
    return _Search(fails, most_trials).smallest(case)


class _Search:
    """A greedy search: any variant that is smaller and fails takes the place of the case."""

    def __init__(self, fails: Fails, most_trials: int) -> None:
        self._fails = fails
        self._trials_left = most_trials
        self._tried: set[str] = set()

    def smallest(self, case: Case) -> Case:
        improved = True
        while improved:
            improved = False
            for move in MOVES:
                while (better := self._better(case, move)) is not None:
                    case, improved = better, True
        for variant in constants_for_parameters(case.module, case.arguments):
            candidate = Case(*variant)
            if self._still_fails(candidate):
                case = candidate
        return case

    def _better(self, case: Case, move: Callable[[HloModule, tuple[Value, ...]], Variant]) -> Case | None:
        size = _size(case)
        for variant in move(case.module, case.arguments):
            candidate = Case(*variant)
            if _size(candidate) < size and self._still_fails(candidate):
                return candidate
        return None

    def _still_fails(self, candidate: Case) -> bool:
        if self._trials_left == 0:
            return False
        try:
            verify(candidate.module)
        except XlaliteError:
            return False
        text = candidate.text()
        if text in self._tried:
            return False
        self._tried.add(text)
        self._trials_left -= 1
        try:
            return self._fails(candidate)
        except XlaliteError:
            return False


def _size(case: Case) -> tuple[float, ...]:
    """What is smaller comes first: fewer operations, then elements, then rare types, then odd numbers."""
    instructions = list(case.module.instructions())
    weight = sum(_WEIGHTS.get(one.opcode, _OTHERS_WEIGH) for one in instructions)
    leaves = [leaf for one in instructions for _, leaf in one.shape.leaves() if leaf.is_array]
    elements = sum(leaf.element_count + leaf.rank for leaf in leaves)
    rare = sum(leaf.dtype.value not in _PLAIN_TYPES for leaf in leaves)
    # The first in the list is the plainest.
    plain = sum(_PLAIN_TYPES.index(leaf.dtype.value) for leaf in leaves if leaf.dtype.value in _PLAIN_TYPES[:2])
    text = len(case.module.to_string("short_parsable"))
    return weight, elements, rare, plain, text, sum(map(_oddness, case.arguments))


def _oddness(value: Value) -> float:
    """How far from plain an argument is: 0 for zeros, more for other integers, most for fractions."""
    if isinstance(value, tuple):
        return sum(map(_oddness, value))
    if not isinstance(value, np.ndarray):
        return 0.0
    with np.errstate(all="ignore"):
        wide = value.astype(np.complex128)
        whole = (wide.real == np.rint(wide.real)) & (wide.imag == np.rint(wide.imag))
    return float((wide != 0).sum() + 2 * (~whole).sum())


def _argument_text(value: Value, shape: Shape) -> str:
    return f"{shape.text()} {format_literal(Literal(value, _with_sizes_of(value, shape)))}"


def _with_sizes_of(value: Value, shape: Shape) -> Shape:
    """The shape with the sizes of a value where it has only bounds of them."""
    if isinstance(value, tuple):
        return Shape.tuple(tuple(map(_with_sizes_of, value, shape.elements)))
    return Shape.array(shape.dtype, value.shape) if isinstance(value, np.ndarray) and shape.is_dynamic else shape
