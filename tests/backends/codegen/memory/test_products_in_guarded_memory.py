"""Kernels of products and convolutions touch their arrays only: chains, packed or computed operands, parts of tiles."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from computed_operands import OPERANDS, product_of_computed
from kernel_programs import MANY_SIZES, NUMBERS, USUAL_SIZES, combiner, program, sample
from nested_arrays import leaves

from tests.backends.codegen.kernels.test_chains import CAUSAL, SCALED, arguments
from tests.backends.codegen.kernels.test_gradient_chains import FINISHED, GRADIENT, RIGHT, gradient
from xlalite.backends.codegen.kernels.chain_blocks import LEAST_PRODUCTS
from xlalite.hlo.types.dtype import DType


def products(sizes: Sequence[int]) -> Iterator[str]:
    alike = ((t, t, t) for t in NUMBERS)
    mixed = (("u4", "s8", "s32"), ("s8", "s16", "s32"), ("bf16", "f32", "f32"), ("f64", "s8", "f64"))
    for n, (a, b, t) in itertools.product(sizes, (*alike, *mixed)):
        for m, k in ((n, 3), (3, n), (2, 2), (1, n)):
            attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{a}[{m},{k}]", f"{b}[{k},{n}]")
            attributes = "lhs_contracting_dims={0}, rhs_contracting_dims={1}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{a}[{k},{m}]", f"{b}[{n},{k}]")


def layers(sizes: Sequence[int]) -> Iterator[str]:
    """Products with what follows them: arrays along columns, along rows, of all elements, and scalars."""
    for n, t in itertools.product(sizes, NUMBERS):
        for (m, k), (own, dims) in itertools.product(((7, 3), (1, 20), (45, 300)), (("n", "1"), ("m", "0"), ("", ""))):
            beside = own.replace("m", str(m)).replace("n", str(n))
            lines = [
                f"d = {t}[{m},{n}] dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                f"b = {t}[{m},{n}] broadcast(p2), dimensions={{{dims}}}",
                f"a = {t}[{m},{n}] add(d, b)",
            ]
            shapes = f"{t}[{m},{k}]", f"{t}[{k},{n}]", f"{t}[{beside}]", f"{t}[{m},{n}]"
            yield program(
                f"({shapes[3]}, {shapes[3]}) tuple(r0, a)", *shapes, lines=[*lines, f"r0 = {shapes[3]} add(a, p3)"]
            )


def convolutions(sizes: Sequence[int]) -> Iterator[str]:
    """Along features and along space, dense and by groups, with borders."""
    for n in sizes:
        for t in NUMBERS:
            dense = "window={size=3 pad=1_1}, dim_labels="
            yield program(f"{t}[2,5,{n}] convolution(p0, p1), {dense}b0f_0io->b0f", f"{t}[2,5,3]", f"{t}[3,3,{n}]")
            yield program(f"{t}[2,3,{n}] convolution(p0, p1), {dense}bf0_oi0->bf0", f"{t}[2,5,{n}]", f"{t}[3,5,3]")
            if n:
                groups = f"{dense}b0f_0io->b0f, feature_group_count={n}"
                yield program(f"{t}[1,6,{n}] convolution(p0, p1), {groups}", f"{t}[1,6,{n}]", f"{t}[3,1,{n}]")
        for t in ("f32", "bf16", "s32") if n else ():
            # Large enough to be products of matrices: features, pixels and terms in vectors and packed operands.
            apart = "window={size=3 stride=2}, dim_labels="
            yield program(f"{t}[9,24,{n}] convolution(p0, p1), {apart}b0f_0io->b0f", f"{t}[9,49,18]", f"{t}[3,18,{n}]")
            yield program(
                f"{t}[2,40,{n}] convolution(p0, p1), {apart}bf0_oi0->bf0", f"{t}[2,18,{2 * n + 1}]", f"{t}[40,18,3]"
            )
            halves = f"{apart}b0f_0io->b0f, feature_group_count=2"
            yield program(f"{t}[9,24,{2 * n}] convolution(p0, p1), {halves}", f"{t}[9,49,36]", f"{t}[3,18,{2 * n}]")
            plain = "window={size=24}, dim_labels=f0b_i0o->0bf"
            yield program(f"{t}[3,{n},30] convolution(p0, p1), {plain}", f"{t}[9,26,{n}]", f"{t}[9,24,30]")
            # Read where they lie, run after run.
            image = "window={size=20x20}, dim_labels=f01b_i01o->01bf"
            yield program(f"{t}[3,2,{n},30] convolution(p0, p1), {image}", f"{t}[3,22,21,{n}]", f"{t}[3,20,20,30]")
            # Pixels behind features, read where they lie, with what is between the rows.
            rows = "window={size=3x3}, dim_labels=bf01_oi01->bf01"
            yield program(f"{t}[2,23,4,{n}] convolution(p0, p1), {rows}", f"{t}[2,18,6,{n + 2}]", f"{t}[23,18,3,3]")
            narrow = "window={size=3x7 stride=2x2}, dim_labels=b01f_01io->b01f"
            yield program(f"{t}[2,5,14,{n}] convolution(p0, p1), {narrow}", f"{t}[2,11,33,3]", f"{t}[3,7,3,{n}]")
            yield program(f"{t}[2,5,17,{n}] convolution(p0, p1), {narrow}", f"{t}[2,11,39,4]", f"{t}[3,7,4,{n}]")
            # Kernels backwards.
            back = "window={size=3x3 rhs_reversal=1x1}, dim_labels="
            yield program(
                f"{t}[2,23,4,{n}] convolution(p0, p1), {back}bf01_io01->bf01", f"{t}[2,18,6,{n + 2}]", f"{t}[18,23,3,3]"
            )
            yield program(
                f"{t}[2,9,4,{n}] convolution(p0, p1), {back}b01f_01oi->b01f", f"{t}[2,11,6,18]", f"{t}[3,3,{n},18]"
            )


def groups(sizes: Sequence[int]) -> Iterator[str]:
    """Convolutions of few features a group, and gradients of their kernels, in either order of dimensions."""
    for n in filter(None, sizes):
        for t in NUMBERS:
            for side, step in ((3, 1), (9, 2)):
                same = f"window={{size=2x{side} stride=1x{step} pad=1_0x2_2}}, dim_labels="
                for outputs, inputs in ((1, 1), (2, 1), (3, 2)):
                    by = f"feature_group_count={n}"
                    width = (16 + 4 - side) // step + 1
                    call = f"{t}[1,3,{width},{n * outputs}] convolution(p0, p1), {same}b01f_01io->b01f, {by}"
                    yield program(call, f"{t}[1,3,16,{n * inputs}]", f"{t}[2,{side},{inputs},{n * outputs}]")
                    width = (n + 8 + 4 - side) // step + 1
                    call = f"{t}[2,{2 * outputs},3,{width}] convolution(p0, p1), {same}bf01_oi01->bf01, "
                    call += "feature_group_count=2"
                    yield program(call, f"{t}[2,{2 * inputs},3,{n + 8}]", f"{t}[{2 * outputs},{inputs},2,{side}]")
            holes = "window={size=3x3 pad=1_1x2_1 lhs_dilate=2x3}, dim_labels=b01f_01io->b01f"
            call = f"{t}[1,3,{3 * n - 1},5] convolution(p0, p1), {holes}, feature_group_count=5"
            yield program(call, f"{t}[1,2,{n},5]", f"{t}[3,3,1,5]")
            back = f"window={{size=3x12 pad=1_1x1_1}}, dim_labels=f01b_i01o->01bf, batch_group_count={n}"
            yield program(f"{t}[3,3,1,{n}] convolution(p0, p1), {back}", f"{t}[2,3,12,{n}]", f"{t}[2,3,12,{n}]")
            for outputs, inputs in ((3, 2), (2, 5)):
                sizes_of = f"{t}[2,3,12,{n * inputs}]", f"{t}[2,3,12,{n * outputs}]"
                yield program(f"{t}[3,3,{inputs},{n * outputs}] convolution(p0, p1), {back}", *sizes_of)
            back = "window={size=3x12 pad=1_1x1_1}, dim_labels=fb01_io01->bf01, batch_group_count=2"
            sizes_of = f"{t}[2,2,3,{n + 11}]", f"{t}[2,2,3,12]"
            yield program(f"{t}[1,2,3,{n + 2}] convolution(p0, p1), {back}", *sizes_of)


def phases(sizes: Sequence[int]) -> Iterator[str]:
    """Convolutions with holes in their input, whose phases are products of one kernel."""
    for n, t in itertools.product(filter(None, sizes), ("f32", "f64", "bf16", "f16", "s8")):
        for k, (low, high), d, back in ((3, (1, 2), 2, 0), (5, (2, 3), 2, 1), (7, (3, 1), 3, 0)):
            rows, columns = (d * last + 2 + low + high - k for last in (6, n + 2))
            sides = "x".join([f"{low}_{high}"] * 2)
            window = f"size={k}x{k} pad={sides} lhs_dilate={d}x{d} rhs_reversal={back}x{back}"
            for features, inputs in ((n + 17, 33), (3, 64), (40, n)):
                result, image = f"{t}[2,{rows},{columns},{features}]", f"{t}[2,7,{n + 3},{inputs}]"
                call = f"{result} convolution(p0, p1), window={{{window}}}, dim_labels=b01f_01oi->b01f"
                yield program(call, image, f"{t}[{k},{k},{features},{inputs}]")
        gradient = "window={size=9x55 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"
        image, kernel = f"{t}[4,5,28,{n}]", f"{t}[4,9,55,33]"
        yield program(f"{t}[4,4,{n},33] convolution(p0, p1), {gradient}", image, kernel)


def large_products() -> Iterator[str]:
    """Products that pack operands into scratch memory."""
    sizes = (130, 300, 65), (65, 700, 129), (257, 129, 1), (2, 2050, 130), (259, 520, 275), (97, 2100, 291)
    for t in ("f32", "f64", "bf16", "s8"):
        for m, k, n in sizes:
            attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{t}[{m},{k}]", f"{t}[{k},{n}]")
            attributes = "lhs_contracting_dims={0}, rhs_contracting_dims={1}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{t}[{k},{m}]", f"{t}[{n},{k}]")
        attributes = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
        yield program(f"{t}[19,35] dot(p0, p1), {attributes}", f"{t}[4501,19]", f"{t}[4501,35]")


def turned_products(sizes: Sequence[int]) -> Iterator[str]:
    """Products whose left operands have rows for neighbours, in one run or in several, and are packed."""
    for n, (a, t) in itertools.product(sizes, (("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("s8", "s32"))):
        for m, k, columns in ((n, 70, 150), (131, n + 63, n + 130), (2 * n + 1, 128, 139)):
            rows = "lhs_contracting_dims={0}, rhs_contracting_dims="
            yield program(f"{t}[{m},{columns}] dot(p0, p1), {rows}{{0}}", f"{a}[{k},{m}]", f"{a}[{k},{columns}]")
            yield program(f"{t}[{m},{columns}] dot(p0, p1), {rows}{{1}}", f"{a}[{k},{m}]", f"{a}[{columns},{k}]")
            between = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            result = f"{t}[3,{m},{columns}]"
            yield program(f"{result} dot(p0, p1), {between}", f"{a}[3,{k},{m}]", f"{a}[{k},{columns}]")
            batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}"
            yield program(f"{result} dot(p0, p1), {batches}", f"{a}[3,{k},{m}]", f"{a}[3,{k},{columns}]")


FAMILIES = (products, layers, convolutions, groups, phases, turned_products)


@pytest.mark.parametrize("family", FAMILIES)
def test_products_stay_in_their_arrays(
    run_guarded: Any, make_kernel: Any, product_isa: str, family: Callable[[Sequence[int]], Iterator[str]]
) -> None:
    chosen = sample(list(family(USUAL_SIZES)), product_isa, 36)
    run_guarded(
        [make_kernel(text, whole=True) for text in chosen], isa=product_isa, optimize=family in (layers, phases)
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", MANY_SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_products_of_many_sizes_stay_in_their_arrays(
    run_guarded: Any, make_kernel: Any, product_isa: str, family: Callable[[Sequence[int]], Iterator[str]], size: int
) -> None:
    texts = list(family([size]))
    kernels = [make_kernel(text, whole=True) for text in sample(texts, product_isa, len(texts))]
    run_guarded(kernels, isa=product_isa, optimize=family in (layers, phases))


def test_large_products_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    kernels = [make_kernel(text, whole=True) for text in sample([*large_products()], product_isa, 12)]
    run_guarded(kernels, isa=product_isa, optimize=True)


@pytest.mark.slow
def test_all_large_products_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    for optimize in (True, False):
        kernels = [make_kernel(text, whole=True) for text in large_products()]
        run_guarded(kernels, isa=product_isa, optimize=optimize)


def chains(sizes: Sequence[int]) -> Iterator[str]:
    """Rows between two products, of numbers that are exact, too large for the second cache."""
    for n in filter(None, sizes):
        for t, (m, k) in itertools.product(("f32", "f64"), ((65, 3), (131, n % 64 + 2))):
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


def gradient_chains(sizes: Sequence[int]) -> Iterator[str]:
    """Gradients of attention: products that sum over columns of rows and over rows, which are on either side."""
    for n, t in itertools.product(filter(None, sizes), ("f32", "f64")):
        # Zeros are left out of sums over rows where there are many columns.
        for m, columns, middle, end in (
            (65, n + 256, SCALED, GRADIENT),
            (131, n + 512, CAUSAL, RIGHT),
            (131, n + 512, CAUSAL, FINISHED),
        ):
            batch = max(LEAST_PRODUCTS, -(-(9 << 17) // (m * columns * DType(t).size_bytes)))
            yield gradient(batch, m, columns, n % 16 + 24, 33, middle=middle, end=end).replace("f32", t)


def about_equal(found: object, expected: object) -> None:
    """Close in units of the largest number: the exponential rounds as the evaluator's does not."""
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        largest = np.max(np.abs(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=64 * float(np.finfo(other.dtype).eps) * largest)


def kernels_of_chains(make_kernel: Any, sizes: Sequence[int]) -> list[Any]:
    rng = np.random.default_rng(0)
    kernels = [make_kernel(text, whole=True) for text in chains(sizes)]
    kernels += [replace(make_kernel(text, whole=True), check=about_equal) for text in causal_chains(sizes)]
    for text in gradient_chains(sizes):
        # Of whole numbers, which are large, little would be left where products are subtracted from their sums.
        kernels.append(replace(make_kernel(text), arguments=tuple(arguments(text, rng)), check=about_equal))
    return kernels


def test_chains_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded(
        sample(kernels_of_chains(make_kernel, (1, 17)), product_isa, 24),
        isa=product_isa,
        optimize=True,
        kinds={"chain"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", MANY_SIZES)
def test_chains_of_many_sizes_stay_in_their_arrays(
    run_guarded: Any, make_kernel: Any, product_isa: str, size: int
) -> None:
    run_guarded(kernels_of_chains(make_kernel, [size]), isa=product_isa, optimize=True, kinds={"chain"})


def computed_operands() -> Iterator[str]:
    """Products that compute an operand of either side and direction, with a row or a term beyond whole vectors."""
    for kind, side, contracted in itertools.product(OPERANDS, (0, 1), itertools.product((0, 1), repeat=2)):
        for sizes in ((3, 65, 17), (65, 2, 33), (1, 17, 130)):
            yield product_of_computed(kind, "f32", sizes, side=side, contracted=contracted)
        yield product_of_computed(kind, "s8", (5, 65, 33), side=side, contracted=contracted, result="s32")
        yield product_of_computed(kind, "bf16", (17, 33, 65), side=side, contracted=contracted, result="f32")


def test_computed_operands_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded(
        [make_kernel(text, whole=True) for text in sample(list(computed_operands()), product_isa, 40)], isa=product_isa
    )


@pytest.mark.slow
def test_all_computed_operands_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in computed_operands()], isa=product_isa)


def overlapping_tiles() -> Iterator[str]:
    """Products whose last tile of rows begins in the one before, of left operands that lie either way."""
    for t, m, n in itertools.product(("f32", "f64"), (65, 131), (17, 65)):
        for contracted, lhs in ((1, f"{t}[{m},19]"), (0, f"{t}[19,{m}]")):
            attributes = f"lhs_contracting_dims={{{contracted}}}, rhs_contracting_dims={{0}}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", lhs, f"{t}[19,{n}]")
            dot = f"d = {t}[{m},{n}] dot(p0, p1), {attributes}"
            yield program(f"{t}[{m},{n}] add(d, p2)", lhs, f"{t}[19,{n}]", f"{t}[{m},{n}]", lines=[dot])


