"""Updates of single elements: their places and what is combined are computed in vectors, and then applied in order.

Where as many as a vector has lanes go to the same element, they are added to a vector that is kept as long as updates
go there, and joined as a tree like a reduction's then. Others pass through memory and are combined one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath, Position, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.elements.reshaping import immediate
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.llvm import I1, I64, Value, constant, integer, vector
from xlalite.hlo.ir.monoid import recognise_monoids
from xlalite.hlo.ops.gathering import ScatterAttrs

_OUTSIDE, _NO_PLACE = -1, -2
"""Where updates go that lie outside, and where none goes."""
_LINE_BYTES = 64

Several = Callable[[Value], tuple[Sequence[Position], Sequence[Value], Index]]
"""The first of some updates -> (where they go, conditions under which they do, where they stand among the updates)."""


def joined_updates(request: KernelRequest, window: Sequence[int], given: Mapping[int, Position]) -> int:
    """Updates that are applied together, given places along some dimensions; 1 where each is by itself."""
    scatter = request.body.root
    attrs: ScatterAttrs = scatter.attrs
    dtype = scatter.operands[-1].shape.dtype
    is_single = math.prod(size for dim, size in enumerate(window) if dim not in given) == 1
    is_alone = is_single and len(scatter.operands) == 3 and all(dim in given for dim in attrs.input_batching_dims)
    is_precise = dtype.is_integral or (dtype.is_floating and dtype.bits >= 32)
    is_known = is_alone and is_precise and recognise_monoids(scatter.called_computations[0]) is not None
    return request.target.lanes(max(dtype.bits, 32)) if is_known else 1


def join_updates(
    entry: KernelEntry,
    request: KernelRequest,
    count: int,
    lanes: int,
    several: Several,
    one: Callable[[Value], None],
) -> None:
    """Combines so many updates: those for one element in lanes, as long as they follow one another."""
    fb, scatter = entry.fb, request.body.root
    dims, update, function = scatter.shape.dims, scatter.operand(2), scatter.called_computations[0]
    monoids = recognise_monoids(function)
    assert monoids is not None, "updates of known monoids are joined"
    view = ArrayView.row_major(entry.outputs[0].pointer, update.shape.dtype, (math.prod(dims),))
    word = integer(32 if math.prod(dims) < 1 << 31 else 64)
    identity = entry.emitter(lanes).spread(immediate(monoids[0].identity, monoids[0].dtype))
    assert isinstance(identity, Value), "complex numbers are not joined"
    # Registers that are stored across two lines of the caches are not read before they are there.
    noted_places = fb.alloca(word, lanes, align=_LINE_BYTES)
    noted_updates = fb.alloca(representation(view.dtype).memory, lanes, align=_LINE_BYTES)
    noted = ArrayView.row_major(noted_updates, view.dtype, (lanes,))
    scalar = IndexMath(fb, 1)

    def apply(a: Value, b: Value) -> Value:
        (result,) = entry.emitter(a.type.lanes).apply(function, [a, b])
        assert isinstance(result, Value), "complex numbers are not joined"
        return result

    def combine(place: Value, new: Value) -> None:
        at = (Affine(fb.sext(place, I64)),)
        current = view.read(scalar, at)
        assert isinstance(current, Value), "complex numbers are not joined"
        view.write(scalar, at, apply(current, new))

    def keep(place: Value, held: Value) -> None:
        with fb.if_(fb.icmp("sge", place, 0), likely=False):
            combine(place, fb.reduce(held, apply))

    def each(places: Value, updates: Value) -> None:
        fb.store(places, noted_places, word.size_bytes)
        noted.write(IndexMath(fb, lanes), (Affine(0, 1),), updates)
        for lane in range(lanes):
            new = noted.read(scalar, (Affine(lane),))
            assert isinstance(new, Value), "complex numbers are not joined"
            combine(fb.load(word, fb.gep(word, noted_places, lane)), new)

    with fb.carried_loop(0, count, lanes, [constant(word, _NO_PLACE), identity]) as loop:
        first, (place, held) = loop.index, loop.values
        emitter = entry.emitter(lanes)
        starts, conditions, at = several(first)
        places = emitter.math.vector(emitter.math.linear(tuple(starts), row_major_strides(dims)))
        inside = reduce(fb.and_, conditions, constant(vector(I1, lanes), 1))
        places = fb.select(inside, fb.trunc(places, word), _OUTSIDE)
        updates = emitter.vector(update, at)
        assert isinstance(updates, Value), "complex numbers are not joined"
        before = fb.cttz(fb.mask_bits(fb.icmp("ne", places, fb.splat(place, lanes))))
        goes_on = fb.if_else(fb.icmp("eq", before, lanes))
        with goes_on.then():
            goes_on.yield_(place, apply(held, updates))
        with goes_on.otherwise():
            last, is_before = fb.extract(places, lanes - 1), lanes_below(fb, 0, fb.zext(before, I64), lanes)
            are_two = fb.if_else(fb.all_lanes(fb.or_(is_before, fb.icmp("eq", places, fb.splat(last, lanes)))))
            with are_two.then():
                keep(place, apply(held, fb.select(is_before, updates, identity)))
                are_two.yield_(last, fb.select(is_before, identity, updates))
            with are_two.otherwise():
                keep(place, held)
                # What is the same for all is there for each at once: by memory 1000000 in 256 take a quarter longer.
                is_worth_it = update.opcode != "broadcast"
                are_inside = fb.if_else(fb.all_lanes(inside) if is_worth_it else fb.constant(I1, 0))
                with are_inside.then():
                    each(places, updates)
                    are_inside.yield_()
                with are_inside.otherwise():
                    with fb.loop(first, fb.add(first, lanes)) as number:
                        one(number)
                    are_inside.yield_()
                are_two.yield_(constant(word, _NO_PLACE), identity)
            goes_on.yield_(*are_two.results)
        loop.yield_(*goes_on.results)
    keep(*loop.results)
