from xlalite.passes.simplify.cse import CommonSubexpressionElimination

CSE = CommonSubexpressionElimination()


def test_cse_merges_equal_instructions_whatever_their_metadata(transform) -> None:
    result = transform(
        CSE,
        """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] tanh(x), metadata={op_name="one"}
  b = f32[4] tanh(x), metadata={op_name="two"}
  ROOT r = f32[4] add(a, b)
}
""",
    )
    assert result.opcodes == ["tanh", "add"]


def test_cse_merges_commuted_operands_of_commutative_operations_only(transform) -> None:
    result = transform(
        CSE,
        """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] add(x, y)
  b = f32[4] add(y, x)
  c = f32[4] subtract(x, y)
  d = f32[4] subtract(y, x)
  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d)
}
""",
    )
    assert result.opcodes.count("add") == 1
    assert result.opcodes.count("subtract") == 2


def test_cse_merges_constants_by_their_bits(transform) -> None:
    result = transform(
        CSE,
        """HloModule m

ENTRY e {
  a = f32[] constant(0)
  b = f32[] constant(0)
  c = f32[] constant(-0)
  ROOT r = (f32[], f32[], f32[]) tuple(a, b, c)
}
""",
    )
    assert result.opcodes.count("constant") == 2


REDUCTIONS = """HloModule m

first {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

second {
  c = f32[] parameter(0)
  d = f32[] parameter(1)
  ROOT s = f32[] OP(c, d)
}

ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  a = f32[] reduce(x, z), dimensions={0}, to_apply=first
  b = f32[] reduce(x, z), dimensions={0}, to_apply=second
  ROOT r = f32[] add(a, b)
}
"""


def test_cse_merges_calls_of_computations_that_do_the_same(transform) -> None:
    assert transform(CSE, REDUCTIONS.replace("OP", "add")).opcodes.count("reduce") == 1


def test_cse_keeps_calls_of_computations_that_differ(transform) -> None:
    assert not transform(CSE, REDUCTIONS.replace("OP", "multiply")).changed


def test_cse_keeps_random_numbers_and_barriers_apart(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[] constant(0)
  b = f32[] constant(1)
  r1 = f32[4] rng(a, b), distribution=rng_uniform
  r2 = f32[4] rng(a, b), distribution=rng_uniform
  b1 = f32[4] opt-barrier(x)
  b2 = f32[4] opt-barrier(x)
  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(r1, r2, b1, b2)
}
"""
    assert not transform(CSE, text, evaluated=False).changed


def test_cse_keeps_different_layouts_apart(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[4,2] parameter(0)
  a = f32[4,2]{0,1} copy(x)
  b = f32[4,2]{1,0} copy(x)
  ROOT r = (f32[4,2], f32[4,2]) tuple(a, b)
}
"""
    assert not transform(CSE, text).changed


def test_cse_keeps_instructions_with_control_dependencies(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] tanh(x)
  b = f32[4] tanh(x), control-predecessors={a}
  ROOT r = (f32[4], f32[4]) tuple(a, b)
}
"""
    assert not transform(CSE, text).changed
