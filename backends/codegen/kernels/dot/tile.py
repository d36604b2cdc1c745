"""What tiles in registers have in common: the function that they are, lines of lanes, and sums in several chains.

`void tile(ptr a, ptr b, ptr c, i64 depth, i1 adds, i64...)` computes a tile of the result of a product; the last
arguments are what the tile does not know, strides first, and further pointers. All programs share its functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.scalars import Scalar
from xlalite.backends.codegen.llvm import (
    I1,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    vector,
    zero,
)
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(ABC):
    """A tile. Strides are in elements.

    Attributes:
        name: Beginning of the name of its functions.
        rows: Number of i.
        columns: Number of j.
        lanes: Lanes of a vector.
        chains: Number of vectors that a sum is split into, added at the end.
        arguments: How many numbers are further arguments.
    """

    name: ClassVar[str]
    arguments: ClassVar[int] = 0

    rows: int
    columns: int
    lanes: int
    chains: int

    @property
    def pointers(self) -> int:
        """How many pointers follow them."""
        return 0

    @property
    def argument_count(self) -> int:
        """How many numbers are further arguments of this tile."""
        return self.arguments

    def function(self, module: ModuleBuilder, numbers: Numbers) -> Function:
        """The function of the tile in the types of a product."""

        def build(fb: FunctionBuilder) -> None:
            fb.is_as_written = True
            self.emit(TileBuilder(fb, numbers, self.lanes))
            fb.ret()

        return module.shared_function(
            (self.name, numbers.kind, self),
            f"{self.name}_{self.rows}x{self.columns}",
            VOID,
            (PTR, PTR, PTR, I64, I1, *(I64,) * self.argument_count, *(PTR,) * self.pointers),
            ("noalias readonly", "noalias readonly", "noalias", *("",) * (2 + self.argument_count + self.pointers)),
            build,
        )

    @abstractmethod
    def emit(self, builder: TileBuilder) -> None:
        """Writes the body of the function."""


@dataclass(frozen=True, slots=True)
class TileBuilder:
    """Emits vectors of a tile into a function.

    Attributes:
        fb: The function.
        numbers: Types of the product.
        lanes: Lanes of a vector.
    """

    fb: FunctionBuilder
    numbers: Numbers
    lanes: int

    @property
    def kept(self) -> Type:
        """The type of a sum."""
        return self.numbers.kept

    def zeros(self, count: int) -> list[Value]:
        """Vectors of sums that have begun with nothing."""
        return [zero(vector(self.kept, self.lanes))] * count

    def below(self, start: Scalar, bound: Scalar) -> Value | None:
        """The mask of the lanes of a vector from `start` that are below a bound; None if all are known to be."""
        if isinstance(start, int) and isinstance(bound, int) and bound - start >= self.lanes:
            return None
        return lanes_below(self.fb, start, bound, self.lanes)

    def load(self, address: Value, mask: Value | None, memory: Type | None = None) -> Value:
        """A vector of which the lanes of a mask are read, of a type in memory if that is not the type of sums."""
        memory = self.kept if memory is None else memory
        wide = vector(memory, self.lanes)
        if mask is None:
            return self.fb.load(wide, address, memory.size_bytes)
        return self.fb.masked_load(wide, address, mask, zero(wide), memory.size_bytes)

    def store(self, value: Value, address: Value, mask: Value | None) -> None:
        """Writes the lanes of a mask of a vector of sums."""
        if mask is None:
            self.fb.store(value, address, self.kept.size_bytes)
        else:
            self.fb.masked_store(value, address, mask, self.kept.size_bytes)

    def joined(self, sums: Sequence[Value], count: int) -> list[Value]:
        """`count` sums out of their chains, which follow one another; added by halves."""
        return [self._sum(sums[number::count]) for number in range(count)]

    def _sum(self, parts: Sequence[Value]) -> Value:
        while len(parts) > 1:
            half = len(parts) // 2
            rest = parts[2 * half :]
            parts = [*(self.numbers.add(self.fb, parts[i], parts[i + half]) for i in range(half)), *rest]
        return parts[0]
