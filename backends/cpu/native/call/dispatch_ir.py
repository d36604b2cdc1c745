"""The machine code of a call: from Python arguments to an entry function and back.

One module serves every executable: what differs (expected types, dims, addresses) is data that the code reaches through
the `self` of the builtin function, so nothing is compiled for a new signature. The records are declared in
`call_records.py`. What few programs need is code of its own: `address_calls_ir.py`, `many_donations_ir.py`.

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
    Value,
    constant,
)
from xlalite.backends.cpu.native.call.argument_check_ir import check_arguments, write_donation_overlaps
from xlalite.backends.cpu.native.call.call_records import (
    CALL,
    NO_MEMORY_STATUS,
    RELEASE_ARENA,
    RUN,
    CallRecord,
    OutputRecord,
)
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout
from xlalite.backends.cpu.native.call.python_ir import (
    CALLS_PYTHON,
    call_python,
    record_of,
    run_unlocked,
    write_raise_status,
)
from xlalite.backends.cpu.native.heap import allocate, release
from xlalite.backends.cpu.native.record import NULL, Record, pointer_at


def dispatch_ir(layout: ObjectLayout) -> str:
    """The module for a layout of Python's and NumPy's objects."""
    module = ModuleBuilder("dispatch")
    run = _write_run(module)
    _write_release_arena(module)
    raise_status = write_raise_status(module)
    _write_call(module, layout, run, raise_status)
    return module.text()


def _write_call(module: ModuleBuilder, layout: ObjectLayout, run: Function, raise_status: Function) -> None:
    """METH_FASTCALL: checks the arguments, makes the results, runs the entry; anything unusual takes the slow path."""
    donation_overlaps, drop_objects = write_donation_overlaps(module), _write_drop_objects(module)
    fb = module.function(CALL, PTR, (PTR, PTR, I64), attributes=CALLS_PYTHON)
    self, arguments, num_arguments = fb.parameters
    call = Record(fb, CallRecord, record_of(fb, self))
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
    status = run_unlocked(fb, call, run, params, results)
    with fb.if_(fb.icmp("ne", status, 0)):
        fb.call(drop_objects, objects, num_outputs)
        fb.ret(fb.call(raise_status, call.pointer, status))
    with fb.if_(fb.icmp("eq", call.load("returns_tuple"), 0)):
        fb.ret(fb.load(PTR, objects))
    tuple_ = call_python(fb, "PyTuple_New", num_outputs)
    with fb.if_(fb.icmp("eq", tuple_, NULL)):
        fb.call(drop_objects, objects, num_outputs)
        fb.ret(NULL)
    with fb.loop(0, num_outputs) as position:
        call_python(fb, "PyTuple_SetItem", tuple_, position, pointer_at(fb, objects, position))
    fb.ret(tuple_)
    fb.position_at(failed)
    fb.call(drop_objects, objects, index)
    fb.ret(NULL)
    fb.position_at(unusual)
    fb.ret(call_python(fb, "PyObject_Vectorcall", call.load("slow_path"), arguments, num_arguments, NULL))


def _make_result(fb: FunctionBuilder, call: Record, index: Value, arguments: Value, failed: Block) -> Value:
    """A new array, or the donated argument itself; goes to `failed` with Python's error set."""
    output = Record.item(fb, OutputRecord, call.load("outputs"), index)
    alias = output.load("alias")
    is_new = fb.if_else(fb.icmp("slt", alias, 0))
    with is_new.then():
        is_new.yield_(_new_array(fb, call, output, failed))
    with is_new.otherwise():
        donated = pointer_at(fb, arguments, fb.zext(alias, I64))
        call_python(fb, "Py_IncRef", donated)
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
    call_python(fb, "Py_IncRef", descriptor)  # NumPy takes one reference over
    type_and_shape = (call.load("array_type"), descriptor, output.load("rank"), output.load("dims"))
    created = fb.call_pointer(call.load("new_array"), PTR, (*type_and_shape, NULL, NULL, constant(I32, 0), NULL))
    with fb.if_(fb.icmp("ne", old_handler, NULL)):
        ours = fb.call_pointer(call.load("set_handler"), PTR, (old_handler,))
        call_python(fb, "Py_DecRef", ours)
        call_python(fb, "Py_DecRef", old_handler)
    fb.guard(fb.icmp("ne", created, NULL), failed)
    return created


def _write_run(module: ModuleBuilder) -> Function:
    """The entry on flat pointers, with an arena of its own: the kept one when it is free, else a fresh one."""
    fb = module.function(RUN, I32, (PTR, PTR, PTR), attributes=CALLS_PYTHON)
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
        call_python(fb, "Py_DecRef", pointer_at(fb, objects, index))
    fb.ret()
    return fb.function
