"""Arithmetic on sizes and positions that are known now or only when the kernel runs; what is known costs no code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Type, Value, constant

Scalar: TypeAlias = "Value | int"
"""A number that is not negative."""


class Scalars:
    """Arithmetic in a function."""

    def __init__(self, fb: FunctionBuilder) -> None:
        """Emits into `fb`."""
        self._fb = fb

    def value(self, a: Scalar) -> Value:
        """As a register."""
        return constant(I64, a) if isinstance(a, int) else a

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        """Sum."""
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(b, int) and b == 0:
            return a
        return self._fb.add(self.value(a), b, "nsw")

    def subtract(self, a: Scalar, b: Scalar) -> Scalar:
        """Difference."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int) and b == 0:
            return a
        return self._fb.sub(self.value(a), b, "nsw")

    def multiply(self, a: Scalar, factor: Scalar) -> Scalar:
        """Product."""
        if not isinstance(factor, int):
            a, factor = factor, a
        if not isinstance(factor, int):
            return self._fb.mul(self.value(a), factor, "nsw")
        if isinstance(a, int) or factor == 0:
            return a * factor if isinstance(a, int) else 0
        return a if factor == 1 else self._fb.mul(a, factor, "nsw")

    def divide(self, a: Scalar, divisor: int) -> Scalar:
        """Quotient."""
        if isinstance(a, int):
            return a // divisor
        return a if divisor == 1 else self._fb.udiv(a, divisor)

    def remainder(self, a: Scalar, divisor: int) -> Scalar:
        """Remainder."""
        if isinstance(a, int) or divisor == 1:
            return a % divisor if isinstance(a, int) else 0
        return self._fb.urem(a, divisor)

    def least(self, a: Scalar, b: Scalar) -> Scalar:
        """The smaller one."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self._fb.smin(self.value(a), self.value(b))

    def piece(self, start: Scalar, step: int, total: Scalar) -> Scalar:
        """The size of the piece of up to `step` from `start`, a multiple of it, below a total."""
        if isinstance(total, int) and total % step == 0:
            return step
        return self.least(self.subtract(total, start), step)

    def address(self, element: Type, pointer: Value, offset: Scalar) -> Value:
        """The address some elements behind a pointer."""
        return pointer if isinstance(offset, int) and offset == 0 else self._fb.gep(element, pointer, offset)

    @contextmanager
    def steps(self, total: Scalar, step: int) -> Iterator[Scalar]:
        """A loop over the multiples of `step` below a total that is not 0; no loop where 0 is the only one."""
        if isinstance(total, int) and total <= step:
            yield 0
            return
        with self._fb.loop(0, total, step, nonempty=True) as start:
            yield start
