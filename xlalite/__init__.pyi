# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite import app as app, compat as compat, contrib as contrib, flags as flags, hlo as hlo, numpy as numpy
from xlalite.backends.base import CompileOptions as CompileOptions, Executable as Executable
from xlalite.backends.codegen.kernels.added_kernels import register_kernel as register_kernel
from xlalite.client.compilation import compile as compile, load_executable as load_executable
from xlalite.client.config import (
    ConfigProto as ConfigProto, GPUOptions as GPUOptions, GraphOptions as GraphOptions,
    OptimizerOptions as OptimizerOptions, RunMetadata as RunMetadata, RunOptions as RunOptions
)
from xlalite.client.profile import profile as profile
from xlalite.client.session import InteractiveSession as InteractiveSession, Session as Session
from xlalite.framework.graph.default_graph import (
    get_default_graph as get_default_graph, reset_default_graph as reset_default_graph
)
from xlalite.framework.graph.default_session import get_default_session as get_default_session
from xlalite.framework.graph.dtypes import (
    DType as DType, as_dtype as as_dtype, bfloat16 as bfloat16, bool_ as bool_, complex128 as complex128,
    complex64 as complex64, double as double, float16 as float16, float32 as float32, float64 as float64, half as half,
    int16 as int16, int32 as int32, int64 as int64, int8 as int8, qint16 as qint16, qint32 as qint32, qint8 as qint8,
    quint16 as quint16, quint8 as quint8, resource as resource, string as string, uint16 as uint16, uint32 as uint32,
    uint64 as uint64, uint8 as uint8
)
from xlalite.framework.graph.graph import Graph as Graph
from xlalite.framework.graph.graph_keys import GraphKeys as GraphKeys
from xlalite.framework.graph.indexed_slices import (
    IndexedSlices as IndexedSlices, IndexedSlicesValue as IndexedSlicesValue
)
from xlalite.framework.graph.jit_scope import jit_scope as jit_scope
from xlalite.framework.graph.operation import Operation as Operation
from xlalite.framework.graph.sparse_tensor import SparseTensorValue as SparseTensorValue
from xlalite.framework.graph.tensor import Tensor as Tensor
from xlalite.framework.graph.tensor_shape import Dimension as Dimension, TensorShape as TensorShape
from xlalite.framework.random_seed import get_seed as get_seed, set_random_seed as set_random_seed
from xlalite.hlo.errors import XlaliteError as XlaliteError
from xlalite.hlo.surroundings.custom_calls import register_custom_call as register_custom_call
from xlalite.interop import onnx as onnx
from xlalite.messages.classes import (
    Event as Event, GraphDef as GraphDef, HistogramProto as HistogramProto, MetaGraphDef as MetaGraphDef,
    NodeDef as NodeDef, Summary as Summary
)
from xlalite.notebook import load_ipython_extension as load_ipython_extension
from xlalite.ops.data.features import (
    FixedLenFeature as FixedLenFeature, FixedLenSequenceFeature as FixedLenSequenceFeature,
    SparseFeature as SparseFeature, VarLenFeature as VarLenFeature
)
from xlalite.ops.data.parsing import (
    decode_csv as decode_csv, decode_raw as decode_raw, parse_example as parse_example,
    parse_single_example as parse_single_example, parse_single_sequence_example as parse_single_sequence_example
)
from xlalite.ops.functions import raw_ops as raw_ops
from xlalite.ops.functions.array import (
    broadcast_static_shape as broadcast_static_shape, broadcast_to as broadcast_to, concat as concat,
    ensure_shape as ensure_shape, expand_dims as expand_dims, fill as fill, gather as gather, identity as identity,
    identity_n as identity_n, invert_permutation as invert_permutation, meshgrid as meshgrid, one_hot as one_hot,
    ones as ones, ones_like as ones_like, pad as pad, placeholder as placeholder,
    placeholder_with_default as placeholder_with_default, prevent_gradient as prevent_gradient, rank as rank,
    reshape as reshape, reverse as reverse, reverse_sequence as reverse_sequence, reverse_v2 as reverse_v2,
    roll as roll, shape as shape, shape_n as shape_n, size as size, slice as slice, split as split, squeeze as squeeze,
    stack as stack, stop_gradient as stop_gradient, strided_slice as strided_slice, tile as tile,
    transpose as transpose, unstack as unstack, where as where, where_v2 as where_v2, zeros as zeros,
    zeros_like as zeros_like
)
from xlalite.ops.functions.behaviours import (
    disable_eager_execution as disable_eager_execution, disable_v2_behavior as disable_v2_behavior,
    disable_v2_tensorshape as disable_v2_tensorshape, enable_control_flow_v2 as enable_control_flow_v2,
    enable_resource_variables as enable_resource_variables, executing_eagerly as executing_eagerly
)
from xlalite.ops.functions.clipping import (
    clip_by_average_norm as clip_by_average_norm, clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm, global_norm as global_norm
)
from xlalite.ops.functions.control_flow import (
    Assert as Assert, add_to_collection as add_to_collection, case as case, colocate_with as colocate_with,
    container as container, control_dependencies as control_dependencies, device as device,
    get_collection as get_collection, group as group, name_scope as name_scope, no_op as no_op,
    switch_case as switch_case, tuple as tuple, with_dependencies as with_dependencies
)
from xlalite.ops.functions.custom_gradients import hessians as hessians
from xlalite.ops.functions.defined_functions import Defun as Defun, function as function
from xlalite.ops.functions.diagonals import (
    diag as diag, diag_part as diag_part, matrix_band_part as matrix_band_part, matrix_diag as matrix_diag,
    matrix_diag_part as matrix_diag_part, matrix_set_diag as matrix_set_diag, trace as trace
)
from xlalite.ops.functions.distributions import (
    multinomial as multinomial, parameterized_truncated_normal as parameterized_truncated_normal,
    random_crop as random_crop, random_gamma as random_gamma, random_poisson as random_poisson
)
from xlalite.ops.functions.functional import foldl as foldl, foldr as foldr, map_fn as map_fn
from xlalite.ops.functions.graph_import import import_graph_def as import_graph_def
from xlalite.ops.functions.host_functions import (
    Print as Print, assert_equal as assert_equal, assert_greater as assert_greater,
    assert_greater_equal as assert_greater_equal, assert_integer as assert_integer, assert_less as assert_less,
    assert_less_equal as assert_less_equal, assert_near as assert_near, assert_negative as assert_negative,
    assert_non_negative as assert_non_negative, assert_non_positive as assert_non_positive,
    assert_none_equal as assert_none_equal, assert_positive as assert_positive, assert_rank as assert_rank,
    assert_rank_at_least as assert_rank_at_least, assert_rank_in as assert_rank_in, assert_scalar as assert_scalar,
    assert_type as assert_type, is_numeric_tensor as is_numeric_tensor, numpy_function as numpy_function,
    print_ as _print_, py_func as py_func
)
from xlalite.ops.functions.indexing import newaxis as newaxis
from xlalite.ops.functions.linalg import (
    cholesky as cholesky, cholesky_solve as cholesky_solve, det as _det, eigh as _eigh, eigvalsh as _eigvalsh,
    eye as eye, inv as _inv, lstsq as _lstsq, matrix_transpose as matrix_transpose, qr as qr, solve as _solve,
    svd as svd, triangular_solve as _triangular_solve
)
from xlalite.ops.functions.lookup import (
    string_to_hash_bucket as string_to_hash_bucket, string_to_hash_bucket_fast as string_to_hash_bucket_fast,
    tables_initializer as tables_initializer
)
from xlalite.ops.functions.math import (
    abs as abs, acos as acos, add as add, add_n as add_n, argmax as argmax, argmin as argmin, asin as asin,
    atan as atan, atan2 as atan2, bitcast as bitcast, broadcast_dynamic_shape as broadcast_dynamic_shape, cast as cast,
    ceil as ceil, clip_by_value as clip_by_value, conj as conj, cos as cos, cosh as cosh, cumprod as cumprod,
    cumsum as cumsum, div as div, div_no_nan as div_no_nan, divide as divide, equal as equal, erf as erf, exp as exp,
    expm1 as expm1, floor as floor, floor_div as floor_div, floordiv as floordiv, floormod as floormod,
    greater as greater, greater_equal as greater_equal, imag as imag, is_finite as is_finite, is_inf as is_inf,
    is_nan as is_nan, less as less, less_equal as less_equal, lin_space as lin_space, linspace as linspace, log as log,
    log1p as log1p, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, matmul as matmul, maximum as maximum, minimum as minimum, mod as mod, mul as mul,
    multiply as multiply, negative as negative, not_equal as not_equal, pow as pow, range as range, real as real,
    realdiv as realdiv, reciprocal as reciprocal, reduce_all as reduce_all, reduce_any as reduce_any,
    reduce_logsumexp as reduce_logsumexp, reduce_max as reduce_max, reduce_mean as reduce_mean,
    reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum, rint as rint, round as round,
    rsqrt as rsqrt, scalar_mul as scalar_mul, sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh,
    sparse_matmul as sparse_matmul, sqrt as sqrt, square as square, squared_difference as squared_difference,
    sub as sub, subtract as subtract, tan as tan, tanh as tanh, to_float as to_float, to_int32 as to_int32,
    to_int64 as to_int64, truediv as truediv, truncatediv as truncatediv, truncatemod as truncatemod,
    unsorted_segment_sum as unsorted_segment_sum, xlogy as xlogy
)
from xlalite.ops.functions.nn import log_sigmoid as log_sigmoid
from xlalite.ops.functions.ordering import argsort as argsort, searchsorted as searchsorted, sort as sort
from xlalite.ops.functions.products import (
    accumulate_n as accumulate_n, count_nonzero as count_nonzero, cross as cross, einsum as einsum, norm as norm,
    tensordot as tensordot
)
from xlalite.ops.functions.quantization import (
    dequantize as dequantize, fake_quant_with_min_max_args as fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars as fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,
    quantize as quantize
)
from xlalite.ops.functions.queues import (
    FIFOQueue as FIFOQueue, PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    QueueBase as QueueBase, RandomShuffleQueue as RandomShuffleQueue
)
from xlalite.ops.functions.random_ops import (
    random_normal as random_normal, random_shuffle as random_shuffle, random_uniform as random_uniform,
    truncated_normal as truncated_normal
)
from xlalite.ops.functions.readers import (
    FixedLengthRecordReader as FixedLengthRecordReader, IdentityReader as IdentityReader, ReaderBase as ReaderBase,
    TFRecordReader as TFRecordReader, TextLineReader as TextLineReader, WholeFileReader as WholeFileReader
)
from xlalite.ops.functions.scatter_updates import (
    scatter_add as scatter_add, scatter_div as scatter_div, scatter_max as scatter_max, scatter_min as scatter_min,
    scatter_mul as scatter_mul, scatter_nd_add as scatter_nd_add, scatter_nd_sub as scatter_nd_sub,
    scatter_nd_update as scatter_nd_update, scatter_sub as scatter_sub, scatter_update as scatter_update
)
from xlalite.ops.functions.segments import (
    bincount as bincount, confusion_matrix as confusion_matrix, histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins, segment_max as segment_max, segment_mean as segment_mean,
    segment_min as segment_min, segment_prod as segment_prod, segment_sum as segment_sum,
    sparse_segment_mean as sparse_segment_mean, sparse_segment_sqrt_n as sparse_segment_sqrt_n,
    sparse_segment_sum as sparse_segment_sum, unsorted_segment_max as unsorted_segment_max,
    unsorted_segment_mean as unsorted_segment_mean, unsorted_segment_min as unsorted_segment_min,
    unsorted_segment_prod as unsorted_segment_prod, unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
)
from xlalite.ops.functions.selection import (
    batch_gather as batch_gather, boolean_mask as boolean_mask, dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch, gather_nd as gather_nd, listdiff as listdiff, parallel_stack as parallel_stack,
    scatter_nd as scatter_nd, sequence_mask as sequence_mask, setdiff1d as setdiff1d, sparse_mask as sparse_mask,
    tensor_scatter_nd_add as tensor_scatter_nd_add, tensor_scatter_nd_max as tensor_scatter_nd_max,
    tensor_scatter_nd_min as tensor_scatter_nd_min, tensor_scatter_nd_sub as tensor_scatter_nd_sub,
    tensor_scatter_nd_update as tensor_scatter_nd_update, unique as unique, unique_with_counts as unique_with_counts,
    unravel_index as unravel_index
)
from xlalite.ops.functions.signal import (
    fft as fft, fft2d as fft2d, fft3d as fft3d, ifft as ifft, ifft2d as ifft2d, ifft3d as ifft3d
)
from xlalite.ops.functions.space_blocks import (
    batch_to_space as batch_to_space, batch_to_space_nd as batch_to_space_nd, depth_to_space as depth_to_space,
    extract_image_patches as extract_image_patches, space_to_batch as space_to_batch,
    space_to_batch_nd as space_to_batch_nd, space_to_depth as space_to_depth
)
from xlalite.ops.functions.sparse import (
    SparseTensor as SparseTensor, sparse_concat as sparse_concat, sparse_merge as sparse_merge,
    sparse_placeholder as sparse_placeholder, sparse_reduce_sum as sparse_reduce_sum, sparse_reorder as sparse_reorder,
    sparse_reshape as sparse_reshape, sparse_retain as sparse_retain,
    sparse_tensor_dense_matmul as sparse_tensor_dense_matmul, sparse_tensor_to_dense as sparse_tensor_to_dense,
    sparse_to_dense as sparse_to_dense
)
from xlalite.ops.functions.sparse_arithmetic import (
    sparse_add as sparse_add, sparse_softmax as sparse_softmax, sparse_transpose as sparse_transpose
)
from xlalite.ops.functions.special import (
    acosh as acosh, angle as angle, approximate_equal as approximate_equal, asinh as asinh, atanh as atanh,
    betainc as betainc, check_numerics as check_numerics, complex as complex, digamma as digamma, erfc as erfc,
    igamma as igamma, igammac as igammac, lbeta as lbeta, lgamma as lgamma, polygamma as polygamma,
    saturate_cast as saturate_cast, zeta as zeta
)
from xlalite.ops.functions.strings import (
    as_string as as_string, decode_base64 as decode_base64, encode_base64 as encode_base64,
    matching_files as matching_files, read_file as read_file, reduce_join as reduce_join,
    regex_replace as regex_replace, string_join as string_join, string_split as string_split,
    string_strip as string_strip, string_to_number as string_to_number, substr as substr, write_file as write_file
)
from xlalite.ops.functions.tensor_array import TensorArray as TensorArray
from xlalite.ops.functions.text import edit_distance as edit_distance
from xlalite.ops.helpers.constant import constant as constant, convert_to_tensor as convert_to_tensor
from xlalite.ops.helpers.gradient_registry import RegisterGradient as RegisterGradient, no_gradient as _no_gradient
from xlalite.ops.helpers.gradients import (
    AggregationMethod as AggregationMethod, UnconnectedGradients as UnconnectedGradients, gradients as gradients
)
from xlalite.ops.training.initializers import (
    constant_initializer as constant_initializer, glorot_normal_initializer as glorot_normal_initializer,
    glorot_uniform_initializer as glorot_uniform_initializer, identity_initializer as identity_initializer,
    ones_initializer as ones_initializer, orthogonal_initializer as orthogonal_initializer,
    random_normal_initializer as random_normal_initializer, random_uniform_initializer as random_uniform_initializer,
    truncated_normal_initializer as truncated_normal_initializer,
    uniform_unit_scaling_initializer as uniform_unit_scaling_initializer,
    variance_scaling_initializer as variance_scaling_initializer, zeros_initializer as zeros_initializer
)
from xlalite.ops.training.partitioners import (
    fixed_size_partitioner as fixed_size_partitioner, min_max_variable_partitioner as min_max_variable_partitioner,
    variable_axis_size_partitioner as variable_axis_size_partitioner
)
from xlalite.ops.training.template import make_template as make_template
from xlalite.ops.training.variable import (
    Variable as Variable, assign as assign, assign_add as assign_add, assign_sub as assign_sub,
    global_variables as global_variables, global_variables_initializer as global_variables_initializer,
    initialize_all_variables as initialize_all_variables, is_variable_initialized as is_variable_initialized,
    local_variables as local_variables, local_variables_initializer as local_variables_initializer,
    model_variables as model_variables, report_uninitialized_variables as report_uninitialized_variables,
    trainable_variables as trainable_variables, variables_initializer as variables_initializer
)
from xlalite.ops.training.variable_scope import (
    AUTO_REUSE as AUTO_REUSE, VariableScope as VariableScope, get_variable as get_variable,
    get_variable_scope as get_variable_scope, variable_scope as variable_scope
)
from xlalite.passes.core.extensions import register_pass as register_pass
from xlalite.passes.simplify.added_rules import register_rule as register_rule
from xlalite.stubs import (
    bitwise as bitwise, data as data, debugging as debugging, distributions as distributions, dtypes as dtypes,
    errors as errors, estimator as estimator, feature_column as feature_column, gfile as gfile,
    graph_util as graph_util, image as image, initializers as initializers, io as io, keras as keras, layers as layers,
    linalg as linalg, logging as logging, lookup as lookup, losses as losses, manip as manip, math as math,
    metrics as metrics, nest as nest, nn as nn, python as python, python_io as python_io, quantization as quantization,
    queue as queue, random as random, saved_model as saved_model, signal as signal, sparse as sparse,
    spectral as spectral, strings as strings, summary as summary, test as test, train as train, xla as xla
)
from xlalite.tracing.callbacks import pure_callback as pure_callback
from xlalite.tracing.control_flow import (
    cond as cond, fori_loop as fori_loop, map as map, scan as scan, switch as switch, while_loop as while_loop
)
from xlalite.tracing.custom_derivatives import checkpoint as checkpoint, custom_gradient as custom_gradient
from xlalite.tracing.differentiation import (
    grad as grad, hessian as hessian, jacobian as jacobian, jvp as jvp, value_and_grad as value_and_grad, vjp as vjp
)
from xlalite.tracing.jit import JitFunction as JitFunction, jit as jit
from xlalite.tracing.random_generator import default_rng as default_rng
from xlalite.tracing.vectorization import vmap as vmap

bool = bool_
tensor_diag = diag
tensor_diag_part = diag_part
matrix_determinant = _det
matrix_inverse = _inv
matrix_solve = _solve
matrix_solve_ls = _lstsq
matrix_triangular_solve = _triangular_solve
self_adjoint_eig = _eigh
self_adjoint_eigvals = _eigvalsh
tensor_scatter_add = tensor_scatter_nd_add
tensor_scatter_sub = tensor_scatter_nd_sub
tensor_scatter_update = tensor_scatter_nd_update
NoGradient = _no_gradient
NotDifferentiable = _no_gradient
print = _print_
initialize_all_tables = tables_initializer
arg_max = argmax
arg_min = argmin
all_variables = global_variables
__version__: str
