"""A function that says whether numbers that follow one another in memory are all finite."""

from __future__ import annotations

import numpy as np

from xlalite.backends.codegen.llvm import (
    I1,
    I64,
    PTR,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    constant,
    integer,
    vector,
    zero,
)
from xlalite.hlo.types.dtype import DType


def finite(module: ModuleBuilder, dtype: DType) -> Function:
    """Given where they are and how many, it gives an i1. Infinities and NaN have all bits of the exponent."""
    size = dtype.size_bytes
    bits, lanes = integer(8 * size), module.target.lanes(8 * size)
    exponent = int(np.asarray(np.inf, dtype.numpy).view(f"u{size}"))

    def build(fb: FunctionBuilder) -> None:
        fb.as_written()
        numbers, count = fb.parameters
        whole = fb.sub(count, fb.urem(count, lanes))
        is_finite = constant(I1, 1)
        for start, end, step, type_ in ((0, whole, lanes, vector(bits, lanes)), (whole, count, 1, bits)):
            with fb.carried_loop(start, end, step, [zero(type_)]) as loop:
                found = fb.and_(fb.load(type_, fb.gep(bits, numbers, loop.index), size), exponent)
                loop.yield_(fb.umax(loop.values[0], found))
            (greatest,) = loop.results
            is_finite = fb.and_(is_finite, fb.all_lanes(fb.icmp("ne", greatest, exponent)))
        fb.ret(is_finite)

    return module.shared_function(("finite", dtype), "finite", I1, (PTR, I64), ("noalias readonly", ""), build)
