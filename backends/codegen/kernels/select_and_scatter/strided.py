"""The kernel of a select-and-scatter whose windows move along the minor dimension, as in pooling with channels first.

First lanes are neighbouring windows, and the number of the element that each selects is noted. Then lanes are
neighbouring elements of the result, and each takes the sources of those windows around it that selected it, the first
window first. Where windows are s apart, a vector of them is spread to s lanes for each; which element of its window a
lane is follows from the lane's number, but for whole strides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.scratch import aligned, own_slot
from xlalite.backends.codegen.kernels.select_and_scatter.kernel import SelectAndScatterKernel, chosen_element
from xlalite.backends.codegen.llvm import (
    I32,
    I64,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    vector,
    vector_constant,
)
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import Window, WindowDimension

_MOST_AROUND = 16
"""Windows around an element that are spelt out."""


def lanes_of(request: KernelRequest) -> int:
    """Elements of a vector, numbers of elements among them."""
    return request.target.lanes(max(32, representation(request.body.root.shape.dtype).register.bits))


def can_take(window: Window, lanes: int) -> bool:
    """Whether the windows around an element are few, and around each vector the same."""
    around = math.prod(map(_windows_around, window.dimensions))
    is_dense = all(dim.rhs_dilate == 1 and dim.lhs_dilate == 1 for dim in window.dimensions)
    return is_dense and 0 < around <= _MOST_AROUND and lanes % (2 * window.dimensions[-1].stride) == 0


def _windows_around(dim: WindowDimension) -> int:
    return -(-dim.size // dim.stride)


@dataclass(frozen=True, slots=True)
class StridedSelectionKernel(SelectAndScatterKernel):
    """A selection in each window; lanes lie along the minor dimension, along which windows move."""

    @property
    def scratch_bytes(self) -> int:
        """A number for each window of a line."""
        return aligned(I32.size_bytes * math.prod(self._windows_of_line))

    @property
    def _windows_of_line(self) -> tuple[int, ...]:
        return tuple(1 if dim in self.lines else size for dim, size in enumerate(self.positions))

    @property
    def _shift(self) -> int:
        """Lanes before the first element, so that the first lane begins a window's stride."""
        return self.window.dimensions[-1].pad_low % self.window.dimensions[-1].stride

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Selects and takes, line by line."""
        entry, lanes = open_kernel(module, name, self.request), lanes_of(self.request)
        fb = entry.fb
        if math.prod(self.dims):
            with own_slot(entry, self.scratch_bytes) as slot, fb.loop(entry.begin, entry.end) as number:
                line, noted = self._line(fb, number), ArrayView.row_major(slot, DType.S32, self._windows_of_line)

                def note(index: Index, width: int, mask: Value | None) -> None:
                    emitter = entry.emitter(width, mask)
                    noted.write(emitter.math, self._in_line(index), self._select(emitter, index), mask)

                def take(index: Index, width: int, mask: Value | None) -> None:
                    self._take(entry, noted, index, width, mask)

                sizes = (*self.dims[:-1], self.dims[-1] + self._shift)
                outer = next((dim for dim in range(len(sizes) - 1) if dim not in self.lines), None)
                if outer is None:
                    self._walk(fb, self.positions, line, lanes, note)
                    self._walk(fb, sizes, line, lanes, take)
                else:
                    with fb.carried_loop(0, self.positions[outer], 1, [fb.constant(I64, 0)]) as windows:
                        self._walk(fb, self.positions, {**line, outer: Affine(windows.index)}, lanes, note)
                        end = self._rows_done(fb, outer, windows.index)
                        with fb.loop(windows.values[0], end) as row:
                            self._walk(fb, sizes, {**line, outer: Affine(row)}, lanes, take)
                        windows.yield_(end)
        fb.ret()
        return entry.function

    def _rows_done(self, fb: FunctionBuilder, dim: int, window: Value) -> Value:
        """How many elements along a dimension are below windows up to one, or below or behind all if it is the last."""
        one, size = self.window.dimensions[dim], self.dims[dim]
        below = fb.sub(fb.mul(fb.add(window, 1), one.stride), one.pad_low)
        return fb.select(fb.icmp("eq", window, self.positions[dim] - 1), size, fb.smin(fb.smax(below, 0), size))

    def _in_line(self, index: Index) -> Index:
        return tuple(ZERO if dim in self.lines else at for dim, at in enumerate(index))

    def _take(self, entry: KernelEntry, noted: ArrayView, index: Index, lanes: int, mask: Value | None) -> None:
        """Writes the elements of the result at an index less the shift."""
        fb, emitter = entry.fb, entry.emitter(lanes)
        *outer, at = index
        if self._shift:
            is_inside = fb.icmp("sge", emitter.math.vector(at), self._shift)
            mask = is_inside if mask is None else fb.and_(mask, is_inside)
        taken = emitter.spread(emitter.element(self.request.body.root.operand(2), ()))
        for back in self._around():
            taken = self._taken_from(entry, noted, index, back, taken)
        entry.outputs[0].write(emitter.math, (*outer, emitter.math.add_constant(at, -self._shift)), taken, mask)

    def _around(self) -> Iterator[tuple[int, ...]]:
        """How many windows back along each dimension those around an element are, the first windows first."""
        return itertools.product(*(range(_windows_around(dim) - 1, -1, -1) for dim in self.window.dimensions))

    def _taken_from(
        self, entry: KernelEntry, noted: ArrayView, index: Index, back: Sequence[int], taken: Element
    ) -> Element:
        """The elements with the sources of windows so many back, where there are such and they selected them."""
        fb, lanes = entry.fb, lanes_of(self.request)
        place, number, conditions = self._outer_window(fb, index, back)
        minor, at = self.window.dimensions[-1], index[-1]
        assert isinstance(at, Affine), "lanes lie side by side"
        scalar = IndexMath(fb, 1)
        first = scalar.divide(Affine(at.base), minor.stride)
        windows = scalar.add(first, Affine((minor.pad_low - self._shift) // minor.stride - back[-1], 1))
        spread = [lane // minor.stride for lane in range(lanes)]
        offsets = [lane % minor.stride + back[-1] * minor.stride for lane in range(lanes)]
        # A number of its own for lanes that lie between windows.
        own = vector_constant(vector(I32, lanes), [k if k < minor.size else -(1 << 30) for k in offsets])
        scatter, source = self.request.body.root.called_computations[1], self.request.body.root.operand(1)

        def take() -> Element:
            math = IndexMath(fb, lanes // minor.stride)
            is_there = fb.icmp("ult", math.vector(windows), self.positions[-1])
            emitter = entry.emitter(math.lanes, is_there)
            selected = emitter.spread(noted.read(math, self._in_line((*place, windows)), is_there))
            assert isinstance(selected, Value), "a number is one register"
            selected = fb.shuffle(fb.select(is_there, selected, -1), None, spread)
            is_own = fb.icmp("eq", selected, fb.add(fb.splat(fb.mul(number, minor.size), lanes), own))
            kind = emitter.vector(source, (*place, windows))
            sources = unflatten(tuple(fb.shuffle(one, None, spread) for one in flatten([kind])), [kind])
            wide = entry.emitter(lanes)
            (new,) = map(wide.spread, wide.apply(scatter, [taken, *sources]))
            return chosen_element(fb, is_own, new, taken)

        if not conditions:
            return take()
        choice = fb.if_else(functools.reduce(fb.and_, conditions))
        with choice.then():
            choice.yield_(*flatten([take()]))
        with choice.otherwise():
            choice.yield_(*flatten([taken]))
        (result,) = unflatten(choice.results, [taken])
        return result

    def _outer_window(
        self, fb: FunctionBuilder, index: Index, back: Sequence[int]
    ) -> tuple[list[Position], Value, list[Value]]:
        """The window but for the minor dimension, the number of the element in it so far, and whether there is one."""
        place: list[Position] = []
        number, conditions = fb.constant(I32, 0), list[Value]()
        for dim, one in enumerate(self.window.dimensions[:-1]):
            at = index[dim]
            if dim in self.lines:
                place.append(at)
                continue
            # Padding that removes elements must not make places negative.
            before = max(0, -(one.pad_low // one.stride))
            padded = fb.add(IndexMath(fb, 1).vector(at), one.pad_low + before * one.stride)
            window = fb.sub(fb.udiv(padded, one.stride), before + back[dim])
            offset = fb.add(fb.urem(padded, one.stride), back[dim] * one.stride)
            conditions.append(fb.icmp("ult", window, self.positions[dim]))
            if one.size % one.stride:
                conditions.append(fb.icmp("ult", offset, one.size))
            place.append(Affine(window))
            number = fb.add(fb.mul(number, one.size), fb.trunc(offset, I32))
        return place, number, conditions
