"""What devices exchange is combined by compiled code, where the evaluator would do so with whole arrays."""

from functools import partial

import numpy as np
import pytest

from xlalite.backends.cpu.compilation.combining import CombiningEvaluator, Programs
from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.text import parse

PROGRAM = """HloModule combined, replica_count=3
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[%s] parameter(0)
 s = f32[%s] all-reduce(x), to_apply=add
 ROOT t = f32[%s] all-reduce(s), to_apply=add }"""


@pytest.mark.parametrize(("sizes", "count"), [("5,7", 1), ("", 0)])
def test_arrays_of_a_size_have_one_program_and_numbers_none(sizes: str, count: int) -> None:
    module, programs = parse(PROGRAM.replace("%s", sizes)), Programs()
    arrays = [[np.full([int(size) for size in sizes.split(",") if size], i, np.float32)] for i in range(3)]
    results = evaluate_spmd(module, arrays, run=partial(CombiningEvaluator(programs).run, module.entry_computation))
    for result in results:
        np.testing.assert_array_equal(result, np.full_like(arrays[0][0], 9))
    assert len(programs) == count
