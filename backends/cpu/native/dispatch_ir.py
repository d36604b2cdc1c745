"""The machine code of a call, as LLVM text: from Python arguments to an entry function and back.

One module serves every executable: what differs (expected types, dims, addresses) is data that the code reaches through
the `self` of the builtin function, so nothing is compiled for a new signature. The records are declared here once, and
`dispatch.py` builds its ctypes structures from the same tables.

Of Python it uses exported functions, and of objects only the pointer to the type; of NumPy the fields of an array that
are part of its binary interface, at offsets that `numpy_interface.py` has checked.
"""

from __future__ import annotations

import string
import sys

from xlalite.backends.cpu.native.numpy_interface import ObjectLayout

Fields = tuple[tuple[str, str], ...]

INPUT_FIELDS: Fields = (
    ("descriptor", "ptr"),  # the dtype object
    ("type_number", "i32"),
    ("rank", "i32"),
    ("dims", "ptr"),
    ("size_bytes", "i64"),
    ("required_flags", "i32"),
    ("is_donated", "i32"),
)
OUTPUT_FIELDS: Fields = (
    ("descriptor", "ptr"),
    ("dims", "ptr"),
    ("rank", "i32"),
    ("alias", "i32"),  # the input whose array is the result, or -1
)
CALL_FIELDS: Fields = (
    ("entry", "ptr"),
    ("context", "ptr"),
    ("arena", "ptr"),  # a free arena, or null while a call uses it
    ("arena_bytes", "i64"),
    ("releases_lock", "i32"),
    ("returns_tuple", "i32"),
    ("has_donations", "i32"),
    ("unused", "i32"),
    ("inputs", "ptr"),
    ("outputs", "ptr"),
    ("num_inputs", "i64"),
    ("num_outputs", "i64"),
    ("slow_path", "ptr"),  # Python object, called with arguments of any kind
    ("raise_status", "ptr"),  # Python function (slow path object, status) that raises
    ("array_type", "ptr"),
    ("new_array", "ptr"),  # PyArray_NewFromDescr
    ("none", "ptr"),
)
BOUND_FIELDS: Fields = (("call", "ptr"), ("params", "ptr"), ("results", "ptr"))

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
    tables = {"Input": INPUT_FIELDS, "Output": OUTPUT_FIELDS, "Call": CALL_FIELDS, "Bound": BOUND_FIELDS}
    types = "\n".join(f"%{name} = type {{ {', '.join(kind for _, kind in rows)} }}" for name, rows in tables.items())
    names = {
        f"{table}_{field}": f"getelementptr inbounds %{table}, ptr %{_SUBJECT[table]}, i32 0, i32 {index}"
        for table, rows in tables.items()
        for index, (field, _) in enumerate(rows)
    }
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
    return types + string.Template(_TEXT).substitute(names, **offsets)


# The name that the text gives to a pointer to each record.
_SUBJECT = {"Input": "input", "Output": "output", "Call": "call", "Bound": "bound"}

