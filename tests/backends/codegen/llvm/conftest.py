import ctypes
import itertools

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvm_machine import machine_for

from xlalite.backends.codegen.llvm import F32, F64, I1, I8, I16, I32, I64, PTR, VOID, ModuleBuilder

_CTYPES = {
    I1: ctypes.c_bool,
    I8: ctypes.c_int8,
    I16: ctypes.c_int16,
    I32: ctypes.c_int32,
    I64: ctypes.c_int64,
    F32: ctypes.c_float,
    F64: ctypes.c_double,
    PTR: ctypes.c_void_p,
    VOID: None,
}
_NUMBERS = itertools.count()


class CompiledText:
    """Machine code of a module; functions are called with Python numbers and arrays."""

    def __init__(self, module):
        self._module = module
        target = module.target
        parsed = llvm.parse_assembly(module.text())
        parsed.verify()
        machine = machine_for(target)
        self._lljit = llvm.create_lljit_compiler(machine)
        builder = llvm.JITLibraryBuilder().add_current_process().add_ir(str(parsed))
        self._names = [f.name for f in parsed.functions if not f.is_declaration and f.linkage.name == "external"]
        for name in self._names:
            builder.export_symbol(name)
        self._library = builder.link(self._lljit, f"library{next(_NUMBERS)}")

    def __call__(self, name, *arguments):
        signature = self._module.lookup(name)
        prototype = ctypes.CFUNCTYPE(
            _CTYPES[signature.return_type], *[_CTYPES[type_] for type_ in signature.parameter_types]
        )
        function = prototype(self._library[name])
        return function(*[a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments])


@pytest.fixture(scope="session")
def compile_text():
    return CompiledText


@pytest.fixture
def module():
    return ModuleBuilder("test")
