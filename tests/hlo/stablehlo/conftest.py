"""Programs of jax as StableHLO text and bytecode, with what jax computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from mlir_bytecode import artifact_of, bytecode_of, unpacked
from nested_arrays import leaves, require_near

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify


@dataclass(frozen=True)
class StablehloProgram:
    """A function that jax lowered and ran.

    Attributes:
        pretty: The text that jax prints by default.
        located: The same with locations.
        generic: The same in MLIR's generic spelling.
        bytecode: The same as MLIR bytecode.
        artifact: A portable artifact of it, in which MLIR has written some operations out.
        unpacked: What MLIR reads from the artifact, in generic spelling.
        arguments: One array for each parameter.
        results: The leaves of what jax computed.
        tolerance: Allowed error relative to the largest absolute value of a result.
    """

    pretty: str
    located: str
    generic: str
    bytecode: bytes
    artifact: bytes
    unpacked: str
    arguments: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]
    tolerance: float

    def check(self) -> None:
        """Asserts that all spellings mean the same valid HLO, which evaluates to jax's values."""
        module = parse(self.pretty)
        verify(module)
        assert str(parse(str(module))) == str(module)
        assert structurally_equal(parse(self.generic), module)
        assert structurally_equal(parse(self.bytecode), module)
        assert structurally_equal(parse(self.artifact), parse(self.unpacked))
        located = parse(self.located)
        assert structurally_equal(located, module)
        assert any(instruction.metadata.op_name for instruction in located.instructions())
        self.check_values(evaluate(module, *self.arguments))

    def check_cpu(self) -> None:
        """Asserts that the program, compiled by the CPU backend, gives jax's values."""
        executable = get_backend("cpu").compile(parse(self.pretty), CompileOptions())
        self.check_values(executable(*self.arguments))

    def check_values(self, found: object) -> None:
        """Asserts that values have jax's types and sizes and are as close as the tolerance says."""
        arrays = leaves(found)
        for array, wanted in zip(arrays, self.results, strict=True):
            require_near(array, wanted, self.tolerance)


@pytest.fixture(scope="session")
def stablehlo_program() -> Callable[..., StablehloProgram]:
    """Lets jax lower and run a function: `stablehlo_program(function, arguments, tolerance, x64=False)`."""
    jax = pytest.importorskip("jax")

    def make(
        function: Callable[..., Any], arguments: tuple[Any, ...], tolerance: float, x64: bool = False
    ) -> StablehloProgram:
        with jax.enable_x64(x64):
            lowered = jax.jit(function, keep_unused=True).lower(*arguments)
            results = jax.tree.leaves(lowered.compile()(*arguments))
        module = lowered.compiler_ir("stablehlo")
        artifact = artifact_of(module)
        return StablehloProgram(
            lowered.as_text(),
            lowered.as_text(debug_info=True),
            module.operation.get_asm(print_generic_op_form=True),
            bytecode_of(module),
            artifact,
            unpacked(artifact),
            tuple(np.asarray(argument) for argument in jax.tree.leaves(arguments)),
            tuple(np.asarray(result) for result in results),
            tolerance,
        )

    return make
