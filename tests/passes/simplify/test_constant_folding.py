from collections.abc import Callable, Sequence

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Value
from xlalite.passes.simplify.constant_folding import ConstantFolding, SplatConstants


def test_folding_computes_what_depends_on_constants(transform) -> None:
    result = transform(
        ConstantFolding(),
        """HloModule m

ENTRY e {
  a = s32[3] constant({1, 2, 3})
  b = s32[3] constant({10, 20, 30})
  c = s32[3] add(a, b)
  ROOT r = s32[3] reverse(c), dimensions={0}
}
""",
    )
    assert result.opcodes == ["constant"]
    assert result.module.entry_computation.root.attrs.literal.value.tolist() == [33, 22, 11]


def test_folding_keeps_filled_arrays_as_broadcast_scalars(transform) -> None:
    result = transform(
        ConstantFolding(),
        """HloModule m

ENTRY e {
  a = f32[] constant(2)
  b = f32[1000,1000] broadcast(a), dimensions={}
  ROOT r = f32[1000,1000] multiply(b, b)
}
""",
    )
    assert result.opcodes == ["constant", "broadcast"]


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = s32[1000000] iota(), iota_dimension=0",
        "ROOT r = f32[1000000,2] broadcast(c), dimensions={1}",
        "ROOT r = f32[2] rng(s, s), distribution=rng_uniform",
        "ROOT r = f32[2] opt-barrier(c)",
    ],
)
def test_folding_leaves_what_grows_or_has_effects(line: str, transform) -> None:
    text = f"""HloModule m

ENTRY e {{
  c = f32[2] constant({{1, 2}})
  s = f32[] constant(1)
  {line}
}}
"""
    assert not transform(ConstantFolding(), text, evaluated=False).changed


GATHERED = """HloModule m

ENTRY e {
  c = f32[2,2] constant({{1, 2}, {3, 4}})
  z = f32[] constant(0)
  ROOT r = f32[64,64] pad(c, z), padding=0_62x0_62
}
"""


def test_folding_records_results_that_are_too_large(transform) -> None:
    result = transform(ConstantFolding(), GATHERED)
    assert not result.changed
    assert result.module.decisions[0].reason == "the result is too large"
    assert transform(ConstantFolding(max_growth_bytes=1 << 20), GATHERED).opcodes == ["constant"]


def test_folding_records_what_is_too_much_work(transform) -> None:
    result = transform(ConstantFolding(max_growth_bytes=1 << 20, max_operations=10), GATHERED)
    assert not result.changed
    assert result.module.decisions[0].reason == "too much work"


def test_folding_does_not_run_loops(transform) -> None:
    text = """HloModule m

condition {
  i = s32[] parameter(0)
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT r = s32[] add(i, one)
}

ENTRY e {
  zero = s32[] constant(0)
  ROOT r = s32[] while(zero), condition=condition, body=body
}
"""
    assert not transform(ConstantFolding(), text).changed


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


def test_splat_constant_becomes_a_broadcast(transform) -> None:
    text = """HloModule m

ENTRY e {
  ROOT c = f32[3] constant({VALUES})
}
"""
    assert transform(SplatConstants(), text.replace("VALUES", "7, 7, 7")).opcodes == ["constant", "broadcast"]
    assert not transform(SplatConstants(), text.replace("VALUES", "0, -0, 0")).changed
