from collections.abc import Callable, Sequence

import numpy as np

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Value

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
