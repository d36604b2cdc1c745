"""Products of complex numbers become products of real ones, whatever dimensions lie where, and mean the same."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from random_modules.values import MODEST_FLOATS, make_random_arguments

from xlalite.hlo import evaluate, parse
from xlalite.passes.preparation.complex_dot_expander import ComplexDotExpander

ALL = ComplexDotExpander(least_flops=1)


def _text(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def random_dot(chance: random.Random) -> str:
    """A dot with up to two dimensions of each kind, in any order, of one complex type or a complex and a real one."""
    kinds = {kind: [chance.choice((1, 2, 3, 9)) for _ in range(chance.randint(0, 2))] for kind in "bmnk"}
    dtype = chance.choice(("c64", "c128"))
    other = chance.choice((dtype, dtype, "f32"))
    types = chance.sample((dtype, other), 2)
    lines, places, free = [], [], []
    for name, kept in ("x", "m"), ("y", "n"):
        labels = [(kind, number) for kind in ("b", kept, "k") for number in range(len(kinds[kind]))]
        chance.shuffle(labels)
        dims = [kinds[kind][number] for kind, number in labels]
        lines.append(f"{name} = {types[len(lines)]}[{_text(dims)}] parameter({len(lines)})")
        places.append([[labels.index((kind, n)) for n in range(len(kinds[kind]))] for kind in "bk"])
        free += [size for (kind, _), size in zip(labels, dims, strict=True) if kind == kept]
    attributes = [
        f"{side}_{what}_dims={{{_text(places[number][which])}}}"
        for which, what in enumerate(("batch", "contracting"))
        for number, side in enumerate(("lhs", "rhs"))
    ]
    root = f"ROOT d = {dtype}[{_text([*kinds['b'], *free])}] dot(x, y), {', '.join(attributes)}"
    return "HloModule m\nENTRY e {\n  " + "\n  ".join((*lines, root)) + "\n}"


@pytest.mark.parametrize("seed", range(40))
def test_any_dimensions(transform: Any, seed: int) -> None:
    text = random_dot(random.Random(seed))
    result = transform(ALL, text, evaluated=False).module
    assert not any(one.opcode == "dot" and one.shape.dtype.is_complex for one in result.instructions())
    given = parse(text)
    arguments = make_random_arguments(given, seed, special=0.1, numbers=MODEST_FLOATS)
    expected, found = np.asarray(evaluate(given, *arguments)), np.asarray(evaluate(result, *arguments))
    assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
    for one, other in (expected.real, found.real), (expected.imag, found.imag):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-4)


def test_small_products_stay(transform: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = c64[4,4] parameter(0)
  y = c64[4,4] parameter(1)
  ROOT d = c64[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    assert not transform(ComplexDotExpander(), text).changed


@pytest.mark.parametrize("shapes", [((40, 30), (30, 20)), ((40, 1000), (1000,)), ((1000,), (1000, 40))])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_compiled(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, shapes: Any) -> None:
    left, right = shapes
    contracted = f"lhs_contracting_dims={{{len(left) - 1}}}, rhs_contracting_dims={{0}}"
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}[{_text(left)}] parameter(0)
  y = {dtype}[{_text(right)}] parameter(1)
  ROOT d = {dtype}[{_text((*left[:-1], *right[1:]))}] dot(x, y), {contracted}
}}"""
    numpy = parse(text).entry_computation.root.shape.dtype.numpy
    x, y = ((rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(numpy) for dims in shapes)
    x.flat[5] = np.inf
    executable = check(text, x, y, ulps=64)
    assert "dot" in kernels(executable)
    outputs = [np.asarray(check(text, x, y, ulps=64, num_threads=threads)(x, y)) for threads in (1, 2, 5)]
    assert all(np.array_equal(outputs[0], other, equal_nan=True) for other in outputs[1:])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ((2, 9, 11, 12), (3, 3, 12, 9), (2, 9, 11, 9), "size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        ((2, 12, 9, 21), (9, 12, 3, 3), (2, 9, 7, 19), "size=3x3}, dim_labels=bf01_oi01->bf01"),
        ((12, 2, 30), (3, 9, 12), (2, 9, 59), "size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1}, dim_labels=fb0_0oi->bf0"),
    ],
)
def test_convolutions_have_the_parts_as_features(
    check: Any,
    kernels: Any,
    rng: np.random.Generator,
    lhs: Sequence[int],
    rhs: Sequence[int],
    result: Sequence[int],
    attributes: str,
    dtype: str,
) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}[{_text(lhs)}] parameter(0)
  k = {dtype}[{_text(rhs)}] parameter(1)
  ROOT r = {dtype}[{_text(result)}] convolution(x, k), window={{{attributes} }}"""
    arguments = [
        (rng.integers(-9, 9, s) + 1j * rng.integers(-9, 9, s)).astype(f"c{int(dtype[1:]) // 8}") for s in (lhs, rhs)
    ]
    executable = check(text, *arguments, num_threads=2)
    assert "dot" in kernels(executable)


def test_convolutions_in_groups_stay_complex(transform: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = c64[2,9,40] parameter(0)
  k = c64[3,2,40] parameter(1)
  ROOT r = c64[2,7,40] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=20 }"""
    assert not transform(ALL, text).changed
