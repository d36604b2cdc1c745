"""Copies pieces of matrices into the order and the type in which tiles read them, or results are stored."""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.lane_exchange import exchanged
from xlalite.backends.codegen.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    constant,
    vector,
)
from xlalite.hlo.types.dtype import DType

_QUAD_BITS = 128
"""Lines are turned in pieces of this width: wider shuffles cost more to compile than they save."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A copy of source[x, y] to target[y * target_line + x] for x below a width and y below a height.

    Attributes:
        dtype: Element type of the source; None if it is in the type of sums, as the target always is.
        lanes: Lanes of a vector.
        source_x: Stride of x in the source.
        source_y: Stride of y in the source.
        target_line: Stride of y in the target.
        is_exact: Whether only elements below the width are written; else a line is written in whole vectors, of which
            the part beyond the width has no meaning.
    """

    dtype: DType | None
    lanes: int
    source_x: int
    source_y: int
    target_line: int
    is_exact: bool = False


def packer(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """`void pack(ptr source, ptr target, i64 width, i64 height)`, shared by all kernels of a module."""
    key = ("packer", numbers.kept, packing)

    def build() -> Function:
        fb = module.function(
            module.unique_name("dot_pack"),
            VOID,
            (PTR, PTR, I64, I64),
            parameter_attributes=("noalias readonly", "noalias", "", ""),
            attributes=("nounwind", "noinline"),
            linkage="internal",
        )
        _Packer(fb, numbers, packing).emit()
        return fb.function

    return module.define_once(key, build)


class _Packer:
    def __init__(self, fb: FunctionBuilder, numbers: Numbers, packing: Packing) -> None:
        self._fb = fb
        self._numbers = numbers
        self._packing = packing
        self._kept = numbers.kept
        self._memory: Type = numbers.kept if packing.dtype is None else representation(packing.dtype).memory
        self._align = self._memory.size_bytes
        self._quad = min(max(1, _QUAD_BITS // numbers.kept.bits), packing.lanes)

    def emit(self) -> None:
        fb, packing = self._fb, self._packing
        height = fb.parameters[3]
        if packing.source_x in (0, 1):
            self._copy_lines()
        elif packing.source_y in (0, 1) and self._quad > 1:
            with fb.if_(fb.icmp("sge", height, self._quad)):
                self._turn()
                fb.ret()
            self._copy_elements()
        else:
            self._copy_elements()
        fb.ret()

    def _taken(self, stored: Value) -> Value:
        dtype = self._packing.dtype
        return stored if dtype is None else self._numbers.take(self._fb, dtype, stored)

    def _copy_lines(self) -> None:
        fb, packing, lanes = self._fb, self._packing, self._packing.lanes
        source, target, width, height = fb.parameters
        whole = fb.sub(width, fb.urem(width, lanes))
        with fb.loop(0, height) as y:
            read = fb.gep(self._memory, source, fb.mul(y, packing.source_y))
            write = fb.gep(self._kept, target, fb.mul(y, packing.target_line))
            with fb.loop(0, whole, lanes) as x:
                line = fb.load(vector(self._memory, lanes), fb.gep(self._memory, read, x), self._align)
                fb.store(self._taken(line), fb.gep(self._kept, write, x), self._kept.size_bytes)
            self._copy_element_line(read, write, whole, width)

    def _copy_elements(self) -> None:
        fb, packing = self._fb, self._packing
        source, target, width, height = fb.parameters
        with fb.loop(0, height) as y:
            read = fb.gep(self._memory, source, fb.mul(y, packing.source_y))
            write = fb.gep(self._kept, target, fb.mul(y, packing.target_line))
            self._copy_element_line(read, write, constant(I64, 0), width)

    def _copy_element_line(self, read: Value, write: Value, start: Value, stop: Value) -> None:
        fb, packing = self._fb, self._packing
        with fb.loop(start, stop) as x:
            stored = fb.load(self._memory, fb.gep(self._memory, read, fb.mul(x, packing.source_x)), self._align)
            fb.store(self._taken(stored), fb.gep(self._kept, write, x), self._kept.size_bytes)

    def _turn(self) -> None:
        """Turns strips of `lanes` by `quad` elements; at the edges the last ones are taken again."""
        fb, packing, lanes = self._fb, self._packing, self._packing.lanes
        source, target, width, height = fb.parameters
        last_x, last_y = fb.sub(width, 1), fb.sub(height, self._quad)
        # The addresses of the lines do not fit into registers beside each other; said so, they are quick to compile.
        addresses = fb.alloca(PTR, lanes, align=8)
        with fb.loop(0, width, lanes) as x:
            mask = lanes_below(fb, x, width, lanes) if packing.is_exact else None
            with fb.loop(0, lanes) as number:
                place = fb.mul(fb.smin(fb.add(x, number), last_x), packing.source_x)
                fb.store(fb.gep(self._memory, source, place), fb.gep(PTR, addresses, number), 8)
            with fb.loop(0, height, self._quad) as start:
                y = fb.smin(start, last_y)
                pieces = []
                for lane in range(lanes):
                    first = fb.load(PTR, fb.gep(PTR, addresses, lane), 8)
                    piece = vector(self._memory, self._quad)
                    pieces.append(fb.load(piece, fb.gep(self._memory, first, y), self._align))
                write = fb.gep(self._kept, target, fb.add(fb.mul(y, packing.target_line), x))
                for row, line in enumerate(self._turned(pieces)):
                    address = fb.gep(self._kept, write, row * packing.target_line) if row else write
                    if mask is None:
                        fb.store(line, address, self._kept.size_bytes)
                    else:
                        fb.masked_store(line, address, mask, self._kept.size_bytes)

    def _turned(self, pieces: list[Value]) -> list[Value]:
        """`quad` vectors of as many lanes as there are pieces, vector i made of the pieces' elements i."""
        fb, quad = self._fb, self._quad
        joined = []
        for first in range(quad):
            parts = pieces[first::quad]
            while len(parts) > 1:
                parts = [fb.concat(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
            joined.append(self._taken(parts[0]))
        return exchanged(fb, joined)
