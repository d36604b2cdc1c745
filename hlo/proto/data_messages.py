"""The messages of `xla_data.proto`: names, numbers and types of the fields.

A line reads `number name type`; `*` marks a repeated field, `[]` a repeated one that holds bulk data, `?` one whose
presence counts. What xlalite has no use for is left out and skipped by the reader.
"""

DATA_MESSAGES = """
Text:
    1 name string; 2 text string
PaddingConfig:
    1 dimensions PaddingConfigDimension*
PaddingConfigDimension:
    1 edge_padding_low int64; 2 edge_padding_high int64; 3 interior_padding int64
TileProto:
    1 dimensions int64*
SplitConfigProto:
    1 dimension int64; 2 split_indices int64*
LayoutProto:
    1 minor_to_major int64*; 6 tiles TileProto*; 7 element_size_in_bits int64; 8 memory_space int64;
    11 index_primitive_type enum:PrimitiveType; 12 pointer_primitive_type enum:PrimitiveType;
    15 dynamic_shape_metadata_prefix_bytes int64; 16 tail_padding_alignment_in_elements int64;
    17 split_configs SplitConfigProto*; 50001 xlalite_text Text*
ShapeProto:
    2 element_type enum:PrimitiveType; 3 dimensions int64*; 4 tuple_shapes ShapeProto*; 5 layout LayoutProto;
    6 is_dynamic_dimension bool*
ProgramShapeProto:
    1 parameters ShapeProto*; 2 result ShapeProto; 3 parameter_names string*
Payload:
    1 value bytes; 2 id int64
OpMetadata:
    1 op_type string; 2 op_name string; 3 source_file string; 4 source_line int32;
    5 profile_type enum:ProfileType*; 8 size_of_generated_code_in_bytes int64;
    9 size_of_memory_working_set_in_bytes int64; 12 deduplicated_name string; 15 stack_frame_id int32;
    16 scheduling_name string; 17 source_end_line int32; 18 source_column int32; 19 source_end_column int32;
    50001 xlalite_text Text*
LiteralProto:
    1 shape ShapeProto; 2 preds bool[]; 3 u8s bytes; 4 s32s int32[]; 5 s64s int64[]; 6 u32s uint32[];
    7 u64s uint64[]; 8 f32s float[]; 9 f64s double[]; 10 tuple_literals LiteralProto*; 11 f16s bytes;
    12 c64s float[]; 13 bf16s bytes; 15 s8s bytes; 16 u16s bytes; 17 s16s bytes; 18 c128s double[];
    19 f8e5m2s bytes; 20 f8e4m3fns bytes; 21 s4s bytes; 22 u4s bytes; 23 f8e4m3b11fnuzs bytes;
    24 f8e5m2fnuzs bytes; 25 f8e4m3fnuzs bytes; 26 s2s bytes; 27 u2s bytes; 28 f8e4m3s bytes; 29 f8e3m4s bytes;
    30 s1s bytes; 31 u1s bytes; 32 f4e2m1fns bytes; 33 f8e8m0fnus bytes; 34 dynamic_sizes int32*;
    35 f6e3m2fns bytes; 36 f6e2m3fns bytes
WindowDimension:
    1 size int64; 2 stride int64; 3 padding_low int64; 4 padding_high int64; 5 window_dilation int64;
    6 base_dilation int64; 7 window_reversal bool
Window:
    1 dimensions WindowDimension*
GatherDimensionNumbers:
    1 offset_dims int64*; 2 collapsed_slice_dims int64*; 3 start_index_map int64*; 4 index_vector_dim int64;
    5 operand_batching_dims int64*; 6 start_indices_batching_dims int64*
ScatterDimensionNumbers:
    1 update_window_dims int64*; 2 inserted_window_dims int64*; 3 scatter_dims_to_operand_dims int64*;
    4 index_vector_dim int64; 5 input_batching_dims int64*; 6 scatter_indices_batching_dims int64*
ConvolutionDimensionNumbers:
    3 kernel_input_feature_dimension int64; 4 kernel_output_feature_dimension int64;
    6 kernel_spatial_dimensions int64*; 7 input_batch_dimension int64; 8 input_feature_dimension int64;
    9 output_batch_dimension int64; 10 output_feature_dimension int64; 11 input_spatial_dimensions int64*;
    12 output_spatial_dimensions int64*
DotDimensionNumbers:
    1 lhs_contracting_dimensions int64*; 2 rhs_contracting_dimensions int64*; 3 lhs_batch_dimensions int64*;
    4 rhs_batch_dimensions int64*
RaggedDotDimensionNumbers:
    1 dot_dimension_numbers DotDimensionNumbers; 2 lhs_ragged_dimensions int64*; 3 rhs_group_dimensions int64*
TriangularSolveOptions:
    1 left_side bool; 2 lower bool; 3 unit_diagonal bool; 4 transpose_a enum:TriangularSolveOptions.Transpose
CholeskyOptions:
    1 lower bool
FrontendAttributes:
    1 map MapEntry*
MapEntry:
    1 key string; 2 value string
Statistic:
    1 stat_name string; 2 stat_val double
StatisticsViz:
    1 stat_index_to_visualize int64; 2 statistics Statistic*
MeshProto:
    1 axes MeshAxis*; 2 device_ids int64*; 3 iota_transform IotaTransform
MeshAxis:
    1 name string; 2 size int64
IotaTransform:
    1 reshape_dims int64*; 2 transpose_perm int64*
AxisRefProto:
    1 mesh_axis_index int64; 2 sub_axis_info SubAxis
SubAxis:
    1 pre_size int64; 2 size int64
NamedShardingProto:
    2 mesh MeshProto; 3 dim_shardings DimensionSharding*; 4 replicated_axes AxisRefProto*;
    5 unreduced_axes AxisRefProto*; 6 metadata OpMetadata*; 7 manual_axes AxisRefProto*
DimensionSharding:
    1 axes AxisRefProto*; 2 is_closed bool
OpSharding:
    1 type enum:OpSharding.Type; 3 tile_assignment_dimensions int64*; 4 tile_assignment_devices int64*;
    5 tuple_shardings OpSharding*; 6 replicate_on_last_tile_dim bool; 7 metadata OpMetadata*;
    8 last_tile_dims enum:OpSharding.Type*; 9 iota_reshape_dims int64*; 10 iota_transpose_perm int32*;
    11 is_shard_group bool; 12 shard_group_id int64; 13 shard_group_type enum:OpSharding.ShardGroupType;
    14 named_sharding NamedShardingProto; 50001 xlalite_text Text*
ReplicaGroup:
    1 replica_ids int64*
MeshAxesReplicaGroupListProto:
    1 mesh MeshProto; 2 axes AxisRefProto*
IotaReplicaGroupListProto:
    1 num_replica_groups int64; 2 num_devices_per_group int64; 3 iota_reshape_dims int64*;
    4 iota_transpose_perm int32*
CollectiveDeviceListProto:
    1 replica_groups ReplicaGroup*
SourceTarget:
    1 source int64; 2 target int64
ResultAccuracy:
    1 mode enum:ResultAccuracy.Mode; 2 tolerance Tolerance
Tolerance:
    1 atol double; 2 rtol double; 3 ulps int64
PrecisionConfig:
    1 operand_precision enum:PrecisionConfig.Precision*; 2 algorithm enum:PrecisionConfig.Algorithm
ParameterReplication:
    1 replicated_at_leaf_buffers bool*
OutputOperandAliasing:
    1 output_shape_index int64*; 2 operand_index int64; 3 operand_shape_index int64*
"""
