"""Sorts words in place: vectors are parted by a pivot until few words are left, which a network orders.

A vector's smaller words move to the front, where all has been read already, the others into a buffer and behind them.
A pivot that is the smallest word takes all that are equal out at once. Where pivots keep being bad, the network orders
the rest however long it is, so no row takes longer than n log(n)**2 steps.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.sort.network import lanes_set, network, ordered_lanes
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    TargetInfo,
    Type,
    Value,
    vector,
)

_NETWORK_VECTORS = 32
"""Words that a network orders in less time than it takes to part them."""


def can_part(target: TargetInfo) -> bool:
    """Whether vectors of words are parted by an instruction."""
    return target.vector_bits == 512


def sort_words(fb: FunctionBuilder, word: Type, words: Value, buffer: Value, count: Value, most: int) -> None:
    """Sorts unsigned words in rising order, so many at most; the buffer has room for as many and a block more."""
    if most <= _NETWORK_VECTORS * fb.module.target.lanes(word.bits):
        fb.call(network(fb.module, word, most), words, buffer, count)
        return
    budget = fb.sub(fb.constant(I64, 2 * 64), fb.mul(fb.ctlz(count), 2))
    fb.call(_quicksort(fb.module, word), words, buffer, count, budget)


def _quicksort(module: ModuleBuilder, word: Type) -> Function:
    """The function `void(words, buffer, count, budget)`; the budget bounds how deep it calls itself."""

    def build() -> Function:
        attributes = ("noalias", "noalias", "", "")
        name = module.unique_name(f"sort_{word.text}")
        types = (PTR, PTR, I64, I64)
        fb = module.function(name, VOID, types, parameter_attributes=attributes, linkage="internal")
        lanes = module.target.lanes(word.bits)
        words, buffer, count, budget = fb.parameters
        with fb.while_loop([words, count, budget]) as rest:
            begin, left, depth = rest.values
            is_long = fb.icmp("sgt", left, _NETWORK_VECTORS * lanes)
            rest.continue_while(fb.and_(is_long, fb.icmp("sgt", depth, 0)))
            pivot = _pivot(fb, word, lanes, begin, left)
            parting = _partition(module, word)
            smaller = fb.call(parting, begin, buffer, left, pivot)
            is_least = fb.if_else(fb.icmp("eq", smaller, 0))
            with is_least.then():
                is_most = fb.icmp("eq", pivot, -1)
                equal = fb.call(parting, begin, buffer, left, fb.add(pivot, 1))
                is_least.yield_(fb.select(is_most, left, equal))
            with is_least.otherwise():
                fb.call(fb.function, begin, buffer, smaller, fb.sub(depth, 1))
                is_least.yield_(smaller)
            (done,) = is_least.results
            rest.yield_(fb.gep(word, begin, done), fb.sub(left, done), fb.sub(depth, 1))
        begin, left, _ = rest.results
        with fb.if_(fb.icmp("sgt", left, 1)):
            fb.call(network(module, word, 1 << 31), begin, buffer, left)
        fb.ret()
        return fb.function

    return module.define_once(("sort words", word), build)


def _pivot(fb: FunctionBuilder, word: Type, lanes: int, words: Value, count: Value) -> Value:
    """The middle one of as many words as a vector has lanes, each of which is the middle one of three."""
    wide = vector(word, lanes)
    places = fb.constant(I64, 0), fb.lshr(count, 1), fb.sub(count, lanes)
    a, b, c = (fb.load(wide, fb.gep(word, words, place), word.size_bytes) for place in places)
    middle = fb.umax(fb.umin(a, b), fb.umin(fb.umax(a, b), c))
    return fb.extract(ordered_lanes(fb, middle), lanes // 2)


def _partition(module: ModuleBuilder, word: Type) -> Function:
    """The function `i64(words, buffer, count, pivot)` that moves words below the pivot to the front: how many."""

    def build() -> Function:
        attributes = ("noalias", "noalias", "", "")
        name = module.unique_name(f"partition_{word.text}")
        types = (PTR, PTR, I64, word)
        fb = module.function(name, I64, types, parameter_attributes=attributes, linkage="internal")
        lanes, align = module.target.lanes(word.bits), word.size_bytes
        wide = vector(word, lanes)
        words, buffer, count, pivot = fb.parameters
        pivots, full = fb.splat(pivot, lanes), fb.and_(count, -lanes)
        inside = lanes_below(fb, full, count, lanes)
        last = fb.masked_load(wide, fb.gep(word, words, full), inside, fb.constant(wide, 0), align)
        zero = fb.constant(I64, 0)
        with fb.carried_loop(0, full, lanes, [zero, zero]) as loop:
            front, behind = loop.values
            found = fb.load(wide, fb.gep(word, words, loop.index), align)
            is_below = fb.icmp("ult", found, pivots)
            fb.store(fb.compress(found, is_below), fb.gep(word, words, front), align)
            fb.store(fb.compress(found, fb.not_(is_below)), fb.gep(word, buffer, behind), align)
            taken = lanes_set(fb, is_below)
            loop.yield_(fb.add(front, taken), fb.add(behind, fb.sub(fb.constant(I64, lanes), taken)))
        front, behind = loop.results
        is_below = fb.icmp("ult", last, pivots)
        taken = lanes_set(fb, fb.and_(is_below, inside))
        fb.store(fb.compress(last, fb.and_(fb.not_(is_below), inside)), fb.gep(word, buffer, behind), align)
        below = fb.compress(last, fb.and_(is_below, inside))
        fb.masked_store(below, fb.gep(word, words, front), lanes_below(fb, zero, taken, lanes), align)
        front = fb.add(front, taken)
        back = fb.sub(count, front)
        whole, target = fb.and_(back, -lanes), fb.gep(word, words, front)
        with fb.loop(0, whole, lanes) as at:
            fb.store(fb.load(wide, fb.gep(word, buffer, at), align), fb.gep(word, target, at), align)
        rest = lanes_below(fb, whole, back, lanes)
        kept = fb.load(wide, fb.gep(word, buffer, whole), align)
        fb.masked_store(kept, fb.gep(word, target, whole), rest, align)
        fb.ret(front)
        return fb.function

    return module.define_once(("partition", word), build)
