from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.normalization.computation_deduplicator import ComputationDeduplicator

TEXT = """HloModule m

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }

sum { left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT total = f32[] add(left, right) }

largest { a.1 = f32[] parameter(0)
  b.1 = f32[] parameter(1)
  ROOT c.1 = f32[] maximum(a.1, b.1) }

scaled { y = f32[4] parameter(0)
  ROOT z = f32[4] add(y, y) }

scaled.1 { y.1 = f32[4] parameter(0)
  ROOT z.1 = f32[4] add(y.1, y.1) }

ENTRY e {
  x = f32[4,4] parameter(0)
  zero = f32[] constant(0)
  r = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
  s = f32[4] reduce(x, zero), dimensions={1}, to_apply=sum
  t = f32[4] reduce(x, zero), dimensions={1}, to_apply=largest
  u = f32[4] call(t), to_apply=scaled
  v = f32[4] call(u), to_apply=scaled.1
  ROOT all = (f32[4], f32[4], f32[4]) tuple(r, s, v)
}
"""


def test_equal_functions_of_elements_become_one_and_called_ones_stay() -> None:
    module = parse(TEXT)
    assert ComputationDeduplicator().run(module)
    verify(module)
    entry = module.entry_computation
    called = {name: entry.find(name).called_computations[0].name for name in ("r", "s", "t", "u", "v")}
    assert called == {"r": "add", "s": "add", "t": "largest", "u": "scaled", "v": "scaled.1"}
    assert [one.name for one in module.computations()] == ["add", "largest", "scaled", "scaled.1", "e"]
    (decision,) = module.decisions
    assert str(decision) == "computation-deduplicator: add: kept: others are equal (calls=1)"
    assert not ComputationDeduplicator().run(module)
