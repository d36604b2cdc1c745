"""Turns lines into columns of words: the part of packing words that all walks have in common, compiled once."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import Packing
from xlalite.backends.codegen.kernels.dot.turning import joined
from xlalite.backends.codegen.kernels.dot.words import SIGNS, SQUARE, exponent_of, least_exponents
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import (
    I16,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
    vector,
    zero,
)


def word_turner(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """`i32 turn(ptr places, ptr target, i64 offset, i64 length, i64 line)`, shared by all programs.

    The word at target[y / word * line + x] is places[x][offset + y] and what follows it, for y below the length; there
    is a place for each lane. Up to three lines behind the last one are written, too. Of bf16 it gives the least
    exponent among the terms that are not zero.
    """
    assert packing.dtype is not None, "operands are packed from their own type"
    dtype, lanes, has_least = packing.dtype, packing.lanes, numbers.widened is not None
    memory = representation(dtype).memory
    wide, of_square = vector(memory, SQUARE * packing.word), vector(I32, SQUARE)

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        places, target, offset, length, line = fb.parameters
        rest, parts = fb.alloca(PTR, lanes, align=8), fb.alloca(wide, lanes, align=8)

        def load(table: Value, number: Value | int, y: Value, mask: Value | None = None) -> Value:
            place = fb.gep(memory, fb.load(PTR, fb.gep(PTR, table, number), 8), y)
            if mask is None:
                return fb.load(wide, place, memory.size_bytes)
            return fb.masked_load(wide, place, mask, zero(wide), memory.size_bytes)

        least = [constant(vector(I16, packing.word * lanes), -1)] * has_least
        with fb.carried_loop(0, length, wide.lanes, [target, *least]) as loop:
            write, *found = loop.values
            # The last words are copied, and zeros behind them, to where other places point.
            branch = fb.if_else(fb.icmp("sge", fb.sub(length, loop.index), wide.lanes))
            with branch.then():
                branch.yield_(places, fb.add(offset, loop.index))
            with branch.otherwise():
                mask = lanes_below(fb, loop.index, length, wide.lanes)
                with fb.loop(0, lanes) as lane:
                    part = fb.gep(wide, parts, lane)
                    fb.store(load(places, lane, fb.add(offset, loop.index), mask), part, 8)
                    fb.store(part, fb.gep(PTR, rest, lane), 8)
                branch.yield_(rest, constant(I64, 0))
            stored = [load(branch.results[0], number, branch.results[1]) for number in range(lanes)]
            pieces = [fb.bitcast(numbers.take_part(fb, dtype, one), of_square) for one in stored]
            for words in exchanged(fb, joined(fb, pieces, SQUARE)):
                found = [least_exponents(fb, words, one) for one in found]
                fb.store(fb.xor(words, SIGNS) if packing.flips else words, write, I32.size_bytes)
                write = fb.gep(I32, write, line, inbounds=False)
            loop.yield_(write, *found)
        fb.ret(exponent_of(fb, loop.results[1]) if has_least else None)

    key = "word turner", numbers.words, dtype, lanes, packing.flips
    kinds = ("noalias readonly", "noalias", *("",) * 3)
    result = I32 if has_least else VOID
    return module.shared_function(key, "dot_turn", result, (PTR, PTR, *(I64,) * 3), kinds, build)
