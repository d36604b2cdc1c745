"""The machine code of the platform, in this process: its functions of the table, and what Python needs of it.

jaxlib calls destructors after Python has gone, so the code and everything it points to live for ever.
"""

from __future__ import annotations

import ctypes
from typing import Any

from xlalite.backends.cpu.native.call.call_records import FREE, MALLOC
from xlalite.backends.cpu.native.call.result_memory import result_memory
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.pjrt.abi import FUNCTIONS
from xlalite.backends.cpu.native.pjrt.execute_functions import DONATE, TAKE_DESTROYED
from xlalite.backends.cpu.native.pjrt.records import Event, Shared
from xlalite.backends.cpu.native.pjrt.writer import (
    DROP_BLOCK,
    DROP_BUFFER,
    HOLD,
    LET_GO,
    NEW_BLOCK,
    NEW_BUFFER,
    NEW_ERROR,
    SHARED,
)
from xlalite.backends.cpu.native.runtime_code import runtime_code

_FOREVER = 1 << 60
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64


class Native:
    """The linked code.

    Attributes:
        shared: What it and Python tell each other.
        new_error: `new_error(code, text, length)`.
        new_block: `new_block(size_bytes)`: the address, or None when there is no memory.
        new_buffer: `new_buffer(block, size_bytes, type, rank, dims, memory)`, which takes over the block.
        drop_block: `drop_block(block)`: gives up an owner.
        drop_buffer: `drop_buffer(buffer)`.
        hold: `hold(buffer)`: keeps its memory until `let_go(buffer)`; 0 if it was deleted before.
        let_go: Ends what `hold` began.
        donate: `donate(buffer, is_kept)`: the block of a held buffer for a result, or a copy where others need it or
            the buffer is kept; None when there is no memory.
        take_destroyed: The first of the executables that jaxlib has destroyed since the last call.
    """

    def __init__(self, module: LinkedModule, names: tuple[str, ...]) -> None:
        """Takes over the code with the functions of the table that it defines."""
        self._module = module
        self.names = names
        self.shared = Shared.from_address(module.address(SHARED))
        self.ready_event = module.address(SHARED) + Shared.ready.offset
        self.shared.ready = Event(references=_FOREVER, awaiting=self.ready_event)
        self.new_error = self._function(NEW_ERROR, _POINTER, _WORD, ctypes.c_char_p, _WORD)
        self.new_block = self._function(NEW_BLOCK, _POINTER, _WORD)
        self.new_buffer = self._function(
            NEW_BUFFER, _POINTER, _POINTER, _WORD, ctypes.c_int32, _WORD, _POINTER, _POINTER
        )
        self.drop_block, self.drop_buffer = (self._function(name, None, _POINTER) for name in (DROP_BLOCK, DROP_BUFFER))
        self.hold, self.let_go = self._function(HOLD, ctypes.c_int32, _POINTER), self._function(LET_GO, None, _POINTER)
        self.donate = self._function(DONATE, _POINTER, _POINTER, ctypes.c_bool)
        self.take_destroyed = self._function(TAKE_DESTROYED, _POINTER)
        make_immortal(self)

    def address(self, name: str) -> int:
        """Where a function is."""
        return self._module.address(name)

    def _function(self, name: str, *types: Any) -> Any:
        return ctypes.PYFUNCTYPE(*types)(self.address(name))


@once
def native() -> Native:
    """The code in this process."""
    memory = result_memory()
    imports = {name: memory.address(name) for name in (MALLOC, FREE)}
    module = runtime_code("platform of jax", _ir, imports)
    table = tuple(name for name in FUNCTIONS if name in module.symbols)
    return Native(module, table)


def _ir() -> str:
    from xlalite.backends.codegen.llvm import ModuleBuilder
    from xlalite.backends.cpu.native.pjrt.buffer_functions import write_buffer_functions
    from xlalite.backends.cpu.native.pjrt.execute_functions import write_execute_functions
    from xlalite.backends.cpu.native.pjrt.writer import Writer

    writer = Writer(ModuleBuilder("pjrt"))
    write_buffer_functions(writer)
    write_execute_functions(writer)
    return writer.module.text()


def make_immortal(thing: object) -> None:
    """Takes a reference that is never given back."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
