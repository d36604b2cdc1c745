"""The machine code of a call, as LLVM text: from Python arguments to an entry function and back.

One module serves every executable: what differs (expected types, dims, addresses) is data that the code reaches through
the `self` of the builtin function, so nothing is compiled for a new signature. The records are declared in
`call_records.py`.

Of Python it uses exported functions, and of objects only the pointer to the type; of NumPy the fields of an array that
are part of its binary interface, at offsets that `numpy_interface.py` has checked.
"""

from __future__ import annotations

import string
import sys

from xlalite.backends.cpu.native.call.argument_check_ir import ARGUMENT_CHECK
from xlalite.backends.cpu.native.call.call_records import field_addresses, record_types
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout

CALL = "xlalite_call"
CALL_BOUND = "xlalite_call_bound"
RUN = "xlalite_run"
RELEASE_ARENA = "xlalite_release_arena"
NO_MEMORY_STATUS = -1
ARENA_ALIGNMENT = 64

PYTHON_FUNCTIONS = (
    "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyCapsule_GetPointer", "PyObject_Vectorcall",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong", "Py_IncRef", "Py_DecRef",
)  # fmt: skip


def dispatch_ir(layout: ObjectLayout) -> str:
    """The module for a layout of Python's and NumPy's objects."""
    names = field_addresses()
    names["Other_size_bytes"] = names["Input_size_bytes"].replace("%input", "%other_input")
    offsets = {
        "type_offset": layout.type_offset,
        "data_offset": layout.data_offset,
        "rank_offset": layout.rank_offset,
        "dims_offset": layout.dims_offset,
        "descriptor_offset": layout.descriptor_offset,
        "flags_offset": layout.flags_offset,
        "byte_order_offset": layout.byte_order_offset,
        "type_number_offset": layout.type_number_offset,
        "foreign_byte_order": ord(">" if sys.byteorder == "little" else "<"),
        "alignment": ARENA_ALIGNMENT,
        "no_memory": NO_MEMORY_STATUS,
    }
    return record_types() + string.Template(_CALL + ARGUMENT_CHECK).substitute(names, **offsets)


