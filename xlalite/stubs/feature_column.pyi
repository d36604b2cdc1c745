# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.data.feature_columns import (
    bucketized_column as bucketized_column, categorical_column_with_hash_bucket as categorical_column_with_hash_bucket,
    categorical_column_with_identity as categorical_column_with_identity,
    categorical_column_with_vocabulary_file as categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list as categorical_column_with_vocabulary_list,
    crossed_column as crossed_column, embedding_column as embedding_column, indicator_column as indicator_column,
    numeric_column as numeric_column, shared_embedding_columns as shared_embedding_columns,
    weighted_categorical_column as weighted_categorical_column
)
from xlalite.ops.data.feature_layers import (
    input_layer as input_layer, linear_model as linear_model, make_parse_example_spec as make_parse_example_spec
)

