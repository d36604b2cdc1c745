"""Which attributes an operation keeps as numbers without names, in their order.

They lie in the alphabetical order of their names. In a portable artifact (dialect vhlo) all are there, one that says
nothing included; elsewhere those that may be absent are marked with `?`.

Sources: the definitions of StableHLO 1.17's operations, of their versions in the dialect vhlo, and of Shardy's.
"""

from __future__ import annotations

_ELEMENTWISE = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
_BROADCASTING = "add and atan2 complex divide maximum minimum multiply next_after or polygamma power remainder"
_SHIFTS = "shift_left shift_right_arithmetic shift_right_logical subtract xor zeta"
_CONVOLUTION = (
    "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions "
    "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation "
    "output_batch_dimension output_feature_dimension output_spatial_dimensions"
)

# Names of operations, and what they have.
_VHLO = {
    "all_gather_v1 all_gather_v2": "all_gather_dim channel_id replica_groups use_global_device_ids",
    "all_reduce_v1 all_reduce_v2": "channel_id replica_groups use_global_device_ids",
    "all_to_all_v1 all_to_all_v2": "channel_id concat_dimension replica_groups split_count split_dimension",
    "batch_norm_grad_v1 batch_norm_inference_v1 batch_norm_training_v1": "epsilon feature_index",
    "broadcast_in_dim_v1": "broadcast_dimensions",
    "broadcast_v1": "broadcast_sizes",
    "call_v1": "callee",
    " ".join(f"{name}_v2" for name in _ELEMENTWISE.split()): "result_accuracy",
    "cholesky_v1": "lower",
    "collective_broadcast_v1": "channel_id replica_groups",
    "collective_broadcast_v2": "channel_id has_dynamic_root replica_groups",
    "collective_permute_v1": "channel_id source_target_pairs",
    "compare_v1": "compare_type comparison_direction",
    "composite_v1 composite_v2": "composite_attributes decomposition name version",
    "concatenate_v1 get_dimension_size_v1 set_dimension_size_v1": "dimension",
    "constant_v1": "value",
    "convolution_v1": f"{_CONVOLUTION} padding precision_config rhs_dilation window_reversal window_strides",
    "custom_call_v1": "api_version backend_config call_target_name called_computations has_side_effect "
    "operand_layouts output_operand_aliases result_layouts",
    "custom_call_v2": "api_version backend_config call_target_name called_computations has_side_effect "
    "operand_layouts output_operand_aliases result_layouts result_tilings",
    "dot_general_v1": "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions "
    "rhs_contracting_dimensions",
    "dot_general_v2": "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count "
    "lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config rhs_batching_dimensions "
    "rhs_component_count rhs_contracting_dimensions rhs_precision_type",
    "dot_v1": "precision_config",
    "dynamic_broadcast_in_dim_v1": "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions",
    "dynamic_slice_v1": "slice_sizes",
    "fft_v1": "fft_length fft_type",
    "func_v1": "arg_attrs function_type res_attrs sym_name sym_visibility",
    "gather_v1": "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes start_index_map",
    "gather_v2": "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims "
    "slice_sizes start_index_map start_indices_batching_dims",
    "get_tuple_element_v1": "index",
    "infeed_v1": "infeed_config layout",
    "iota_v1 dynamic_iota_v1": "iota_dimension",
    "map_v1 reduce_v1 reverse_v1": "dimensions",
    "outfeed_v1": "outfeed_config",
    "pad_v1": "edge_padding_high edge_padding_low interior_padding",
    "recv_v1 send_v1": "channel_id channel_type is_host_transfer",
    "recv_v2 send_v2": "channel_id channel_type is_host_transfer source_target_pairs",
    "reduce_precision_v1": "exponent_bits mantissa_bits",
    "reduce_scatter_v1": "channel_id replica_groups scatter_dimension use_global_device_ids",
    "reduce_window_v1": "base_dilations padding window_dilations window_dimensions window_strides",
    "rng_bit_generator_v1": "rng_algorithm",
    "rng_v1": "rng_distribution",
    "scatter_v1": "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims "
    "unique_indices update_window_dims",
    "scatter_v2": "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims "
    "scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims",
    "select_and_scatter_v1": "padding window_dimensions window_strides",
    "slice_v1": "limit_indices start_indices strides",
    "sort_v1": "dimension is_stable",
    "torch_index_select_v1": "batch_dims dim",
    "transpose_v1": "permutation",
    "triangular_solve_v1": "left_side lower transpose_a unit_diagonal",
}
_STABLEHLO = {
    "all_gather": "all_gather_dim ?channel_handle replica_groups ?use_global_device_ids",
    "all_reduce": "?channel_handle replica_groups ?use_global_device_ids",
    "all_to_all": "?channel_handle concat_dimension replica_groups split_count split_dimension",
    "batch_norm_grad batch_norm_inference batch_norm_training": "epsilon feature_index",
    "broadcast_in_dim": "broadcast_dimensions",
    "broadcast": "broadcast_sizes",
    _ELEMENTWISE: "?result_accuracy",
    "cholesky": "?lower",
    "collective_broadcast": "?channel_handle replica_groups",
    "collective_permute": "?channel_handle source_target_pairs",
    "compare": "?compare_type comparison_direction",
    "composite": "?composite_attributes decomposition name ?version",
    "concatenate get_dimension_size set_dimension_size": "dimension",
    "constant": "value",
    "convolution": "batch_group_count dimension_numbers feature_group_count ?lhs_dilation ?padding ?precision_config "
    "?rhs_dilation ?window_reversal ?window_strides",
    "custom_call": "?api_version ?backend_config call_target_name ?called_computations ?has_side_effect "
    "?operand_layouts ?output_operand_aliases ?result_layouts",
    "dot_general": "?algorithm dot_dimension_numbers ?precision_config",
    "dot": "?precision_config",
    "dynamic_broadcast_in_dim": "broadcast_dimensions ?known_expanding_dimensions ?known_nonexpanding_dimensions",
    "dynamic_slice": "slice_sizes",
    "fft": "fft_length fft_type",
    "gather": "dimension_numbers ?indices_are_sorted slice_sizes",
    "get_tuple_element": "index",
    "infeed": "?infeed_config ?layout",
    "iota dynamic_iota": "iota_dimension",
    "map reduce reverse": "dimensions",
    "outfeed": "?outfeed_config",
    "pad": "edge_padding_high edge_padding_low interior_padding",
    "recv send": "channel_handle ?is_host_transfer ?source_target_pairs",
    "reduce_precision": "exponent_bits mantissa_bits",
    "reduce_scatter": "?channel_handle replica_groups scatter_dimension ?use_global_device_ids",
    "reduce_window": "?base_dilations ?padding ?window_dilations window_dimensions ?window_strides",
    "rng_bit_generator": "rng_algorithm",
    "rng": "rng_distribution",
    "scatter": "?indices_are_sorted scatter_dimension_numbers ?unique_indices",
    "select_and_scatter": "?padding ?window_dimensions ?window_strides",
    "slice": "limit_indices start_indices strides",
    "sort": "?dimension ?is_stable",
    "torch_index_select": "batch_dims dim",
    "transpose": "permutation",
    "triangular_solve": "left_side lower transpose_a unit_diagonal",
}
_CHLO = {
    " ".join(f"broadcast_{name}" for name in f"{_BROADCASTING} {_SHIFTS}".split()): "?broadcast_dimensions",
    "broadcast_compare": "?broadcast_dimensions ?compare_type comparison_direction",
    "constant constant_like": "value",
    "ragged_dot": "?precision_config ragged_dot_dimension_numbers",
    "top_k": "k",
}
_OTHERS = {
    "func.call": "?arg_attrs callee ?no_inline ?res_attrs",
    "func.func": "?arg_attrs function_type ?no_inline ?res_attrs sym_name ?sym_visibility",
    "builtin.module": "?sym_name ?sym_visibility",
    "sdy.manual_computation": "in_shardings manual_axes out_shardings",
    "sdy.mesh": "mesh sym_name",
    "sdy.sharding_constraint": "sharding",
}

ATTRIBUTE_NAMES: dict[str, tuple[str, ...]] = {
    f"{dialect}{name}": tuple(attributes.split())
    for dialect, table in (("vhlo.", _VHLO), ("stablehlo.", _STABLEHLO), ("chlo.", _CHLO), ("", _OTHERS))
    for names, attributes in table.items()
    for name in names.split()
}
"""By the full name of an operation; one that is not named has none."""
