"""Lines of few elements under windows that are cut out: which are merged, and that the results are the same."""

import numpy as np
import pytest

from xlalite.hlo import evaluate, parse
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.preparation.line_merger import LineMerger

SLICES = {
    "one line length": ("f32[8,40,50,3]", "8,20,30,3", "[8,20,90]"),
    "several dimensions are a line": ("u8[100,3,2,3]", "80,3,2,3", "[1440]"),
    "whole lines of lines": ("bf16[40,50,5]", "30,50,5", None),
    "long lines": ("f32[100,32]", "50,32", None),
    "a part of each line": ("f32[1000,3]", "900,2", None),
    "one line": ("f32[90,3]", "1,3", None),
    "few elements": ("f32[90,3]", "80,3", None),
    "all of it": ("f32[900,3]", "900,3", None),
}


def sliced(array: str, window: str, places: str = "s32") -> HloModule:
    """A window at a place that is known late, and the array with one in that place."""
    rank = array.count(",") + 1
    starts = ", ".join(f"s{number}" for number in range(rank))
    parameters = "\n".join(f"  s{number} = {places}[] parameter({number + 2})" for number in range(rank))
    dtype = array.partition("[")[0]
    return parse(f"""HloModule m
ENTRY e {{
  x = {array} parameter(0)
  u = {dtype}[{window}] parameter(1)
{parameters}
  y = {dtype}[{window}] dynamic-slice(x, {starts}), dynamic_slice_sizes={{{window}}}
  z = {array} dynamic-update-slice(x, u, {starts})
  ROOT r = tuple(y, z)
}}""")


def shapes_of(module: HloModule, opcode: str) -> list[str]:
    return [str(one.shape.dims) for one in module.entry_computation.instructions if one.opcode == opcode]


@pytest.mark.parametrize("form", SLICES)
@pytest.mark.parametrize("places", ["s32", "s64"])
def test_slices_and_updates(form: str, places: str) -> None:
    array, window, expected = SLICES[form]
    module = sliced(array, window, places)
    before, rng = module.clone(), np.random.default_rng(0)
    assert LineMerger().run(module) == (expected is not None)
    if expected is not None:
        (sizes,) = shapes_of(module, "dynamic-slice")
        assert sizes.replace("(", "[").replace(",)", "]").replace(")", "]").replace(" ", "") == expected
    x, u = (
        rng.integers(0, 100, one.shape.dims).astype(one.shape.dtype.numpy)
        for one in module.entry_computation.parameters[:2]
    )
    for place in (-5, 0, 3, 2**31 - 1):
        starts = [np.array(place).astype(places.replace("s", "int"))] * x.ndim
        for found, wanted in zip(evaluate(module, x, u, *starts), evaluate(before, x, u, *starts), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("places", ["u32", "s16"])
def test_places_of_other_types_stay(places: str) -> None:
    assert not LineMerger().run(sliced("f32[900,3]", "800,3", places))


GATHERS = {
    "images": (
        "f32[4,40,50,3]",
        "s32[4,3]",
        "f32[4,20,30,3]",
        "offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={1,2,3}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,20,30,3}",
        True,
    ),
    "batches behind windows": (
        "u8[40,50,3]",
        "s64[2,7]",
        "u8[20,30,3,7]",
        "offset_dims={0,1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, "
        "slice_sizes={20,30,3}",
        True,
    ),
    "places of one number": (
        "f32[500,3]",
        "s32[6]",
        "f32[6,400,3]",
        "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={400,3}",
        True,
    ),
    "batches between a window's dimensions": (
        "f32[500,3]",
        "s32[6]",
        "f32[400,6,3]",
        "offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={400,3}",
        False,
    ),
    "elements apart": (
        "f32[500,3,2]",
        "s32[6,1]",
        "f32[6,400,2]",
        "offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={0}, index_vector_dim=1, slice_sizes={400,1,2}",
        False,
    ),
}


@pytest.mark.parametrize("form", GATHERS)
def test_gathers(form: str) -> None:
    array, places, result, attributes, is_merged = GATHERS[form]
    module = parse(f"""HloModule m
ENTRY e {{
  x = {array} parameter(0)
  i = {places} parameter(1)
  ROOT r = {result} gather(x, i), {attributes}
}}""")
    before, rng = module.clone(), np.random.default_rng(0)
    assert LineMerger().run(module) is is_merged
    x, i = (one.shape for one in module.entry_computation.parameters)
    numbers = rng.integers(0, 100, x.dims).astype(x.dtype.numpy)
    indices = rng.integers(-5, 60, i.dims).astype(i.dtype.numpy)
    np.testing.assert_array_equal(evaluate(module, numbers, indices), evaluate(before, numbers, indices))
