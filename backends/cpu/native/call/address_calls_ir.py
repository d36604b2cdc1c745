"""The machine code of calls on addresses; apart from `dispatch_ir.py`, for most programs are called with arrays."""

from __future__ import annotations

from xlalite.backends.codegen.llvm import I32, I64, PTR, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.backends.cpu.native.call.call_records import CALL_AT, CALL_BOUND, RUN, BoundRecord, CallRecord
from xlalite.backends.cpu.native.call.python_ir import (
    CALLS_PYTHON,
    call_python,
    record_of,
    run_unlocked,
    write_raise_status,
)
from xlalite.backends.cpu.native.record import NULL, Record, pointer_at


def address_calls_ir() -> str:
    """The module; it calls `RUN` of the other."""
    module = ModuleBuilder("address_calls")
    run = module.declare(RUN, I32, (PTR, PTR, PTR))
    raise_status = write_raise_status(module)
    _write_call_bound(module, run, raise_status)
    _write_call_at(module, run, raise_status)
    return module.text()


def _write_call_bound(module: ModuleBuilder, run: Function, raise_status: Function) -> None:
    """METH_NOARGS: runs the entry on pointers that were bound beforehand; gives None."""
    fb = module.function(CALL_BOUND, PTR, (PTR, PTR), attributes=CALLS_PYTHON)
    bound = Record(fb, BoundRecord, record_of(fb, fb.parameters[0]))
    call = Record(fb, CallRecord, bound.load("call"))
    _run_for_none(fb, call, run, raise_status, bound.load("params"), bound.load("results"))


def _write_call_at(module: ModuleBuilder, run: Function, raise_status: Function) -> None:
    """METH_FASTCALL: runs the entry on addresses, those of inputs first; gives None."""
    fb = module.function(CALL_AT, PTR, (PTR, PTR, I64), attributes=CALLS_PYTHON)
    self, arguments, num_arguments = fb.parameters
    call = Record(fb, CallRecord, record_of(fb, self))
    num_inputs = call.load("num_inputs")
    with fb.if_(fb.icmp("ne", num_arguments, fb.add(num_inputs, call.load("num_outputs")))):
        fb.ret(call_python(fb, "PyObject_Vectorcall", call.load("slow_path"), arguments, num_arguments, NULL))
    addresses = fb.stack_array(PTR, num_arguments)
    with fb.loop(0, num_arguments) as index:
        address = call_python(fb, "PyLong_AsVoidPtr", pointer_at(fb, arguments, index))
        with fb.if_(fb.icmp("eq", address, NULL)), fb.if_(fb.icmp("ne", call_python(fb, "PyErr_Occurred"), NULL)):
            fb.ret(NULL)
        fb.store(address, fb.gep(PTR, addresses, index))
    _run_for_none(fb, call, run, raise_status, addresses, fb.gep(PTR, addresses, num_inputs))


def _run_for_none(
    fb: FunctionBuilder, call: Record, run: Function, raise_status: Function, params: Value, results: Value
) -> None:
    """Ends a builtin function: None after a run that went well, else its error."""
    status = run_unlocked(fb, call, run, params, results)
    with fb.if_(fb.icmp("ne", status, 0)):
        fb.ret(fb.call(raise_status, call.pointer, status))
    none = call.load("none")
    call_python(fb, "Py_IncRef", none)
    fb.ret(none)
