"""The zero pad kernel: zeros around an array that lies in memory.

It moves bytes in whole vectors, each byte of the result from its first to its last: zeros before a line of the operand
may reach into it, for the line is written over them. Long lines are left to the C library, which moves them as fast by
a function that is made in a fifth of the time. Sizes are arguments, so that paddings of all types and sizes share one
function, or these two.
"""

from __future__ import annotations

import itertools

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import open_kernel
from xlalite.backends.codegen.kernels.line_copy import copy_line, line_lanes
from xlalite.backends.codegen.llvm import (
    I8,
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
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_RANK = 4
"""Dimensions of the function's loops: two around planes, lines, and bytes of a line."""

_NUMBERS = 10
"""What the function is told of these dimensions."""

LEAST_LINE_BYTES = 16
"""Lines are at least a vector."""


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A dimension of the result: zeros, so much of the operand, and zeros again."""

    low: int
    size: int
    padded: int


def plan_zero_pad(request: KernelRequest, shape: KernelShape) -> ZeroPadKernel | Declined:
    """The kernel that pads an array with zeros."""
    root = request.body.root
    if request.in_place:
        return Declined("the result lies in the memory of the operand")
    operand, value = root.operands
    if operand.opcode != "parameter":
        return Declined("its operand is computed")
    if value.opcode != "constant" or any(value.attrs.literal.value.tobytes()):
        return Declined("it pads with other numbers than zero")
    if not operand.shape.element_count or not root.shape.element_count:
        return Declined("there is nothing to copy")
    if any(low < 0 or high < 0 or interior for low, high, interior in root.attrs.padding):
        return Declined("it cuts, or pads between elements")
    # A large result is stored past the caches.
    if root.shape.size_bytes + operand.shape.size_bytes > request.target.cache_bytes[-1]:
        return Declined("no cache holds the result")
    dimensions = _merged(request)
    if len(dimensions) > _RANK:
        return Declined("too many dimensions are padded")
    *outer, line = dimensions
    if line.size < LEAST_LINE_BYTES:
        return Declined("its lines are short")
    ones = (_Dimension(0, 1, 1),) * (_RANK - len(dimensions))
    return ZeroPadKernel(request, (*outer[:1], *ones, *outer[1:], line))


def _merged(request: KernelRequest) -> list[_Dimension]:
    """The dimensions of the result, those that are not padded merged with the ones before; the last one in bytes."""
    root = request.body.root
    element = _Dimension(0, *(representation(root.shape.dtype).size_bytes,) * 2)
    dims = zip(root.attrs.padding, root.operand(0).shape.dims, root.shape.dims, strict=True)
    found: list[_Dimension] = []
    for one in itertools.chain((_Dimension(low, size, padded) for (low, _, _), size, padded in dims), [element]):
        if found and one.size == one.padded:
            before = found.pop()
            one = _Dimension(before.low * one.size, before.size * one.size, before.padded * one.size)
        elif found and found[-1] == _Dimension(0, 1, 1):
            found.pop()
        found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class ZeroPadKernel(Kernel):
    """A padding with zeros.

    Attributes:
        dimensions: Two around planes, the lines of a plane, and the bytes of a line.
    """

    dimensions: tuple[_Dimension, ...]

    @property
    def extent(self) -> int:
        """The outermost dimension."""
        return self.dimensions[0].padded

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """A call of the function that programs share."""
        outer, inner, plane, line = self.dimensions
        sizes = (
            *(outer.low, outer.size, inner.padded, inner.low, inner.size),
            *(plane.padded * line.padded, plane.low * line.padded + line.low, plane.size, line.size, line.padded),
        )
        shared = zero_padding(module, line.size)
        entry = open_kernel(module, name, self.request, (self.request.body.root.operand(0),))
        entry.fb.only_calls()
        numbers = (constant(I64, size) for size in sizes)
        entry.fb.call(shared, entry.inputs[0].pointer, entry.outputs[0].pointer, entry.begin, entry.end, *numbers)
        entry.fb.ret()
        return entry.function


def zero_padding(module: ModuleBuilder, line_bytes: int) -> Function:
    """`void pad(ptr source, ptr target, i64 begin, i64 end, i64...)`, for arrays whose lines have so many bytes.

    Of the result's outermost positions it writes those from `begin` to `end`. The numbers that follow are, of these,
    `low, size` of what is not zero, which may be negative, `count, low, size` of the positions inside, and bytes:
    `plane` of a plane, `first` before its first line, then its number of `lines` that are copied, `width` of a line and
    `line` to the next one.
    """
    lanes = line_lanes(module.target, line_bytes)
    return module.shared_function(
        ("pad", lanes),
        f"pad_by_{lanes}",
        VOID,
        (PTR, PTR, *(I64,) * (2 + _NUMBERS)),
        ("noalias readonly", "noalias", *("",) * (2 + _NUMBERS)),
        lambda fb: _Pad(fb, lanes).emit(),
    )


class _Pad:
    """The function of `zero_padding`."""

    def __init__(self, fb: FunctionBuilder, lanes: int) -> None:
        self._fb = fb
        self._lanes = lanes
        self._bytes = vector(I8, lanes)

    def emit(self) -> None:
        fb = self._fb
        if self._lanes > 1:
            fb.is_as_written = True
        else:
            fb.only_calls()
        source, target, begin, end, *sizes = fb.parameters
        low, size, count, inner_low, inner_size, plane, first, lines, width, line = sizes
        gap = fb.sub(line, width)
        tail = fb.sub(fb.sub(fb.add(plane, gap), first), fb.mul(lines, line))
        with fb.loop(begin, end) as outer, fb.loop(0, count, nonempty=True) as inner:
            to = fb.gep(I8, target, fb.mul(fb.add(fb.mul(outer, count), inner), plane))
            row, column = fb.sub(outer, low), fb.sub(inner, inner_low)
            inside = fb.and_(fb.icmp("ult", row, size), fb.icmp("ult", column, inner_size))
            self._clear_end(to, plane, fb.select(inside, tail, plane))
            with fb.if_(inside):
                copied = fb.gep(I8, source, fb.mul(fb.add(fb.mul(row, inner_size), column), fb.mul(lines, width)))
                with fb.carried_loop(0, lines, 1, [copied, to, first], nonempty=True) as loop:
                    before, cleared, zeros = loop.values
                    self._clear(cleared, zeros)
                    to = fb.gep(I8, cleared, zeros)
                    copy_line(fb, self._lanes, before, to, width)
                    loop.yield_(fb.gep(I8, before, width), fb.gep(I8, to, width), gap)
        fb.ret()

    def _clear_end(self, plane: Value, size: Value, zeros: Value) -> None:
        """Zeros at the end of a plane; they come first, and backwards: they may reach into the last line."""
        fb = self._fb
        if self._lanes == 1:
            fb.memset(fb.gep(I8, plane, fb.sub(size, zeros)), 0, zeros)
            return
        last = fb.sub(size, self._lanes)
        with fb.loop(0, zeros, self._lanes) as place:
            fb.store(zero(self._bytes), fb.gep(I8, plane, fb.smax(fb.sub(last, place), 0)), 1)

    def _clear(self, first: Value, size: Value) -> None:
        """Zeros before a line."""
        fb = self._fb
        if self._lanes == 1:
            fb.memset(first, 0, size)
            return
        with fb.loop(0, size, self._lanes) as place:
            fb.store(zero(self._bytes), fb.gep(I8, first, place), 1)
