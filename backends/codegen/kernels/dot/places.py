"""Tables of where terms of an operand lie, or runs of them."""

from __future__ import annotations

from contextlib import ExitStack

from xlalite.backends.codegen.kernels.dot.view import Matrix
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import PTR, FunctionBuilder, Type, Value


def write_places(fb: FunctionBuilder, math: Scalars, memory: Type, matrix: Matrix, first: Value, table: Value) -> None:
    """Writes the place of each, counted from the first element, at the first position of the operand."""
    place = first
    number: Scalar = 0
    with ExitStack() as loops:
        for size, stride in matrix.depth.steps if matrix.looked_up == 1 else matrix.depth.steps[:-1]:
            position = loops.enter_context(fb.loop(0, math.operand(size)))
            place = math.address(memory, place, math.multiply(position, stride))
            number = math.add(math.multiply(number, size), position)
        fb.store(place, fb.gep(PTR, table, number), 8)
