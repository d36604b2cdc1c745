"""The evaluator computes what XLA does, on whole random modules."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.monoid import recognise_monoid
from xlalite.hlo.types.shape import Shape


def ordinary(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Numbers on which XLA's fast defaults and strict arithmetic agree: no NaN, infinity or denormal."""
    if shape.dtype.numpy == np.bool_:
        return rng.random(shape.dims) < 0.5
    if shape.dtype.is_integral:
        return rng.integers(-5 if shape.dtype.is_signed else 0, 6, shape.dims).astype(shape.dtype.numpy)
    return np.asarray(rng.uniform(-2, 2, shape.dims)).astype(shape.dtype.numpy)


def flattened(value: object) -> list[np.ndarray]:
    return [leaf for part in value for leaf in flattened(part)] if isinstance(value, tuple) else [np.asarray(value)]


def starts_from_identity(reduce: HloInstruction) -> bool:
    monoid, start = recognise_monoid(reduce.called_computations[0]), reduce.operand(1)
    return monoid is not None and start.opcode == "constant" and bool(start.attrs.literal.value == monoid.identity)


def is_ordinary(module: HloModule) -> bool:
    """Whether XLA's defaults and strict arithmetic agree on a module.

    XLA takes the initial value of a reduction for an identity, and its rewrites overflow with large constants.
    """
    for instruction in module.instructions():
        if instruction.opcode == "reduce" and not starts_from_identity(instruction):
            return False
        if instruction.opcode == "constant" and instruction.shape.dtype.is_floating:
            sizes = np.abs(instruction.attrs.literal.value.astype(np.float64))
            if not np.all((sizes == 0) | ((sizes > 1e-6) & (sizes < 1e6))):
                return False
    return True


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(25))
def test_random_module_gives_what_xla_computes(
    seed: int,
    random_module: Callable[[random.Random, int], HloModule],
    run_with_xla: Callable[..., list[np.ndarray]],
) -> None:
    chance = random.Random(seed)
    module = next(module for module in iter(lambda: random_module(chance, 20), None) if is_ordinary(module))
    rng = np.random.default_rng(seed)
    arguments = [ordinary(parameter.shape, rng) for parameter in module.entry_computation.parameters]
    expected = run_with_xla(module.to_string("short_parsable"), *arguments)
    found = flattened(evaluate(module, *arguments))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5, err_msg=str(module))
