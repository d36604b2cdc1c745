"""LLVM itself: the functions of llvmlite's library that are called from here, and how they tell what they say.

They are called past llvmlite's Python layer, which takes as long to import as a small program to compile, and lets one
thread into LLVM altogether, though LLVM lets one into each context and each target machine. What they are is the same
in llvmlite 0.48 to 0.50.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import llvmlite
from llvmlite.utils import get_library_name

_POINTER, _TEXT, _NUMBER = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_SAID = ctypes.POINTER(ctypes.c_char_p)

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "CloneModule": (_POINTER, _POINTER),
    "ContextCreate": (_POINTER,),
    "ContextDispose": (None, _POINTER),
    "CopyStringRepOfTargetData": (None, _POINTER, _SAID),
    "CreateNewModulePassManager": (_POINTER,),
    "CreatePassBuilder": (_POINTER, _POINTER, _POINTER),
    "CreatePipelineTuningOptions": (_POINTER,),
    "CreateTargetMachine": (
        *(_POINTER, _POINTER, _TEXT, _TEXT, _TEXT),
        *(_NUMBER, _TEXT, _TEXT, _NUMBER, _NUMBER, _TEXT),
    ),
    "CreateTargetMachineData": (_POINTER, _POINTER),
    "DisposeMemoryBuffer": (None, _POINTER),
    "DisposeModule": (None, _POINTER),
    "DisposeNewModulePassManger": (None, _POINTER),
    "DisposePassBuilder": (None, _POINTER),
    "DisposePipelineTuningOptions": (None, _POINTER),
    "DisposeString": (None, _POINTER),
    "DisposeTargetData": (None, _POINTER),
    "DisposeTargetMachine": (None, _POINTER),
    "GetBufferSize": (ctypes.c_size_t, _POINTER),
    "GetBufferStart": (_POINTER, _POINTER),
    "GetHostCPUFeatures": (_NUMBER, _SAID),
    "GetHostCPUName": (None, _SAID),
    "GetProcessTriple": (None, _SAID),
    "GetTargetFromTriple": (_POINTER, _TEXT, _SAID),
    "InitializeAllAsmPrinters": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllTargets": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeNativeTarget": (None,),
    "ParseAssembly": (_POINTER, _POINTER, _TEXT, _SAID),
    "PrintModuleToString": (None, _POINTER, _SAID),
    "RunNewModulePassManager": (None, _POINTER, _POINTER, _POINTER),
    "SetDataLayout": (None, _POINTER, _TEXT),
    "SetTarget": (None, _POINTER, _TEXT),
    "TargetMachineEmitToMemory": (_POINTER, _POINTER, _POINTER, _NUMBER, _SAID),
    "VerifyModule": (ctypes.c_bool, _POINTER, _SAID),
    "module_AddInstCombinePass": (None, _POINTER),
    "module_AddSROAPass": (None, _POINTER),
    "module_AddSimplifyCFGPass": (None, _POINTER),
}
"""What each function returns and takes; names are without `LLVMPY_`."""

_LOCKED = frozenset({"PrintModuleToString"})
"""What keeps the interpreter's lock: it sets the locale of the process for its time, and others open files of text."""


def address_of(name: str) -> int:
    """Where a function of the library is, for machine code that calls it."""
    return ctypes.cast(getattr(_library, f"LLVMPY_{name}"), ctypes.c_void_p).value or 0


def call(name: str, *arguments: object) -> Any:
    """What a function returns: a pointer as a number, or None for none."""
    return getattr(_library, f"LLVMPY_{name}")(*arguments)


def ask(name: str, *arguments: object) -> tuple[Any, str]:
    """What a function returns, and what it says in a string behind its arguments, empty if nothing."""
    said = ctypes.c_char_p()
    try:
        result = call(name, *arguments, ctypes.byref(said))
        return result, (said.value or b"").decode(errors="replace")
    finally:
        call("DisposeString", said)


def bytes_of(buffer: int) -> bytes:
    """What a buffer of LLVM's holds, which goes."""
    try:
        return ctypes.string_at(call("GetBufferStart", buffer), call("GetBufferSize", buffer))
    finally:
        call("DisposeMemoryBuffer", buffer)


def _loaded() -> ctypes.CDLL:
    path = os.path.join(llvmlite.__path__[0], "binding", get_library_name())
    library, locked = ctypes.CDLL(path), ctypes.PyDLL(path)
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(locked if name in _LOCKED else library, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, arguments
        setattr(library, function.__name__, function)
    return library


describing = threading.RLock()
"""Held while LLVM's tables of targets are read or filled."""

_library = _loaded()
