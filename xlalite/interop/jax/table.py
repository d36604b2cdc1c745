"""The table of functions that jaxlib gets: machine code where there is some, else Python, else a refusal."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from typing import Any

from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, FUNCTIONS, MAJOR, MINOR, Api, ErrorCode, Version
from xlalite.backends.cpu.native.pjrt.native import make_immortal, native
from xlalite.hlo.errors import XlaliteError
from xlalite.interop.jax import client as client  # registers its functions
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.buffers import buffer_from_strided
from xlalite.interop.jax.devices import execute_on_devices
from xlalite.interop.jax.executables import explain_failure
from xlalite.interop.jax.platform import platform
from xlalite.interop.jax.registry import FUNCTIONS as IN_PYTHON

_LOGGER = logging.getLogger("xlalite")
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Explain = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@once
def capsule() -> object:
    """The table as jaxlib takes it; it lives for ever."""
    platform()
    code, api = native(), Api(struct_size=ctypes.sizeof(Api))
    api.version = Version(struct_size=ctypes.sizeof(Version), major=MAJOR, minor=MINOR)
    callbacks: list[object] = [api]

    def address(callback: Any) -> int:
        callbacks.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    for name in FUNCTIONS:
        if name in code.names:
            setattr(api, name, code.address(name))
        elif name in IN_PYTHON:
            setattr(api, name, address(_wrapped(name, IN_PYTHON[name])))
        else:
            setattr(api, name, address(_refusing(name)))
    strided = _wrapped("Client_BufferFromHostBuffer", buffer_from_strided)
    code.shared.buffer_from_strided = address(strided)
    code.shared.execute_on_devices = address(_wrapped("LoadedExecutable_Execute", execute_on_devices))
    code.shared.explain_failure = address(_Explain(lambda program, status: _error(explain_failure(program, status))))
    make_immortal(callbacks)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    found: object = new_capsule(ctypes.addressof(api), b"pjrt_c_api", None)
    return found


def _wrapped(name: str, implementation: Callable[[Any], None]) -> Any:
    """A Python function for C: it fills in its arguments, and what it raises becomes an error of the C API."""
    structure = ARGUMENTS[name]

    def call(address: int) -> int | None:
        try:
            implementation(structure.from_address(address))
        except BaseException as error:  # none may go into the client
            return _error(error)
        return None

    return _Function(call)


def _refusing(name: str) -> Any:
    return _Function(lambda _: _error(Refusal(ErrorCode.UNIMPLEMENTED, f"{name} is not offered by xlalite")))


def _error(error: BaseException) -> int:
    """An error of the C API; what is no refusal of the program is a defect and keeps its trace in the log."""
    code = ErrorCode.INTERNAL
    text = str(error)
    if isinstance(error, Refusal):
        code = error.code
    elif isinstance(error, XlaliteError):
        code = ErrorCode.INVALID_ARGUMENT
    else:
        _LOGGER.exception("the platform of jax failed")
        text = f"{type(error).__name__}: {error}"
    data = text.encode("utf-8", "replace")
    address: int = native().new_error(code, data, len(data))
    return address
