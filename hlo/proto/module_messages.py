"""The messages of `hlo.proto`: names, numbers and types of the fields.

A line reads `number name type`; `*` marks a repeated field, `[]` a repeated one that holds bulk data, `?` one whose
presence counts. What xlalite has no use for is left out and skipped by the reader.
"""

MODULE_MESSAGES = """
HloInstructionProto:
    1 name string; 2 opcode string; 3 shape ShapeProto; 7 metadata OpMetadata; 8 literal LiteralProto;
    9 parameter_number int64; 11 fusion_kind string; 13 tuple_index int64; 14 dimensions int64*;
    15 window Window; 16 convolution_dimension_numbers ConvolutionDimensionNumbers;
    17 slice_dimensions SliceDimensions*; 18 exponent_bits int32; 19 mantissa_bits int32;
    20 dynamic_slice_sizes int64*; 21 padding_config PaddingConfig; 22 outfeed_config bytes;
    23 distribution enum:RandomDistribution; 24 epsilon float; 25 feature_index int64; 26 channel_id int64;
    27 infeed_config bytes; 28 custom_call_target string; 29 outfeed_shape ShapeProto;
    30 dot_dimension_numbers DotDimensionNumbers; 31 fft_type enum:FftType; 32 fft_length int64*;
    33 gather_dimension_numbers GatherDimensionNumbers; 34 gather_slice_sizes int64*; 35 id int64;
    36 operand_ids int64*; 37 control_predecessor_ids int64*; 38 called_computation_ids int64*;
    40 sharding OpSharding; 43 backend_config bytes; 47 is_host_transfer bool;
    48 scatter_dimension_numbers ScatterDimensionNumbers; 49 replica_groups ReplicaGroup*;
    50 feature_group_count int64; 51 precision_config PrecisionConfig; 52 source_target_pairs SourceTarget*;
    54 domain_entry_sharding OpSharding; 55 domain_exit_sharding OpSharding; 56 constrain_layout bool;
    57 operand_shapes_with_layout ShapeProto*; 58 batch_group_count int64;
    59 triangular_solve_options TriangularSolveOptions; 60 is_stable bool;
    61 parameter_replication ParameterReplication; 62 cholesky_options CholeskyOptions;
    63 comparison_direction string; 65 custom_call_has_side_effect bool; 66 delta int64;
    67 indices_are_sorted bool; 68 frontend_attributes FrontendAttributes; 69 unique_indices bool;
    70 rng_algorithm enum:RandomAlgorithm; 71 use_global_device_ids bool; 72 comparison_type string;
    74 output_operand_aliasing OutputOperandAliasing*; 75 padding_type enum:PaddingType;
    76 custom_call_schedule enum:CustomCallSchedule; 77 custom_call_api_version enum:CustomCallApiVersion;
    79 async_execution_thread string; 80 cross_program_prefetch_index int32?; 81 k int64;
    82 statistics_viz StatisticsViz; 85 largest bool; 87 collective_device_list CollectiveDeviceListProto;
    89 is_composite bool; 90 ragged_dot_dimension_numbers RaggedDotDimensionNumbers;
    91 result_accuracy ResultAccuracy; 92 iota_collective_device_list IotaReplicaGroupListProto;
    93 mesh_axes_replica_group_list MeshAxesReplicaGroupListProto; 94 is_reverse bool; 95 num_carries int64;
    96 is_associative enum:TriState; 99 backend_config_payload Payload; 50001 xlalite_text Text*
SliceDimensions:
    1 start int64; 2 limit int64; 3 stride int64
HloComputationProto:
    1 name string; 2 instructions HloInstructionProto*; 4 program_shape ProgramShapeProto; 5 id int64;
    6 root_id int64; 7 is_fusion_computation bool; 8 execution_thread string
HloScheduleProto:
    1 sequences SequencesEntry*
InstructionSequence:
    1 instruction_ids int64*
SequencesEntry:
    1 key int64; 2 value InstructionSequence
HloInputOutputAliasProto:
    1 entries AliasEntryProto*
AliasEntryProto:
    1 output_shape_index int64*; 2 parameter_number int64; 3 parameter_shape_index int64*; 4 kind enum:Kind
HloBufferDonorProto:
    1 entries BufferDonorEntryProto*
BufferDonorEntryProto:
    1 parameter_number int64; 2 parameter_shape_index int64*
StackFrameIndexProto:
    1 file_names string*; 2 function_names string*; 3 file_locations FileLocation*; 4 stack_frames StackFrame*
FileLocation:
    1 file_name_id int32; 2 function_name_id int32; 3 line int32; 4 column int32; 5 end_line int32;
    6 end_column int32
StackFrame:
    1 file_location_id int32; 2 parent_frame_id int32
DeviceAssignmentProto:
    1 replica_count int32; 2 computation_count int32
HloModuleProto:
    1 name string; 2 entry_computation_name string; 3 computations HloComputationProto*;
    4 host_program_shape ProgramShapeProto; 5 id int64; 6 entry_computation_id int64;
    7 schedule HloScheduleProto; 8 input_output_alias HloInputOutputAliasProto;
    12 spmd_output_sharding OpSharding; 14 spmd_parameters_shardings OpSharding*;
    15 device_assignment DeviceAssignmentProto; 17 stack_frame_index StackFrameIndexProto;
    18 buffer_donor HloBufferDonorProto; 19 frontend_attributes FrontendAttributes; 22 payloads bytes*;
    50001 xlalite_text Text*
HloProto:
    1 hlo_module HloModuleProto
HloSnapshot:
    1 hlo HloProto; 2 arguments LiteralProto*; 3 result LiteralProto; 4 execution_platform string
SnapshotHead:
    1 hlo bytes
"""
