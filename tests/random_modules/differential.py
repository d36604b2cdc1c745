"""Runs random modules on cpu and in the interpreter, and says where they differ by more than rounding.

`PYTHONPATH=tests python -m random_modules FIRST COUNT` does so for the modules of a range of seeds. Before each it
writes the seed to standard error, so that the last line names the module that brought the process down.
"""

from __future__ import annotations

import random
import re

import numpy as np

from random_modules.growing import make_random_module
from random_modules.values import MODEST_FLOATS, make_random_arguments
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.cli.comparison import Bounds, LeafComparison, compare
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.tools.referee import Referee
from xlalite.hlo.tools.shrinking import Case, shrink
from xlalite.hlo.types.literal import Value
from xlalite.hlo.verification.verifier import verify

# Modules are small and many: what compiles them is not worth keeping.
OPTIONS = CompileOptions(use_cache=False, num_threads=1)


def make_case(seed: int) -> Case:
    """The case of a seed; every third has special numbers among its arguments."""
    chance = random.Random(seed)
    module = make_random_module(chance, chance.randint(2, 8))
    verify(module)
    special = 0.2 if seed % 3 == 0 and not _multiplies_complex_numbers(module) else 0.0
    return Case(module, tuple(make_random_arguments(module, seed, special, MODEST_FLOATS)))


def _multiplies_complex_numbers(module: HloModule) -> bool:
    """Whether a reducer, a factorisation or a Fourier transform does: with infinite ones the order decides.

    HLO leaves the order open.
    """
    return any(
        instruction.opcode == "fft"
        or (instruction.opcode in ("cholesky", "triangular-solve") and instruction.shape.dtype.is_complex)
        for instruction in module.instructions()
    ) or any(
        inner.opcode == "multiply" and inner.shape.dtype.is_complex
        for instruction in module.instructions()
        if instruction.op.calls.applies_to_elements
        for callee in instruction.called_computations
        for inner in callee.instructions
    )


def report(seed: int) -> str:
    """What is wrong with the module of a seed, with the smallest module found that shows it; "" when all is well."""
    case = make_case(seed)
    difference = find_difference(case)
    if not difference:
        return ""
    smallest = shrink(case, lambda one: _kind(find_difference(one)) == _kind(difference), most_trials=300)
    return f"seed {seed}: {find_difference(smallest)}\n{smallest.text()}"


def _kind(difference: str) -> str:
    """The first line without what differs between modules with the same fault: names and numbers."""
    return re.sub(r"%[\w.-]+|\d+", "", difference.partition("\n")[0])[:80]


def find_difference(case: Case) -> str:
    """What is wrong with the compiled code, in a few words first; "" when nothing is."""
    expected = evaluate(case.module, *case.arguments)
    try:
        executable = get_backend("cpu").compile(case.module.clone(), OPTIONS)
        found = executable(*map(_own, case.arguments))
    except (XlaliteError, AssertionError, LookupError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    wrong = [comparison for comparison in compare_values(case, found, expected) if comparison.wrong]
    return "mismatch\n" + "\n".join(map(str, wrong)) if wrong else ""


def compare_values(case: Case, found: object, expected: Value) -> list[LeafComparison]:
    """The comparison of two results, in which differences by rounding are not wrong."""
    shape = case.module.entry_computation.root.shape
    return compare(found, expected, shape, Bounds(), lambda: Referee(case.module, case.arguments))


def _own(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_own, value))
    return value.copy() if isinstance(value, np.ndarray) else value
