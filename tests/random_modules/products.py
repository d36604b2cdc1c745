"""Random products, transforms, factorisations and normalisations."""

from __future__ import annotations

from random_modules.grower import COMMON, FLOATS, Grower
from random_modules.reducing import window
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.ops.fourier import FftAttrs, FftType
from xlalite.hlo.ops.linear_algebra import CholeskyAttrs, Transpose, TriangularSolveAttrs
from xlalite.hlo.ops.special_dots import RaggedDotAttrs
from xlalite.hlo.types.convolution_dims import ConvolutionDims
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import Window, WindowDimension

SIZES = (1, 2, 3, 4, 5, 9, 0)


def _sizes(grow: Grower, count: int) -> list[int]:
    return [grow.chance.choice(SIZES) for _ in range(count)]


def _side(grow: Grower, dtype: DType, parts: list[list[int]]) -> tuple[Handle, list[tuple[int, ...]]]:
    """An operand with the dimensions of all parts in any order, and where those of each part are."""
    sizes = [size for part in parts for size in part]
    order = grow.permutation(len(sizes))
    place = {number: position for position, number in enumerate(order)}
    numbers = iter(range(len(sizes)))
    places = [tuple(place[next(numbers)] for _ in part) for part in parts]
    return grow.of(dtype, [sizes[number] for number in order]), places


def dot(grow: Grower) -> Handle:
    dtype = grow.chance.choice((DType.F32, *COMMON))
    batch, contracting = _sizes(grow, grow.chance.choice((0, 0, 1, 2))), _sizes(grow, grow.chance.choice((1, 1, 0, 2)))
    lhs, (lhs_batch, lhs_contracting, _) = _side(
        grow, dtype, [batch, contracting, _sizes(grow, grow.chance.choice((0, 1, 2)))]
    )
    rhs, (rhs_batch, rhs_contracting, _) = _side(
        grow, dtype, [batch, contracting, _sizes(grow, grow.chance.choice((0, 1)))]
    )
    return grow.op("dot", (lhs, rhs), DotAttrs(lhs_batch, lhs_contracting, rhs_batch, rhs_contracting))


def ragged_dot(grow: Grower) -> Handle:
    """[m, k] x [g, k, n]: groups of rows; or [m, k] x [k, n] with groups of terms."""
    m, k, n, groups = (grow.chance.choice((1, 2, 3, 5)) for _ in range(4))
    dtype = grow.chance.choice((DType.F32, DType.F64, DType.BF16, DType.S32))
    sizes = grow.of(DType.S32, (groups,))
    if grow.chance.random() < 0.5:
        attrs = RaggedDotAttrs((), (1,), (), (1,), (), (0,), (0,))
        return grow.op("ragged-dot", (grow.of(dtype, (m, k)), grow.of(dtype, (groups, k, n)), sizes), attrs)
    attrs = RaggedDotAttrs((), (1,), (), (0,), (), (1,), ())
    return grow.op("ragged-dot", (grow.of(dtype, (m, k)), grow.of(dtype, (k, n)), sizes), attrs)


