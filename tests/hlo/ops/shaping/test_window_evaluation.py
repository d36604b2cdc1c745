"""reduce-window, select-and-scatter and convolution, against loops over positions."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.windows import ReduceWindowAttrs, SelectAndScatterAttrs
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import Window, WindowDimension

F32, S32 = DType.F32, DType.S32
Body = Callable[[Builder, tuple[Handle, ...]], Handle]


def elements(window: Window, position: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[tuple[tuple, tuple]]:
    """(kernel index, array index) of the window's elements that exist, in row-major order."""
    for offsets in itertools.product(*(range(dim.size) for dim in window.dimensions)):
        index = []
        for dim, place, offset, size in zip(window.dimensions, position, offsets, sizes, strict=True):
            padded = place * dim.stride - dim.pad_low + offset * dim.rhs_dilate
            if padded % dim.lhs_dilate == 0 and 0 <= padded // dim.lhs_dilate < size:
                index.append(padded // dim.lhs_dilate)
        if len(index) == len(sizes):
            yield offsets, tuple(index)


def random_window(rng: np.random.Generator, rank: int) -> Window:
    numbers = rng.integers((1, 1, -2, -2, 1, 1, 0), (4, 4, 4, 4, 3, 3, 2), (rank, 7)).tolist()
    return Window(tuple(WindowDimension(*row[:6], bool(row[6])) for row in numbers))


def reduce_window(x: np.ndarray, initial: object, window: Window, body: Body) -> np.ndarray:
    dtype = DType.from_numpy(x.dtype)
    builder = Builder("reduce_window")
    function = builder.subcomputation("f", [Shape.array(dtype)] * 2, body)
    operands = builder.parameter(Shape.array(dtype, x.shape)), builder.parameter(Shape.array(dtype))
    module = builder.build_module(builder.op("reduce-window", operands, ReduceWindowAttrs(window), (function,)))
    return np.asarray(evaluate(module, x, np.asarray(initial, x.dtype)))


def plus(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return p[0] + p[1]


@pytest.mark.parametrize("dtype", [DType.S2, DType.U4, DType.S32, DType.BF16, DType.F32])
def test_window_over_a_scalar(dtype: DType) -> None:
    assert reduce_window(np.asarray(1).astype(dtype.numpy), 0, Window(), plus) == 1


def second_plus_half_of_first(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return p[0] * 0.5 + p[1]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("body", [plus, second_plus_half_of_first], ids=["monoid", "function"])
def test_reduce_window_against_a_loop(seed: int, body: Body) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    window, sizes = random_window(rng, rank), tuple(rng.integers(0, 6, rank).tolist())
    x = rng.integers(-8, 8, sizes).astype(np.float64)
    positions = window.output_sizes(sizes)
    expected = np.empty(positions)
    for position in np.ndindex(*positions):
        total = 16.0
        for _, index in elements(window, position, sizes):
            total = total + x[index] if body is plus else total * 0.5 + x[index]
        expected[position] = total
    np.testing.assert_array_equal(reduce_window(x, 16.0, window, body), expected)


@pytest.mark.parametrize("opcode", ["maximum", "minimum", "add", "multiply"])
@pytest.mark.parametrize("dtype", [DType.S8, DType.U4, DType.BF16, F32, DType.F8E4M3FN], ids=lambda d: d.value)
def test_pooling_of_every_kind(opcode: str, dtype: DType, rng: np.random.Generator) -> None:
    x = rng.integers(0, 3, 9).astype(np.float32).astype(dtype.numpy)
    window = Window((WindowDimension(3, 2, 1, 1),))
    found = reduce_window(x, 1, window, lambda b, p: b.op(opcode, p))
    scalar = {"maximum": max, "minimum": min, "add": lambda a, b: a + b, "multiply": lambda a, b: a * b}[opcode]
    for position in range(5):
        total = 1.0
        for _, (index,) in elements(window, (position,), (9,)):
            total = scalar(total, float(x[index]))
        wanted = np.asarray(int(total) & 15 if dtype is DType.U4 else total, np.float32).astype(dtype.numpy)
        assert found[position] == wanted


@pytest.mark.parametrize("size", [2, 7, 64, 1000, 3000])
def test_prefix_sums_are_quick_and_right(size: int, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (3, 3000)).astype(np.float64)
    window = Window((WindowDimension(1), WindowDimension(size, pad_low=size - 1)))
    sums = np.cumsum(x, axis=1)
    expected = sums - np.pad(sums, ((0, 0), (size, 0)))[:, :3000]
    np.testing.assert_array_equal(reduce_window(x, 0.0, window, plus), expected)


def test_large_windows_of_other_functions() -> None:
    """Composition of affine maps is associative but does not commute; only the first component is kept here."""
    builder = Builder("affine")
    f64 = Shape.array(DType.F64)

    def compose(b: Builder, p: tuple[Handle, ...]) -> Handle:
        a0, b0, a1, b1 = p
        return b.tuple((a0 * a1, b0 * a1 + b1))

    function = builder.subcomputation("compose", [f64] * 4, compose)
    count = 2000
    arrays = [builder.parameter(Shape.array(DType.F64, (count,))) for _ in range(2)]
    starts = [builder.constant(1.0, DType.F64), builder.constant(0.0, DType.F64)]
    window = Window((WindowDimension(count, pad_low=count - 1),))
    root = builder.op("reduce-window", (*arrays, *starts), ReduceWindowAttrs(window), (function,))
    rng = np.random.default_rng(3)
    scale, shift = rng.choice([0.5, 1.0, -1.0], count), rng.integers(-3, 4, count).astype(np.float64)
    factors, offsets = evaluate(builder.build_module(root), scale, shift)
    value = 0.0
    for a, b, offset in zip(scale, shift, offsets, strict=True):
        value = value * a + b
        assert offset == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(factors, np.cumprod(scale), rtol=1e-12)


def select_and_scatter(x: np.ndarray, source: np.ndarray, window: Window, scatter: Body = plus) -> np.ndarray:
    builder = Builder("select_and_scatter")
    scalar = Shape.array(F32)
    select = builder.subcomputation("ge", [scalar] * 2, lambda b, p: b.compare(p[0], p[1], "GE"))
    combine = builder.subcomputation("combine", [scalar] * 2, scatter)
    operands = [builder.parameter(Shape.array(F32, array.shape)) for array in (x, source)]
    start = builder.constant(1.0, F32)
    attrs = SelectAndScatterAttrs(window)
    module = builder.build_module(builder.op("select-and-scatter", (*operands, start), attrs, (select, combine)))
    return np.asarray(evaluate(module, x, source))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("body", [plus, second_plus_half_of_first], ids=["monoid", "function"])
def test_select_and_scatter_against_a_loop(seed: int, body: Body) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 3))
    numbers = rng.integers((1, 1, 0, 0), (4, 4, 3, 3), (rank, 4)).tolist()
    window = Window(tuple(WindowDimension(*row) for row in numbers))
    sizes = tuple(rng.integers(3, 7, rank).tolist())
    x = rng.integers(-2, 3, sizes).astype(np.float32)
    positions = window.output_sizes(sizes)
    source = rng.integers(-8, 8, positions).astype(np.float32)
    expected = np.ones(sizes, np.float32)
    for position in np.ndindex(*positions):
        best = None
        for _, index in elements(window, position, sizes):
            if best is None or not x[best] >= x[index]:
                best = index
        if best is not None:
            before = expected[best]
            expected[best] = before + source[position] if body is plus else before * 0.5 + source[position]
    np.testing.assert_array_equal(select_and_scatter(x, source, window, body), expected)


def convolve(lhs: np.ndarray, rhs: np.ndarray, attrs: ConvolutionAttrs, result: DType | None = None) -> np.ndarray:
    builder = Builder("convolution")
    operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in (lhs, rhs)]
    shapes = [operand.shape for operand in operands]
    declared = None if result is None else Shape.array(result)
    shape = OPS["convolution"].infer_shape(shapes, attrs, (), declared)
    module = builder.build_module(builder.op("convolution", operands, attrs, shape=shape))
    return np.asarray(evaluate(module, lhs, rhs))


