"""What the tests of compiled modules share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from nested_arrays import leaves, require_near

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse_literal, parse_shape
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array

# Sums of up to a hundred products in another order than XLA's; relative to the largest element of a result.
TOLERANCE = {16: 2e-2, 32: 1e-5, 64: 1e-12}

_COMMENT = re.compile(r"^// (argument|result) (\S+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class CompiledProgram:
    """A module as XLA left it.

    Attributes:
        text: The HLO text.
        arguments: One array for each parameter.
        results: The leaves of what jax computed with it.
    """

    text: str
    arguments: Sequence[Array]
    results: Sequence[Array]

    def check(self, module: HloModule, backend: str, *, optimize: bool = True) -> None:
        """Asserts that the module gives jax's values."""
        executable = get_backend(backend).compile(module, CompileOptions(optimize=optimize))
        found = leaves(executable(*(argument.copy() for argument in self.arguments)))
        for number, (one, wanted) in enumerate(zip(found, self.results, strict=True)):
            dtype = DType.from_numpy(wanted.dtype)
            bits = dtype.component.bits if dtype.is_complex else dtype.bits
            context = f"result {number} of {module.name} on {backend}"
            require_near(one, wanted, TOLERANCE[max(bits, 16)], context)


def read_program(path: Path) -> CompiledProgram:
    text = path.read_text(encoding="utf-8")
    arrays: dict[str, list[Array]] = {"argument": [], "result": []}
    for what, shape, literal in _COMMENT.findall(text):
        arrays[what].append(parse_literal(literal, parse_shape(shape)).value)
    return CompiledProgram(text, arrays["argument"], arrays["result"])


@pytest.fixture(scope="session")
def compiled_program() -> Callable[[Path], CompiledProgram]:
    """Reads a file of the corpus."""
    return read_program


@pytest.fixture(scope="session")
def make_program() -> Callable[..., CompiledProgram]:
    """A program out of a text, arguments and results."""
    return CompiledProgram
