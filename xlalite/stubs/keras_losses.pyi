# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.keras_losses import (
    binary_crossentropy as binary_crossentropy, categorical_crossentropy as categorical_crossentropy,
    mean_absolute_error as mean_absolute_error, mean_squared_error as mean_squared_error,
    sparse_categorical_crossentropy as sparse_categorical_crossentropy
)

mae = mean_absolute_error
mse = mean_squared_error
