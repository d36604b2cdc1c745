"""`xlalite run --isolate_instructions`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.cli.comparison import Bounds
from xlalite.cli.isolation import isolate, run_isolated
from xlalite.hlo.errors import CodegenError
from xlalite.hlo.text import parse

OPTIONS = CompileOptions(num_threads=1)
TEXT = """\
HloModule m

inner {
  p = f32[3] parameter(0)
  ROOT n = f32[3] negate(p)
}

outer {
  p = f32[3] parameter(0)
  c = f32[3] call(p), to_apply=inner
  ROOT s = f32[3] add(c, c)
}

ENTRY main {
  x = f32[3] parameter(0)
  i = s32[] parameter(1)
  k = s32[] constant(2)
  j = s32[] multiply(i, k)
  t = (f32[3], s32[]) tuple(x, j)
  g = f32[3] get-tuple-element(t), index=0
  ROOT c = f32[3] call(g), to_apply=outer
}
"""


def test_isolated_module_has_operands_as_parameters_and_all_it_calls() -> None:
    module = isolate(parse(TEXT).entry_computation.find("c"))
    assert [computation.name for computation in module.computations()] == ["inner", "outer", "main"]
    assert parse(str(module)).entry_computation.root.opcode == "call"


def test_an_operand_that_is_read_twice_is_one_parameter() -> None:
    module = isolate(parse(TEXT).find("outer").find("s"))
    assert len(module.entry_computation.parameters) == 1


def test_instructions_run_on_the_values_they_have_in_the_module() -> None:
    arguments = [np.array([1, 2, 3], np.float32), np.array(21, np.int32)]
    runs = list(run_isolated(parse(TEXT), arguments, get_backend("cpu"), OPTIONS, Bounds()))
    assert [run.instruction.name for run in runs] == ["j", "c"]
    assert all(run.agrees for run in runs)


def test_wrong_and_failing_instructions_are_shown() -> None:
    backend = get_backend("cpu")

    class Wrong:
        def compile(self, module: object, options: object) -> object:
            if module.name == "c":
                raise CodegenError("no code for call")
            executable = backend.compile(module, options)
            return lambda *arguments: executable(*arguments) + 1

    arguments = [np.zeros(3, np.float32), np.array(21, np.int32)]
    one, other = run_isolated(parse(TEXT), arguments, Wrong(), OPTIONS, Bounds())
    assert not one.agrees
    assert "found 43, expected 42" in str(one)
    assert not other.agrees
    assert str(other).endswith("no code for call")


def test_command(softmax: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, "--isolate_instructions")
    assert ran.code == 0
    assert ran.out.endswith("7 of 7 instructions agree with the interpreter\n")
    ran = xlalite("run", softmax, "--isolate_instructions", "--rel_error_bound=0", "--abs_error_bound=0")
    assert ran.code in (0, 1)
