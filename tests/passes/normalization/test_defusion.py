"""Kernels of other compilers are taken apart."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

FUSED = """HloModule f
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=LT }
inner { p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p) }
outer { a = f32[4] parameter(0)
  b = f32[4] fusion(a), kind=kLoop, calls=inner
  s = f32[4] sort(b), dimensions={0}, to_apply=less
  ROOT t = (f32[4], f32[4]) tuple(b, s) }
ENTRY e { x = f32[4] parameter(0)
  f = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=outer
  u = f32[4] get-tuple-element(f), index=0
  v = f32[4] get-tuple-element(f), index=1
  ROOT r = f32[4] add(u, v) }
"""


@pytest.mark.parametrize("optimize", [True, False])
def test_fusion_of_what_no_kernel_computes_runs(optimize: bool) -> None:
    module, x = parse(FUSED), np.array([3, -1, 2, 0], np.float32)
    found = get_backend("cpu").compile(module, CompileOptions(optimize=optimize))(x)
    np.testing.assert_array_equal(found, evaluate(module, x))