def whole_tiles() -> Iterator[str]:
    """Products whose last tiles sum rows and columns that there are not, for which there is room."""
    for t, n in itertools.product(("bf16", "f16", "s8"), (65, 1000, 1021)):
        sums, attributes = "s32" if t == "s8" else t, "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        dot = f"d = {sums}[64,{n}] dot(p0, p1), {attributes}"
        yield program(f"f32[64,{n}] convert(d)", f"{t}[64,70]", f"{t}[70,{n}]", lines=[dot])


def test_whole_tiles_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in whole_tiles()], isa=product_isa, optimize=True)


def test_overlapping_tiles_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in overlapping_tiles()], isa=product_isa, optimize=True)


def mirrored_products() -> Iterator[str]:
    """Products whose result is their own transposition, of a matrix that lies either way."""
    for t, m, k, contracted in itertools.product(("f32", "f64", "s32"), (290, 385), (67, 601), (0, 1)):
        attributes = f"lhs_contracting_dims={{{contracted}}}, rhs_contracting_dims={{{contracted}}}"
        yield program(f"{t}[{m},{m}] dot(p0, p0), {attributes}", f"{t}[{m},{k}]" if contracted else f"{t}[{k},{m}]")


def test_mirrored_products_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in mirrored_products()], isa=product_isa, optimize=True)


