"""Lanes: splat, extract, insert, shuffle, tree reductions, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.llvm.arithmetic import Arithmetic
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.types import I1, I32, PTR, Type, TypeKind, integer, vector, widened
from xlalite.backends.codegen.llvm.value import Value, constant, poison, splat_constant, vector_constant


class Vectors(Arithmetic):
    """Instructions that move lanes."""

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector with a scalar in every lane; the scalar itself for one lane."""
        if not value.type.is_scalar:
            self._mismatch("splat", value)
        if lanes == 1:
            return value
        type_ = vector(value.type, lanes)
        if value.is_constant and value.type is not PTR:
            return splat_constant(type_, value)
        first = self._emit(type_, f"insertelement {type_.text} poison, {value!r}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self._emit(type_, f"shufflevector {first!r}, {type_.text} poison, {zeros}")

    def lane_numbers(self, element: Type, lanes: int, step: int = 1) -> Value:
        """The constant `0, step, 2 * step, ...`; the scalar 0 for one lane."""
        type_ = widened(element, lanes)
        if lanes == 1:
            return constant(type_, 0)
        return vector_constant(type_, [lane * step for lane in range(lanes)])

    def extract(self, value: Value, lane: Value | int) -> Value:
        """One lane of a vector."""
        if not value.type.is_vector:
            self._mismatch("extract", value)
        spelled = repr(lane) if isinstance(lane, Value) else f"i64 {lane}"
        return self._emit(value.type.scalar, f"extractelement {value!r}, {spelled}")

    def insert(self, value: Value, scalar: Value, lane: Value | int) -> Value:
        """The vector with one lane replaced."""
        if not value.type.is_vector or scalar.type is not value.type.scalar:
            self._mismatch("insert", value, scalar)
        spelled = repr(lane) if isinstance(lane, Value) else f"i64 {lane}"
        return self._emit(value.type, f"insertelement {value!r}, {scalar!r}, {spelled}")

    def shuffle(self, a: Value, b: Value | None, mask: Sequence[int]) -> Value:
        """Lanes of `a` (numbers below its lane count) and `b` in the order of the mask; -1 leaves a lane undefined."""
        type_ = a.type
        if b is None:
            b = poison(type_)
        if b.type is not type_ or not type_.is_vector:
            self._mismatch("shuffle", a, b)
        if any(lane < -1 or lane >= 2 * type_.lanes for lane in mask):
            raise LLVMBuildError(f"shuffle: mask {list(mask)} is out of range for two {type_}")
        lanes = ", ".join(["i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask])
        result = vector(type_.scalar, len(mask))
        return self._emit(result, f"shufflevector {a!r}, {b!r}, {vector(I32, len(mask)).text} <{lanes}>")

    def concat(self, a: Value, b: Value) -> Value:
        """A vector with the lanes of `a`, then those of `b`, of equal types."""
        return self.shuffle(a, b, range(2 * a.type.lanes))

    def slice_lanes(self, value: Value, start: int, count: int) -> Value:
        """`count` lanes from `start` on, as a vector."""
        return self.shuffle(value, None, range(start, start + count))

    def split(self, value: Value) -> tuple[Value, Value]:
        """The lower and the upper half of a vector with an even lane count."""
        half = value.type.lanes // 2
        return self.slice_lanes(value, 0, half), self.slice_lanes(value, half, half)

    def reduce(self, value: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """Reduces the lanes to a scalar in a fixed order; a scalar is returned as it is.

        While the lane count is even, the upper half is combined into the lower; an odd rest is combined from lane 0
        up. `combine` works on vectors and scalars, e.g. `fb.fadd` or `lambda a, b: fb.fadd(a, b, "")`.
        """
        if not value.type.is_vector:
            return value
        while value.type.lanes > 2 and value.type.lanes % 2 == 0:
            value = combine(*self.split(value))
        result = self.extract(value, 0)
        for lane in range(1, value.type.lanes):
            result = combine(result, self.extract(value, lane))
        return result

    def any_lane(self, mask: Value) -> Value:
        """Whether some lane of an i1 vector is set; an i1 scalar is returned as it is."""
        if mask.type is I1:
            return mask
        bits = self.mask_bits(mask)
        return self._emit(I1, f"icmp ne {bits!r}, 0")

    def all_lanes(self, mask: Value) -> Value:
        """Whether every lane of an i1 vector is set; an i1 scalar is returned as it is."""
        if mask.type is I1:
            return mask
        bits = self.mask_bits(mask)
        return self._emit(I1, f"icmp eq {bits!r}, -1")

    def mask_bits(self, mask: Value) -> Value:
        """The lanes of an i1 vector as the bits of an integer."""
        if not mask.type.is_vector or mask.type.scalar is not I1:
            self._mismatch("mask", mask)
        return self.bitcast(mask, integer(mask.type.lanes))

    # Aggregates

    def extract_value(self, aggregate: Value, index: int) -> Value:
        """A member of a struct or array value."""
        return self._emit(_member(aggregate.type, index), f"extractvalue {aggregate!r}, {index}")

    def insert_value(self, aggregate: Value, member: Value, index: int) -> Value:
        """The struct or array value with one member replaced."""
        if _member(aggregate.type, index) is not member.type:
            self._mismatch("insert_value", aggregate, member)
        return self._emit(aggregate.type, f"insertvalue {aggregate!r}, {member!r}, {index}")


def _member(type_: Type, index: int) -> Type:
    if type_.kind is TypeKind.STRUCT and 0 <= index < len(type_.members):
        return type_.members[index]
    if type_.kind is TypeKind.ARRAY and type_.element is not None and 0 <= index < type_.lanes:
        return type_.element
    raise LLVMBuildError(f"{type_} has no member {index}")