def convolve_slowly(lhs: np.ndarray, rhs: np.ndarray, attrs: ConvolutionAttrs) -> np.ndarray:
    dims, window = attrs.dim_labels, attrs.window
    x = lhs.transpose(dims.input_batch, dims.input_feature, *dims.input_spatial)
    kernel = rhs.transpose(dims.kernel_output_feature, dims.kernel_input_feature, *dims.kernel_spatial)
    flipped = tuple(axis + 2 for axis, dim in enumerate(window.dimensions) if dim.reversal)
    kernel = np.flip(kernel, flipped)
    batch, outputs, inputs = len(x) // attrs.batch_group_count, len(kernel), kernel.shape[1]
    positions = window.output_sizes(x.shape[2:])
    result = np.zeros((batch, outputs, *positions), np.result_type(lhs, rhs))
    for n, o, position in itertools.product(range(batch), range(outputs), np.ndindex(*positions)):
        group = o // (outputs // attrs.feature_group_count)
        row = o // (outputs // attrs.batch_group_count) * batch + n
        for offsets, index in elements(window, position, x.shape[2:]):
            features = x[(row, slice(group * inputs, (group + 1) * inputs), *index)]
            result[(n, o, *position)] += features @ kernel[(o, slice(None), *offsets)]
    order = [0] * result.ndim
    for source, dim in enumerate((dims.output_batch, dims.output_feature, *dims.output_spatial)):
        order[dim] = source
    return result.transpose(order)


