"""The machine code of a call: from Python arguments to an entry function and back.

One module serves every executable: what differs (expected types, dims, addresses) is data that the code reaches through
the `self` of the builtin function, so nothing is compiled for a new signature. The records are declared in
`call_records.py`.

Of Python it uses exported functions, and of objects only the pointer to the type; of NumPy the fields of an array that
are part of its binary interface, at offsets that `numpy_interface.py` has checked.
"""

from __future__ import annotations

from xlalite.backends.codegen.llvm import (
    I32,
    I64,
    PTR,
    VOID,
    Block,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Operand,
    Value,
    array,
    constant,
)
from xlalite.backends.cpu.native.call.argument_check_ir import check_arguments, write_donation_overlaps
from xlalite.backends.cpu.native.call.call_records import (
    CALL,
    CALL_AT,
    CALL_BOUND,
    NO_MEMORY_STATUS,
    PYTHON_FUNCTIONS,
    RELEASE_ARENA,
    RUN,
    BoundRecord,
    CallRecord,
    OutputRecord,
)
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout
from xlalite.backends.cpu.native.heap import allocate, release
from xlalite.backends.cpu.native.record import NULL, TYPES, Record, pointer_at

# Not `nounwind`: an interpreter that ends lets threads leave by `pthread_exit` when they ask for its lock.
_CALLS_PYTHON: tuple[str, ...] = ()


def dispatch_ir(layout: ObjectLayout) -> str:
    """The module for a layout of Python's and NumPy's objects."""
    module = ModuleBuilder("dispatch")
    run = _write_run(module)
    _write_release_arena(module)
    raise_status = _write_raise_status(module)
    _write_call(module, layout, run, raise_status)
    _write_call_bound(module, run, raise_status)
    _write_call_at(module, run, raise_status)
    return module.text()


def _write_call(module: ModuleBuilder, layout: ObjectLayout, run: Function, raise_status: Function) -> None:
    """METH_FASTCALL: checks the arguments, makes the results, runs the entry; anything unusual takes the slow path."""
    donation_overlaps, drop_objects = write_donation_overlaps(module), _write_drop_objects(module)
    fb = module.function(CALL, PTR, (PTR, PTR, I64), attributes=_CALLS_PYTHON)
    self, arguments, num_arguments = fb.parameters
    call = Record(fb, CallRecord, _record_of(fb, self))
    num_inputs, num_outputs = call.load("num_inputs"), call.load("num_outputs")
    params, results, objects = (fb.stack_array(PTR, count) for count in (num_inputs, num_outputs, num_outputs))
    unusual = fb.new_block("unusual")
    fb.guard(fb.icmp("eq", num_arguments, num_inputs), unusual)
    check_arguments(fb, call, layout, arguments, params, unusual)
    with fb.if_(call.is_set("has_donations")):
        fb.guard(fb.not_(fb.call(donation_overlaps, call.pointer, params)), unusual)
    failed = fb.new_block("failed")
    with fb.loop(0, num_outputs) as index:
        result = _make_result(fb, call, index, arguments, failed)
        fb.store(result, fb.gep(PTR, objects, index))
        fb.store(Record(fb, layout.array, result).load("data"), fb.gep(PTR, results, index))
    status = _run_unlocked(fb, call, run, params, results)
    with fb.if_(fb.icmp("ne", status, 0)):
        fb.call(drop_objects, objects, num_outputs)
        fb.ret(fb.call(raise_status, call.pointer, status))
    with fb.if_(fb.icmp("eq", call.load("returns_tuple"), 0)):
        fb.ret(fb.load(PTR, objects))
    tuple_ = _python(fb, "PyTuple_New", num_outputs)
    with fb.if_(fb.icmp("eq", tuple_, NULL)):
        fb.call(drop_objects, objects, num_outputs)
        fb.ret(NULL)
    with fb.loop(0, num_outputs) as position:
        _python(fb, "PyTuple_SetItem", tuple_, position, pointer_at(fb, objects, position))
    fb.ret(tuple_)
    fb.position_at(failed)
    fb.call(drop_objects, objects, index)
    fb.ret(NULL)
    fb.position_at(unusual)
    fb.ret(_python(fb, "PyObject_Vectorcall", call.load("slow_path"), arguments, num_arguments, NULL))


