"""What functions of a module share: symbols, declarations, constants, attribute groups and metadata."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.target import TargetInfo
from xlalite.backends.codegen.llvm.types import I8, PTR, Type, array
from xlalite.backends.codegen.llvm.value import Function, Value, escaped_bytes, quoted_name

_POOLED_BYTES = 4096
_POOL_ALIGNMENT = 64


class ModuleSymbols:
    """All of a module but its functions' bodies.

    Attributes:
        name: the module's name.
        target: what the code is for; math helpers ask it for FMA and the vector width.
        contract: the default of `function(contract=...)`: whether fadd, fsub and fmul may contract to FMA.
        excess_precision: whether operations leave it to stores to round floats narrower than f32.
        pool: takes large constants and gives the names under which they are linked in, if there is one.
        announced: what functions will have in common, said before any is written, by what it is common to.
    """

    def __init__(
        self, name: str, target: TargetInfo | None = None, *, contract: bool = True, excess_precision: bool = False
    ) -> None:
        """An empty module, for this machine unless a target is given."""
        self.name = name
        self.target = target if target is not None else TargetInfo.host()
        self.contract = contract
        self.excess_precision = excess_precision
        self.pool: Callable[[bytes], str] | None = None
        self.announced: dict[Hashable, Hashable] = {}
        self._symbols: dict[str, Function] = {}
        self._declarations: list[str] = []
        self._globals: list[str] = []
        self._constants: dict[tuple[bytes, int], Value] = {}
        self._intrinsics: dict[tuple[str, Type, tuple[Type, ...]], Function] = {}
        self._uniform_intrinsics: dict[tuple[str, Type], str] = {}
        self._external: dict[str, Value] = {}
        self._defined_once: dict[Hashable, Function] = {}
        self._uses: Counter[Hashable] = Counter()
        self._attribute_groups: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._used_names: set[str] = set()
        self._name_counts: dict[str, int] = {}

    def declare(
        self,
        name: str,
        return_type: Type,
        parameter_types: Sequence[Type] = (),
        *,
        attributes: Sequence[str] = (),
        variadic: bool = False,
    ) -> Function:
        """An external function; declaring it again with the same signature returns the same handle."""
        types = tuple(parameter_types)
        known = self._symbols.get(name)
        if known is not None:
            if (known.return_type, known.parameter_types, known.variadic) != (return_type, types, variadic):
                raise LLVMBuildError(f"declare {name}: already known with another signature")
            return known
        handle = self._register(name, return_type, types, variadic)
        parameters = [type_.text for type_ in types] + (["..."] if variadic else [])
        self._declarations.append(
            f"declare {return_type.text} {handle.text}({', '.join(parameters)}){self.attribute_reference(attributes)}"
        )
        return handle

    def intrinsic(
        self,
        name: str,
        return_type: Type,
        parameter_types: tuple[Type, ...],
        overloads: tuple[Type, ...] = (),
    ) -> Function:
        """The intrinsic `llvm.<name>.<overloads...>`, declared once."""
        key = (name, return_type, parameter_types if not overloads else parameter_types + overloads)
        found = self._intrinsics.get(key)
        if found is None:
            mangled = ".".join(["llvm", name, *(type_.mangled for type_ in overloads)])
            found = self._intrinsics[key] = self.declare(mangled, return_type, parameter_types)
        return found

    def uniform_intrinsic(self, name: str, type_: Type, operand_count: int) -> str:
        """The symbol of an intrinsic whose operands and result are all of one type, by the shortest way."""
        key = (name, type_)
        found = self._uniform_intrinsics.get(key)
        if found is None:
            found = self.intrinsic(name, type_, (type_,) * operand_count, (type_,)).text
            self._uniform_intrinsics[key] = found
        return found

    def define_once(self, key: Hashable, build: Callable[[], Function]) -> Function:
        """The function registered under `key`; `build` makes it the first time (`return builder.function`)."""
        found = self._defined_once.get(key)
        if found is None:
            found = self._defined_once[key] = build()
        return found

    def count_use(self, key: Hashable) -> int:
        """How often something was used in this module, this time included; its maker says what the key stands for."""
        self._uses[key] += 1
        return self._uses[key]

    def lookup(self, name: str) -> Function | None:
        """The function declared or defined under a name, if any."""
        return self._symbols.get(name)

    def unique_name(self, stem: str) -> str:
        """A symbol name that is not in use: the stem itself, or the stem with a number. It becomes reserved."""
        name, number = stem, self._name_counts.get(stem, 0)
        while name in self._symbols or name in self._used_names:
            number += 1
            name = f"{stem}.{number}"
        self._name_counts[stem] = number
        self._used_names.add(name)
        return name

    def constant_bytes(self, data: bytes, align: int = 64) -> Value:
        """A pointer to constant bytes; equal bytes share one symbol.

        They stand in the module, but for large ones if there is a `pool`: LLVM reads and writes them slowly.
        """
        if self.pool is not None and len(data) > _POOLED_BYTES and align <= _POOL_ALIGNMENT:
            return self.external_bytes(self.pool(data), _POOL_ALIGNMENT, constant=True)
        key = (data, align)
        found = self._constants.get(key)
        if found is None:
            type_ = array(I8, len(data))
            initializer = f'c"{escaped_bytes(data)}"' if data else "zeroinitializer"
            name = self.unique_name("constant")
            self._globals.append(
                f"@{quoted_name(name)} = private unnamed_addr constant {type_.text} {initializer}, align {align}"
            )
            found = self._constants[key] = Value(PTR, "@" + quoted_name(name))
        return found

    def global_variable(
        self,
        name: str,
        type_: Type,
        initializer: Value | None = None,
        *,
        linkage: str = "internal",
        constant: bool = False,
        align: int = 0,
    ) -> Value:
        """A pointer to a global variable; `initializer=None` with linkage `external` declares it only."""
        if initializer is not None and initializer.type is not type_:
            raise LLVMBuildError(f"global {name}: initializer is {initializer.type}, wanted {type_}")
        text = "@" + quoted_name(self.unique_name(name))
        value = "" if linkage == "external" and initializer is None else " zeroinitializer"
        if initializer is not None:
            value = " " + initializer.text
        aligned = f", align {align}" if align else ""
        kind = "constant" if constant else "global"
        self._globals.append(f"{text} = {linkage} {kind} {type_.text}{value}{aligned}")
        return Value(PTR, text)

    def external_bytes(self, name: str, align: int, *, constant: bool = False) -> Value:
        """A pointer to memory that the linker finds by name, which code may change if it is not constant."""
        found = self._external.get(name)
        if found is None:
            found = self.global_variable(name, I8, linkage="external", constant=constant, align=align)
            self._external[name] = found
        return found

    def metadata(self, content: str) -> str:
        """A metadata node (`!{...}` or `!"..."` text) and its reference `!7`; equal nodes are shared."""
        return _numbered("!", content, self._metadata)

    def _register(
        self, name: str, return_type: Type, parameter_types: tuple[Type, ...], variadic: bool = False
    ) -> Function:
        if name in self._symbols:
            raise LLVMBuildError(f"function {name}: the module has a symbol of that name")
        self._used_names.add(name)
        handle = self._symbols[name] = Function(name, return_type, parameter_types, variadic)
        return handle

    def attribute_reference(self, attributes: Sequence[str]) -> str:
        """The group of some function attributes, with a blank in front; empty if there are none."""
        if not attributes:
            return ""
        return " " + _numbered("#", " ".join(attributes), self._attribute_groups)


def _numbered(mark: str, content: str, known: dict[str, str]) -> str:
    """The reference of a content, its number the same in other modules: they are the same text."""
    if content not in known:
        number, taken = zlib.crc32(content.encode()), set(known.values())
        while f"{mark}{number}" in taken:
            number = (number + 1) % (1 << 32)
        known[content] = f"{mark}{number}"
    return known[content]
