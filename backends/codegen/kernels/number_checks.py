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
    """Given where lines begin, their number and distance, and how many numbers each has, it gives an i1.

    Infinities and NaN have all bits of the exponent.
    """
    exponent = _bits(np.inf, dtype)

    def is_amiss(fb: FunctionBuilder, greatest: Value) -> Value:
        return fb.any_lane(fb.icmp("eq", greatest, exponent))

    return _check(module, "finite", dtype, exponent, FunctionBuilder.umax, is_amiss)


def zeros(module: ModuleBuilder, dtype: DType) -> Function:
    """Given the same, it says whether all are 0, or -0."""

    def is_amiss(fb: FunctionBuilder, all_bits: Value) -> Value:
        return fb.any_lane(fb.icmp("ne", all_bits, 0))

    return _check(module, "zeros", dtype, _bits(-0.0, dtype) - 1, FunctionBuilder.or_, is_amiss)


def _check(
    module: ModuleBuilder,
    name: str,
    dtype: DType,
    mask: int,
    combine: Callable[[FunctionBuilder, Value, Value], Value],
    is_amiss: Callable[[FunctionBuilder, Value], Value],
) -> Function:
    """A function that gives whether nothing is amiss with some bits of all numbers of a line."""

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        numbers, lines, distance, count = fb.parameters
        with fb.loop(0, lines) as line:
            begin = fb.gep(integer(8 * dtype.size_bytes), numbers, fb.mul(line, distance), inbounds=False)
            for combined in _combined(fb, dtype, begin, count, mask, combine):
                with fb.if_(is_amiss(fb, combined)):
                    fb.ret(constant(I1, 0))
        fb.ret(constant(I1, 1))

    kinds = ("noalias readonly", "", "", "")
    return module.shared_function((name, dtype), name, I1, (PTR, I64, I64, I64), kinds, build)


def _combined(
    fb: FunctionBuilder,
    dtype: DType,
    numbers: Value,
    count: Value,
    mask: int,
    combine: Callable[[FunctionBuilder, Value, Value], Value],
) -> list[Value]:
    """Some bits of all numbers: those of whole vectors in as many lanes, and those of what is left."""
    size = dtype.size_bytes
    bits, lanes = integer(8 * size), fb.module.target.lanes(8 * size)
    whole = fb.sub(count, fb.urem(count, lanes))
    found: list[Value] = []
    for start, end, step, type_ in ((0, whole, lanes, vector(bits, lanes)), (whole, count, 1, bits)):
        with fb.carried_loop(start, end, step, [zero(type_)]) as loop:
            more = fb.and_(fb.load(type_, fb.gep(bits, numbers, loop.index), size), mask)
            loop.yield_(combine(fb, loop.values[0], more))
        found += loop.results
    return found


def _bits(number: float, dtype: DType) -> int:
    return int(np.asarray(number, dtype.numpy).view(f"u{dtype.size_bytes}"))
