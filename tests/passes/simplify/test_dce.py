from xlalite.passes.simplify.dce import DeadCodeElimination

DCE = DeadCodeElimination()


def test_dce_removes_unused_chains_and_uncalled_computations(transform) -> None:
    result = transform(
        DCE,
        """HloModule m

nobody {
  ROOT a = f32[] parameter(0)
}

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] tanh(y)
  b = f32[4] add(a, x)
  ROOT r = f32[4] negate(x)
}
""",
    )
    assert result.opcodes == ["negate"]
    assert len(result.module.entry_computation.parameters) == 2
    assert [c.name for c in result.module.computations()] == ["e"]


def test_dce_removes_computations_that_only_dead_code_called(transform) -> None:
    result = transform(
        DCE,
        """HloModule m

f {
  ROOT a = f32[] parameter(0)
}

ENTRY e {
  x = f32[] parameter(0)
  dead = f32[] call(x), to_apply=f
  ROOT r = f32[] negate(x)
}
""",
    )
    assert len(result.module.computations()) == 1


def test_dce_keeps_side_effects_and_what_others_wait_for(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[] parameter(0)
  token = token[] after-all()
  out = token[] outfeed(x, token), outfeed_shape=f32[]
  waited = f32[] tanh(x)
  ROOT r = f32[] negate(x), control-predecessors={waited}
}
"""
    assert not transform(DCE, text, evaluated=False).changed
