from collections.abc import Callable, Sequence

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.building.builder import Builder
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Value
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.simplify.constant_folding import SplatConstants

CALLBACK = """HloModule m

calls {
  c = f32[2] parameter(0)
  ROOT r = f32[2] custom-call(c), custom_call_target="test.callback"
}

keeps { ROOT c = f32[2] parameter(0) }

ENTRY e {
  p = pred[] parameter(0)
  c = f32[2] constant({1, 2})
  q = f32[2] custom-call(c), custom_call_target="test.callback"
  b = f32[2] conditional(p, c, c), true_computation=calls, false_computation=keeps
  ROOT t = (f32[2], f32[2]) tuple(q, b)
}
"""


def test_compiling_runs_nobody_s_code(custom_target: Callable[..., None]) -> None:
    called: list[str] = []

    def fail_in_the_branch(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        called.append(instruction.name)
        if instruction.name == "r":
            raise ValueError("the branch that is never taken")
        return operands[0]

    custom_target("test.callback", fail_in_the_branch)
    executable = get_backend("cpu").compile(parse(CALLBACK), CompileOptions(use_cache=False))
    assert not called
    np.testing.assert_array_equal(executable(np.False_)[1], [1, 2])
    assert called == ["q"]


def masked(mask: np.ndarray) -> HloModule:
    """A program that is a mask."""
    builder = Builder("masked")
    return builder.build_module(builder.constant(mask))


@pytest.mark.parametrize("shape", [(64, 64), (65, 90), (90, 65), (1, 4096), (1, 1, 65, 90)])
@pytest.mark.parametrize("last", [-100, -64, -63, -1, 0, 1, 5, 64, 4095, 5000])
@pytest.mark.parametrize("is_lower", [True, False])
def test_triangles_are_comparisons_of_positions(shape: tuple[int, ...], last: int, is_lower: bool) -> None:
    mask = (np.tri(*shape[-2:], last, dtype=bool) == is_lower).reshape(shape)
    module = masked(mask)
    assert SplatConstants().run(module)
    verify(module)
    assert module.entry_computation.root.opcode == ("broadcast" if mask.all() or not mask.any() else "compare")
    np.testing.assert_array_equal(evaluate(module), mask)


@pytest.mark.parametrize("shape", [(63, 64), (2, 64, 64), (5000,), (0, 5000)])
def test_other_masks_stay(shape: tuple[int, ...]) -> None:
    mask = np.zeros(shape, bool)
    mask[..., : shape[-1] // 2] = True
    assert not SplatConstants().run(masked(mask))


def test_triangle_with_one_other_element_stays() -> None:
    for place in ((0, 0), (0, 63), (40, 40), (40, 41), (63, 0), (63, 63)):
        mask = np.tri(64, dtype=bool)
        mask[place] ^= True
        assert not SplatConstants().run(masked(mask)), place
