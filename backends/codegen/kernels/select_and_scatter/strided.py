"""The kernel of a select-and-scatter whose windows move along the minor dimension, as in pooling with channels first.

First lanes are neighbouring windows, and the number of the element that each selects is noted. Then lanes are
neighbouring elements of the result, and each takes the sources of those windows around it that selected it, the first
window first. Where windows are s apart, a vector of them is spread to s lanes for each; which element of its window a
lane is follows from the lane's number, but for whole strides.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.scratch import aligned, own_slot
from xlalite.backends.codegen.kernels.select_and_scatter.kernel import Part, SelectAndScatterKernel, chosen_element
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

_SPELT_OUT = 16
"""Windows around an element beyond which its code is a loop."""
_MOST_IN_VAIN = 4
"""How many windows are looked for, for each element below a window that was looked at."""


def lanes_of(request: KernelRequest) -> int:
    """Elements of a vector, numbers of elements among them."""
    return request.target.lanes(max(32, representation(request.body.root.shape.dtype).register.bits))


def can_take(window: Window, dims: Sequence[int], positions: Sequence[int], lanes: int) -> bool:
    """Whether the windows around each vector are the same, and most of them exist."""
    around = math.prod(map(_windows_around, window.dimensions)) * math.prod(dims)
    are_there = 0 < around <= _MOST_IN_VAIN * math.prod((*positions, *window.sizes))
    return are_there and lanes % (2 * window.dimensions[-1].stride) == 0


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
            with own_slot(entry, self.scratch_bytes) as slot, self._parts(entry) as part:
                line, noted = part.line, ArrayView.row_major(slot, DType.S32, self._windows_of_line)

                def note(index: Index, width: int, mask: Value | None) -> None:
                    emitter = entry.emitter(width, mask)
                    noted.write(emitter.math, self._in_line(index), self._select(emitter, index), mask)

                def take(index: Index, width: int, mask: Value | None) -> None:
                    self._take(entry, noted, index, width, mask)

                rows = self._ranges((*self.dims[:-1], self.dims[-1] + self._shift), part.rows)
                windows, outer = self._ranges(self.positions, part.windows), self.divided
                if outer is None:
                    self._walk(fb, windows, line, lanes, note)
                    self._walk(fb, rows, line, lanes, take)
                else:
                    begin = IndexMath(fb, 1).scalar(part.rows[0])
                    with fb.carried_loop(*part.windows, 1, [begin]) as loop:
                        self._walk(fb, windows, {**line, outer: Affine(loop.index)}, lanes, note)
                        end = self._rows_done(fb, outer, part, loop.index)
                        with fb.loop(loop.values[0], end) as row:
                            self._walk(fb, rows, {**line, outer: Affine(row)}, lanes, take)
                        loop.yield_(end)
        fb.ret()
        return entry.function

    def _rows_done(self, fb: FunctionBuilder, dim: int, part: Part, window: Value) -> Value:
        """Where rows of a part end that are below its windows up to one; the last one has all that are left."""
        one, (begin, end) = self.window.dimensions[dim], part.rows
        below = fb.sub(fb.mul(fb.add(window, 1), one.stride), one.pad_low)
        is_last = fb.icmp("eq", fb.add(window, 1), part.windows[1])
        return fb.select(is_last, end, fb.smin(fb.smax(below, begin), end))

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
        around = [_windows_around(dim) for dim in self.window.dimensions]

        def of_row(back: Sequence[Value], taken: Element) -> Element:
            return self._taken_from_row(entry, noted, index, back, taken)

        taken = _fold_back(fb, around[:-1], math.prod(around) > _SPELT_OUT, taken, of_row)
        entry.outputs[0].write(emitter.math, (*outer, emitter.math.add_constant(at, -self._shift)), taken, mask)

    def _taken_from_row(
        self, entry: KernelEntry, noted: ArrayView, index: Index, back: Sequence[Value], taken: Element
    ) -> Element:
        """The elements with the sources of a row of windows so many back, where these are and selected them."""
        fb, lanes = entry.fb, lanes_of(self.request)
        place, number, conditions = self._outer_window(fb, index, back)
        minor, at = self.window.dimensions[-1], index[-1]
        assert isinstance(at, Affine), "lanes lie side by side"
        first = IndexMath(fb, 1).divide(Affine(at.base), minor.stride)
        spread = [lane // minor.stride for lane in range(lanes)]
        offsets = vector_constant(vector(I32, lanes), [lane % minor.stride for lane in range(lanes)])
        scatter, source = self.request.body.root.called_computations[1], self.request.body.root.operand(1)

        def take(back: Sequence[Value], taken: Element) -> Element:
            math, scalar = IndexMath(fb, lanes // minor.stride), IndexMath(fb, 1)
            before = fb.sub(fb.constant(I64, (minor.pad_low - self._shift) // minor.stride), back[0])
            windows = scalar.add(first, Affine(before, 1))
            is_there = fb.icmp("ult", math.vector(windows), self.positions[-1])
            emitter = entry.emitter(math.lanes, is_there)
            selected = emitter.spread(noted.read(math, self._in_line((*place, windows)), is_there))
            assert isinstance(selected, Value), "a number is one register"
            selected = fb.shuffle(fb.select(is_there, selected, -1), None, spread)
            offset = fb.add(offsets, fb.splat(fb.mul(fb.trunc(back[0], I32), minor.stride), lanes))
            if minor.size % minor.stride:
                # A number of its own for lanes that lie between windows.
                offset = fb.select(fb.icmp("slt", offset, minor.size), offset, -(1 << 30))
            is_own = fb.icmp("eq", selected, fb.add(fb.splat(fb.mul(number, minor.size), lanes), offset))
            kind = emitter.vector(source, (*place, windows))
            sources = unflatten(tuple(fb.shuffle(one, None, spread) for one in flatten([kind])), [kind])
            wide = entry.emitter(lanes)
            (new,) = map(wide.spread, wide.apply(scatter, [taken, *sources]))
            return chosen_element(fb, is_own, new, taken)

        def of_row() -> Element:
            count = _windows_around(minor)
            return _fold_back(fb, [count], count > _SPELT_OUT, taken, take)

        if not conditions:
            return of_row()
        choice = fb.if_else(functools.reduce(fb.and_, conditions))
        with choice.then():
            choice.yield_(*flatten([of_row()]))
        with choice.otherwise():
            choice.yield_(*flatten([taken]))
        (result,) = unflatten(choice.results, [taken])
        return result

    def _outer_window(
        self, fb: FunctionBuilder, index: Index, back: Sequence[Value]
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
            window = fb.sub(fb.udiv(padded, one.stride), fb.add(back[dim], before))
            offset = fb.add(fb.urem(padded, one.stride), fb.mul(back[dim], one.stride))
            conditions.append(fb.icmp("ult", window, self.positions[dim]))
            if one.size % one.stride:
                conditions.append(fb.icmp("ult", offset, one.size))
            place.append(Affine(window))
            number = fb.add(fb.mul(number, one.size), fb.trunc(offset, I32))
        return place, number, conditions


def _fold_back(
    fb: FunctionBuilder,
    sizes: Sequence[int],
    is_loop: bool,
    taken: Element,
    step: Callable[[Sequence[Value], Element], Element],
) -> Element:
    """What is taken step by step, from the windows that are farthest back along each dimension on."""

    def nest(back: Sequence[Value], taken: Element) -> Element:
        if len(back) == len(sizes):
            return step(back, taken)
        size = sizes[len(back)]
        if is_loop and size > 1:
            with fb.carried_loop(0, size, 1, flatten([taken])) as loop:
                (carried,) = unflatten(loop.values, [taken])
                loop.yield_(*flatten([nest((*back, fb.sub(fb.constant(I64, size - 1), loop.index)), carried)]))
            (result,) = unflatten(loop.results, [taken])
            return result
        for number in range(size - 1, -1, -1):
            taken = nest((*back, fb.constant(I64, number)), taken)
        return taken

    return nest((), taken)
