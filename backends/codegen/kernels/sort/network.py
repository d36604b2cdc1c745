"""Orders words by comparing and exchanging, in the same steps whatever they are: bitonic merges of ever longer runs.

Of two runs side by side the second is read backwards, so that of two words at equal places the smaller belongs to the
first half; each half is brought into order by comparing words at half, a quarter ... of its length. As many vectors as
a vector has lanes are ordered in registers, where a run lies along a lane, across the vectors, as long as it can. The
last run may be short: what there is not counts as larger than all.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.lane_exchange import exchanged, fenced
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    vector,
    vector_constant,
)


def ordered_lanes(fb: FunctionBuilder, words: Value) -> Value:
    """The lanes of a vector in rising order."""
    lanes, run = words.type.lanes, 1
    while run < lanes:
        others = _permuted(fb, words, [lane ^ (2 * run - 1) for lane in range(lanes)])
        words = _merged_lanes(fb, _smaller_below(fb, words, others, run), run)
        run *= 2
    return words


def lanes_set(fb: FunctionBuilder, mask: Value) -> Value:
    """How many lanes a mask has."""
    return fb.zext(fb.ctpop(fb.mask_bits(mask)), I64)


def network(module: ModuleBuilder, word: Type, most: int) -> Function:
    """The function `void(words, buffer, count)` that sorts so many words at most.

    The buffer has room for a block of them more.
    """
    lanes, align = module.target.lanes(word.bits), word.size_bytes
    wide, block = vector(word, lanes), lanes * lanes
    # A block that is hardly filled is quicker in order by its vectors.
    rounding = block - block // 3
    has_blocks = most + rounding >= block

    def order_block(fb: FunctionBuilder, held: Sequence[Value]) -> None:
        words, buffer, count, begin = held
        vectors = _block(fb, wide, words, count, begin)
        for number, one in enumerate(_ordered_block(fb, vectors)):
            fb.store(one, fb.gep(word, buffer, fb.add(begin, number * lanes)), align)

    def build() -> Function:
        fb = _function(module, f"sort_few_{word.text}{'_in_blocks' * has_blocks}", (PTR, PTR, I64))
        words, buffer, count = fb.parameters
        end = fb.and_(fb.add(count, rounding), -block) if has_blocks else fb.constant(I64, 0)
        if has_blocks:
            with fb.loop(0, end, block) as begin:
                fb.apart("order_block", [words, buffer, count, begin], order_block)
        with fb.loop(end, count, lanes) as at:
            inside = lanes_below(fb, at, count, lanes)
            found = fb.masked_load(wide, fb.gep(word, words, at), inside, fb.constant(wide, -1), align)
            fb.store(ordered_lanes(fb, found), fb.gep(word, buffer, at), align)
        merge = _merges(module, word)
        rest = fb.sub(count, end)
        with fb.if_(fb.icmp("sgt", rest, lanes)):
            fb.call(merge, fb.gep(word, buffer, end), rest, lanes)
        with fb.if_(fb.icmp("sgt", count, block)):
            fb.call(merge, buffer, fb.smax(count, end), block)
        whole = fb.and_(count, -lanes)
        with fb.loop(0, whole, lanes) as at:
            fb.store(fb.load(wide, fb.gep(word, buffer, at), align), fb.gep(word, words, at), align)
        last = fb.load(wide, fb.gep(word, buffer, whole), align)
        fb.masked_store(last, fb.gep(word, words, whole), lanes_below(fb, whole, count, lanes), align)
        fb.ret()
        return fb.function

    return module.define_once(("sort few words", word, has_blocks), build)


def _block(fb: FunctionBuilder, wide: Type, words: Value, count: Value, begin: Value) -> list[Value]:
    """As many vectors as a vector has lanes."""
    lanes, word = wide.lanes, wide.scalar
    places = [fb.add(begin, number * lanes) for number in range(lanes)]
    choice = fb.if_else(fb.icmp("sle", fb.add(begin, lanes * lanes), count), likely=True)
    with choice.then():
        choice.yield_(*(fb.load(wide, fb.gep(word, words, at), word.size_bytes) for at in places))
    with choice.otherwise():
        largest = fb.constant(wide, -1)
        masks = [lanes_below(fb, at, count, lanes) for at in places]
        choice.yield_(
            *(
                fb.masked_load(wide, fb.gep(word, words, at), mask, largest, word.size_bytes)
                for at, mask in zip(places, masks, strict=True)
            )
        )
    return list(choice.results)


def _ordered_block(fb: FunctionBuilder, vectors: list[Value]) -> list[Value]:
    """Vectors whose lanes, one vector after the other, are in rising order."""
    size = len(vectors)
    for pairs in _odd_even_merges(size):
        for low, high in pairs:
            vectors[low], vectors[high] = _exchanged(fb, vectors[low], vectors[high])
    run = 1
    while run < size:
        vectors = _compared_lanes(fb, vectors, vectors[::-1], 2 * run - 1, run)
        half = run // 2
        while half:
            vectors = _compared_lanes(fb, vectors, vectors, half, half)
            half //= 2
        half = size // 2
        while half:
            for low in range(size):
                if not low & half:
                    vectors[low], vectors[low + half] = _exchanged(fb, vectors[low], vectors[low + half])
            half //= 2
        run *= 2
    return exchanged(fb, vectors)


def _compared_lanes(
    fb: FunctionBuilder, lines: Sequence[Value], others: Sequence[Value], flips: int, run: int
) -> list[Value]:
    """Each vector compared with another whose lanes are renumbered: the smaller lanes in every other run of lanes."""
    wide = lines[0].type
    if wide.bits != 32 or fb.module.target.vector_bits != 512:
        others = [_permuted(fb, other, [lane ^ flips for lane in range(wide.lanes)]) for other in others]
        return [_smaller_below(fb, one, other, run) for one, other in zip(lines, others, strict=True)]
    # LLVM takes long to choose shuffles of 16 lanes; these are chosen already, and a mask saves the last.
    order, high = (
        fenced(fb, vector_constant(wide, numbers))
        for numbers in ([lane ^ flips for lane in range(wide.lanes)], [lane & run for lane in range(wide.lanes)])
    )
    is_low, found = fb.icmp("eq", high, 0), []
    for line, other in zip(lines, others, strict=True):
        smaller, larger = _exchanged(fb, line, fb.intrinsic("x86.avx512.permvar.si.512", wide, (other, order), ()))
        found.append(fb.select(is_low, smaller, larger))
    return found


def _odd_even_merges(size: int) -> list[list[tuple[int, int]]]:
    """Batcher's network: which of so many places are compared, round by round."""
    rounds, run = [], 1
    while run < size:
        distance = run
        while distance:
            firsts = (
                first + number
                for first in range(distance % run, size - distance, 2 * distance)
                for number in range(min(distance, size - distance - first))
            )
            rounds.append([(n, n + distance) for n in firsts if n // (2 * run) == (n + distance) // (2 * run)])
            distance //= 2
        run *= 2
    return rounds


def _merges(module: ModuleBuilder, word: Type) -> Function:
    """The function `void(words, count, run)` that merges runs of a size until all is in order."""

    def build() -> Function:
        lanes, align = module.target.lanes(word.bits), word.size_bytes
        wide, backwards = vector(word, lanes), range(lanes - 1, -1, -1)
        fb = _function(module, f"merge_{word.text}", (PTR, I64, I64))
        words, count, first = fb.parameters
        end = fb.and_(fb.add(count, lanes - 1), -lanes)

        def exchange(low: Value, high: Value, *, turns: bool) -> None:
            places = [fb.gep(word, words, at) for at in (low, high)]
            below, above = (fb.load(wide, place, align) for place in places)
            smaller, larger = _exchanged(fb, below, fb.shuffle(above, None, backwards) if turns else above)
            fb.store(smaller, places[0], align)
            fb.store(fb.shuffle(larger, None, backwards) if turns else larger, places[1], align)

        with fb.while_loop([first]) as runs:
            (run,) = runs.values
            runs.continue_while(fb.icmp("slt", run, end))
            both = fb.mul(run, 2)
            with fb.loop(0, fb.sub(end, run), both) as begin:
                last = fb.add(begin, fb.sub(both, lanes))
                with fb.loop(fb.smax(fb.sub(fb.add(last, lanes), end), 0), run, lanes) as offset:
                    exchange(fb.add(begin, offset), fb.sub(last, offset), turns=True)
            with fb.while_loop([fb.lshr(run, 1)]) as halves:
                (half,) = halves.values
                halves.continue_while(fb.icmp("sge", half, lanes))
                with fb.loop(0, fb.sub(end, half), fb.mul(half, 2)) as begin:
                    stop = fb.smin(fb.add(begin, half), fb.sub(end, half))
                    with fb.loop(begin, stop, lanes) as low:
                        exchange(low, fb.add(low, half), turns=False)
                halves.yield_(fb.lshr(half, 1))
            with fb.loop(0, end, lanes) as at:
                place = fb.gep(word, words, at)
                fb.store(_merged_lanes(fb, fb.load(wide, place, align), lanes), place, align)
            runs.yield_(both)
        fb.ret()
        return fb.function

    return module.define_once(("merge words", word), build)


def _function(module: ModuleBuilder, name: str, types: tuple[Type, ...]) -> FunctionBuilder:
    noalias = ["noalias" if type_ is PTR else "" for type_ in types]
    return module.function(
        module.unique_name(name),
        VOID,
        types,
        parameter_attributes=noalias,
        attributes=("nounwind", "noinline"),
        linkage="internal",
    )


def _exchanged(fb: FunctionBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    return fb.umin(a, b), fb.umax(a, b)


def _merged_lanes(fb: FunctionBuilder, words: Value, run: int) -> Value:
    """The lanes in order within runs, of which each rises and then falls, or falls and then rises."""
    while run > 1:
        run //= 2
        others = _permuted(fb, words, [lane ^ run for lane in range(words.type.lanes)])
        words = _smaller_below(fb, words, others, run)
    return words


def _smaller_below(fb: FunctionBuilder, words: Value, others: Value, run: int) -> Value:
    """The smaller of two vectors' lanes in every other run of lanes, from the first on; the larger in the others."""
    lanes = words.type.lanes
    smaller, larger = _exchanged(fb, words, others)
    return fenced(fb, fb.shuffle(smaller, larger, [lane + lanes * bool(lane & run) for lane in range(lanes)]))


def _permuted(fb: FunctionBuilder, words: Value, order: Sequence[int]) -> Value:
    return fb.shuffle(words, None, order)
