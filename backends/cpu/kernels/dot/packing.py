"""Copies pieces of operands into scratch memory, in the order and the type in which tiles read them."""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.cpu.ir_array import lanes_below
from xlalite.backends.cpu.kernels.dot.numbers import Numbers
from xlalite.backends.cpu.kernels.transpose import transpose_registers
from xlalite.backends.cpu.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    vector,
    zero,
)
from xlalite.backends.cpu.types import representation
from xlalite.hlo.dtype import DType


@dataclass(frozen=True, slots=True)
class Packing:
    """A copy of source[x, y] to target[y * target_line + x] for x below a width and y below a height.

    Attributes:
        dtype: Element type of the source; the target is in the type of sums.
        lanes: Lanes of a vector.
        source_x: Stride of x in the source.
        source_y: Stride of y in the source.
        target_line: Stride of y in the target; a multiple of the lanes. Lines are filled with zeros to whole vectors.
    """

    dtype: DType
    lanes: int
    source_x: int
    source_y: int
    target_line: int


def packer(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """`void pack(ptr source, ptr target, i64 width, i64 height)`; target has room for a height of whole vectors."""
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
        emitter = _Packer(numbers, packing)
        emitter.emit(fb)
        return fb.function

    return module.define_once(key, build)


class _Packer:
    def __init__(self, numbers: Numbers, packing: Packing) -> None:
        self._numbers = numbers
        self._packing = packing
        self._memory = representation(packing.dtype).memory
        self._align = self._memory.size_bytes
        self._wide = vector(self._memory, packing.lanes)

    def emit(self, fb: FunctionBuilder) -> None:
        packing = self._packing
        if packing.source_x in (0, 1):
            self._copy_lines(fb)
        elif packing.source_y in (0, 1):
            self._turn_squares(fb)
        else:
            self._copy_elements(fb)
        fb.ret()

    def _copy_lines(self, fb: FunctionBuilder) -> None:
        source, target, width, height = fb.parameters
        packing, lanes = self._packing, self._packing.lanes
        with fb.loop(0, height) as y:
            read = fb.gep(self._memory, source, fb.mul(y, packing.source_y))
            write = fb.gep(self._numbers.kept, target, fb.mul(y, packing.target_line))
            with fb.loop(0, width, lanes) as x:
                mask = lanes_below(fb, x, width, lanes)
                line = fb.masked_load(
                    self._wide, fb.gep(self._memory, read, x), mask, zero(self._wide), self._align
                )
                self._put(fb, self._numbers.take(fb, packing.dtype, line), fb.gep(self._numbers.kept, write, x))

    def _turn_squares(self, fb: FunctionBuilder) -> None:
        source, target, width, height = fb.parameters
        packing, lanes = self._packing, self._packing.lanes
        with fb.loop(0, width, lanes) as x, fb.loop(0, height, lanes) as y:
            below = lanes_below(fb, y, height, lanes)
            none = zero(below.type)
            start = fb.gep(self._memory, source, fb.add(fb.mul(x, packing.source_x), y))
            square = []
            for number in range(lanes):
                mask = fb.select(fb.icmp("slt", fb.add(x, number), width), below, none)
                address = fb.gep(self._memory, start, number * packing.source_x, inbounds=False)
                line = fb.masked_load(self._wide, address, mask, zero(self._wide), self._align)
                square.append(self._numbers.take(fb, packing.dtype, line))
            write = fb.gep(self._numbers.kept, target, fb.add(fb.mul(y, packing.target_line), x))
            for number, line in enumerate(transpose_registers(fb, square)):
                self._put(fb, line, fb.gep(self._numbers.kept, write, number * packing.target_line))

    def _copy_elements(self, fb: FunctionBuilder) -> None:
        source, target, width, height = fb.parameters
        packing, kept = self._packing, self._numbers.kept
        lanes = packing.lanes
        whole = fb.mul(fb.sdiv(fb.add(width, lanes - 1), lanes), lanes)
        with fb.loop(0, height) as y:
            read = fb.gep(self._memory, source, fb.mul(y, packing.source_y))
            write = fb.gep(kept, target, fb.mul(y, packing.target_line))
            with fb.loop(0, width) as x:
                stored = fb.load(self._memory, fb.gep(self._memory, read, fb.mul(x, packing.source_x)), self._align)
                fb.store(self._numbers.take(fb, packing.dtype, stored), fb.gep(kept, write, x), kept.size_bytes)
            with fb.loop(width, whole) as x:
                fb.store(zero(kept), fb.gep(kept, write, x), kept.size_bytes)

    def _put(self, fb: FunctionBuilder, line: Value, address: Value) -> None:
        fb.store(line, address, self._numbers.kept.size_bytes)
