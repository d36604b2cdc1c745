"""XLA's JIT in Python and llvmlite: graph, clustering, HLO, passes and native CPU kernels.

This file only re-exports, lazily: a name is imported from its module when it is first asked for, so that
`import xlalite` loads neither llvmlite nor NumPy. A public name stands in the tables below (those of `xlalite.nn` and
its like in `namespace.py`). Type checkers read `__init__.pyi` and `stubs/`, which are written from the tables:
`python -m pytest tests/test_public_names.py --bless`.
"""

import importlib
import os

from xlalite.namespace_modules import exports_of, imported, missing_name, namespace, namespaces_of

__version__ = "0.1.0.dev0"

if os.environ.get("XLALITE_LOG"):
    from xlalite.log_setting import show_log

    show_log(os.environ["XLALITE_LOG"])

# Modules that are reached as attributes, beside the namespaces of `namespace.py`.
_MODULES: dict[str, str] = {
    "app": "xlalite.app",
    "compat": "xlalite.compat",
    "contrib": "xlalite.contrib",
    "flags": "xlalite.flags",
    "hlo": "xlalite.hlo",
    "numpy": "xlalite.numpy",
    "onnx": "xlalite.interop.onnx",
    "raw_ops": "xlalite.ops.functions.raw_ops",
}

