"""Parts of modules as modules of their own."""

import numpy as np
import pytest

from xlalite.hlo import XlaliteError, evaluate, extract, parse, verify

TEXT = """HloModule m, replica_count=2
inner {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
outer {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=inner
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  k = f32[4] constant({1, 2, 3, 4})
  s = f32[4] add(y, k)
  e = f32[4] exponential(s), control-predecessors={k}
  m = f32[4] multiply(e, x)
  c = f32[] call(m), to_apply=outer
  ROOT t = (f32[], f32[4]) tuple(c, e)
}"""
X, Y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)


@pytest.fixture
def main():
    return parse(TEXT).entry_computation


def test_everything_that_a_value_needs_goes_along(main):
    module = extract(main.find("c"))
    verify(module)
    assert module.name == "extracted_c"
    assert [one.name for one in module.computations()] == ["inner", "outer", "main"]
    assert [one.name for one in module.entry_computation.parameters] == ["x", "y"]
    assert module.config.replica_count == 2
    np.testing.assert_array_equal(evaluate(module, X, Y), evaluate(main.module, X, Y)[0])
    assert module.entry_computation.find("e").control_predecessors == (module.entry_computation.find("k"),)


def test_depth_cuts_and_constants_come_along(main):
    module = extract(main.find("e"), depth=1, name="cut")
    verify(module)
    assert module.name == "cut"
    assert [one.opcode for one in module.entry_computation.instructions] == [
        "parameter",
        "constant",
        "add",
        "exponential",
    ]
    alone = extract(main.find("m"), depth=0).entry_computation
    assert [one.name for one in alone.parameters] == ["e", "x"] or [one.name for one in alone.parameters] == ["x", "e"]


def test_boundary_by_instruction_and_by_function(main):
    one = extract(main.find("m"), boundary=[main.find("e")])
    two = extract(main.find("m"), boundary=lambda instruction: instruction.opcode == "exponential")
    assert one.to_string() == two.to_string()
    assert len(one.entry_computation) == 3
    verify(one)


def test_parameter_and_constant_alone(main):
    assert len(extract(main.find("x")).entry_computation) == 1
    constant = extract(main.find("k"))
    verify(constant)
    assert not constant.entry_computation.parameters


def test_the_source_is_not_changed(main):
    before = main.module.to_string()
    extract(main.root)
    assert main.module.to_string() == before


def test_impossible_requests_are_refused(main):
    with pytest.raises(XlaliteError, match="found depth -1"):
        extract(main.root, depth=-1)
    with pytest.raises(XlaliteError, match="belongs to no computation"):
        extract(main.root.clone())
