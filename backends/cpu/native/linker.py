"""Object code to addresses in this process: `link`, by `elf_loader.py` where it can, else by LLVM's linker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlalite.backends.cpu.native.elf_loader import load
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.hlo.errors import CodegenError


class LinkedModule:
    """Machine code in memory; unloaded when the last reference to this object goes.

    Whoever holds an address must hold the module.
    """

    __slots__ = ("__weakref__", "_addresses", "_code")

    def __init__(self, code: object, addresses: Mapping[str, int]) -> None:
        """Takes over the loaded code."""
        self._code = code
        self._addresses = addresses

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names it defines."""
        return tuple(self._addresses)

    def address(self, symbol: str) -> int:
        """The address of a function or variable.

        Raises:
            CodegenError: The module does not define it.
        """
        try:
            return self._addresses[symbol]
        except KeyError:
            defined = ", ".join(self._addresses)
            raise CodegenError(f"no symbol {symbol!r} in this module; it defines {defined}") from None


def link(objects: Sequence[ObjectCode], imports: Mapping[str, int] | None = None) -> LinkedModule:
    """Loads objects together into this process.

    Args:
        objects: They may refer to each other; no two define the same name.
        imports: Addresses of further functions by name. What is not among them is looked up in the process (libc).

    Raises:
        CodegenError: A symbol is missing or defined twice; the message quotes LLVM.
    """
    exports = tuple(name for code in objects for name in code.exports)
    images = [image for code in objects for image in code.images]
    loaded = load(images, exports, imports or {})
    if loaded is not None:
        return LinkedModule(loaded, loaded.addresses)
    from xlalite.backends.cpu.native.llvm_linker import link_by_llvm

    return LinkedModule(*link_by_llvm(images, exports, imports or {}))
