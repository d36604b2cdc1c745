"""Kernels of products touch their arrays only: chains of products, operands that are computed, tiles used in part."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from computed_operands import OPERANDS, product_of_computed
from kernel_programs import combiner, program, sample

from xlalite.hlo.types.dtype import DType


def chains(sizes: Sequence[int]) -> Iterator[str]:
    """Rows between two products, of numbers that are exact, too large for the second cache."""
    for n in filter(None, sizes):
        for t, (m, k) in itertools.product(("f32", "f64"), ((65, 3), (131, n + 1))):
            batch = -(-(9 << 17) // (m * (n + 256) * DType(t).size_bytes))
            scores, line = f"{t}[{batch},{m},{n + 256}]", f"{t}[{batch},{m}]"
            attributes = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims="
            lines = [
                f"s = {scores} dot(p0, p1), {attributes}{{2}}",
                f"m = {line} reduce(s, p3), dimensions={{2}}, to_apply=f",
                f"b = {scores} broadcast(m), dimensions={{0,1}}",
                f"g = pred[{batch},{m},{n + 256}] compare(s, b), direction=EQ",
                f"h = {scores} convert(g)",
            ]
            shapes = (f"{t}[{batch},{m},{k}]", f"{t}[{batch},{n + 256},{k}]", f"{t}[{batch},{n + 256},33]", f"{t}[]")
            result = f"{t}[{batch},{m},33]"
            product, functions = f"{result} dot(h, p2), {attributes}{{1}}", combiner("f", "maximum", t)
            yield program(product, *shapes, lines=lines, functions=functions)
            both = f"({result}, {scores}) tuple(o, h)"
            yield program(both, *shapes, lines=[*lines, f"o = {product}"], functions=functions)


def causal_chains(sizes: Sequence[int]) -> Iterator[str]:
    """Softmax of scores of which a mask hides some, between two products too large for the second cache."""
    for n in filter(None, sizes):
        for t, m in itertools.product(("f32", "f64"), (65, 131)):
            batch = -(-(9 << 17) // (m * (n + 256) * DType(t).size_bytes))
            scores, line, places = f"{t}[{batch},{m},{n + 256}]", f"{t}[{batch},{m}]", f"[{m},{n + 256}]"
            attributes = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims="
            lines = [
                f"s = {scores} dot(p0, p1), {attributes}{{2}}",
                *(f"{name} = s32{places} iota(), iota_dimension={d}" for d, name in enumerate("ij")),
                f"c = pred{places} compare(i, j), direction=GE",
                f"g = pred[{batch},{m},{n + 256}] broadcast(c), dimensions={{1,2}}",
                f"l = {t}[] constant(-inf)",
                f"w = {scores} broadcast(l), dimensions={{}}",
                f"x = {scores} select(g, s, w)",
                f"e = {scores} exponential(x)",
                f"z = {t}[] constant(0)",
                f"m = {line} reduce(e, z), dimensions={{2}}, to_apply=f",
                f"b = {scores} broadcast(m), dimensions={{0,1}}",
                f"h = {scores} divide(e, b)",
            ]
            shapes = (f"{t}[{batch},{m},3]", f"{t}[{batch},{n + 256},3]", f"{t}[{batch},{n + 256},33]")
            product = f"{t}[{batch},{m},33] dot(h, p2), {attributes}{{1}}"
            yield program(product, *shapes, lines=lines, functions=combiner("f", "add", t))


def about_equal(found: object, expected: object) -> None:
    """The exponential rounds as the evaluator's does not."""
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)


def test_chains_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    kernels = [make_kernel(text, whole=True) for text in chains((1, 17))]
    kernels += [replace(make_kernel(text, whole=True), check=about_equal) for text in causal_chains((1, 17))]
    run_guarded(kernels, isa=isa, optimize=True)


def computed_operands() -> Iterator[str]:
    """Products that compute an operand of either side and direction, with a row or a term beyond whole vectors."""
    for kind, side, contracted in itertools.product(OPERANDS, (0, 1), itertools.product((0, 1), repeat=2)):
        for sizes in ((3, 65, 17), (65, 2, 33), (1, 17, 130)):
            yield product_of_computed(kind, "f32", sizes, side=side, contracted=contracted)
        yield product_of_computed(kind, "s8", (5, 65, 33), side=side, contracted=contracted, result="s32")
        yield product_of_computed(kind, "bf16", (17, 33, 65), side=side, contracted=contracted, result="f32")


def test_computed_operands_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in sample(list(computed_operands()), isa, 40)], isa=isa)


@pytest.mark.slow
def test_all_computed_operands_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in computed_operands()], isa=isa)


def overlapping_tiles() -> Iterator[str]:
    """Products whose last tile of rows begins in the one before, of left operands that lie either way."""
    for t, m, n in itertools.product(("f32", "f64"), (65, 131), (17, 65)):
        for contracted, lhs in ((1, f"{t}[{m},19]"), (0, f"{t}[19,{m}]")):
            attributes = f"lhs_contracting_dims={{{contracted}}}, rhs_contracting_dims={{0}}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", lhs, f"{t}[19,{n}]")


def test_overlapping_tiles_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in overlapping_tiles()], isa=isa, optimize=True)


def partly_used_tiles() -> Iterator[str]:
    """Products long enough for tiles that are told how many columns there are, or how long the sums are."""
    for t, n in itertools.product(("f32", "f64", "s8", "s32"), (1, 15, 17, 34)):
        for m, k in ((3, 70), (14, 70), (2, 301)):
            for contracted, rhs in ((0, f"{t}[{k},{n}]"), (1, f"{t}[{n},{k}]")):
                attributes = f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}"
                yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{t}[{m},{k}]", rhs)
        attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        yield program(f"{t}[2,{n + 128}] dot(p0, p1), {attributes}", f"{t}[2,2051]", f"{t}[2051,{n + 128}]")


def test_partly_used_tiles_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    texts = sample(list(partly_used_tiles()), isa, 40)
    run_guarded([make_kernel(text, whole=True) for text in texts], isa=isa, optimize=True)