_TEXT = """

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

define internal i1 @read_arguments(ptr %call, ptr %arguments, ptr %params) alwaysinline {
entry:
  %num_inputs_address = $Call_num_inputs
  %num_inputs = load i64, ptr %num_inputs_address
  %inputs_address = $Call_inputs
  %inputs = load ptr, ptr %inputs_address
  %array_type_address = $Call_array_type
  %array_type = load ptr, ptr %array_type_address
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %accept ]
  %more = icmp ult i64 %index, %num_inputs
  br i1 %more, label %check_type, label %yes
check_type:
  %input = getelementptr inbounds %Input, ptr %inputs, i64 %index
  %argument_address = getelementptr inbounds ptr, ptr %arguments, i64 %index
  %argument = load ptr, ptr %argument_address
  %type_address = getelementptr i8, ptr %argument, i64 $type_offset
  %type = load ptr, ptr %type_address
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %check_descriptor, label %no
check_descriptor:
  %descriptor_address = getelementptr i8, ptr %argument, i64 $descriptor_offset
  %descriptor = load ptr, ptr %descriptor_address
  %wanted_descriptor_address = $Input_descriptor
  %wanted_descriptor = load ptr, ptr %wanted_descriptor_address
  %same_descriptor = icmp eq ptr %descriptor, %wanted_descriptor
  br i1 %same_descriptor, label %check_rank, label %check_type_number
check_type_number:                            ; another object of the same dtype, of this machine's byte order
  %type_number_address = getelementptr i8, ptr %descriptor, i64 $type_number_offset
  %type_number = load i32, ptr %type_number_address
  %wanted_type_number_address = $Input_type_number
  %wanted_type_number = load i32, ptr %wanted_type_number_address
  %same_type_number = icmp eq i32 %type_number, %wanted_type_number
  %byte_order_address = getelementptr i8, ptr %descriptor, i64 $byte_order_offset
  %byte_order = load i8, ptr %byte_order_address
  %is_native = icmp ne i8 %byte_order, $foreign_byte_order
  %same_dtype = and i1 %same_type_number, %is_native
  br i1 %same_dtype, label %check_rank, label %no
check_rank:
  %rank_address = getelementptr i8, ptr %argument, i64 $rank_offset
  %rank = load i32, ptr %rank_address
  %wanted_rank_address = $Input_rank
  %wanted_rank = load i32, ptr %wanted_rank_address
  %same_rank = icmp eq i32 %rank, %wanted_rank
  br i1 %same_rank, label %check_flags, label %no
check_flags:
  %flags_address = getelementptr i8, ptr %argument, i64 $flags_offset
  %flags = load i32, ptr %flags_address
  %required_flags_address = $Input_required_flags
  %required_flags = load i32, ptr %required_flags_address
  %present_flags = and i32 %flags, %required_flags
  %has_flags = icmp eq i32 %present_flags, %required_flags
  br i1 %has_flags, label %check_dims, label %no
check_dims:
  %dims_address = getelementptr i8, ptr %argument, i64 $dims_offset
  %dims = load ptr, ptr %dims_address
  %wanted_dims_address = $Input_dims
  %wanted_dims = load ptr, ptr %wanted_dims_address
  %rank64 = zext i32 %rank to i64
  br label %next_dim
next_dim:
  %dim = phi i64 [ 0, %check_dims ], [ %dim_after, %check_dim ]
  %more_dims = icmp ult i64 %dim, %rank64
  br i1 %more_dims, label %check_dim, label %accept
check_dim:
  %size_address = getelementptr inbounds i64, ptr %dims, i64 %dim
  %size = load i64, ptr %size_address
  %wanted_size_address = getelementptr inbounds i64, ptr %wanted_dims, i64 %dim
  %wanted_size = load i64, ptr %wanted_size_address
  %same_size = icmp eq i64 %size, %wanted_size
  %dim_after = add i64 %dim, 1
  br i1 %same_size, label %next_dim, label %no
accept:
  %data_address = getelementptr i8, ptr %argument, i64 $data_offset
  %data = load ptr, ptr %data_address
  %param_address = getelementptr inbounds ptr, ptr %params, i64 %index
  store ptr %data, ptr %param_address
  %next_index = add i64 %index, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an input that will be overwritten shares memory with another input.
define internal i1 @donation_overlaps(ptr %call, ptr %params) noinline {
entry:
  %num_inputs_address = $Call_num_inputs
  %num_inputs = load i64, ptr %num_inputs_address
  %inputs_address = $Call_inputs
  %inputs = load ptr, ptr %inputs_address
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %continue ]
  %more = icmp ult i64 %index, %num_inputs
  br i1 %more, label %look, label %no
look:
  %input = getelementptr inbounds %Input, ptr %inputs, i64 %index
  %donated_address = $Input_is_donated
  %donated = load i32, ptr %donated_address
  %is_donated = icmp ne i32 %donated, 0
  br i1 %is_donated, label %compare, label %continue
compare:
  %size_address = $Input_size_bytes
  %size = load i64, ptr %size_address
  %begin_address = getelementptr inbounds ptr, ptr %params, i64 %index
  %begin = load ptr, ptr %begin_address
  %end = getelementptr i8, ptr %begin, i64 %size
  br label %next_other
next_other:
  %other = phi i64 [ 0, %compare ], [ %other_after, %skip ], [ %other_after_compare, %compare_other ]
  %more_others = icmp ult i64 %other, %num_inputs
  br i1 %more_others, label %is_itself, label %continue
is_itself:
  %itself = icmp eq i64 %other, %index
  br i1 %itself, label %skip, label %compare_other
skip:
  %other_after = add i64 %other, 1
  br label %next_other
compare_other:
  %other_input = getelementptr inbounds %Input, ptr %inputs, i64 %other
  %other_size_address = $Other_size_bytes
  %other_size = load i64, ptr %other_size_address
  %other_begin_address = getelementptr inbounds ptr, ptr %params, i64 %other
  %other_begin = load ptr, ptr %other_begin_address
  %other_end = getelementptr i8, ptr %other_begin, i64 %other_size
  %begins_before = icmp ult ptr %begin, %other_end
  %ends_after = icmp ult ptr %other_begin, %end
  %overlaps = and i1 %begins_before, %ends_after
  %other_after_compare = add i64 %other, 1
  br i1 %overlaps, label %yes, label %next_other
continue:
  %next_index = add i64 %index, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
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
  br i1 %is_new, label %create, label %reuse
create:
  %descriptor_address = $Output_descriptor
  %descriptor = load ptr, ptr %descriptor_address
  %rank_address = $Output_rank
  %rank = load i32, ptr %rank_address
  %dims_address = $Output_dims
  %dims = load ptr, ptr %dims_address
  call void @Py_IncRef(ptr %descriptor)     ; NumPy takes one reference over
  %created = call ptr %new_array(ptr %array_type, ptr %descriptor, i32 %rank, ptr %dims,
                                 ptr null, ptr null, i32 0, ptr null)
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
