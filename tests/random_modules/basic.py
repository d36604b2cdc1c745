"""Random modules of the operations that programs have most, in the types f32, s32 and pred for the most part.

What passes must not change the bits of, and XLA's compiler, too, takes; few draws, so that hypothesis is quick.
"""

import random
from collections.abc import Sequence

import numpy as np

from random_modules.values import SPECIAL_FLOATS
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.dot import DotAttrs
from xlalite.hlo.ops.slicing import ConcatenateAttrs, DynamicSliceAttrs, PadAttrs, SliceAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def make_basic_module(chance: random.Random, operations: int) -> HloModule:
    """A module of about as many operations."""
    return _Generator(chance).module(operations)


class _Generator:
    """Grows a module one random operation at a time, so that rules and passes meet their patterns."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.builder = Builder("random")
        self.values: list[Handle] = []

    def module(self, operations: int) -> HloModule:
        dims = self._dims()
        for dtype in (DType.F32, DType.S32, DType.PRED, DType.F32):
            self.values.append(self.builder.parameter(Shape.array(dtype, dims)))
        self.values.append(self.builder.parameter(Shape.array(DType.S32)))
        for _ in range(operations):
            made = self.chance.choice(self.makers)(self)
            if made is not None:
                self.values.append(made)
        count = self.chance.randint(1, 3)
        return self.builder.build_module(self.builder.tuple(self.chance.choices(self.values[-6:], k=count)))

    def _dims(self) -> tuple[int, ...]:
        return tuple(self.chance.choice((1, 2, 3, 4, 2, 3, 0)) for _ in range(self.chance.randint(0, 3)))

    def _any(self, *, dtype: DType | None = None, dims: tuple[int, ...] | None = None, rank: int = 0) -> Handle | None:
        fitting = [
            v
            for v in self.values
            if v.shape.is_array
            and (dtype is None or v.dtype is dtype)
            and (dims is None or v.dims == dims)
            and v.shape.rank >= rank
        ]
        return self.chance.choice(fitting[-self.chance.choice((1, 2, 8)) :]) if fitting else None

    def _like(self, value: Handle) -> Handle:
        """A second operand: the same value, one like it, or a constant."""
        other = self._any(dtype=value.dtype, dims=value.dims)
        if other is None or self.chance.random() < 0.5:
            return self._constant(value.dtype, value.dims)
        return other

    def _constant(self, dtype: DType, dims: Sequence[int]) -> Handle:
        if dtype is DType.PRED:
            number: object = self.chance.random() < 0.5
        elif dtype.is_integral:
            number = (
                self.chance.choice((0, 1, 2, 3, 4, 8, 31, 32))
                if dtype.is_unsigned
                else self.chance.choice((0, 1, -1, 2, 3, 4, 8, 32, -(2**31), 2**31 - 1))
            )
        else:
            number = self.chance.choice(SPECIAL_FLOATS)
        array = np.asarray(number).astype(dtype.numpy)
        if dims and self.chance.random() < 0.2:
            return self.builder.constant(np.full(dims, array))
        scalar = self.builder.constant(array)
        return self.builder.broadcast(scalar, dims) if dims else scalar

    def unary(self) -> Handle | None:
        value = self._any()
        assert value is not None
        by_dtype = {
            DType.F32: ("negate", "abs", "floor", "exponential", "ceil", "sqrt", "copy", "round-nearest-even", "sign"),
            DType.PRED: ("not", "copy"),
        }
        names = by_dtype.get(value.dtype, ("negate", "not", "abs", "sign", "popcnt"))
        if value.dtype is DType.F64:
            names = ("negate", "abs")
        if value.dtype.is_unsigned:
            names = ("not", "negate")
        return self.builder.op(self.chance.choice(names), (value,))

    def binary(self) -> Handle | None:
        value = self._any()
        assert value is not None
        floats = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder")
        by_dtype = {DType.F32: floats, DType.PRED: ("and", "or", "xor", "add", "multiply", "maximum")}
        shifts = ("shift-left", "shift-right-logical", "shift-right-arithmetic")
        by_dtype[DType.F64] = floats
        names = by_dtype.get(value.dtype, (*floats, "and", "or", "xor", "power", *shifts))
        other = self._like(value)
        operands = (value, other) if self.chance.random() < 0.7 else (other, value)
        return self.builder.op(self.chance.choice(names), operands)

    def compare(self) -> Handle | None:
        value = self._any()
        assert value is not None
        return self.builder.compare(value, self._like(value), self.chance.choice(("EQ", "NE", "LT", "LE", "GT", "GE")))

    def select(self) -> Handle | None:
        value = self._any()
        assert value is not None
        condition = self._any(dtype=DType.PRED, dims=value.dims)
        if condition is None:
            condition = self._constant(DType.PRED, value.dims)
        return self.builder.op("select", (condition, value, self._like(value)))

    def clamp(self) -> Handle | None:
        value = self._any()
        assert value is not None
        return self.builder.op("clamp", (self._like(value), value, self._like(value)))

    def convert(self) -> Handle | None:
        value = self._any()
        assert value is not None
        return self.builder.convert(value, self.chance.choice((DType.F32, DType.S32, DType.PRED, DType.U8, DType.F64)))

    def broadcast(self) -> Handle | None:
        value = self._any()
        if value is None or value.shape.rank > 2:
            return None
        rank = value.shape.rank + self.chance.randint(0, 2)
        places = self.chance.sample(range(rank), value.shape.rank)
        if self.chance.random() < 0.7:
            places.sort()
        dims = [self.chance.choice((1, 2, 3)) for _ in range(rank)]
        for size, place in zip(value.dims, places, strict=True):
            dims[place] = size
        return self.builder.broadcast(value, dims, places)

    def reshape(self) -> Handle | None:
        value = self._any()
        assert value is not None
        dims = [size for size in value.dims if size != 1]
        if self.chance.random() < 0.4 and len(dims) > 1:
            dims[0:2] = [dims[0] * dims[1]]
        for _ in range(self.chance.randint(0, 2)):
            dims.insert(self.chance.randint(0, len(dims)), 1)
        return self.builder.op("reshape", (value,), shape=Shape.array(value.dtype, dims))

    def transpose(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        order = self.chance.sample(range(value.shape.rank), value.shape.rank)
        return self.builder.op("transpose", (value,), OPS["transpose"].attrs(tuple(order)))

    def reverse(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        dimensions = self.chance.sample(range(value.shape.rank), self.chance.randint(1, value.shape.rank))
        return self.builder.op("reverse", (value,), OPS["reverse"].attrs(tuple(dimensions)))

    def slice(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        ranges = []
        for size in value.dims:
            start = self.chance.randint(0, size)
            ranges.append((start, self.chance.randint(start, size), self.chance.choice((1, 1, 2))))
        return self.builder.op("slice", (value,), SliceAttrs(tuple(ranges)))

    def pad(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        padding = []
        for size in value.dims:
            low = self.chance.choice((0, 0, 1, 2, -1 if size else 0))
            padding.append((low, self.chance.choice((0, 0, 1)) + max(0, -low - size), self.chance.choice((0, 0, 0, 1))))
        return self.builder.op("pad", (value, self._constant(value.dtype, ())), PadAttrs(tuple(padding)))

    def concatenate(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        operands = [value, *(self._like(value) for _ in range(self.chance.randint(0, 2)))]
        along = self.chance.randrange(value.shape.rank)
        return self.builder.op("concatenate", operands, ConcatenateAttrs((along,)))

    def dynamic_slice(self) -> Handle | None:
        value, start = self._any(rank=1), self._any(dtype=DType.S32, dims=())
        if value is None or start is None:
            return None
        sizes = tuple(self.chance.randint(0, size) for size in value.dims)
        starts = [start if self.chance.random() < 0.5 else self._constant(DType.S32, ()) for _ in sizes]
        if self.chance.random() < 0.3:
            update = self.builder.op("dynamic-slice", (value, *starts), DynamicSliceAttrs(sizes))
            return self.builder.op("dynamic-update-slice", (value, update, *starts))
        return self.builder.op("dynamic-slice", (value, *starts), DynamicSliceAttrs(sizes))

    def iota(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None:
            return None
        return self.builder.iota(DType.S32, value.dims, self.chance.randrange(value.shape.rank))

    def reduce(self) -> Handle | None:
        value = self._any(rank=1)
        if value is None or value.dtype is DType.F64:
            return None
        count = self.chance.randint(0, value.shape.rank)
        dimensions = tuple(sorted(self.chance.sample(range(value.shape.rank), count)))
        by_dtype = {DType.F32: ("maximum", "minimum", "add"), DType.PRED: ("and", "or")}
        names = by_dtype.get(value.dtype, ("add", "maximum", "multiply"))
        return self.builder.reduce(value, self._constant(value.dtype, ()), dimensions, self.chance.choice(names))

    def dot(self) -> Handle | None:
        lhs = self._any(dtype=self.chance.choice((DType.S32, DType.F32)), rank=1)
        if lhs is None:
            return None
        rhs = self._any(dtype=lhs.dtype, rank=1)
        if rhs is None:
            return None
        pairs = [(i, j) for i, a in enumerate(lhs.dims) for j, b in enumerate(rhs.dims) if a == b]
        if not pairs:
            return None
        i, j = self.chance.choice(pairs)
        attrs = DotAttrs(lhs_contracting_dims=(i,), rhs_contracting_dims=(j,))
        made = self.builder.op("dot", (lhs, rhs), attrs)
        return made if made.shape.rank < 5 else None

    def tuple_element(self) -> Handle | None:
        chosen = self.chance.choices([v for v in self.values if v.shape.is_array], k=3)
        return self.builder.tuple(chosen)[self.chance.randrange(3)]

    def call(self) -> Handle | None:
        value = self._any(dtype=DType.F32)
        if value is None:
            return None
        function = self.builder.subcomputation("callee", (value.shape,), lambda b, p: p[0] * 2.0 - p[0])
        return self.builder.op("call", (value,), None, (function,))

    def conditional(self) -> Handle | None:
        value, condition = self._any(dtype=DType.F32), self._any(dtype=DType.PRED, dims=())
        if value is None:
            return None
        if condition is None or self.chance.random() < 0.4:
            condition = self._constant(DType.PRED, ())
        branches = [self._branch(value.shape, number) for number in (1.0, 3.0)]
        return self.builder.op("conditional", (condition, value, value), None, branches)

    def _branch(self, shape: Shape, number: float) -> HloComputation:
        return self.builder.subcomputation("branch", (shape,), lambda b, p: p[0] * number)

    def loop(self) -> Handle | None:
        """i = 0; while i < limit: x = x + f(y); i += 1, with a constant and an element that nobody needs."""
        value = self._any(dtype=DType.F32)
        if value is None:
            return None
        b = self.builder
        limit, step = b.constant(self.chance.randint(0, 3), DType.S32), b.constant(1, DType.S32)
        start = self._any(dtype=DType.S32, dims=()) if self.chance.random() < 0.0 else b.constant(0, DType.S32)
        assert start is not None
        state = b.tuple([start, value, self._like(value), limit, step])
        condition = b.subcomputation(
            "condition", (state.shape,), lambda inner, p: inner.compare(p[0][0], p[0][3], "LT")
        )

        def body(inner: Builder, p: tuple[Handle, ...]) -> Handle:
            i, x, y, bound, one = (p[0][index] for index in range(5))
            grown = inner.op("exponential", (y,))
            return inner.tuple([i + one, x + grown, y, bound, one])

        function = b.subcomputation("body", (state.shape,), body)
        return b.op("while", (state,), None, (condition, function))[self.chance.choice((0, 1, 1, 2))]

    makers = (
        unary, binary, binary, binary, binary, compare, select, clamp, convert, convert, broadcast, broadcast,
        reshape, reshape, transpose, transpose, reverse, slice, slice, pad, concatenate, dynamic_slice, iota, reduce,
        reduce, dot, tuple_element, call, conditional, loop,
    )  # fmt: skip
