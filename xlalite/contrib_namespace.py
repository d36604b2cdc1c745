"""The namespaces under `xlalite.contrib`, as `xlalite/namespace.py` has the others."""

from __future__ import annotations

from collections.abc import Mapping

CONTRIB: Mapping[str, Mapping[str, str]] = {
    "contrib.crf": {
        "xlalite.ops.recurrent.conditional_random_field": (
            "crf_binary_score, crf_decode, crf_log_likelihood, crf_log_norm, crf_sequence_score, crf_unary_score, "
            "viterbi_decode"
        ),
    },
    "contrib.distributions": {
        "xlalite.ops.functions.probability": "Normal, kl_divergence",
    },
    "contrib.learn": {
        "xlalite.client.estimator_spec": "LearnModeKeys as ModeKeys",
    },
    "contrib.lookup": {
        "xlalite.ops.functions.lookup": (
            "HashTable, IdTableWithHashBuckets, KeyValueTensorInitializer, MutableHashTable, "
            "TextFileIdTableInitializer, TextFileIndex, TextFileInitializer, TextFileStringTableInitializer, "
            "index_table_from_file, "
            "index_table_from_tensor, index_table_from_tensor as string_to_index_table_from_tensor, "
            "index_to_string_table_from_file, index_to_string_table_from_tensor"
        ),
    },
    "contrib.learn.datasets": {
        "xlalite.examples.tutorials.data_sets": "DATASETS, load_dataset",
    },
    "contrib.learn.datasets.base": {
        "xlalite.examples.tutorials.data_sets": ("Table as Dataset, load_csv_with_header, load_csv_without_header"),
        "xlalite.examples.tutorials.mnist.input_data": "Datasets",
    },
    "contrib.learn.datasets.mnist": {
        "xlalite.examples.tutorials.data_sets": "load_mnist",
        "xlalite.examples.tutorials.mnist.input_data": "DataSet, read_data_sets",
    },
    "contrib.learn.preprocessing": {
        "xlalite.ops.functions.text": "VocabularyProcessor",
    },
    "contrib.legacy_seq2seq": {
        "xlalite.ops.recurrent.sequence_losses": (
            "rnn_decoder, sequence_loss_of_lists as sequence_loss, sequence_loss_by_example"
        ),
    },
    "contrib.data": {
        "xlalite.ops.data.dataset": (
            "batch_and_drop_remainder, group_by_window, ignore_errors, map_and_batch, parallel_interleave, "
            "shuffle_and_repeat, unbatch"
        ),
    },
    "contrib.framework": {
        "xlalite.files.checkpoint_state": "list_variables, load_checkpoint, load_variable",
        "xlalite.ops.layers.arg_scope": (
            "add_arg_scope, arg_scope, arg_scoped_arguments, current_arg_scope, has_arg_scope"
        ),
        "xlalite.ops.layers.base": "smart_cond, static_truth as smart_constant_value",
        "xlalite.ops.layers.slim_layers": "model_variable, variable",
        "xlalite.ops.training.global_step": "create_global_step, get_global_step, get_or_create_global_step",
        "xlalite.ops.training.variable": (
            "global_variables as get_variables, model_variables as get_model_variables, "
            "trainable_variables as get_trainable_variables"
        ),
    },
    "contrib.framework.nest": {
        "xlalite.framework.nest": (
            "assert_same_structure, flatten, is_nested, is_nested as is_sequence, map_structure, pack_sequence_as"
        ),
    },
    "contrib.layers": {
        "xlalite.ops.layers.slim_layers": (
            "avg_pool2d, avg_pool3d, batch_norm, conv2d, conv2d as convolution, conv2d as convolution1d, "
            "conv2d as convolution2d, conv2d as convolution3d, conv2d as conv1d, conv2d as conv3d, "
            "conv2d_transpose, conv2d_transpose as convolution2d_transpose, conv2d_transpose as conv3d_transpose, "
            "conv2d_transpose as convolution3d_transpose, dropout, embed_sequence, flatten, fully_connected, "
            "layer_norm, max_pool2d, max_pool3d, model_variable, one_hot_encoding, repeat, separable_conv2d, "
            "separable_conv2d as separable_convolution2d, softmax, stack"
        ),
        "xlalite.ops.layers.contrib_layers": (
            "bias_add, dense_to_sparse, elu, group_norm, instance_norm, linear, maxout, relu, relu6, scale_gradient, "
            "spatial_softmax, unit_norm"
        ),
        "xlalite.ops.functions.sparse": "safe_embedding_lookup_sparse",
        "xlalite.ops.training.optimize_loss": "OPTIMIZER_CLS_NAMES, OPTIMIZER_SUMMARIES, optimize_loss",
        "xlalite.ops.training.initializers": (
            "contrib_variance_scaling_initializer as variance_scaling_initializer, xavier_initializer, "
            "xavier_initializer as xavier_initializer_conv2d"
        ),
        "xlalite.ops.training.regularizers": (
            "apply_regularization, l1_l2_regularizer, l1_regularizer, l2_regularizer, sum_regularizer"
        ),
    },
    "contrib.opt": {
        "xlalite.ops.training.optimizers": "AdaMaxOptimizer, AddSignOptimizer, LazyAdamOptimizer, PowerSignOptimizer",
    },
    "contrib.resampler": {
        "xlalite.ops.functions.morphology": "resampler",
    },
    "contrib.rnn": {
        "xlalite.ops.recurrent.cell": "LSTMStateTuple, RNNCell",
        "xlalite.ops.recurrent.cells": (
            "BasicLSTMCell, BasicRNNCell, GRUBlockCell, GRUBlockCellV2, GRUCell, LayerNormBasicLSTMCell, "
            "LSTMBlockCell, LSTMCell, NASCell"
        ),
        "xlalite.ops.recurrent.convolutional_cells": "Conv1DLSTMCell, Conv2DLSTMCell, Conv3DLSTMCell, ConvLSTMCell",
        "xlalite.ops.recurrent.networks": "stack_bidirectional_dynamic_rnn, static_bidirectional_rnn, static_rnn",
        "xlalite.ops.recurrent.wrappers": (
            "DeviceWrapper, DropoutWrapper, InputProjectionWrapper, MultiRNNCell, OutputProjectionWrapper, "
            "ResidualWrapper"
        ),
    },
    "contrib.seq2seq": {
        "xlalite.ops.recurrent.attention": (
            "AttentionMechanism, BahdanauAttention, BahdanauMonotonicAttention, LuongAttention, "
            "LuongMonotonicAttention, hardmax, monotonic_attention, safe_cumprod"
        ),
        "xlalite.ops.recurrent.attention_wrapper": "AttentionWrapper, AttentionWrapperState",
        "xlalite.ops.recurrent.beam_search": (
            "BeamSearchDecoder, BeamSearchDecoderOutput, BeamSearchDecoderState, FinalBeamSearchDecoderOutput, "
            "gather_tree, tile_batch"
        ),
        "xlalite.ops.recurrent.decoding": "BasicDecoder, BasicDecoderOutput, Decoder, dynamic_decode",
        "xlalite.ops.recurrent.decoding_helpers": (
            "CustomHelper, GreedyEmbeddingHelper, Helper, InferenceHelper, SampleEmbeddingHelper, "
            "ScheduledEmbeddingTrainingHelper, ScheduledOutputTrainingHelper, TrainingHelper"
        ),
        "xlalite.ops.recurrent.sequence_losses": "sequence_loss",
    },
    "contrib.cluster_resolver": {
        "xlalite.client.tpu_estimator": "TPUClusterResolver",
    },
    "contrib.slim.model_analyzer": {
        "xlalite.ops.layers.model_analyzer": "analyze_ops, analyze_vars, tensor_description",
    },
    "contrib.tensorboard": {},
    "contrib.tensorboard.plugins": {},
    "contrib.tensorboard.plugins.projector": {
        "xlalite.files.projector": "visualize_embeddings",
        "xlalite.messages.classes": "EmbeddingInfo, ProjectorConfig, SpriteMetadata",
    },
    "contrib.tpu": {
        "xlalite.client.tpu_estimator": (
            "CrossShardOptimizer, InputPipelineConfig, TPUConfig, TPUEstimator, TPUEstimatorSpec, "
            "TPURunConfig as RunConfig"
        ),
    },
    "contrib.training": {
        "xlalite.ops.training.hparams": "HParams",
    },
    "contrib.slim": {
        "xlalite.ops.layers.arg_scope": "add_arg_scope, arg_scope",
        "xlalite.ops.layers.slim_layers": (
            "avg_pool2d, batch_norm, conv2d, conv2d_transpose, dropout, flatten, fully_connected, layer_norm, "
            "max_pool2d, model_variable, one_hot_encoding, repeat, separable_conv2d, softmax, stack, variable"
        ),
        "xlalite.ops.layers.contrib_layers": "bias_add, instance_norm",
        "xlalite.ops.training.global_step": "create_global_step, get_global_step, get_or_create_global_step",
        "xlalite.ops.training.regularizers": "l1_regularizer, l2_regularizer, l1_l2_regularizer",
        "xlalite.ops.training.variable": (
            "global_variables as get_variables, model_variables as get_model_variables, "
            "trainable_variables as get_trainable_variables"
        ),
    },
}
