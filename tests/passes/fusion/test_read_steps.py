"""How far apart the neighbours of a loop read, through whatever moves elements."""

import pytest

from xlalite.hlo.text import parse
from xlalite.passes.fusion.read_steps import read_steps

GATHER = "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1"
STEPS = {
    "f32[100,3] negate(x)": {3},
    "f32[100,1] slice(x), slice={[0:100], [2:3]}": {3},
    "f32[50,3] slice(x), slice={[0:100:2], [0:3]}": {6},
    "f32[100,3] reverse(x), dimensions={0}": {3},
    "f32[100,2] concatenate(c, d), dimensions={1}": {1, 2},
    "f32[100,3] transpose(w), dimensions={1,0}": {1},
    "f32[100,3] broadcast(v), dimensions={1}": {0},
    "f32[100] reduce(x, z), dimensions={1}, to_apply=add": {3},
    "f32[100] reduce(t, z), dimensions={1}, to_apply=add": {5},
    "f32[100,2] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}": {3, 0},
    "f32[90,3] dynamic-slice(x, i, i), dynamic_slice_sizes={90,3}": {3},
    "f32[90,7,3] gather(x, j), offset_dims={0,2}, slice_sizes={90,3}, " + GATHER: {3, 0},
    "f32[7,90,3] gather(x, j), offset_dims={1,2}, slice_sizes={90,3}, " + GATHER: {0, 1},
    "f32[100,3] reshape(line)": {3},
    "f32[5,20,3] reshape(line)": {60},
    "f32[2,10,3,5] reshape(pairs)": {300 // 2},
}
UNKNOWN = (
    "f32[100] reduce(k, z), dimensions={1}, to_apply=add",
    "f32[100] reduce(l, z), dimensions={0}, to_apply=add",
    "f32[100,2] dot(t, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "f32[100,3] reshape(u)",
)


def steps_of(root: str) -> set[int] | None:
    module = parse(f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[100,3] parameter(0)
  w = f32[3,100] parameter(1)
  v = f32[3] parameter(2)
  m = f32[3,2] parameter(3)
  t = f32[100,5] parameter(4)
  n = f32[5,2] parameter(5)
  u = f32[50,6] parameter(6)
  c = f32[100,1] parameter(7)
  y = f32[100,2] parameter(8)
  d = f32[100,1] slice(y), slice={{[0:100], [1:2]}}
  i = s32[] parameter(9)
  j = s32[7] parameter(10)
  line = f32[300] parameter(11)
  pairs = f32[20,15] parameter(12)
  k = f32[100,17] parameter(13)
  l = f32[5,100] parameter(14)
  z = f32[] constant(0)
  ROOT r = {root}
}}""")
    root_instruction = module.entry_computation.root
    return read_steps((root_instruction,), root_instruction.shape.dims, 0)


@pytest.mark.parametrize("root", STEPS)
def test_steps_that_are_known(root: str) -> None:
    assert steps_of(root) == STEPS[root]


@pytest.mark.parametrize("root", UNKNOWN)
def test_sums_of_many_terms_and_other_shapes_are_not_known(root: str) -> None:
    assert steps_of(root) is None
