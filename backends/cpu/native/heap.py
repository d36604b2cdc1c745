"""Memory from the C library, asked for and given back by generated code."""

from __future__ import annotations

from xlalite.backends.codegen.llvm import I64, PTR, VOID, FunctionBuilder, Value, constant
from xlalite.backends.cpu.native.aligned_memory import ALIGNMENT_BYTES

PLAIN_ALIGNMENT_BYTES = 16
"""What every block of the C library is aligned to."""


def allocate(fb: FunctionBuilder, size: Value, alignment: int = ALIGNMENT_BYTES) -> Value:
    """The address of so many fresh bytes, or null; not every C library takes sizes that are no multiples."""
    if alignment <= PLAIN_ALIGNMENT_BYTES:  # which keeps freed blocks of such sizes at hand
        return fb.call(fb.module.declare("malloc", PTR, (I64,)), size)
    function = fb.module.declare("aligned_alloc", PTR, (I64, I64))
    return fb.call(function, constant(I64, alignment), fb.and_(fb.add(size, alignment - 1), -alignment))


def release(fb: FunctionBuilder, pointer: Value) -> None:
    """Gives memory back; null is none."""
    fb.call(fb.module.declare("free", VOID, (PTR,)), pointer)
