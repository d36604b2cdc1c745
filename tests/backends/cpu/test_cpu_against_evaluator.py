"""The CPU backend computes what the evaluator does, for every operation and element type."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.dtype import DType
from xlalite.hlo.errors import CodegenError
from xlalite.hlo.evaluator import evaluate
from xlalite.hlo.text import parse

ULPS = 4
"""Both sides are right to 2 ulps (f32) or 1 (f64); operations composed of several functions add up."""

DYNAMIC = {"set-dimension-size", "dynamic-reshape"}


@pytest.fixture(scope="module")
def compile_text() -> Callable[..., Executable]:
    """Compiles HLO text for the CPU."""
    return lambda text, **options: get_backend("cpu").compile(parse(text), CompileOptions(**options))


def test_cpu_agrees_with_evaluator(op_case: Any, op_dtype: DType, rng: np.random.Generator) -> None:
    if not op_case.is_local or not op_case.is_deterministic:
        return
    module = parse(op_case.text(op_dtype))
    arguments = op_case.arguments(module, op_dtype, rng)
    if op_case.opcode in DYNAMIC:
        with pytest.raises(CodegenError, match="known sizes"):
            get_backend("cpu").compile(module, CompileOptions())
        return
    found = get_backend("cpu").compile(module, CompileOptions())(*arguments)
    if op_dtype.is_floating or op_dtype.is_complex:
        op_case = dataclasses.replace(op_case, tolerance_ulps=max(op_case.tolerance_ulps, ULPS))
    op_case.check(found, evaluate(module, *arguments))
