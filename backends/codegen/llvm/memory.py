"""Loads, stores, addresses, atomics and calls."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm.emitter import Emitter
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.types import I1, I8, I32, I64, PTR, VOID, Type, TypeKind, struct, vector
from xlalite.backends.codegen.llvm.value import Function, Operand, Value, constant, lanes_of_mask, poison

_RMW_OPERATIONS = frozenset(
    ["xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin", "fadd", "fsub", "fmax", "fmin"]
)
_ORDERINGS = frozenset(["unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"])


class Memory(Emitter):
    """Instructions that touch memory.

    `align` is in bytes; 0 leaves LLVM's natural alignment of the type, so give 1 for packed data. `metadata` is text
    such as `"!invariant.load !3, !noalias !5"`, from `ModuleBuilder.metadata`.
    """

    def gep(self, element: Type, pointer: Value, *indices: Value | int, inbounds: bool = True) -> Value:
        """The address `pointer + indices` in units of `element`; ints are i64 (i32 inside structs: the last ones).

        A vector of pointers or of indices gives a vector of pointers.
        """
        lanes = pointer.type.lanes
        if not pointer.type.is_pointer:
            self._mismatch("gep", pointer, *indices)
        spelled = []
        inside_struct = element.kind is TypeKind.STRUCT
        for position, index in enumerate(indices):
            if isinstance(index, Value):
                if not index.type.is_integer:
                    self._mismatch("gep", pointer, *indices)
                lanes = max(lanes, index.type.lanes)
                spelled.append(f"{index.type.text} {index.text}")
            else:
                spelled.append(f"{'i32' if position and inside_struct else 'i64'} {index}")
        type_ = PTR if lanes == 1 and not pointer.type.is_vector else vector(PTR, lanes)
        flag = "inbounds " if inbounds else ""
        return self._emit(type_, f"getelementptr {flag}{element.text}, {pointer!r}, {', '.join(spelled)}")

    def load(self, type_: Type, pointer: Value, align: int = 0, *, volatile: bool = False, metadata: str = "") -> Value:
        """Loads a value of any type."""
        if pointer.type is not PTR:
            self._mismatch("load", pointer)
        aligned = f", align {align}" if align else ""
        tail = f", {metadata}" if metadata else ""
        flag = "volatile " if volatile else ""
        return self._emit(type_, f"load {flag}{type_.text}, ptr {pointer.text}{aligned}{tail}")

    def store(
        self, value: Value, pointer: Value, align: int = 0, *, volatile: bool = False, metadata: str = ""
    ) -> None:
        """Stores a value of any type."""
        if pointer.type is not PTR:
            self._mismatch("store", value, pointer)
        aligned = f", align {align}" if align else ""
        tail = f", {metadata}" if metadata else ""
        flag = "volatile " if volatile else ""
        self._append(f"  store {flag}{value.type.text} {value.text}, ptr {pointer.text}{aligned}{tail}")

    # Masked and scattered access. An inactive lane touches no memory.

    def masked_load(
        self, type_: Type, pointer: Value, mask: Value, passthru: Value | None = None, align: int = 1
    ) -> Value:
        """A contiguous vector load of the lanes in `mask`; the others take `passthru` (poison if None)."""
        passthru = poison(type_) if passthru is None else passthru
        if pointer.type is not PTR or mask.type is not type_.with_scalar(I1) or passthru.type is not type_:
            self._mismatch(f"masked_load of {type_}", pointer, mask, passthru)
        function = self.module.intrinsic("masked.load", type_, (PTR, mask.type, type_), (type_, PTR))
        return self._emit(
            type_, f"call {type_.text} {function.text}(ptr align {align} {pointer.text}, {mask!r}, {passthru!r})"
        )

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int = 1) -> None:
        """A contiguous vector store of the lanes in `mask`.

        A mask known now with one lane becomes a scalar store. LLVM would do the same, but for AVX-512 it stores an
        element of the type before a truncation (LLVM 22.1, llvmlite 0.50): of `trunc <8 x i64> %v to <8 x i32>` it
        writes 8 bytes, not 4. When `test_llvm_stores_one_lane_too_wide` fails, this case can go.
        """
        if pointer.type is not PTR or not value.type.is_vector or mask.type is not value.type.with_scalar(I1):
            self._mismatch("masked_store", value, pointer, mask)
        lanes = lanes_of_mask(mask)
        if lanes is not None and len(lanes) == 1:
            element = self._emit(value.type.scalar, f"extractelement {value!r}, i64 {lanes[0]}")
            self.store(element, self.gep(element.type, pointer, lanes[0]) if lanes[0] else pointer, align)
            return
        function = self.module.intrinsic("masked.store", VOID, (value.type, PTR, mask.type), (value.type, PTR))
        self._append(f"  call void {function.text}({value!r}, ptr align {align} {pointer.text}, {mask!r})")

    def gather(
        self, type_: Type, pointers: Value, mask: Value | None = None, passthru: Value | None = None, align: int = 1
    ) -> Value:
        """One load per lane from a vector of pointers; all lanes if `mask` is None."""
        mask = constant(type_.with_scalar(I1), 1) if mask is None else mask
        passthru = poison(type_) if passthru is None else passthru
        if (
            pointers.type is not type_.with_scalar(PTR)
            or not type_.is_vector
            or mask.type is not type_.with_scalar(I1)
            or passthru.type is not type_
        ):
            self._mismatch(f"gather of {type_}", pointers, mask, passthru)
        types = (pointers.type, mask.type, type_)
        function = self.module.intrinsic("masked.gather", type_, types, (type_, pointers.type))
        arguments = f"{pointers.type.text} align {align} {pointers.text}, {mask!r}, {passthru!r}"
        return self._emit(type_, f"call {type_.text} {function.text}({arguments})")

    def scatter(self, value: Value, pointers: Value, mask: Value | None = None, align: int = 1) -> None:
        """One store per lane to a vector of pointers, lane 0 first where addresses are equal."""
        type_ = value.type
        mask = constant(type_.with_scalar(I1), 1) if mask is None else mask
        if not type_.is_vector or pointers.type is not type_.with_scalar(PTR) or mask.type is not type_.with_scalar(I1):
            self._mismatch("scatter", value, pointers, mask)
        types = (type_, pointers.type, mask.type)
        function = self.module.intrinsic("masked.scatter", VOID, types, (type_, pointers.type))
        pointer_text = f"{pointers.type.text} align {align} {pointers.text}"
        self._append(f"  call void {function.text}({value!r}, {pointer_text}, {mask!r})")

    # Blocks of memory

    def memcpy(self, target: Value, source: Value, size_bytes: Operand, *, align: int = 1) -> None:
        """Copies bytes between places that do not overlap (or are the same)."""
        self._transfer("memcpy", target, source, size_bytes, align)

    def memmove(self, target: Value, source: Value, size_bytes: Operand, *, align: int = 1) -> None:
        """Copies bytes between places that may overlap."""
        self._transfer("memmove", target, source, size_bytes, align)

    def _transfer(self, name: str, target: Value, source: Value, size_bytes: Operand, align: int) -> None:
        size = self._size(size_bytes)
        if target.type is not PTR or source.type is not PTR:
            self._mismatch(name, target, source, size)
        function = self.module.intrinsic(name, VOID, (PTR, PTR, I64, I1), (PTR, PTR, I64))
        pointers = f"ptr align {align} {target.text}, ptr align {align} {source.text}"
        self._append(f"  call void {function.text}({pointers}, {size!r}, i1 false)")

    def memset(self, target: Value, byte: Operand, size_bytes: Operand, *, align: int = 1) -> None:
        """Fills memory with one byte."""
        size = self._size(size_bytes)
        filler = byte if isinstance(byte, Value) else constant(I8, byte)
        if target.type is not PTR or filler.type is not I8:
            self._mismatch("memset", target, filler, size)
        function = self.module.intrinsic("memset", VOID, (PTR, I8, I64, I1), (PTR, I64))
        self._append(f"  call void {function.text}(ptr align {align} {target.text}, {filler!r}, {size!r}, i1 false)")

    def _size(self, size_bytes: Operand) -> Value:
        size = size_bytes if isinstance(size_bytes, Value) else constant(I64, size_bytes)
        if size.type is not I64:
            self._mismatch("size in bytes", size)
        return size

    def prefetch(self, pointer: Value, *, write: bool = False, locality: int = 3) -> None:
        """A hint that the cache line at `pointer` will be used; locality 0 (once) to 3 (keep)."""
        function = self.module.intrinsic("prefetch", VOID, (PTR, I32, I32, I32), (PTR,))
        self._append(f"  call void {function.text}({pointer!r}, i32 {int(write)}, i32 {locality}, i32 1)")

    # Atomics

    def atomic_load(self, type_: Type, pointer: Value, ordering: str = "seq_cst", align: int = 0) -> Value:
        """An atomic load."""
        self._check_ordering(ordering)
        aligned = align or type_.size_bytes
        return self._emit(type_, f"load atomic {type_.text}, {pointer!r} {ordering}, align {aligned}")

    def atomic_store(self, value: Value, pointer: Value, ordering: str = "seq_cst", align: int = 0) -> None:
        """An atomic store."""
        self._check_ordering(ordering)
        aligned = align or value.type.size_bytes
        self._append(f"  store atomic {value!r}, {pointer!r} {ordering}, align {aligned}")

    def atomic_rmw(self, operation: str, pointer: Value, value: Value, ordering: str = "seq_cst") -> Value:
        """Replaces the value at `pointer` by `operation(old, value)` and returns the old one."""
        self._check_ordering(ordering)
        if operation not in _RMW_OPERATIONS or pointer.type is not PTR:
            raise LLVMBuildError(f"atomic_rmw: no operation {operation!r} on {pointer!r}")
        return self._emit(value.type, f"atomicrmw {operation} {pointer!r}, {value!r} {ordering}")

    def compare_exchange(
        self, pointer: Value, expected: Value, new: Value, ordering: str = "seq_cst", failure: str = "seq_cst"
    ) -> tuple[Value, Value]:
        """Stores `new` if `expected` is there; returns the value that was there and whether it was stored."""
        self._check_ordering(ordering)
        self._check_ordering(failure)
        if pointer.type is not PTR or expected.type is not new.type:
            self._mismatch("compare_exchange", pointer, expected, new)
        pair = self._emit(struct(new.type, I1), f"cmpxchg {pointer!r}, {expected!r}, {new!r} {ordering} {failure}")
        old = self._emit(new.type, f"extractvalue {pair!r}, 0")
        return old, self._emit(I1, f"extractvalue {pair!r}, 1")

    def fence(self, ordering: str = "seq_cst") -> None:
        """A memory fence."""
        self._check_ordering(ordering)
        self._append(f"  fence {ordering}")

    def _check_ordering(self, ordering: str) -> None:
        if ordering not in _ORDERINGS:
            raise LLVMBuildError(f"no atomic ordering {ordering!r}")

    # Calls

    def call(self, function: Function, *arguments: Operand, attributes: str = "", tail: str = "") -> Value:
        """Calls a function of this module; numbers become constants of the parameter's type.

        Returns:
            The result; of type VOID, and not to be used, for a void function.
        """
        types = function.parameter_types
        if len(arguments) < len(types) or (len(arguments) > len(types) and not function.variadic):
            raise LLVMBuildError(f"call {function.name}: {len(arguments)} arguments for {len(types)} parameters")
        values = []
        for position, argument in enumerate(arguments):
            if not isinstance(argument, Value):
                argument = constant(types[position], argument)
            if position < len(types) and argument.type is not types[position]:
                raise LLVMBuildError(
                    f"call {function.name}: argument {position} is {argument!r}, wanted {types[position]}"
                )
            values.append(argument)
        signature = function.return_type.text
        if function.variadic:
            signature += f" ({', '.join([*(type_.text for type_ in types), '...'])})"
        return self._call(function.return_type, signature, function.text, values, attributes, tail)

    def call_pointer(
        self, pointer: Value, return_type: Type, arguments: Sequence[Value] = (), *, attributes: str = ""
    ) -> Value:
        """Calls through a pointer; the parameter types are those of the arguments."""
        if pointer.type is not PTR:
            self._mismatch("call_pointer", pointer, *arguments)
        return self._call(return_type, return_type.text, pointer.text, arguments, attributes, "")

    def _call(
        self, type_: Type, signature: str, callee: str, arguments: Sequence[Value], attributes: str, tail: str
    ) -> Value:
        spelled = ", ".join([f"{argument.type.text} {argument.text}" for argument in arguments])
        before = f"{tail} call" if tail else "call"
        after = f" {attributes}" if attributes else ""
        text = f"{before} {signature} {callee}({spelled}){after}"
        if type_ is VOID:
            self._append("  " + text)
            return Value(VOID, "void")
        return self._emit(type_, text)
