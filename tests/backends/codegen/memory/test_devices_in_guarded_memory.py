"""What devices exchange stays in their arrays, the others' as well as their own."""

from typing import Any

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

PROGRAM = """HloModule m, replica_count=3
add {{ a = {t}[] parameter(0)
 b = {t}[] parameter(1)
 ROOT r = {t}[] add(a, b) }}
ENTRY e {{ x = {t}[3,{n}] parameter(0)
 y = {t}[{n}] parameter(1)
 i = s32[3] parameter(2)
 k = s32[3] parameter(3)
 o = s32[] parameter(4)
 z = s32[] constant(0)
 sum = ({t}[3,{n}], {t}[{n}]) all-reduce(x, y), to_apply=add
 part = {t}[1,{n}] reduce-scatter(x), dimensions={{0}}, to_apply=add
 joined = {t}[9,{n}] all-gather(x), dimensions={{0}}
 beside = {t}[3,{m}] all-gather(x), dimensions={{1}}
 turned = {t}[3,{n}] all-to-all(x), dimensions={{0}}, replica_groups={{{{2,0,1}}}}
 given = {t}[{n}] collective-permute(y), source_target_pairs={{{{0,1}},{{1,2}}}}
 from = (s32[], s32[]) tuple(o, z)
 to = (s32[], s32[]) tuple(z, o)
 put = {t}[3,{n}] collective-permute(x, turned, from, to), source_target_pairs={{{{2,1}},{{1,0}}}},
   slice_sizes={{{{1,{s}}}}}
 told = {t}[{n}] collective-broadcast(y), replica_groups={{{{1,2}}}}
 rows = {t}[3,{n}] ragged-all-to-all(x, turned, i, k, i, k), replica_groups={{{{0,1,2}}}}
 ROOT r = (({t}[3,{n}], {t}[{n}]), {t}[1,{n}], {t}[9,{n}], {t}[3,{m}], {t}[3,{n}], {t}[{n}], {t}[3,{n}], {t}[{n}],
   {t}[3,{n}]) tuple(sum, part, joined, beside, turned, given, put, told, rows) }}"""


@pytest.mark.parametrize("dtype", ["pred", "s4", "bf16", "f32", "c128"])
@pytest.mark.parametrize("size", [0, 1, 17, 65, 9001])
def test_exchanges_stay_in_their_arrays(run_guarded: Any, dtype: str, size: int, isa: str) -> None:
    text = PROGRAM.format(t=dtype, n=size, m=3 * size, s=size // 2)
    rng = np.random.default_rng(size)
    vector = np.array([0, 1, 2], np.int32), np.array([1, 1, 1], np.int32), np.array(10**6, np.int32)
    arguments = [
        (*(rng.integers(0, 2, dims).astype(DType(dtype).numpy) for dims in ((3, size), (size,))), *vector)
        for _ in range(3)
    ]
    found = run_guarded.on_devices(text, arguments, isa)
    expected = leaves(evaluate_spmd(parse(text), arguments))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