def random_convolution(rng: np.random.Generator) -> tuple[ConvolutionAttrs, tuple[int, ...], tuple[int, ...]]:
    rank = int(rng.integers(0, 4))
    digits = [str(digit) for digit in range(rank)]
    labels = ["".join(rng.permutation([*letters, *digits])) for letters in ("bf", "io", "bf")]
    dims, window = ConvolutionDims(*labels), random_window(rng, rank)
    feature_groups, batch_groups = [(1, 1), (3, 1), (1, 2)][int(rng.integers(3))]
    lhs, rhs = [0] * (rank + 2), [0] * (rank + 2)
    lhs[dims.input_batch], lhs[dims.input_feature] = 2 * batch_groups, 2 * feature_groups
    rhs[dims.kernel_input_feature], rhs[dims.kernel_output_feature] = 2, 2 * feature_groups * batch_groups
    for dim in dims.input_spatial:
        lhs[dim] = int(rng.integers(0, 5))
    for dim, size in zip(dims.kernel_spatial, window.sizes, strict=True):
        rhs[dim] = size
    attrs = ConvolutionAttrs(
        window=window, dim_labels=dims, feature_group_count=feature_groups, batch_group_count=batch_groups
    )
    return attrs, tuple(lhs), tuple(rhs)


@pytest.mark.parametrize("seed", range(80))
def test_convolution_against_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attrs, lhs_sizes, rhs_sizes = random_convolution(rng)
    lhs, rhs = rng.integers(-9, 9, lhs_sizes).astype(np.float64), rng.integers(-9, 9, rhs_sizes).astype(np.float64)
    np.testing.assert_array_equal(convolve(lhs, rhs, attrs), convolve_slowly(lhs, rhs, attrs))


@pytest.mark.parametrize("dtype", [DType.S8, S32, DType.U64, DType.C64, DType.BF16], ids=lambda d: d.value)
def test_convolution_of_other_types(dtype: DType, rng: np.random.Generator) -> None:
    attrs = ConvolutionAttrs(window=Window((WindowDimension(2),)), dim_labels=ConvolutionDims("b0f", "0io", "b0f"))
    lhs, rhs = (rng.integers(0, 90, dims).astype(dtype.numpy) for dims in ((1, 4, 2), (2, 2, 3)))
    wide = np.int64 if dtype.is_integral else np.complex128 if dtype.is_complex else np.float64
    expected = convolve_slowly(lhs.astype(wide), rhs.astype(wide), attrs)
    np.testing.assert_array_equal(convolve(lhs, rhs, attrs), expected.astype(dtype.numpy))
    if dtype is DType.S8:
        np.testing.assert_array_equal(convolve(lhs, rhs, attrs, S32), expected.astype(np.int32))