def padded_images() -> Iterator[str]:
    """Convolutions whose pieces copy lines of an image, in rows of all lengths, with zeros around them."""
    for t, n in itertools.product(("f32", "f64", "bf16"), (5, 16, 33)):
        window = "window={size=3x3 pad=1_2x2_1}, dim_labels="
        last, first = f"{t}[6,9,{n + 1},16]", f"{t}[6,16,9,{n + 1}]"
        yield program(f"{last} convolution(p0, p1), {window}b01f_01io->b01f", f"{t}[6,8,{n},16]", f"{t}[3,3,16,16]")
        yield program(f"{first} convolution(p0, p1), {window}bf01_oi01->bf01", f"{t}[6,16,8,{n}]", f"{t}[16,16,3,3]")


def test_padded_images_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in padded_images()], isa=isa, optimize=True)


def few_features() -> Iterator[str]:
    """Convolutions with few output features, and gradients of their kernels, whose images are read where they lie."""
    for t, n in itertools.product(("f32", "f64", "f16"), (1, 3, 7)):
        window = "window={size=3x3}, dim_labels=b01f_01io->b01f"
        for inputs in (9, 32):
            shapes = f"{t}[3,7,19,{n}]", f"{t}[3,9,21,{inputs}]", f"{t}[3,3,{inputs},{n}]"
            yield program(f"{shapes[0]} convolution(p0, p1), {window}", *shapes[1:])
        for labels, image, pixels, result in (
            ("f01b_i01o->01bf", "9,37,35,24", f"9,35,33,{n}", f"3,3,24,{n}"),
            ("fb01_io01->fb01", "9,5,37,35", f"9,{n},35,33", f"{n},5,3,3"),
            ("fb01_io01->01bf", "9,5,37,35", f"9,{n},35,33", f"3,3,5,{n}"),
        ):
            shapes = f"{t}[{image}]", f"{t}[{pixels}]", f"{t}[{result}]"
            call = f"c = {shapes[2]} convolution(p0, p1), window={{size=35x33}}, dim_labels={labels}"
            yield program(f"{shapes[2]} subtract(p2, c)", *shapes, lines=[call])


