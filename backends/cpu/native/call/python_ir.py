"""What the machine code of calls does with Python: functions, the record behind a builtin function, errors, runs."""

from __future__ import annotations

from xlalite.backends.codegen.llvm import (
    I32,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Operand,
    Value,
    array,
)
from xlalite.backends.cpu.native.call.call_records import PYTHON_FUNCTIONS, CallRecord
from xlalite.backends.cpu.native.record import NULL, TYPES, Record

# Not `nounwind`: an interpreter that ends lets threads leave by `pthread_exit` when they ask for its lock.
CALLS_PYTHON: tuple[str, ...] = ()


def call_python(fb: FunctionBuilder, name: str, *arguments: Operand) -> Value:
    """Calls a function of Python's C interface."""
    return fb.call(_declared(fb.module, name), *arguments)


def record_of(fb: FunctionBuilder, self: Value) -> Value:
    """The address of the record behind the `self` of a builtin function."""
    return call_python(fb, "PyCapsule_GetPointer", call_python(fb, "PyTuple_GetItem", self, 0), NULL)


def run_unlocked(fb: FunctionBuilder, call: Record, run: Function, params: Value, results: Value) -> Value:
    """The status of a run, without the interpreter lock if the record says so."""
    releases = fb.if_else(call.is_set("releases_lock"))
    with releases.then():
        thread_state = call_python(fb, "PyEval_SaveThread")
        status = fb.call(run, call.pointer, params, results)
        call_python(fb, "PyEval_RestoreThread", thread_state)
        releases.yield_(status)
    with releases.otherwise():
        releases.yield_(fb.call(run, call.pointer, params, results))
    return releases.results[0]


def write_raise_status(module: ModuleBuilder) -> Function:
    """Python's `raise_status(slow path object, status)` raises."""
    fb = module.function("raise_status", PTR, (PTR, I32), linkage="internal", attributes=("noinline",))
    address, status = fb.parameters
    call = Record(fb, CallRecord, address)
    arguments = fb.alloca(array(PTR, 2))
    number = call_python(fb, "PyLong_FromLong", fb.sext(status, I64))
    with fb.if_(fb.icmp("eq", number, NULL)):
        fb.ret(NULL)
    fb.store(call.load("slow_path"), arguments)
    fb.store(number, fb.gep(PTR, arguments, 1))
    result = call_python(fb, "PyObject_Vectorcall", call.load("raise_status"), arguments, 2, NULL)
    call_python(fb, "Py_DecRef", number)
    fb.ret(result)
    return fb.function


def _declared(module: ModuleBuilder, name: str) -> Function:
    result, parameters = PYTHON_FUNCTIONS[name]
    return module.declare(name, TYPES[result] if result else VOID, tuple(TYPES[kind] for kind in parameters))
