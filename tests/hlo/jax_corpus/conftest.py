"""What the corpus of jax's programs shares: each is read as lowered and as optimised, and must give jax's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from nested_arrays import leaves, require_near

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify


@dataclass(frozen=True)
class JaxProgram:
    """A function that jax lowered, compiled and ran.

    Attributes:
        lowered: The HLO text before XLA's passes.
        optimized: The HLO text after them.
        arguments: One array for each parameter.
        results: The leaves of what jax computed.
        tolerance: Allowed error relative to the largest absolute value of a result.
    """

    lowered: str
    optimized: str
    arguments: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]
    tolerance: float

    def check_text(self, text: str) -> None:
        """Asserts that a text is valid, and that printing what was read changes nothing the second time."""
        module = parse(text)
        verify(module)
        printed = module.to_string()
        assert parse(printed).to_string() == printed

    def check_evaluator(self, text: str) -> None:
        """Asserts that the evaluator gives jax's values."""
        self.check_values(evaluate(parse(text), *self.arguments))

    def check_cpu(self) -> None:
        """Asserts that the lowered program, compiled here, gives jax's values."""
        executable = get_backend("cpu").compile(parse(self.lowered), CompileOptions())
        self.check_values(executable(*self.arguments))

    def check_values(self, found: object) -> None:
        """Asserts that values have jax's types and sizes and are as close as the tolerance says."""
        arrays = leaves(found)
        for array, wanted in zip(arrays, self.results, strict=True):
            require_near(array, wanted, self.tolerance)


@pytest.fixture(scope="session")
def jax_program() -> Callable[..., JaxProgram]:
    """Lets jax lower, compile and run a function: `jax_program(function, arguments, tolerance, x64=False)`."""
    jax = pytest.importorskip("jax")
    from jaxlib import _hlo

    def make(
        function: Callable[..., Any], arguments: tuple[np.ndarray, ...], tolerance: float, x64: bool = False
    ) -> JaxProgram:
        with jax.enable_x64(x64):
            lowered = jax.jit(function, keep_unused=True).lower(*arguments)
            compiled = lowered.compile()
            results = jax.tree.leaves(compiled(*arguments))
        options = _hlo.HloPrintOptions()
        options.print_large_constants = True
        return JaxProgram(
            lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True),
            compiled.runtime_executable().hlo_modules()[0].to_string(options),
            arguments,
            tuple(np.asarray(result) for result in results),
            tolerance,
        )

    return make
