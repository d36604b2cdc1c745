"""Elements of window reductions: what lies below the window is combined where it is needed.

Small windows are spelt out, large ones are loops. Padding and the holes of dilation contribute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, Position
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.combiner import Combiner
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.fusion.fusible import SPELT_OUT_AT_MOST


def window_elements(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> tuple[Element, ...]:
    """All results of a (variadic) window reduction at an index."""
    combiner = Combiner.of(instruction)
    window: Window = instruction.attrs.window
    is_loop = math.prod(window.sizes) > SPELT_OUT_AT_MOST

    def nest(offsets: Index, carried: tuple[Element, ...], outer: ElementEmitter) -> tuple[Element, ...]:
        if len(offsets) == window.rank:
            return _combined(outer, combiner, window, index, offsets, carried)
        size = window.dimensions[len(offsets)].size
        if size > 1 and is_loop:
            with emitter.fb.carried_loop(0, size, 1, flatten(carried)) as loop:
                result = nest((*offsets, Affine(loop.index)), unflatten(loop.values, carried), outer.inner())
                loop.yield_(*flatten(result))
            return unflatten(loop.results, carried)
        for offset in range(size):
            carried = nest((*offsets, Affine(offset)), carried, outer)
        return carried

    return combiner.rounded(emitter, nest((), tuple(combiner.starts(emitter)), emitter))


def _combined(
    emitter: ElementEmitter,
    combiner: Combiner,
    window: Window,
    index: Index,
    offsets: Index,
    carried: Sequence[Element],
) -> tuple[Element, ...]:
    """The accumulators after they took the element at an offset in the window, where there is one."""
    inside = Region(emitter)
    sizes = combiner.arrays[0].shape.dims
    source = tuple(map(window_source, [inside] * window.rank, window.dimensions, sizes, index, offsets))
    if 0 in sizes or inside.is_nowhere:
        return tuple(carried)
    elements = combiner.converted(emitter, inside.read(combiner.arrays, source))
    combined = combiner.combine(emitter, carried, elements)
    return tuple(inside.select(new, old) for new, old in zip(combined, carried, strict=True))


def window_source(inside: Region, dim: WindowDimension, size: int, position: Position, offset: Position) -> Position:
    """Where along a dimension of the array an offset in the window at a position lies; adds what must hold for it."""
    math = inside.emitter.math
    place = math.add(math.scale(position, dim.stride), math.scale(offset, dim.rhs_dilate))
    place = math.add_constant(place, -dim.pad_low)
    has_holes = dim.lhs_dilate > 1
    if dim.pad_low > 0 or has_holes or (dim.output_size(size) - 1) * dim.stride + dim.dilated_size - dim.pad_low > size:
        inside.require_range(place, (size - 1) * dim.lhs_dilate + 1)
    return inside.require_multiple(place, dim.lhs_dilate) if has_holes else place
