"""Elements of convolutions, by loops over the window and over the input features of a group.

Lanes along the output features read the input once for all; lanes along space read neighbours of the input. Several
sums are kept side by side, so that no addition waits for the one before it.
"""

from __future__ import annotations

import math
from functools import reduce

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, Position
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.dot import accumulator_dtype, multiply_add
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.region import Region
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.llvm import FunctionBuilder
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import WindowDimension
from xlalite.passes.fusion.fusible import SPELT_OUT_AT_MOST

_SUMS = 4

_Totals = tuple[Element, ...]


def _convolution(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    return _Terms(instruction, emitter, index).total()


class _Terms:
    """The products that make up one element."""

    def __init__(self, convolution: HloInstruction, emitter: ElementEmitter, index: Index) -> None:
        lhs, rhs = convolution.operands
        self.emitter = emitter
        self._convolution = convolution
        self._attrs: ConvolutionAttrs = convolution.attrs
        self._dtype = accumulator_dtype(lhs.shape.dtype, rhs.shape.dtype, convolution.shape.dtype)
        dims, math = self._attrs.dim_labels, emitter.math
        self._features = rhs.shape.dims[dims.kernel_input_feature]
        output = index[dims.output_feature]
        groups = max(self._attrs.feature_group_count, self._attrs.batch_group_count)
        outputs = max(1, rhs.shape.dims[dims.kernel_output_feature] // groups)
        group: Position = math.divide(output, outputs) if groups > 1 else ZERO
        batch: Position = index[dims.output_batch]
        self._first_feature: Position = ZERO
        if self._attrs.feature_group_count > 1:
            self._first_feature = math.scale(group, self._features)
        else:
            batch = math.add(math.scale(group, convolution.shape.dims[dims.output_batch]), batch)
        self._lhs: dict[int, Position] = {dims.input_batch: batch}
        self._rhs: dict[int, Position] = {dims.kernel_output_feature: output}
        self._space = tuple(index[dim] for dim in dims.output_spatial)

    def total(self) -> Element:
        """Their sum."""
        emitter, window = self.emitter, self._attrs.window
        terms = math.prod(window.sizes) * self._features
        zeros = (zero_element(self._dtype, emitter.lanes),) * min(_SUMS, max(terms, 1))
        is_loop = math.prod(window.sizes) > SPELT_OUT_AT_MOST

        def nest(offsets: Index, totals: _Totals, outer: ElementEmitter) -> _Totals:
            if len(offsets) == window.rank:
                return self._with_features(outer, offsets, totals)
            size = window.dimensions[len(offsets)].size
            if is_loop and size > 1:
                with emitter.fb.carried_loop(0, size, 1, flatten(totals)) as loop:
                    inside = nest((*offsets, Affine(loop.index)), unflatten(loop.values, totals), outer.inner())
                    loop.yield_(*flatten(inside))
                return unflatten(loop.results, totals)
            for offset in range(size):
                totals = nest((*offsets, Affine(offset)), totals, outer)
            return totals

        sums = nest((), zeros, emitter) if terms else zeros
        total = reduce(lambda a, b: _add(emitter.fb, self._dtype, a, b), sums)
        return convert_element(emitter.fb, total, self._dtype, self._convolution.shape.dtype)

    def _with_features(self, emitter: ElementEmitter, offsets: Index, totals: _Totals) -> _Totals:
        """The sums with the products at an offset of the window; padding is zeros, holes contribute nothing."""
        dims, window, lhs = self._attrs.dim_labels, self._attrs.window, self._convolution.operand(0)
        inside, between, math = Region(emitter), Region(emitter), emitter.math
        left, right = dict(self._lhs), dict(self._rhs)
        sizes = [lhs.shape.dims[dim] for dim in dims.input_spatial]
        for number, (one, size) in enumerate(zip(window.dimensions, sizes, strict=True)):
            left[dims.input_spatial[number]] = _source(inside, between, one, size, self._space[number], offsets[number])
            flipped = math.add_constant(math.scale(offsets[number], -1), one.size - 1)
            right[dims.kernel_spatial[number]] = flipped if one.reversal else offsets[number]
        count, step = self._features, len(totals)
        after, full = totals, count - count % step

        def product(outer: ElementEmitter, feature: Position, total: Element) -> Element:
            left[dims.input_feature] = math.add(self._first_feature, feature)
            right[dims.kernel_input_feature] = feature
            return self._product(outer, inside.within(outer), left, right, total)

        if full > 2 * step:
            with emitter.fb.carried_loop(0, full, step, flatten(totals)) as loop:
                outer, carried = emitter.inner(), unflatten(loop.values, totals)
                features = [math.add_constant(Affine(loop.index), number) for number in range(step)]
                loop.yield_(*flatten(map(product, [outer] * step, features, carried)))
            after = unflatten(loop.results, totals)
        else:
            full = 0
        for feature in range(full, count):
            which = feature % step
            after = (*after[:which], product(emitter, Affine(feature), after[which]), *after[which + 1 :])
        return tuple(between.select(new, old) for new, old in zip(after, totals, strict=True))

    def _product(
        self,
        emitter: ElementEmitter,
        inside: Region,
        left: dict[int, Position],
        right: dict[int, Position],
        total: Element,
    ) -> Element:
        lhs, rhs = self._convolution.operands
        a = inside.choose(
            lhs, tuple(left[dim] for dim in range(lhs.shape.rank)), lambda: zero_element(lhs.shape.dtype, emitter.lanes)
        )
        b = emitter.element(rhs, tuple(right[dim] for dim in range(rhs.shape.rank)))
        factors = (
            emitter.spread(convert_element(emitter.fb, factor, operand.shape.dtype, self._dtype))
            for factor, operand in ((a, lhs), (b, rhs))
        )
        return multiply_add(emitter, self._dtype, total, *factors)


def _source(
    inside: Region, between: Region, dim: WindowDimension, size: int, position: Position, offset: Position
) -> Position:
    """Where along a dimension of the input an offset in the window at a position lies.

    Adds what tells elements from padding to `inside`, and elements from holes to `between`.
    """
    math = inside.emitter.math
    beyond = max(0, -(-dim.pad_low // dim.lhs_dilate))
    place = math.add(math.scale(position, dim.stride), math.scale(offset, dim.rhs_dilate))
    place = math.add_constant(place, beyond * dim.lhs_dilate - dim.pad_low)
    if dim.lhs_dilate > 1:
        between.require_zero(math.modulo(place, dim.lhs_dilate))
        place = math.divide(place, dim.lhs_dilate)
    place = math.add_constant(place, -beyond)
    last = (dim.output_size(size) - 1) * dim.stride + dim.dilated_size - 1 - dim.pad_low
    if dim.pad_low > 0 or last >= size * dim.lhs_dilate:
        inside.require_range(place, size)
    return place


def _add(fb: FunctionBuilder, dtype: DType, a: Element, b: Element) -> Element:
    if isinstance(a, tuple) and isinstance(b, tuple):
        from xlalite.backends.codegen.elements import complex_arithmetic

        return complex_arithmetic.add(fb, a, b)
    assert not isinstance(a, tuple), "both are real"
    assert not isinstance(b, tuple), "both are real"
    if dtype is DType.PRED:
        return fb.or_(a, b)
    return fb.fadd(a, b) if dtype.is_floating else fb.add(a, b)


ELEMENT_RULES: dict[str, ElementRule] = {"convolution": _convolution}
