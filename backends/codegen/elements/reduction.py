"""Elements of reductions and maps, computed where they are needed by a loop of their own.

The row and column kernels are the fast way to reduce; this rule serves reductions in any position of a kernel.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Affine, Index, Position
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.combiner import Combiner
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.elements.windows import window_elements
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.fusion.read_steps import sums_few


def reduce_elements(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> tuple[Element, ...]:
    """All results of a (variadic) reduce at an index."""
    combiner = Combiner.of(instruction)
    reduced = sorted(instruction.attrs.dimensions)
    dims = instruction.operand(0).shape.dims
    kept = iter(index)
    source: list[Position] = [Affine(0) if d in reduced else next(kept) for d in range(len(dims))]

    if sums_few(instruction):
        elements: list[list[Element]] = []
        for places in itertools.product(*(range(dims[d]) for d in reduced)):
            for dimension, place in zip(reduced, places, strict=True):
                source[dimension] = Affine(place)
            elements.append(combiner.elements(emitter, tuple(source)))
        return combiner.rounded(emitter, _combined(emitter, combiner, elements))

    def nest(level: int, carried: tuple[Element, ...], outer: ElementEmitter) -> tuple[Element, ...]:
        if level == len(reduced):
            return tuple(combiner.combine(outer, carried, combiner.elements(outer, tuple(source))))
        size = dims[reduced[level]]
        if size == 0:
            return carried
        with emitter.fb.carried_loop(0, size, 1, flatten(carried)) as loop:
            source[reduced[level]] = Affine(loop.index)
            result = nest(level + 1, unflatten(loop.values, carried), outer.inner())
            loop.yield_(*flatten(result))
        return unflatten(loop.results, carried)

    return combiner.rounded(emitter, nest(0, tuple(combiner.starts(emitter)), emitter))


def _combined(emitter: ElementEmitter, combiner: Combiner, elements: list[list[Element]]) -> list[Element]:
    """A few elements and the initial values, in the order in which the lanes of a row come together if any will do."""
    starts = combiner.starts(emitter)
    if combiner.monoids is None:
        return functools.reduce(functools.partial(combiner.combine, emitter), elements, starts)
    while len(elements) > 1:
        half = 1 << (len(elements) - 1).bit_length() - 1
        pairs = zip(elements, elements[half:], strict=False)
        elements = [*(combiner.combine(emitter, a, b) for a, b in pairs), *elements[len(elements) - half : half]]
    if starts == [emitter.spread(identity) for identity in combiner.identities]:
        return elements[0]
    return combiner.combine(emitter, starts, elements[0])


SEVERAL_ELEMENTS: dict[str, Callable[[ElementEmitter, HloInstruction, Index], tuple[Element, ...]]] = {
    "reduce": reduce_elements,
    "reduce-window": window_elements,
}
"""Rules of the operations that may have several results."""


def _only_element(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    assert not instruction.shape.is_tuple, "the elements of several results are read through get-tuple-element"
    return SEVERAL_ELEMENTS[instruction.opcode](emitter, instruction, index)[0]


def _map(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    elements = emitter.unify([emitter.element(operand, index) for operand in instruction.operands])
    return emitter.apply(instruction.called_computations[0], elements)[0]


ELEMENT_RULES: dict[str, ElementRule] = {
    **dict.fromkeys(SEVERAL_ELEMENTS, _only_element),
    "map": _map,
}