def _make_result(fb: FunctionBuilder, call: Record, index: Value, arguments: Value, failed: Block) -> Value:
    """A new array, or the donated argument itself; goes to `failed` with Python's error set."""
    output = Record.item(fb, OutputRecord, call.load("outputs"), index)
    alias = output.load("alias")
    is_new = fb.if_else(fb.icmp("slt", alias, 0))
    with is_new.then():
        is_new.yield_(_new_array(fb, call, output, failed))
    with is_new.otherwise():
        donated = pointer_at(fb, arguments, fb.zext(alias, I64))
        _python(fb, "Py_IncRef", donated)
        is_new.yield_(donated)
    return is_new.results[0]


def _new_array(fb: FunctionBuilder, call: Record, output: Record, failed: Block) -> Value:
    """A new array; while NumPy makes a large one, it allocates from the memory of results."""
    is_large = fb.if_else(output.is_set("is_large"))
    with is_large.then():
        exchanged = fb.call_pointer(call.load("set_handler"), PTR, (call.load("result_handler"),))
        fb.guard(fb.icmp("ne", exchanged, NULL), failed)
        is_large.yield_(exchanged)
    with is_large.otherwise():
        is_large.yield_(NULL)
    (old_handler,) = is_large.results
    descriptor = output.load("descriptor")
    _python(fb, "Py_IncRef", descriptor)  # NumPy takes one reference over
    type_and_shape = (call.load("array_type"), descriptor, output.load("rank"), output.load("dims"))
    created = fb.call_pointer(call.load("new_array"), PTR, (*type_and_shape, NULL, NULL, constant(I32, 0), NULL))
    with fb.if_(fb.icmp("ne", old_handler, NULL)):
        ours = fb.call_pointer(call.load("set_handler"), PTR, (old_handler,))
        _python(fb, "Py_DecRef", ours)
        _python(fb, "Py_DecRef", old_handler)
    fb.guard(fb.icmp("ne", created, NULL), failed)
    return created


def _write_call_bound(module: ModuleBuilder, run: Function, raise_status: Function) -> None:
    """METH_NOARGS: runs the entry on pointers that were bound beforehand; gives None."""
    fb = module.function(CALL_BOUND, PTR, (PTR, PTR), attributes=_CALLS_PYTHON)
    bound = Record(fb, BoundRecord, _record_of(fb, fb.parameters[0]))
    call = Record(fb, CallRecord, bound.load("call"))
    _run_for_none(fb, call, run, raise_status, bound.load("params"), bound.load("results"))


def _write_call_at(module: ModuleBuilder, run: Function, raise_status: Function) -> None:
    """METH_FASTCALL: runs the entry on addresses, those of inputs first; gives None."""
    fb = module.function(CALL_AT, PTR, (PTR, PTR, I64), attributes=_CALLS_PYTHON)
    self, arguments, num_arguments = fb.parameters
    call = Record(fb, CallRecord, _record_of(fb, self))
    num_inputs = call.load("num_inputs")
    with fb.if_(fb.icmp("ne", num_arguments, fb.add(num_inputs, call.load("num_outputs")))):
        fb.ret(_python(fb, "PyObject_Vectorcall", call.load("slow_path"), arguments, num_arguments, NULL))
    addresses = fb.stack_array(PTR, num_arguments)
    with fb.loop(0, num_arguments) as index:
        address = _python(fb, "PyLong_AsVoidPtr", pointer_at(fb, arguments, index))
        with fb.if_(fb.icmp("eq", address, NULL)), fb.if_(fb.icmp("ne", _python(fb, "PyErr_Occurred"), NULL)):
            fb.ret(NULL)
        fb.store(address, fb.gep(PTR, addresses, index))
    _run_for_none(fb, call, run, raise_status, addresses, fb.gep(PTR, addresses, num_inputs))


def _run_for_none(
    fb: FunctionBuilder, call: Record, run: Function, raise_status: Function, params: Value, results: Value
) -> None:
    """Ends a builtin function: None after a run that went well, else its error."""
    status = _run_unlocked(fb, call, run, params, results)
    with fb.if_(fb.icmp("ne", status, 0)):
        fb.ret(fb.call(raise_status, call.pointer, status))
    none = call.load("none")
    _python(fb, "Py_IncRef", none)
    fb.ret(none)


