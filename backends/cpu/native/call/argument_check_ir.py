"""The part of a native call that looks at its arguments, as a template of LLVM text; see `dispatch_ir.py`.

An argument passes when it is exactly an ndarray, of the wanted dtype in this machine's byte order, of the wanted dims,
row-major and aligned. Nothing is converted here: whatever does not pass goes to Python.
"""

ARGUMENT_CHECK = """
; Whether all arguments are as wanted; writes the addresses of their data.
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
"""
