# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.metrics import (
    accuracy as accuracy, auc as auc, false_negatives as false_negatives, false_positives as false_positives,
    mean as mean, mean_absolute_error as mean_absolute_error, mean_cosine_distance as mean_cosine_distance,
    mean_iou as mean_iou, mean_per_class_accuracy as mean_per_class_accuracy,
    mean_relative_error as mean_relative_error, mean_squared_error as mean_squared_error, mean_tensor as mean_tensor,
    percentage_below as percentage_below, precision as precision, precision_at_thresholds as precision_at_thresholds,
    recall as recall, recall_at_thresholds as recall_at_thresholds, root_mean_squared_error as root_mean_squared_error,
    true_negatives as true_negatives, true_positives as true_positives
)

