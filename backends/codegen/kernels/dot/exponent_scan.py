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

_VECTORS = 4
"""Vectors at a time."""


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
        step = _VECTORS * parts
        whole = fb.sub(count, fb.urem(count, step))
        none = constant(wide, -1)
        with fb.carried_loop(0, whole, step, [none] * _VECTORS) as loop:
            places = [fb.gep(I16, source, fb.add(loop.index, number * parts)) for number in range(_VECTORS)]
            found = [fb.load(wide, place, I16.size_bytes) for place in places]
            loop.yield_(*(least_exponents(fb, one, least) for one, least in zip(found, loop.values, strict=True)))
        least = loop.results[0]
        for other in loop.results[1:]:
            least = fb.umin(least, other)
        with fb.carried_loop(whole, count, parts, [least]) as loop:
            place, mask = fb.gep(I16, source, loop.index), lanes_below(fb, loop.index, count, parts)
            words = fb.masked_load(wide, place, mask, zero(wide), I16.size_bytes)
            loop.yield_(least_exponents(fb, words, loop.values[0]))
        (least,) = loop.results
        fb.ret(exponent_of(fb, fb.intrinsic("vector.reduce.umin", I16, (least,), (wide,))))

    key, kinds = ("exponent scan", lanes), ("noalias readonly", "")
    return module.shared_function(key, "dot_exponents", I32, (PTR, I64), kinds, build)