# What each module defines for everybody, spelled as in an import: `name`, or `name as public_name`.
_NAMES: dict[str, str] = {
    "xlalite.backends.codegen.kernels.added_kernels": "register_kernel",
    "xlalite.backends.base": "CompileOptions, Executable",
    "xlalite.client.compilation": "compile, load_executable",
    "xlalite.client.config": "ConfigProto, GPUOptions, GraphOptions, OptimizerOptions, RunMetadata, RunOptions",
    "xlalite.client.profile": "profile",
    "xlalite.tracing.callbacks": "pure_callback",
    "xlalite.tracing.control_flow": "cond, fori_loop, map, scan, switch, while_loop",
    "xlalite.tracing.custom_derivatives": "checkpoint, custom_gradient",
    "xlalite.tracing.differentiation": "grad, hessian, jacobian, jvp, value_and_grad, vjp",
    "xlalite.tracing.jit": "JitFunction, jit",
    "xlalite.tracing.random_generator": "default_rng",
    "xlalite.tracing.vectorization": "vmap",
    "xlalite.client.session": "InteractiveSession, Session",
    "xlalite.framework.graph.default_graph": "get_default_graph, reset_default_graph",
    "xlalite.framework.graph.default_session": "get_default_session",
    "xlalite.framework.graph.dtypes": (
        "DType, as_dtype, bfloat16, bool_, bool_ as bool, complex64, complex128, double, float16, float32, float64, "
        "half, int8, int16, int32, int64, qint8, qint16, qint32, quint8, quint16, resource, string, uint8, uint16, "
        "uint32, uint64"
    ),
    "xlalite.framework.graph.graph": "Graph",
    "xlalite.framework.graph.graph_keys": "GraphKeys",
    "xlalite.framework.graph.indexed_slices": "IndexedSlices, IndexedSlicesValue",
    "xlalite.framework.graph.jit_scope": "jit_scope",
    "xlalite.framework.graph.operation": "Operation",
    "xlalite.framework.graph.sparse_tensor": "SparseTensorValue",
    "xlalite.framework.random_seed": "get_seed, set_random_seed",
    "xlalite.framework.graph.tensor": "Tensor",
    "xlalite.framework.graph.tensor_shape": "Dimension, TensorShape",
    "xlalite.hlo.errors": "XlaliteError",
    "xlalite.hlo.surroundings.custom_calls": "register_custom_call",
    "xlalite.notebook": "load_ipython_extension",
    "xlalite.passes.core.extensions": "register_pass",
    "xlalite.passes.simplify.added_rules": "register_rule",
    "xlalite.ops.functions.array": (
        "broadcast_static_shape, broadcast_to, concat, ensure_shape, expand_dims, fill, gather, identity, identity_n, "
        "invert_permutation, meshgrid, one_hot, ones, ones_like, pad, placeholder, placeholder_with_default, "
        "prevent_gradient, rank, reshape, reverse, reverse_sequence, reverse_v2, roll, shape, shape_n, size, slice, "
        "split, squeeze, stack, stop_gradient, strided_slice, tile, transpose, unstack, where, where_v2, zeros, "
        "zeros_like"
    ),
    "xlalite.ops.functions.clipping": "clip_by_average_norm, clip_by_global_norm, clip_by_norm, global_norm",
    "xlalite.ops.functions.defined_functions": "Defun, function",
    "xlalite.ops.functions.diagonals": (
        "diag, diag_part, matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag, diag as tensor_diag, "
        "diag_part as tensor_diag_part, trace"
    ),
    "xlalite.ops.functions.distributions": (
        "multinomial, parameterized_truncated_normal, random_crop, random_gamma, random_poisson"
    ),
    "xlalite.ops.functions.functional": "foldl, foldr, map_fn",
    "xlalite.ops.functions.graph_import": "import_graph_def",
    "xlalite.ops.functions.linalg": (
        "cholesky, cholesky_solve, eye, det as matrix_determinant, inv as matrix_inverse, solve as matrix_solve, "
        "lstsq as matrix_solve_ls, matrix_transpose, triangular_solve as matrix_triangular_solve, qr, "
        "eigh as self_adjoint_eig, eigvalsh as self_adjoint_eigvals, svd"
    ),
    "xlalite.ops.functions.ordering": "argsort, searchsorted, sort",
    "xlalite.ops.functions.products": "accumulate_n, count_nonzero, cross, einsum, norm, tensordot",
    "xlalite.ops.functions.scatter_updates": (
        "scatter_add, scatter_div, scatter_max, scatter_min, scatter_mul, scatter_nd_add, scatter_nd_sub, "
        "scatter_nd_update, scatter_sub, scatter_update"
    ),
    "xlalite.ops.functions.segments": (
        "bincount, confusion_matrix, histogram_fixed_width, histogram_fixed_width_bins, "
        "segment_max, segment_mean, segment_min, segment_prod, segment_sum, "
        "sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum, unsorted_segment_max, unsorted_segment_mean, "
        "unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sqrt_n"
    ),
    "xlalite.ops.functions.selection": (
        "batch_gather, boolean_mask, dynamic_partition, dynamic_stitch, gather_nd, listdiff, parallel_stack, "
        "scatter_nd, sequence_mask, setdiff1d, sparse_mask, tensor_scatter_nd_add as tensor_scatter_add, "
        "tensor_scatter_nd_add, tensor_scatter_nd_max, tensor_scatter_nd_min, tensor_scatter_nd_sub, "
        "tensor_scatter_nd_update, tensor_scatter_nd_sub as tensor_scatter_sub, "
        "tensor_scatter_nd_update as tensor_scatter_update, unique, unique_with_counts, unravel_index"
    ),
    "xlalite.ops.functions.signal": "fft, fft2d, fft3d, ifft, ifft2d, ifft3d",
    "xlalite.ops.functions.sparse": (
        "sparse_concat, sparse_merge, sparse_placeholder, sparse_reduce_sum, sparse_reorder, sparse_reshape, "
        "sparse_retain, sparse_tensor_dense_matmul, sparse_tensor_to_dense, sparse_to_dense, SparseTensor"
    ),
    "xlalite.ops.functions.sparse_arithmetic": "sparse_add, sparse_softmax, sparse_transpose",
    "xlalite.ops.functions.behaviours": (
        "disable_eager_execution, disable_v2_behavior, disable_v2_tensorshape, enable_control_flow_v2, "
        "enable_resource_variables, executing_eagerly"
    ),
    "xlalite.ops.functions.special": (
        "acosh, angle, approximate_equal, asinh, atanh, betainc, check_numerics, complex, digamma, erfc, igamma, "
        "igammac, lbeta, lgamma, polygamma, saturate_cast, zeta"
    ),
    "xlalite.ops.functions.tensor_array": "TensorArray",
    "xlalite.ops.helpers.constant": "constant, convert_to_tensor",
    "xlalite.ops.functions.control_flow": (
        "add_to_collection, Assert, case, colocate_with, container, control_dependencies, device, get_collection, "
        "group, name_scope, no_op, switch_case, tuple, with_dependencies"
    ),
    "xlalite.ops.helpers.gradients": "AggregationMethod, UnconnectedGradients, gradients",
    "xlalite.messages.classes": "Event, GraphDef, HistogramProto, MetaGraphDef, NodeDef, Summary",
    "xlalite.ops.functions.text": "edit_distance",
    "xlalite.ops.data.features": "FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature",
    "xlalite.ops.data.parsing": (
        "decode_csv, decode_raw, parse_example, parse_single_example, parse_single_sequence_example"
    ),
    "xlalite.ops.functions.custom_gradients": "hessians",
    "xlalite.ops.helpers.gradient_registry": (
        "RegisterGradient, no_gradient as NoGradient, no_gradient as NotDifferentiable"
    ),
    "xlalite.ops.training.template": "make_template",
    "xlalite.ops.functions.host_functions": (
        "Print, assert_equal, assert_greater, assert_greater_equal, assert_integer, assert_less, assert_less_equal, "
        "assert_near, assert_negative, assert_non_negative, assert_non_positive, assert_none_equal, assert_positive, "
        "assert_rank, assert_rank_at_least, assert_rank_in, assert_scalar, assert_type, is_numeric_tensor, "
        "numpy_function, print_ as print, py_func"
    ),
    "xlalite.ops.functions.lookup": (
        "string_to_hash_bucket, string_to_hash_bucket_fast, tables_initializer, "
        "tables_initializer as initialize_all_tables"
    ),
    "xlalite.ops.functions.queues": "FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue",
    "xlalite.ops.functions.readers": (
        "FixedLengthRecordReader, IdentityReader, ReaderBase, TFRecordReader, TextLineReader, WholeFileReader"
    ),
    "xlalite.ops.functions.strings": (
        "as_string, decode_base64, encode_base64, matching_files, read_file, reduce_join, regex_replace, string_join, "
        "string_split, string_strip, string_to_number, substr, write_file"
    ),
    "xlalite.ops.training.initializers": (
        "constant_initializer, glorot_normal_initializer, glorot_uniform_initializer, identity_initializer, "
        "ones_initializer, orthogonal_initializer, uniform_unit_scaling_initializer, "
        "random_normal_initializer, random_uniform_initializer, truncated_normal_initializer, "
        "variance_scaling_initializer, zeros_initializer"
    ),
    "xlalite.ops.functions.indexing": "newaxis",
    "xlalite.ops.functions.math": (
        "abs, acos, add, add_n, argmax, argmax as arg_max, argmin, argmin as arg_min, asin, atan, atan2, bitcast, "
        "broadcast_dynamic_shape, cast, ceil, "
        "clip_by_value, conj, cos, cosh, cumprod, cumsum, div, div_no_nan, divide, equal, erf, exp, expm1, floor, "
        "floor_div, floordiv, floormod, greater, greater_equal, imag, is_finite, is_inf, is_nan, less, "
        "less_equal, lin_space, linspace, log, log1p, logical_and, logical_not, logical_or, logical_xor, matmul, "
        "maximum, minimum, mod, mul, multiply, negative, not_equal, pow, range, real, realdiv, reciprocal, reduce_all, "
        "reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, rint, round, "
        "rsqrt, scalar_mul, sigmoid, sign, sin, sinh, sparse_matmul, sqrt, square, squared_difference, sub, "
        "subtract, tan, tanh, to_float, to_int32, to_int64, truediv, truncatediv, truncatemod, "
        "unsorted_segment_sum, xlogy"
    ),
    "xlalite.ops.functions.nn": "log_sigmoid",
    "xlalite.ops.functions.quantization": (
        "dequantize, fake_quant_with_min_max_args, fake_quant_with_min_max_args_gradient, "
        "fake_quant_with_min_max_vars, fake_quant_with_min_max_vars_gradient, "
        "fake_quant_with_min_max_vars_per_channel, fake_quant_with_min_max_vars_per_channel_gradient, quantize"
    ),
    "xlalite.ops.functions.random_ops": "random_normal, random_shuffle, random_uniform, truncated_normal",
    "xlalite.ops.functions.space_blocks": (
        "batch_to_space, batch_to_space_nd, depth_to_space, extract_image_patches, space_to_batch, space_to_batch_nd, "
        "space_to_depth"
    ),
    "xlalite.ops.training.variable": (
        "Variable, assign, assign_add, assign_sub, global_variables, global_variables as all_variables, "
        "global_variables_initializer, "
        "initialize_all_variables, is_variable_initialized, local_variables, local_variables_initializer, "
        "model_variables, report_uninitialized_variables, trainable_variables, variables_initializer"
    ),
    "xlalite.ops.training.partitioners": (
        "fixed_size_partitioner, min_max_variable_partitioner, variable_axis_size_partitioner"
    ),
    "xlalite.ops.training.variable_scope": (
        "AUTO_REUSE, VariableScope, get_variable, get_variable_scope, variable_scope"
    ),
}

# Public name to module and the name there. (`tuple` is one of the public names, so no annotation can use it here.)
_EXPORTS = exports_of(_NAMES)


def __getattr__(name: str) -> object:
    if name in namespaces_of(""):
        value = namespace(name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _EXPORTS:
        value = imported(*_EXPORTS[name])
    else:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_MODULES, *namespaces_of(""), *_EXPORTS, "__version__"})
