"""The namespaces under `xlalite`: `nn`, `train`, ...; their names are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.contrib_namespace import CONTRIB

_GENERATORS = "Algorithm, Generator, create_rng_state, get_global_generator, set_global_generator"
_LOOPS = "bidirectional_dynamic_rnn, dynamic_rnn, raw_rnn, static_bidirectional_rnn, static_rnn"

# Namespace to the modules that define its names, spelled as in `xlalite/__init__.py`.
NAMESPACES: Mapping[str, Mapping[str, str]] = {
    **CONTRIB,
    "bitwise": {
        "xlalite.ops.functions.special": (
            "bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, population_count, right_shift"
        ),
    },
    "distributions": {
        "xlalite.ops.functions.probability": "Normal, kl_divergence",
    },
    "data": {
        "xlalite.ops.data.dataset": "Dataset, FixedLengthRecordDataset, TFRecordDataset, TextLineDataset",
        "xlalite.ops.data.iterators": (
            "Iterator, get_output_shapes, get_output_types, make_initializable_iterator, make_one_shot_iterator"
        ),
    },
    "data.experimental": {
        "xlalite.ops.data.dataset": (
            "group_by_window, ignore_errors, map_and_batch, parallel_interleave, shuffle_and_repeat, unbatch"
        ),
    },
    "debugging": {
        "xlalite.ops.functions.special": "check_numerics",
        "xlalite.ops.functions.control_flow": "Assert",
        "xlalite.ops.functions.math": "is_finite, is_inf, is_nan",
        "xlalite.ops.functions.host_functions": (
            "assert_equal, assert_greater, assert_greater_equal, assert_integer, assert_less, assert_less_equal, "
            "assert_near, assert_negative, assert_non_negative, assert_non_positive, assert_none_equal, "
            "assert_positive, assert_rank, assert_rank_at_least, assert_rank_in, assert_scalar, assert_type, "
            "is_numeric_tensor"
        ),
    },
    "dtypes": {
        "xlalite.framework.graph.dtypes": (
            "DType, as_dtype, bfloat16, bool_ as bool, complex128, complex64, float16, float32, float64, int16, int32, "
            "int64, int8, resource, string, uint16, uint32, uint64, uint8"
        ),
        "xlalite.ops.functions.math": "cast",
        "xlalite.ops.functions.special": "complex, saturate_cast",
        "xlalite.ops.functions.strings": "as_string",
    },
    "errors": {
        "xlalite.framework.graph.errors": (
            "AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, ElementTypeError, "
            "FailedPreconditionError, FinalizedGraphError, GraphError, InternalError, InvalidArgumentError, "
            "MissingElementError, NotFoundError, OpError, OutOfRangeError, PermissionDeniedError, "
            "ResourceExhaustedError, UnavailableError, UnimplementedError, UninitializedError, UnknownError"
        ),
    },
    "feature_column": {
        "xlalite.ops.data.feature_columns": (
            "bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity, "
            "categorical_column_with_vocabulary_file, categorical_column_with_vocabulary_list, crossed_column, "
            "embedding_column, indicator_column, numeric_column, shared_embedding_columns, "
            "weighted_categorical_column"
        ),
        "xlalite.ops.data.feature_layers": "input_layer, linear_model, make_parse_example_spec",
    },
    "image": {
        "xlalite.ops.functions.image_files": (
            "decode_and_crop_jpeg, decode_bmp, decode_gif, decode_image, decode_jpeg, decode_png, encode_jpeg, "
            "encode_png, extract_jpeg_shape"
        ),
        "xlalite.ops.functions.image": (
            "ResizeMethod, central_crop, crop_and_resize, crop_to_bounding_box, flip_left_right, flip_up_down, "
            "non_max_suppression, non_max_suppression_padded, non_max_suppression_with_scores, pad_to_bounding_box, "
            "random_flip_left_right, random_flip_up_down, resize_area, resize_bicubic, resize_bilinear, "
            "resize_image_with_crop_or_pad, resize_image_with_crop_or_pad as resize_with_crop_or_pad, "
            "resize_image_with_pad, resize_image_with_pad as resize_with_pad, resize_images, resize_images as resize, "
            "resize_nearest_neighbor, rot90, sample_distorted_bounding_box, transpose, transpose as transpose_image"
        ),
        "xlalite.ops.functions.distributions": "random_crop",
        "xlalite.ops.functions.image_colors": (
            "adjust_brightness, adjust_contrast, adjust_gamma, adjust_hue, adjust_saturation, convert_image_dtype, "
            "grayscale_to_rgb, hsv_to_rgb, per_image_standardization, random_brightness, random_contrast, random_hue, "
            "random_saturation, rgb_to_grayscale, rgb_to_hsv, rgb_to_yiq, rgb_to_yuv, yiq_to_rgb, yuv_to_rgb"
        ),
        "xlalite.ops.functions.image_measures": "image_gradients, psnr, sobel_edges, ssim, total_variation",
        "xlalite.ops.functions.space_blocks": ("extract_image_patches, extract_image_patches as extract_patches"),
    },
    "initializers": {
        "xlalite.ops.training.initializers": (
            "Constant as constant, Ones as ones, RandomNormal as random_normal, RandomUniform as random_uniform, "
            "TruncatedNormal as truncated_normal, VarianceScaling as variance_scaling, Zeros as zeros, Constant, "
            "Initializer, Ones, RandomNormal, RandomUniform, TruncatedNormal, VarianceScaling, Zeros, "
            "glorot_normal_initializer as glorot_normal, glorot_uniform_initializer as glorot_uniform, he_normal, "
            "he_uniform, Identity, Identity as identity, Orthogonal, Orthogonal as orthogonal, UniformUnitScaling, "
            "UniformUnitScaling as uniform_unit_scaling, lecun_normal, lecun_uniform"
        ),
        "xlalite.ops.training.variable": (
            "global_variables_initializer as global_variables, local_variables_initializer as local_variables, "
            "variables_initializer as variables"
        ),
        "xlalite.ops.functions.lookup": "tables_initializer",
    },
    "estimator": {
        "xlalite.client.estimator": "Estimator",
        "xlalite.client.canned_estimators": (
            "DNNClassifier, DNNLinearCombinedClassifier, DNNLinearCombinedRegressor, DNNRegressor, LinearClassifier, "
            "LinearRegressor"
        ),
        "xlalite.client.train_and_evaluate": "FinalExporter, LatestExporter, train_and_evaluate",
        "xlalite.client.estimator_spec": "EstimatorSpec, EvalSpec, ModeKeys, RunConfig, TrainSpec, WarmStartSettings",
    },
    "estimator.export": {
        "xlalite.client.estimator_spec": "PredictOutput, ServingInputReceiver, build_raw_serving_input_receiver_fn",
    },
    "estimator.inputs": {
        "xlalite.client.estimator_inputs": "numpy_input_fn, pandas_input_fn",
    },
    "gfile": {
        "xlalite.files.gfile": (
            "GFile, GFile as FastGFile, GFile as Open, copy as Copy, exists as Exists, find as Glob, "
            "isdir as IsDirectory, listdir as ListDirectory, makedirs as MakeDirs, mkdir as MkDir, remove as Remove, "
            "rename as Rename, rmtree as DeleteRecursively, stat as Stat, walk as Walk"
        ),
    },
    "graph_util": {
        "xlalite.files.graph_files": "convert_variables_to_constants, extract_sub_graph, remove_training_nodes",
        "xlalite.ops.functions.graph_import": "import_graph_def",
    },
    "io": {
        "xlalite.ops.functions.image_files": (
            "decode_and_crop_jpeg, decode_bmp, decode_gif, decode_image, decode_jpeg, decode_png, encode_jpeg, "
            "encode_png, extract_jpeg_shape"
        ),
        "xlalite.files.graph_files": "write_graph",
        "xlalite.ops.data.features": "FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature",
        "xlalite.ops.data.parsing": (
            "decode_csv, decode_raw, parse_example, parse_single_example, parse_single_sequence_example"
        ),
        "xlalite.files.records": "TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator",
        "xlalite.ops.functions.queues": "FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue",
        "xlalite.ops.functions.strings": "decode_base64, encode_base64, matching_files, read_file, write_file",
    },
    "io.gfile": {
        "xlalite.files.gfile": (
            "GFile, copy, exists, find as glob, isdir, listdir, makedirs, mkdir, remove, rename, rmtree, stat, walk"
        ),
    },
    "lookup": {
        "xlalite.ops.functions.lookup": (
            "KeyValueTensorInitializer, StaticHashTable, TextFileIndex, TextFileInitializer"
        ),
    },
    "nest": {
        "xlalite.framework.nest": (
            "assert_same_structure, flatten, is_nested, is_nested as is_sequence, map_structure, pack_sequence_as"
        ),
    },
    "keras": {},
    "keras.initializers": {
        "xlalite.ops.training.initializers": (
            "glorot_normal_initializer as glorot_normal, glorot_uniform_initializer as glorot_uniform, he_normal, "
            "he_uniform, lecun_normal, lecun_uniform"
        ),
    },
    "keras.losses": {
        "xlalite.ops.functions.keras_losses": (
            "binary_crossentropy, categorical_crossentropy, mean_absolute_error, mean_absolute_error as mae, "
            "mean_squared_error, mean_squared_error as mse, sparse_categorical_crossentropy"
        ),
    },
    "layers": {
        "xlalite.ops.layers.base": "Layer",
        "xlalite.ops.layers.convolutional": (
            "Conv1D, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, SeparableConv2D, conv1d, conv2d, "
            "conv2d_transpose_layer as conv2d_transpose, conv3d, conv3d_transpose_layer as conv3d_transpose, "
            "separable_conv2d_layer as separable_conv2d"
        ),
        "xlalite.ops.layers.core": "Dense, Dropout, Flatten, dense, dropout, flatten",
        "xlalite.ops.layers.normalization": (
            "BatchNormalization, BatchNormalization as BatchNorm, batch_normalization"
        ),
        "xlalite.ops.layers.pooling": (
            "AveragePooling1D, AveragePooling2D, AveragePooling3D, MaxPooling1D, MaxPooling2D, MaxPooling3D, "
            "average_pooling1d, average_pooling2d, average_pooling3d, max_pooling1d, max_pooling2d, max_pooling3d"
        ),
    },
    "linalg": {
        "xlalite.ops.functions.diagonals": (
            "matrix_band_part as band_part, matrix_diag as diag, matrix_diag_part as diag_part, "
            "matrix_set_diag as set_diag, diag as tensor_diag, diag_part as tensor_diag_part, trace"
        ),
        "xlalite.ops.functions.linalg": (
            "adjoint, cholesky, cholesky_solve, det, eigh, eigvalsh, eye, inv, logdet, lstsq, matrix_transpose, qr, "
            "slogdet, solve, svd, triangular_solve, tridiagonal_solve"
        ),
        "xlalite.ops.functions.linear_operators": "LinearOperatorLowerTriangular",
        "xlalite.ops.functions.math": "matmul",
        "xlalite.ops.functions.nn": "l2_normalize",
        "xlalite.ops.functions.clipping": "global_norm",
        "xlalite.ops.functions.products": "cross, einsum, norm, tensordot",
    },
    "losses": {
        "xlalite.ops.functions.losses": (
            "Reduction, absolute_difference, add_loss, compute_weighted_loss, cosine_distance, get_losses, "
            "get_regularization_loss, get_regularization_losses, get_total_loss, hinge_loss, huber_loss, log_loss, "
            "mean_pairwise_squared_error, mean_squared_error, sigmoid_cross_entropy, softmax_cross_entropy, "
            "sparse_softmax_cross_entropy"
        ),
    },
    "manip": {
        "xlalite.ops.functions.array": "reshape, reverse, roll, tile",
        "xlalite.ops.functions.selection": "gather_nd, scatter_nd",
    },
    "math": {
        "xlalite.ops.functions.math": (
            "abs, acos, add, add_n, argmax, argmin, asin, atan, atan2, ceil, conj, cos, cosh, cumprod, cumsum, "
            "div_no_nan, divide, equal, erf, exp, expm1, floor, floordiv, floormod, greater, greater_equal, imag, "
            "is_finite, is_inf, is_nan, less, less_equal, log, log1p, logical_and, logical_not, logical_or, "
            "logical_xor, matmul, maximum, minimum, mod, multiply, negative, not_equal, pow, real, realdiv, "
            "reciprocal, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, "
            "reduce_sum, rint, round, rsqrt, scalar_mul, sigmoid, sign, sin, sinh, sqrt, square, squared_difference, "
            "subtract, tan, tanh, truediv, unsorted_segment_sum, xlogy"
        ),
        "xlalite.ops.functions.nn": (
            "l2_normalize, log_sigmoid, log_softmax, softmax, softplus, softsign, zero_fraction"
        ),
        "xlalite.ops.functions.ordering": "bucketize, in_top_k, top_k",
        "xlalite.ops.functions.products": (
            "accumulate_n, count_nonzero, cumulative_logsumexp, reduce_euclidean_norm, reduce_std, reduce_variance"
        ),
        "xlalite.ops.functions.segments": (
            "bincount, confusion_matrix, segment_max, segment_mean, segment_min, segment_prod, segment_sum, "
            "unsorted_segment_max, unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod, "
            "unsorted_segment_sqrt_n"
        ),
        "xlalite.ops.functions.special": (
            "acosh, angle, approximate_equal, asinh, atanh, bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, betainc, "
            "complex, digamma, erfc, erfinv, igamma, igammac, lbeta, lgamma, multiply_no_nan, ndtri, nextafter, "
            "polygamma, polyval, xdivy, xlog1py, zeta"
        ),
    },
    "logging": {
        "xlalite.program_logging": (
            "DEBUG, ERROR, FATAL, INFO, WARN, debug, error, fatal, flush, get_verbosity, info, log, log_every_n, "
            "log_first_n, log_if, set_verbosity, vlog, warn, warning"
        ),
    },
    "metrics": {
        "xlalite.ops.training.metrics": (
            "accuracy, auc, false_negatives, false_positives, mean, mean_absolute_error, mean_cosine_distance, "
            "mean_iou, mean_per_class_accuracy, mean_relative_error, mean_squared_error, mean_tensor, "
            "percentage_below, precision, precision_at_thresholds, recall, recall_at_thresholds, "
            "root_mean_squared_error, true_negatives, true_positives"
        ),
    },
    "nn": {
        "xlalite.ops.functions.convolutions": (
            "atrous_conv2d, atrous_conv2d_transpose, conv1d, conv1d_transpose, conv2d, conv2d_backprop_filter, "
            "conv2d_backprop_input, conv2d_transpose, conv3d, conv3d_backprop_filter, conv3d_backprop_filter_v2, "
            "conv3d_transpose, conv_transpose, convolution, depthwise_conv2d, depthwise_conv2d_native, "
            "depthwise_conv2d_native_backprop_filter, "
            "depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter, "
            "depthwise_conv2d_native_backprop_input, "
            "depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input, separable_conv2d"
        ),
        "xlalite.ops.functions.candidate_samplers": (
            "all_candidate_sampler, compute_accidental_hits, fixed_unigram_candidate_sampler, "
            "learned_unigram_candidate_sampler, log_uniform_candidate_sampler, uniform_candidate_sampler"
        ),
        "xlalite.ops.functions.ctc": (
            "ctc_beam_search_decoder, ctc_beam_search_decoder_v2, ctc_greedy_decoder, ctc_loss, ctc_loss_v2"
        ),
        "xlalite.ops.functions.embedding": "embedding_lookup",
        "xlalite.ops.functions.sampled_losses": "nce_loss, sampled_softmax_loss",
        "xlalite.ops.functions.morphology": "dilation2d, erosion2d",
        "xlalite.ops.functions.normalization": (
            "batch_norm_with_global_normalization, fused_batch_norm, local_response_normalization, "
            "local_response_normalization as lrn, normalize_moments, sufficient_statistics, weighted_moments"
        ),
        "xlalite.ops.functions.ordering": "in_top_k, top_k",
        "xlalite.ops.functions.pooling": (
            "avg_pool, avg_pool1d, avg_pool2d, avg_pool3d, avg_pool_v2, max_pool, max_pool1d, max_pool2d, max_pool3d, "
            "max_pool_v2, max_pool_with_argmax, pool"
        ),
        "xlalite.ops.functions.space_blocks": "batch_to_space, depth_to_space, space_to_batch, space_to_depth",
        "xlalite.ops.functions.math": "sigmoid, tanh",
        "xlalite.ops.functions.nn": (
            "batch_normalization, bias_add, crelu, dropout, elu, l2_loss, l2_normalize, leaky_relu, "
            "log_poisson_loss, log_sigmoid, log_softmax, moments, relu, relu6, relu_layer, selu, "
            "sigmoid_cross_entropy_with_logits, silu, softmax, softmax_cross_entropy_with_logits, "
            "softmax_cross_entropy_with_logits_v2, softplus, softsign, sparse_softmax_cross_entropy_with_logits, "
            "swish, weighted_cross_entropy_with_logits, xw_plus_b, zero_fraction"
        ),
        "xlalite.ops.functions.sparse": "embedding_lookup_sparse, safe_embedding_lookup_sparse",
        "xlalite.ops.recurrent.networks": _LOOPS,
    },
    "nn.rnn_cell": {
        "xlalite.ops.recurrent.cell": "LSTMStateTuple, RNNCell",
        "xlalite.ops.recurrent.cells": "BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell",
        "xlalite.ops.recurrent.wrappers": "DeviceWrapper, DropoutWrapper, MultiRNNCell, ResidualWrapper",
    },
    "quantization": {
        "xlalite.ops.functions.quantization": (
            "dequantize, fake_quant_with_min_max_args, fake_quant_with_min_max_args_gradient, "
            "fake_quant_with_min_max_vars, fake_quant_with_min_max_vars_gradient, "
            "fake_quant_with_min_max_vars_per_channel, fake_quant_with_min_max_vars_per_channel_gradient, quantize, "
            "quantize_and_dequantize, quantize_and_dequantize_v2, quantize_and_dequantize_v3"
        ),
    },
    "queue": {
        "xlalite.ops.functions.queues": "FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue",
    },
    "python_io": {
        "xlalite.files.records": ("TFRecordCompressionType, TFRecordOptions, TFRecordWriter, tf_record_iterator"),
    },
    "python": {},
    "python.client": {},
    "python.client.timeline": {
        "xlalite.client.timeline": "Timeline",
    },
    "python.ops": {},
    "python.ops.rnn": {
        "xlalite.ops.recurrent.networks": _LOOPS,
    },
    "python.ops.rnn_cell": {
        "xlalite.ops.recurrent.cell": "LSTMStateTuple, RNNCell",
        "xlalite.ops.recurrent.cells": "BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell",
        "xlalite.ops.recurrent.wrappers": "DeviceWrapper, DropoutWrapper, MultiRNNCell, ResidualWrapper",
    },
    "random": {
        "xlalite.framework.random_seed": "set_random_seed",
        "xlalite.ops.functions.candidate_samplers": (
            "all_candidate_sampler, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler, "
            "log_uniform_candidate_sampler, uniform_candidate_sampler"
        ),
        "xlalite.ops.functions.distributions": (
            "categorical, random_crop as crop, random_gamma as gamma, multinomial, random_poisson as poisson, "
            "stateless_multinomial as stateless_categorical, stateless_multinomial, "
            "stateless_random_normal as stateless_normal, stateless_truncated_normal, "
            "stateless_random_uniform as stateless_uniform"
        ),
        "xlalite.ops.functions.random_ops": (
            "random_normal as normal, random_shuffle as shuffle, truncated_normal, random_uniform as uniform"
        ),
        "xlalite.ops.training.random_generator": _GENERATORS,
    },
    "random.experimental": {
        "xlalite.ops.training.random_generator": _GENERATORS,
    },
    "saved_model": {
        "xlalite.ops.training.saved_models": (
            "SavedModelBuilder as Builder, build_signature_def, build_tensor_info, classification_signature_def, "
            "get_tensor_from_tensor_info, load, main_op_with_restore, maybe_saved_model_directory, "
            "maybe_saved_model_directory as contains_saved_model, predict_signature_def, "
            "regression_signature_def, simple_save"
        ),
    },
    "saved_model.builder": {
        "xlalite.ops.training.saved_models": ("SavedModelBuilder"),
    },
    "saved_model.constants": {
        "xlalite.ops.training.saved_models": (
            "ASSETS_DIRECTORY, ASSETS_KEY, LEGACY_INIT_OP_KEY, MAIN_OP_KEY, SAVED_MODEL_FILENAME_PB, "
            "SAVED_MODEL_FILENAME_PBTXT, SAVED_MODEL_SCHEMA_VERSION, VARIABLES_DIRECTORY, VARIABLES_FILENAME"
        ),
    },
    "saved_model.loader": {
        "xlalite.ops.training.saved_models": ("load, maybe_saved_model_directory"),
    },
    "saved_model.main_op": {
        "xlalite.ops.training.saved_models": ("main_op, main_op_with_restore"),
    },
    "saved_model.signature_constants": {
        "xlalite.ops.training.saved_models": (
            "CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME, CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES, "
            "DEFAULT_SERVING_SIGNATURE_DEF_KEY, PREDICT_INPUTS, PREDICT_METHOD_NAME, PREDICT_OUTPUTS, "
            "REGRESS_INPUTS, REGRESS_METHOD_NAME, REGRESS_OUTPUTS"
        ),
    },
    "saved_model.signature_def_utils": {
        "xlalite.ops.training.saved_models": (
            "build_signature_def, classification_signature_def, predict_signature_def, regression_signature_def"
        ),
    },
    "saved_model.tag_constants": {
        "xlalite.ops.training.saved_models": ("EVAL, GPU, SERVING, TPU, TRAINING"),
    },
    "saved_model.utils": {
        "xlalite.ops.training.saved_models": ("build_tensor_info, get_tensor_from_tensor_info"),
    },
    "signal": {
        "xlalite.ops.functions.signal": (
            "fft, fft2d, fft3d, frame, hamming_window, hann_window, ifft, ifft2d, ifft3d, irfft, irfft2d, irfft3d, "
            "rfft, rfft2d, rfft3d, stft"
        ),
    },
    "sparse": {
        "xlalite.ops.functions.sparse": (
            "sparse_concat as concat, sparse_from_dense as from_dense, sparse_tensor_dense_matmul as matmul, "
            "sparse_placeholder as placeholder, sparse_reduce_sum as reduce_sum, sparse_reorder as reorder, "
            "sparse_reshape as reshape, sparse_retain as retain, sparse_tensor_dense_matmul as sparse_dense_matmul, "
            "SparseTensor, sparse_tensor_to_dense as to_dense"
        ),
        "xlalite.ops.functions.sparse_arithmetic": (
            "sparse_add as add, sparse_softmax as softmax, sparse_transpose as transpose"
        ),
    },
    "spectral": {
        "xlalite.ops.functions.signal": (
            "fft, fft2d, fft3d, ifft, ifft2d, ifft3d, irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d"
        ),
    },
    "strings": {
        "xlalite.ops.functions.strings": (
            "as_string, string_join as join, string_length as length, string_lower as lower, reduce_join, "
            "regex_full_match, regex_replace, split, string_strip as strip, substr, string_to_number as to_number, "
            "string_upper as upper"
        ),
        "xlalite.ops.functions.lookup": (
            "string_to_hash_bucket as to_hash_bucket, string_to_hash_bucket_fast as to_hash_bucket_fast"
        ),
    },
    "summary": {
        "xlalite.files.events": "FileWriter, FileWriterCache",
        "xlalite.messages.classes": "Event, Summary, SessionLog",
        "xlalite.ops.training.summary": (
            "audio, get_summary_description, histogram, image, merge, merge_all, scalar, text"
        ),
    },
    "test": {
        "xlalite.client.test_case": (
            "TestCase, get_temp_dir, gpu_device_name, is_built_with_cuda, is_gpu_available, main"
        ),
    },
    "xla": {},
    "xla.experimental": {
        "xlalite.framework.graph.jit_scope": "jit_scope",
        "xlalite.ops.functions.defined_functions": "compile",
    },
    "train": {
        "xlalite.client.hooks": (
            "CheckpointSaverHook, CheckpointSaverListener, FeedFnHook, FinalOpsHook, LoggingTensorHook, "
            "NanLossDuringTrainingError, NanTensorHook, SecondOrStepTimer, SessionRunArgs, SessionRunContext, "
            "SessionRunHook, SessionRunValues, "
            "StepCounterHook, StopAtStepHook, SummarySaverHook"
        ),
        "xlalite.client.monitored_session": (
            "ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession, Scaffold, SingularMonitoredSession"
        ),
        "xlalite.client.supervisor": "Supervisor",
        "xlalite.client.server_cluster": "ClusterSpec, replica_device_setter, Server",
        "xlalite.ops.training.coordinator": "Coordinator, LooperThread",
        "xlalite.ops.training.input_producers": (
            "batch, batch_join, input_producer, limit_epochs, range_input_producer, shuffle_batch, "
            "shuffle_batch_join, slice_input_producer, string_input_producer"
        ),
        "xlalite.ops.training.queue_runner": "QueueRunner, add_queue_runner, start_queue_runners",
        "xlalite.files.events": "FileWriter as SummaryWriter, summary_iterator",
        "xlalite.files.checkpoint_state": (
            "get_checkpoint_mtimes, get_checkpoint_state, latest_checkpoint, list_variables, load_checkpoint, "
            "load_variable, remove_checkpoint, update_checkpoint_state"
        ),
        "xlalite.files.checkpoints": "CheckpointReader as NewCheckpointReader, checkpoint_exists",
        "xlalite.messages.classes": (
            "BytesList, Example, Feature, FeatureList, FeatureLists, Features, FloatList, Int64List, SaverDef, "
            "SequenceExample"
        ),
        "xlalite.ops.training.checkpoint_init": "init_from_checkpoint",
        "xlalite.files.graph_files": "write_graph",
        "xlalite.ops.training.meta_graphs": "export_meta_graph",
        "xlalite.ops.training.saver": "Saver, import_meta_graph",
        "xlalite.ops.training.global_step": (
            "create_global_step, get_global_step, get_or_create_global_step, global_step"
        ),
        "xlalite.ops.training.adaptive_optimizers": (
            "AdadeltaOptimizer, AdagradDAOptimizer, AdagradOptimizer, FtrlOptimizer, ProximalAdagradOptimizer, "
            "ProximalGradientDescentOptimizer, RMSPropOptimizer"
        ),
        "xlalite.ops.training.learning_rate_decay": (
            "cosine_decay, cosine_decay_restarts, exponential_decay, inverse_time_decay, linear_cosine_decay, "
            "natural_exp_decay, noisy_linear_cosine_decay, piecewise_constant, piecewise_constant_decay, "
            "polynomial_decay"
        ),
        "xlalite.ops.training.moving_averages": "ExponentialMovingAverage",
        "xlalite.ops.training.optimizer": "Optimizer",
        "xlalite.ops.training.optimizers": "AdamOptimizer, GradientDescentOptimizer, MomentumOptimizer",
    },
}
