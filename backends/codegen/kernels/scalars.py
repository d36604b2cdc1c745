"""Arithmetic on sizes and positions that are known now or only when the kernel runs; what is known costs no code."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, TypeAlias

from xlalite.backends.codegen.llvm import I64, FunctionBuilder, ModuleBuilder, Type, Value, constant

Scalar: TypeAlias = "Value | int"
"""A number that is not negative."""


class Scalars:
    """Arithmetic in a function."""

    simplifies: ClassVar[bool] = True
    """Whether what is known now may decide what code there is."""

    def __init__(self, fb: FunctionBuilder) -> None:
        """Emits into `fb`."""
        self._fb = fb

    def value(self, a: Scalar) -> Value:
        """As a register."""
        return constant(I64, a) if isinstance(a, int) else a

    def held(self, a: int, role: Hashable) -> Value | int:
        """As what is in a register from the beginning of the function, or known; the role says what it is."""
        return a

    def operand(self, a: Scalar) -> Scalar:
        """As what loops take for a bound."""
        return a if self.simplifies else self.value(a)

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        """Sum."""
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return a if self._is(b, 0) else self._fb.add(self.value(a), self.value(b), "nsw")

    def subtract(self, a: Scalar, b: Scalar) -> Scalar:
        """Difference."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if self._is(b, 0) else self._fb.sub(self.value(a), self.value(b), "nsw")

    def multiply(self, a: Scalar, factor: Scalar) -> Scalar:
        """Product."""
        if not isinstance(factor, int):
            a, factor = factor, a
        if isinstance(a, int) and isinstance(factor, int):
            return a * factor
        if self._is(factor, 0):
            return 0
        return a if self._is(factor, 1) else self._fb.mul(self.value(a), self.value(factor), "nsw")

    def divide(self, a: Scalar, divisor: int) -> Scalar:
        """Quotient."""
        if isinstance(a, int):
            return a // divisor
        return a if self._is(divisor, 1) else self._fb.udiv(a, self.value(divisor))

    def remainder(self, a: Scalar, divisor: int) -> Scalar:
        """Remainder."""
        if isinstance(a, int):
            return a % divisor
        return 0 if self._is(divisor, 1) else self._fb.urem(a, self.value(divisor))

    def least(self, a: Scalar, b: Scalar) -> Scalar:
        """The smaller one."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self._fb.smin(self.value(a), self.value(b))

    def piece(self, start: Scalar, step: int, total: Scalar) -> Scalar:
        """The size of the piece of up to `step` from `start`, a multiple of it, below a total."""
        if isinstance(total, int) and self._is(total % step, 0):
            return step
        return self.least(self.subtract(total, start), step)

    def address(self, element: Type, pointer: Value, offset: Scalar) -> Value:
        """The address some elements behind a pointer."""
        return pointer if self._is(offset, 0) else self._fb.gep(element, pointer, self.operand(offset))

    @contextmanager
    def steps(self, total: Scalar, step: int) -> Iterator[Scalar]:
        """A loop over the multiples of `step` below a total that is not 0; no loop where 0 is the only one."""
        if self.simplifies and isinstance(total, int) and total <= step:
            yield 0
            return
        with self._fb.loop(0, self.operand(total), self.operand(step), nonempty=True) as start:
            yield start

    @contextmanager
    def steps_along(
        self, total: Scalar, step: int, element: Type, pointer: Value, stride: Scalar
    ) -> Iterator[tuple[Scalar, Value]]:
        """`steps`, and an address that moves on by some elements with each."""
        if self.simplifies and isinstance(total, int) and total <= step:
            yield 0, pointer
            return
        bounds = 0, self.operand(total), self.operand(step)
        with self._fb.carried_loop(*bounds, [pointer], nonempty=True) as loop:
            yield loop.index, loop.values[0]
            loop.yield_(self.address(element, loop.values[0], stride))

    def _is(self, a: Scalar, number: int) -> bool:
        """Whether a number is known to be another, so that there is no code for what this leaves as it is."""
        return self.simplifies and isinstance(a, int) and a == number


class TableScalars(Scalars):
    """Arithmetic in a function for many sizes: what is known now is read from a table, and its text says nothing of it.

    Attributes:
        numbers: What must be in the table.
    """

    simplifies: ClassVar[bool] = False

    def __init__(self, fb: FunctionBuilder, table: Value) -> None:
        """Emits into `fb`, which has the address of the table."""
        super().__init__(fb)
        self._table = table
        self.numbers: list[int] = []
        self._held: dict[Hashable, Value] = {}

    def value(self, a: Scalar) -> Value:
        """As a register."""
        if not isinstance(a, int):
            return a
        self.numbers.append(a)
        # Loaded where it is used: so many numbers in registers take long to give registers to.
        return self._fb.load(I64, self._fb.gep(I64, self._table, len(self.numbers) - 1), 8)

    def held(self, a: int, role: Hashable) -> Value | int:
        """As a register that all loops know from the beginning, one for each role."""
        found = self._held.get(role)
        if found is None:
            self.numbers.append(a)
            found = self._held[role] = self._fb.held(I64, self._table, len(self.numbers) - 1)
        return found


def table_of(module: ModuleBuilder, numbers: Sequence[int]) -> Value:
    """The address of a table of numbers, for who is called with one."""
    return module.constant_bytes(b"".join(number.to_bytes(8, "little", signed=True) for number in numbers))
