"""Functions that look through numbers in memory: whether all are finite, whether all are 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xlalite.backends.codegen.llvm import (
    I1,
    I64,
    PTR,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
    integer,
    vector,
    zero,
)
from xlalite.hlo.types.dtype import DType


def finite(module: ModuleBuilder, dtype: DType) -> Function:
    """Given where they are and how many, it gives an i1. Infinities and NaN have all bits of the exponent."""
    exponent = _bits(np.inf, dtype)

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        numbers, count = fb.parameters
        is_finite = constant(I1, 1)
        for greatest in _combined(fb, dtype, numbers, count, exponent, fb.umax):
            is_finite = fb.and_(is_finite, fb.all_lanes(fb.icmp("ne", greatest, exponent)))
        fb.ret(is_finite)

    return module.shared_function(("finite", dtype), "finite", I1, (PTR, I64), ("noalias readonly", ""), build)


def zeros(module: ModuleBuilder, dtype: DType) -> Function:
    """Given where lines begin, their number and distance, and how many numbers each has; -0 is 0, too."""
    magnitude = _bits(-0.0, dtype) - 1

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        numbers, lines, distance, count = fb.parameters
        with fb.loop(0, lines) as line:
            begin = fb.gep(integer(8 * dtype.size_bytes), numbers, fb.mul(line, distance), inbounds=False)
            for all_bits in _combined(fb, dtype, begin, count, magnitude, fb.or_):
                with fb.if_(fb.any_lane(fb.icmp("ne", all_bits, 0))):
                    fb.ret(constant(I1, 0))
        fb.ret(constant(I1, 1))

    kinds = ("noalias readonly", "", "", "")
    return module.shared_function(("zeros", dtype), "zeros", I1, (PTR, I64, I64, I64), kinds, build)


def _combined(
    fb: FunctionBuilder,
    dtype: DType,
    numbers: Value,
    count: Value,
    mask: int,
    combine: Callable[[Value, Value], Value],
) -> list[Value]:
    """Some bits of all numbers: those of whole vectors in as many lanes, and those of what is left."""
    size = dtype.size_bytes
    bits, lanes = integer(8 * size), fb.module.target.lanes(8 * size)
    whole = fb.sub(count, fb.urem(count, lanes))
    found: list[Value] = []
    for start, end, step, type_ in ((0, whole, lanes, vector(bits, lanes)), (whole, count, 1, bits)):
        with fb.carried_loop(start, end, step, [zero(type_)]) as loop:
            more = fb.and_(fb.load(type_, fb.gep(bits, numbers, loop.index), size), mask)
            loop.yield_(combine(loop.values[0], more))
        found += loop.results
    return found


def _bits(number: float, dtype: DType) -> int:
    return int(np.asarray(number, dtype.numpy).view(f"u{dtype.size_bytes}"))
