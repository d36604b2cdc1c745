"""What the tests of compiled modules share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

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
        assert len(found) == len(self.results)
        for number, (one, wanted) in enumerate(zip(found, self.results, strict=True)):
            require_close(one, wanted, f"result {number} of {module.name} on {backend}")


def leaves(value: object) -> list[Array]:
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in leaves(element)]
    return [np.asarray(value)]


def require_close(found: Array, wanted: Array, context: str) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), context
    dtype = DType.from_numpy(wanted.dtype)
    if not (dtype.is_floating or dtype.is_complex):
        np.testing.assert_array_equal(found, wanted, context)
        return
    wide = np.complex128 if dtype.is_complex else np.float64
    one, other = found.astype(wide), wanted.astype(wide)
    bits = dtype.component.bits if dtype.is_complex else dtype.bits
    size = float(np.abs(other).max(where=np.isfinite(other), initial=1e-30))
    np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[max(bits, 16)] * size, err_msg=context)


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