def test_images_that_few_features_see_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in few_features()], isa=isa, optimize=True)


def short_lines() -> Iterator[str]:
    """Convolutions in groups that sum several lines of an image together, with borders on all sides."""
    for t, n, stride in itertools.product(("f32", "f64", "bf16"), (1, 6, 14, 23), (1, 2)):
        window = f"window={{size=3x5 pad=1_1x2_2 stride=1x{stride}}}, dim_labels=bf01_oi01->bf01"
        result = f"{t}[1,3,9,{(n - 1) // stride + 1}]"
        shapes = f"{t}[1,3,9,{n}]", f"{t}[3,1,3,5]"
        yield program(f"{result} convolution(p0, p1), {window}, feature_group_count=3", *shapes)


def test_short_lines_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([make_kernel(text, whole=True) for text in short_lines()], isa=isa, optimize=True)


def products_in_panels() -> Iterator[str]:
    """Products of few rows, by columns of which the last are parts of a panel, or too few for one."""
    for t, (m, k) in itertools.product(("f32", "f64", "s32"), ((13, 271), (30, 300), (65, 264))):
        for n in (640, 641, 657, 680, 703):
            attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{t}[{m},{k}]", f"{t}[{k},{n}]")


def test_pieces_that_begin_with_few_rows_stay_in_their_arrays(run_guarded: Any, make_kernel: Any) -> None:
    attributes = (
        'lhs_contracting_dims={1}, rhs_contracting_dims={0}, backend_config={"piece":"14x96","rows_outside":false}'
    )
    text = program(f"f32[19,700] dot(p0, p1), {attributes}", "f32[19,271]", "f32[271,700]")
    run_guarded([make_kernel(text, whole=True)], isa=None, optimize=True)


def test_products_in_panels_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    texts = sample(list(products_in_panels()), product_isa, 15)
    run_guarded([make_kernel(text, whole=True) for text in texts], isa=product_isa, optimize=True)


def partly_used_tiles() -> Iterator[str]:
    """Products long enough for tiles that are told how many columns there are, or how long the sums are."""
    for t, n in itertools.product(("f32", "f64", "s8", "s32"), (1, 15, 17, 34)):
        for m, k in ((3, 70), (14, 70), (2, 301)):
            for contracted, rhs in ((0, f"{t}[{k},{n}]"), (1, f"{t}[{n},{k}]")):
                attributes = f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}"
                yield program(f"{t}[{m},{n}] dot(p0, p1), {attributes}", f"{t}[{m},{k}]", rhs)
        attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        yield program(f"{t}[2,{n + 128}] dot(p0, p1), {attributes}", f"{t}[2,2051]", f"{t}[2051,{n + 128}]")


def test_partly_used_tiles_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, product_isa: str) -> None:
    texts = sample(list(partly_used_tiles()), product_isa, 40)
    run_guarded([make_kernel(text, whole=True) for text in texts], isa=product_isa, optimize=True)