def scaled_dot(grow: Grower) -> Handle:
    m, k, n = (grow.chance.choice((1, 2, 4, 6)) for _ in range(3))
    dtype = grow.chance.choice((DType.F32, DType.BF16, DType.F8E4M3FN))
    blocks = grow.chance.choice([block for block in (1, 2) if k % block == 0])
    operands = (
        grow.of(dtype, (m, k)),
        grow.of(dtype, (k, n)),
        grow.of(DType.F32, (m, k // blocks)),
        grow.of(DType.F32, (k // blocks, n)),
    )
    return grow.op("scaled-dot", operands, DotAttrs((), (1,), (), (0,)))


def convolution(grow: Grower) -> Handle:
    space = grow.chance.choice((0, 1, 1, 2, 2, 3))
    dtype = grow.chance.choice((DType.F32, DType.F32, *FLOATS, DType.S32, DType.C64))
    groups = grow.chance.choice((1, 1, 1, 2, 3))
    by_batch = grow.chance.random() < 0.3
    inputs, outputs = grow.chance.choice((1, 2, 3)), groups * grow.chance.choice((1, 2, 4))
    batch = grow.chance.choice((1, 2, 0)) * (groups if by_batch else 1)
    sizes = [grow.chance.choice((1, 3, 5, 6, 0)) for _ in range(space)]
    moved = window(grow, sizes, dilated=True)
    if grow.chance.random() < 0.3:
        moved = Window(tuple(_reversed(entry) for entry in moved.dimensions))
    digits = "".join(map(str, range(space)))
    labels = ["".join(grow.chance.sample(letters + digits, 2 + space)) for letters in ("bf", "io", "bf")]
    input_size = {"b": batch, "f": inputs * (1 if by_batch else groups), **dict(zip(digits, sizes, strict=True))}
    kernel_size = {"i": inputs, "o": outputs, **dict(zip(digits, moved.sizes, strict=True))}
    attrs = grow.attrs(
        "convolution",
        window=moved,
        dim_labels=ConvolutionDims(*labels),
        feature_group_count=1 if by_batch else groups,
        batch_group_count=groups if by_batch else 1,
    )
    lhs = grow.of(dtype, [input_size[label] for label in labels[0]])
    rhs = grow.of(dtype, [kernel_size[label] for label in labels[1]])
    return grow.op("convolution", (lhs, rhs), attrs)


def _reversed(entry: WindowDimension) -> WindowDimension:
    low, high = entry.pad_low, entry.pad_high
    return WindowDimension(entry.size, entry.stride, low, high, entry.lhs_dilate, entry.rhs_dilate, reversal=True)


def fft(grow: Grower) -> Handle:
    kind = grow.chance.choice(tuple(FftType))
    lengths = tuple(grow.chance.choice((1, 2, 3, 4, 5, 8, 0)) for _ in range(grow.chance.choice((1, 1, 2, 3))))
    dims = [*grow.dims(1), *lengths]
    if kind is FftType.IRFFT:
        dims[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
    single = grow.chance.random() < 0.7
    real, complex_ = (DType.F32, DType.C64) if single else (DType.F64, DType.C128)
    return grow.op("fft", (grow.of(real if kind is FftType.RFFT else complex_, dims),), FftAttrs(kind, lengths))


def _square(grow: Grower) -> tuple[DType, list[int], int]:
    dtype = grow.chance.choice((DType.F32, DType.F64, DType.C64, DType.C128, DType.F32))
    return dtype, list(grow.dims(1)), grow.chance.choice((1, 2, 3, 4, 0))


def cholesky(grow: Grower) -> Handle:
    """Of a matrix with a strong diagonal, so that the factor exists."""
    dtype, batch, n = _square(grow)
    matrix = grow.of(dtype, (*batch, n, n))
    rank = matrix.shape.rank
    contracting = DotAttrs(tuple(range(rank - 2)), (rank - 1,), tuple(range(rank - 2)), (rank - 1,))
    transposed = matrix
    if dtype.is_complex:
        b = grow.builder
        transposed = b.op("complex", (b.op("real", (matrix,)), b.op("negate", (b.op("imag", (matrix,)),))))
    product = grow.op("dot", (matrix, transposed), contracting)
    b = grow.builder
    rows, columns = (b.iota(DType.S32, (n, n), dim) for dim in range(2))
    diagonal = b.convert(b.convert(b.compare(rows, columns, "EQ"), DType.S32), dtype)
    scaled = diagonal * b.constant(3, dtype) if n else diagonal
    shifted = product + b.broadcast(scaled, product.dims, (rank - 2, rank - 1))
    return grow.op("cholesky", (shifted,), CholeskyAttrs(grow.chance.random() < 0.6))


def triangular_solve(grow: Grower) -> Handle:
    dtype, batch, n = _square(grow)
    columns = grow.chance.choice((1, 2, 3))
    left = grow.chance.random() < 0.5
    attrs = TriangularSolveAttrs(
        left_side=left,
        lower=grow.chance.random() < 0.5,
        unit_diagonal=grow.chance.random() < 0.5,
        transpose_a=grow.chance.choice(tuple(Transpose)),
    )
    rhs = grow.of(dtype, (*batch, n, columns) if left else (*batch, columns, n))
    return grow.op("triangular-solve", (grow.of(dtype, (*batch, n, n)), rhs), attrs)


def _normalised(grow: Grower) -> tuple[Handle, int, list[Handle]]:
    value = grow.any(FLOATS, rank=1)
    feature = grow.chance.randrange(value.shape.rank)
    return value, feature, [grow.of(value.dtype, (value.dims[feature],)) for _ in range(4)]


def batch_norm_training(grow: Grower) -> Handle:
    value, feature, vectors = _normalised(grow)
    return grow.op("batch-norm-training", (value, *vectors[:2]), grow.attrs("batch-norm-training", 0.5, feature))


def batch_norm_inference(grow: Grower) -> Handle:
    value, feature, vectors = _normalised(grow)
    return grow.op("batch-norm-inference", (value, *vectors), grow.attrs("batch-norm-inference", 0.5, feature))


def batch_norm_grad(grow: Grower) -> Handle:
    value, feature, vectors = _normalised(grow)
    operands = (value, *vectors[:3], grow.of(value.dtype, value.dims))
    return grow.op("batch-norm-grad", operands, grow.attrs("batch-norm-grad", 0.5, feature))


MAKERS = {
    "dot": dot,
    "ragged-dot": ragged_dot,
    "scaled-dot": scaled_dot,
    "convolution": convolution,
    "fft": fft,
    "cholesky": cholesky,
    "triangular-solve": triangular_solve,
    "batch-norm-training": batch_norm_training,
    "batch-norm-inference": batch_norm_inference,
    "batch-norm-grad": batch_norm_grad,
}
