"""Discrete Fourier transforms over the last one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import complex64, complex128, float32, float64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.fourier import FftType
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import COMPLEX_TYPES, declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type

_COMPLEX = {float32: complex64, float64: complex128}
_REAL = {made: part for part, made in _COMPLEX.items()}


def _transform(b: Builder, x: Handle, kind: FftType, lengths: Sequence[int]) -> Handle:
    return b.op("fft", (x,), OPS["fft"].attrs(fft_type=kind, fft_length=tuple(lengths)))


def _suffix(rank: int) -> str:
    return "" if rank == 1 else f"{rank}D"


def _lengths(x: Tensor, rank: int) -> Tensor:
    """The sizes of the last dimensions."""
    if x.shape.rank is None:
        raise ShapeError("gradients of transforms need known ranks")
    return node("Slice", [shape_tensor(x), constant([x.shape.rank - rank]), constant([rank])])


def _number(x: Tensor, rank: int, dtype: object) -> Tensor:
    """How many numbers go into one transform."""
    product = node("Prod", [_lengths(x, rank), constant(np.array([0], np.int32))], {"keep_dims": False})
    return node("Cast", [product], {"dtype": dtype})


# FFT, IFFT, FFT2D, ...: complex numbers.


def _declare_complex(rank: int) -> None:
    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], COMPLEX_TYPES)
        return [(op.inputs[0].dtype, op.inputs[0].shape.with_rank_at_least(rank))]

    for name, other, kind in (("FFT", "IFFT", FftType.FFT), ("IFFT", "FFT", FftType.IFFT)):

        def lower(
            ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...], kind: FftType = kind
        ) -> Sequence[Handle]:
            return [_transform(ctx.builder, inputs[0], kind, inputs[0].dims[-rank:])]

        def gradient(op: Operation, grad: Tensor, other: str = other) -> Sequence[Tensor | None]:
            turned = node(f"{other}{_suffix(rank)}", [grad])
            count = _number(op.inputs[0], rank, grad.dtype)
            return [turned * count if other == "IFFT" else turned / count]

        declare(f"{name}{_suffix(rank)}", ("input",), infer, lower, gradient, None)


# RFFT(input, fft_length), IRFFT(input, fft_length), ...: real signals, of which the first frequencies are kept.


def _fitted(b: Builder, x: Handle, sizes: Sequence[int]) -> Handle:
    """The last dimensions cut or padded with zeros."""
    batch = x.dims[: len(x.dims) - len(sizes)]
    kept = [min(own, size) for own, size in zip(x.dims[len(batch) :], sizes, strict=True)]
    cut = b.slice(x, [0] * len(x.dims), [*batch, *kept])
    around = [(0, 0, 0)] * len(batch) + [(0, size - own, 0) for own, size in zip(kept, sizes, strict=True)]
    return b.pad(cut, b.constant(0, x.dtype), around)


def _frequencies(lengths: Sequence[int]) -> list[int]:
    """The sizes of the frequencies that describe real signals."""
    return [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]


def _declare_real(rank: int) -> None:
    def known_shape(op: Operation, of_frequencies: bool) -> TensorShape:
        x, lengths = op.inputs
        known = constant_value(lengths)
        dims = x.shape.with_rank_at_least(rank).dims
        if dims is None:
            return unknown_shape()
        batch = dims[:-rank]
        if known is None:
            return TensorShape([*batch, *[None] * rank])
        listed = [int(size) for size in known]
        return TensorShape([*batch, *(_frequencies(listed) if of_frequencies else listed)])

    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], _COMPLEX)
        return [(_COMPLEX[op.inputs[0].dtype], known_shape(op, True))]

    def infer_inverse(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], COMPLEX_TYPES)
        return [(_REAL[op.inputs[0].dtype], known_shape(op, False))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        lengths = [int(size) for size in ctx.constant(op, "fft_length")]
        return [_transform(ctx.builder, _fitted(ctx.builder, inputs[0], lengths), FftType.RFFT, lengths)]

    def lower_inverse(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        lengths = [int(size) for size in ctx.constant(op, "fft_length")]
        x = _fitted(ctx.builder, inputs[0], _frequencies(lengths))
        return [_transform(ctx.builder, x, FftType.IRFFT, lengths)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        """The real part of the transform back, of the kept frequencies alone."""
        x, lengths = op.inputs
        whole = _resized(grad, lengths, rank)
        count = node("Prod", [lengths, constant(np.array([0], np.int32))], {"keep_dims": False})
        turned = node(f"IFFT{_suffix(rank)}", [whole]) * node("Cast", [count], {"dtype": grad.dtype})
        return [_resized(node("Real", [turned]), _lengths(x, rank), rank), None]

    def gradient_inverse(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        """The transform of what arrived; frequencies that stand for two count twice."""
        x, lengths = op.inputs
        found = node(f"RFFT{_suffix(rank)}", [grad, lengths])
        count = node("Prod", [lengths, constant(np.array([0], np.int32))], {"keep_dims": False})
        last = node("GatherV2", [lengths, constant(rank - 1), constant(0)])
        kept = node("FloorDiv", [last, constant(2)]) + 1
        place = node("Range", [constant(0), kept, constant(1)])
        alone = node("LogicalOr", [node("Equal", [place, constant(0)]), node("Equal", [place * 2, last])])
        weights = node("SelectV2", [alone, constant(1, grad.dtype), constant(2, grad.dtype)])
        scale = weights / node("Cast", [count], {"dtype": grad.dtype})
        scaled = found * node("Cast", [scale], {"dtype": found.dtype})
        return [_resized(scaled, _lengths(x, rank), rank), None]

    for name, own_infer, own_lower, own_gradient in (
        ("RFFT", infer, lower, gradient),
        ("IRFFT", infer_inverse, lower_inverse, gradient_inverse),
    ):
        declare(
            f"{name}{_suffix(rank)}",
            ("input", "fft_length"),
            own_infer,
            own_lower,
            own_gradient,
            None,
            constant_inputs=("fft_length",),
        )


def _resized(x: Tensor, sizes: Tensor, rank: int) -> Tensor:
    """The last dimensions cut or padded with zeros, to sizes that may be known only when it runs."""
    if x.shape.rank is None:
        raise ShapeError("gradients of transforms need known ranks")
    batch = x.shape.rank - rank
    own = _lengths(x, rank)
    kept = node("Minimum", [own, sizes])
    whole = constant(np.full(batch, -1, np.int32))
    cut = node("Slice", [x, constant(np.zeros(x.shape.rank, np.int32)), node("ConcatV2", [whole, kept, constant(0)])])
    zeros = constant(np.zeros((batch, 2), np.int32))
    after = node("Pack", [node("ZerosLike", [kept]), sizes - kept], {"axis": 1})
    return node("Pad", [cut, node("ConcatV2", [zeros, after, constant(0)])])


for _rank in (1, 2, 3):
    _declare_complex(_rank)
    _declare_real(_rank)
