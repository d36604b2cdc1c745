"""Records that Python and machine code share, or that machine code keeps for itself: one ctypes structure for both.

Generated code names the fields; their places and types are those of the structure.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    FunctionBuilder,
    LLVMBuildError,
    Operand,
    Type,
    Value,
    array,
    constant,
    zero,
)

NULL = zero(PTR)

TYPES: Mapping[object, Type] = {
    ctypes.c_void_p: PTR,
    ctypes.c_char_p: PTR,
    ctypes.c_int64: I64,
    ctypes.c_int32: I32,
    ctypes.c_int8: I8,
}


class Record:
    """A record in memory, as the code of one function reads and writes it.

    Attributes:
        pointer: Its address.
    """

    __slots__ = ("_builder", "_kind", "pointer")

    def __init__(self, builder: FunctionBuilder, kind: type[ctypes.Structure], pointer: Value) -> None:
        self._builder = builder
        self._kind = kind
        self.pointer = pointer

    @staticmethod
    def item(builder: FunctionBuilder, kind: type[ctypes.Structure], table: Value, index: Value) -> Record:
        """One of the records of a kind that lie side by side."""
        return Record(builder, kind, builder.gep(array(I8, ctypes.sizeof(kind)), table, index))

    @property
    def end(self) -> Value:
        """Where the record ends."""
        return self._builder.gep(I8, self.pointer, ctypes.sizeof(self._kind))

    def address(self, field: str) -> Value:
        """Where a field is."""
        offset, _ = _field(self._kind, field)
        return self._builder.gep(I8, self.pointer, offset)

    def load(self, field: str) -> Value:
        """What a field holds."""
        return self._builder.load(self._type(field), self.address(field))

    def store(self, field: str, value: Operand) -> None:
        """Writes a field."""
        self._builder.store(self._value(field, value), self.address(field))

    def is_set(self, field: str) -> Value:
        """Whether a number is not zero, or a pointer not null."""
        return self._builder.icmp("ne", self.load(field), zero(self._type(field)))

    def atomic_load(self, field: str, ordering: str = "seq_cst") -> Value:
        """What a field holds that other threads may write."""
        return self._builder.atomic_load(self._type(field), self.address(field), ordering)

    def atomic_store(self, field: str, value: Operand, ordering: str = "seq_cst") -> None:
        """Writes a field that other threads may read."""
        self._builder.atomic_store(self._value(field, value), self.address(field), ordering)

    def atomic_rmw(self, operation: str, field: str, value: Operand, ordering: str = "seq_cst") -> Value:
        """Replaces what a field holds by `operation(old, value)` and gives the old value."""
        return self._builder.atomic_rmw(operation, self.address(field), self._value(field, value), ordering)

    def compare_exchange(self, field: str, expected: Value, new: Value, ordering: str) -> Value:
        """Whether a field held the expected value, which is then replaced by the new one."""
        return self._builder.compare_exchange(self.address(field), expected, new, ordering, "monotonic")[1]

    def _type(self, field: str) -> Type:
        _, type_ = _field(self._kind, field)
        if type_ is None:
            raise LLVMBuildError(f"{self._kind.__name__}: field {field!r} is neither a number nor a pointer")
        return type_

    def _value(self, field: str, value: Operand) -> Value:
        return value if isinstance(value, Value) else constant(self._type(field), value)


def pointer_at(builder: FunctionBuilder, table: Value, index: Value) -> Value:
    """An entry of a table of pointers."""
    return builder.load(PTR, builder.gep(PTR, table, index))


@functools.cache
def _field(kind: type[ctypes.Structure], name: str) -> tuple[int, Type | None]:
    """Offset and type of a field.

    Raises:
        LLVMBuildError: The structure has no such field.
    """
    for field, type_, *_ in kind._fields_:
        if field == name:
            return getattr(kind, name).offset, TYPES.get(type_)
    raise LLVMBuildError(f"{kind.__name__} has no field {name!r}")
