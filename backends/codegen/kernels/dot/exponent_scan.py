"""Finds how small the numbers of a left operand are that is read where it lies: what packing tells of others."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.dot.words import BITS, exponent_of, least_exponents
from xlalite.backends.codegen.llvm import (
    I16,
    I32,
    I64,
    PTR,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    constant,
    vector,
    zero,
)


def exponent_scan(module: ModuleBuilder, lanes: int) -> Function:
    """`i32 scan(ptr source, i64 count)`: the least exponent of so many bf16 after others that are not zero.

    Args:
        module: Where it is declared.
        lanes: Words of a vector.
    """
    parts = lanes * BITS // I16.bits
    wide = vector(I16, parts)

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        source, count = fb.parameters
        whole = fb.sub(count, fb.urem(count, parts))
        with fb.carried_loop(0, whole, parts, [constant(wide, -1)]) as loop:
            found = fb.load(wide, fb.gep(I16, source, loop.index), I16.size_bytes)
            loop.yield_(least_exponents(fb, found, loop.values[0]))
        mask = lanes_below(fb, whole, count, parts)
        rest = fb.masked_load(wide, fb.gep(I16, source, whole), mask, zero(wide), I16.size_bytes)
        fb.ret(exponent_of(fb, least_exponents(fb, rest, loop.results[0])))

    key, kinds = ("exponent scan", lanes), ("noalias readonly", "")
    return module.shared_function(key, "dot_exponents", I32, (PTR, I64), kinds, build)