@pytest.mark.parametrize("zero", range(4))
def test_convolution_of_empty_arrays(zero: int) -> None:
    batch, length, inputs, outputs = (0 if position == zero else 2 for position in range(4))
    attrs = ConvolutionAttrs(window=Window((WindowDimension(1),)), dim_labels=ConvolutionDims("b0f", "0io", "b0f"))
    found = convolve(np.ones((batch, length, inputs), np.float32), np.ones((1, inputs, outputs), np.float32), attrs)
    np.testing.assert_array_equal(found, np.full((batch, length, outputs), inputs, np.float32))


def test_padding_is_zeros_that_infinite_kernels_turn_into_nan() -> None:
    window = Window((WindowDimension(3, pad_low=1, pad_high=1),))
    attrs = ConvolutionAttrs(window=window, dim_labels=ConvolutionDims("b0f", "0io", "b0f"))
    found = convolve(np.ones((1, 2, 1), np.float32), np.array([np.inf, 1, 2], np.float32).reshape(3, 1, 1), attrs)
    np.testing.assert_array_equal(found.ravel(), [np.nan, np.inf])


def test_holes_contribute_nothing_even_to_infinite_kernels() -> None:
    window = Window((WindowDimension(3, pad_low=3, pad_high=2, lhs_dilate=2),))
    attrs = ConvolutionAttrs(window=window, dim_labels=ConvolutionDims("b0f", "0io", "b0f"))
    found = convolve(np.ones((1, 2, 1), np.float32), np.array([1, np.inf, 2], np.float32).reshape(3, 1, 1), attrs)
    # The elements lie at 0 and 2; elements that are zeros lie at -2 and 4.
    np.testing.assert_array_equal(found.ravel(), [np.nan, 2, np.inf, 3, np.inf, 1])


ATTRS = {"dim_labels": ConvolutionDims("b0f", "0io", "b0f"), "window": Window((WindowDimension(3),))}


@pytest.mark.parametrize(
    ("lhs", "rhs", "extra", "message"),
    [
        ((2, 9, 4), (2, 4, 5), {}, r"the window has size \[3\], the kernel's spatial sizes are \[2\]"),
        ((2, 9, 4), (3, 3, 5), {}, "the input has 4 features, the kernel takes 3 in each of 1 groups"),
        ((2, 9, 4), (3, 2, 5), {"feature_group_count": 2}, "output features 5 is not divisible by the group count 2"),
        ((3, 9, 4), (3, 4, 4), {"batch_group_count": 2}, "batch size 3 is not divisible by the group count 2"),
        ((4, 9, 4), (3, 2, 4), {"batch_group_count": 2, "feature_group_count": 2}, "one of them 1"),
        ((2, 9), (3, 4, 5), {}, "describe arrays of rank 3, found 2 and 3"),
        ((2, 9, 4), (3, 4, 5), {"window": Window()}, "the window has 0 dimensions, expected 1"),
    ],
)
def test_convolution_errors(lhs: tuple, rhs: tuple, extra: dict, message: str) -> None:
    attrs = ConvolutionAttrs(**{**ATTRS, **extra})
    with pytest.raises(ShapeError, match=message):
        OPS["convolution"].infer_shape([Shape.array(F32, lhs), Shape.array(F32, rhs)], attrs)


def test_window_errors() -> None:
    with pytest.raises(ShapeError, match="window size of dimension 0 must be positive, found 0"):
        reduce_window(np.zeros(3, np.float32), 0, Window((WindowDimension(0),)), plus)
    with pytest.raises(ShapeError, match="the window has 1 dimensions, expected 2"):
        reduce_window(np.zeros((3, 3), np.float32), 0, Window((WindowDimension(2),)), plus)
    with pytest.raises(ShapeError, match=r"the source has sizes \[3\], the window has \[2\] positions"):
        select_and_scatter(np.zeros(4, np.float32), np.zeros(3, np.float32), Window((WindowDimension(2, 2),)))
    dilated = Window((WindowDimension(2, rhs_dilate=2),))
    with pytest.raises(ShapeError, match="the window must not have dilation"):
        select_and_scatter(np.zeros(4, np.float32), np.zeros(2, np.float32), dilated)