def _run_unlocked(fb: FunctionBuilder, call: Record, run: Function, params: Value, results: Value) -> Value:
    """The status of a run, without the interpreter lock if the record says so."""
    releases = fb.if_else(call.is_set("releases_lock"))
    with releases.then():
        thread_state = _python(fb, "PyEval_SaveThread")
        status = fb.call(run, call.pointer, params, results)
        _python(fb, "PyEval_RestoreThread", thread_state)
        releases.yield_(status)
    with releases.otherwise():
        releases.yield_(fb.call(run, call.pointer, params, results))
    return releases.results[0]


def _write_run(module: ModuleBuilder) -> Function:
    """The entry on flat pointers, with an arena of its own: the kept one when it is free, else a fresh one."""
    fb = module.function(RUN, I32, (PTR, PTR, PTR), attributes=_CALLS_PYTHON)
    address, params, results = fb.parameters
    call = Record(fb, CallRecord, address)
    entry, context, arena_bytes = (call.load(name) for name in ("entry", "context", "arena_bytes"))
    with fb.if_(fb.icmp("eq", arena_bytes, 0)):
        fb.ret(fb.call_pointer(entry, I32, (params, results, NULL, context)))
    kept = call.atomic_rmw("xchg", "arena", NULL, "acquire")
    is_kept = fb.if_else(fb.icmp("ne", kept, NULL))
    with is_kept.then():
        is_kept.yield_(kept)
    with is_kept.otherwise():
        fresh = allocate(fb, arena_bytes)
        with fb.if_(fb.icmp("eq", fresh, NULL)):
            fb.ret(NO_MEMORY_STATUS)
        is_kept.yield_(fresh)
    (arena,) = is_kept.results
    status = fb.call_pointer(entry, I32, (params, results, arena, context))
    with fb.if_(fb.not_(call.compare_exchange("arena", NULL, arena, "release"))):
        release(fb, arena)
    fb.ret(status)
    return fb.function


def _write_release_arena(module: ModuleBuilder) -> None:
    fb = module.function(RELEASE_ARENA, VOID, (PTR,))
    call = Record(fb, CallRecord, fb.parameters[0])
    release(fb, call.atomic_rmw("xchg", "arena", NULL, "acquire"))
    fb.ret()


def _write_drop_objects(module: ModuleBuilder) -> Function:
    fb = module.function("drop_objects", VOID, (PTR, I64), linkage="internal", attributes=("noinline",))
    objects, count = fb.parameters
    with fb.loop(0, count) as index:
        _python(fb, "Py_DecRef", pointer_at(fb, objects, index))
    fb.ret()
    return fb.function


def _write_raise_status(module: ModuleBuilder) -> Function:
    """Python's `raise_status(slow path object, status)` raises."""
    fb = module.function("raise_status", PTR, (PTR, I32), linkage="internal", attributes=("noinline",))
    address, status = fb.parameters
    call = Record(fb, CallRecord, address)
    arguments = fb.alloca(array(PTR, 2))
    number = _python(fb, "PyLong_FromLong", fb.sext(status, I64))
    with fb.if_(fb.icmp("eq", number, NULL)):
        fb.ret(NULL)
    fb.store(call.load("slow_path"), arguments)
    fb.store(number, fb.gep(PTR, arguments, 1))
    result = _python(fb, "PyObject_Vectorcall", call.load("raise_status"), arguments, 2, NULL)
    _python(fb, "Py_DecRef", number)
    fb.ret(result)
    return fb.function


def _record_of(fb: FunctionBuilder, self: Value) -> Value:
    """The address of the record behind the `self` of a builtin function."""
    return _python(fb, "PyCapsule_GetPointer", _python(fb, "PyTuple_GetItem", self, 0), NULL)


def _python(fb: FunctionBuilder, name: str, *arguments: Operand) -> Value:
    return fb.call(_declared(fb.module, name), *arguments)


def _declared(module: ModuleBuilder, name: str) -> Function:
    result, parameters = PYTHON_FUNCTIONS[name]
    return module.declare(name, TYPES[result] if result else VOID, tuple(TYPES[kind] for kind in parameters))
