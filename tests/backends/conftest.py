"""What tests of the CPU backend share: compile HLO text, run it, and compare with the evaluator."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType


class Check(Protocol):
    """Compiles, runs, compares with the evaluator; gives the executable."""

    def __call__(
        self, program: str | HloModule, *arguments: object, ulps: float = 0.0, **options: Any
    ) -> Executable: ...


def compile_program(program: str | HloModule, **options: Any) -> Executable:
    module = parse(program) if isinstance(program, str) else program
    return get_backend("cpu").compile(module, CompileOptions(**options))


def require_close(found: object, expected: object, ulps: float, context: str) -> None:
    """Equal bits (but for NaN) where `ulps` is 0 or the type is exact, else close in units of the largest result."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple), context
        for one, other in zip(found, expected, strict=True):
            require_close(one, other, ulps, context)
        return
    if not isinstance(expected, np.ndarray):
        return
    assert isinstance(found, np.ndarray), context
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), context
    dtype = DType.from_numpy(expected.dtype)
    if not (dtype.is_floating or dtype.is_complex):
        np.testing.assert_array_equal(found, expected, err_msg=context)
        return
    wide: Any = np.complex128 if dtype.is_complex else np.float64
    with np.errstate(all="ignore"):
        one, other = found.astype(wide), expected.astype(wide)
        size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
        precision: Any = np.float32 if dtype.component.bits < 64 else np.float64
        allowed = ulps * float(np.finfo(precision).eps) * size
        if dtype.bits < 32:
            allowed = 2.0**-7 * size if ulps else 0.0
        same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= allowed)
    assert same.all(), f"{context}\nfound {found[~same]}\nexpected {expected[~same]}\nat {np.argwhere(~same)[:5]}"


@pytest.fixture(scope="session")
def compile_text() -> Callable[..., Executable]:
    """Compiles HLO text (or a module) for the CPU."""
    return compile_program


@pytest.fixture(scope="session")
def check() -> Check:
    """Compiles a program, runs it and compares with the evaluator."""

    def run(program: str | HloModule, *arguments: object, ulps: float = 0.0, **options: Any) -> Executable:
        module = parse(program) if isinstance(program, str) else program
        executable = compile_program(module, **options)
        with np.errstate(all="ignore"):
            expected = evaluate(module, *arguments)
        require_close(executable(*arguments), expected, ulps, str(module))
        return executable

    return run


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Asks an executable which kinds of kernels it has."""

    def __call__(self, executable: Executable) -> list[str]:
        """The kinds, in order."""
        return [d.verdict for d in executable.decisions() if d.decided_by == "kernel planner"]


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    """The kinds of kernels of an executable."""
    return Kernels()
