"""Merging of dimensions: which do, and which must not."""

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

ADD = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
add_both { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  e = f32[] add(a, c)
  f = s32[] add(b, d)
  ROOT r = (f32[], s32[]) tuple(e, f) }
"""


def collapsed(body: str) -> str:
    """`opcode shape attributes` of all but parameters; the values must stay the same."""
    module = parse(f"HloModule m\n{ADD}ENTRY e {{\n{body}\n}}")
    rng = np.random.default_rng(5)
    arrays = [
        np.asarray(rng.integers(0, 3, p.shape.dims)).astype(p.shape.dtype.numpy)
        for p in module.entry_computation.parameters
    ]
    expected = evaluate(module, *arrays)
    before = str(module)
    twin = collapse(module.entry_computation)
    assert str(module) == before
    found = evaluate(twin, *(array.reshape(p.shape.dims) for array, p in zip(arrays, twin.parameters, strict=True)))
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.ravel(one), np.ravel(other))
    else:
        np.testing.assert_array_equal(np.ravel(found), np.ravel(expected))
    return " ".join(p.shape.text(layout=False) for p in twin.parameters)


CASES = {
    "elementwise merges all": (
        """x = f32[2,3,4] parameter(0)
           ROOT r = f32[2,3,4] negate(x)""",
        "f32[24]",
    ),
    "a broadcast along the minor dimension keeps it": (
        """x = f32[2,3,4] parameter(0)
           b = f32[4] parameter(1)
           c = f32[2,3,4] broadcast(b), dimensions={2}
           ROOT r = f32[2,3,4] add(x, c)""",
        "f32[6,4] f32[4]",
    ),
    "a broadcast along the middle keeps all": (
        """x = f32[2,3,4] parameter(0)
           b = f32[3] parameter(1)
           c = f32[2,3,4] broadcast(b), dimensions={1}
           ROOT r = f32[2,3,4] add(x, c)""",
        "f32[2,3,4] f32[3]",
    ),
    "two broadcasts keep what either needs": (
        """x = f32[2,3,4,5] parameter(0)
           b = f32[2,3] parameter(1)
           d = f32[5] parameter(2)
           c = f32[2,3,4,5] broadcast(b), dimensions={0,1}
           e = f32[2,3,4,5] broadcast(d), dimensions={3}
           y = f32[2,3,4,5] add(x, c)
           ROOT r = f32[2,3,4,5] add(y, e)""",
        "f32[6,4,5] f32[6] f32[5]",
    ),
    "a scalar broadcast merges all": (
        """x = f32[2,3] parameter(0)
           b = f32[] parameter(1)
           c = f32[2,3] broadcast(b), dimensions={}
           ROOT r = f32[2,3] add(x, c)""",
        "f32[6] f32[]",
    ),
    "reduced and kept dimensions stay apart": (
        """x = f32[2,3,4,5] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[2,3] reduce(x, z), dimensions={2,3}, to_apply=add""",
        "f32[6,20]",
    ),
    "reduced dimensions around a kept one stay apart": (
        """x = f32[2,3,4,5] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[3,4] reduce(x, z), dimensions={0,3}, to_apply=add""",
        "f32[2,12,5]",
    ),
    "what cuts one reduced operand cuts the others": (
        """x = f32[2,3,4,5] parameter(0)
           i = s32[2,3,4,5] iota(), iota_dimension=2
           z = f32[] constant(0)
           n = s32[] constant(0)
           ROOT r = (f32[2], s32[2]) reduce(x, i, z, n), dimensions={1,2,3}, to_apply=add_both""",
        "f32[2,3,4,5]",
    ),
    "a transpose moves runs together": (
        """x = f32[2,3,4,5] parameter(0)
           ROOT r = f32[4,5,2,3] transpose(x), dimensions={2,3,0,1}""",
        "f32[6,20]",
    ),
    "a transpose that turns everything round keeps all": (
        """x = f32[2,3,4] parameter(0)
           ROOT r = f32[4,3,2] transpose(x), dimensions={2,1,0}""",
        "f32[2,3,4]",
    ),
    "a slice of the outermost dimension": (
        """x = f32[6,3,4] parameter(0)
           ROOT r = f32[2,3,4] slice(x), slice={[1:5:2],[0:3],[0:4]}""",
        "f32[6,12]",
    ),
    "a slice of the middle": (
        """x = f32[2,6,3,4] parameter(0)
           ROOT r = f32[2,2,3,4] slice(x), slice={[0:2],[4:6],[0:3],[0:4]}""",
        "f32[2,72]",
    ),
    "every second of the middle": (
        """x = f32[2,6,3,4] parameter(0)
           ROOT r = f32[2,3,3,4] slice(x), slice={[0:2],[0:6:2],[0:3],[0:4]}""",
        "f32[2,6,12]",
    ),
    "slices of two dimensions": (
        """x = f32[2,6,3,4] parameter(0)
           ROOT r = f32[2,2,2,4] slice(x), slice={[0:2],[4:6],[1:3],[0:4]}""",
        "f32[2,6,12]",
    ),
    "a full slice cuts nothing": (
        """x = f32[6,3,4] parameter(0)
           ROOT r = f32[6,3,4] slice(x), slice={[0:6],[0:3],[0:4]}""",
        "f32[72]",
    ),
    "a pad of the minor dimension": (
        """x = f32[2,3,4] parameter(0)
           z = f32[] constant(7)
           ROOT r = f32[2,3,6] pad(x, z), padding=0_0x0_0x1_1""",
        "f32[6,4]",
    ),
    "a pad that takes and gives as much": (
        """x = f32[2,3,4] parameter(0)
           z = f32[] constant(7)
           ROOT r = f32[2,3,4] pad(x, z), padding=0_0x1_-1x0_0""",
        "f32[2,12]",
    ),
    "a pad of long rows": (
        """x = f32[2,3,40] parameter(0)
           z = f32[] constant(7)
           ROOT r = f32[2,5,40] pad(x, z), padding=0_0x1_1x0_0""",
        "f32[2,3,40]",
    ),
    "a pad between elements": (
        """x = f32[2,3,4] parameter(0)
           z = f32[] constant(7)
           ROOT r = f32[2,5,4] pad(x, z), padding=0_0x0_0_1x0_0""",
        "f32[2,3,4]",
    ),
    "windows of neighbours": (
        """x = f32[2,5,3,4] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[2,4,3,4] reduce-window(x, z), window={size=1x2x1x1}, to_apply=add""",
        "f32[2,60]",
    ),
    "windows with holes and padding": (
        """x = f32[2,5,3] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[2,6,3] reduce-window(x, z), to_apply=add,
             window={size=1x2x1 pad=0_0x2_1x0_0 rhs_dilate=1x2x1}""",
        "f32[2,15]",
    ),
    "windows of long rows": (
        """x = f32[2,5,3,40] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[2,4,3,40] reduce-window(x, z), window={size=1x2x1x1}, to_apply=add""",
        "f32[2,5,120]",
    ),
    "windows that lie apart": (
        """x = f32[2,5,3,4] parameter(0)
           z = f32[] constant(0)
           ROOT r = f32[2,2,3,4] reduce-window(x, z), window={size=1x2x1x1 stride=1x2x1x1}, to_apply=add""",
        "f32[2,5,12]",
    ),
    "a reversal of all dimensions keeps all": (
        """x = f32[2,3,4] parameter(0)
           ROOT r = f32[2,3,4] reverse(x), dimensions={0,1,2}""",
        "f32[2,3,4]",
    ),
    "a reversal of the outermost": (
        """x = f32[2,3,4] parameter(0)
           ROOT r = f32[2,3,4] reverse(x), dimensions={0}""",
        "f32[2,12]",
    ),
    "a concatenation along the middle": (
        """x = f32[2,3,4] parameter(0)
           y = f32[2,1,4] parameter(1)
           ROOT r = f32[2,4,4] concatenate(x, y), dimensions={1}""",
        "f32[2,12] f32[2,4]",
    ),
    "an iota keeps its own dimension": (
        """x = s32[2,3,4] parameter(0)
           i = s32[2,3,4] iota(), iota_dimension=1
           ROOT r = s32[2,3,4] add(x, i)""",
        "s32[2,3,4]",
    ),
    "a reshape that only splits merges again": (
        """x = f32[2,3,4] parameter(0)
           s = f32[6,4] reshape(x)
           ROOT r = f32[6,4] negate(s)""",
        "f32[24]",
    ),
    "a reshape hands a cut on": (
        """x = f32[2,3,4] parameter(0)
           s = f32[6,4] reshape(x)
           b = f32[4] parameter(1)
           c = f32[6,4] broadcast(b), dimensions={1}
           ROOT r = f32[6,4] add(s, c)""",
        "f32[6,4] f32[4]",
    ),
    "a reshape across a cut": (
        """x = f32[4,6] parameter(0)
           v = f32[4,6] reverse(x), dimensions={1}
           s = f32[8,3] reshape(v)
           w = f32[8,3] reverse(s), dimensions={0}
           ROOT r = f32[24] reshape(w)""",
        "f32[4,6]",
    ),
    "a reshape hands on what is cut on either side of a one": (
        """x = f32[4,3,5] parameter(0)
           c = f32[4,1,5] slice(x), slice={[0:4], [1:2], [0:5]}
           s = f32[4,5] reshape(c)
           ROOT r = f32[4,5] negate(s)""",
        "f32[4,3,5]",
    ),
    "ones do not stand in the way": (
        """x = f32[1,3,1,4,1] parameter(0)
           s = f32[3,4] reshape(x)
           ROOT r = f32[3,4] negate(s)""",
        "f32[12]",
    ),
    "starts of merged dimensions go": (
        """x = f32[6,3,4] parameter(0)
           i = s32[] parameter(1)
           z = s32[] constant(0)
           ROOT r = f32[2,3,4] dynamic-slice(x, i, z, z), dynamic_slice_sizes={2,3,4}""",
        "f32[6,12] s32[]",
    ),
    "an update of the outermost": (
        """x = f32[6,3,4] parameter(0)
           u = f32[2,3,4] parameter(1)
           i = s32[] parameter(2)
           z = s32[] constant(0)
           ROOT r = f32[6,3,4] dynamic-update-slice(x, u, i, z, z)""",
        "f32[6,12] f32[2,12] s32[]",
    ),
    "a product of runs": (
        """x = f32[2,3,4,5] parameter(0)
           y = f32[4,5,6,7] parameter(1)
           ROOT r = f32[2,3,6,7] dot(x, y), lhs_contracting_dims={2,3}, rhs_contracting_dims={0,1}""",
        "f32[6,20] f32[20,42]",
    ),
    "a product contracted in another order": (
        """x = f32[2,3,4,5] parameter(0)
           y = f32[4,5,6,7] parameter(1)
           ROOT r = f32[2,3,6,7] dot(x, y), lhs_contracting_dims={3,2}, rhs_contracting_dims={1,0}""",
        "f32[6,4,5] f32[4,5,42]",
    ),
    "a product of an array with itself in two ways": (
        """x = f32[2,2,3] parameter(0)
           ROOT r = f32[2,3,2,3] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}""",
        "f32[2,2,3]",
    ),
    "a gather of whole rows of rows, for batches of batches": (
        """x = f32[9,4,5] parameter(0)
           i = s32[2,3,1] parameter(1)
           ROOT r = f32[2,3,4,5] gather(x, i), offset_dims={2,3}, collapsed_slice_dims={0}, start_index_map={0},
             index_vector_dim=2, slice_sizes={1,4,5}""",
        "f32[9,20] s32[6,1]",
    ),
    "a gather of windows that are cut, moved and batched": (
        """x = f32[9,3,4,5] parameter(0)
           i = s32[3,2,2] parameter(1)
           ROOT r = f32[2,3,2,5] gather(x, i), offset_dims={0,3}, collapsed_slice_dims={2}, start_index_map={0,2},
             operand_batching_dims={1}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={2,1,1,5}""",
        "f32[9,3,4,5] s32[3,2,2]",
    ),
    "nothing": (
        """x = f32[2,0,4] parameter(0)
           s = f32[0,8] reshape(x)
           ROOT r = f32[0,8] negate(s)""",
        "f32[2,0,4]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_after_merging(name: str) -> None:
    body, expected = CASES[name]
    assert collapsed(body) == expected


def test_batches_of_systems_merge_and_matrices_do_not() -> None:
    body = """
  x = f32[2,3,4,4] parameter(0)
  b = f32[2,3,4,5] parameter(1)
  i = s32[2,3,4,4] iota(), iota_dimension=2
  j = s32[2,3,4,4] iota(), iota_dimension=3
  d = pred[2,3,4,4] compare(i, j), direction=EQ
  o = f32[] constant(9)
  n = f32[2,3,4,4] broadcast(o), dimensions={}
  a = f32[2,3,4,4] select(d, n, x)
  ROOT r = f32[2,3,4,5] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"""
    module = parse(f"HloModule m\nENTRY e {{\n{body}\n}}")
    assert collapse(module.entry_computation).root.shape.dims == (6, 4, 5)


def test_a_body_in_which_nothing_merges_is_no_copy() -> None:
    module = parse("HloModule m\nENTRY e {\n  x = f32[6] parameter(0)\n  ROOT r = f32[6] negate(x)\n}")
    assert collapse(module.entry_computation) is module.entry_computation


def test_a_written_layout_is_not_in_a_kernels_body() -> None:
    module = parse("HloModule m\nENTRY e {\n  x = f32[6]{0} parameter(0)\n  ROOT r = f32[6]{0} negate(x)\n}")
    assert {one.shape.layout for one in collapse(module.entry_computation).instructions} == {None}