_CALL = """

; METH_FASTCALL: checks the arguments, makes the results, runs the entry. Anything unusual goes to the slow path.
define ptr @xlalite_call(ptr %self, ptr %arguments, i64 %num_arguments) {
entry:
  %capsule = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %call = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %num_inputs_address = $Call_num_inputs
  %num_inputs = load i64, ptr %num_inputs_address
  %num_outputs_address = $Call_num_outputs
  %num_outputs = load i64, ptr %num_outputs_address
  %params = alloca ptr, i64 %num_inputs
  %results = alloca ptr, i64 %num_outputs
  %objects = alloca ptr, i64 %num_outputs
  %right_count = icmp eq i64 %num_arguments, %num_inputs
  br i1 %right_count, label %check, label %unusual
check:
  %fits = call i1 @read_arguments(ptr %call, ptr %arguments, ptr %params)
  br i1 %fits, label %check_donations, label %unusual
check_donations:
  %has_donations_address = $Call_has_donations
  %has_donations = load i32, ptr %has_donations_address
  %any_donation = icmp ne i32 %has_donations, 0
  br i1 %any_donation, label %check_overlap, label %make
check_overlap:
  %overlaps = call i1 @donation_overlaps(ptr %call, ptr %params)
  br i1 %overlaps, label %unusual, label %make
make:
  %made = call i1 @make_results(ptr %call, ptr %arguments, ptr %params, ptr %results, ptr %objects)
  br i1 %made, label %run, label %failed
run:
  %status = call i32 @run_unlocked(ptr %call, ptr %params, ptr %results)
  %succeeded = icmp eq i32 %status, 0
  br i1 %succeeded, label %finish, label %report
finish:
  %returns_tuple_address = $Call_returns_tuple
  %returns_tuple = load i32, ptr %returns_tuple_address
  %is_tuple = icmp ne i32 %returns_tuple, 0
  br i1 %is_tuple, label %pack, label %single
single:
  %only = load ptr, ptr %objects
  ret ptr %only
pack:
  %tuple = call ptr @pack_results(ptr %objects, i64 %num_outputs)
  ret ptr %tuple
unusual:
  %slow_path_address = $Call_slow_path
  %slow_path = load ptr, ptr %slow_path_address
  %slow_result = call ptr @PyObject_Vectorcall(ptr %slow_path, ptr %arguments, i64 %num_arguments, ptr null)
  ret ptr %slow_result
report:
  call void @drop_objects(ptr %objects, i64 %num_outputs)
  %error_result = call ptr @raise_status(ptr %call, i32 %status)
  ret ptr %error_result
failed:
  ret ptr null
}

; METH_NOARGS: runs the entry on pointers that were bound beforehand; gives None.
define ptr @xlalite_call_bound(ptr %self, ptr %unused_argument) {
entry:
  %capsule = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %bound = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %call_address = $Bound_call
  %call = load ptr, ptr %call_address
  %params_address = $Bound_params
  %params = load ptr, ptr %params_address
  %results_address = $Bound_results
  %results = load ptr, ptr %results_address
  %status = call i32 @run_unlocked(ptr %call, ptr %params, ptr %results)
  %succeeded = icmp eq i32 %status, 0
  br i1 %succeeded, label %finish, label %report
finish:
  %none_address = $Call_none
  %none = load ptr, ptr %none_address
  call void @Py_IncRef(ptr %none)
  ret ptr %none
report:
  %error_result = call ptr @raise_status(ptr %call, i32 %status)
  ret ptr %error_result
}

; The entry on flat pointers, with an arena of its own: the kept one when it is free, else a fresh one.
define i32 @xlalite_run(ptr %call, ptr %params, ptr %results) {
entry:
  %fresh = alloca ptr
  %entry_address = $Call_entry
  %function = load ptr, ptr %entry_address
  %context_address = $Call_context
  %context = load ptr, ptr %context_address
  %arena_bytes_address = $Call_arena_bytes
  %arena_bytes = load i64, ptr %arena_bytes_address
  %arena_address = $Call_arena
  %needs_arena = icmp ne i64 %arena_bytes, 0
  br i1 %needs_arena, label %claim, label %run_without
run_without:
  %status_without = call i32 %function(ptr %params, ptr %results, ptr null, ptr %context)
  ret i32 %status_without
claim:
  %kept = atomicrmw xchg ptr %arena_address, ptr null acquire
  %has_kept = icmp ne ptr %kept, null
  br i1 %has_kept, label %run, label %allocate
allocate:
  %error = call i32 @posix_memalign(ptr %fresh, i64 $alignment, i64 %arena_bytes)
  %out_of_memory = icmp ne i32 %error, 0
  br i1 %out_of_memory, label %give_up, label %take_fresh
give_up:
  ret i32 $no_memory
take_fresh:
  %new = load ptr, ptr %fresh
  br label %run
run:
  %arena = phi ptr [ %kept, %claim ], [ %new, %take_fresh ]
  %status = call i32 %function(ptr %params, ptr %results, ptr %arena, ptr %context)
  %exchange = cmpxchg ptr %arena_address, ptr null, ptr %arena release monotonic
  %was_kept = extractvalue { ptr, i1 } %exchange, 1
  br i1 %was_kept, label %done, label %free
free:
  call void @free(ptr %arena)
  br label %done
done:
  ret i32 %status
}

define void @xlalite_release_arena(ptr %call) {
  %arena_address = $Call_arena
  %kept = atomicrmw xchg ptr %arena_address, ptr null acquire
  call void @free(ptr %kept)
  ret void
}

; New arrays, or the donated arguments themselves; on failure nothing is left and Python's error is set.
define internal i1 @make_results(ptr %call, ptr %arguments, ptr %params, ptr %results, ptr %objects) alwaysinline {
entry:
  %num_outputs_address = $Call_num_outputs
  %num_outputs = load i64, ptr %num_outputs_address
  %outputs_address = $Call_outputs
  %outputs = load ptr, ptr %outputs_address
  %array_type_address = $Call_array_type
  %array_type = load ptr, ptr %array_type_address
  %new_array_address = $Call_new_array
  %new_array = load ptr, ptr %new_array_address
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %record ]
  %more = icmp ult i64 %index, %num_outputs
  br i1 %more, label %choose, label %yes
choose:
  %output = getelementptr inbounds %Output, ptr %outputs, i64 %index
  %alias_address = $Output_alias
  %alias = load i32, ptr %alias_address
  %is_new = icmp slt i32 %alias, 0
  br i1 %is_new, label %look_at_size, label %reuse
look_at_size:
  %is_large_address = $Output_is_large
  %is_large = load i64, ptr %is_large_address
  %has_own_memory = icmp ne i64 %is_large, 0
  br i1 %has_own_memory, label %exchange_handler, label %create
exchange_handler:
  %set_handler_address = $Call_set_handler
  %set_handler = load ptr, ptr %set_handler_address
  %result_handler_address = $Call_result_handler
  %result_handler = load ptr, ptr %result_handler_address
  %exchanged = call ptr %set_handler(ptr %result_handler)
  %is_exchanged = icmp ne ptr %exchanged, null
  br i1 %is_exchanged, label %create, label %no
create:
  %old_handler = phi ptr [ null, %look_at_size ], [ %exchanged, %exchange_handler ]
  %descriptor_address = $Output_descriptor
  %descriptor = load ptr, ptr %descriptor_address
  %rank_address = $Output_rank
  %rank = load i32, ptr %rank_address
  %dims_address = $Output_dims
  %dims = load ptr, ptr %dims_address
  call void @Py_IncRef(ptr %descriptor)     ; NumPy takes one reference over
  %created = call ptr %new_array(ptr %array_type, ptr %descriptor, i32 %rank, ptr %dims,
                                 ptr null, ptr null, i32 0, ptr null)
  call void @restore_handler(ptr %call, ptr %old_handler)
  %is_created = icmp ne ptr %created, null
  br i1 %is_created, label %record, label %no
reuse:
  %alias64 = zext i32 %alias to i64
  %donated_address = getelementptr inbounds ptr, ptr %arguments, i64 %alias64
  %donated = load ptr, ptr %donated_address
  call void @Py_IncRef(ptr %donated)
  br label %record
record:
  %object = phi ptr [ %created, %create ], [ %donated, %reuse ]
  %object_address = getelementptr inbounds ptr, ptr %objects, i64 %index
  store ptr %object, ptr %object_address
  %data_address = getelementptr i8, ptr %object, i64 $data_offset
  %data = load ptr, ptr %data_address
  %result_address = getelementptr inbounds ptr, ptr %results, i64 %index
  store ptr %data, ptr %result_address
  %next_index = add i64 %index, 1
  br label %next
yes:
  ret i1 true
no:
  call void @drop_objects(ptr %objects, i64 %index)
  ret i1 false
}

; Makes NumPy allocate as before the exchange; null means that there was none.
define internal void @restore_handler(ptr %call, ptr %old_handler) alwaysinline {
entry:
  %is_exchanged = icmp ne ptr %old_handler, null
  br i1 %is_exchanged, label %restore, label %done
restore:
  %set_handler_address = $Call_set_handler
  %set_handler = load ptr, ptr %set_handler_address
  %ours = call ptr %set_handler(ptr %old_handler)
  call void @Py_DecRef(ptr %ours)
  call void @Py_DecRef(ptr %old_handler)
  br label %done
done:
  ret void
}

define internal i32 @run_unlocked(ptr %call, ptr %params, ptr %results) alwaysinline {
entry:
  %releases_lock_address = $Call_releases_lock
  %releases_lock = load i32, ptr %releases_lock_address
  %releases = icmp ne i32 %releases_lock, 0
  br i1 %releases, label %unlocked, label %locked
locked:
  %status_locked = call i32 @xlalite_run(ptr %call, ptr %params, ptr %results)
  ret i32 %status_locked
unlocked:
  %thread_state = call ptr @PyEval_SaveThread()
  %status_unlocked = call i32 @xlalite_run(ptr %call, ptr %params, ptr %results)
  call void @PyEval_RestoreThread(ptr %thread_state)
  ret i32 %status_unlocked
}

define internal ptr @pack_results(ptr %objects, i64 %count) alwaysinline {
entry:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %is_made = icmp ne ptr %tuple, null
  br i1 %is_made, label %next, label %failed
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %insert ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %insert, label %done
insert:
  %object_address = getelementptr inbounds ptr, ptr %objects, i64 %index
  %object = load ptr, ptr %object_address
  %unused = call i32 @PyTuple_SetItem(ptr %tuple, i64 %index, ptr %object)
  %next_index = add i64 %index, 1
  br label %next
failed:
  call void @drop_objects(ptr %objects, i64 %count)
  br label %done
done:
  ret ptr %tuple
}

define internal void @drop_objects(ptr %objects, i64 %count) noinline {
entry:
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %drop ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %drop, label %done
drop:
  %object_address = getelementptr inbounds ptr, ptr %objects, i64 %index
  %object = load ptr, ptr %object_address
  call void @Py_DecRef(ptr %object)
  %next_index = add i64 %index, 1
  br label %next
done:
  ret void
}

; Python's `raise_status(slow path object, status)` raises.
define internal ptr @raise_status(ptr %call, i32 %status) noinline {
entry:
  %arguments = alloca [2 x ptr]
  %raise_address = $Call_raise_status
  %raise = load ptr, ptr %raise_address
  %slow_path_address = $Call_slow_path
  %slow_path = load ptr, ptr %slow_path_address
  store ptr %slow_path, ptr %arguments
  %status64 = sext i32 %status to i64
  %number = call ptr @PyLong_FromLong(i64 %status64)
  %number_address = getelementptr ptr, ptr %arguments, i64 1
  store ptr %number, ptr %number_address
  %has_number = icmp ne ptr %number, null
  br i1 %has_number, label %raise_it, label %done
raise_it:
  %result = call ptr @PyObject_Vectorcall(ptr %raise, ptr %arguments, i64 2, ptr null)
  call void @Py_DecRef(ptr %number)
  ret ptr %result
done:
  ret ptr null
}

declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLong(i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
"""
