"""Products of truth values are products of bytes, and mean the same."""

import numpy as np
import pytest

from xlalite.hlo import evaluate, parse
from xlalite.passes.preparation.logical_dot_expander import LogicalDotExpander

PRODUCTS = {
    "dot": ("[70,300]", "[300,50]", "[70,50]", "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "vector": ("[70,9]", "[9]", "[70]", "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "convolution": (
        "[2,20,20,5]",
        "[3,3,5,9]",
        "[2,20,20,9]",
        "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    ),
}


def program(name: str, dtype: str) -> str:
    x, y, result, operation = PRODUCTS[name]
    return f"""HloModule m
ENTRY e {{
  x = {dtype}{x} parameter(0)
  y = {dtype}{y} parameter(1)
  ROOT d = {dtype}{result} {operation}
}}"""


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_truth_values_are_multiplied_as_bytes(transform, compile_text, rng, name, share):
    module = transform(LogicalDotExpander(), program(name, "pred"), evaluated=False).module
    assert {one.shape.dtype.value for one in module.instructions() if one.opcode in ("dot", "convolution")} == {"s32"}
    given = parse(program(name, "pred"))
    arrays = [rng.random(one.shape.dims) < share for one in given.entry_computation.parameters]
    expected = np.asarray(evaluate(given, *arrays))
    assert expected.dtype == np.bool_
    assert np.array_equal(np.asarray(evaluate(module, *arrays)), expected)
    assert np.array_equal(np.asarray(compile_text(given)(*arrays)), expected)


@pytest.mark.parametrize("name", PRODUCTS)
def test_bytes_stay(transform, name):
    assert not transform(LogicalDotExpander(), program(name, "s8"), evaluated=False).changed
