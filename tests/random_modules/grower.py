"""What random modules grow from: a builder, the values made so far, and operands that fit what is asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

FLOATS = (DType.F32, DType.F64, DType.BF16, DType.F16)
INTEGERS = (DType.S32, DType.S8, DType.U32, DType.S64, DType.U8, DType.U64, DType.S16, DType.U16)
COMPLEX = (DType.C64, DType.C128)
COMMON = (*FLOATS, *INTEGERS, *COMPLEX, DType.PRED)
RARE = tuple(dtype for dtype in DType if dtype.is_array and dtype not in COMMON)

Test: TypeAlias = Callable[[Handle], bool]


def random_dtype(chance: random.Random) -> DType:
    """Often f32 and s32, sometimes what few programs have."""
    kind = chance.random()
    if kind < 0.3:
        return DType.F32
    if kind < 0.4:
        return DType.S32
    return chance.choice(COMMON if kind < 0.93 else RARE)


class Grower:
    """A computation that grows one random operation at a time."""

    def __init__(self, chance: random.Random, builder: Builder, depth: int = 0) -> None:
        self.chance = chance
        self.builder = builder
        self.depth = depth
        self.values: list[Handle] = []

    def keep(self, made: Handle) -> None:
        """Takes a value in, or the elements of a tuple."""
        if made.shape.is_tuple:
            for index in range(len(made.shape.elements)):
                self.keep(made[index])
        elif made.shape.is_array:
            self.values.append(made)

    def dims(self, most: int = 3) -> tuple[int, ...]:
        return tuple(self.chance.choice((1, 2, 3, 4, 5, 7, 2, 3, 0)) for _ in range(self.chance.randint(0, most)))

    def find(self, test: Test = lambda value: True) -> Handle | None:
        """One of the values that pass, rather a late one."""
        fitting = [value for value in self.values if test(value)]
        return self.chance.choice(fitting[-self.chance.choice((1, 2, 4, 16)) :]) if fitting else None

    def any(self, dtypes: Sequence[DType] = (), rank: int = 0) -> Handle:
        """A value of one of the types (all when none is named) and at least the rank; made when there is none."""
        found = self.find(lambda value: (not dtypes or value.dtype in dtypes) and value.shape.rank >= rank)
        if found is not None and self.chance.random() < 0.9:
            return found
        dims = self.dims()
        while len(dims) < rank:
            dims = (*dims, self.chance.choice((1, 2, 3, 5)))
        dtype = self.chance.choice(dtypes) if dtypes else random_dtype(self.chance)
        return self.of(dtype, dims)

    def of(self, dtype: DType, dims: Sequence[int]) -> Handle:
        """A value of exactly this type and these sizes."""
        dims = tuple(dims)
        found = self.find(lambda value: value.dtype is dtype and value.dims == dims)
        if found is not None and self.chance.random() < 0.8:
            return found
        other = self.find(lambda value: value.dims == dims and (dtype.is_complex or not value.dtype.is_complex))
        if other is not None and self.chance.random() < 0.3:
            return self.builder.convert(other, dtype)
        if self.depth == 0 and self.chance.random() < 0.5:
            return self.parameter(Shape.array(dtype, dims))
        if dims and dtype is not DType.PRED and self.chance.random() < 0.3:
            return self.builder.iota(dtype, dims, self.chance.randrange(len(dims)))
        return self.constant(dtype, dims)

    def like(self, value: Handle) -> Handle:
        """Another operand for an operation that wants equal types and sizes."""
        return value if self.chance.random() < 0.15 else self.of(value.dtype, value.dims)

    def parameter(self, shape: Shape) -> Handle:
        """A new parameter, which later operations may use, too."""
        number = len(self.builder.computation.parameters)
        made = self.builder.op("parameter", (), ParameterAttrs(number), shape=shape, name=f"p{number}")
        self.values.append(made)
        return made

    def constant(self, dtype: DType, dims: Sequence[int]) -> Handle:
        """A constant: one number everywhere, or different ones."""
        dims = tuple(dims)
        sizes = dims if self.chance.random() < 0.5 else ()
        count = int(np.prod(sizes))
        numbers = np.array([self.number(dtype) for _ in range(count)]).reshape(sizes)
        with np.errstate(all="ignore"):
            made = self.builder.constant(_cast(numbers, dtype))
        return made if made.dims == dims else self.builder.broadcast(made, dims)

    def number(self, dtype: DType) -> bool | int | float | complex:
        if dtype is DType.PRED:
            return self.chance.random() < 0.5
        if dtype.is_integral:
            low = -min(8, 1 << dtype.bits >> 1) if dtype.is_signed else 0
            return self.chance.randint(low, min(9, (1 << (dtype.bits - dtype.is_signed)) - 1))
        real = self.chance.choice((0.0, 1.0, -1.0, 2.0, 0.5, 3.0, self.chance.uniform(-4, 4), self.chance.gauss(0, 1)))
        return (
            complex(real, self.chance.choice((0.0, 1.0, -2.0, self.chance.gauss(0, 1)))) if dtype.is_complex else real
        )

    def index(self, dtype: DType = DType.S32) -> Handle:
        """A scalar index, often in range, of an integer type."""
        return self.of(dtype, ()) if self.chance.random() < 0.6 else self.constant(dtype, ())

    def op(
        self,
        opcode: str,
        operands: Sequence[Handle],
        attrs: Attrs = None,
        called: Sequence[HloComputation] = (),
        shape: Shape | None = None,
    ) -> Handle:
        return self.builder.op(opcode, operands, attrs, called, shape=shape)

    def attrs(self, opcode: str, *values: object, **named: object) -> Attrs:
        return OPS[opcode].attrs(*values, **named)

    def subset(self, count: int, most: int | None = None) -> tuple[int, ...]:
        """Some of the numbers below `count`, in order."""
        size = self.chance.randint(0, count if most is None else min(count, most))
        return tuple(sorted(self.chance.sample(range(count), size)))

    def permutation(self, count: int) -> tuple[int, ...]:
        return tuple(self.chance.sample(range(count), count))


def _cast(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype.is_floating and dtype.bits <= 8:
        numbers = numbers.astype(np.float32)
    return np.asarray(numbers).astype(dtype.numpy)
