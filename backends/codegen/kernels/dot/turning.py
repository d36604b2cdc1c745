"""Turns lines into columns: the part of packing that all walks through operands have in common, compiled once."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import Packing
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Type, Value, vector


def turner(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """`void turn(ptr places, ptr target, i64 offset, i64 length, i64 line, i64 width)`, shared by all programs.

    target[y * line + x] = places[x][offset + y] for x below the width and y below the length; there is a place for each
    lane. Where masks cost something, packings that write whole vectors have a function of their own.
    """
    is_masked = packing.is_exact or module.target.has("avx512vl")

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        turning = _Turning(fb, numbers, packing, is_masked=is_masked)
        branch = fb.if_else(fb.icmp("sge", fb.parameters[3], packing.quad(numbers.kept)))
        with branch.then():
            turning.turn()
            branch.yield_()
        with branch.otherwise():
            turning.copy_elements()
            branch.yield_()
        fb.ret()

    return module.shared_function(
        ("turner", numbers.kept, packing.dtype, packing.lanes, is_masked),
        "dot_turn",
        VOID,
        (PTR, PTR, *(I64,) * 4),
        ("noalias readonly", "noalias", *("",) * 4),
        build,
    )


class _Turning:
    """Writes the body of that function."""

    def __init__(self, fb: FunctionBuilder, numbers: Numbers, packing: Packing, *, is_masked: bool) -> None:
        self._fb, self._numbers, self._packing = fb, numbers, packing
        self._is_masked = is_masked
        self._kept, self._lanes, self._quad = numbers.kept, packing.lanes, packing.quad(numbers.kept)
        self._memory = numbers.kept if packing.dtype is None else representation(packing.dtype).memory
        self._places, self._target, self._offset, self._length, self._line, self._width = fb.parameters

    def turn(self) -> None:
        """Squares of all lanes by a quad of y; at the end the last ones are taken again."""
        fb, size = self._fb, self._kept.size_bytes
        mask = lanes_below(fb, 0, self._width, self._lanes) if self._is_masked else None
        last = fb.sub(self._length, self._quad)
        with fb.loop(0, self._length, self._quad, nonempty=True) as start:
            y = fb.smin(start, last)
            source = fb.add(self._offset, y)
            pieces = [self._load(lane, source, vector(self._memory, self._quad)) for lane in range(self._lanes)]
            write = fb.gep(self._kept, self._target, fb.mul(y, self._line))
            for column in exchanged(fb, list(map(self._taken, joined(fb, pieces, self._quad)))):
                if mask is None:
                    fb.store(column, write, size)
                else:
                    fb.masked_store(column, write, mask, size)
                write = fb.gep(self._kept, write, self._line)

    def copy_elements(self) -> None:
        """One element after the other."""
        fb = self._fb
        with fb.loop(0, self._length) as y, fb.loop(0, self._width) as x:
            stored = self._load(x, fb.add(self._offset, y), self._memory)
            write = fb.gep(self._kept, self._target, fb.add(fb.mul(y, self._line), x))
            fb.store(self._taken(stored), write, self._kept.size_bytes)

    def _load(self, x: Value | int, offset: Value, type_: Type) -> Value:
        fb = self._fb
        place = fb.load(PTR, fb.gep(PTR, self._places, x), 8)
        return fb.load(type_, fb.gep(self._memory, place, offset), self._memory.size_bytes)

    def _taken(self, stored: Value) -> Value:
        dtype = self._packing.dtype
        return stored if dtype is None else self._numbers.take(self._fb, dtype, stored)


def joined(fb: FunctionBuilder, pieces: Sequence[Value], count: int) -> list[Value]:
    """`count` vectors, each of every so-many-th piece."""
    lines = []
    for first in range(count):
        parts = pieces[first::count]
        while len(parts) > 1:
            parts = [fb.concat(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        lines.append(parts[0])
    return lines
