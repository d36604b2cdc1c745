"""Names of the collections that the library itself keeps in a graph."""

from __future__ import annotations

from typing import Final


class GraphKeys:
    """Well-known collection names; users may add their own."""

    GLOBAL_VARIABLES: Final = "variables"
    VARIABLES: Final = "variables"
    LOCAL_VARIABLES: Final = "local_variables"
    MODEL_VARIABLES: Final = "model_variables"
    TRAINABLE_VARIABLES: Final = "trainable_variables"
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    METRIC_VARIABLES: Final = "metric_variables"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    SUMMARIES: Final = "summaries"
    SUMMARY_OP: Final = "summary_op"
    SAVERS: Final = "savers"
    QUEUE_RUNNERS: Final = "queue_runners"
    TABLE_INITIALIZERS: Final = "table_initializer"
    WEIGHTS: Final = "weights"
    BIASES: Final = "biases"
    ACTIVATIONS: Final = "activations"
    UPDATE_OPS: Final = "update_ops"
    LOSSES: Final = "losses"
    REGULARIZATION_LOSSES: Final = "regularization_losses"
    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    READY_OP: Final = "ready_op"
    GLOBAL_STEP: Final = "global_step"
    TRAIN_OP: Final = "train_op"
    COND_CONTEXT: Final = "cond_context"
    WHILE_CONTEXT: Final = "while_context"
